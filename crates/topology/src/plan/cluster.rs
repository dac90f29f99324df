//! The writes to the Cluster itself: its labels and references, and the mark of a running upgrade.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Action, Plan, Step, Verb, place};
use crate::desired::{Desired, Input};
use crate::hooks::Calls;
use crate::keys;
use crate::model::{name_of, text};

impl Plan {
    /// Defaults of variables that the Cluster lacks, as the class may have got them later: a default that changes afterwards changes
    /// nothing. Lists are replaced as a whole, so the patch is about this state of the Cluster.
    pub(super) fn variables(&mut self, cluster: &Value, desired: &Desired) {
        let Some(completed) = &desired.completed else {
            return;
        };
        let mut topology = Map::new();
        for part in ["variables", "controlPlane", "workers"] {
            if completed.get(part) != cluster["spec"]["topology"].get(part) {
                topology.insert(part.to_owned(), completed[part].clone());
            }
        }
        let version = cluster["metadata"].get("resourceVersion");
        let metadata = version.map(|version| ("resourceVersion".to_owned(), version.clone()));
        self.patch_cluster(
            cluster,
            metadata.into_iter().collect(),
            Map::from_iter([("topology".to_owned(), topology.into())]),
        );
    }

    /// Labels and references of the Cluster, and the hooks that are still to be called: before the step after which they are.
    pub(super) fn cluster(&mut self, input: Input<'_>, desired: &Desired, calls: &Calls<'_>) {
        let cluster = input.cluster;
        let mut metadata = Map::new();
        let mut spec = Map::new();
        let labels = cluster.pointer("/metadata/labels");
        let mut wanted = Map::new();
        for (key, value) in [(keys::CLUSTER_NAME, text(cluster, "/metadata/name")), (keys::OWNED, "")] {
            if labels.and_then(|l| l.get(key)).and_then(Value::as_str) != Some(value) {
                wanted.insert(key.to_owned(), value.into());
            }
        }
        if !wanted.is_empty() {
            metadata.insert("labels".into(), wanted.into());
        }
        if let Some(pending) = calls.annotation() {
            metadata.insert("annotations".into(), json!({keys::PENDING_HOOKS: pending}));
        }
        for (field, object) in [
            ("infrastructureRef", &desired.infrastructure_cluster),
            ("controlPlaneRef", &desired.control_plane.object),
        ] {
            if text(cluster, &format!("/spec/{field}/name")).is_empty() {
                let group = text(object, "/apiVersion")
                    .split_once('/')
                    .map_or("", |(group, _)| group);
                let name = &object["metadata"]["name"];
                spec.insert(
                    field.into(),
                    json!({"apiGroup": group, "kind": object["kind"], "name": name}),
                );
            }
        }
        self.patch_cluster(cluster, metadata, spec);
    }

    /// Deletes the Secret that owns what v1.14 was making, when the Cluster owns all of it: what it had made in vain goes with the Secret.
    pub(super) fn shim(&mut self, input: Input<'_>) {
        let Some(shim) = &input.current.shim else { return };
        let is_owned = |object: &Option<Arc<Value>>| {
            let owners = object
                .as_ref()
                .and_then(|object| object["metadata"]["ownerReferences"].as_array());
            let mut owners = owners.into_iter().flatten();
            owners.any(|owner| owner["uid"] == input.cluster["metadata"]["uid"])
        };
        if is_owned(&input.current.infrastructure_cluster) && is_owned(&input.current.control_plane) {
            let note = format!(
                "delete Secret {}/{}: the Cluster owns what it held",
                shim.namespace, shim.name
            );
            self.delete(shim.clone(), note);
        }
    }

    /// The hooks that are still to be called, alone.
    pub(super) fn marks(&mut self, cluster: &Value, calls: &Calls<'_>) {
        if let Some(pending) = calls.annotation() {
            let annotations = json!({keys::PENDING_HOOKS: pending});
            let metadata = Map::from_iter([("annotations".to_owned(), annotations)]);
            self.patch_cluster(cluster, metadata, Map::new());
        }
    }

    /// The version that the control plane has got, while an upgrade goes on. Machines are not made before the control plane has it.
    pub(super) fn upgrade_step(&mut self, cluster: &Value, version: Option<&str>) {
        let have = cluster
            .pointer("/metadata/annotations")
            .and_then(|a| a.get(keys::UPGRADE_STEP))
            .and_then(Value::as_str);
        if have != version {
            let annotations = json!({keys::UPGRADE_STEP: version});
            let metadata = Map::from_iter([("annotations".to_owned(), annotations)]);
            self.patch_cluster(cluster, metadata, Map::new());
        }
    }

    fn patch_cluster(&mut self, cluster: &Value, metadata: Map<String, Value>, spec: Map<String, Value>) {
        if metadata.is_empty() && spec.is_empty() {
            return;
        }
        let mut patch = Map::new();
        let mut what: Vec<String> = spec.keys().map(|key| format!("spec.{key}")).collect();
        let meta = metadata.keys().filter(|key| *key != "resourceVersion");
        what.extend(meta.map(|key| format!("metadata.{key}")));
        if !metadata.is_empty() {
            patch.insert("metadata".into(), metadata.into());
        }
        if !spec.is_empty() {
            patch.insert("spec".into(), spec.into());
        }
        self.steps.push(Step {
            action: Action::PatchCluster(patch.into()),
            verb: Verb::Update,
            note: format!("update {}: set {}", name_of(cluster), what.join(", ")),
            event: format!("Updated Cluster {:?}", place(cluster)),
            changes: true,
            rotation: None,
            is_part: false,
            worker_set: None,
        });
    }
}
