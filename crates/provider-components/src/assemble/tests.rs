use proptest::prelude::*;
use serde_json::json;
use windlass_fake_providers::{Flaw, LookAlike};

use super::*;
use crate::{envsubst, manifest};

fn read(provider: &LookAlike) -> Vec<Value> {
    let text = provider.components();
    let text = envsubst::Template::parse(&text)
        .unwrap()
        .render(|name| Some(format!("value-of-{name}")))
        .unwrap();
    manifest::parse(&text).unwrap()
}

fn aws() -> LookAlike {
    LookAlike::infrastructure("aws").deployments(2)
}

fn put(objects: Vec<Value>, namespace: Option<&str>) -> Result<Components, AssembleError> {
    assemble(Input {
        type_: ProviderType::Infrastructure,
        name: "aws",
        namespace,
        objects,
    })
}

fn definition(name: &str, group: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {"group": group, "names": {"kind": kind}, "scope": "Namespaced", "versions": [{"name": "v1", "served": true}]},
    })
}

fn deployment(namespace: &str, name: &str) -> Value {
    let container = json!({"name": "manager", "image": "a/b:c", "args": ["--leader-elect", "--namespace=x", "--v=2"]});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {"spec": {"containers": [container, {"name": "proxy", "args": ["--namespace=x"]}]}}},
    })
}

/// All texts in a value.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| texts(value, found)),
        Value::Object(map) => map.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

// OP-073, OP-215
#[test]
fn everything_comes_into_the_target_namespace() {
    let provider = aws();
    let made = put(read(&provider), Some("foo")).unwrap();
    assert_eq!(made.namespace, "foo");
    let mut found = Vec::new();
    for object in &made.objects {
        texts(object, &mut found);
    }
    let left: Vec<_> = found
        .iter()
        .filter(|text| text.contains(provider.own_namespace()))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let expect = [
        "foo/infrastructure-aws-serving-cert",
        "infrastructure-aws-webhook-service.foo.svc",
        "infrastructure-aws-webhook-service.foo.svc.cluster.local",
    ];
    assert!(
        expect.iter().all(|text| found.iter().any(|known| known == text)),
        "{found:?}"
    );
    // Cluster-scoped objects have no namespace; all others have this one.
    for object in &made.objects {
        let wide = matches!(
            object::kind(object),
            "Namespace" | "CustomResourceDefinition" | "ClusterRole" | "ClusterRoleBinding"
        ) || object::kind(object).ends_with("WebhookConfiguration");
        assert_eq!(object::namespace(object), if wide { "" } else { "foo" }, "{object}");
    }
}

// OP-073
#[test]
fn without_a_target_the_namespace_of_the_release_stays() {
    let provider = aws();
    let before = read(&provider);
    let made = put(before.clone(), None).unwrap();
    assert_eq!(made.namespace, provider.own_namespace());
    let without_labels = |objects: &[Value]| {
        let mut objects = objects.to_vec();
        for object in &mut objects {
            object["metadata"]["labels"] = Value::Null;
        }
        objects
    };
    assert_eq!(without_labels(&made.objects), without_labels(&before));
}

#[test]
fn everything_is_labelled() {
    let made = put(read(&aws()), Some("foo")).unwrap();
    assert_eq!(made.label, "infrastructure-aws");
    for object in &made.objects {
        let labels = &object["metadata"]["labels"];
        assert_eq!(labels["clusterctl.cluster.x-k8s.io"], "", "{object}");
        assert_eq!(labels["cluster.x-k8s.io/provider"], "infrastructure-aws", "{object}");
    }
    let core = assemble(Input {
        type_: ProviderType::Core,
        name: "cluster-api",
        namespace: None,
        objects: read(&LookAlike::core()),
    });
    assert_eq!(core.unwrap().label, "cluster-api");
}

