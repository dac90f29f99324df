//! The controllers that exist, as data.

use std::fmt;

use windlass_kit::ControllerEntry;

/// What controllers share beyond the kit.
pub struct Ports {}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

/// A controller: its name, and how to make it.
#[derive(Clone, Copy)]
pub struct ControllerInfo {
    /// The name in logs, metrics and `--controllers`.
    pub name: &'static str,
    /// Makes it.
    pub entry: fn(&Ports) -> ControllerEntry,
}

impl fmt::Debug for ControllerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerInfo").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All controllers, in the order in which they start.
pub const CONTROLLERS: &[ControllerInfo] = &[
    ControllerInfo {
        name: "machineset",
        entry: |_| windlass_core::machine_set::entry(),
    },
    ControllerInfo {
        name: "machinedeployment",
        entry: |_| windlass_core::machine_deployment::entry(),
    },
];

/// All controllers, ready to start.
pub fn controllers(ports: &Ports) -> Vec<ControllerEntry> {
    CONTROLLERS.iter().map(|info| (info.entry)(ports)).collect()
}
