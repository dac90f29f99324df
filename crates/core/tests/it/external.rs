//! Kinds of infrastructure that have no controller at all: a client outside writes them, and the Cluster controller reads them by
//! the contract that their definitions name.

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use windlass_api::core::Cluster;

use crate::env::{Env, api};

const GROUP: &str = "infrastructure.example.org";

/// A kind that nobody knew when this was compiled, with nobody who reconciles it.
#[derive(Clone, Copy)]
struct Provider {
    kind: &'static str,
    version: &'static str,
    plural: &'static str,
    label: (&'static str, &'static str),
    /// Where it says that it is ready.
    ready: [&'static str; 2],
}

/// By the present contract, in a version of its own counting.
const TERRA: Provider = Provider {
    kind: "TerraCluster",
    version: "v1",
    plural: "terraclusters",
    label: ("cluster.x-k8s.io/v1beta2", "v1alpha1_v1"),
    ready: ["initialization", "provisioned"],
};

/// By the contract before, and no other.
const LEGACY: Provider = Provider {
    kind: "LegacyCluster",
    version: "v1beta1",
    plural: "legacyclusters",
    label: ("cluster.x-k8s.io/v1beta1", "v1beta1"),
    ready: ["ready", ""],
};

impl Provider {
    /// The definition: a schema that knows nothing of who manages the objects.
    fn definition(self) -> Value {
        let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = |name: &str, storage: bool| {
            json!({
                "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
            })
        };
        let mut versions = vec![version(self.version, true)];
        if self.label.1.contains("v1alpha1") {
            versions.push(version("v1alpha1", false));
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{GROUP}", self.plural), "labels": {(self.label.0): self.label.1}},
            "spec": {
                "group": GROUP, "scope": "Namespaced", "versions": versions,
                "names": {"kind": self.kind, "listKind": format!("{}List", self.kind), "plural": self.plural,
                    "singular": self.kind.to_lowercase()},
            },
        })
    }

