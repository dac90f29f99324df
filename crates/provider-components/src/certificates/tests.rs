use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use windlass_pki::KeyAlgorithm;

use super::*;

const DNS: [&str; 2] = ["webhook.ns.svc", "webhook.ns.svc.cluster.local"];
const DAY: SignedDuration = SignedDuration::from_hours(24);

fn webhook(kind: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "hooks", "annotations": {"cert-manager.io/inject-ca-from": "ns/serving-cert"}},
        "webhooks": [
            {"name": "a", "clientConfig": {"service": {"name": "webhook"}}},
            {"name": "b", "clientConfig": {"service": {"name": "webhook"}, "caBundle": "Cg=="}},
        ],
    })
}

fn provider() -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {"namespace": "ns", "name": "selfsigned"}, "spec": {"selfSigned": {}},
        }),
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"namespace": "ns", "name": "serving-cert", "labels": {"a": "b"}},
            "spec": {
                "dnsNames": DNS, "secretName": "webhook-cert",
                "issuerRef": {"kind": "Issuer", "name": "selfsigned"},
                "subject": {"organizations": ["sig"]},
            },
        }),
        webhook("MutatingWebhookConfiguration"),
        webhook("ValidatingWebhookConfiguration"),
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "a", "annotations": {"cert-manager.io/inject-ca-from": "ns/serving-cert", "kept": "1"}},
            "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {}}}}},
        }),
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "b", "annotations": {"cert-manager.io/inject-ca-from": "ns/serving-cert"}},
            "spec": {},
        }),
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "c", "annotations": {"cert-manager.io/inject-ca-from-secret": "ns/webhook-cert"}},
            "spec": {"service": {}},
        }),
    ]
}

fn at(days: i32) -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap() + DAY * days
}

/// The stored objects after a complete apply of the operator.
#[derive(Default)]
struct Store {
    secrets: BTreeMap<String, Value>,
    keys: usize,
}

impl Store {
    fn get(&self, secret: &str, key: &str) -> Option<Vec<u8>> {
        STANDARD.decode(self.secrets.get(secret)?["data"][key].as_str()?).ok()
    }

    fn text(&self, secret: &str, key: &str) -> String {
        String::from_utf8(self.get(secret, key).unwrap()).unwrap()
    }

    /// A reconcile: processes the objects, and stores Secrets.
    fn pass(&mut self, mut objects: Vec<Value>, now: Timestamp) -> (Vec<Value>, StandIn) {
        let mut keys = 0;
        let mut new_key = || {
            keys += 1;
            PrivateKey::generate(KeyAlgorithm::EcdsaP256)
        };
        let done = stand_in(
            &mut objects,
            &mut Means {
                namespace: "ns",
                authority: "x-authority",
                stored: &|secret, key| self.get(secret, key),
                new_key: &mut new_key,
                now,
            },
        )
        .unwrap();
        self.keys = keys;
        for secret in objects.iter().filter(|one| one["kind"] == "Secret") {
            self.secrets.insert(object::name(secret).to_owned(), secret.clone());
        }
        (objects, done)
    }

    fn leaf(&self) -> Certificate {
        Certificate::from_pem(&self.text("webhook-cert", CERTIFICATE)).unwrap()
    }

    fn trusted(&self) -> Vec<Certificate> {
        Certificate::all_from_pem(&self.text("webhook-cert", BUNDLE)).unwrap()
    }
}

use crate::object;

#[test]
fn what_is_asked_for_is_found() {
    let plan = plan(&provider()).unwrap();
    let [request] = plan.requests.as_slice() else {
        panic!("{plan:?}")
    };
    assert_eq!(request.certificate.to_string(), "ns/serving-cert");
    assert_eq!(request.secret, "webhook-cert");
    assert_eq!(request.names().collect::<Vec<_>>(), DNS);
    assert_eq!(request.organization.as_deref(), Some("sig"));
    assert_eq!(
        (request.days, request.renew_before, request.usage),
        (90, None, LeafUsage::Server)
    );
    assert_eq!(
        plan.injections.iter().map(|one| one.at).collect::<Vec<_>>(),
        [2, 3, 4, 5, 6]
    );
}

#[test]
fn durations_and_usages_are_read() {
    let check = |spec: Value, days: i32, before: Option<i64>, usage: LeafUsage| {
        let mut objects = provider();
        objects[1]["spec"]
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let request = plan(&objects).unwrap().requests.remove(0);
        assert_eq!(request.days, days);
        assert_eq!(request.renew_before, before.map(SignedDuration::from_hours));
        assert_eq!(request.usage, usage);
    };
    check(json!({"duration": "8760h"}), 365, None, LeafUsage::Server);
    check(
        json!({"duration": "25h0m1s", "renewBefore": "12h"}),
        2,
        Some(12),
        LeafUsage::Server,
    );
    check(json!({"usages": ["client auth"]}), 90, None, LeafUsage::Client);
    check(
        json!({"usages": ["client auth", "server auth"]}),
        90,
        None,
        LeafUsage::Peer,
    );
    check(
        json!({"usages": ["digital signature", "server auth"]}),
        90,
        None,
        LeafUsage::Server,
    );
}

