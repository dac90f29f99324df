//! What a request wants to do, and the decision about it.

/// What a request wants to do.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// `get`, `list`, `create`, ...; for a path the method in lower case.
    pub verb: &'a str,
    /// The path or resource.
    pub target: Target<'a>,
}

/// What it wants to do that to.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A path that is no resource's.
    Path(&'a str),
    /// A resource; subresource, namespace and name may be empty.
    Resource {
        /// API group.
        group: &'a str,
        /// Resource, plural.
        resource: &'a str,
        /// Subresource.
        subresource: &'a str,
        /// Namespace.
        namespace: &'a str,
        /// Name.
        name: &'a str,
    },
}

impl Attributes<'_> {
    /// Rules of a Role count only in its namespace.
    pub fn namespace(&self) -> &str {
        match self.target {
            Target::Path(_) => "",
            Target::Resource { namespace, .. } => namespace,
        }
    }
}

/// An answer with its reason, which may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The reason.
    pub reason: String,
}
