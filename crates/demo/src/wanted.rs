//! The goal of each step, and what is missing.

use windlass_api::reasons;

use super::item::Item;
use super::world::World;

/// The desired state of all clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// They exist, and are complete and available.
    Running {
        /// Names of the Clusters.
        clusters: Vec<String>,
        /// Control plane machines of each.
        control_plane: u32,
        /// Workers of each.
        workers: u32,
        /// Version of every machine.
        version: String,
    },
    /// Created, and waiting for infrastructure that is not reported as ready yet.
    Waiting {
        /// Names of the Clusters.
        clusters: Vec<String>,
    },
    /// Deleted, with all their objects.
    Gone,
}

/// A missing part of the goal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Missing {
    /// The cluster.
    pub(crate) cluster: String,
    /// The object, `Kind/name`.
    pub(crate) object: String,
    /// The missing part.
    pub(crate) what: String,
}

fn missing(cluster: &str, object: &(impl ToString + ?Sized), what: impl Into<String>) -> Missing {
    Missing {
        cluster: cluster.to_owned(),
        object: object.to_string(),
        what: what.into(),
    }
}

impl Wanted {
    /// What is missing in a world; empty when the step is done.
    pub(crate) fn missing(&self, world: &World) -> Vec<Missing> {
        match self {
            Self::Running { clusters, .. } => clusters
                .iter()
                .flat_map(|cluster| self.cluster(world, cluster))
                .collect(),
            Self::Waiting { clusters } => clusters.iter().flat_map(|cluster| waiting(world, cluster)).collect(),
            Self::Gone => world
                .all()
                .map(|item| missing(&item.cluster, &item.id, "still there"))
                .collect(),
        }
    }

    /// Whether the goal is reached. Cheaper than [`Self::missing`] while many parts are missing.
    pub(crate) fn is_met(&self, world: &World) -> bool {
        match self {
            Self::Running { clusters, .. } => clusters.iter().all(|cluster| self.cluster(world, cluster).is_empty()),
            Self::Waiting { .. } => self.missing(world).is_empty(),
            Self::Gone => world.is_empty(),
        }
    }

    fn cluster(&self, world: &World, name: &str) -> Vec<Missing> {
        let Self::Running {
            control_plane,
            workers,
            version,
            ..
        } = self
        else {
            return Vec::new();
        };
        let items: Vec<&Item> = world.of(name).collect();
        let mut found = Vec::new();
        match items.iter().find(|item| item.id.kind == "Cluster") {
            None => return vec![missing(name, &format!("Cluster/{name}"), "not there")],
            Some(cluster) => {
                need(&mut found, name, cluster, "Available");
                if !cluster.is_observed {
                    found.push(missing(name, &cluster.id, "its last change was not seen yet"));
                }
            }
        }
        for (is_control_plane, wanted) in [(true, *control_plane), (false, *workers)] {
            let machines: Vec<&&Item> = items
                .iter()
                .filter(|item| item.id.kind == "Machine" && item.is_control_plane == is_control_plane)
                .collect();
            let there = u32::try_from(machines.len()).unwrap_or(u32::MAX);
            if there != wanted {
                let what = if is_control_plane {
                    "control plane machines"
                } else {
                    "worker machines"
                };
                found.push(missing(
                    name,
                    &format!("Cluster/{name}"),
                    format!("{there} of {wanted} {what}"),
                ));
            }
            for item in machines {
                self::machine(&mut found, name, item, version);
            }
        }
        for item in items
            .iter()
            .filter(|item| item.id.kind == "KubeadmControlPlane" || item.id.kind == "MachineDeployment")
        {
            counts(&mut found, name, item);
        }
        found
    }
}

/// What a cluster lacks to be waiting for its infrastructure.
fn waiting(world: &World, name: &str) -> Vec<Missing> {
    let cluster = format!("Cluster/{name}");
    let found = world.of(name).find(|item| item.id.kind == "Cluster");
    let ready = found.and_then(|item| item.condition("InfrastructureReady"));
    let mut found = Vec::new();
    // Before its topology is reconciled, a Cluster waits for that.
    if ready.is_none_or(|ready| ready.status != "False" || ready.reason == reasons::OBJECT_DOES_NOT_EXIST) {
        found.push(missing(name, &cluster, "has not looked for its infrastructure yet"));
    }
    for kind in ["DevCluster", "KubeadmControlPlane", "MachineDeployment"] {
        if !world.of(name).any(|item| item.id.kind == kind) {
            found.push(missing(name, &cluster, format!("no {kind} yet")));
        }
    }
    found
}

