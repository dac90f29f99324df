//! `cargo xtask recorded DIR`: compares the objects of our controllers with those of Cluster API's controllers.
//!
//! `DIR` has recorded objects, one folder per step. The same steps are played in process, and the objects of both are normalised.
//! Every difference must be in `xtask/recorded-allow.tsv` with its reason and in `xtask/recorded-differences.tsv` with its
//! values. Every row there must match a difference.

pub(crate) mod diff;
pub(crate) mod flat;
pub(crate) mod normal;
pub(crate) mod play;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::diff::{Difference, Pins};
use self::flat::Flat;
use self::normal::{Role, normalise, shape};
use self::play::{CLUSTER, Kind, RICH, Stage, Wanted};
use self::timeline::{Counts, Told};

/// The steps in order. Not all have recorded objects; for the others, the list of changes has the number of objects.
const STEPS: [&str; 9] = [
    "settled",
    OTHER,
    "scaled-up",
    "scaled-down",
    "labelled",
    "replaced",
    "upgraded",
    "class-changed",
    "deleted",
];
/// The only step of another cluster, which is not in the list of changes.
const OTHER: &str = "workload-cluster";
/// A start-up time that is longer than the comparison.
const LONG: &str = "1h";

/// The outcome: the text to print, and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The report.
    pub(crate) text: String,
    /// Whether every difference is allowed.
    pub(crate) good: bool,
}

/// Plays the steps recorded in `dir` and compares; our objects are written to `keep`. With `pin`, the values of allowed
/// differences are recorded instead of compared.
pub(crate) fn run(root: &Path, dir: &Path, keep: Option<&Path>, pin: bool) -> Result<Outcome, String> {
    let list = root.join("xtask/recorded-allow.tsv");
    let text = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let allowances = diff::parse_allowances(&text).map_err(|error| format!("{}: {error}", list.display()))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let path = dir.join("timeline.tsv");
    let changes = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let moments = timeline::moments(&changes);
    let steps: Vec<&str> = STEPS.into_iter().filter(|step| *step != OTHER).collect();
    if moments.len() != steps.len() {
        let (path, expected, found) = (path.display(), steps.join(", "), moments.len());
        return Err(format!(
            "{path}: expected a request for each of {expected}, found {found}"
        ));
    }
    let mut comparison = Comparison {
        events: timeline::events(&changes),
        numbers: steps.into_iter().zip(moments).collect(),
        found: Vec::new(),
        keep: keep.map(Path::to_owned),
    };
    let played = runtime.block_on(play_all(dir, &mut comparison));
    let list = root.join("xtask/recorded-differences.tsv");
    let wrong = |error: String| format!("{}: {error}", list.display());
    if pin && played.is_ok() {
        let pins = Pins::of(&comparison.found, &allowances).text("recorded");
        fs::write(&list, pins).map_err(|error| wrong(error.to_string()))?;
    }
    let pins = fs::read_to_string(&list).map_err(|error| wrong(error.to_string()))?;
    let pins = Pins::parse(&pins).map_err(wrong)?;
    let (mut text, good) = diff::report(&comparison.found, &allowances, &pins, &STEPS.map(str::to_owned));
    if let Err(error) = &played {
        text = format!("{text}stopped: {error}\n");
    }
    Ok(Outcome {
        text,
        good: good && played.is_ok(),
    })
}

#[derive(Debug)]
struct Comparison {
    numbers: BTreeMap<&'static str, Counts>,
    events: BTreeSet<Told>,
    found: Vec<Difference>,
    keep: Option<PathBuf>,
}

impl Comparison {
    fn add(&mut self, step: &str, recorded: &BTreeMap<Role, Flat>, ours: &BTreeMap<Role, Flat>) {
        self.found.extend(diff::compare(step, recorded, ours));
    }

    /// Compares all objects once nothing changes any more.
    async fn step(&mut self, stage: &Stage, dir: &Path, step: &str) -> Result<(), String> {
        stage.quiet().await?;
        anstream::eprintln!("comparing {step}");
        let ours = stage.objects().await?;
        self.keep(step, &ours)?;
        self.add(step, &normalise(&read_folder(&dir.join(step))?), &normalise(&ours));
        Ok(())
    }

    /// Compares the number of objects once nothing changes any more.
    async fn count(&mut self, stage: &Stage, step: &str) -> Result<(), String> {
        stage.quiet().await?;
        anstream::eprintln!("comparing {step}");
        let ours = stage.objects().await?;
        self.keep(step, &ours)?;
        let mut counts = Counts::new();
        for object in &ours {
            *counts
                .entry(object["kind"].as_str().unwrap_or_default().to_owned())
                .or_default() += 1;
        }
        let recorded = self
            .numbers
            .get(step)
            .ok_or_else(|| format!("nothing is recorded of {step}"))?;
        self.found.extend(diff::compare_counts(step, recorded, &counts));
        Ok(())
    }

