//! Extensions of the Runtime SDK, served over HTTPS by the library for their authors, and called by the running controllers.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::Api;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass_api::annotations::{OK_TO_DELETE, PENDING_HOOKS, UPDATE_IN_PROGRESS};
use windlass_api::core::{Cluster, Machine};
use windlass_api::runtime::ExtensionConfig;
use windlass_example_extension::PROTECTED;
use windlass_meta::ObjectKey;
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};
use windlass_runtime_extension::hooks::Response as _;
use windlass_runtime_extension::hooks::in_place::{UpdateMachine, UpdateMachineRequest, UpdateMachineResponse};
use windlass_runtime_extension::hooks::lifecycle::{BeforeClusterDelete, BeforeClusterDeleteResponse};
use windlass_runtime_extension::{CancellationToken, Extension, FailurePolicy, Handler};
use windlass_testkit::wait::until;
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

/// A running extension.
pub(crate) struct Served {
    address: SocketAddr,
    authority: CertificateAuthority,
    stop: CancellationToken,
    _folder: tempfile::TempDir,
}

pub(crate) fn authority() -> CertificateAuthority {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    CertificateAuthority::self_signed(&CaRequest::new("test"), key, Timestamp::now()).unwrap()
}

pub(crate) fn mount(authority: &CertificateAuthority, folder: &Path) {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let request = LeafRequest::server("extension", vec!["127.0.0.1".to_owned()]);
    let certificate = authority.issue(&request, &key, Timestamp::now()).unwrap();
    std::fs::write(folder.join("tls.crt"), certificate.to_pem()).unwrap();
    std::fs::write(folder.join("tls.key"), key.to_pem()).unwrap();
}

