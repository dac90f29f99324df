//! The part of an object that a write changes.

/// The part of an object that a write changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status.
    Main,
    /// The status.
    Status,
    /// Finalizers of a namespace.
    Finalize,
    /// The number of replicas, which is a part of the spec.
    Scale,
    /// The ephemeral containers of a pod, which are a part of the spec.
    Containers,
    /// The node of a pod.
    Binding,
}

impl Part {
    /// The subresource of the part.
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
