//! The Cluster controller and a provider that it has never heard of: they meet in API objects only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api::core::Cluster;
use windlass_testkit::faults::{Fault, Faults};

use crate::env::{Env, api, dynamic};

const GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// The definition of a kind that was unknown when this was compiled.
fn definition() -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("acmeclusters.{GROUP}"), "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": "AcmeCluster", "listKind": "AcmeClusterList", "plural": "acmeclusters", "singular": "acmecluster"},
            "versions": [{
                "name": "v1beta2", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
            }],
        },
    })
}

fn acme(env: &Env) -> Api<DynamicObject> {
    dynamic(&env.client, GROUP, "AcmeCluster")
}

async fn create(env: &Env, name: &str, owners: Value) {
    let object = json!({
        "apiVersion": format!("{GROUP}/v1beta2"), "kind": "AcmeCluster",
        "metadata": {"name": name, "ownerReferences": owners}, "spec": {},
    });
    let object = serde_json::from_value(object).unwrap();
    acme(env).create(&PostParams::default(), &object).await.unwrap();
}

async fn refer(env: &Env, cluster: &str, name: &str) {
    let reference = json!({"apiGroup": GROUP, "kind": "AcmeCluster", "name": name});
    env.patch::<Cluster>(cluster, json!({"spec": {"infrastructureRef": reference}}))
        .await;
}

/// The provider's part: the endpoint first, then that it is done.
async fn provision(env: &Env, name: &str, host: &str) {
    let spec = json!({"spec": {"controlPlaneEndpoint": {"host": host, "port": 6443}}});
    let params = PatchParams::default();
    acme(env).patch(name, &params, &Patch::Merge(&spec)).await.unwrap();
    report(env, name, true).await;
}

async fn report(env: &Env, name: &str, provisioned: bool) {
    let status = json!({"status": {"initialization": {"provisioned": provisioned}}});
    let params = PatchParams::default();
    acme(env)
        .patch_status(name, &params, &Patch::Merge(&status))
        .await
        .unwrap();
}

/// Waits until the Cluster is as `done` says.
async fn until(env: &Env, name: &str, what: &str, done: impl Fn(&Value) -> bool) -> Value {
    let mut found = Value::Null;
    env.until::<Cluster>(what, |all| {
        found = all
            .iter()
            .map(|cluster| serde_json::to_value(cluster).unwrap())
            .find(|cluster| cluster["metadata"]["name"] == name)
            .unwrap_or_default();
        done(&found)
    })
    .await;
    found
}

fn reason<'a>(cluster: &'a Value, condition: &str) -> &'a str {
    let all = cluster["status"]["conditions"].as_array().into_iter().flatten();
    let mut matching = all.filter(|one| one["type"] == condition);
    matching
        .next()
        .and_then(|one| one["reason"].as_str())
        .unwrap_or_default()
}

async fn owners(env: &Env, name: &str, count: usize) -> Vec<Value> {
    let objects = acme(env);
    let mut found = Vec::new();
    env.until_in(&objects, "owners", |all: &[DynamicObject]| {
        let object = all.iter().find(|object| object.metadata.name.as_deref() == Some(name));
        let owners = object.and_then(|object| object.metadata.owner_references.clone());
        found = owners
            .into_iter()
            .flatten()
            .map(|owner| serde_json::to_value(owner).unwrap())
            .collect();
        found.len() == count
    })
    .await;
    found
}

/// A Cluster that has adopted its infrastructure, which its provider has not made yet.
async fn adopted() -> Env {
    let env = Env::empty().await;
    env.define(definition()).await;
    create(&env, "infra", json!([])).await;
    env.run_cluster_controller();
    refer(&env, "c", "infra").await;
    owners(&env, "infra", 1).await;
    env
}

fn provisioned(cluster: &Value) -> bool {
    cluster["status"]["initialization"]["infrastructureProvisioned"] == true
}

