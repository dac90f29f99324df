//! Manifests in v1beta1, as most people have them.

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_manager::FeatureGates;
use windlass_preview::adopt::{Trial, adopt};
use windlass_preview::model::Verdict;
use windlass_preview::render::adoption;
use windlass_testkit::rest::differences;
use windlass_testkit::wait::{self, TIMEOUT};
use windlass_testkit::{ClusterOf, Env, NAMESPACE};

const MANIFESTS: &str = include_str!("older_manifests.yaml");
const FOREIGN: &str = include_str!("older_foreign.yaml");

/// Access to the objects of a kind in the version of an object.
fn in_its_version(env: &Env, object: &Value) -> Api<DynamicObject> {
    let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let (group, version) = api_version.split_once('/').unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(env.client().clone(), NAMESPACE, &resource)
}

fn core(env: &Env, kind: &str) -> Api<DynamicObject> {
    in_its_version(env, &json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": kind}))
}

/// Applies objects, each in its own version, as `kubectl apply --server-side` does. A real server needs a moment to know the conversion
/// webhook.
async fn apply(env: &Env, manifests: &str) {
    let documents: Vec<Value> = serde_saphyr::from_multiple(manifests).unwrap();
    for document in documents {
        let (api, name) = (
            in_its_version(env, &document),
            document["metadata"]["name"].as_str().unwrap(),
        );
        let parameters = PatchParams::apply("user").force();
        let (mut looks, mut last) = (wait::looks(), String::new());
        let applied = tokio::time::timeout(TIMEOUT, async {
            while let Err(error) = api.patch(name, &parameters, &Patch::Apply(&document)).await {
                assert!(
                    !matches!(&error, kube::Error::Api(status) if status.code == 422),
                    "{error}"
                );
                last = error.to_string();
                looks.tick().await;
            }
        })
        .await;
        applied.unwrap_or_else(|_| panic!("{name} cannot be applied: {last}"));
    }
}

/// Wakes all controllers twice at rest, and compares what is stored: an apply that changes nothing is allowed, as older versions are not
/// cached.
async fn assert_at_rest(env: &Env) {
    env.rest().await;
    env.prod("once").await;
    env.rest().await;
    let before = env.all().await;
    env.prod("twice").await;
    env.rest().await;
    let ignored = [
        "metadata.resourceVersion",
        "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration",
    ];
    let changed = differences(&before, &env.all().await, &ignored);
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

/// The references to templates in a class.
fn references<'a>(value: &'a Value, out: &mut Vec<&'a Value>) {
    match value {
        Value::Object(fields) => {
            out.extend(fields.get("ref"));
            fields.values().for_each(|field| references(field, out));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        _ => {}
    }
}

// TO-027, TO-052, TO-243, TO-375, CL-032, CL-033
#[tokio::test]
async fn a_cluster_of_v1beta1_manifests_comes_up_and_rests() {
    let env = Env::start().await;
    // Without infrastructure, the older version says that it is not ready, and the newer one does not say it.
    let bare = "{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: bare}, spec: {paused: true, infrastructureRef: \
                {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DevCluster, name: none}}}";
    apply(&env, bare).await;
    let clusters = core(&env, "Cluster");
    let status = clusters.get("bare").await.unwrap().data["status"].take();
    assert_eq!(
        (&status["infrastructureReady"], &status["controlPlaneReady"]),
        (&json!(false), &json!(false))
    );
    let newer = serde_json::to_value(env.dynamic("Cluster").get("bare").await.unwrap()).unwrap();
    assert_eq!(newer["status"]["initialization"], Value::Null);
    assert_eq!(newer["spec"]["paused"], true);

    apply(&env, MANIFESTS).await;
    let class = serde_json::to_value(core(&env, "ClusterClass").get("old").await.unwrap()).unwrap();
    let mut found = Vec::new();
    references(&class["spec"], &mut found);
    assert_eq!(found.len(), 5);
    for reference in found {
        assert_eq!(reference["namespace"], NAMESPACE, "{reference}");
    }
    let cluster = ClusterOf::new("old", 1, 2);
    cluster.wait_running(&env).await;
    assert_at_rest(&env).await;
    assert_eq!(env.created("machines"), 3, "rolloutAfter replaces nothing");
    // A trial of a take-over compares objects in the version in which it has read them, whatever version is written.
    let trial = Trial {
        controllers: Vec::new(),
        gates: FeatureGates::default(),
        timeout: TIMEOUT,
    };
    let report = adopt(env.client().clone(), &trial).await.unwrap();
    assert_eq!(report.verdict(), Verdict::Same, "{}", adoption::text(&report));
    let older = clusters.get("old").await.unwrap();
    assert_eq!(older.data["status"]["infrastructureReady"], true);
    assert_eq!(older.data["spec"]["topology"]["class"], "old");

    // The class moves to the new version of its templates, and nothing else changes.
    let bumped = MANIFESTS.replace("x-k8s.io/v1beta1, kind:", "x-k8s.io/v1beta2, kind:");
    let bumped = bumped.replace(
        "apiVersion: controlplane.cluster.x-k8s.io/v1beta1\n        kind",
        "apiVersion: controlplane.cluster.x-k8s.io/v1beta2\n        kind",
    );
    let class = bumped
        .split("---")
        .find(|document| document.contains("kind: ClusterClass"))
        .unwrap();
    assert_eq!(class.matches("v1beta2").count(), 6);
    apply(&env, class).await;
    assert_at_rest(&env).await;
    assert_eq!(
        env.created("machines"),
        3,
        "the same objects in another version replace nothing"
    );
    env.stop().await;
}

/// Applies an object that the server must not take. Returns its words.
async fn refused(env: &Env, object: &Value) -> String {
    let (api, name) = (
        in_its_version(env, object),
        object["metadata"]["name"].as_str().unwrap(),
    );
    let parameters = PatchParams::apply("user").force();
    match api.patch(name, &parameters, &Patch::Apply(object)).await {
        Err(kube::Error::Api(status)) if [403, 422].contains(&status.code) => status.message.clone(),
        other => panic!("it is not refused: {other:?}"),
    }
}

/// The kinds of the infrastructure have no definition, as where a provider is installed later.
#[tokio::test]
async fn v1beta1_manifests_for_another_infrastructure_are_taken_and_wrong_ones_are_not() {
    let env = Env::start().await;
    apply(&env, FOREIGN).await;
    let class = env.dynamic("ClusterClass").get("two-systems").await.unwrap();
    let check = &class.data["spec"]["controlPlane"]["healthCheck"];
    assert_eq!(check["checks"]["nodeStartupTimeoutSeconds"], 180);
    assert_eq!(check["remediation"]["triggerIf"]["unhealthyLessThanOrEqualTo"], "33%");
    let conditions = check["checks"]["unhealthyNodeConditions"].as_array().unwrap();
    assert_eq!((conditions.len(), &conditions[0]["timeoutSeconds"]), (2, &json!(300)));
    let older = core(&env, "ClusterClass").get("two-systems").await.unwrap();
    let check = &older.data["spec"]["controlPlane"]["machineHealthCheck"];
    assert_eq!(
        (&check["nodeStartupTimeout"], &check["maxUnhealthy"]),
        (&json!("3m0s"), &json!("33%"))
    );
    let cluster = env.dynamic("Cluster").get("two-systems").await.unwrap();
    let topology = &cluster.data["spec"]["topology"];
    assert_eq!(topology["classRef"]["name"], "two-systems");
    assert_eq!(topology["workers"]["machineDeployments"].as_array().unwrap().len(), 3);
    let older = core(&env, "Cluster").get("two-systems").await.unwrap();
    let workers = &older.data["spec"]["topology"]["workers"]["machineDeployments"];
    assert_eq!(workers[0]["metadata"]["labels"]["stage"], "production");
    assert_eq!(older.data["spec"]["topology"]["class"], "two-systems");

    let documents: Vec<Value> = serde_saphyr::from_multiple(FOREIGN).unwrap();
    let changed = |document: usize, pointer: &str, value: Value| {
        let mut object = documents[document].clone();
        object["metadata"]["name"] = json!("wrong");
        *object.pointer_mut(pointer).unwrap() = value;
        object
    };
    let definition = "/spec/patches/1/definitions/0";
    for (object, word) in [
        // A path in the quotation marks of a text editor, a variable of another name, and a patch that says not of what it is.
        (
            changed(
                0,
                &format!("{definition}/jsonPatches/0/path"),
                json!("“/spec/template/spec/size”"),
            ),
            "path",
        ),
        (
            changed(
                0,
                &format!("{definition}/jsonPatches/0/valueFrom/variable"),
                json!("machineSize"),
            ),
            "machineSize",
        ),
        (
            changed(0, &format!("{definition}/selector/matchResources"), json!({})),
            "no selector enabled",
        ),
        (
            changed(0, "/spec/controlPlane/machineHealthCheck/maxUnhealthy", json!("some")),
            "some",
        ),
        (
            changed(
                1,
                "/spec/topology/workers/machineDeployments/2/class",
                json!("beos-worker"),
            ),
            "beos-worker",
        ),
        (changed(1, "/spec/topology/version", json!("newest")), "newest"),
    ] {
        let words = refused(&env, &object).await;
        assert!(words.contains(word), "{word}: {words}");
        let stored = in_its_version(&env, &object).get_opt("wrong").await.unwrap();
        assert!(stored.is_none(), "{word}");
    }
    env.stop().await;
}