    fn api(self, env: &Env) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(GROUP, self.version, self.kind);
        Api::namespaced_with(
            env.client.clone(),
            "default",
            &ApiResource::from_gvk_with_plural(&gvk, self.plural),
        )
    }

    /// An object as its external manager makes it.
    async fn create(self, env: &Env, name: &str, spec: Value, finalizers: Value) {
        let object = json!({
            "apiVersion": format!("{GROUP}/{}", self.version), "kind": self.kind,
            "metadata": {"name": name, "finalizers": finalizers, "annotations": {"cluster.x-k8s.io/managed-by": "terraform"}},
            "spec": spec,
        });
        let object = serde_json::from_value(object).unwrap();
        self.api(env).create(&PostParams::default(), &object).await.unwrap();
    }

    async fn spec(self, env: &Env, name: &str, spec: Value) {
        let patch = json!({ "spec": spec });
        let params = PatchParams::default();
        self.api(env).patch(name, &params, &Patch::Merge(&patch)).await.unwrap();
    }

    async fn status(self, env: &Env, name: &str, status: Value) {
        let patch = json!({ "status": status });
        let params = PatchParams::default();
        self.api(env)
            .patch_status(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    /// Says in its contract's words whether the infrastructure is there.
    async fn ready(self, env: &Env, name: &str, ready: bool) {
        let status = match self.ready {
            [field, ""] => json!({ (field): ready }),
            [outer, field] => json!({ (outer): { (field): ready } }),
        };
        self.status(env, name, status).await;
    }

    async fn refer(self, env: &Env, cluster: &str, name: &str) {
        let reference = json!({"apiGroup": GROUP, "kind": self.kind, "name": name});
        env.create::<Cluster>(json!({
            "metadata": {"name": cluster, "annotations": {"cluster.x-k8s.io/managed-by": "also here"}},
            "spec": {"infrastructureRef": reference},
        }))
        .await;
    }

    async fn get(self, env: &Env, name: &str) -> Value {
        serde_json::to_value(self.api(env).get(name).await.unwrap()).unwrap()
    }

    /// Waits until the Cluster has adopted the object.
    async fn adopted(self, env: &Env, name: &str, by: &str) {
        let objects = self.api(env);
        env.until_in(&objects, "the owner", |all: &[DynamicObject]| {
            let object = all.iter().find(|object| object.metadata.name.as_deref() == Some(name));
            let owners = object.and_then(|object| object.metadata.owner_references.as_ref());
            owners.is_some_and(|owners| owners.iter().any(|owner| owner.name == by))
        })
        .await;
    }

    /// How often a controller wrote objects of this kind: nobody else applies here, and refusals count.
    fn writes(self, env: &Env) -> u64 {
        let counts = env.server.counters().snapshot();
        let ours = counts
            .iter()
            .filter(|(key, _)| key.resource == self.plural && ["apply", "update"].contains(&key.verb));
        ours.map(|(_, count)| count).sum()
    }
}

fn endpoint(host: &str) -> Value {
    json!({"controlPlaneEndpoint": {"host": host, "port": 6443}})
}

/// The Cluster once it is as `done` says.
async fn until(env: &Env, name: &str, what: &str, done: impl Fn(&Value) -> bool) -> Value {
    let mut found = Value::Null;
    env.until::<Cluster>(what, |all| {
        let mut values = all.iter().map(|cluster| serde_json::to_value(cluster).unwrap());
        found = values
            .find(|cluster| cluster["metadata"]["name"] == name)
            .unwrap_or_default();
        done(&found)
    })
    .await;
    found
}

async fn phase(env: &Env, name: &str, phase: &str) -> Value {
    until(env, name, phase, |cluster| cluster["status"]["phase"] == phase).await
}

fn condition(cluster: &Value, type_: &str) -> Value {
    let mut all = cluster["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|one| one["type"] == type_).cloned().unwrap_or_default()
}

/// The message of a condition, once it is this.
async fn says(env: &Env, name: &str, type_: &str, message: &str) -> Value {
    until(env, name, &format!("{type_}: {message}"), |cluster| {
        condition(cluster, type_)["message"] == message
    })
    .await
}

/// Waits until nobody looks at a Cluster any more: mere words may be held back for three seconds, and then it is over.
async fn rests(env: &Env) {
    let work = || (env.reconciles("cluster"), env.server.counters().writes());
    let (mut before, mut quiet, mut rounds) = (work(), 0, 0);
    while quiet < 3 {
        env.quiet().await;
        let now = work();
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
        rounds += 1;
        assert!(rounds < 20, "the controller does not come to rest");
    }
}

fn provisioned(cluster: &Value) -> bool {
    cluster["status"]["initialization"]["infrastructureProvisioned"] == true
}

// EX-004, EX-005, EX-032, EX-043, EX-044, EX-047, EX-048, EX-054, EX-055, EX-056, EX-095: a kind without any controller, by either
// contract, driven from outside.
#[tokio::test]
async fn a_client_outside_brings_a_cluster_up() {
    let domains = json!([{"name": "b"}, {"name": "a", "controlPlane": true, "attributes": {"rack": "1"}}]);
    let mapped = json!({"b": {}, "a": {"controlPlane": true, "attributes": {"rack": "1"}}});
    for (provider, domains, field) in [
        (TERRA, domains, "status.initialization.provisioned"),
        (LEGACY, mapped, "status.ready"),
    ] {
        let env = Env::empty().await;
        env.define(provider.definition()).await;
        env.run_cluster_controller().await;
        provider
            .create(&env, "infra", json!({"network": "n-1"}), json!([]))
            .await;
        provider.refer(&env, "d", "infra").await;
        provider.adopted(&env, "infra", "d").await;
        let waits = format!("{} infra: {field} is false", provider.kind);
        let cluster = says(&env, "d", "InfrastructureReady", &waits).await;
        assert_eq!(cluster["status"]["phase"], "Provisioning");
        assert!(!provisioned(&cluster));

        provider.spec(&env, "infra", endpoint("10.0.0.1")).await;
        provider
            .status(&env, "infra", json!({ "failureDomains": domains }))
            .await;
        let other = if provider.ready[1].is_empty() { TERRA } else { LEGACY };
        other.clone_ready_of(provider, &env).await;
        env.quiet().await;
        let cluster = phase(&env, "d", "Provisioning").await;
        assert!(
            !provisioned(&cluster),
            "the field of another contract counts for nothing"
        );
        assert_eq!(cluster["spec"].get("controlPlaneEndpoint"), None);
        assert_eq!(cluster["status"].get("failureDomains"), None);

        provider.ready(&env, "infra", true).await;
        let cluster = phase(&env, "d", "Provisioned").await;
        assert!(provisioned(&cluster));
        assert_eq!(
            cluster["spec"]["controlPlaneEndpoint"],
            json!({"host": "10.0.0.1", "port": 6443})
        );
        assert_eq!(
            cluster["status"]["failureDomains"],
            json!([{"name": "a", "controlPlane": true, "attributes": {"rack": "1"}}, {"name": "b", "controlPlane": false}])
        );
        assert_eq!(condition(&cluster, "InfrastructureReady")["status"], "True");
        env.quiet().await;
        is_only_adopted(&provider.get(&env, "infra").await, "d");
        assert_eq!(provider.writes(&env), 1, "adopted once, and never written again");
    }
}

impl Provider {
    /// Writes what this contract calls ready to an object of a kind by another one.
    async fn clone_ready_of(self, other: Self, env: &Env) {
        let as_other = Self {
            ready: self.ready,
            ..other
        };
        as_other.ready(env, "infra", true).await;
    }
}

/// Owner and label are there, by the Cluster controller's field manager alone, which has nothing else on the object.
fn is_only_adopted(object: &Value, cluster: &str) {
    let owners = object["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners.len(), 1);
    assert_eq!(
        (&owners[0]["kind"], &owners[0]["name"], &owners[0]["controller"]),
        (&json!("Cluster"), &json!(cluster), &json!(true))
    );
    assert_eq!(object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], cluster);
    assert_eq!(
        object["metadata"]["annotations"]["cluster.x-k8s.io/managed-by"],
        "terraform"
    );
    let managers = object["metadata"]["managedFields"].as_array().unwrap();
    for entry in managers
        .iter()
        .filter(|entry| entry["manager"].as_str().unwrap().starts_with("capi"))
    {
        assert_eq!(
            (&entry["manager"], &entry["operation"], entry.get("subresource")),
            (&json!("capi-manager"), &json!("Apply"), None)
        );
        let fields: Vec<&String> = entry["fieldsV1"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["f:metadata"]);
        let metadata: Vec<&String> = entry["fieldsV1"]["f:metadata"].as_object().unwrap().keys().collect();
        assert_eq!(metadata, ["f:labels", "f:ownerReferences"]);
    }
    let ours = |entry: &&Value| entry["manager"] == "capi-manager";
    assert_eq!(managers.iter().filter(ours).count(), 1);
}

// EX-051, EX-056: what was ready before its Cluster is taken over before anything else is said of the Cluster.
#[tokio::test]
async fn infrastructure_may_be_ready_before_its_cluster() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    TERRA.ready(&env, "infra", true).await;
    env.run_cluster_controller().await;
    let clusters: Api<Cluster> = api(&env.client);
    let start = clusters
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version;
    TERRA.refer(&env, "d", "infra").await;
    phase(&env, "d", "Provisioned").await;
    let mut events = clusters
        .watch(&WatchParams::default(), &start.unwrap())
        .await
        .unwrap()
        .boxed();
    let mut phases: Vec<String> = Vec::new();
    while phases.last().is_none_or(|phase| phase != "Provisioned") {
        if let Some(WatchEvent::Modified(cluster)) = events.try_next().await.unwrap()
            && cluster.metadata.name.as_deref() == Some("d")
        {
            phases.extend(cluster.status.and_then(|status| status.phase));
        }
    }
    assert_eq!(phases, ["Provisioned"], "one reconcile is enough");
    env.quiet().await;
    is_only_adopted(&TERRA.get(&env, "infra").await, "d");
}

// EX-051: the kind, its contract label and the object may come in any order, long after the Cluster has come to rest.
#[tokio::test]
async fn whatever_comes_last_wakes_the_cluster() {
    let env = Env::empty().await;
    env.run_cluster_controller().await;
    TERRA.refer(&env, "d", "infra").await;
    until(&env, "d", "that the kind is unknown", |cluster| {
        condition(cluster, "InfrastructureReady")["reason"] == "InternalError"
    })
    .await;
    rests(&env).await;
    let mut definition = TERRA.definition();
    let labels = definition["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("labels")
        .unwrap();
    env.define(definition).await;
    until(&env, "d", "that the contract is unknown", |cluster| {
        condition(cluster, "InfrastructureReady")["message"]
            .as_str()
            .is_some_and(|message| message.contains("contract labels"))
    })
    .await;
    rests(&env).await;
    env.label_definition("terraclusters.infrastructure.example.org", &labels)
        .await;
    says(&env, "d", "InfrastructureReady", "TerraCluster does not exist").await;
    rests(&env).await;
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    TERRA.adopted(&env, "infra", "d").await;
    rests(&env).await;
    TERRA.ready(&env, "infra", true).await;
    phase(&env, "d", "Provisioned").await;
    assert_eq!(env.failures("cluster"), 0);
}

// EX-044, EX-045: a provider moves to the present contract while its objects stay as they are.
#[tokio::test]
async fn a_new_contract_label_changes_what_is_read() {
    let env = Env::empty().await;
    env.define(LEGACY.definition()).await;
    env.run_cluster_controller().await;
    LEGACY.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    LEGACY
        .status(&env, "infra", json!({"initialization": {"provisioned": true}}))
        .await;
    LEGACY.refer(&env, "d", "infra").await;
    says(
        &env,
        "d",
        "InfrastructureReady",
        "LegacyCluster infra: status.ready is false",
    )
    .await;
    rests(&env).await;
    let labels = json!({"cluster.x-k8s.io/v1beta2": "v1beta1"});
    env.label_definition("legacyclusters.infrastructure.example.org", &labels)
        .await;
    let cluster = phase(&env, "d", "Provisioned").await;
    assert!(provisioned(&cluster));
    is_only_adopted(&LEGACY.get(&env, "infra").await, "d");
}

// EX-012, EX-028, EX-055: nobody writes anything, for as long as they like: no attempts, no failures, no time that runs out.
#[tokio::test]
async fn a_cluster_waits_for_events_and_for_nothing_else() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller().await;
    TERRA
        .create(
            &env,
            "infra",
            json!({"controlPlaneEndpoint": {"host": "10.0.0.1"}}),
            json!([]),
        )
        .await;
    TERRA.refer(&env, "d", "infra").await;
    let flag = "TerraCluster infra: status.initialization.provisioned is false";
    let waits = format!("{flag}, spec.controlPlaneEndpoint.port is not set");
    says(&env, "d", "InfrastructureReady", &waits).await;
    rests(&env).await;
    assert_eq!(env.failures("cluster"), 0);
    let cluster = says(&env, "d", "InfrastructureReady", &waits).await;
    assert_eq!(cluster["status"]["phase"], "Provisioning");
    assert_eq!(cluster["status"].get("initialization"), None);
    let object = TERRA.get(&env, "infra").await;
    assert_eq!(object.get("status"), None, "nobody makes it ready");

    TERRA
        .spec(
            &env,
            "infra",
            json!({"controlPlaneEndpoint": {"host": null, "port": 6443}}),
        )
        .await;
    let waits = format!("{flag}, spec.controlPlaneEndpoint.host is not set");
    says(&env, "d", "InfrastructureReady", &waits).await;
    for (odd, why) in [
        (
            json!("10.0.0.1:6443"),
            "spec.controlPlaneEndpoint is not an object with host and port",
        ),
        (
            json!({"host": "10.0.0.1", "port": "6443"}),
            "spec.controlPlaneEndpoint.port is not a number from 1 to 65535",
        ),
    ] {
        TERRA.spec(&env, "infra", json!({ "controlPlaneEndpoint": null })).await;
        TERRA.spec(&env, "infra", json!({ "controlPlaneEndpoint": odd })).await;
        says(&env, "d", "InfrastructureReady", &format!("{flag}, {why}")).await;
    }
    // EX-047: what is provisioned without an endpoint leaves the Cluster waiting for one.
    TERRA.ready(&env, "infra", true).await;
    let cluster = until(&env, "d", "that it is provisioned", provisioned).await;
    assert_eq!(cluster["status"]["phase"], "Provisioning");
    assert_eq!(condition(&cluster, "InfrastructureReady")["status"], "True");
    let lacks = "spec.controlPlaneEndpoint.port is not a number from 1 to 65535";
    says(
        &env,
        "d",
        "ControlPlaneInitialized",
        &format!(
            "Waiting for the first control plane machine to have status.nodeRef set\n\
             Cluster spec.controlPlaneEndpoint is not set, TerraCluster infra: {lacks}"
        ),
    )
    .await;
    TERRA.spec(&env, "infra", endpoint("10.0.0.1")).await;
    phase(&env, "d", "Provisioned").await;
    assert_eq!(env.failures("cluster"), 0);
    assert_eq!(TERRA.writes(&env), 1);
}

// EX-046, EX-047, EX-049: two systems at one object, and no word of ours in it.
#[tokio::test]
async fn whatever_others_fight_over_the_cluster_keeps_what_it_has() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller().await;
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    TERRA.ready(&env, "infra", true).await;
    TERRA.refer(&env, "d", "infra").await;
    phase(&env, "d", "Provisioned").await;
    for round in 0..25 {
        TERRA.spec(&env, "infra", endpoint(&format!("10.0.1.{round}"))).await;
        TERRA.ready(&env, "infra", round % 2 == 0).await;
        TERRA.spec(&env, "infra", endpoint(&format!("10.0.2.{round}"))).await;
    }
    TERRA
        .status(
            &env,
            "infra",
            json!({"initialization": {"provisioned": false}, "conditions": [{"type": "Ready", "status": "False",
                "reason": "Contested", "message": "two of us", "lastTransitionTime": "2026-02-01T00:00:00Z"}]}),
        )
        .await;
    let cluster = says(&env, "d", "InfrastructureReady", "two of us").await;
    let ready = condition(&cluster, "InfrastructureReady");
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("Contested"))
    );
    env.quiet().await;
    let cluster = phase(&env, "d", "Provisioned").await;
    assert!(provisioned(&cluster));
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"]["host"], "10.0.0.1");
    assert_eq!(TERRA.writes(&env), 1);
    assert_eq!(env.failures("cluster"), 0);
    rests(&env).await;
    is_only_adopted(&TERRA.get(&env, "infra").await, "d");
}