// OP-074
#[test]
fn providers_share_a_namespace() {
    let mut seen = BTreeSet::new();
    let providers = [
        (ProviderType::Core, LookAlike::core()),
        (ProviderType::Bootstrap, LookAlike::bootstrap("kubeadm")),
        (ProviderType::ControlPlane, LookAlike::control_plane("kubeadm")),
        (ProviderType::Infrastructure, aws()),
    ];
    for (type_, provider) in &providers {
        let made = assemble(Input {
            type_: *type_,
            name: provider.name(),
            namespace: Some("foo"),
            objects: read(provider),
        });
        for object in made
            .unwrap()
            .objects
            .iter()
            .filter(|object| object::kind(object) != "Namespace")
        {
            assert!(seen.insert(Identity::of(object)), "{}", Identity::of(object));
        }
    }
}

#[test]
fn references_follow() {
    let check = |object: Value, field: &str, expect: Value| {
        let made = put(vec![deployment("old", "d"), object.clone()], Some("new")).unwrap();
        assert_eq!(made.objects[1].pointer(field), Some(&expect), "{object}");
    };
    let rbac = |kind: &str, subjects: Value| {
        let version = "rbac.authorization.k8s.io/v1";
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "subjects": subjects})
    };
    let subjects = json!([{"kind": "ServiceAccount", "name": "a", "namespace": "old"}, {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "name": "b", "namespace": "other"}]);
    let moved = json!([{"kind": "ServiceAccount", "name": "a", "namespace": "new"}, {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "name": "b", "namespace": "new"}]);
    check(rbac("RoleBinding", subjects.clone()), "/subjects", moved.clone());
    check(rbac("ClusterRoleBinding", subjects), "/subjects", moved);
    let service = json!({"name": "s", "namespace": "old", "path": "/x"});
    let there = json!({"name": "s", "namespace": "new", "path": "/x"});
    let mut crd = definition("as.g", "g", "A");
    crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}}});
    check(
        crd.clone(),
        "/spec/conversion/webhook/clientConfig/service",
        there.clone(),
    );
    crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhookClientConfig": {"service": service}});
    check(crd, "/spec/conversion/webhookClientConfig/service", there.clone());
    let hooks = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "w", "annotations": {"cert-manager.io/inject-ca-from": "old/cert"}},
        "webhooks": [{"clientConfig": {"service": service}}, {"clientConfig": {"url": "https://x"}}]});
    check(hooks.clone(), "/webhooks/0/clientConfig/service", there.clone());
    check(hooks.clone(), "/webhooks/1/clientConfig", json!({"url": "https://x"}));
    check(
        hooks,
        "/metadata/annotations/cert-manager.io~1inject-ca-from",
        json!("new/cert"),
    );
    let api = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "a"},
        "spec": {"service": service}});
    check(api, "/spec/service", there);
    let names = json!([
        "s.old.svc",
        "s.old.svc.cluster.local",
        "s.old",
        "old.svc",
        "localhost",
        "old.old.old.svc"
    ]);
    let moved = json!([
        "s.new.svc",
        "s.new.svc.cluster.local",
        "s.new",
        "old.svc",
        "localhost",
        "old.new.old.svc"
    ]);
    let certificate = json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
        "metadata": {"name": "c", "namespace": "old"}, "spec": {"commonName": "s.old.svc", "dnsNames": names}});
    check(certificate.clone(), "/spec/dnsNames", moved);
    check(certificate, "/spec/commonName", json!("s.new.svc"));
}

#[test]
fn kinds_of_the_whole_cluster_get_no_namespace() {
    let mut own = definition("as.g", "g", "A");
    own["spec"]["scope"] = json!("Cluster");
    let of = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": "y"}});
    let objects = vec![
        deployment("old", "d"),
        own,
        of("g/v1", "A"),
        of("g/v1", "B"),
        of("v1", "PersistentVolume"),
        of("scheduling.k8s.io/v1", "PriorityClass"),
        of("ipam.cluster.x-k8s.io/v1", "IPAddress"),
    ];
    let made = put(objects, Some("new")).unwrap();
    let found: Vec<_> = made.objects[2..].iter().map(object::namespace).collect();
    assert_eq!(found, ["", "new", "", "", "new"]);
}

#[track_caller]
fn refuse(objects: Vec<Value>, expect: &str) {
    assert_eq!(put(objects, None).unwrap_err().to_string(), expect);
}

