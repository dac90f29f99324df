//! Which Machine goes first when a MachineSet is scaled down.

/// Machines of an earlier class are deleted before those of a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeletionClass {
    /// Already being deleted.
    Deleting,
    /// The user asked for it by annotation.
    Annotated,
    /// Being updated in place: its replacement costs least.
    Updating,
    /// Without a Node, or known to be unhealthy.
    Unhealthy,
    /// Everything else; the order that the spec names decides.
    Ordinary,
}