fn need(found: &mut Vec<Missing>, cluster: &str, item: &Item, kind: &str) {
    match item.condition(kind) {
        Some(condition) if condition.status == "True" => {}
        Some(condition) => {
            let message = condition.message.replace('\n', " ");
            let what = format!("{kind}={} {}: {message}", condition.status, condition.reason);
            found.push(missing(cluster, &item.id, what.trim_end_matches([':', ' '])));
        }
        None => found.push(missing(cluster, &item.id, format!("no condition {kind} yet"))),
    }
}

fn machine(found: &mut Vec<Missing>, cluster: &str, item: &Item, version: &str) {
    if item.is_deleting {
        let why = item
            .condition("Deleting")
            .map(|c| format!(": {} {}", c.reason, c.message.replace('\n', " ")));
        found.push(missing(
            cluster,
            &item.id,
            format!("is being deleted{}", why.unwrap_or_default()),
        ));
        return;
    }
    if item.phase != "Running" {
        found.push(missing(cluster, &item.id, format!("phase {:?}", item.phase)));
    }
    if item.node.is_empty() {
        found.push(missing(cluster, &item.id, "no Node"));
    }
    if item.version != version {
        found.push(missing(
            cluster,
            &item.id,
            format!("version {} instead of {version}", item.version),
        ));
    }
    for kind in ["Available", "UpToDate"] {
        need(found, cluster, item, kind);
    }
}

fn counts(found: &mut Vec<Missing>, cluster: &str, item: &Item) {
    let counts = item.replicas;
    for (what, have) in [
        ("replicas", counts.there),
        ("available", counts.available),
        ("up-to-date", counts.up_to_date),
    ] {
        if counts.wanted.unwrap_or(0) != have.unwrap_or(0) {
            let (wanted, have) = (counts.wanted.unwrap_or(0), have.unwrap_or(0));
            found.push(missing(cluster, &item.id, format!("{have} of {wanted} {what}")));
        }
    }
}

/// Conditions that are good when they are false.
const NEGATIVE: [&str; 9] = [
    "Deleting",
    "Paused",
    "Remediating",
    "RollingOut",
    "ScalingDown",
    "ScalingUp",
    "Updating",
    "OwnerRemediated",
    "ExternallyRemediated",
];

