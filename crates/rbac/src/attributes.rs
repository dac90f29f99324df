//! The attributes of a request, and the decision about it.

/// The attributes of a request.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// `get`, `list`, `create`, ...; for a path the method in lower case.
    pub verb: &'a str,
    /// The path or resource.
    pub target: Target<'a>,
}

/// The target of a request.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A path that is not a resource.
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
    /// The namespace of the request. The rules of a Role apply only in its namespace.
    pub fn namespace(&self) -> &str {
        match self.target {
            Target::Path(_) => "",
            Target::Resource { namespace, .. } => namespace,
        }
    }
}

/// A decision with its reason, which may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The reason.
    pub reason: String,
}
