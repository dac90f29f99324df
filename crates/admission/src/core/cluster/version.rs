//! Changes of the Kubernetes version of a topology.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_api::PendingHooks;
use windlass_api::core::{Machine, MachineDeployment, MachinePool};
use windlass_api::kind::ApiKind;
use windlass_api::{annotations, labels};
use windlass_contract::control_plane;
use windlass_gocompat::quote::quoted;
use windlass_meta::KubernetesVersion;
use windlass_objects::selector::LabelSelector;
use windlass_schema::FieldError;

use crate::field::Field;
use crate::rule::Change;
use crate::view::{self, Unread};

/// The hook that holds back the next upgrade until it is done.
const AFTER_UPGRADE: &str = "AfterClusterUpgrade";

/// Checks a change of the version: it goes up, by one minor version unless the class plans upgrades, and only from rest.
pub(super) fn check(change: &Change<'_>, has_ceiling: bool) -> Result<Option<FieldError>, Unread> {
    let field = Field::of(change.new).child("spec.topology.version");
    let old = Field::of(change.old).child("spec.topology.version");
    let parse = KubernetesVersion::parse_tolerant;
    let (Ok(to), Ok(from)) = (parse(field.text()), parse(old.text())) else {
        // Another check says what is wrong with the new version; whatever was stored can be corrected.
        return Ok(None);
    };
    let bare = |version: &str| version.trim_start_matches('v').to_owned();
    if bare(field.text()) == bare(old.text()) {
        return Ok(None);
    }
    let refuse = |verb: &str| {
        let (from, to) = (quoted(&bare(old.text())), quoted(&bare(field.text())));
        Ok(Some(
            field.invalid(format!("version cannot be {verb} from {from} to {to}")),
        ))
    };
    let release = |version: &KubernetesVersion| (version.major(), version.minor(), version.patch());
    if release(&to) < release(&from) {
        return refuse("decreased");
    }
    if has_ceiling && (to.major(), to.minor()) >= (from.major(), from.minor().saturating_add(2)) {
        return refuse("increased");
    }
    let pending = Field::of(change.new)
        .child("metadata.annotations")
        .entry(annotations::PENDING_HOOKS);
    if PendingHooks::read(pending.text()).contains(AFTER_UPGRADE) {
        let hook = quoted(AFTER_UPGRADE);
        return Ok(Some(field.invalid(format!(
            "version cannot be changed when the {hook} hook is still blocking"
        ))));
    }
    let mut busy = Vec::new();
    busy.extend(control_plane_busy(change, old.text())?);
    busy.extend(workers_busy(change, old.text())?);
    busy.extend(pools_busy(change, old.text())?);
    if busy.is_empty() {
        return Ok(None);
    }
    let list = match busy.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    Ok(Some(field.invalid(format!("version cannot be changed: {list}"))))
}

/// Why the control plane is not at rest at the version of the Cluster.
fn control_plane_busy(change: &Change<'_>, version: &str) -> Result<Option<String>, Unread> {
    let reference = Field::of(change.old).child("spec.controlPlaneRef");
    let namespace = Field::of(change.old).child("metadata.namespace").text();
    let text = |name: &str| reference.child(name).text();
    let failed = "failed to check if control plane is upgrading: ";
    if !reference.is_set() {
        return Ok(Some(format!("{failed}the Cluster has no control plane yet")));
    }
    let found = view::object(change.view, (text("apiGroup"), text("kind")), namespace, text("name"))?;
    let Some(object) = found else {
        let (kind, name) = (text("kind"), text("name"));
        return Ok(Some(format!("{failed}{kind} {namespace}/{name} does not exist")));
    };
    let Some(have) = control_plane::version(&object) else {
        // A control plane without versions has nothing to wait for.
        return Ok(None);
    };
    if !is_same(have, version) {
        let bare = |version: &str| version.trim_start_matches('v').to_owned();
        return Ok(Some(format!(
            "Cluster.spec.topology.version {} was not propagated to control plane yet (control plane version {})",
            bare(version),
            bare(have)
        )));
    }
    if control_plane::status_version(&object).is_none() {
        return Ok(Some("control plane is currently provisioning".to_owned()));
    }
    Ok(control_plane::is_upgrading(&object).then(|| "control plane is still completing a previous upgrade".to_owned()))
}

