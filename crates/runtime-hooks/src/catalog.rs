//! The list of all hooks.

use serde_json::Value;

use crate::discovery::{DISCOVERY, DiscoveryRequest, DiscoveryResponse};
use crate::hook::Hook;
use crate::{GROUP, VERSION, in_place, lifecycle, openapi, topology, upgrade_plan};

/// A hook, for lists and documents.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// Its group in the OpenAPI document.
    pub tag: &'static str,
    /// When it is called, and what the answer does.
    pub description: &'static str,
    /// Makes the schemas of its request and response.
    pub(crate) schemas: fn() -> [Value; 2],
}

impl Described {
    const fn of<H: Hook>(tag: &'static str, description: &'static str) -> Self
    where
        H::Request: schemars::JsonSchema + serde::Serialize,
        H::Response: schemars::JsonSchema + serde::Serialize,
    {
        Self {
            name: H::NAME,
            tag,
            description,
            schemas: || [openapi::schema::<H::Request>(), openapi::schema::<H::Response>()],
        }
    }
}

const LIFECYCLE: &str = "Lifecycle Hooks";
const TOPOLOGY: &str = "Topology Mutation Hook";
const IN_PLACE: &str = "In-Place Update Hooks";

/// All hooks, by name.
pub static CATALOG: &[Described] = &[
    Described::of::<lifecycle::AfterClusterUpgrade>(
        LIFECYCLE,
        "Called when all Machines of a Cluster have the version of its topology. While a handler blocks, no other upgrade begins.",
    ),
    Described::of::<lifecycle::AfterControlPlaneInitialized>(
        LIFECYCLE,
        "Called once, when the control plane of a Cluster has answered for the first time. Handlers cannot block.",
    ),
    Described::of::<lifecycle::AfterControlPlaneUpgrade>(
        LIFECYCLE,
        "Called when all control plane Machines have the next version. While a handler blocks, the workers do not get it.",
    ),
    Described::of::<lifecycle::AfterWorkersUpgrade>(
        LIFECYCLE,
        "Called when all workers have the next version. While a handler blocks, the upgrade does not go on.",
    ),
    Described::of::<lifecycle::BeforeClusterCreate>(
        LIFECYCLE,
        "Called before the first object of a topology is created. While a handler blocks, none is.",
    ),
    Described::of::<lifecycle::BeforeClusterDelete>(
        LIFECYCLE,
        "Called when a Cluster was deleted, before anything of it goes. While a handler blocks, everything stays.",
    ),
    Described::of::<lifecycle::BeforeClusterUpgrade>(
        LIFECYCLE,
        "Called once for each new version of a topology. While a handler blocks, nothing gets the version.",
    ),
    Described::of::<lifecycle::BeforeControlPlaneUpgrade>(
        LIFECYCLE,
        "Called for each version that the control plane goes through. While a handler blocks, it does not get the version.",
    ),
    Described::of::<lifecycle::BeforeWorkersUpgrade>(
        LIFECYCLE,
        "Called for each version that the workers go through. While a handler blocks, they do not get the version.",
    ),
    Described::of::<in_place::CanUpdateMachine>(
        IN_PLACE,
        "Called while the update of a Machine is planned. The answer has what the extension can change in place, as patches of the specs. \
         When something is left, the Machine is replaced.",
    ),
    Described::of::<in_place::CanUpdateMachineSet>(
        IN_PLACE,
        "Called while the update of a MachineSet's Machines is planned. The answer has what the extension can change in place, as patches \
         of the specs in the templates. When something is left, the Machines are replaced.",
    ),
    Described::of::<topology::DiscoverVariables>(
        TOPOLOGY,
        "Called while a ClusterClass is reconciled. The answer has the schemas of the variables that the patch defines.",
    ),
    Described::of::<topology::GeneratePatches>(
        TOPOLOGY,
        "Called while the objects of a topology are computed, with all templates and variables. The answer has the patches of the templates.",
    ),
    Described::of::<upgrade_plan::GenerateUpgradePlan>(
        "Chained Upgrade Hook",
        "Called while an upgrade is planned. The answer has the versions that control plane and workers go through.",
    ),
    Described::of::<in_place::UpdateMachine>(
        IN_PLACE,
        "Called again and again while a Machine is updated in place, until the handler has done it or fails.",
    ),
    Described::of::<topology::ValidateTopology>(
        TOPOLOGY,
        "Called after all patches of a topology were applied. A failure keeps the topology as it is.",
    ),
];

/// The hook that every extension serves.
pub(crate) static DISCOVERED: Described = Described {
    name: DISCOVERY,
    tag: DISCOVERY,
    description: "Called when an ExtensionConfig is reconciled. The answer has the handlers of the extension.",
    schemas: || {
        [
            openapi::schema::<DiscoveryRequest>(),
            openapi::schema::<DiscoveryResponse>(),
        ]
    },
};

/// The path of a hook, below the path of the extension. The name of the handler is empty for Discovery.
pub fn path(hook: &str, handler: &str) -> String {
    let hook = hook.to_ascii_lowercase();
    if handler.is_empty() {
        format!("/{GROUP}/{VERSION}/{hook}")
    } else {
        format!("/{GROUP}/{VERSION}/{hook}/{}", handler.to_ascii_lowercase())
    }
}