// EX-048, EX-049: what a Cluster may not carry does not keep it from saying the rest.
#[tokio::test]
async fn odd_status_of_a_provider_does_not_stop_the_cluster() {
    let env = Env::empty().await;
    env.define(LEGACY.definition()).await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller().await;
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    let odd = json!({
        "initialization": {"provisioned": true},
        "failureDomains": [{"name": "a"}, {"name": "a"}, {"name": ""}, 7, {"name": "x".repeat(300)}],
        "failureReason": "x", "failureMessage": "y".repeat(20_000),
        "conditions": [{"type": "Ready", "status": "False", "reason": "No good reason", "message": "z".repeat(50_000)}],
    });
    TERRA.status(&env, "infra", odd).await;
    TERRA.refer(&env, "d", "infra").await;
    let cluster = phase(&env, "d", "Provisioned").await;
    assert_eq!(
        cluster["status"]["failureDomains"],
        json!([{"name": "a", "controlPlane": false}])
    );
    assert_eq!(
        condition(&cluster, "InfrastructureReady")["reason"],
        "InvalidConditionReported"
    );

    LEGACY.create(&env, "infra", endpoint("10.0.0.2"), json!([])).await;
    let failed = json!({"ready": true, "failureReason": "CreateError", "failureMessage": "no quota", "conditions": [
        {"type": "Ready", "status": "False", "severity": "Error", "reason": "NoQuota", "message": "ask for more"}]});
    LEGACY.status(&env, "infra", failed).await;
    LEGACY.refer(&env, "e", "infra").await;
    let cluster = phase(&env, "e", "Provisioned").await;
    let deprecated = &cluster["status"]["deprecated"]["v1beta1"];
    assert_eq!(deprecated["failureReason"], "CreateError");
    assert_eq!(deprecated["failureMessage"], "LegacyCluster infra: no quota");
    let ready = condition(&cluster, "InfrastructureReady");
    assert_eq!(
        (&ready["reason"], &ready["message"]),
        (&json!("NoQuota"), &json!("ask for more"))
    );
    assert_eq!(env.failures("cluster"), 0);
}

