//! Secrets beside a declaration may be written by others than the operator. Only what the operator wrote is applied.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;
use windlass_testkit::faults::{Fault, Faults};
use windlass_testkit::{Fate, Which};

use crate::asked::Asked;
use crate::env::{Env, NAMESPACE, V1ALPHA1, V1ALPHA2, declaration};

const INFRA: (&str, &str, &str) = (V1ALPHA2, "InfrastructureProvider", "rig");
const PAUSED: (&str, &str, &str) = (V1ALPHA1, INFRA.1, INFRA.2);
const PWNED: (&str, &str, &str) = ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "pwned");
const ACCOUNT: (&str, &str, &str) = ("v1", "ServiceAccount", "infrastructure-rig-manager");
const REASON: &str = "InstalledComponentsUntrusted";
const ANNOTATION: &str = "provider.cluster.x-k8s.io/kept-releases";

/// A provider that works, with nothing to do.
async fn working(asked: &Asked) -> Env {
    let env = asked.env().await;
    env.with_core(V1ALPHA2).await;
    let infra = LookAlike::infrastructure("rig");
    env.shelve(&infra).await;
    env.variables("variables", &infra).await;
    let spec = json!({"version": "v1.0.0", "configSecret": {"name": "variables"}});
    env.apply(declaration(V1ALPHA2, INFRA.1, INFRA.2, spec)).await;
    is_healthy(&env).await;
    asked.nothing().await;
    env
}

async fn is_healthy(env: &Env) {
    env.wait_installed(INFRA, "v1.0.0").await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
}

/// The Secrets with releases of the provider.
async fn kept(env: &Env) -> Vec<Value> {
    let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> = kube::Api::namespaced(env.client.clone(), NAMESPACE);
    let labels = "managed-by.operator.cluster.x-k8s.io=true,provider.cluster.x-k8s.io/type=InfrastructureProvider";
    let selected = kube::api::ListParams::default().labels(labels);
    let found = secrets.list(&selected).await.unwrap();
    found
        .items
        .iter()
        .map(|secret| serde_json::to_value(secret).unwrap())
        .collect()
}

fn unpacked(secret: &Value) -> String {
    let packed = STANDARD.decode(secret["data"]["components"].as_str().unwrap()).unwrap();
    let mut text = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    text
}

/// Adds a binding to the objects of all releases, as a user with the role `edit` may.
async fn tamper(env: &Env) -> String {
    let binding = json!({
        "apiVersion": PWNED.0, "kind": PWNED.1,
        "metadata": {"name": PWNED.2, "labels": {"cluster.x-k8s.io/provider": "infrastructure-rig"}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}],
    });
    let mut name = String::new();
    for secret in kept(env).await {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer
            .write_all(format!("{}{binding}\n", unpacked(&secret)).as_bytes())
            .unwrap();
        let packed = STANDARD.encode(packer.finish().unwrap());
        name = secret["metadata"]["name"].as_str().unwrap().to_owned();
        env.merge(("v1", "Secret", &name), json!({"data": {"components": packed}}))
            .await;
    }
    name
}

/// The provider works by what its source has, and nothing of what others wrote was applied or is kept.
async fn is_mended(env: &Env, asked: &Asked) {
    is_healthy(env).await;
    asked.nothing().await;
    is_healthy(env).await;
    nothing_is_left(env, asked).await;
}

async fn nothing_is_left(env: &Env, asked: &Asked) {
    assert!(env.get(PWNED).await.is_none(), "what others wrote was applied");
    assert!(!asked.writes().iter().any(|write| write.contains(PWNED.2)));
    let kept = kept(env).await;
    assert_eq!(kept.len(), 1);
    assert!(!unpacked(&kept[0]).contains(PWNED.2), "it is still kept");
}

async fn events(env: &Env) -> Vec<String> {
    let events: kube::Api<k8s_openapi::api::core::v1::Event> = kube::Api::namespaced(env.client.clone(), NAMESPACE);
    let found = events.list(&kube::api::ListParams::default()).await.unwrap();
    let mine = found
        .items
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some(REASON));
    mine.map(|event| event.message.unwrap_or_default()).collect()
}

