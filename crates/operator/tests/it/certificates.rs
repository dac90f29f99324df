//! Certificates of webhooks: our own, and cert-manager's where it is installed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_controller_runtime::Timestamp;
use windlass_fake_providers::LookAlike;
use windlass_meta::FakeClock;
use windlass_provider_repository::Settings;
use windlass_testkit::Deployments;
use windlass_testkit::faults::{Fault, Faults};

use crate::env::{Env, NAMESPACE, Of, V1ALPHA2, declaration};

const INFRA: Of<'_> = (V1ALPHA2, "InfrastructureProvider", "rig");
const SECRET: Of<'_> = ("v1", "Secret", "infrastructure-rig-webhook-service-cert");
const SHELF: Of<'_> = ("v1", "ConfigMap", "infrastructure-rig-v1.0.0");
const DEPLOYMENT: Of<'_> = ("apps/v1", "Deployment", "infrastructure-rig-controller-manager");
const HOOKS: [Of<'_>; 2] = [
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "infrastructure-rig-mutating-webhook-configuration",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "infrastructure-rig-validating-webhook-configuration",
    ),
];
const DEFINITION: Of<'_> = (
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "rigrigclusters.infrastructure.cluster.x-k8s.io",
);

async fn install(env: &Env) {
    env.with_core(V1ALPHA2).await;
    env.shelve(&LookAlike::infrastructure("rig").without_required_variables())
        .await;
    env.apply(declaration(V1ALPHA2, INFRA.1, INFRA.2, json!({"version": "v1.0.0"})))
        .await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
}

/// Where a webhook's clients look for whom to trust.
const TRUSTED: [&str; 2] = [
    "/webhooks/0/clientConfig/caBundle",
    "/spec/conversion/webhook/clientConfig/caBundle",
];

/// Whom everybody trusts who asks the provider's webhooks.
async fn bundles(env: &Env) -> Vec<Value> {
    let mut bundles = Vec::new();
    for of in [HOOKS[0], HOOKS[1], DEFINITION] {
        let object = env.get(of).await.unwrap();
        bundles.extend(TRUSTED.iter().filter_map(|place| object.pointer(place)).cloned());
    }
    assert_eq!(bundles.len(), 3);
    bundles
}

fn pem(value: &Value) -> Vec<String> {
    let text = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap();
    let text = String::from_utf8(text).unwrap();
    text.split_inclusive("-----END CERTIFICATE-----\n")
        .map(str::to_owned)
        .collect()
}