// CL-004, CL-036, CL-106, CL-107: the test is the provider, and all that the two share are objects. CL-038, CL-040: first the reference,
// then the kind, then the object; the other order is in `what_is_provisioned_stays_so`. CL-006, CL-022, CL-031, CL-037, CL-045, CL-047,
// CL-057, CL-063, CL-069, CL-070, CL-073, CL-074, CL-075, CL-076, CL-077, CL-081, CL-089, CL-090, CL-091, CL-092, CL-093, CL-096
#[tokio::test]
async fn a_provider_may_come_last() {
    let env = Env::empty().await;
    env.run_cluster_controller();
    env.create::<Cluster>(json!({"metadata": {"name": "d"}, "spec": {"infrastructureRef": {
        "apiGroup": GROUP, "kind": "AcmeCluster", "name": "infra"}}}))
        .await;
    // CL-069
    until(&env, "d", "the finalizer", |c| {
        c["metadata"]["finalizers"][0] == "cluster.cluster.x-k8s.io"
    })
    .await;
    let cluster = until(&env, "d", "that the kind is not known", |c| {
        !reason(c, "InfrastructureReady").is_empty()
    })
    .await;
    // CL-089
    assert!(!provisioned(&cluster));
    // CL-063, CL-076, CL-077, CL-081: a kind that was unknown when this was compiled and when the controller looked first.
    env.define(definition()).await;
    let cluster = until(&env, "d", "that the object is missing", |c| {
        // CL-040
        reason(c, "InfrastructureReady") == "ObjectDoesNotExist"
    })
    .await;
    // CL-096: the phase follows the reference, whether or not its object is there.
    assert_eq!(cluster["status"]["phase"], "Provisioning");
    create(&env, "infra", json!([])).await;
    // CL-047
    let owners = owners(&env, "infra", 1).await;
    assert_eq!(
        (&owners[0]["kind"], &owners[0]["name"]),
        (&json!("Cluster"), &json!("d"))
    );
    // CL-090, CL-091
    let cluster = until(&env, "d", "Provisioning", |c| c["status"]["phase"] == "Provisioning").await;
    assert!(!provisioned(&cluster));
    // CL-057, CL-075, CL-092, CL-093
    provision(&env, "infra", "10.0.0.1").await;
    let cluster = until(&env, "d", "Provisioned", |c| c["status"]["phase"] == "Provisioned").await;
    assert!(provisioned(&cluster));
    assert_eq!(
        cluster["spec"]["controlPlaneEndpoint"],
        json!({"host": "10.0.0.1", "port": 6443})
    );
}

// CL-006, CL-009, CL-012, CL-034, CL-061, CL-065, CL-094, CL-095, CL-099, CL-100, CL-103: what was taken over once stays.
#[tokio::test]
async fn what_is_provisioned_stays_so() {
    let env = Env::empty().await;
    env.define(definition()).await;
    create(&env, "infra", json!([])).await;
    env.run_cluster_controller();
    refer(&env, "c", "infra").await;
    provision(&env, "infra", "10.0.0.1").await;
    until(&env, "c", "the endpoint", |c| {
        provisioned(c) && c["spec"]["controlPlaneEndpoint"]["port"] == 6443
    })
    .await;
    provision(&env, "infra", "10.9.9.9").await;
    report(&env, "infra", false).await;
    env.quiet().await;
    let cluster = until(&env, "c", "the Cluster", provisioned).await;
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"]["host"], "10.0.0.1");
    let object = acme(&env).get("infra").await.unwrap();
    for entry in object.metadata.managed_fields.unwrap() {
        let text = serde_json::to_string(&entry).unwrap();
        assert!(!(text.contains("capi-") && text.contains("f:status")), "{text}");
    }
    // CL-103: the step is one event.
    let events: Api<Event> = api(&env.client);
    let is_step = |event: &&Event| event.reason.as_deref() == Some("InfrastructureReady");
    let seen = env
        .until_in(&events, "the event of the step", |all: &[Event]| {
            all.iter().any(|event| is_step(&event))
        })
        .await;
    let steps: Vec<_> = seen.iter().filter(is_step).collect();
    assert_eq!((steps.len(), steps[0].count), (1, Some(1)), "{steps:?}");
    // CL-095: the phase is for people. What others write there is put back, and nothing follows from it.
    env.rests().await;
    let before = until(&env, "c", "the Cluster", provisioned).await;
    let phase = json!({"status": {"phase": "Failed"}});
    let params = PatchParams::default();
    let clusters: Api<Cluster> = api(&env.client);
    clusters
        .patch_status("c", &params, &Patch::Merge(&phase))
        .await
        .unwrap();
    until(&env, "c", "the phase is put back", |c| {
        c["status"]["phase"] == "Provisioned"
    })
    .await;
    env.rests().await;
    let after = until(&env, "c", "the Cluster", provisioned).await;
    assert_eq!((&after["status"], &after["spec"]), (&before["status"], &before["spec"]));
    acme(&env).delete("infra", &DeleteParams::default()).await.unwrap();
    let cluster = until(&env, "c", "that it is gone", |c| {
        reason(c, "InfrastructureReady") == "ObjectDeleted"
    })
    .await;
    assert!(provisioned(&cluster));
}

