//! External management of an InfraCluster can change in one direction only, for every user and every kind of request.

use http::header::CONTENT_TYPE;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::Status;
use serde_json::{Value, json};
use windlass_api::annotations::MANAGED_BY;
use windlass_api::core::Cluster;
use windlass_testkit::{CLASS, ClusterOf, Env, Kind, NAMESPACE, Objects};

const DEV_CLUSTERS: &str = "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/devclusters";
const REFUSAL: &str = "removal of externally managed annotation is not allowed";

/// A DevCluster; externally managed if the annotations say so.
pub(crate) fn dev_cluster(name: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "DevCluster",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations},
        "spec": {"backend": {"inMemory": {}}, "controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}},
    })
}

fn dev_clusters(objects: &Objects) -> Api<DynamicObject> {
    objects.dynamic("DevCluster")
}

async fn get(objects: &Objects, name: &str) -> Value {
    let object = dev_clusters(objects).get(name).await.unwrap();
    serde_json::to_value(object).unwrap()
}

async fn patch<P: serde::Serialize + std::fmt::Debug>(
    objects: &Objects,
    name: &str,
    parameters: &PatchParams,
    patch: &Patch<P>,
) -> Result<(), kube::Error> {
    dev_clusters(objects).patch(name, parameters, patch).await.map(drop)
}

async fn json_patch(objects: &Objects, name: &str, operations: &Value) -> Result<(), kube::Error> {
    let request = http::Request::patch(format!("{DEV_CLUSTERS}/{name}"))
        .header(CONTENT_TYPE, "application/json-patch+json")
        .body(operations.to_string().into_bytes())
        .unwrap();
    objects.client().request::<Value>(request).await.map(drop)
}

fn refusal(result: Result<(), kube::Error>) -> Box<Status> {
    match result {
        Err(kube::Error::Api(status)) => status,
        other => panic!("not a refusal: {other:?}"),
    }
}

/// Asserts a 422 with the field, the reason and the remedy.
fn is_refused(how: &str, result: Result<(), kube::Error>) {
    let status = refusal(result);
    assert_eq!(
        (status.code, status.reason.as_str()),
        (422, "Invalid"),
        "{how}: {status:?}"
    );
    let causes = status.details.map(|details| details.causes).unwrap_or_default();
    assert_eq!(causes.len(), 1, "{how}: {causes:?}");
    assert_eq!(causes[0].field, "metadata.annotations", "{how}");
    for text in [&status.message, &causes[0].message] {
        assert!(text.contains(REFUSAL), "{how}: {text}");
        assert!(
            text.contains("delete the object and create it again without the annotation"),
            "{how}: {text}"
        );
    }
}

/// Tries every way to remove the annotation; the object stays unchanged.
pub(crate) async fn the_annotation_stays(objects: &Objects) {
    let owner = PatchParams::apply("terraform");
    let external = dev_cluster("external", &json!({MANAGED_BY: "terraform", "other": "x"}));
    patch(objects, "external", &owner, &Patch::Apply(&external))
        .await
        .unwrap();
    let before = get(objects, "external").await;
    let anyone = PatchParams::default();

    // As `kubectl annotate devcluster external cluster.x-k8s.io/managed-by-`.
    let without = json!({"metadata": {"annotations": {MANAGED_BY: null}}});
    is_refused(
        "merge patch",
        patch(objects, "external", &anyone, &Patch::Merge(&without)).await,
    );
    let all = json!({"metadata": {"annotations": null}});
    is_refused(
        "merge patch of all",
        patch(objects, "external", &anyone, &Patch::Merge(&all)).await,
    );
    let remove = json!([{"op": "remove", "path": "/metadata/annotations/cluster.x-k8s.io~1managed-by"}]);
    is_refused("JSON patch", json_patch(objects, "external", &remove).await);
    let mut replaced: DynamicObject = serde_json::from_value(before.clone()).unwrap();
    replaced.metadata.annotations.as_mut().unwrap().remove(MANAGED_BY);
    let parameters = PostParams::default();
    is_refused(
        "replace",
        dev_clusters(objects)
            .replace("external", &parameters, &replaced)
            .await
            .map(drop),
    );
    // The owner of the field omits it.
    let applied = dev_cluster("external", &json!({"other": "x"}));
    is_refused(
        "apply",
        patch(objects, "external", &owner, &Patch::Apply(&applied)).await,
    );
    is_refused(
        "apply",
        patch(objects, "external", &owner.clone().force(), &Patch::Apply(&applied)).await,
    );
    let dry = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    is_refused(
        "dry run",
        patch(objects, "external", &dry, &Patch::Merge(&without)).await,
    );
    // A label does not replace it (EX-015).
    let label = json!({"metadata": {"labels": {MANAGED_BY: "x"}, "annotations": {MANAGED_BY: null}}});
    is_refused(
        "label",
        patch(objects, "external", &anyone, &Patch::Merge(&label)).await,
    );
    assert_eq!(get(objects, "external").await, before);
}

