//! The existing objects of a topology.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::blueprint::Contract;
use crate::error::Error;
use crate::hooks::Hooks;
use crate::keys;
use crate::model::{name_of, text};
use crate::target::Target;
use crate::trial::{Pair, Rotations, Verdict};
use crate::version;

/// The generated objects that exist, found by reference and by label.
#[derive(Debug, Clone, Default)]
pub struct Current {
    /// The object of `Cluster.spec.infrastructureRef`.
    pub infrastructure_cluster: Option<Arc<Value>>,
    /// The object of `Cluster.spec.controlPlaneRef`.
    pub control_plane: Option<Arc<Value>>,
    /// The machine template that the control plane names.
    pub control_plane_machines: Option<Arc<Value>>,
    /// The control plane's MachineHealthCheck.
    pub control_plane_health_check: Option<Arc<Value>>,
    /// MachineDeployments by their name in the topology.
    pub machine_deployments: BTreeMap<String, WorkerSet>,
    /// MachinePools by their name in the topology.
    pub machine_pools: BTreeMap<String, WorkerSet>,
    /// The Secret with which v1.14 holds the objects of a Cluster that it is making.
    pub shim: Option<Target>,
    /// The results of trials, by the place of the template.
    pub verdicts: BTreeMap<String, Verdict>,
    /// Templates with an intent of which an earlier trial has shown that it changes nothing, by the uid of the template.
    pub same: BTreeMap<String, Pair>,
    /// The hooks of extensions.
    pub hooks: Hooks,
    /// Stands for the extensions that patch templates, in order: another text after a change of their ExtensionConfigs.
    pub extensions: Vec<String>,
    /// The rotations of templates so far, by the place of the template.
    pub rotations: BTreeMap<String, Rotations>,
}

impl Current {
    /// The objects and templates that the Cluster, its control plane and its worker sets refer to.
    pub fn generated(&self) -> impl Iterator<Item = &Value> {
        let own = [
            &self.infrastructure_cluster,
            &self.control_plane,
            &self.control_plane_machines,
        ];
        let sets = self.machine_deployments.values().chain(self.machine_pools.values());
        let templates = sets.flat_map(|set| [&set.bootstrap, &set.infrastructure]);
        own.into_iter().chain(templates).filter_map(|object| object.as_deref())
    }
}

/// One MachineDeployment or MachinePool and what belongs to it.
#[derive(Debug, Clone)]
pub struct WorkerSet {
    /// The MachineDeployment or MachinePool.
    pub object: Arc<Value>,
    /// The bootstrap template that a MachineDeployment names, or the bootstrap object of a MachinePool.
    pub bootstrap: Option<Arc<Value>>,
    /// The machine template that a MachineDeployment names, or the infrastructure of a MachinePool.
    pub infrastructure: Option<Arc<Value>>,
    /// Its MachineHealthCheck. MachinePools have none.
    pub health_check: Option<Arc<Value>>,
    /// Versions of its Machines or Nodes.
    pub machine_versions: Vec<String>,
}

impl WorkerSet {
    /// The version in its spec.
    pub fn version(&self) -> &str {
        text(&self.object, "/spec/template/spec/version")
    }

    /// Whether some Machine does not have the version of the spec yet.
    pub fn upgrading(&self) -> bool {
        let want = self.version();
        self.machine_versions.iter().any(|have| have != want)
    }
}

/// Sorts worker sets by their name in the topology, which stands in this label; two of one name or none at all are errors.
pub fn by_topology_name(
    label: &str,
    sets: impl IntoIterator<Item = WorkerSet>,
) -> Result<BTreeMap<String, WorkerSet>, Error> {
    let mut out: BTreeMap<String, WorkerSet> = BTreeMap::new();
    for set in sets {
        let labels = set.object.pointer("/metadata/labels");
        let name = labels.and_then(|l| l.get(label)).and_then(Value::as_str);
        let object = name_of(&set.object);
        let field = format!("metadata.labels[{label}]");
        let Some(name) = name.filter(|n| !n.is_empty()) else {
            let message = "is missing; every worker set of a topology names its entry there";
            return Err(Error::new(object, field, message));
        };
        if let Some(other) = out.get(name) {
            let message = format!(
                "{name:?} is also the entry of {}; delete one of the two",
                name_of(&other.object)
            );
            return Err(Error::new(object, field, message));
        }
        out.insert(name.to_owned(), set);
    }
    Ok(out)
}