impl Served {
    pub(crate) async fn start(extension: Extension) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), extension).await
    }

    async fn at(address: SocketAddr, extension: Extension) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = authority();
        mount(&authority, folder.path());
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let tls = windlass_runtime_extension::tls(folder.path()).unwrap();
        tokio::spawn(extension.serve(listener, tls, stop.clone()));
        Self {
            address,
            authority,
            stop,
            _folder: folder,
        }
    }

    fn ca(&self) -> String {
        BASE64_STANDARD.encode(self.authority.certificate().to_pem())
    }

    pub(crate) fn config(&self, name: &str) -> Value {
        json!({
            "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
            "metadata": { "name": name },
            "spec": { "clientConfig": { "url": format!("https://{}", self.address), "caBundle": self.ca() } },
        })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Waits until TopologyReconciled of a Cluster has this reason, and a message that contains `text`.
pub(crate) async fn says(env: &Env, cluster: &ObjectKey, reason: &str, text: &str) -> Cluster {
    let is_so = |cluster: &Cluster| {
        let mut all = cluster.status.iter().flat_map(|status| &status.conditions);
        all.any(|one| one.type_ == "TopologyReconciled" && one.reason == reason && one.message.contains(text))
    };
    env.wait_for::<Cluster>(cluster, &format!("{reason}: {text}"), is_so)
        .await
}

/// Waits until an ExtensionConfig is as it should be.
pub(crate) async fn config(env: &Env, what: &str, is_right: impl Fn(&ExtensionConfig) -> bool) -> ExtensionConfig {
    let api: Api<ExtensionConfig> = Api::all(env.client().clone());
    let found = until(api, None, |all: &[ExtensionConfig]| all.first().is_some_and(&is_right)).await;
    found
        .and_then(|all| all.into_iter().next())
        .unwrap_or_else(|| panic!("no ExtensionConfig: {what}"))
}

/// Its condition Discovered: status, reason and message.
pub(crate) fn discovered(config: &ExtensionConfig) -> Option<(String, String, String)> {
    let all = &config.status.as_ref()?.conditions;
    let found = all.iter().find(|condition| condition.type_ == "Discovered")?;
    Some((found.status.clone(), found.reason.clone(), found.message.clone()))
}

pub(crate) fn is_discovered(config: &ExtensionConfig) -> bool {
    discovered(config).is_some_and(|(status, ..)| status == "True")
}

/// A running cluster.
pub(crate) async fn cluster(env: &Env, name: &str) -> ClusterOf {
    let cluster = ClusterOf::new(name, 1, 1);
    env.apply_yaml(CLASS).await;
    cluster.apply(env).await;
    cluster.wait_running(env).await;
    cluster
}

/// Waits until the deletion of a cluster waits for the hook, with this text in the condition.
pub(crate) async fn held(env: &Env, cluster: &ClusterOf, text: &str) {
    let is_held = |cluster: &Cluster| {
        let mut all = cluster.status.iter().flat_map(|status| &status.conditions);
        all.any(|condition| {
            condition.type_ == "Deleting"
                && condition.reason == "WaitingForBeforeDeleteHook"
                && condition.message.starts_with("Waiting for BeforeClusterDelete hook: ")
                && condition.message.contains(text)
        })
    };
    env.wait_for::<Cluster>(&cluster.key(), &format!("held: {text}"), is_held)
        .await;
    let machines = env.list::<Machine>().await;
    let mine = cluster.machines(&machines, false);
    assert_eq!(mine.len(), 1);
    assert!(mine[0].metadata.deletion_timestamp.is_none(), "nothing goes");
}

// TO-316; rows 316, 317, 319, 320, 322, 325, 332 (the hook BeforeClusterDelete: 17, 18, 339), 330.
#[tokio::test]
async fn an_extension_keeps_a_cluster_until_it_agrees() {
    let env = Env::start().await;
    let served = Served::start(windlass_example_extension::extension().unwrap()).await;
    let mut object = served.config("guard");
    object["spec"]["settings"] = json!({ "annotation": "team.example/keep" });
    env.apply(&object).await;
    let config = config(&env, "discovered", is_discovered).await;
    assert_eq!(
        config.spec.namespace_selector,
        Some(LabelSelector::default()),
        "it is for all namespaces"
    );
    let status = config.status.unwrap();
    let mut handlers = status.handlers.iter();
    let handler = handlers.find(|handler| handler.name == "keep-protected.guard").unwrap();
    assert_eq!(
        handler.request_hook.api_version,
        "hooks.runtime.cluster.x-k8s.io/v1alpha1"
    );
    assert_eq!(handler.request_hook.hook, "BeforeClusterDelete");
    assert_eq!(
        (handler.timeout_seconds, handler.failure_policy.as_deref()),
        (Some(5), Some("Fail"))
    );
    let old = &status.deprecated.unwrap().v1beta1.unwrap().conditions[0];
    assert_eq!((old.type_.as_str(), old.status.as_str()), ("Discovered", "True"));

    let cluster = cluster(&env, "kept").await;
    let annotate = |value: Value| json!({ "metadata": { "annotations": { "team.example/keep": value } } });
    env.merge("Cluster", "kept", &annotate(json!(""))).await;
    env.delete("Cluster", "kept").await;
    held(&env, &cluster, "remove the annotation team.example/keep to delete it").await;
    // The answer of a handler that blocks is kept, until the Cluster changes.
    let before = env.metrics();
    env.prod("again").await;
    env.rest().await;
    let calls = |text: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with("capi_runtime_sdk_requests_total") && line.contains("BeforeClusterDelete"));
        line.map(str::to_owned)
    };
    assert!(calls(&before).is_some(), "{before}");
    assert_eq!(calls(&before), calls(&env.metrics()), "it is not asked before its time");
    env.merge("Cluster", "kept", &annotate(Value::Null)).await;
    env.wait_gone("kept").await;
    let text = env.metrics();
    assert!(
        text.contains("capi_runtime_sdk_request_duration_seconds_count{"),
        "{text}"
    );
    env.stop().await;
}

// Row 318.
#[tokio::test]
async fn the_authority_of_a_secret_goes_into_the_spec_and_follows_it() {
    let env = Env::start().await;
    let served = Served::start(windlass_example_extension::extension().unwrap()).await;
    let mut object = served.config("guard");
    object["spec"]["clientConfig"]
        .as_object_mut()
        .unwrap()
        .remove("caBundle");
    let secret = format!("{NAMESPACE}/ext-cert");
    object["metadata"]["annotations"] = json!({ "runtime.cluster.x-k8s.io/inject-ca-from-secret": secret });
    env.apply(&object).await;
    let missing = format!("Secret {secret} does not exist");
    let says = |text: &str| {
        let text = text.to_owned();
        move |config: &ExtensionConfig| discovered(config).is_some_and(|(_, _, message)| message.contains(&text))
    };
    config(&env, "without the Secret", says(&missing)).await;
    let write = async |ca: &str| {
        let api: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(env.client().clone(), NAMESPACE);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "ext-cert" }, "data": { "ca.crt": ca },
        });
        let by = kube::api::PatchParams::apply("cert-manager").force();
        api.patch("ext-cert", &by, &kube::api::Patch::Apply(&secret))
            .await
            .unwrap();
    };
    write(&served.ca()).await;
    let before = config(&env, "discovered", is_discovered).await.status.unwrap().handlers;
    // A renewed authority reaches the spec. The extension does not have it yet, and its handlers stay.
    let other = BASE64_STANDARD.encode(authority().certificate().to_pem());
    write(&other).await;
    let failed = config(&env, "with another authority", |config| {
        discovered(config).is_some_and(|(status, reason, _)| status == "False" && reason == "NotDiscovered")
    });
    assert_eq!(failed.await.status.unwrap().handlers, before);
    write(&served.ca()).await;
    config(&env, "discovered again", is_discovered).await;
    env.stop().await;
}

