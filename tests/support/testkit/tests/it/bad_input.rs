//! Invalid input is refused by the API server, or reported on the Cluster; no objects are created for it.

use kube::api::{ListParams, Patch, PatchParams, ValidationDirective};
use kube::core::Status;
use serde_json::{Value, json};
use windlass_api::annotations::TOPOLOGY_UNSAFE_UPDATE_VERSION;
use windlass_api::core::Cluster;
use windlass_testkit::{CLASS, ClusterOf, Env, MANAGER, NAMESPACE};

/// A Cluster with an invalid value.
fn wrong(name: &str, pointer: &str, value: Value) -> Value {
    let mut object = ClusterOf::new(name, 1, 1).object();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    object
}

/// Sends an object as `kubectl` does, with strict validation, once to apply and once to create.
async fn refusals(env: &Env, object: &Value) -> [Box<Status>; 2] {
    let name = object["metadata"]["name"].as_str().unwrap();
    let api = env.dynamic("Cluster");
    let parameters = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply(MANAGER)
    };
    let applied = api.patch(name, &parameters, &Patch::Apply(object)).await.unwrap_err();
    let request = http::Request::post(format!(
        "/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/clusters?fieldValidation=Strict"
    ));
    let request = request
        .header("content-type", "application/json")
        .body(object.to_string().into_bytes())
        .unwrap();
    let created = env.client().request::<Value>(request).await.unwrap_err();
    [applied, created].map(|error| match error {
        kube::Error::Api(status) => status,
        other => panic!("not an answer of the server: {other}"),
    })
}

async fn is_refused(env: &Env, object: Value, code: u16, words: &[&str], field: &str) {
    let [applied, created] = refusals(env, &object).await;
    // A value that does not match the schema's types cannot be applied: a server reports it before validation, with another
    // message.
    let is_typed = applied.message.contains("failed to create typed patch object");
    let answers = if is_typed {
        vec![created]
    } else {
        vec![applied, created]
    };
    for status in answers {
        assert_eq!(status.code, code, "{}", status.message);
        for word in words {
            assert!(status.message.contains(word), "no {word:?} in {:?}", status.message);
        }
        let causes = status.details.map(|details| details.causes).unwrap_or_default();
        let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert!(
            field.is_empty() || fields.contains(&field),
            "no {field} among {fields:?}"
        );
    }
}

// Unknown fields, wrong types and values out of bounds are refused before a controller sees them.
#[tokio::test]
async fn what_the_schema_forbids_is_refused_with_the_field() {
    let env = Env::builder().without_controllers().start().await;
    let check = async |pointer: &str, value: Value, code: u16, words: &[&str], field: &str| {
        is_refused(&env, wrong("bad", pointer, value), code, words, field).await;
    };
    check(
        "/spec/topolgy",
        json!({}),
        400,
        &["strict", "unknown field \"spec.topolgy\""],
        "",
    )
    .await;
    check(
        "/spec/topology/controlPlane/replica",
        json!(1),
        400,
        &["spec.topology.controlPlane.replica"],
        "",
    )
    .await;
    check(
        "/spec/topology/controlPlane/replicas",
        json!("three"),
        422,
        &["Cluster", "\"bad\" is invalid", "integer"],
        "spec.topology.controlPlane.replicas",
    )
    .await;
    check(
        "/spec/topology/version",
        json!(""),
        422,
        &["\"bad\" is invalid"],
        "spec.topology.version",
    )
    .await;
    check(
        "/spec/topology/classRef",
        json!({}),
        422,
        &["Required value"],
        "spec.topology.classRef.name",
    )
    .await;
    assert_eq!(env.list::<Cluster>().await.len(), 0);
    env.stop().await;
}

/// The refusal of a change of a Cluster.
async fn refusal(env: &Env, name: &str, change: &Value) -> Box<Status> {
    let api = env.dynamic("Cluster");
    let changed = api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await;
    match changed {
        Err(kube::Error::Api(status)) => status,
        other => panic!("{change} is not refused: {other:?}"),
    }
}

/// The message of the current condition about an invalid topology.
fn complaint(cluster: &Cluster) -> Option<&str> {
    let status = cluster.status.as_ref()?;
    let condition = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "TopologyReconciled")?;
    let is_now = condition.observed_generation == cluster.metadata.generation;
    (is_now && condition.status == "False").then_some(condition.message.as_str())
}