// The external side takes its object away first, brings it back, and the Cluster takes nothing ill.
#[tokio::test]
async fn an_object_that_its_maker_deletes_is_not_made_again() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller().await;
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    TERRA.ready(&env, "infra", true).await;
    TERRA.refer(&env, "d", "infra").await;
    phase(&env, "d", "Provisioned").await;
    TERRA.api(&env).delete("infra", &DeleteParams::default()).await.unwrap();
    let gone = "TerraCluster has been deleted while the cluster still exists";
    let cluster = says(&env, "d", "InfrastructureReady", gone).await;
    assert_eq!(condition(&cluster, "InfrastructureReady")["reason"], "ObjectDeleted");
    env.quiet().await;
    let cluster = phase(&env, "d", "Provisioned").await;
    assert!(provisioned(&cluster));
    assert!(
        TERRA
            .api(&env)
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert_eq!(TERRA.writes(&env), 1);

    TERRA.create(&env, "infra", endpoint("10.0.0.7"), json!([])).await;
    TERRA.adopted(&env, "infra", "d").await;
    let waits = "TerraCluster infra: status.initialization.provisioned is false";
    let cluster = says(&env, "d", "InfrastructureReady", waits).await;
    assert!(provisioned(&cluster));
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"]["host"], "10.0.0.1");

    // And once more, while the Cluster itself is being deleted.
    TERRA.api(&env).delete("infra", &DeleteParams::default()).await.unwrap();
    says(&env, "d", "InfrastructureReady", gone).await;
    let clusters: Api<Cluster> = api(&env.client);
    clusters.delete("d", &DeleteParams::default()).await.unwrap();
    env.until::<Cluster>("the end of the Cluster", |all| {
        all.iter().all(|cluster| cluster.metadata.name.as_deref() != Some("d"))
    })
    .await;
    assert_eq!(env.failures("cluster"), 0);
}