// Rows 324, 327 and the faults: slow, no for a while, down, and a restart during the outage.
#[tokio::test]
async fn a_cluster_waits_for_an_extension_that_fails_and_not_for_one_that_does_not_matter() {
    let env = Env::start().await;
    let says_no = Arc::new(AtomicBool::new(true));
    let asked = Arc::new(AtomicU32::new(0));
    let extension = |says_no: Arc<AtomicBool>, asked: Arc<AtomicU32>| {
        let optional = Handler::named("optional")
            .timeout_seconds(1)
            .failure_policy(FailurePolicy::Ignore);
        let never = |_| std::future::pending::<BeforeClusterDeleteResponse>();
        let extension = Extension::new().handle(BeforeClusterDelete, optional, never).unwrap();
        let decide = move |_| {
            asked.fetch_add(1, Ordering::Relaxed);
            let says_no = says_no.load(Ordering::Relaxed);
            async move {
                if says_no {
                    BeforeClusterDeleteResponse::failure("the backup has failed")
                } else {
                    BeforeClusterDeleteResponse::success()
                }
            }
        };
        extension.handle(BeforeClusterDelete, "strict", decide).unwrap()
    };
    let served = Served::start(extension(says_no.clone(), asked.clone())).await;
    env.apply(&served.config("guard")).await;
    config(&env, "discovered", is_discovered).await;
    let cluster = cluster(&env, "kept").await;
    env.delete("Cluster", "kept").await;
    held(
        &env,
        &cluster,
        "\"strict.guard\": got failure response with message: the backup has failed",
    )
    .await;
    // It is down, also for a process that has just started.
    let address = served.address;
    drop(served);
    held(&env, &cluster, "http call failed").await;
    let env = env.restart().await;
    held(&env, &cluster, "connection refused").await;
    says_no.store(false, Ordering::Relaxed);
    let before = asked.load(Ordering::Relaxed);
    let served = Served::at(address, extension(says_no, asked.clone())).await;
    env.apply(&served.config("guard")).await;
    env.wait_gone("kept").await;
    assert!(asked.load(Ordering::Relaxed) > before, "it was asked");
    env.stop().await;
}

// Row 325, and an address at which nothing is served.
#[tokio::test]
async fn an_extension_is_called_for_the_namespaces_that_it_selects() {
    let env = Env::start().await;
    let no = |_| async { BeforeClusterDeleteResponse::failure("never") };
    let extension = Extension::new().handle(BeforeClusterDelete, "never", no).unwrap();
    let served = Served::start(extension).await;
    let mut object = served.config("elsewhere");
    object["spec"]["namespaceSelector"] = json!({ "matchLabels": { "team": "other" } });
    env.apply(&object).await;
    config(&env, "discovered", is_discovered).await;
    let cluster = cluster(&env, "free").await;
    env.delete("Cluster", "free").await;
    env.wait_gone("free").await;
    drop(cluster);
    object["spec"]["clientConfig"]["url"] = json!(format!("https://{}/nothing/here", served.address));
    env.apply(&object).await;
    let failed = config(&env, "at another path", |config| {
        discovered(config).is_some_and(|(_, _, message)| message.contains("status code 404"))
    });
    let message = discovered(&failed.await).unwrap().2;
    assert!(
        message.starts_with("Error in discovery: failed to discover extension \"elsewhere\": "),
        "{message}"
    );
    env.stop().await;
}

/// An extension whose handler updates Machines: it needs three looks.
fn updater(seen: Arc<Mutex<Vec<UpdateMachineRequest>>>) -> Extension {
    let update = move |request: UpdateMachineRequest| {
        let mut seen = seen.lock().unwrap();
        seen.push(request);
        let looks = seen.len();
        async move {
            match looks {
                1 => UpdateMachineResponse::blocked(1, "the kubelet restarts"),
                2 => UpdateMachineResponse::failure("the host does not answer"),
                _ => UpdateMachineResponse::success(),
            }
        }
    };
    Extension::new().handle(UpdateMachine, "update", update).unwrap()
}

