//! What managed topologies cost: `cargo xtask bench topology`. Prints figures beside their targets, asserts nothing.
//!
//! The first part plans without a server: a class with 30 patches and 20 variables, and Clusters with three MachineDeployments. The second part
//! wakes the topologies of a settled fleet, with the embedded API server in this process: a label of a template of their class changes, so
//! the controllers of topologies and classes run, and no other.

use std::alloc::System;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use windlass_meta::Moment;
use windlass_testkit::{CLASS, ClusterOf, Env};
use windlass_topology::blueprint::{Blueprint, Class, Contract};
use windlass_topology::current::{Current, WorkerSet};
use windlass_topology::desired::Input;
use windlass_topology::plan::{Action, Plan, plan};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

type Failure = Box<dyn Error + Send + Sync>;

const DEPLOYMENTS: usize = 3;
const PATCHES: usize = 30;
const VARIABLES: usize = 20;
/// Clusters whose class changes.
const FLEET: usize = 1_000;
/// How often one topology is computed; the figure is the median.
const ROUNDS: usize = 301;

const NAME: &str = "topology.cluster.x-k8s.io/deployment-name";

fn main() -> Result<(), Failure> {
    let count: usize = std::env::args().nth(1).unwrap_or_else(|| "100".to_owned()).parse()?;
    pure()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(settled(count))
}

fn say(text: &str) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

/// The example class with as many variables and patches as the target says, and its templates.
fn documents() -> Result<(Value, Vec<Value>), Failure> {
    let mut all: Vec<Value> = serde_saphyr::from_multiple(CLASS)?;
    let mut class = all.remove(0);
    class["metadata"]["namespace"] = "default".into();
    for template in &mut all {
        template["metadata"]["namespace"] = "default".into();
    }
    let variable = |number: usize| {
        let schema =
            json!({"type": "string", "maxLength": 63, "pattern": "^[a-z0-9-]*$", "default": format!("value-{number}")});
        json!({"name": format!("v{number}"), "required": false, "schema": {"openAPIV3Schema": schema}})
    };
    let own = class["spec"]["variables"].as_array().map_or(0, Vec::len);
    let more = (own..VARIABLES).map(variable);
    class["spec"]["variables"]
        .as_array_mut()
        .ok_or("no variables")?
        .extend(more);
    let patch = |number: usize| {
        let path = format!(
            "/spec/template/spec/kubeadmConfigSpec/files{}",
            if number == 0 { "" } else { "/-" }
        );
        let file = json!([{"path": "/etc/first", "content": "x"}]);
        let of_control_plane = json!({
            "selector": {
                "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlaneTemplate",
                "matchResources": {"controlPlane": true},
            },
            "jsonPatches": [if number == 0 { json!({"op": "add", "path": path, "value": file}) } else {
                json!({"op": "add", "path": path, "valueFrom": {"template":
                    format!("path: /etc/{{{{ .builtin.cluster.name }}}}-{number}\ncontent: {{{{ .v{} }}}}\n", own + number % (VARIABLES - own))}})
            }],
        });
        let of_workers = json!({
            "selector": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate",
                "matchResources": {"machineDeploymentClass": {"names": ["*"]}},
            },
            "jsonPatches": [{"op": "add", "path": "/spec/template/spec/joinConfiguration/nodeRegistration/kubeletExtraArgs/-",
                "valueFrom": {"template": format!("name: arg-{number}\nvalue: {{{{ .v{} }}}}\n", own + number % (VARIABLES - own))}}],
        });
        json!({"name": format!("p{number}"), "enabledIf": "{{ ne .v19 \"off\" }}", "definitions": [of_control_plane, of_workers]})
    };
    let before = class["spec"]["patches"].as_array().map_or(0, Vec::len);
    let more = (before..PATCHES).map(|number| patch(number - before));
    class["spec"]["patches"]
        .as_array_mut()
        .ok_or("no patches")?
        .extend(more);
    let defined = class["spec"]["variables"].as_array().into_iter().flatten();
    let defined: Vec<Value> = defined
        .map(|one| {
            let definition = json!({"from": "inline", "required": one["required"], "schema": one["schema"]});
            json!({"name": one["name"], "definitionsConflict": false, "definitions": [definition]})
        })
        .collect();
    class["status"] = json!({"variables": defined});
    Ok((class, all))
}