/// Waits for an event about Secrets that others wrote. By then nothing of them was applied.
async fn wait_event(env: &Env, asked: &Asked, words: &str) {
    asked.nothing().await;
    assert!(env.get(PWNED).await.is_none(), "what others wrote was applied");
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(100));
    let told = tokio::time::timeout(std::time::Duration::from_secs(90), async {
        while !events(env).await.iter().any(|message| message.contains(words)) {
            looks.tick().await;
        }
    });
    assert!(told.await.is_ok(), "no event with {words}: {:?}", events(env).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_process_does_not_apply_what_others_wrote_into_a_kept_release() {
    let asked = Asked::default();
    let mut env = working(&asked).await;
    env.stop_operating().await;
    let secret = tamper(&env).await;
    // A part that no release has, and a release that is a copy.
    let mut copy = kept(&env).await.remove(0);
    for (name, data) in [
        (format!("{secret}.1"), json!({"components": "AA=="})),
        (format!("{secret}-copy"), copy["data"].take()),
    ] {
        let labels = copy["metadata"]["labels"].clone();
        let meta = json!({"name": name, "namespace": NAMESPACE, "labels": labels});
        env.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": copy["type"], "data": data}))
            .await;
    }
    env.operate(&asked.faults(|_| None));
    wait_event(&env, &asked, &secret).await;
    env.wait(
        ("v1", "Secret", &format!("{secret}-copy")),
        "to be gone",
        Value::is_null,
    )
    .await;
    env.wait(("v1", "Secret", &format!("{secret}.1")), "to be gone", Value::is_null)
        .await;
    is_mended(&env, &asked).await;
    // Once more nothing is found.
    let told = events(&env).await.len();
    env.stop_operating().await;
    env.operate(&asked.faults(|_| None));
    is_mended(&env, &asked).await;
    assert_eq!(events(&env).await.len(), told);
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_not_repaired_by_what_others_wrote() {
    let asked = Asked::default();
    let env = working(&asked).await;
    let secret = tamper(&env).await;
    env.delete(ACCOUNT).await;
    env.wait(ACCOUNT, "to be there again", |a| a["metadata"]["uid"].is_string())
        .await;
    wait_event(&env, &asked, &secret).await;
    is_mended(&env, &asked).await;
}

/// A provider that works and can be paused.
async fn pausable(asked: &Asked) -> Env {
    let env = asked.env().await;
    let infra = LookAlike::infrastructure("rig").without_required_variables();
    for provider in [&LookAlike::core(), &infra] {
        env.shelve(provider).await;
    }
    let version = json!({"version": "v1.0.0"});
    env.apply(declaration(V1ALPHA1, "CoreProvider", "cluster-api", version.clone()))
        .await;
    env.apply(declaration(V1ALPHA1, PAUSED.1, PAUSED.2, version)).await;
    env.wait_condition(PAUSED, "Ready", "True", "DeploymentAvailable").await;
    asked.nothing().await;
    env
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_does_not_apply_what_others_wrote() {
    let asked = Asked::default();
    let env = pausable(&asked).await;
    let secret = tamper(&env).await;
    env.merge(PAUSED, json!({"spec": {"paused": true}})).await;
    let told = ["ProviderInstalled", "False", REASON];
    env.wait_told(PAUSED, told, &[&secret, "no longer paused"]).await;
    env.merge(PAUSED, json!({"spec": {"paused": null}})).await;
    env.wait_installed(PAUSED, "v1.0.0").await;
    env.wait_condition(PAUSED, "Ready", "True", "DeploymentAvailable").await;
    nothing_is_left(&env, &asked).await;
}

// What is kept is as the operator wrote it, and a user with the role `edit` keeps it from being changed or deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_kept_secret_that_others_made_immutable_is_written_again() {
    let asked = Asked::default();
    let mut env = pausable(&asked).await;
    env.stop_operating().await;
    let name = kept(&env).await[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let secret = ("v1", "Secret", name.as_str());
    let held = json!({"immutable": true, "metadata": {"finalizers": ["example.com/a", "example.com/b"]}});
    env.merge(secret, held).await;
    let before = env.uid(secret).await;
    // The embedded API server does not know the field `immutable` of Secrets.
    let path = format!("/secrets/{name}");
    let deleted = AtomicBool::new(false);
    env.operate(&asked.faults(move |request| {
        let is_it = request.path.contains(&path);
        if is_it && request.method == "DELETE" {
            deleted.store(true, Ordering::Relaxed);
        }
        (is_it && request.method == "PATCH" && !deleted.load(Ordering::Relaxed)).then_some(Fault::Refused(422))
    }));
    env.merge(PAUSED, json!({"spec": {"paused": true}})).await;
    env.wait_condition(PAUSED, "Ready", "False", "Paused").await;
    env.merge(PAUSED, json!({"spec": {"paused": null}})).await;
    env.wait_condition(PAUSED, "Ready", "True", "DeploymentAvailable").await;
    asked.nothing().await;
    let after = kept(&env).await;
    assert_eq!(after.len(), 1);
    assert_eq!(after[0]["metadata"]["name"], name.as_str());
    assert_ne!(after[0]["metadata"]["uid"], before.as_str());
    assert!(after[0]["metadata"]["finalizers"].is_null() && after[0]["immutable"].is_null());
    assert_eq!(events(&env).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn going_back_does_not_apply_what_others_wrote() {
    let asked = Asked::default();
    let mut env = working(&asked).await;
    let which = Which::all().with_image("-controller:v1.0.1");
    let runs = env.runs.as_ref().expect("a controller of Deployments runs");
    runs.let_them(which.clone(), Fate::IsHeld);
    env.shelve(&LookAlike::infrastructure("rig").version("v1.0.1")).await;
    env.merge(INFRA, json!({"spec": {"version": "v1.0.1"}})).await;
    env.wait_installed(INFRA, "v1.0.1").await;
    asked.nothing().await;
    // The new one and the one to go back to.
    assert_eq!(kept(&env).await.len(), 2);
    env.stop_operating().await;
    tamper(&env).await;
    let runs = env.runs.as_ref().expect("a controller of Deployments runs");
    runs.let_them(which, Fate::Fails);
    env.operate(&asked.faults(|_| None));
    wait_event(&env, &asked, "is not as the operator wrote it").await;
    asked.nothing().await;
    assert!(env.get(PWNED).await.is_none(), "what others wrote was applied");
    env.merge(INFRA, json!({"spec": {"version": "v1.0.0"}})).await;
    is_mended(&env, &asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_source_a_provider_stays_as_it_is() {
    let asked = Asked::default();
    let mut env = working(&asked).await;
    let running = LookAlike::infrastructure("rig").deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", running.as_str());
    let before = env.get(running).await.unwrap()["metadata"].clone();
    env.stop_operating().await;
    let secret = tamper(&env).await;
    let shelf = format!("infrastructure-rig-{}", LookAlike::infrastructure("rig").release());
    env.delete(("v1", "ConfigMap", &shelf)).await;
    env.operate(&asked.faults(|_| None));
    let words = [
        secret.as_str(),
        "not as the operator wrote it",
        "what runs stays as it is",
    ];
    env.wait_told(INFRA, ["ProviderInstalled", "False", REASON], &words)
        .await;
    wait_event(&env, &asked, &secret).await;
    asked.nothing().await;
    assert!(env.get(PWNED).await.is_none(), "what others wrote was applied");
    let after = env.get(running).await.unwrap()["metadata"].clone();
    assert_eq!(
        (&after["uid"], &after["generation"]),
        (&before["uid"], &before["generation"])
    );
    let stored = env.get(INFRA).await.unwrap();
    assert_eq!(stored["status"]["installedVersion"], "v1.0.0");
    env.shelve(&LookAlike::infrastructure("rig")).await;
    is_mended(&env, &asked).await;
}

// Who may write the Secret with the variables, and the one that is kept, may not choose when they are installed.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_source_does_not_take_the_place_of_what_others_changed() {
    let asked = Asked::default();
    let env = working(&asked).await;
    tamper(&env).await;
    let other = json!({"data": {"RIG_REGION": STANDARD.encode("other")}});
    env.merge(("v1", "Secret", "variables"), other).await;
    env.delete(ACCOUNT).await;
    let told = ["ProviderInstalled", "False", REASON];
    env.wait_told(INFRA, told, &["variables", ANNOTATION]).await;
    asked.nothing().await;
    assert!(env.get(ACCOUNT).await.is_none());
    env.merge(INFRA, json!({"metadata": {"annotations": {(ANNOTATION): null}}}))
        .await;
    is_mended(&env, &asked).await;
    assert!(env.get(ACCOUNT).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_kept_without_a_digest_is_rendered_again() {
    let asked = Asked::default();
    let mut env = working(&asked).await;
    env.stop_operating().await;
    tamper(&env).await;
    env.merge(INFRA, json!({"metadata": {"annotations": {(ANNOTATION): null}}}))
        .await;
    env.operate(&asked.faults(|_| None));
    wait_event(&env, &asked, "no digest").await;
    is_mended(&env, &asked).await;
    let stored = env.get(INFRA).await.unwrap();
    assert!(stored["metadata"]["annotations"][ANNOTATION].is_string());
}

// An operator without digests, or a restored backup, leaves all declarations like this at once.
#[tokio::test(flavor = "multi_thread")]
async fn providers_without_digests_do_not_wait_for_one_another() {
    const CORE: (&str, &str, &str) = (V1ALPHA2, "CoreProvider", "cluster-api");
    let asked = Asked::default();
    let mut env = working(&asked).await;
    env.stop_operating().await;
    for of in [CORE, INFRA] {
        env.merge(of, json!({"metadata": {"annotations": {(ANNOTATION): null}}}))
            .await;
    }
    env.operate(&asked.faults(|_| None));
    for of in [CORE, INFRA] {
        env.wait(of, "to have digests again", |o| {
            o["metadata"]["annotations"][ANNOTATION].is_string()
        })
        .await;
        env.wait_installed(of, "v1.0.0").await;
        env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
    }
    is_mended(&env, &asked).await;
}

// Removing it ends with what carries its labels, not with what others say that it has.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_wrote_is_not_deleted_and_what_was_installed_is() {
    let asked = Asked::default();
    let mut env = working(&asked).await;
    env.stop_operating().await;
    tamper(&env).await;
    env.apply(json!({
        "apiVersion": PWNED.0, "kind": PWNED.1,
        "metadata": {"name": PWNED.2, "labels": {"cluster.x-k8s.io/provider": "infrastructure-rig"}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    }))
    .await;
    env.delete(INFRA).await;
    env.operate(&asked.faults(|_| None));
    env.wait(INFRA, "to be gone", Value::is_null).await;
    env.wait(ACCOUNT, "to be gone", Value::is_null).await;
    assert!(env.get(PWNED).await.is_some(), "what was never installed was deleted");
    assert!(kept(&env).await.is_empty());
}

// Digests and Secrets are written one after the other. A process may end between any two writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ends_between_two_writes_leaves_nothing_strange() {
    let asked = Asked::default();
    let mut env = working(&asked).await;
    let old = ("v1", "ConfigMap", "infrastructure-rig-old-only");
    for (at, write) in [1, 2, 3, 4, 5, 24, 25, 26, 27, 28, 29, 30].into_iter().enumerate() {
        env.stop_operating().await;
        let version = format!("v1.0.{}", at + 1);
        let release = LookAlike::infrastructure("rig").version(&version);
        // Every second release has what the next one has to delete.
        let release = if at % 2 == 0 {
            release.extra("old-only")
        } else {
            release
        };
        env.shelve(&release).await;
        env.merge(INFRA, json!({"spec": {"version": version}})).await;
        let faults = Faults::dying_at_write(write);
        env.operate(&faults);
        faults.died().await;
        env.stop_operating().await;
        env.operate(&asked.faults(|_| None));
        env.wait_installed(INFRA, &version).await;
        env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
        let is_right = |found: &Value| found.is_null() == (at % 2 != 0);
        env.wait(old, "to be of every second release", is_right).await;
        asked.nothing().await;
        assert_eq!(events(&env).await, [""; 0], "cut off at write {write}");
        assert_eq!(kept(&env).await.len(), 1);
    }
}