// Rows 53, 112, 113, 345, 376: the protocol, as the owner of a Machine begins it.
#[tokio::test]
async fn a_machine_is_updated_in_place_by_the_one_extension_that_can() {
    let env = Env::start().await;
    let seen = Arc::<Mutex<Vec<UpdateMachineRequest>>>::default();
    let first = Served::start(updater(seen.clone())).await;
    let second = Served::start(updater(Arc::default())).await;
    env.apply(&first.config("first")).await;
    config(&env, "discovered", is_discovered).await;
    let cluster = cluster(&env, "updated").await;
    env.apply(&second.config("second")).await;
    let api: Api<ExtensionConfig> = Api::all(env.client().clone());
    let both = |all: &[ExtensionConfig]| all.len() == 2 && all.iter().all(is_discovered);
    until(api, None, both).await.expect("both are discovered");
    let machines = env.list::<Machine>().await;
    let machine = cluster.machines(&machines, false)[0].clone();
    let name = machine.metadata.name.clone().unwrap();
    let mark = json!({ "metadata": { "annotations": { UPDATE_IN_PROGRESS: "" } } });
    let bootstrap = machine.spec.bootstrap.config_ref.clone().unwrap().name;
    let infrastructure = machine.spec.infrastructure_ref.name.clone();
    env.merge("Machine", &name, &mark).await;
    env.merge("KubeadmConfig", &bootstrap, &mark).await;
    env.merge("DevMachine", &infrastructure, &mark).await;
    let pending = json!({ "metadata": { "annotations": { PENDING_HOOKS: "UpdateMachine" } } });
    env.merge("Machine", &name, &pending).await;
    let key = ObjectKey::new(NAMESPACE, name.as_str());
    let says = async |reason: &str, text: &str| {
        let is_right = |machine: &Machine| {
            let mut all = machine.status.iter().flat_map(|status| &status.conditions);
            all.any(|one| one.type_ == "Updating" && one.reason == reason && one.message.contains(text))
        };
        env.wait_for::<Machine>(&key, &format!("Updating: {reason}, {text}"), is_right)
            .await
    };
    let two = "found multiple UpdateMachine hooks (update.first,update.second): only one hook is supported";
    let machine = says("InPlaceUpdateFailed", two).await;
    assert_eq!(machine.status.unwrap().phase.as_deref(), Some("Updating"));
    assert!(seen.lock().unwrap().is_empty(), "neither is called");
    env.delete("ExtensionConfig", "second").await;
    says("InPlaceUpdating", "In-place update in progress: the kubelet restarts").await;
    says("InPlaceUpdateFailed", "the host does not answer").await;
    let done = says("NotUpdating", "").await;
    let annotations = done.metadata.annotations.unwrap_or_default();
    assert!(!annotations.contains_key(UPDATE_IN_PROGRESS), "{annotations:?}");
    for (kind, name) in [("KubeadmConfig", &bootstrap), ("DevMachine", &infrastructure)] {
        let object = env.dynamic(kind).get(name).await.unwrap();
        let annotations = object.metadata.annotations.unwrap_or_default();
        assert!(!annotations.contains_key(UPDATE_IN_PROGRESS), "{kind}: {annotations:?}");
    }
    let asked = seen.lock().unwrap()[0].desired.clone();
    assert_eq!(asked.machine.metadata.name.as_ref(), Some(&name));
    assert_eq!(asked.machine.status, None);
    assert_eq!(asked.infrastructure_machine["kind"], "DevMachine");
    assert_eq!(asked.bootstrap_config["metadata"]["name"], json!(bootstrap));
    env.stop().await;
}

/// A user who removes what keeps a Cluster, by hand: the annotation that records the agreement.
#[tokio::test]
async fn a_user_can_let_a_cluster_go_without_the_extension() {
    let env = Env::start().await;
    let served = Served::start(windlass_example_extension::extension().unwrap()).await;
    env.apply(&served.config("guard")).await;
    config(&env, "discovered", is_discovered).await;
    let cluster = cluster(&env, "kept").await;
    let annotate = |key: &str| json!({ "metadata": { "annotations": { key: "" } } });
    env.merge("Cluster", "kept", &annotate(PROTECTED)).await;
    env.delete("Cluster", "kept").await;
    held(&env, &cluster, PROTECTED).await;
    env.merge("Cluster", "kept", &annotate(OK_TO_DELETE)).await;
    tokio::time::timeout(Duration::from_mins(2), env.wait_gone("kept"))
        .await
        .unwrap();
    env.stop().await;
}
