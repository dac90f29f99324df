//! Who may call the simulated cloud for what, and how often who did.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use windlass_controller_runtime::ObjectKey;

/// What the credentials behind a handle to the cloud allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Privileges {
    /// Everything: clusters with their load balancers, and machines.
    #[default]
    All,
    /// Only what concerns single machines. Enough for clusters whose infrastructure another system manages.
    MachinesOnly,
}

impl Privileges {
    /// Whether a call is allowed.
    pub fn allow(self, call: Call) -> bool {
        self == Self::All || !call.is_cluster_level()
    }
}

/// A call to the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// Make the load balancer of a cluster, or find it there.
    CreateLoadBalancer,
    /// Delete the load balancer of a cluster.
    DeleteLoadBalancer,
    /// Start a virtual machine.
    StartMachine,
    /// Switch a virtual machine off.
    DeleteMachine,
    /// Register the Node of a machine.
    RegisterNode,
    /// Put the API server of a machine behind the address of its cluster.
    RegisterMember,
    /// Take the API server of a machine away from there.
    DeregisterMember,
}

impl Call {
    /// Whether it concerns the infrastructure of a whole cluster, not a single machine.
    pub fn is_cluster_level(self) -> bool {
        matches!(self, Self::CreateLoadBalancer | Self::DeleteLoadBalancer)
    }

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::CreateLoadBalancer => "CreateLoadBalancer",
            Self::DeleteLoadBalancer => "DeleteLoadBalancer",
            Self::StartMachine => "StartMachine",
            Self::DeleteMachine => "DeleteMachine",
            Self::RegisterNode => "RegisterNode",
            Self::RegisterMember => "RegisterMember",
            Self::DeregisterMember => "DeregisterMember",
        }
    }
}

/// What calls are counted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    /// Who called.
    pub caller: &'static str,
    /// For which cluster.
    pub cluster: ObjectKey,
    /// What for.
    pub call: Call,
}

/// How often a call was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCount {
    /// Calls that were allowed, failed ones included.
    pub allowed: u64,
    /// Calls that were refused for want of privileges.
    pub refused: u64,
}

/// Calls, counted.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<BTreeMap<CallKey, CallCount>>);

impl Calls {
    pub(super) fn add(&self, key: CallKey, allowed: bool) {
        // A process that makes and deletes clusters for months needs no memory for each: those that are new then are not counted.
        const MOST: usize = 10_000;
        let mut counts = self.0.lock();
        if counts.len() >= MOST && !counts.contains_key(&key) {
            return;
        }
        let count = counts.entry(key).or_default();
        if allowed {
            count.allowed += 1;
        } else {
            count.refused += 1;
        }
    }

    pub(super) fn snapshot(&self) -> BTreeMap<CallKey, CallCount> {
        self.0.lock().clone()
    }
}