// EX-050, EX-063, EX-085: a finalizer of the external side holds the Cluster, which names it.
#[tokio::test]
async fn a_foreign_finalizer_holds_the_cluster_and_is_named() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller().await;
    let finalizers = json!(["terra.example.org/teardown", "a.example.org/audit"]);
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), finalizers).await;
    TERRA.refer(&env, "d", "infra").await;
    TERRA.adopted(&env, "infra", "d").await;
    let clusters: Api<Cluster> = api(&env.client);
    clusters.delete("d", &DeleteParams::default()).await.unwrap();
    let waits = "Waiting for TerraCluster infra to be deleted, it is held by";
    let both = format!("{waits} finalizers a.example.org/audit, terra.example.org/teardown");
    let cluster = says(&env, "d", "Deleting", &both).await;
    assert_eq!(
        condition(&cluster, "Deleting")["reason"],
        "WaitingForInfrastructureDeletion"
    );
    rests(&env).await;
    let free = |left: Value| json!({"metadata": {"finalizers": left}});
    let params = PatchParams::default();
    let one = free(json!(["terra.example.org/teardown"]));
    TERRA
        .api(&env)
        .patch("infra", &params, &Patch::Merge(&one))
        .await
        .unwrap();
    says(
        &env,
        "d",
        "Deleting",
        &format!("{waits} finalizer terra.example.org/teardown"),
    )
    .await;
    let none = free(Value::Null);
    TERRA
        .api(&env)
        .patch("infra", &params, &Patch::Merge(&none))
        .await
        .unwrap();
    env.until::<Cluster>("the end of the Cluster", |all| {
        all.iter().all(|cluster| cluster.metadata.name.as_deref() != Some("d"))
    })
    .await;
    let deletes = env.server.counters().snapshot();
    let asked: u64 = deletes
        .iter()
        .filter(|(key, _)| key.resource == "terraclusters" && key.subresource.is_empty() && key.verb == "delete")
        .map(|(_, count)| count)
        .sum();
    assert_eq!(asked, 1, "it is asked to go once");
}