// TO-085, TO-206, TO-208, TO-209
#[tokio::test]
async fn what_only_a_controller_can_know_is_named_on_the_cluster_and_nothing_is_made() {
    let env = Env::start().await;
    let complains = async |name: &str, words: &[&str]| {
        let key = ClusterOf::new(name, 1, 1).key();
        let is_named =
            |cluster: &Cluster| complaint(cluster).is_some_and(|text| words.iter().all(|w| text.contains(w)));
        env.wait_for::<Cluster>(&key, &format!("complains with {words:?}"), is_named)
            .await;
    };
    env.apply_yaml(CLASS).await;
    let (classes, _): (Vec<Value>, Vec<Value>) = serde_saphyr::from_multiple::<Value>(CLASS)
        .unwrap()
        .into_iter()
        .partition(|object| object["kind"] == "ClusterClass");
    let mut class = classes.into_iter().next().unwrap();
    class["metadata"]["name"] = json!("no-template");
    class["spec"]["workers"]["machineDeployments"][0]["bootstrap"]["templateRef"]["name"] = json!("nowhere");
    env.apply(&class).await;
    let stored = env.stored().await;

    env.apply(&wrong("no-class", "/spec/topology/classRef/name", json!("nothing")))
        .await;
    env.apply(&wrong(
        "no-template",
        "/spec/topology/classRef/name",
        json!("no-template"),
    ))
    .await;
    complains("no-class", &["ClusterClass", "default/nothing", "does not exist"]).await;
    complains("no-template", &["KubeadmConfigTemplate", "nowhere"]).await;

    // What the class says is known before anything is stored.
    let refused = async |pointer: &str, value: Value, words: &str, field: &str| {
        is_refused(&env, wrong("bad", pointer, value), 422, &[words], field).await;
    };
    refused(
        "/spec/topology/version",
        json!("latest"),
        "version must be a valid semantic version",
        "spec.topology.version",
    )
    .await;
    refused(
        "/spec/topology/variables",
        json!([{"name": "startupDuration", "value": "soon"}]),
        "Invalid value: \"\\\"soon\\\"\"",
        "spec.topology.variables[startupDuration].value",
    )
    .await;
    refused(
        "/spec/topology/variables",
        json!([{"name": "colour", "value": "red"}]),
        "variable is not defined",
        "spec.topology.variables[colour]",
    )
    .await;
    refused(
        "/spec/topology/workers/machineDeployments",
        json!([{"class": "gpu-worker", "name": "md-0", "replicas": 1}]),
        "MachineDeploymentClass with name \"gpu-worker\" does not exist in ClusterClass \"quick-start\"",
        "spec.topology.workers.machineDeployments[0].class",
    )
    .await;

    let made: Vec<String> = env.stored().await.difference(&stored).cloned().collect();
    assert_eq!(made.len(), 2, "{made:?}");
    assert!(made.iter().all(|name| name.starts_with("clusters.")), "{made:?}");

    // After a correction, reconciling continues. The name of the class was never right, so there is nothing to compare the new class with.
    let change = json!({
        "metadata": {"annotations": {TOPOLOGY_UNSAFE_UPDATE_VERSION: ""}},
        "spec": {"topology": {"classRef": {"name": "quick-start"}}},
    });
    let status = refusal(&env, "no-class", &change).await;
    assert!(status.message.contains("could not be retrieved"), "{}", status.message);
    let cluster = ClusterOf::new("good", 1, 0);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    env.stop().await;
}

// A change that cannot be carried out leaves existing objects as they are.
#[tokio::test]
async fn a_bad_change_leaves_a_running_cluster_alone() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("calm", 1, 1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    env.prod("rest").await;
    let specs = async || {
        let mut all = Vec::new();
        for kind in [
            "DevCluster",
            "KubeadmControlPlane",
            "MachineDeployment",
            "MachineSet",
            "Machine",
            "DevMachine",
        ] {
            let list = env.dynamic(kind).list(&ListParams::default()).await.unwrap();
            all.extend(list.items.into_iter().map(|object| object.data["spec"].clone()));
        }
        all
    };
    let before = specs().await;
    for topology in [
        json!({"version": "1.x", "controlPlane": {"replicas": 3}}),
        json!({"version": "v1.33.0", "controlPlane": {"replicas": 3}}),
        json!({"classRef": {"name": "nothing"}}),
    ] {
        refusal(&env, "calm", &json!({"spec": {"topology": topology}})).await;
    }
    env.prod("after").await;
    assert_eq!(specs().await, before);
    env.stop().await;
}
