//! Extensions that answer wrongly, or not at all, and those that ask who calls them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass_api::runtime::ExtensionConfig;
use windlass_http_server::{Answer, DRAIN, Server, respond};
use windlass_manager::ClientIdentity;
use windlass_pki::{CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};
use windlass_runtime_extension::hooks::Response as _;
use windlass_runtime_extension::hooks::lifecycle::{BeforeClusterDelete, BeforeClusterDeleteResponse};
use windlass_runtime_extension::rustls::pki_types::CertificateDer;
use windlass_runtime_extension::rustls::server::WebPkiClientVerifier;
use windlass_runtime_extension::rustls::{RootCertStore, ServerConfig};
use windlass_runtime_extension::{CancellationToken, Extension};
use windlass_testkit::faults::{Fault, Faults};
use windlass_testkit::{Env, NAMESPACE};

use crate::extensions::{Served, authority, cluster, config, discovered, held, is_discovered, mount};

/// How an extension answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Mood {
    Good,
    /// One byte more than is read.
    Huge,
    /// JSON, but no answer of a hook.
    Garbage,
    /// To another address.
    Redirect,
    /// Never.
    Silent,
}

impl Mood {
    const ALL: [Self; 5] = [Self::Good, Self::Huge, Self::Garbage, Self::Redirect, Self::Silent];
}

/// An extension with two handlers of BeforeClusterDelete: one whose failures are ignored, and a strict one.
struct Moody {
    address: SocketAddr,
    authority: CertificateAuthority,
    /// Of Discovery, and of the handlers.
    moods: [Arc<AtomicU8>; 2],
    /// Requests at the address of redirects.
    elsewhere: Arc<AtomicU32>,
    stop: CancellationToken,
    _folder: tempfile::TempDir,
}

fn good(path: &str) -> Answer {
    let handler = |name: &str, policy: &str| {
        json!({
            "name": name, "timeoutSeconds": 1, "failurePolicy": policy,
            "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterDelete"},
        })
    };
    let mut answer = json!({"status": "Success"});
    if path.ends_with("/discovery") {
        answer["handlers"] = json!([handler("lax", "Ignore"), handler("strict", "Fail")]);
    }
    respond(StatusCode::OK, "application/json", answer.to_string())
}

async fn answer(mood: Mood, path: &str, address: SocketAddr) -> Answer {
    match mood {
        Mood::Good => good(path),
        Mood::Huge => {
            let message = "m".repeat(20 << 20);
            let text = json!({"status": "Success", "message": message}).to_string();
            respond(StatusCode::OK, "application/json", text)
        }
        Mood::Garbage => respond(StatusCode::OK, "application/json", "[\"status\", 7]".to_owned()),
        Mood::Redirect => {
            let mut answer = respond(StatusCode::TEMPORARY_REDIRECT, "text/plain", "go away".to_owned());
            let to = format!("https://{address}/elsewhere{path}");
            let to = HeaderValue::from_str(&to).unwrap();
            answer.headers_mut().insert(header::LOCATION, to);
            answer
        }
        Mood::Silent => std::future::pending().await,
    }
}

impl Moody {
    async fn start() -> Self {
        let (folder, authority) = (tempfile::tempdir().unwrap(), authority());
        mount(&authority, folder.path());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (moods, elsewhere) = (<[Arc<AtomicU8>; 2]>::default(), Arc::<AtomicU32>::default());
        let stop = CancellationToken::new();
        let server = Server {
            name: "a moody extension",
            listener,
            tls: Some(windlass_runtime_extension::tls(folder.path()).unwrap()),
            drain: DRAIN,
        };
        let (of_server, followed) = (moods.clone(), elsewhere.clone());
        let serving = server.serve(
            move |request| {
                let path = request.uri().path().to_owned();
                let is_followed = path.starts_with("/elsewhere");
                followed.fetch_add(u32::from(is_followed), Ordering::SeqCst);
                let number = of_server[usize::from(!path.ends_with("/discovery"))].load(Ordering::SeqCst);
                let mood = if is_followed {
                    Mood::Good
                } else {
                    Mood::ALL[usize::from(number)]
                };
                async move { answer(mood, &path, address).await }
            },
            stop.clone(),
        );
        tokio::spawn(serving);
        Self {
            address,
            authority,
            moods,
            elsewhere,
            stop,
            _folder: folder,
        }
    }