// OP-071
#[test]
fn what_cannot_be_installed_is_refused() {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    refuse(
        vec![deployment("old", "d")],
        "no namespace is given, and the components have none; name the namespace to install into",
    );
    refuse(
        vec![namespace("a"), namespace("b")],
        "the components have the Namespaces a and b: a provider is installed into one",
    );
    refuse(
        vec![namespace("a")],
        "the components have no Deployment, so nothing would run; is it the right file?",
    );
    refuse(
        vec![namespace("a"), deployment("x", "d"), deployment("y", "d")],
        "Deployment a/d is there twice, from different namespaces: everything of a provider is installed into one",
    );
    let mut empty = deployment("x", "d");
    empty["spec"] = json!({});
    refuse(
        vec![namespace("a"), empty],
        "Deployment a/d has no containers; is the file whole?",
    );
    let mut labels = deployment("x", "d");
    labels["metadata"]["labels"] = json!("none");
    refuse(
        vec![namespace("a"), labels],
        "Deployment a/d: metadata.labels is \"none\"; expected a map",
    );
    let mut inject = deployment("x", "d");
    inject["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "cert"});
    refuse(
        vec![namespace("a"), inject],
        "Deployment a/d: metadata.annotations[cert-manager.io/inject-ca-from] is \"cert\"; expected NAMESPACE/NAME",
    );
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "b"}, "subjects": {}});
    refuse(
        vec![namespace("a"), binding],
        "RoleBinding a/b: subjects is {}; expected a list",
    );
}

#[test]
fn the_flaws_of_look_alikes_are_refused() {
    let check = |flaw: Flaw| put(read(&aws().with_flaw(flaw)), Some("foo")).unwrap_err();
    assert_eq!(check(Flaw::NoDeployment), AssembleError::NoDeployment);
    assert!(matches!(
        check(Flaw::TwoNamespaces),
        AssembleError::TwoNamespaces { .. }
    ));
    assert!(matches!(
        check(Flaw::WrongDefinitionName),
        AssembleError::DefinitionName { .. }
    ));
}

#[test]
fn definitions_are_named_as_they_are_looked_for() {
    let run = |definition: Value| put(vec![deployment("old", "d"), definition], Some("new"));
    assert!(run(definition("foos.g", "g", "Foo")).is_ok());
    assert_eq!(
        run(definition("food.g", "g", "Foo")).unwrap_err().to_string(),
        "the CustomResourceDefinition of Foo is named \"food.g\", and Cluster API looks for it as \"foos.g\"; if no object of the \
         core refers to the kind, the annotation clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check on it says so"
    );
    let mut skipped = definition("food.g", "g", "Foo");
    skipped["metadata"]["annotations"] = json!({"clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check": ""});
    assert!(run(skipped).is_ok());
}

// OP-184, OP-215
#[test]
fn managers_look_after_all_namespaces() {
    let made = put(vec![deployment("old", "d")], Some("new")).unwrap();
    let containers = &made.objects[0]["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers[0]["args"], json!(["--leader-elect", "--v=2"]));
    assert_eq!(
        containers[1]["args"],
        json!(["--namespace=x"]),
        "only the manager is known to mean that"
    );
    assert_eq!(
        made.notes,
        ["Deployment new/d: the argument --namespace=x is left out, as providers look after all namespaces"]
    );
}

#[test]
fn contract_labels_that_lead_nowhere_are_noted() {
    let run = |labels: Value| {
        let mut crd = definition("foos.g", "g", "Foo");
        crd["metadata"]["labels"] = labels;
        let mut made = put(vec![deployment("old", "d"), crd], Some("new")).unwrap();
        made.notes.split_off(1)
    };
    let none = [""; 0];
    assert_eq!(
        run(json!({"cluster.x-k8s.io/v1beta2": "v1", "cluster.x-k8s.io/provider": "x"})),
        none
    );
    assert_eq!(
        run(json!({"cluster.x-k8s.io/v1beta1": "v0_v1", "cluster.x-k8s.io/v1alpha3": "v0"})),
        none
    );
    assert_eq!(run(json!({})), none);
    assert_eq!(
        run(json!({"cluster.x-k8s.io/v1beta2": "v2_v3"})),
        ["CustomResourceDefinition foos.g: its contract labels name v2, v3, and it serves none of these versions"]
    );
}

#[test]
fn objects_are_applied_after_what_they_need() {
    let own = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AwsRigCluster",
        "metadata": {"name": "default"}});
    let mut objects = read(&aws());
    objects.reverse();
    objects.insert(0, own);
    let made = put(objects, Some("foo")).unwrap();
    let staged = in_order(made.objects);
    assert!(staged.is_sorted_by_key(|(stage, _)| *stage));
    let mut kinds: Vec<_> = staged.iter().map(|(_, object)| object::kind(object)).collect();
    kinds.dedup();
    assert_eq!(kinds.first(), Some(&"Namespace"));
    assert_eq!(kinds.last(), Some(&"AwsRigCluster"));
    let place = |kind: &str| kinds.iter().position(|known| *known == kind).unwrap();
    assert!(place("CustomResourceDefinition") < place("ClusterRole"));
    assert!(place("ServiceAccount") < place("Deployment"));
    assert!(place("Certificate") < place("MutatingWebhookConfiguration"));
    assert!(place("MutatingWebhookConfiguration") < place("Deployment"));
    assert!(place("Secret") < place("Certificate"));
}

