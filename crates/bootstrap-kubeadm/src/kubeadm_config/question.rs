//! What a plan may ask for.

/// Facts that the plan lacks: only some situations need them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts that are read together")]
pub(crate) struct Question {
    /// The init lock.
    pub(super) lock: bool,
    /// What bootstrap data is made from.
    pub(super) material: bool,
    /// Whether the workload cluster can be reached.
    pub(super) connection: bool,
    /// When the token in the spec ends.
    pub(super) token: bool,
    /// Who set the pins in the spec.
    pub(super) pins: bool,
}

impl Question {
    /// True when nothing is asked.
    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }
}
