//! Built-in providers in the whole program, and other programs that run the same providers.

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use windlass_controller_runtime::EventType;
use windlass_manager::{Decision, ManagerError, OwnPod, Selection, WebhookTarget, others};
use windlass_testkit::{Env, MANAGER, Server, wait};

const OPERATOR: &str = "operator.cluster.x-k8s.io/v1alpha2";
const NAMESPACE: &str = "rig-system";

fn api(client: &kube::Client, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}

async fn try_apply(client: &kube::Client, object: &Value) -> Result<DynamicObject, kube::Error> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let meta = &object["metadata"];
    let api = api(
        client,
        &text(&object["apiVersion"]),
        &text(&object["kind"]),
        &text(&meta["namespace"]),
    );
    let parameters = PatchParams::apply(MANAGER).force();
    api.patch(&text(&meta["name"]), &parameters, &Patch::Apply(object))
        .await
}

async fn apply(client: &kube::Client, object: Value) {
    let applied = try_apply(client, &object).await;
    applied.unwrap_or_else(|error| panic!("cannot apply {object}: {error}"));
}

fn condition<'a>(object: &'a DynamicObject, kind: &str) -> &'a Value {
    let mut all = object.data["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

async fn until(api: Api<DynamicObject>, name: &str, what: &str, is_right: impl Fn(&DynamicObject) -> bool) {
    let found = wait::until(api.clone(), Some(name), |all| all.first().is_some_and(&is_right)).await;
    if found.is_none() {
        let is = api.get_opt(name).await.unwrap();
        panic!(
            "waited in vain for {name} {what}: {:#}",
            json!(is.map(|object| object.data))
        );
    }
}

// The whole program: a provider needs no declared core, and declarations of what is built in are checked when they are written.
#[tokio::test]
async fn a_provider_is_installed_into_a_new_management_cluster() {
    let env = Env::start().await;
    let client = env.client().clone();
    apply(
        &client,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
    )
    .await;
    let metadata = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n- {major: 1, minor: 0, contract: v1beta2}\n";
    let components = upstream(1)
        .to_string()
        .replace("capi-controller-manager", "rig-manager")
        .replace("capi-system", NAMESPACE);
    apply(
        &client,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "v1.0.0", "namespace": NAMESPACE, "labels": {"files": "rig"}},
            "data": {"metadata": metadata, "components": components},
        }),
    )
    .await;
    let provider = |kind: &str, name: &str, spec: Value| json!({"apiVersion": OPERATOR, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec});
    let fetch = json!({"version": "v1.0.0", "fetchConfig": {"selector": {"matchLabels": {"files": "rig"}}}});
    apply(&client, provider("InfrastructureProvider", "rig", fetch)).await;
    until(
        api(&client, OPERATOR, "InfrastructureProvider", NAMESPACE),
        "rig",
        "to be installed",
        |object| condition(object, "ProviderInstalled")["status"] == "True",
    )
    .await;

    let other = provider("CoreProvider", "cluster-api", json!({"version": "v1.13.0"}));
    let refused = try_apply(&client, &other).await.unwrap_err().to_string();
    for words in ["spec.version", "built in, as version v1.14.0", "leave spec.version out"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    apply(&client, provider("CoreProvider", "cluster-api", json!({}))).await;
    let cores = api(&client, OPERATOR, "CoreProvider", NAMESPACE);
    until(cores, "cluster-api", "to be satisfied", |object| {
        object.data["status"]["installedVersion"] == "v1.14.0" && condition(object, "Ready")["status"] == "True"
    })
    .await;
    // Nothing came over our own core: Clusters can still be made.
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c", "namespace": NAMESPACE},
        "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "c"}},
    });
    apply(&client, cluster).await;
    env.stop().await;
}

fn upstream(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "capi-controller-manager", "namespace": "capi-system"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "manager", "image": "registry.example.org/capi:v1.14.0"}]},
            },
        },
    })
}

fn hooks(service: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "capi-kubeadm-bootstrap-validating-webhook-configuration"},
        "webhooks": [{
            "name": "validation.kubeadmconfig.bootstrap.cluster.x-k8s.io", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"namespace": "capi-kubeadm-bootstrap-system", "name": service}},
            "rules": [{
                "apiGroups": ["bootstrap.cluster.x-k8s.io"], "apiVersions": ["v1beta2"], "resources": ["kubeadmconfigs"],
                "operations": ["CREATE"],
            }],
        }],
    })
}

