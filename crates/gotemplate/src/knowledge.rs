//! What a caller knows of its data beyond what the data holds: other spellings of fields, and which fields there are.

/// A caller's number for what it knows of one kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form(pub u32);

/// What a name in a template means for an object of some form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// These keys, one below the other; without keys, the object itself. The form is that of what is found.
    Keys(Vec<String>, Form),
    /// Nothing: no object of this form has it. With the closest name that means something, where there is one.
    Unknown(Option<String>),
}

/// Answers questions about forms. The answers must be the same whenever they are asked.
pub trait Knowledge {
    /// What `name` means for an object of this form; `has` tells which keys the object at hand has.
    fn member(&self, form: Form, name: &str, has: &dyn Fn(&str) -> bool) -> Member;

    /// The form of the value of a key.
    fn child(&self, form: Form, key: &str) -> Form;

    /// The form of a list's elements.
    fn element(&self, form: Form) -> Form;
}