#[test]
fn secrets_and_bundles_take_their_places() {
    // OP-245: without cert-manager, a provider gets the same certificates.
    let mut store = Store::default();
    let (objects, done) = store.pass(provider(), at(0));
    assert!(
        objects
            .iter()
            .all(|one| !one["apiVersion"].as_str().unwrap().starts_with("cert-manager.io"))
    );
    assert!(
        !json!(objects).to_string().contains("cert-manager.io"),
        "annotations are gone as well"
    );
    let bundle = STANDARD.encode(store.text("webhook-cert", BUNDLE));
    for hook in [
        &objects[0]["webhooks"][0],
        &objects[0]["webhooks"][1],
        &objects[1]["webhooks"][1],
    ] {
        assert_eq!(hook["clientConfig"]["caBundle"], bundle.as_str());
    }
    let config = &objects[2]["spec"]["conversion"]["webhook"]["clientConfig"];
    assert_eq!(config["caBundle"], bundle.as_str());
    assert_eq!(objects[2]["metadata"]["annotations"], json!({"kept": "1"}));
    assert_eq!(objects[3]["spec"], json!({}));
    assert_eq!(objects[4]["spec"]["caBundle"], bundle.as_str());
    let secret = &store.secrets["webhook-cert"];
    assert_eq!(secret["type"], "kubernetes.io/tls");
    assert_eq!(
        secret["metadata"],
        json!({"namespace": "ns", "name": "webhook-cert", "labels": {"a": "b"}})
    );
    let leaf = store.leaf();
    assert_eq!(leaf.alternative_names(), DNS);
    assert_eq!(leaf.not_after(), at(90));
    assert!(store.trusted()[0].is_ca());
    // Notes and debug output contain no key.
    let shown = format!("{done:?}");
    assert!(!shown.contains("PRIVATE KEY"), "{shown}");
    assert_eq!(
        done.notes.iter().take(2).map(ToString::to_string).collect::<Vec<_>>(),
        [
            "certificates: made an authority for certificates (Secret ns/x-authority)",
            "certificates: issued a certificate for webhook.ns.svc, webhook.ns.svc.cluster.local (Secret ns/webhook-cert)",
        ]
    );
}

#[test]
fn the_same_comes_out_until_something_is_due() {
    // OP-217
    let mut store = Store::default();
    let (first, done) = store.pass(provider(), at(0));
    assert_eq!(done.again, Some(at(60)), "after two thirds of the life");
    let (second, done) = store.pass(provider(), at(59));
    assert_eq!(first, second);
    assert_eq!((store.keys, done.again), (0, Some(at(60))));
    let (third, done) = store.pass(provider(), at(60));
    assert_ne!(first, third);
    assert_eq!(
        (store.keys, done.again),
        (1, Some(at(120))),
        "a certificate, no authority"
    );
}

#[test]
fn secrets_that_are_there_are_replaced() {
    let mut store = Store::default();
    let (first, _) = store.pass(provider(), at(0));
    let mut objects = provider();
    objects.extend(first.iter().filter(|one| one["kind"] == "Secret").cloned());
    let (again, _) = store.pass(objects, at(60));
    assert_eq!(again.len(), first.len());
    assert_eq!(again.iter().filter(|one| one["kind"] == "Secret").count(), 2);
}

#[test]
fn other_names_and_damage_are_reasons_to_issue() {
    let check = |change: &dyn Fn(&mut Vec<Value>, &mut Store), keys: usize| {
        let mut store = Store::default();
        store.pass(provider(), at(0));
        let mut objects = provider();
        change(&mut objects, &mut store);
        store.pass(objects, at(1));
        assert_eq!(store.keys, keys);
    };
    let set = |store: &mut Store, secret: &str, key: &str, text: &str| {
        store.secrets.get_mut(secret).unwrap()["data"][key] = json!(STANDARD.encode(text));
    };
    check(&|_, _| {}, 0);
    check(
        &|objects, _| objects[1]["spec"]["dnsNames"] = json!(["other.ns.svc"]),
        1,
    );
    check(
        &|objects, _| objects[1]["spec"]["dnsNames"] = json!([DNS[1], DNS[0]]),
        0,
    );
    check(&|_, store| set(store, "webhook-cert", CERTIFICATE, "no"), 1);
    check(&|_, store| set(store, "webhook-cert", BUNDLE, ""), 1);
    check(
        &|_, store| {
            let other = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
            set(store, "webhook-cert", KEY, &other.to_pem());
        },
        1,
    );
    // Without the authority, everything is new.
    check(&|_, store| drop(store.secrets.remove("x-authority")), 2);
    check(&|_, store| set(store, "x-authority", KEY, "no"), 2);
}