// CL-041, CL-048, CL-049: a reference that comes later is followed, other owners stay, another Cluster's object is not taken.
#[tokio::test]
async fn an_object_has_one_cluster() {
    let env = Env::empty().await;
    env.define(definition()).await;
    let tool = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "tool", "uid": "7f3a"});
    let params = PostParams::default();
    let map: k8s_openapi::api::core::v1::ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "tool"}})).unwrap();
    let map = api(&env.client).create(&params, &map).await.unwrap();
    let mut tool = tool;
    tool["uid"] = json!(map.metadata.uid);
    create(&env, "infra", json!([tool])).await;
    env.run_cluster_controller();
    refer(&env, "c", "infra").await;
    let found = owners(&env, "infra", 2).await;
    assert!(found.iter().any(|owner| owner["kind"] == "ConfigMap"));
    env.create::<Cluster>(json!({"metadata": {"name": "d"}, "spec": {"infrastructureRef": {
        "apiGroup": GROUP, "kind": "AcmeCluster", "name": "infra"}}}))
        .await;
    until(&env, "d", "a first look", |c| {
        !reason(c, "InfrastructureReady").is_empty()
    })
    .await;
    env.quiet().await;
    let found = owners(&env, "infra", 2).await;
    assert!(found.iter().all(|owner| owner["name"] != "d"), "{found:?}");
}

async fn config_map(env: &Env, name: &str) -> Value {
    let map: k8s_openapi::api::core::v1::ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    let map = api(&env.client).create(&PostParams::default(), &map).await.unwrap();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": map.metadata.uid})
}

// CL-048: the controller of the object may be what made it; the Cluster uses it all the same, and deletes it when it goes.
#[tokio::test]
async fn what_made_the_object_may_be_its_controller() {
    let env = Env::empty().await;
    env.define(definition()).await;
    let mut tool = config_map(&env, "tool").await;
    tool["controller"] = json!(true);
    create(&env, "infra", json!([tool])).await;
    env.run_cluster_controller();
    refer(&env, "c", "infra").await;
    let found = owners(&env, "infra", 2).await;
    let of = |kind: &str| found.iter().find(|owner| owner["kind"] == kind).unwrap();
    assert_eq!(of("ConfigMap")["controller"], true);
    assert_eq!(of("Cluster")["controller"], Value::Null);
    provision(&env, "infra", "10.0.0.1").await;
    until(&env, "c", "Provisioned", |c| c["status"]["phase"] == "Provisioned").await;
    api::<Cluster>(&env.client)
        .delete("c", &DeleteParams::default())
        .await
        .unwrap();
    let objects = acme(&env);
    env.until_in(&objects, "the end of the object", <[DynamicObject]>::is_empty)
        .await;
    env.until::<Cluster>("the end of the Cluster", <[Cluster]>::is_empty)
        .await;
    assert_eq!(env.failures("cluster"), 0);
}

// What an earlier release left behind: the Cluster as the controller, written by whatever field manager.
#[tokio::test]
async fn a_cluster_steps_down_as_the_controller_once() {
    let env = Env::empty().await;
    env.define(definition()).await;
    let cluster = api::<Cluster>(&env.client).get("c").await.unwrap();
    let old = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "c",
        "uid": cluster.metadata.uid, "controller": true, "blockOwnerDeletion": true});
    create(&env, "infra", json!([old])).await;
    env.run_cluster_controller();
    refer(&env, "c", "infra").await;
    let objects = acme(&env);
    env.until_in(&objects, "the owner's new role", |all: &[DynamicObject]| {
        let owners = all
            .iter()
            .flat_map(|object| object.metadata.owner_references.iter().flatten());
        owners.clone().count() == 1
            && owners
                .clone()
                .all(|owner| owner.controller != Some(true) && owner.api_version == "cluster.x-k8s.io/v1beta2")
    })
    .await;
    env.quiet().await;
    let counts = env.server.counters().snapshot();
    let applied = counts
        .iter()
        .filter(|(key, _)| key.resource == "acmeclusters" && key.verb == "apply");
    assert_eq!(applied.map(|(_, count)| count).sum::<u64>(), 1);
}