// OP-229
#[test]
fn objects_that_outlive_a_provider_are_distinguished() {
    let provider = aws();
    let made = put(read(&provider), Some("foo")).unwrap();
    let all = made.objects.len();
    let parts = split(made.objects);
    assert_eq!(parts.namespace.as_ref().map(name), Some("foo"));
    assert_eq!(parts.definitions.len(), provider.kinds().len());
    assert!(parts.cluster.iter().all(|object| object::namespace(object).is_empty()));
    assert!(parts.namespaced.iter().all(|object| object::namespace(object) == "foo"));
    assert_eq!(
        1 + parts.definitions.len() + parts.cluster.len() + parts.namespaced.len(),
        all
    );
}

// OP-069
#[test]
fn variables_are_replaced_for_providers_of_every_type() {
    for type_ in ProviderType::ALL {
        let text = LookAlike::new(type_.word(), "rig")
            .requires("RIG_TOKEN")
            .extra("extra")
            .components();
        let template = envsubst::Template::parse(&text).unwrap();
        assert_eq!(template.variables()["RIG_TOKEN"], None);
        let rendered = template
            .render(|name| (name == "RIG_TOKEN").then(|| "t-1".to_owned()))
            .unwrap();
        let objects = manifest::parse(&rendered).unwrap();
        let made = assemble(Input {
            type_,
            name: "rig",
            namespace: Some("foo"),
            objects,
        });
        let mut found = Vec::new();
        for object in &made.unwrap().objects {
            texts(object, &mut found);
        }
        assert!(found.iter().any(|text| text == "t-1"), "{type_}");
        assert!(found.iter().any(|text| text == "nothing to note"), "{type_}");
        assert!(!found.iter().any(|text| text.contains("${RIG")), "{type_}");
    }
}

/// Input that breaks YAML.
const PIECES: &[&str] = &[
    "",
    "\n",
    "---\n",
    "\t",
    ": ",
    "- ",
    "\"",
    "{",
    "[",
    "null",
    "x: 1\n",
    "&a ",
    "*a",
    "|\n",
    "#",
    "!!binary ",
];

/// A file with a part removed, and another one inserted.
fn damaged() -> impl Strategy<Value = String> {
    let text = LookAlike::infrastructure("aws")
        .without_required_variables()
        .components();
    let whole = envsubst::Template::parse(&text).unwrap().render(|_| None).unwrap();
    (0..whole.len(), 0..200_usize, proptest::sample::select(PIECES)).prop_map(move |(from, length, piece)| {
        // The file has no multi-byte characters.
        let to = (from + length).min(whole.len());
        [&whole[..from], piece, &whole[to..]].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_damaged_file_is_answered_and_what_is_put_together_stays_so(text in damaged()) {
        let Ok(objects) = manifest::parse(&text) else {
            return Ok(());
        };
        if let Ok(made) = put(objects, Some("foo")) {
            let again = put(made.objects.clone(), Some("foo")).unwrap();
            prop_assert_eq!(again.objects, made.objects);
        }
    }
}