// EX-032: a tool that replaces its object as a whole loses the owner; the Cluster puts it back, once for each time.
#[tokio::test]
async fn a_replaced_object_is_adopted_again() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller().await;
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    TERRA.refer(&env, "d", "infra").await;
    TERRA.adopted(&env, "infra", "d").await;
    for round in 2..5 {
        let mut object = TERRA.api(&env).get("infra").await.unwrap();
        object.metadata.owner_references = None;
        object.metadata.labels = None;
        object.metadata.managed_fields = None;
        TERRA
            .api(&env)
            .replace("infra", &PostParams::default(), &object)
            .await
            .unwrap();
        TERRA.adopted(&env, "infra", "d").await;
        env.quiet().await;
        let applied: u64 = env
            .server
            .counters()
            .snapshot()
            .iter()
            .filter(|(key, _)| key.resource == "terraclusters" && key.subresource.is_empty() && key.verb == "apply")
            .map(|(_, count)| count)
            .sum();
        assert_eq!(applied, round);
    }
    is_only_adopted(&TERRA.get(&env, "infra").await, "d");
}

// EX-052 from this side: a paused Cluster takes nothing over and adopts nothing; what was written meanwhile counts afterwards.
#[tokio::test]
async fn a_paused_cluster_looks_later() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller().await;
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    TERRA.ready(&env, "infra", true).await;
    let reference = json!({"apiGroup": GROUP, "kind": "TerraCluster", "name": "infra"});
    env.create::<Cluster>(json!({"metadata": {"name": "d"}, "spec": {"paused": true, "infrastructureRef": reference}}))
        .await;
    until(&env, "d", "that it is paused", |cluster| {
        condition(cluster, "Paused")["status"] == "True"
    })
    .await;
    env.quiet().await;
    assert_eq!(TERRA.writes(&env), 0);
    env.patch::<Cluster>("d", json!({"spec": {"paused": false}})).await;
    phase(&env, "d", "Provisioned").await;
    TERRA.adopted(&env, "infra", "d").await;
}

// EX-008, EX-013, EX-054, EX-058, EX-092: the switch is the infrastructure provider's alone.
#[test]
fn no_controller_of_ours_knows_the_annotation() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut read = 0;
    let mut folders: Vec<_> = [
        "core",
        "core-topology",
        "topology",
        "controlplane-kubeadm",
        "bootstrap-kubeadm",
        "remote",
    ]
    .map(|name| crates.join(name).join("src"))
    .into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "tests" {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                read += 1;
                for word in ["externally_managed", "MANAGED_BY", "x-k8s.io/managed-by"] {
                    let used = text
                        .lines()
                        .any(|line| line.contains(word) && !line.contains("REPLICAS_MANAGED_BY"));
                    assert!(!used, "{} speaks of {word}", path.display());
                }
            }
        }
    }
    assert!(read > 100, "{read} files are too few to be all of them");
}
