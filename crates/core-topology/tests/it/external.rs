//! A class whose infrastructure template says that an external system manages the infrastructure.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tower::{BoxError, ServiceExt as _};
use windlass_testkit::Server;

use crate::env::{Env, condition};

const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";
const TEMPLATE: &str = "vsphere-prod-cluster-template";
const KIND: &str = "VSphereCluster";

/// The example, with the annotation in the template's metadata before there is a Cluster.
async fn apply_external_example(env: &Env) {
    let (templates, others): (Vec<Value>, Vec<Value>) = crate::env::documents(crate::env::VSPHERE)
        .into_iter()
        .partition(|object| object["metadata"]["name"] == TEMPLATE);
    for mut template in templates {
        template["spec"]["template"]["metadata"] = json!({"annotations": {(MANAGED_BY): "terraform"}});
        env.apply(template).await;
    }
    for object in others {
        env.apply(object).await;
    }
    env.apply(crate::env::cluster()).await;
    env.reconciled("ReconcileSucceeded").await;
}

async fn generated(env: &Env) -> Value {
    env.generated(KIND).await.remove(0)
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

/// What the external system writes into the object that the topology made.
async fn write_from_outside(env: &Env, name: &str) {
    let object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": KIND,
        "metadata": {"name": name, "namespace": "bar", "annotations": {"terraform.io/run": "17"},
            "labels": {"network": "n-1"}, "finalizers": ["terraform.io/teardown"]},
        "spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}, "thumbprint": "AA:BB"},
    });
    let params = PatchParams::apply("terraform");
    env.api(KIND)
        .patch(name, &params, &Patch::Apply(&object))
        .await
        .unwrap();
    env.status(KIND, name, json!({"ready": true})).await;
}

/// All of that is still there and still the external system's.
fn is_as_written(object: &Value) {
    let metadata = &object["metadata"];
    assert_eq!(metadata["annotations"][MANAGED_BY], "terraform");
    assert_eq!(metadata["annotations"]["terraform.io/run"], "17");
    assert_eq!(metadata["labels"]["network"], "n-1");
    assert_eq!(metadata["finalizers"], json!(["terraform.io/teardown"]));
    assert_eq!(
        object["spec"]["controlPlaneEndpoint"],
        json!({"host": "10.0.0.1", "port": 6443})
    );
    assert_eq!(object["spec"]["thumbprint"], "AA:BB");
    assert_eq!(object["status"], json!({"ready": true}));
    let managers = metadata["managedFields"].as_array().unwrap();
    let of = |manager: &str| managers.iter().find(|entry| entry["manager"] == manager).unwrap();
    assert!(
        of("terraform")["fieldsV1"]["f:spec"]
            .get("f:controlPlaneEndpoint")
            .is_some()
    );
    let topology = &of("capi-topology")["fieldsV1"];
    assert_eq!(
        topology["f:spec"],
        json!({"f:server": {}}),
        "only what the template has"
    );
    assert!(topology.get("f:status").is_none());
}

// EX-018, EX-065: the annotation comes from the template, and what the external manager writes beside it stays through changes
// of the class and an upgrade.
#[tokio::test]
async fn a_class_gives_an_externally_managed_object_and_leaves_the_rest_to_its_manager() {
    let env = Env::start().await;
    apply_external_example(&env).await;
    let object = generated(&env).await;
    assert_eq!(object["metadata"]["annotations"][MANAGED_BY], "terraform");
    let object_name = name(&object);
    write_from_outside(&env, &object_name).await;
    is_as_written(&generated(&env).await);

    // The template changes: its own field arrives, the others stay.
    let patch = json!({"spec": {"template": {"spec": {"server": "other.example.com"}}}});
    env.merge("VSphereClusterTemplate", TEMPLATE, patch).await;
    let changed = env
        .wait("the template's new value", async || {
            let object = env.get(KIND, &object_name).await?;
            (object["spec"]["server"] == "other.example.com").then_some(object)
        })
        .await;
    is_as_written(&changed);

    // The class names another template.
    let another = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "VSphereClusterTemplate",
        "metadata": {"name": "another", "namespace": "bar"},
        "spec": {"template": {"metadata": {"annotations": {(MANAGED_BY): "terraform"}}, "spec": {"server": "third.example.com"}}},
    });
    env.apply(another).await;
    let reference = json!({"spec": {"infrastructure": {"templateRef": {"name": "another"}}}});
    env.merge("ClusterClass", "mixed", reference).await;
    let changed = env
        .wait("the other template's value", async || {
            let object = env.get(KIND, &object_name).await?;
            (object["spec"]["server"] == "third.example.com").then_some(object)
        })
        .await;
    is_as_written(&changed);

    // An upgrade.
    let version = changed["metadata"]["resourceVersion"].clone();
    let control_plane = name(&env.generated("KubeadmControlPlane").await[0]);
    let running = |version: &str| {
        json!({
            "versions": [{"version": version, "replicas": 3}], "replicas": 3, "upToDateReplicas": 3,
            "readyReplicas": 3, "availableReplicas": 3,
        })
    };
    env.status("KubeadmControlPlane", &control_plane, running("v1.31.1"))
        .await;
    env.merge("Cluster", "foo", json!({"spec": {"topology": {"version": "v1.32.0"}}}))
        .await;
    env.wait("the control plane's version", async || {
        let found = env.get("KubeadmControlPlane", &control_plane).await?;
        (found["spec"]["version"] == "v1.32.0").then_some(())
    })
    .await;
    env.status("KubeadmControlPlane", &control_plane, running("v1.32.0"))
        .await;
    env.reconciled("ReconcileSucceeded").await;
    let upgraded = generated(&env).await;
    is_as_written(&upgraded);
    assert_eq!(
        upgraded["metadata"]["resourceVersion"], version,
        "an upgrade does not touch it"
    );
    env.stop().await;
}

