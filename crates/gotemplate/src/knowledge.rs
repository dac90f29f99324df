//! A caller's knowledge about its data: alternative spellings of fields, and the set of known fields.

/// A caller's number for a kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form(pub u32);

/// The meaning of a name in a template for an object of some form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// These keys, nested in order; without keys, the object itself. The form is that of the result.
    Keys(Vec<String>, Form),
    /// No object of this form has the name. With the closest known name, if any.
    Unknown(Option<String>),
}

/// Knowledge about forms. The results must not change over time.
pub trait Knowledge {
    /// Resolves `name` for an object of this form. `has` returns whether the object has a key.
    fn member(&self, form: Form, name: &str, has: &dyn Fn(&str) -> bool) -> Member;

    /// The form of the value of a key.
    fn child(&self, form: Form, key: &str) -> Form;

    /// The form of a list's elements.
    fn element(&self, form: Form) -> Form;
}