    /// Compares the events of all objects, from the beginning to the end.
    async fn told(&mut self, stage: &Stage, step: &str) -> Result<(), String> {
        let events = stage.events().await?;
        self.keep("events", &events)?;
        let ours = timeline::events_about(&events, CLUSTER);
        self.found.extend(diff::compare_told(step, &self.events, &ours));
        Ok(())
    }

    fn keep(&self, step: &str, objects: &[Value]) -> Result<(), String> {
        let Some(dir) = &self.keep else {
            return Ok(());
        };
        let text = serde_json::to_string_pretty(objects).map_err(|error| error.to_string())?;
        let path = dir.join(format!("{step}.json"));
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

async fn play_all(dir: &Path, comparison: &mut Comparison) -> Result<(), String> {
    let recorded = read_folder(&dir.join("settled"))?;
    let stage = Stage::start(kinds(&recorded)).await?;
    let played = play_steps(&stage, dir, &recorded, comparison).await;
    if played.is_err() {
        comparison.keep("stopped", &stage.objects().await?)?;
    }
    stage.shutdown().await;
    played
}

async fn play_steps(stage: &Stage, dir: &Path, recorded: &[Value], comparison: &mut Comparison) -> Result<(), String> {
    let class = play::class(&dir.join("../manifests/clusterclass-in-memory.yaml"))?;
    for object in &class {
        stage.kubectl_apply(object.clone()).await?;
    }
    let cluster = recorded
        .iter()
        .find(|object| object["kind"] == "Cluster")
        .ok_or("no Cluster is recorded")?;
    let cluster = as_asked_for(cluster);
    stage.apply(&cluster).await?;
    let mut wanted = Wanted {
        cluster: CLUSTER,
        control_plane: 3,
        workers: 3,
        version: "v1.35.0",
    };
    stage.wait(&wanted).await?;
    comparison.step(stage, dir, "settled").await?;

    workload(stage, dir, &cluster, comparison).await?;

    for (workers, step) in [(5, "scaled-up"), (2, "scaled-down")] {
        let replicas = "/spec/topology/workers/machineDeployments/0/replicas";
        stage
            .patch(&cluster, json!([{"op": "replace", "path": replicas, "value": workers}]))
            .await?;
        wanted.workers = workers;
        stage.wait(&wanted).await?;
        comparison.count(stage, step).await?;
    }
    let metadata = json!({"annotations": {"note": "x"}, "labels": {"node-role.kubernetes.io/gpu": "", "team": "a"}});
    let path = "/spec/topology/workers/machineDeployments/0/metadata";
    stage
        .patch(&cluster, json!([{"op": "add", "path": path, "value": metadata}]))
        .await?;
    stage.wait(&wanted).await?;
    comparison.step(stage, dir, "labelled").await?;

    let machines = stage.machines(CLUSTER).await?;
    let is_worker = |machine: &&Value| machine["metadata"]["labels"].get("cluster.x-k8s.io/set-name").is_some();
    stage
        .delete(machines.iter().find(is_worker).ok_or("no worker Machine")?)
        .await?;
    stage.quiet().await?;
    stage.wait(&wanted).await?;
    comparison.count(stage, "replaced").await?;

    wanted.version = "v1.36.0";
    stage
        .patch(
            &cluster,
            json!([{"op": "replace", "path": "/spec/topology/version", "value": wanted.version}]),
        )
        .await?;
    stage.wait(&wanted).await?;
    comparison.step(stage, dir, "upgraded").await?;

    let is_class = |object: &&Value| object["kind"] == "ClusterClass";
    let is_template = |object: &&Value| object["metadata"]["name"] == "in-memory-default-worker-machinetemplate";
    let mut template = class
        .iter()
        .find(is_template)
        .ok_or("the class has no worker template")?
        .clone();
    template["metadata"]["name"] = json!("in-memory-worker-v2");
    play::start_within(&mut template, LONG);
    stage.kubectl_apply(template).await?;
    let path = "/spec/workers/machineDeployments/0/infrastructure/templateRef/name";
    let change = json!([{"op": "replace", "path": path, "value": "in-memory-worker-v2"}]);
    stage
        .patch(class.iter().find(is_class).ok_or("no ClusterClass")?, change)
        .await?;
    stage.wait_for_rollout().await?;
    comparison.step(stage, dir, "class-changed").await?;

    stage.delete(&cluster).await?;
    stage.wait_for_deletion().await?;
    comparison.count(stage, "deleted").await?;
    comparison.told(stage, "deleted").await
}

/// Compares the objects in the workload API server of another cluster: one control plane machine and three workers, as recorded.
async fn workload(stage: &Stage, dir: &Path, cluster: &Value, comparison: &mut Comparison) -> Result<(), String> {
    let mut rich = cluster.clone();
    rich["metadata"]["name"] = json!(RICH);
    rich["spec"]["topology"]["controlPlane"]["replicas"] = json!(1);
    stage.apply(&rich).await?;
    let wanted = Wanted {
        cluster: RICH,
        control_plane: 1,
        workers: 3,
        version: "v1.35.0",
    };
    stage.wait(&wanted).await?;
    stage.quiet().await?;
    let recorded = read_folder(&dir.join(OTHER))?;
    let ours = stage.workload(RICH, &kinds(&recorded)).await?;
    comparison.keep(OTHER, &ours)?;
    comparison.add(OTHER, &shapes(&recorded), &shapes(&ours));
    Ok(())
}

/// The first object of each role.
fn shapes(objects: &[Value]) -> BTreeMap<Role, Flat> {
    let names = workload_names(objects);
    let mut shapes = BTreeMap::new();
    for object in objects {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        shapes
            .entry((kind, workload_role(object)))
            .or_insert_with(|| shape(object, &names));
    }
    shapes
}

/// The names of Nodes and machine owners with their replacements, longest first.
fn workload_names(objects: &[Value]) -> Vec<(String, String)> {
    let nodes = objects
        .iter()
        .filter(|object| object["kind"] == "Node")
        .map(|node| &node["metadata"]);
    let mut names: Vec<(String, String)> = nodes
        .flat_map(|metadata| {
            let owner = &metadata["annotations"]["cluster.x-k8s.io/owner-name"];
            [(&metadata["name"], "<node>"), (owner, "<owner>")]
        })
        .filter_map(|(name, role)| Some((name.as_str()?.to_owned(), role.to_owned())))
        .collect();
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names
}

/// The role of an object in a workload cluster: names contain the names of machines and tokens.
fn workload_role(object: &Value) -> String {
    let labels = &object["metadata"]["labels"];
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["kind"].as_str() {
        Some("Node") if labels.get("node-role.kubernetes.io/control-plane").is_some() => "control plane".to_owned(),
        Some("Node") => "worker".to_owned(),
        Some("Pod") => labels["component"].as_str().unwrap_or(name).to_owned(),
        Some("Secret") if name.starts_with("bootstrap-token-") => "bootstrap token".to_owned(),
        _ => name.to_owned(),
    }
}

/// A recorded Cluster as its user applied it, without the fields of controllers.
fn as_asked_for(cluster: &Value) -> Value {
    let mut spec = cluster["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|key, _| matches!(key.as_str(), "clusterNetwork" | "topology"));
    }
    let metadata = json!({"name": cluster["metadata"]["name"], "namespace": cluster["metadata"]["namespace"]});
    json!({"apiVersion": cluster["apiVersion"], "kind": "Cluster", "metadata": metadata, "spec": spec})
}

fn kinds(objects: &[Value]) -> Vec<Kind> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kinds: BTreeSet<Kind> = objects
        .iter()
        .map(|object| Kind {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
        })
        .collect();
    kinds.into_iter().collect()
}

/// All objects in a folder of JSON files, each an array or a list.
pub(crate) fn read_folder(dir: &Path) -> Result<Vec<Value>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", dir.display());
    let mut objects = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| wrong(&error))? {
        let path = entry.map_err(|error| wrong(&error))?.path();
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let value: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let items = value.as_array().or_else(|| value["items"].as_array());
        objects.extend(
            items
                .ok_or_else(|| format!("{}: no list of objects", path.display()))?
                .iter()
                .cloned(),
        );
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_workload_clusters_go_by_what_they_are_for() {
        let check = |object: Value, expect: &str| assert_eq!(workload_role(&object), expect);
        let node = |labels: Value| json!({"kind": "Node", "metadata": {"name": "n", "labels": labels}});
        check(
            node(json!({"node-role.kubernetes.io/control-plane": ""})),
            "control plane",
        );
        check(node(json!({})), "worker");
        check(
            json!({"kind": "Pod", "metadata": {"name": "etcd-x", "labels": {"component": "etcd"}}}),
            "etcd",
        );
        check(
            json!({"kind": "Secret", "metadata": {"name": "bootstrap-token-abcdef"}}),
            "bootstrap token",
        );
        check(json!({"kind": "ConfigMap", "metadata": {"name": "coredns"}}), "coredns");
    }

    #[test]
    fn nodes_and_their_owners_go_by_what_they_are() {
        let metadata = json!({"name": "owner-1-a", "annotations": {"cluster.x-k8s.io/owner-name": "owner-1"}});
        let names = workload_names(&[json!({"kind": "Node", "metadata": metadata})]);
        let expect = [("owner-1-a", "<node>"), ("owner-1", "<owner>")];
        assert_eq!(names, expect.map(|(name, role)| (name.to_owned(), role.to_owned())));
    }

    #[test]
    fn clusters_are_applied_without_what_controllers_add() {
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "c", "namespace": "default", "uid": "u", "labels": {"a": ""}},
            "spec": {"topology": {"version": "v1.35.0"}, "controlPlaneEndpoint": {"port": 1}}, "status": {},
        });
        let expect = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c", "namespace": "default"},
            "spec": {"topology": {"version": "v1.35.0"}},
        });
        assert_eq!(as_asked_for(&cluster), expect);
    }
}