/// Changes the value, adds the annotation, writes status and other fields; creates and deletes.
pub(crate) async fn all_else_passes(objects: &Objects) {
    let anyone = PatchParams::default();
    let merge = async |name: &str, change: Value| patch(objects, name, &anyone, &Patch::Merge(&change)).await;
    objects
        .apply(&dev_cluster("free", &json!({MANAGED_BY: "terraform"})))
        .await;
    for value in ["crossplane", "", "false"] {
        merge("free", json!({"metadata": {"annotations": {MANAGED_BY: value}}}))
            .await
            .unwrap();
        let stored = get(objects, "free").await;
        assert_eq!(stored["metadata"]["annotations"][MANAGED_BY], value);
    }
    let spec = json!({"spec": {"controlPlaneEndpoint": {"host": "10.0.0.2", "port": 6443}}, "metadata": {"labels": {"a": "b"}}});
    merge("free", spec).await.unwrap();
    let status = json!({"status": {"initialization": {"provisioned": true}}});
    dev_clusters(objects)
        .patch_status("free", &anyone, &Patch::Merge(&status))
        .await
        .unwrap();
    // A write of the status cannot remove it: metadata is not written there.
    let sly =
        json!({"metadata": {"annotations": {MANAGED_BY: null}}, "status": {"initialization": {"provisioned": true}}});
    dev_clusters(objects)
        .patch_status("free", &anyone, &Patch::Merge(&sly))
        .await
        .unwrap();
    assert_eq!(
        get(objects, "free").await["metadata"]["annotations"][MANAGED_BY],
        "false"
    );
    objects.apply(&dev_cluster("plain", &json!({"a": "b"}))).await;
    merge("plain", json!({"metadata": {"annotations": {"a": null}}}))
        .await
        .unwrap();
    merge("plain", json!({"metadata": {"annotations": {MANAGED_BY: "x"}}}))
        .await
        .unwrap();
    for name in ["free", "plain"] {
        dev_clusters(objects)
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }
}

/// The warnings of a merge patch of a DevCluster.
pub(crate) async fn warnings(objects: &Objects, name: &str, change: &Value) -> Vec<String> {
    let request = http::Request::patch(format!("{DEV_CLUSTERS}/{name}"))
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .body(Body::from(change.to_string().into_bytes()))
        .unwrap();
    let answer = objects.client().send(request).await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    let texts = answer.headers().get_all("warning").iter();
    texts.map(|text| text.to_str().unwrap().replace("\\\"", "\"")).collect()
}

// EX-079, EX-080, EX-015, T5
#[tokio::test]
async fn the_annotation_cannot_be_removed() {
    let env = Env::builder().without_controllers().start().await;
    the_annotation_stays(&env).await;
    env.stop().await;
}

// EX-081, EX-082, EX-084, T6
#[tokio::test]
async fn another_value_the_annotation_itself_and_everything_else_pass() {
    let env = Env::builder().without_controllers().start().await;
    all_else_passes(&env).await;
    env.stop().await;
}

// EX-082, EX-085, T7
#[tokio::test]
async fn taking_over_a_live_object_warns_about_its_finalizer() {
    let env = Env::builder().without_controllers().start().await;
    env.apply(&dev_cluster("live", &json!({}))).await;
    let kept = json!(["devcluster.infrastructure.cluster.x-k8s.io", "x.example.com/theirs"]);
    env.merge("DevCluster", "live", &json!({"metadata": {"finalizers": kept}}))
        .await;
    let annotate = json!({"metadata": {"annotations": {MANAGED_BY: "terraform"}}});
    let told = warnings(&env, "live", &annotate).await.join("\n");
    for words in [
        "will not remove devcluster.infrastructure.cluster.x-k8s.io, x.example.com/theirs",
        "kubectl patch devclusters.infrastructure.cluster.x-k8s.io live -n default --type json",
        r#"{"op":"test","path":"/metadata/finalizers/1","value":"x.example.com/theirs"}"#,
    ] {
        assert!(told.contains(words), "no {words:?} in {told:?}");
    }
    // A real server tries a patch on what its watch cache has, with admission, and again on what is stored. A list waits for the cache.
    dev_clusters(&env).list(&ListParams::default()).await.unwrap();
    assert_eq!(warnings(&env, "live", &annotate).await, [""; 0], "told once");
    // Only the person can do what the warning names.
    let finalizers = get(&env, "live").await["metadata"]["finalizers"].clone();
    assert_eq!(finalizers, kept);
    // EX-079: not even during deletion.
    env.delete("DevCluster", "live").await;
    let without = json!({"metadata": {"annotations": {MANAGED_BY: null}}});
    is_refused(
        "while it is deleted",
        patch(&env, "live", &PatchParams::default(), &Patch::Merge(&without)).await,
    );
    env.merge("DevCluster", "live", &json!({"metadata": {"finalizers": null}}))
        .await;
    assert!(dev_clusters(&env).get_opt("live").await.unwrap().is_none());
    env.stop().await;
}