    fn discovery_is(&self, mood: Mood) {
        self.moods[0].store(mood as u8, Ordering::SeqCst);
    }

    fn handlers_are(&self, mood: Mood) {
        self.moods[1].store(mood as u8, Ordering::SeqCst);
    }

    fn config(&self) -> Value {
        extension_config(self.address, &self.authority)
    }
}

impl Drop for Moody {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn extension_config(address: SocketAddr, authority: &CertificateAuthority) -> Value {
    let bundle = BASE64_STANDARD.encode(authority.certificate().to_pem());
    json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": {"name": "guard"},
        "spec": {"clientConfig": {"url": format!("https://{address}"), "caBundle": bundle}},
    })
}

/// Waits until Discovered has a message with all these words, and returns the ExtensionConfig.
async fn not_discovered(env: &Env, words: &[&str]) -> ExtensionConfig {
    config(env, &format!("{words:?}"), |config| {
        discovered(config)
            .is_some_and(|(status, _, message)| status == "False" && words.iter().all(|word| message.contains(word)))
    })
    .await
}

#[tokio::test]
async fn discovery_says_what_is_wrong_with_an_answer() {
    let env = Env::start().await;
    let moody = Moody::start().await;
    let failed = "failed to discover extension \"guard\": ";
    for (number, (mood, words)) in [
        (Mood::Huge, "http call failed: the answer is larger than 20 MiB"),
        (Mood::Garbage, "http call failed: failed to decode response"),
        (Mood::Redirect, "got response with status code 307 != 200"),
        (Mood::Silent, "no answer in 10 s"),
    ]
    .into_iter()
    .enumerate()
    {
        moody.discovery_is(mood);
        let mut object = moody.config();
        // A change of the spec is discovered at once.
        object["spec"]["settings"] = json!({"number": number.to_string()});
        env.apply(&object).await;
        not_discovered(&env, &[failed, words]).await;
    }
    assert_eq!(moody.elsewhere.load(Ordering::SeqCst), 0, "no redirect is followed");
    moody.discovery_is(Mood::Good);
    env.apply(&moody.config()).await;
    config(&env, "discovered", is_discovered).await;
    env.stop().await;
}

/// The handler that does not matter fails each time, too, and comes first.
#[tokio::test]
async fn a_wrong_answer_holds_up_what_a_strict_handler_decides_and_says_why() {
    let env = Env::start().await;
    let moody = Moody::start().await;
    env.apply(&moody.config()).await;
    config(&env, "discovered", is_discovered).await;
    let cluster = cluster(&env, "kept").await;
    moody.handlers_are(Mood::Silent);
    env.delete("Cluster", "kept").await;
    let strict = "failed to call extension handler \"strict.guard\": ";
    for (mood, words) in [
        (Mood::Silent, "no answer in 1 s"),
        (Mood::Huge, "http call failed: the answer is larger than 20 MiB"),
        (Mood::Garbage, "http call failed: failed to decode response"),
        (Mood::Redirect, "got response with status code 307 != 200"),
    ] {
        moody.handlers_are(mood);
        // It is asked again at once.
        let mark = json!({"metadata": {"annotations": {"mood": words}}});
        env.merge("Cluster", "kept", &mark).await;
        held(&env, &cluster, strict).await;
        held(&env, &cluster, words).await;
    }
    assert_eq!(moody.elsewhere.load(Ordering::SeqCst), 0, "no redirect is followed");
    moody.handlers_are(Mood::Good);
    env.merge(
        "Cluster",
        "kept",
        &json!({"metadata": {"annotations": {"mood": "good"}}}),
    )
    .await;
    env.wait_gone("kept").await;
    env.stop().await;
}

/// A server behind whose port nothing speaks.
#[tokio::test]
async fn an_address_that_takes_connections_and_says_no_word_costs_one_time_out() {
    let env = Env::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok(accepted) = listener.accept().await {
            open.push(accepted);
        }
    });
    env.apply(&extension_config(address, &authority())).await;
    not_discovered(&env, &["extension \"guard\"", "no answer in 10 s"]).await;
    env.stop().await;
}

