//! The part of an object that a write is for.

/// Which part of an object a write is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status.
    Main,
    /// The status.
    Status,
    /// Finalizers of a namespace.
    Finalize,
    /// How many replicas there shall be, which is part of the rest.
    Scale,
    /// The ephemeral containers of a pod, which are part of the rest.
    Containers,
    /// The node of a pod.
    Binding,
}

impl Part {
    /// The subresource that a write to the part is for.
    pub fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Scale => "scale",
            Self::Status => "status",
            Self::Finalize => "finalize",
            Self::Containers => "ephemeralcontainers",
            Self::Binding => "binding",
        }
    }
}