// EX-034, CL-007, CL-105
#[tokio::test]
async fn a_wrong_spec_is_refused_for_managed_and_external_objects_alike() {
    let env = Env::builder().without_controllers().start().await;
    let refused = async |annotations: Value| {
        let mut object = dev_cluster("wrong", &annotations);
        object["spec"]["controlPlaneEndpoint"]["port"] = json!(70_000);
        let created = env.try_apply(&object).await.map(drop);
        let status = refusal(created);
        (status.code, status.reason.clone(), status.message.clone())
    };
    let managed = refused(json!({})).await;
    assert_eq!(managed.0, 422, "{managed:?}");
    assert_eq!(managed, refused(json!({MANAGED_BY: "terraform"})).await);
    // Unset fields stay unset: no default acts for the provider.
    let mut bare = dev_cluster("bare", &json!({MANAGED_BY: "terraform"}));
    bare["spec"] = json!({"backend": {"inMemory": {}}});
    let stored = env.apply(&bare).await;
    assert_eq!(stored["spec"], bare["spec"]);
    env.stop().await;
}

// EX-065, EX-079: a template that loses the annotation.
#[tokio::test]
async fn a_class_that_loses_the_annotation_is_reported_on_the_cluster() {
    let env = Env::start().await;
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(CLASS).unwrap();
    let template = documents
        .iter_mut()
        .find(|object| object["kind"] == "DevClusterTemplate")
        .unwrap();
    template["spec"]["template"]["metadata"]["annotations"] = json!({MANAGED_BY: "terraform"});
    let mut other = template.clone();
    for document in &documents {
        env.apply(document).await;
    }
    let cluster = ClusterOf::new("lent", 1, 1);
    cluster.apply(&env).await;
    let named = env
        .wait_for::<Cluster>(&cluster.key(), "has made what it names", |cluster| {
            // A reference is written before its object exists.
            let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
            cluster.spec.infrastructure_ref.is_some()
                && conditions.any(|condition| condition.type_ == "TopologyReconciled" && condition.status == "True")
        })
        .await;
    let infra_cluster = named.spec.infrastructure_ref.unwrap().name;
    let before = get(&env, &infra_cluster).await;
    assert_eq!(before["metadata"]["annotations"][MANAGED_BY], "terraform");

    other["metadata"]["name"] = json!("without");
    other["spec"]["template"].as_object_mut().unwrap().remove("metadata");
    env.apply(&other).await;
    let class = json!({"spec": {"infrastructure": {"templateRef": {"name": "without"}}}});
    env.merge("ClusterClass", "quick-start", &class).await;
    env.wait_for::<Cluster>(&cluster.key(), "says why its topology is not reconciled", |cluster| {
        let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        let mut complaints = conditions.filter(|condition| condition.type_ == "TopologyReconciled");
        complaints.any(|condition| condition.status == "False" && condition.message.contains(REFUSAL))
    })
    .await;
    let after = get(&env, &infra_cluster).await;
    assert_eq!(after["metadata"]["annotations"][MANAGED_BY], "terraform");
    env.stop().await;
}

// A data folder that a manager over the network served before: the configuration has an address without a listener.
#[tokio::test]
async fn a_server_that_judges_in_process_asks_no_manager_that_is_gone() {
    let why = "a real server judges nothing in the process of a manager";
    if Kind::leaves_out(&[Kind::Embedded, Kind::Socket], why) {
        return;
    }
    let env = Env::builder().without_controllers().start().await;
    env.apply(&dev_cluster("left", &json!({ (MANAGED_BY): "terraform" })))
        .await;
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "windlass-validating-webhook-configuration"},
        "webhooks": [{
            "name": "validation.devcluster.infrastructure.cluster.x-k8s.io",
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {"url": "https://127.0.0.1:1/validate"},
            "rules": [{"apiGroups": ["infrastructure.cluster.x-k8s.io"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["devclusters"]}],
        }],
    });
    let all: Api<ValidatingWebhookConfiguration> = Api::all(env.client().clone());
    let configuration = serde_json::from_value(configuration).unwrap();
    all.create(&PostParams::default(), &configuration).await.unwrap();
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let unanswered = patch(&env, "left", &PatchParams::default(), &label).await;
    assert_eq!(refusal(unanswered).code, 500);

    let env = env.restart().await;
    patch(&env, "left", &PatchParams::default(), &label).await.unwrap();
    let away = Patch::Merge(json!({"metadata": {"annotations": {MANAGED_BY: null}}}));
    is_refused("in process", patch(&env, "left", &PatchParams::default(), &away).await);
    env.stop().await;
}