#[test]
fn a_new_authority_is_trusted_before_it_issues_and_an_old_one_stays() {
    let mut store = Store::default();
    store.pass(provider(), at(0));
    let old = store.trusted()[0].clone();
    // Two thirds of ten years.
    let due = 2434;
    store.pass(provider(), at(due - 30));
    assert_eq!(store.trusted(), std::slice::from_ref(&old));
    let (_, done) = store.pass(provider(), at(due));
    let [first, new] = store.trusted().try_into().unwrap();
    assert_eq!(first, old, "the old one still issues");
    let soon = done.again.unwrap();
    assert_eq!(soon, at(due) + SignedDuration::from_mins(30));
    let before = store.leaf();
    store.pass(provider(), at(due));
    assert_eq!(store.leaf(), before);
    // Now all clients trust it.
    let (_, done) = store.pass(provider(), soon);
    assert_eq!(store.trusted(), [new.clone(), old], "the old one stays trusted");
    assert_ne!(store.leaf(), before);
    let (_, again) = store.pass(provider(), soon + DAY);
    assert_eq!((store.keys, again.again), (0, done.again));
    // At its end it is dropped.
    store.pass(provider(), at(3651));
    assert_eq!(store.trusted(), [new]);
}

#[test]
fn an_authority_that_has_ended_is_replaced_at_once() {
    let mut store = Store::default();
    store.pass(provider(), at(0));
    let old = store.trusted();
    store.pass(provider(), at(4000));
    assert_eq!(store.trusted().len(), 1);
    assert_ne!(store.trusted(), old);
    assert_eq!(store.leaf().not_after(), at(4090));
}

#[test]
fn authorities_among_the_certificates_are_the_providers() {
    let mut objects = provider();
    objects.push(json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
        "metadata": {"namespace": "ns", "name": "ca"},
        "spec": {"isCA": true, "secretName": "ca-secret", "commonName": "x", "issuerRef": {"name": "selfsigned"}},
    }));
    objects.push(json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
        "metadata": {"namespace": "ns", "name": "by-ca"}, "spec": {"ca": {"secretName": "ca-secret"}},
    }));
    objects[1]["spec"]["issuerRef"]["name"] = json!("by-ca");
    let mut store = Store::default();
    store.pass(objects.clone(), at(0));
    assert_eq!(store.text("ca-secret", CERTIFICATE), store.trusted()[0].to_pem());
    store.pass(objects, at(1));
    assert_eq!(store.keys, 0);
}

#[test]
fn requests_that_need_cert_manager_are_reported() {
    let check = |change: &dyn Fn(&mut Vec<Value>), expect: &str| {
        let mut objects = provider();
        change(&mut objects);
        let error = plan(&objects).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
        assert!(error.starts_with("cert-manager is not installed"), "{error}");
    };
    check(
        &|all| all[1]["spec"]["issuerRef"] = json!({"kind": "ClusterIssuer", "name": "public"}),
        "Certificate ns/serving-cert is issued by ClusterIssuer public, which does not come with the provider",
    );
    check(
        &|all| all[0]["spec"] = json!({"acme": {}}),
        "Issuer selfsigned, which is neither selfSigned nor",
    );
    check(
        &|all| all[1]["spec"]["uris"] = json!(["spiffe://x"]),
        "asks for spec.uris",
    );
    check(
        &|all| all[1]["spec"]["dnsNames"] = json!([]),
        "has neither spec.dnsNames nor",
    );
    check(
        &|all| all[1]["spec"]["duration"] = json!("long"),
        "spec.duration that cannot be read",
    );
    check(
        &|all| drop(all[1]["spec"].as_object_mut().unwrap().remove("secretName")),
        "has no spec.secretName",
    );
    check(
        &|all| all[2]["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] = json!("ns/other"),
        "MutatingWebhookConfiguration hooks is to trust Certificate ns/other",
    );
    check(
        &|all| all[2]["metadata"]["annotations"]["cert-manager.io/inject-apiserver-ca"] = json!("true"),
        "inject-apiserver-ca",
    );
    check(
        &|all| all[0]["kind"] = json!("CertificateRequest"),
        "CertificateRequest ns/selfsigned cannot be replaced",
    );
    check(&|all| all.push(all[1].clone()), "has the Secret of another one");
    assert_eq!(
        put(&mut provider(), &plan(&provider()).unwrap(), &BTreeMap::new()),
        Err(CertificateError::Missing("webhook-cert".to_owned()))
    );
}

#[test]
fn a_provider_without_certificates_needs_none() {
    let mut store = Store::default();
    let objects = vec![json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}})];
    let (after, done) = store.pass(objects.clone(), at(0));
    assert_eq!(after, objects);
    assert!(done.again.is_none() && done.notes.is_empty());
}

#[test]
fn certificates_are_renewed_in_time() {
    let check = |life: i32, before: Option<i32>, expect: i32| {
        assert_eq!(
            renew_at(at(life), DAY * life, before.map(|days| DAY * days)),
            at(expect)
        );
    };
    check(90, None, 60);
    check(90, Some(10), 80);
    // A request for the whole life is ignored.
    check(90, Some(90), 60);
    check(90, Some(0), 60);
}