fn blueprint(class: &Arc<Class>, templates: &[Arc<Value>]) -> Result<Blueprint, Failure> {
    Ok(Blueprint::new(class, Contract::V1Beta2, |reference| {
        let is_it = |one: &&Arc<Value>| one["kind"] == *reference.kind && one["metadata"]["name"] == *reference.name;
        templates
            .iter()
            .find(is_it)
            .cloned()
            .ok_or_else(|| "it does not exist".to_owned())
    })?)
}

fn cluster(number: usize) -> Value {
    let deployments =
        (0..DEPLOYMENTS).map(|md| json!({"class": "default-worker", "name": format!("md-{md}"), "replicas": 3}));
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": format!("c{number}"), "namespace": "default", "uid": format!("uid-{number}")},
        "spec": {"topology": {
            "classRef": {"name": "quick-start"}, "version": "v1.35.0", "controlPlane": {"replicas": 3},
            "workers": {"machineDeployments": deployments.collect::<Vec<_>>()},
        }},
    })
}

fn planned(cluster: &Value, blueprint: &Blueprint, current: &Current) -> Result<Plan, Failure> {
    Ok(plan(Input {
        cluster,
        blueprint,
        current,
        stores_defaults: true,
        upgrade_plan: None,
        patches: None,
        now: &Moment::at(Timestamp::now()),
    })?)
}