/// Writes a client certificate of the authority, as cert-manager does.
fn identity(authority: &CertificateAuthority, folder: &Path) -> ClientIdentity {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let request = LeafRequest::client("windlass", "");
    let certificate = authority.issue(&request, &key, Timestamp::now()).unwrap();
    let files = ClientIdentity {
        certificate: folder.join("client.crt"),
        key: folder.join("client.key"),
    };
    std::fs::write(&files.certificate, certificate.to_pem()).unwrap();
    std::fs::write(&files.key, key.to_pem()).unwrap();
    files
}

/// A TLS configuration that takes only clients of an authority.
fn strict_tls(server: &CertificateAuthority, clients: &CertificateAuthority) -> Arc<ServerConfig> {
    let provider = windlass_http_client::tls::provider();
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from(clients.certificate().der().to_vec());
    roots.add(root).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let request = LeafRequest::server("extension", vec!["127.0.0.1".to_owned()]);
    let certificate = server.issue(&request, &key, Timestamp::now()).unwrap();
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = windlass_runtime_extension::rustls::pki_types::pem::PemObject::from_pem_slice(key.to_pem().as_bytes());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(chain, key.unwrap());
    Arc::new(config.unwrap())
}

#[tokio::test]
async fn an_extension_can_ask_who_calls_it() {
    let (of_server, of_clients) = (authority(), authority());
    let folder = tempfile::tempdir().unwrap();
    // At first one that the extension does not know.
    let files = identity(&authority(), folder.path());
    let env = Env::builder().identity(files).start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let extension = windlass_example_extension::extension().unwrap();
    tokio::spawn(extension.serve(listener, strict_tls(&of_server, &of_clients), stop.clone()));
    env.apply(&extension_config(address, &of_server)).await;
    not_discovered(&env, &["extension \"guard\"", "http call failed: Post"]).await;
    // A renewed certificate is used without a restart.
    identity(&of_clients, folder.path());
    let mut object = extension_config(address, &of_server);
    object["spec"]["settings"] = json!({"again": "1"});
    env.apply(&object).await;
    let config = config(&env, "discovered", is_discovered).await;
    let handlers = config.status.unwrap().handlers;
    let hook = <BeforeClusterDelete as windlass_runtime_extension::hooks::Hook>::NAME;
    assert!(handlers.iter().any(|handler| handler.request_hook.hook == hook));
    stop.cancel();
    env.stop().await;
}

/// Each reconcile asks which extensions there are, and each selector for the labels of the Namespace.
#[tokio::test]
async fn a_selector_of_namespaces_costs_no_request_and_follows_their_labels() {
    let path = format!("/api/v1/namespaces/{NAMESPACE}");
    let faults = Faults::when(move |seen| {
        let is_read = !seen.is_write() && seen.path.split('?').next() == Some(path.as_str());
        is_read.then_some(Fault::Refused(500))
    });
    let env = Env::builder().faults(&faults).start().await;
    let no = |_| async { BeforeClusterDeleteResponse::failure("never") };
    let extension = Extension::new().handle(BeforeClusterDelete, "never", no).unwrap();
    let served = Served::start(extension).await;
    let mut object = served.config("guard");
    object["spec"]["namespaceSelector"] = json!({"matchLabels": {"selected.example/by": "guard"}});
    env.apply(&object).await;
    config(&env, "discovered", is_discovered).await;
    let cluster = cluster(&env, "kept").await;
    let namespaces: Api<Namespace> = Api::all(env.client().clone());
    let label = async |value: Value| {
        let patch = json!({"metadata": {"labels": {"selected.example/by": value}}});
        let by = PatchParams::default();
        namespaces.patch(NAMESPACE, &by, &Patch::Merge(&patch)).await.unwrap();
    };
    label(json!("guard")).await;
    // The label may come after the deletion is looked at.
    env.rest().await;
    env.delete("Cluster", "kept").await;
    held(&env, &cluster, "never").await;
    label(Value::Null).await;
    env.wait_gone("kept").await;
    env.stop().await;
}
