//! Field paths on the stack: nothing is allocated until an error is reported.

use std::fmt;

/// A path as a linked list of borrowed parts.
#[derive(Debug, Clone, Copy)]
pub enum Path<'a> {
    /// The whole value, under a name (empty for an API object).
    Root(&'a str),
    /// A property.
    Field(&'a Self, &'a str),
    /// A key of a map.
    Key(&'a Self, &'a str),
    /// An item of a list.
    Index(&'a Self, usize),
}

impl Path<'_> {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Root(""))
    }

    /// The root of the path. Kubernetes reports what has no field of its own at `<nil>`.
    pub fn or_nil(&self) -> &str {
        match self {
            Self::Root("") => "<nil>",
            Self::Root(name) => name,
            Self::Field(parent, _) | Self::Key(parent, _) | Self::Index(parent, _) => parent.or_nil(),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(name) => f.write_str(name),
            Self::Field(parent, name) if parent.is_empty() => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Key(parent, name) => write!(f, "{parent}[{name}]"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