// OP-073, OP-245
#[tokio::test(flavor = "multi_thread")]
async fn our_own_are_renewed_in_time_and_the_clients_of_webhooks_trust_them() {
    let mut env = Env::idle(Settings::default()).await;
    env.runs = Some(Deployments::run(env.client.clone()));
    let start = Timestamp::now();
    let clock = FakeClock::new(start);
    env.clock = Some(clock.clone());
    env.operate(&Faults::none());
    install(&env).await;
    // Everything that follows is done without fetching anything.
    env.delete(SHELF).await;
    let uid = env.uid(DEPLOYMENT).await;
    let first = env.get(SECRET).await.unwrap();
    assert_eq!(first["type"], "kubernetes.io/tls");
    let authority = first["data"]["ca.crt"].clone();
    assert_eq!(bundles(&env).await, vec![authority.clone(); 3]);

    let later = async |days: u64, minutes: u64| {
        let passed = Duration::from_secs((days * 24 * 60 + minutes) * 60);
        clock.set(start.checked_add(passed).unwrap());
        env.poke(INFRA, &format!("day {days}, minute {minutes}")).await;
    };
    // A third of its ninety days is left: it goes on; then it is issued again, by the same authority.
    later(59, 0).await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
    assert_eq!(env.get(SECRET).await.unwrap()["data"], first["data"]);
    later(61, 0).await;
    let renewed = |before: &Value| {
        let before = before["data"]["tls.crt"].clone();
        move |secret: &Value| secret["data"]["tls.crt"] != before
    };
    let second = env.wait(SECRET, "another certificate", renewed(&first)).await;
    assert_eq!(second["data"]["ca.crt"], authority);
    // After two thirds of ten years there is another authority; it is trusted before it issues anything.
    later(2450, 0).await;
    let third = env.wait(SECRET, "another certificate", renewed(&second)).await;
    let both = third["data"]["ca.crt"].clone();
    assert_eq!((pem(&both).len(), &pem(&both)[0]), (2, &pem(&authority)[0]));
    let is_trusted =
        |place: usize, bundle: Value| move |object: &Value| object.pointer(TRUSTED[place]) == Some(&bundle);
    env.wait(HOOKS[1], "both authorities", is_trusted(0, both.clone()))
        .await;
    env.wait(DEFINITION, "both authorities", is_trusted(1, both.clone()))
        .await;
    later(2450, 31).await;
    let fourth = env.wait(SECRET, "a certificate of the next one", renewed(&third)).await;
    let last = fourth["data"]["ca.crt"].clone();
    assert_eq!(pem(&last), [pem(&both)[1].clone(), pem(&both)[0].clone()]);
    for of in HOOKS {
        env.wait(of, "the next one first", is_trusted(0, last.clone())).await;
    }
    env.wait(DEFINITION, "the next one first", is_trusted(1, last.clone()))
        .await;
    assert_eq!(env.uid(DEPLOYMENT).await, uid);
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_renewed_although_something_else_cannot_be_put_back() {
    const ACCOUNT: Of<'_> = ("v1", "ServiceAccount", "infrastructure-rig-manager");
    let mut env = Env::idle(Settings::default()).await;
    env.runs = Some(Deployments::run(env.client.clone()));
    let start = Timestamp::now();
    let clock = FakeClock::new(start);
    env.clock = Some(clock.clone());
    let installed = Arc::new(AtomicBool::new(false));
    let refuses = installed.clone();
    env.operate(&Faults::when(move |request| {
        let is_it = request.method == "PATCH" && request.path.contains(&format!("/serviceaccounts/{}?", ACCOUNT.2));
        (is_it && refuses.load(Ordering::SeqCst)).then_some(Fault::Refused(500))
    }));
    install(&env).await;
    installed.store(true, Ordering::SeqCst);
    env.delete(ACCOUNT).await;
    let told = ["ProviderUpgraded", "False", "ComponentsApplyError"];
    env.wait_told(INFRA, told, &[ACCOUNT.2]).await;
    let first = env.get(SECRET).await.unwrap();
    clock.set(start.checked_add(Duration::from_hours(61 * 24)).unwrap());
    env.poke(INFRA, "later").await;
    env.wait(SECRET, "another certificate", |secret| {
        secret["data"]["tls.crt"] != first["data"]["tls.crt"]
    })
    .await;
    installed.store(false, Ordering::SeqCst);
    env.poke(INFRA, "again").await;
    env.wait(ACCOUNT, "to be there again", Value::is_object).await;
    env.wait_condition(INFRA, "ProviderUpgraded", "True", "ProviderUpgraded")
        .await;
}

/// A kind of cert-manager, as far as these tests look at it.
fn kind(kind: &str) -> Value {
    let singular = kind.to_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{singular}s.cert-manager.io")},
        "spec": {
            "group": "cert-manager.io", "scope": "Namespaced",
            "names": {"kind": kind, "plural": format!("{singular}s"), "singular": singular, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

// OP-073, OP-245
#[tokio::test(flavor = "multi_thread")]
async fn where_cert_manager_is_it_makes_them() {
    let (mut env, forge) = Env::idle_forged().await;
    env.server.define(&[kind("Certificate"), kind("Issuer")]).await;
    env.operate(&Faults::none());
    install(&env).await;
    let certificate = ("cert-manager.io/v1", "Certificate", "infrastructure-rig-serving-cert");
    let stored = env.get(certificate).await.unwrap();
    assert_eq!(
        stored["spec"]["dnsNames"][0],
        "infrastructure-rig-webhook-service.providers.svc"
    );
    assert_eq!(env.get(SECRET).await, None, "it is cert-manager's to make");
    let from = format!("{NAMESPACE}/{}", certificate.2);
    for of in [HOOKS[0], HOOKS[1], DEFINITION] {
        let object = env.get(of).await.unwrap();
        assert_eq!(
            object["metadata"]["annotations"]["cert-manager.io/inject-ca-from"],
            json!(from)
        );
    }
    // What cert-manager injects stays, whatever else is put back.
    let bundle = json!(STANDARD.encode(forge.authority()));
    let mut hooks = env.get(HOOKS[1]).await.unwrap()["webhooks"].clone();
    hooks[0]["clientConfig"]["caBundle"] = bundle.clone();
    hooks[0]["failurePolicy"] = json!("Ignore");
    env.merge(HOOKS[1], json!({ "webhooks": hooks })).await;
    let spoilt = json!({"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}});
    env.merge(DEFINITION, json!({ "spec": spoilt })).await;
    let repaired = |hooks: &Value| hooks["webhooks"][0]["failurePolicy"] == "Fail";
    let hooks = env.wait(HOOKS[1], "to be put back", repaired).await;
    assert_eq!(hooks.pointer(TRUSTED[0]), Some(&bundle));
    env.delete(certificate).await;
    env.wait(certificate, "to be there again", Value::is_object).await;
    assert_eq!(env.get(DEFINITION).await.unwrap().pointer(TRUSTED[1]), Some(&bundle));
    env.delete(INFRA).await;
    env.wait(INFRA, "to be gone", Value::is_null).await;
    assert_eq!(env.get(certificate).await, None);
}