/// Whether two texts are one version, with the same build. One may have no patch.
fn is_same(one: &str, other: &str) -> bool {
    let parse = |text| {
        let parsed = KubernetesVersion::parse_tolerant(text).ok()?;
        Some(parsed.semantic())
    };
    one == other || parse(one).is_some_and(|one| parse(other) == Some(one))
}

/// The objects of a kind that the topology of the Cluster has made.
fn of_topology(change: &Change<'_>, kind: (&str, &str)) -> Result<Vec<Arc<Value>>, Unread> {
    let cluster = Field::of(change.old).child("metadata");
    let owned = BTreeMap::from([
        (labels::CLUSTER_NAME.to_owned(), cluster.child("name").text().to_owned()),
        (labels::TOPOLOGY_OWNED.to_owned(), String::new()),
    ]);
    view::labelled(change.view, kind, cluster.child("namespace").text(), owned)
}

/// Which MachineDeployments are not at rest at the version of the Cluster.
fn workers_busy(change: &Change<'_>, version: &str) -> Result<Option<String>, Unread> {
    let cluster = Field::of(change.old).child("metadata");
    let (namespace, name) = (cluster.child("namespace").text(), cluster.child("name").text());
    let kind = (
        <MachineDeployment as ApiKind>::GROUP,
        <MachineDeployment as ApiKind>::KIND,
    );
    let sets = of_topology(change, kind)?;
    if sets.is_empty() {
        return Ok(None);
    }
    let machine = (<Machine as ApiKind>::GROUP, <Machine as ApiKind>::KIND);
    let of_cluster = BTreeMap::from([(labels::CLUSTER_NAME.to_owned(), name.to_owned())]);
    let machines = view::labelled(change.view, machine, namespace, of_cluster)?;
    let mut busy = Vec::new();
    for set in &sets {
        let set = Field::of(set);
        let have = set.child("spec.template.spec.version").text();
        if !is_same(have, version) || is_moving(&machines, &set, have) {
            busy.push(set.child("metadata.name").text().to_owned());
        }
    }
    Ok((!busy.is_empty()).then(|| {
        format!(
            "there are still MachineDeployments completing a previous upgrade: [{}]",
            busy.join(", ")
        )
    }))
}

/// Which MachinePools are not at rest at the version of the Cluster. Their status says which versions their Nodes have.
fn pools_busy(change: &Change<'_>, version: &str) -> Result<Option<String>, Unread> {
    let pools = of_topology(
        change,
        (<MachinePool as ApiKind>::GROUP, <MachinePool as ApiKind>::KIND),
    )?;
    let is_busy = |pool: &Field<'_>| {
        let have = pool.child("spec.template.spec.version").text();
        let versions = pool.child("status.versions");
        let mut nodes = versions.items();
        !is_same(have, version) || nodes.any(|node| node.child("version").text() != have)
    };
    let busy = pools.iter().map(|pool| Field::of(pool)).filter(is_busy);
    let busy: Vec<&str> = busy.map(|pool| pool.child("metadata.name").text()).collect();
    Ok((!busy.is_empty()).then(|| {
        format!(
            "there are still MachinePools completing a previous upgrade: [{}]",
            busy.join(", ")
        )
    }))
}