/// The conditions that explain what is missing, object by object; at most `limit` lines.
pub(crate) fn explain(world: &World, missing: &[Missing], limit: usize) -> Vec<String> {
    let mut lines: Vec<String> = missing.iter().map(|m| format!("{}: {}", m.object, m.what)).collect();
    lines.dedup();
    for cluster in world
        .clusters()
        .filter(|cluster| missing.iter().any(|m| m.cluster == cluster.id.name))
    {
        for item in world.of(&cluster.id.name) {
            for condition in item.conditions.iter().filter(|condition| is_bad(condition)) {
                let message = condition.message.replace('\n', " ");
                let line = format!(
                    "{}: {}={} {}: {message}",
                    item.id, condition.kind, condition.status, condition.reason
                );
                let line = line.trim_end_matches([':', ' ']).to_owned();
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
    }
    if lines.len() > limit {
        let more = lines.len() - limit;
        lines.truncate(limit);
        lines.push(format!("and {more} more"));
    }
    lines
}

fn is_bad(condition: &super::item::Condition) -> bool {
    if NEGATIVE.contains(&condition.kind.as_str()) {
        condition.status == "True"
    } else {
        condition.status != "True"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::world::tests::{item, world};
    use super::*;

    fn wanted() -> Wanted {
        Wanted::Running {
            clusters: vec!["c".to_owned()],
            control_plane: 0,
            workers: 1,
            version: "v1.35.0".to_owned(),
        }
    }

    fn good_machine() -> Value {
        json!({"spec": {"version": "v1.35.0"}, "status": {"phase": "Running", "nodeRef": {"name": "n"}, "conditions": [
            {"type": "Available", "status": "True"}, {"type": "UpToDate", "status": "True"},
        ]}})
    }

    fn check(machine: Option<&Value>, replicas: i64, expect: &[&str]) {
        let mut items = vec![
            item(
                "Cluster",
                "c",
                "c",
                &[],
                &json!({"status": {"conditions": [{"type": "Available", "status": "True"}]}}),
            ),
            item(
                "MachineDeployment",
                "d",
                "d",
                &["c"],
                &json!({"spec": {"replicas": replicas},
                    "status": {"replicas": 1, "availableReplicas": 1, "upToDateReplicas": 1}}),
            ),
        ];
        items.extend(machine.map(|more| item("Machine", "m", "m", &["d"], more)));
        let found = wanted().missing(&world(items.clone()));
        let found: Vec<String> = found.iter().map(|m| format!("{} {}", m.object, m.what)).collect();
        assert_eq!(found, expect);
        assert_eq!(wanted().is_met(&world(items)), expect.is_empty());
    }

    #[test]
    fn a_cluster_runs_when_all_its_machines_do() {
        check(Some(&good_machine()), 1, &[]);
        check(None, 1, &["Cluster/c 0 of 1 worker machines"]);
        check(
            Some(&good_machine()),
            2,
            &[
                "MachineDeployment/d 1 of 2 replicas",
                "MachineDeployment/d 1 of 2 available",
                "MachineDeployment/d 1 of 2 up-to-date",
            ],
        );
        let mut old = good_machine();
        old["spec"]["version"] = json!("v1.34.0");
        old["status"]["conditions"][0] =
            json!({"type": "Available", "status": "False", "reason": "No", "message": "why"});
        check(
            Some(&old),
            1,
            &[
                "Machine/m version v1.34.0 instead of v1.35.0",
                "Machine/m Available=False No: why",
            ],
        );
    }

    #[test]
    fn a_cluster_waits_when_it_says_so_and_its_objects_are_there() {
        let waiting = Wanted::Waiting {
            clusters: vec!["c".to_owned()],
        };
        let mut items = vec![item(
            "Cluster",
            "c",
            "c",
            &[],
            &json!({"status": {"conditions": [{"type": "InfrastructureReady", "status": "False", "message": "x is false"}]}}),
        )];
        let found = waiting.missing(&world(items.clone()));
        let found: Vec<String> = found.into_iter().map(|missing| missing.what).collect();
        assert_eq!(
            found,
            [
                "no DevCluster yet",
                "no KubeadmControlPlane yet",
                "no MachineDeployment yet"
            ]
        );
        for kind in ["DevCluster", "KubeadmControlPlane", "MachineDeployment"] {
            items.push(item(kind, "x", kind, &["c"], &json!({})));
        }
        assert!(waiting.is_met(&world(items.clone())));
        items.remove(0);
        assert!(!waiting.is_met(&world(items)));
    }

    #[test]
    fn nothing_may_be_left() {
        let world = world(vec![item("KubeadmConfig", "k", "k", &[], &json!({}))]);
        assert_eq!(Wanted::Gone.missing(&world).len(), 1);
        assert!(!Wanted::Gone.is_met(&world));
        assert!(Wanted::Gone.is_met(&World::default()));
    }

    #[test]
    fn a_failure_is_explained_by_conditions() {
        let world = world(vec![item(
            "Cluster",
            "c",
            "c",
            &[],
            &json!({"status": {"conditions": [
                {"type": "Available", "status": "False", "reason": "NotAvailable", "message": "* a\n* b"},
                {"type": "Paused", "status": "False", "reason": "NotPaused"},
                {"type": "RollingOut", "status": "True", "reason": "RollingOut"},
            ]}}),
        )]);
        let lines = explain(&world, &wanted().missing(&world), 10);
        assert_eq!(
            lines,
            [
                "Cluster/c: Available=False NotAvailable: * a * b",
                "Cluster/c: 0 of 1 worker machines",
                "Cluster/c: RollingOut=True RollingOut",
            ]
        );
        assert_eq!(
            explain(&world, &wanted().missing(&world), 1).last().unwrap(),
            "and 2 more"
        );
    }
}