/// Refuses an object that this controller did not generate.
pub fn require_owned(object: &Value) -> Result<(), Error> {
    let owned = object
        .pointer("/metadata/labels")
        .and_then(|labels| labels.get(keys::OWNED))
        .is_some();
    if owned {
        return Ok(());
    }
    let message = "is missing: the topology refers to this object, but it is not topology owned";
    Err(Error::new(
        name_of(object),
        format!("metadata.labels[{}]", keys::OWNED),
        message,
    ))
}

/// Whether an object is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// The oldest version that runs in a control plane, empty while it reports none; or one that cannot be read.
pub fn running_version(control_plane: &Value) -> &str {
    let listed = control_plane.pointer("/status/versions").and_then(Value::as_array);
    let running = listed
        .into_iter()
        .flatten()
        .map(|entry| text(entry, "/version"))
        .filter(|v| !v.is_empty());
    if let Some(unknown) = running.clone().find(|v| version::parse(v).is_none()) {
        return unknown;
    }
    let oldest = version::furthest_behind(running, text(control_plane, "/spec/version"));
    oldest.unwrap_or_else(|| text(control_plane, "/status/version"))
}

/// Whether a control plane is adding or removing replicas.
pub fn is_scaling(control_plane: &Value, contract: Contract) -> bool {
    let number = |pointer: &str| control_plane.pointer(pointer).and_then(Value::as_i64);
    let Some(want) = number("/spec/replicas") else {
        return false;
    };
    let counters: &[&str] = match contract {
        Contract::V1Beta1 => &["/status/replicas", "/status/updatedReplicas", "/status/readyReplicas"],
        Contract::V1Beta2 => &[
            "/status/replicas",
            "/status/upToDateReplicas",
            "/status/readyReplicas",
            "/status/availableReplicas",
        ],
    };
    let unavailable = number("/status/unavailableReplicas").unwrap_or_default();
    counters.iter().any(|c| number(c).unwrap_or_default() != want) || (contract == Contract::V1Beta1 && unavailable > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // TO-305, TO-328, TO-330
    #[test]
    fn control_plane_facts() {
        let settled = json!({
            "spec": {"replicas": 3, "version": "v1.36.0"},
            "status": {
                "replicas": 3, "upToDateReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
                "versions": [{"version": "v1.36.0", "replicas": 1}, {"version": "v1.35.0", "replicas": 2}],
            },
        });
        assert_eq!(running_version(&settled), "v1.35.0");
        assert!(!is_scaling(&settled, Contract::V1Beta2));
        let mut short = settled.clone();
        short["status"]["readyReplicas"] = 2.into();
        assert!(is_scaling(&short, Contract::V1Beta2));
        assert!(!is_scaling(
            &json!({"spec": {}, "status": {"replicas": 1}}),
            Contract::V1Beta2
        ));
        assert_eq!(running_version(&json!({"status": {"version": "v1.1.0"}})), "v1.1.0");
    }

    // TO-242
    #[test]
    fn worker_sets_need_one_name_each() {
        let set = |name: &str, entry: Option<&str>| WorkerSet {
            object: Arc::new(json!({
                "kind": "MachineDeployment",
                "metadata": {"name": name, "namespace": "a", "labels": {keys::DEPLOYMENT_NAME: entry}},
            })),
            bootstrap: None,
            infrastructure: None,
            health_check: None,
            machine_versions: Vec::new(),
        };
        assert_eq!(
            by_topology_name(keys::DEPLOYMENT_NAME, [set("x", Some("a")), set("y", Some("b"))])
                .unwrap()
                .len(),
            2
        );
        assert!(by_topology_name(keys::DEPLOYMENT_NAME, [set("x", Some("a")), set("y", Some("a"))]).is_err());
        assert!(by_topology_name(keys::DEPLOYMENT_NAME, [set("x", None)]).is_err());
        let foreign = json!({"kind": "VSphereCluster", "metadata": {"name": "x"}});
        assert!(
            require_owned(&foreign)
                .unwrap_err()
                .to_string()
                .contains("not topology owned")
        );
    }
}
