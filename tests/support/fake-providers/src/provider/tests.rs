//! The contents of fake providers.

use serde_json::Value;

use super::*;

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("YAML")
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["kind"] == kind).collect()
}

#[test]
fn a_look_alike_has_the_shapes_of_a_provider() {
    let provider = LookAlike::infrastructure("aws")
        .version("v2.3.1")
        .deployments(2)
        .extra("notes");
    let objects = documents(&provider.components());
    for (kind, count) in [
        ("Namespace", 1),
        ("CustomResourceDefinition", 3),
        ("ServiceAccount", 1),
        ("Role", 1),
        ("ClusterRole", 2),
        ("RoleBinding", 1),
        ("ClusterRoleBinding", 1),
        ("Secret", 1),
        ("ConfigMap", 1),
        ("Service", 2),
        ("Deployment", 2),
        ("Issuer", 1),
        ("Certificate", 1),
        ("MutatingWebhookConfiguration", 1),
        ("ValidatingWebhookConfiguration", 1),
    ] {
        assert_eq!(of_kind(&objects, kind).len(), count, "{kind}");
    }
    let definitions = of_kind(&objects, "CustomResourceDefinition");
    assert_eq!(
        definitions[0]["metadata"]["name"],
        "awsrigclusters.infrastructure.cluster.x-k8s.io"
    );
    assert_eq!(definitions[0]["spec"]["conversion"]["strategy"], "Webhook");
    assert_eq!(
        definitions[1]["spec"]["conversion"],
        Value::Null,
        "objects of the others can be made"
    );
    assert_eq!(definitions[1]["spec"]["versions"][1]["storage"], true);
    let names: Vec<_> = of_kind(&objects, "Deployment")
        .iter()
        .map(|found| found["metadata"]["name"].clone())
        .collect();
    assert_eq!(
        names,
        [
            "infrastructure-aws-controller-manager",
            "infrastructure-aws-helper-1-controller-manager"
        ]
    );
    let rest: Vec<_> = provider.components().matches('@').map(str::to_owned).collect();
    assert_eq!(rest, Vec::<String>::new(), "every placeholder is filled");
}

#[test]
fn every_family_makes_yaml_with_its_files_and_labels() {
    for (family, name, label) in [
        ("core", "cluster-api", "cluster-api"),
        ("bootstrap", "kubeadm", "bootstrap-kubeadm"),
        ("control-plane", "kubeadm", "control-plane-kubeadm"),
        ("ipam", "in-cluster", "ipam-in-cluster"),
        ("runtime-extension", "nutanix", "runtime-extension-nutanix"),
        ("addon", "helm", "addon-helm"),
    ] {
        let provider = LookAlike::new(family, name);
        assert_eq!(provider.label(), label);
        assert_eq!(provider.components_file(), format!("{family}-components.yaml"));
        let objects = documents(&provider.components());
        assert_eq!(
            of_kind(&objects, "CustomResourceDefinition").len(),
            provider.kinds().len(),
            "{label}"
        );
        assert_eq!(of_kind(&objects, "Deployment").len(), 1, "{label}");
    }
}

#[test]
fn metadata_name_the_contract_of_each_series() {
    let provider = LookAlike::core()
        .version("v1.11.0")
        .contract("v1beta2")
        .series(1, 10, "v1beta1");
    let metadata: Value = serde_saphyr::from_str(&provider.metadata()).unwrap();
    let expected = serde_json::json!([
        {"major": 1, "minor": 10, "contract": "v1beta1"}, {"major": 1, "minor": 11, "contract": "v1beta2"}
    ]);
    assert_eq!(metadata["releaseSeries"], expected);
    assert_eq!(metadata["kind"], "Metadata");
}

#[test]
fn padding_makes_files_as_long_as_real_ones() {
    let provider = LookAlike::infrastructure("aws").padded_to(1_200_000);
    let text = provider.components();
    assert!(text.len() >= 1_200_000 && text.len() < 1_300_000, "{}", text.len());
}

#[test]
fn flaws_are_what_they_say() {
    let with = |flaw| LookAlike::core().with_flaw(flaw).components();
    let parses = |text: &str| serde_saphyr::from_multiple::<Value>(text).is_ok();
    assert_eq!(of_kind(&documents(&with(Flaw::NoDeployment)), "Deployment").len(), 0);
    assert_eq!(of_kind(&documents(&with(Flaw::TwinDeployments)), "Deployment").len(), 2);
    assert_eq!(of_kind(&documents(&with(Flaw::TwoNamespaces)), "Namespace").len(), 2);
    assert!(!parses(&with(Flaw::Tab)));
    assert!(!parses(&with(Flaw::Truncated)));
    assert!(with(Flaw::Html).starts_with("<!DOCTYPE html>"));
    assert!(with(Flaw::WrongDefinitionName).contains("name: rig.cluster.x-k8s.io"));
    assert!(with(Flaw::OpenVariable).contains("--v=${RIG_LOG_LEVEL:=0\n"));
    assert_eq!(
        documents(&with(Flaw::NoKind))
            .iter()
            .filter(|found| found["kind"].is_null())
            .count(),
        1
    );
}