/// Whether a Machine of a MachineDeployment has another version than it.
fn is_moving(machines: &[Arc<Value>], set: &Field<'_>, version: &str) -> bool {
    let selector = LabelSelector::from_object(set.child("spec.selector").value());
    let is_selected = |machine: &Field<'_>| selector.matches_map(Some(machine.child("metadata.labels").value()));
    let machines = machines.iter().map(|machine| Field::of(machine)).filter(is_selected);
    let mut versions = machines.map(|machine| {
        let kubelet = machine.child("status.nodeInfo.kubeletVersion").text();
        (machine.child("spec.version").text(), kubelet)
    });
    versions.any(|(have, kubelet)| have != version || (!kubelet.is_empty() && kubelet != version))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;
    use crate::rule::Operation;
    use crate::view::{Found, Objects, Read, View};

    /// However many worker sets a Cluster has, what a change of its version depends on is read in few steps.
    #[test]
    fn a_change_of_the_version_reads_few_things() {
        struct Counted(Objects, Mutex<BTreeSet<Read>>);
        impl View for Counted {
            fn read(&self, read: &Read) -> Result<Found, Unread> {
                self.1.lock().unwrap().insert(read.clone());
                self.0.read(read)
            }
        }
        let owned = json!({labels::CLUSTER_NAME: "x", labels::TOPOLOGY_OWNED: ""});
        let mut objects = vec![
            json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
                "metadata": {"namespace": "a", "name": "c", "generation": 1}, "spec": {},
            }),
            json!({
                "apiVersion": "g/v1", "kind": "K", "metadata": {"namespace": "a", "name": "k"},
                "spec": {"version": "v1.35.0"}, "status": {"version": "v1.35.0"},
            }),
        ];
        for number in 0..20 {
            let set = json!({labels::CLUSTER_NAME: "x", "set": number.to_string()});
            objects.push(json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
                "metadata": {"namespace": "a", "name": format!("md-{number}"), "labels": owned},
                "spec": {"selector": {"matchLabels": set}, "template": {"spec": {"version": "v1.35.0"}}},
            }));
            let version = if number == 7 { "v1.34.0" } else { "v1.35.0" };
            objects.push(json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
                "metadata": {"namespace": "a", "name": format!("m-{number}"), "labels": set},
                "spec": {"version": version},
            }));
        }
        let view = Counted(Objects(objects.into_iter().map(Arc::new).collect()), Mutex::default());
        let cluster = |version: &str| {
            json!({"metadata": {"namespace": "a", "name": "x"}, "spec": {
                "controlPlaneRef": {"apiGroup": "g", "kind": "K", "name": "k"},
                "topology": {"classRef": {"name": "c"}, "version": version},
            }})
        };
        let (old, new) = (cluster("v1.35.0"), cluster("v1.36.0"));
        let change = Change {
            resource: "clusters.cluster.x-k8s.io",
            operation: Operation::Update,
            dry_run: false,
            old: &old,
            new: &new,
            view: &view,
        };
        let error = check(&change, true).unwrap().unwrap();
        assert!(error.detail.ends_with("[md-7]"), "{error}");
        assert!(view.1.lock().unwrap().len() <= 4);
    }

    #[test]
    fn pools_that_are_not_at_the_version_are_named() {
        let pool = |version: &str, nodes: &str| {
            json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool",
                "metadata": {"name": "p", "namespace": "a", "labels": {
                    "cluster.x-k8s.io/cluster-name": "c", "topology.cluster.x-k8s.io/owned": ""}},
                "spec": {"template": {"spec": {"version": version}}},
                "status": {"versions": [{"version": nodes, "replicas": 1}]},
            })
        };
        let cluster = json!({"metadata": {"namespace": "a", "name": "c"}});
        let busy = |pool: Value| {
            let view = Objects(vec![Arc::new(pool)]);
            let change = Change {
                resource: "clusters.cluster.x-k8s.io",
                operation: Operation::Update,
                dry_run: false,
                old: &cluster,
                new: &cluster,
                view: &view,
            };
            pools_busy(&change, "v1.35.0").unwrap()
        };
        assert_eq!(busy(pool("v1.35.0", "v1.35.0")), None);
        let words = Some("there are still MachinePools completing a previous upgrade: [p]".to_owned());
        assert_eq!(busy(pool("v1.35.0", "v1.34.0")), words);
        assert_eq!(busy(pool("v1.34.0", "v1.34.0")), words);
    }
}
