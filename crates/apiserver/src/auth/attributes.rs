//! What a request wants to do, and the decision about it.

/// What a request wants to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes<'a> {
    /// `get`, `list`, `create`, ...; for a path the method in lower case.
    pub(crate) verb: &'a str,
    pub(crate) target: Target<'a>,
}

/// What it wants to do that to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    /// A path that is no resource's.
    Path(&'a str),
    /// A resource; subresource, namespace and name may be empty.
    Resource {
        group: &'a str,
        resource: &'a str,
        subresource: &'a str,
        namespace: &'a str,
        name: &'a str,
    },
}

impl Attributes<'_> {
    /// Rules of a Role count only in its namespace.
    pub(crate) fn namespace(&self) -> &str {
        match self.target {
            Target::Path(_) => "",
            Target::Resource { namespace, .. } => namespace,
        }
    }
}

/// An answer with its reason, which may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    pub(crate) reason: String,
}