#[tokio::test]
async fn controllers_of_what_another_program_runs_do_not_start() {
    let server = Server::start().await;
    let client = server.client("admin");
    let own = others::Own::default();
    let all = || Selection::all();
    let decide = async |own: &others::Own, takes_over| Decision::make(&client, all(), own, takes_over).await.unwrap();
    let nothing = decide(&own, false).await;
    assert!(nothing.runs().has("machine") && nothing.check().is_ok());
    assert_eq!(nothing.runs(), all());

    apply(
        &client,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capi-system"}}),
    )
    .await;
    apply(&client, upstream(1)).await;
    let core = decide(&own, false).await;
    let runs = core.runs();
    assert!(!runs.has("machine") && !runs.has("topology/cluster"));
    assert!(runs.has("kubeadmconfig") && runs.has("helmchartproxy") && runs.has("operator/coreprovider"));
    // There, the operator installs a core as in any cluster.
    assert!(!runs.built_ins().all().any(|built_in| built_in.name == "cluster-api"));
    let why = core.check().unwrap_err();
    for words in [
        "CoreProvider cluster-api",
        "Deployment capi-system/capi-controller-manager",
        "--take-over",
        "--controllers",
    ] {
        assert!(why.contains(words), "{words}: {why}");
    }
    // A process that started before is overtaken.
    let overtaken = tokio::time::timeout(wait::TIMEOUT, nothing.overtaken(&client, &own))
        .await
        .unwrap();
    assert!(
        overtaken.contains("another program runs the CoreProvider"),
        "{overtaken}"
    );
    let taken = decide(&own, true).await;
    assert!(taken.runs() == all() && taken.check().is_ok());
    // This process may run in that Deployment.
    let pod = OwnPod {
        namespace: "capi-system".to_owned(),
        name: "capi-controller-manager-5d8f-x2x".to_owned(),
        uid: "u".to_owned(),
        home: std::sync::Arc::new(|| Err("none".to_owned())),
    };
    let in_it = others::Own {
        pod: Some(pod),
        webhooks: None,
    };
    assert_eq!(decide(&in_it, false).await.runs(), all());
    // Where nothing else was asked for, nothing is left to do.
    let only = Selection::of(&["machine"]).unwrap();
    let refused = Decision::make(&client, only, &own, false).await.unwrap_err();
    assert!(matches!(refused, ManagerError::RunByOthers { .. }), "{refused}");
    assert!(refused.hint().unwrap().contains("--take-over"));

    apply(&client, hooks("webhooks")).await;
    let both = decide(&own, false).await;
    assert!(!both.runs().has("kubeadmconfig") && both.runs().has("kubeadmcontrolplane"));
    let mine = others::Own {
        pod: None,
        webhooks: Some(WebhookTarget::service("capi-kubeadm-bootstrap-system/webhooks").unwrap()),
    };
    assert!(decide(&mine, false).await.runs().has("kubeadmconfig"));

    // It goes: the process that made way is overtaken, too.
    let api = api(
        &client,
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "",
    );
    let name = "capi-kubeadm-bootstrap-validating-webhook-configuration";
    api.delete(name, &DeleteParams::default()).await.unwrap();
    apply(&client, upstream(0)).await;
    let overtaken = tokio::time::timeout(wait::TIMEOUT, both.overtaken(&client, &own))
        .await
        .unwrap();
    assert!(overtaken.contains("no other program"), "{overtaken}");
    server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_not_taken_for_nothing() {
    let server = Server::start().await;
    let user = server.client_of("without-rights", &[]);
    let own = others::Own::default();
    let unknown = Decision::make(&user, Selection::all(), &own, false).await.unwrap_err();
    assert!(matches!(unknown, ManagerError::OthersUnknown { .. }), "{unknown}");
    assert!(unknown.hint().unwrap().contains("config/manager-role.yaml"));
    let taken = Decision::make(&user, Selection::all(), &own, true).await.unwrap();
    assert_eq!(taken.runs(), Selection::all());
    // The operator alone depends on it as well: another operator may run.
    let alone = Selection::of(&["operator/coreprovider"]).unwrap();
    let unknown = Decision::make(&user, alone, &own, false).await.unwrap_err();
    assert!(matches!(unknown, ManagerError::OthersUnknown { .. }), "{unknown}");
    server.stop().await;
}

// What shows another program carries the message.
#[tokio::test]
async fn users_see_it_where_they_look() {
    let server = Server::with_definitions().await;
    let client = server.client("admin");
    apply(
        &client,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capi-system"}}),
    )
    .await;
    apply(&client, upstream(1)).await;
    let decision = Decision::make(&client, Selection::all(), &others::Own::default(), false)
        .await
        .unwrap();
    let kit = windlass_controller_runtime::Runtime::builder(client.clone()).build();
    decision.tell(&kit.cx());
    let events = api(&client, "v1", "Event", "capi-system");
    let found = wait::until(events, None, |all| {
        all.iter().any(|event| {
            let is_warning = event.data["type"] == format!("{:?}", EventType::Warning);
            is_warning
                && event.data["reason"] == "ProviderOfAnotherProgram"
                && event.data["involvedObject"]["name"] == "capi-controller-manager"
        })
    });
    assert!(found.await.is_some());
    kit.shutdown().await;
    server.stop().await;
}