// CL-071, CL-072, CL-098: the infrastructure goes last, and the Cluster waits for it.
#[tokio::test]
async fn a_cluster_goes_after_its_infrastructure() {
    let env = Env::empty().await;
    env.define(definition()).await;
    create(&env, "infra", json!([])).await;
    let hold = json!({"metadata": {"finalizers": ["acme.io/hold"]}});
    let params = PatchParams::default();
    acme(&env).patch("infra", &params, &Patch::Merge(&hold)).await.unwrap();
    env.run_cluster_controller();
    refer(&env, "c", "infra").await;
    owners(&env, "infra", 1).await;
    api::<Cluster>(&env.client)
        .delete("c", &DeleteParams::default())
        .await
        .unwrap();
    until(&env, "c", "Deleting", |c| c["status"]["phase"] == "Deleting").await;
    let objects = acme(&env);
    env.until_in(
        &objects,
        "that the infrastructure is asked to go",
        |all: &[DynamicObject]| all.iter().all(|object| object.metadata.deletion_timestamp.is_some()),
    )
    .await;
    let free = json!({"metadata": {"finalizers": null}});
    acme(&env).patch("infra", &params, &Patch::Merge(&free)).await.unwrap();
    env.until::<Cluster>("the end of the Cluster", <[Cluster]>::is_empty)
        .await;
}

// CL-058: a Cluster whose endpoint cannot be written is not provisioned, so no reader sees the step without the endpoint.
#[tokio::test]
async fn the_endpoint_is_there_before_the_cluster_is_provisioned() {
    let mut env = Env::empty().await;
    env.define(definition()).await;
    let refuses = Arc::new(AtomicBool::new(false));
    let asked = refuses.clone();
    let faults = Faults::when(move |request| {
        let is_spec = request.is_write() && request.path.contains("/clusters/c?");
        (is_spec && asked.load(Ordering::SeqCst)).then_some(Fault::Refused(503))
    });
    env.disturb(&faults);
    create(&env, "infra", json!([])).await;
    refer(&env, "c", "infra").await;
    env.run_cluster_controller();
    owners(&env, "infra", 1).await;
    until(&env, "c", "Provisioning", |c| c["status"]["phase"] == "Provisioning").await;
    refuses.store(true, Ordering::SeqCst);
    provision(&env, "infra", "10.0.0.1").await;
    let cluster = until(&env, "c", "that the infrastructure is ready", |c| {
        reason(c, "InfrastructureReady") == "Ready"
    })
    .await;
    assert!(!faults.injected().is_empty());
    assert_eq!(cluster["spec"].get("controlPlaneEndpoint"), None);
    assert!(!provisioned(&cluster), "{cluster:#}");
    assert_eq!(cluster["status"]["phase"], "Provisioning");
    refuses.store(false, Ordering::SeqCst);
    let cluster = until(&env, "c", "Provisioned", |c| c["status"]["phase"] == "Provisioned").await;
    assert!(provisioned(&cluster));
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"]["host"], "10.0.0.1");
}

// CL-050: the uid in a reference of an earlier Cluster of the name is brought up to date, and no second reference is added. Garbage
// collection leaves it, as it cannot look owners of this version up.
#[tokio::test]
async fn a_stale_uid_of_the_cluster_is_corrected_in_place() {
    let env = Env::empty().await;
    env.define(definition()).await;
    let mut stale =
        json!({"apiVersion": "cluster.x-k8s.io/v1alpha3", "kind": "Cluster", "name": "c", "uid": "of-another-time"});
    let tool = config_map(&env, "tool").await;
    create(&env, "infra", json!([tool, stale])).await;
    // Both together, as a release that added a reference has left them.
    let cluster = api::<Cluster>(&env.client).get("c").await.unwrap();
    let right =
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": cluster.metadata.uid});
    stale["uid"] = json!("of-a-third-time");
    create(&env, "other", json!([stale, right])).await;
    env.run_cluster_controller();
    for (name, count) in [("infra", 2), ("other", 1)] {
        refer(&env, "c", name).await;
        let objects = acme(&env);
        env.until_in(
            &objects,
            "that its owner is the Cluster as it is",
            |all: &[DynamicObject]| {
                let object = all.iter().find(|object| object.metadata.name.as_deref() == Some(name));
                let owners = object.and_then(|object| object.metadata.owner_references.clone());
                let owners = owners.unwrap_or_default();
                let of_cluster: Vec<_> = owners.iter().filter(|owner| owner.kind == "Cluster").collect();
                owners.len() == count
                    && of_cluster.len() == 1
                    && Some(&of_cluster[0].uid) == cluster.metadata.uid.as_ref()
                    && of_cluster[0].api_version == "cluster.x-k8s.io/v1beta2"
            },
        )
        .await;
    }
    assert_eq!(env.failures("cluster"), 0);
}

