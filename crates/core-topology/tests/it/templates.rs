//! Templates of Machines: when a change replaces them, with an API server that decides what a change is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::BodyExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tower::{BoxError, ServiceExt as _};
use windlass_testkit::Server;

use crate::env::{Env, condition};

const ENTRY: &str = "topology.cluster.x-k8s.io/deployment-name";

pub(crate) async fn deployment(env: &Env) -> Value {
    let all = env.generated("MachineDeployment").await;
    all.into_iter()
        .find(|md| md["metadata"]["labels"][ENTRY] == "microsoft-1")
        .unwrap()
}

pub(crate) fn infrastructure(deployment: &Value) -> String {
    let name = &deployment["spec"]["template"]["spec"]["infrastructureRef"]["name"];
    name.as_str().unwrap().to_owned()
}

fn bootstrap(deployment: &Value) -> String {
    let name = &deployment["spec"]["template"]["spec"]["bootstrap"]["configRef"]["name"];
    name.as_str().unwrap().to_owned()
}

/// Wakes the topology, and waits until it has been looked at.
pub(crate) async fn touch(env: &Env, generation: i64) {
    let gates = json!([{"conditionType": format!("touched-{generation}")}]);
    env.merge("Cluster", "foo", json!({"spec": {"availabilityGates": gates}}))
        .await;
    env.reconciled("ReconcileSucceeded").await;
}

#[tokio::test]
async fn a_list_that_gets_shorter_replaces_the_template() {
    let env = Env::start().await;
    let class = "existing-boot-ref-windows";
    env.apply_example().await;
    let set = async |commands: Value| {
        let before = bootstrap(&deployment(&env).await);
        let patch = json!({"spec": {"template": {"spec": {"preKubeadmCommands": commands}}}});
        env.merge("KubeadmConfigTemplate", class, patch).await;
        let after = env.wait("another bootstrap template", async || {
            let after = bootstrap(&deployment(&env).await);
            (after != before).then_some(after)
        });
        (before.clone(), after.await)
    };
    let commands = async |name: &str| {
        let template = env.get("KubeadmConfigTemplate", name).await;
        template.map(|t| t["spec"]["template"]["spec"]["preKubeadmCommands"].clone())
    };
    let (_, long) = set(json!(["one", "two"])).await;
    assert_eq!(commands(&long).await, Some(json!(["one", "two"])));
    let (old, short) = set(json!(["one"])).await;
    assert_eq!(old, long);
    assert_eq!(commands(&short).await, Some(json!(["one"])));
    assert!(
        commands(&old).await.is_none_or(|kept| kept == json!(["one", "two"])),
        "the template of existing Machines does not change"
    );
    env.stop().await;
}

/// A client whose server makes something of each applied VSphereMachineTemplate, as a mutating webhook does. Counts dry runs.
fn rewritten(
    server: &Server,
    dry_runs: Arc<AtomicUsize>,
    webhook: Arc<dyn Fn(&mut Value) + Send + Sync>,
) -> kube::Client {
    let inner = server.service("windlass");
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (inner, dry_runs, webhook) = (inner.clone(), dry_runs.clone(), webhook.clone());
        async move {
            let (parts, body) = request.into_parts();
            let mut bytes = body.collect().await?.to_bytes().to_vec();
            let query = parts.uri.query().unwrap_or_default();
            let template = parts.uri.path().contains("/vspheremachinetemplates/");
            if template && query.contains("fieldManager=capi-topology&") {
                if query.contains("dryRun=All") {
                    dry_runs.fetch_add(1, Ordering::SeqCst);
                }
                let mut object: Value = serde_json::from_slice(&bytes)?;
                webhook(&mut object["spec"]["template"]["spec"]);
                bytes = object.to_string().into_bytes();
            }
            let request = http::Request::from_parts(parts, kube::client::Body::from(bytes));
            let answer = inner.oneshot(request).await.map_err(BoxError::from)?;
            Ok::<_, BoxError>(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        }
    });
    kube::Client::new(service, "default")
}

// TO-293, TO-294, TO-295: a webhook that drops a value, and a field of another field manager, replace nothing. What the API server
// has answered is not asked again.
#[tokio::test]
async fn what_others_make_of_a_template_replaces_nothing_and_is_asked_about_once() {
    let dry_runs = Arc::new(AtomicUsize::new(0));
    let seen = dry_runs.clone();
    let drops = |spec: &mut Value| {
        spec.as_object_mut().unwrap().remove("os");
    };
    let env = Env::start_behind(|server| rewritten(server, seen, Arc::new(drops))).await;
    env.apply_example().await;
    let name = infrastructure(&deployment(&env).await);
    let of_another = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "VSphereMachineTemplate",
        "metadata": {"name": name, "namespace": "bar"},
        "spec": {"template": {"spec": {"providerID": "x"}}},
    });
    let params = PatchParams::apply("another");
    let api = env.api("VSphereMachineTemplate");
    api.patch(&name, &params, &Patch::Apply(&of_another)).await.unwrap();
    for generation in 0..3 {
        touch(&env, generation).await;
    }
    let asked = dry_runs.load(Ordering::SeqCst);
    assert!(
        (2..=4).contains(&asked),
        "two for each version of one template: {asked}"
    );
    for generation in 3..6 {
        touch(&env, generation).await;
    }
    assert_eq!(
        dry_runs.load(Ordering::SeqCst),
        asked,
        "a settled topology asks nothing"
    );
    assert_eq!(infrastructure(&deployment(&env).await), name);
    let kept = env.get("VSphereMachineTemplate", &name).await.unwrap();
    assert_eq!(kept["spec"]["template"]["spec"].get("os"), None);
    assert_eq!(kept["spec"]["template"]["spec"]["providerID"], "x");
    env.stop().await;
}