// EX-011, EX-065, EX-082, EX-096: a class without the annotation makes what it always made, and an annotation that a user puts
// on the object later stays.
#[tokio::test]
async fn an_annotation_put_on_by_hand_is_left_there() {
    let env = Env::start().await;
    env.apply_example().await;
    let object = generated(&env).await;
    assert!(object["metadata"]["annotations"].get(MANAGED_BY).is_none());
    let object_name = name(&object);
    let patch = json!({"metadata": {"annotations": {(MANAGED_BY): "crossplane"}}});
    env.merge(KIND, &object_name, patch).await;
    let patch = json!({"spec": {"template": {"spec": {"server": "other.example.com"}}}});
    env.merge("VSphereClusterTemplate", TEMPLATE, patch).await;
    let changed = env
        .wait("the template's new value", async || {
            let object = env.get(KIND, &object_name).await?;
            (object["spec"]["server"] == "other.example.com").then_some(object)
        })
        .await;
    assert_eq!(changed["metadata"]["annotations"][MANAGED_BY], "crossplane");
    env.stop().await;
}

const REFUSED: &str = "admission webhook \"validation.example.org\" denied the request: VSphereCluster \"x\" is invalid: \
    metadata.annotations: Invalid value: removal of externally managed annotation is not allowed";

/// A client whose server refuses to take the annotation away, as admission does; each refusal leaves its time.
fn guarded(server: &Server, refusals: Arc<Mutex<Vec<Instant>>>) -> kube::Client {
    let inner = server.service("windlass");
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (inner, refusals) = (inner.clone(), refusals.clone());
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await?.to_bytes();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let applies = parts.method == http::Method::PATCH && parts.uri.path().contains("/vsphereclusters/");
            if applies
                && parts.uri.query().is_some_and(|query| query.contains("capi-topology"))
                && !text.contains(MANAGED_BY)
            {
                refusals.lock().unwrap().push(Instant::now());
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422, "reason": "Invalid",
                    "message": REFUSED});
                let body = Full::from(status.to_string()).map_err(BoxError::from).boxed_unsync();
                let response = http::Response::builder()
                    .status(422)
                    .header("content-type", "application/json");
                return Ok::<_, BoxError>(response.body(body)?);
            }
            let request = http::Request::from_parts(parts, kube::client::Body::from(bytes.to_vec()));
            let answer = inner.oneshot(request).await.map_err(BoxError::from)?;
            Ok(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        }
    });
    kube::Client::new(service, "default")
}

// EX-065, EX-079: a class that loses the annotation is refused by the server: the Cluster says so in the server's words, attempts
// become rare, nothing is lost, and the class put right goes on at once.
#[tokio::test]
async fn a_refused_loss_of_the_annotation_is_reported_in_the_servers_words() {
    let refusals = Arc::new(Mutex::new(Vec::new()));
    let seen = refusals.clone();
    let env = Env::start_behind(|server| guarded(server, seen)).await;
    apply_external_example(&env).await;
    let object_name = name(&generated(&env).await);
    write_from_outside(&env, &object_name).await;
    let lost = json!({"spec": {"template": {"metadata": {"annotations": {(MANAGED_BY): null}}}}});
    env.merge("VSphereClusterTemplate", TEMPLATE, lost).await;
    let cluster = env.reconciled("ReconcileFailed").await;
    let reconciled = condition(&cluster, "TopologyReconciled").unwrap();
    assert_eq!(reconciled["status"], "False");
    let message = reconciled["message"].as_str().unwrap();
    assert!(message.contains(REFUSED), "{message}");
    assert!(message.contains(&object_name), "{message}");
    env.wait("attempts that become rare", async || {
        let times = refusals.lock().unwrap().clone();
        let rare = times
            .windows(2)
            .any(|pair| pair[1] - pair[0] > Duration::from_millis(500));
        rare.then_some(())
    })
    .await;
    let attempts = refusals.lock().unwrap().len();
    assert!(attempts < 30, "{attempts} attempts");
    is_as_written(&generated(&env).await);

    let back = json!({"spec": {"template": {"metadata": {"annotations": {(MANAGED_BY): "terraform"}}}}});
    env.merge("VSphereClusterTemplate", TEMPLATE, back).await;
    env.reconciled("ReconcileSucceeded").await;
    is_as_written(&generated(&env).await);
    env.stop().await;
}