// CL-084: changes of an object that is paused wake no Cluster.
#[tokio::test]
async fn a_paused_object_does_not_wake_its_cluster() {
    let env = adopted().await;
    let params = PatchParams::default();
    let pause = |value: Value| Patch::Merge(json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}}));
    acme(&env).patch("infra", &params, &pause(json!(""))).await.unwrap();
    env.rests().await;
    let before = env.reconciles("cluster");
    provision(&env, "infra", "10.0.0.1").await;
    env.quiet().await;
    assert_eq!(env.reconciles("cluster"), before);
    acme(&env).patch("infra", &params, &pause(Value::Null)).await.unwrap();
    until(&env, "c", "Provisioned", |c| c["status"]["phase"] == "Provisioned").await;
}

// CL-051: the watch comes before the owner, so that no event of the object is lost.
#[tokio::test]
async fn a_kind_is_watched_before_its_object_gets_its_owner() {
    let mut env = Env::empty().await;
    env.define(definition()).await;
    let (refused, too_early) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (lists, early) = (refused.clone(), too_early.clone());
    let faults = Faults::when(move |request| {
        if !request.path.contains("/acmeclusters") {
            return None;
        }
        if request.is_write() {
            early.fetch_or(lists.load(Ordering::SeqCst) < 2, Ordering::SeqCst);
            return None;
        }
        (lists.fetch_add(1, Ordering::SeqCst) < 2).then_some(Fault::Refused(503))
    });
    env.disturb(&faults);
    create(&env, "infra", json!([])).await;
    refer(&env, "c", "infra").await;
    env.run_cluster_controller();
    owners(&env, "infra", 1).await;
    assert!(
        refused.load(Ordering::SeqCst) > 2,
        "the kind is listed before the owner is written"
    );
    assert!(!too_early.load(Ordering::SeqCst));
}

// CL-078, CL-079: objects of the kind that no Cluster refers to wake none.
#[tokio::test]
async fn objects_of_no_cluster_cause_no_work() {
    let env = adopted().await;
    env.rests().await;
    let before = env.reconciles("cluster");
    for number in 0..50 {
        let name = format!("other-{number}");
        create(&env, &name, json!([])).await;
        provision(&env, &name, "10.0.0.2").await;
        acme(&env).delete(&name, &DeleteParams::default()).await.unwrap();
    }
    env.quiet().await;
    assert_eq!(env.reconciles("cluster"), before);
}

// CL-064, CL-101: what a provider reports in the wrong type is an error, and what goes away is not taken over.
#[tokio::test]
async fn a_wrong_report_and_a_deleted_object_are_not_taken_over() {
    let env = adopted().await;
    let params = PatchParams::default();
    for wrong in [json!("true"), json!(1), json!({})] {
        let status = json!({"status": {"initialization": {"provisioned": wrong}}});
        acme(&env)
            .patch_status("infra", &params, &Patch::Merge(&status))
            .await
            .unwrap();
        let cluster = until(&env, "c", "what is wrong", |c| {
            let all = c["status"]["conditions"].as_array().into_iter().flatten();
            let mut of_type = all.filter(|one| one["type"] == "InfrastructureReady");
            of_type.any(|one| one["message"].to_string().contains("status.initialization.provisioned"))
        })
        .await;
        assert!(!provisioned(&cluster));
    }
    let held = json!({"metadata": {"finalizers": ["acme.example.io/hold"]}});
    acme(&env).patch("infra", &params, &Patch::Merge(&held)).await.unwrap();
    acme(&env).delete("infra", &DeleteParams::default()).await.unwrap();
    provision(&env, "infra", "10.0.0.1").await;
    env.rests().await;
    let cluster = until(&env, "c", "the Cluster", |_| true).await;
    assert!(!provisioned(&cluster));
    assert_eq!(cluster["spec"].get("controlPlaneEndpoint"), None);
}