#[tokio::test]
async fn a_template_that_never_keeps_its_content_is_reported_after_three_replacements() {
    let number = AtomicUsize::new(0);
    let counts = move |spec: &mut Value| {
        if spec["os"] == "Windows" {
            spec["template"] = json!(format!("windows-{}", number.fetch_add(1, Ordering::SeqCst)));
        }
    };
    let env = Env::start_behind(|server| rewritten(server, Arc::default(), Arc::new(counts))).await;
    for object in crate::env::documents(crate::env::VSPHERE) {
        env.apply(object).await;
    }
    env.apply(crate::env::cluster()).await;
    // Before, the Cluster waits for its class for a moment.
    let message = env
        .wait("the template to be reported", async || {
            let cluster = env.get("Cluster", "foo").await?;
            let message = condition(&cluster, "TopologyReconciled")?["message"]
                .as_str()?
                .to_owned();
            message.contains("spec.template.spec.template").then_some(message)
        })
        .await;
    let name = infrastructure(&deployment(&env).await);
    assert!(message.contains(&name), "{message}");

    env.merge("Cluster", "foo", json!({"metadata": {"finalizers": ["x.io/touched"]}}))
        .await;
    env.merge(
        "Cluster",
        "foo",
        json!({"spec": {"availabilityGates": [{"conditionType": "x"}]}}),
    )
    .await;
    env.reconciled("ReconcileFailed").await;
    assert_eq!(infrastructure(&deployment(&env).await), name, "Machines stay");
    env.stop().await;
}

const MACHINES: &str = "vspheremachinetemplates.infrastructure.cluster.x-k8s.io";

/// The provider gets a newer version without the field `os`. The older one is stored and still served.
pub(crate) async fn add_newer_version(env: &Env) {
    let definition = env.get("CustomResourceDefinition", MACHINES).await.unwrap();
    let older = definition["spec"]["versions"][0].clone();
    let mut newer = older.clone();
    newer["name"] = json!("v1beta2");
    newer["storage"] = json!(false);
    let fields = "/schema/openAPIV3Schema/properties/spec/properties/template/properties/spec/properties";
    newer.pointer_mut(fields).unwrap().as_object_mut().unwrap().remove("os");
    let labels = json!({"cluster.x-k8s.io/v1beta2": "v1beta2"});
    let patch = json!({"metadata": {"labels": labels}, "spec": {"versions": [older, newer]}});
    env.merge("CustomResourceDefinition", MACHINES, patch).await;
}

/// Changes the version in which the class names the machine templates of all workers.
pub(crate) async fn name_version(env: &Env, version: &str) {
    let mut class = env.get("ClusterClass", "mixed").await.unwrap();
    let workers = class["spec"]["workers"]["machineDeployments"].as_array_mut().unwrap();
    for worker in workers {
        let named = format!("infrastructure.cluster.x-k8s.io/{version}");
        worker["infrastructure"]["templateRef"]["apiVersion"] = json!(named);
    }
    let patch = json!({"spec": {"workers": class["spec"]["workers"]}});
    env.merge("ClusterClass", "mixed", patch).await;
    env.wait("the class in its new version", async || {
        let class = env.get("ClusterClass", "mixed").await?;
        (class["status"]["observedGeneration"] == class["metadata"]["generation"]).then_some(())
    })
    .await;
}

// TO-243, TO-375: templates are read in the version that the class names, also when the definition has a newer one; and a class that moves
// on to the newer version replaces nothing.
#[tokio::test]
async fn a_class_keeps_its_version_and_may_move_on_to_a_newer_one() {
    let env = Env::start().await;
    add_newer_version(&env).await;
    env.apply_example().await;
    let name = infrastructure(&deployment(&env).await);
    let made = env.get("VSphereMachineTemplate", &name).await.unwrap();
    let of_class = env
        .get("VSphereMachineTemplate", "windows-vsphere-template")
        .await
        .unwrap();
    assert_eq!(made["spec"], of_class["spec"]);
    let applied = &made["metadata"]["managedFields"][0];
    assert_eq!(applied["manager"], "capi-topology");
    assert_eq!(applied["apiVersion"], "infrastructure.cluster.x-k8s.io/v1beta1");
    touch(&env, 0).await;
    assert_eq!(infrastructure(&deployment(&env).await), name);

    name_version(&env, "v1beta2").await;
    touch(&env, 1).await;
    touch(&env, 2).await;
    assert_eq!(infrastructure(&deployment(&env).await), name, "no Machine is replaced");

    // A version that is gone does not stop the Cluster.
    name_version(&env, "v1alpha9").await;
    touch(&env, 3).await;
    env.wait("a report on the version that is not served", async || {
        let cluster = env.get("Cluster", "foo").await?;
        let reported = condition(&cluster, "TopologyReconciled")?;
        let said = reported["message"].as_str()?.contains("does not serve");
        (said && reported["status"] == "True").then_some(())
    })
    .await;
    assert_eq!(infrastructure(&deployment(&env).await), name);
    env.stop().await;
}