/// What exists when all steps were taken, and the Cluster as it is then.
fn taken(cluster: &mut Value, plan: &Plan) -> Current {
    let mut objects: BTreeMap<(String, String), Arc<Value>> = BTreeMap::new();
    for step in &plan.steps {
        match &step.action {
            Action::PatchCluster(patch) => merge(cluster, patch),
            Action::Apply(object) => {
                let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
                let key = (text(&object["kind"]), text(&object["metadata"]["name"]));
                let mut object = object.clone();
                object["metadata"]["uid"] = format!("{}-{}", key.0, key.1).into();
                objects.insert(key, Arc::new(object));
            }
            Action::Delete(_) => {}
        }
    }
    let follow = |object: &Value, pointer: &str| {
        let reference = object.pointer(pointer)?;
        let text = |field: &str| reference[field].as_str().unwrap_or_default().to_owned();
        objects.get(&(text("kind"), text("name"))).cloned()
    };
    let control_plane = follow(cluster, "/spec/controlPlaneRef");
    let sets = objects.iter().filter(|((kind, _), _)| kind == "MachineDeployment");
    let sets = sets.map(|(_, object)| {
        let name = object["metadata"]["labels"][NAME]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let set = WorkerSet {
            bootstrap: follow(object, "/spec/template/spec/bootstrap/configRef"),
            infrastructure: follow(object, "/spec/template/spec/infrastructureRef"),
            health_check: None,
            machine_versions: Vec::new(),
            object: object.clone(),
        };
        (name, set)
    });
    Current {
        infrastructure_cluster: follow(cluster, "/spec/infrastructureRef"),
        control_plane_machines: control_plane
            .as_deref()
            .and_then(|plane| follow(plane, "/spec/machineTemplate/spec/infrastructureRef")),
        machine_deployments: sets.collect(),
        control_plane,
        ..Current::default()
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    for (name, value) in fields {
        merge(&mut target[name], value);
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn pure() -> Result<(), Failure> {
    let (class, templates) = documents()?;
    let templates: Vec<Arc<Value>> = templates.into_iter().map(Arc::new).collect();
    let read = Instant::now();
    let compiled = Arc::new(Class::read(&class)?);
    let read = read.elapsed();
    let blueprint_of_all = blueprint(&compiled, &templates)?;
    say(&format!(
        "a class with {PATCHES} patches and {VARIABLES} variables: read once in {read:.1?}"
    ))?;

    let mut fleet = Vec::with_capacity(FLEET);
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for number in 0..FLEET {
        let mut cluster = cluster(number);
        let begun = Instant::now();
        let made = planned(&cluster, &blueprint_of_all, &Current::default())?;
        first.push(begun.elapsed());
        let current = taken(&mut cluster, &made);
        fleet.push((cluster, current));
    }
    let (cluster, current) = &fleet[0];
    let region = Region::new(ALLOCATOR);
    let same = planned(cluster, &blueprint_of_all, current)?;
    let change = region.change();
    let changes: Vec<&str> = same.changes().map(|step| step.note.as_str()).collect();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        planned(cluster, &blueprint_of_all, current)?;
        again.push(begun.elapsed());
    }
    say(&format!(
        "the objects of one Cluster with {DEPLOYMENTS} MachineDeployments (target 1 ms):"
    ))?;
    say(&format!("  {:>10.1?}  a new Cluster, median of {FLEET}", median(first)))?;
    say(&format!(
        "  {:>10.1?}  a settled one, median of {ROUNDS}; {} allocations, {} KiB; changes {changes:?}",
        median(again),
        change.allocations,
        change.bytes_allocated / 1024,
    ))?;

    let mut changed = class;
    changed["spec"]["variables"][VARIABLES - 1]["schema"]["openAPIV3Schema"]["description"] = "changed".into();
    changed["spec"]["patches"][PATCHES - 1]["definitions"][1]["jsonPatches"][0]["valueFrom"] =
        json!({"template": "name: changed\nvalue: changed\n"});
    let begun = Instant::now();
    let changed = blueprint(&Arc::new(Class::read(&changed)?), &templates)?;
    let mut tried = 0;
    for (cluster, current) in &fleet {
        tried += planned(cluster, &changed, current)?.trials.len();
    }
    say(&format!(
        "a change of the class, for {FLEET} Clusters (target 3 s): {:.2?}, with {tried} dry runs to make",
        begun.elapsed()
    ))
}

async fn settled(count: usize) -> Result<(), Failure> {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let clusters: Vec<ClusterOf> = (0..count)
        .map(|number| ClusterOf::new(&format!("c{number}"), 1, 1))
        .collect();
    for cluster in &clusters {
        cluster.apply(&env).await;
    }
    for cluster in &clusters {
        cluster.wait_running(&env).await;
    }
    env.rest().await;
    // The first time fills what is kept between reconciles.
    touch(&env, "first", count).await;
    let before = env.load().reconciles;
    let (requests, with) = (env.requests(), Region::new(ALLOCATOR));
    touch(&env, "second", count).await;
    let (with, requests) = (with.change(), env.requests() - requests);
    let after = env.load().reconciles;
    let ran: BTreeMap<&String, u64> = after
        .iter()
        .map(|(name, number)| (name, number - before.get(name).copied().unwrap_or_default()))
        .filter(|(_, number)| *number > 0)
        .collect();
    say(&format!(
        "a label of a template of the class of {count} settled Clusters changes; reconciles: {ran:?}"
    ))?;
    say(&format!(
        "  {:>10}  KiB allocated for each Cluster (target 100), {} allocations",
        with.bytes_allocated / 1024 / count,
        with.allocations / count,
    ))?;
    say(&format!(
        "  {requests:>10}  requests but watches (target: the one that changes the label)"
    ))?;
    env.stop().await;
    Ok(())
}

/// Changes a label of a template of the class, and waits until each topology was reconciled.
async fn touch(env: &Env, value: &str, count: usize) {
    const CONTROLLER: &str = "topology/cluster";
    let reconciles = |env: &Env| env.load().reconciles.get(CONTROLLER).copied().unwrap_or_default();
    let before = reconciles(env);
    let patch = json!({"metadata": {"annotations": {"example.com/touched": value}}});
    env.merge("DevClusterTemplate", "quick-start-cluster", &patch).await;
    let all = u64::try_from(count).unwrap_or(u64::MAX);
    // [`Env::rest`] reads all objects, which would be measured, too.
    env.look_until("all topologies to be reconciled", || {
        reconciles(env) >= before + all && env.load().busy.is_empty()
    })
    .await;
}
