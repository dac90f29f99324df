//! The examples of the proposal: as they are written there, and as they have to be written.
//!
//! A file holds both forms where they differ. What the proposal's types say counts, not what its examples say.

use serde_json::Value;
use windlass_api_operator::management::{ControlPlaneProvider, InfrastructureProvider};
use windlass_api_operator::{Declared, Fetch, ImageOverride, ProviderObject};

use crate::server::{refusals, stored};

fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

/// The declaration in a file with one form.
fn one<K: ProviderObject>(yaml: &str) -> Declared {
    let documents = documents(yaml);
    assert_eq!(documents.len(), 1);
    stored::<K>(&documents[0]).declared().unwrap()
}

/// A file whose first document is refused with these words, and whose second is the same without mistakes.
fn both(yaml: &str, refused: &[&str]) -> Declared {
    let documents = documents(yaml);
    assert_eq!(documents.len(), 2);
    assert_eq!(refusals::<InfrastructureProvider>(&documents[0], None), refused);
    stored::<InfrastructureProvider>(&documents[1]).declared().unwrap()
}

// OP-235, OP-041, OP-042, OP-075, OP-076: addresses of metrics are in metrics.bindAddress, durations have units, flags have texts.
#[test]
fn flags_of_the_controller() {
    let declared = both(
        include_str!("examples/01-aws-flags.yaml"),
        &[
            "unknown field \"spec.manager.metricsAddress\"",
            "spec.deployment.containers[0].args.awscluster-concurrency: Invalid value: \"integer\": spec.deployment.containers[0].args.awscluster-concurrency in body must be of type string: \"integer\"",
            "spec.deployment.containers[0].args.awsmachine-concurrency: Invalid value: \"integer\": spec.deployment.containers[0].args.awsmachine-concurrency in body must be of type string: \"integer\"",
            "spec.manager.syncPeriod: Invalid value: \"integer\": spec.manager.syncPeriod in body must be of type string: \"integer\"",
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ],
    );
    assert_eq!(declared.manager.metrics_bind_address.as_deref(), Some(":8181"));
    assert_eq!(declared.manager.sync_period.unwrap().to_string(), "11m0s");
    assert_eq!(declared.deployment.containers[0].args["awscluster-concurrency"], "12");
    assert_eq!(declared.config_secret.unwrap().to_string(), "capa-system/aws-variables");
    let Fetch::Url(url) = declared.fetch else {
        panic!("a url");
    };
    assert_eq!(
        url,
        "https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases"
    );
}

// OP-235, OP-172, OP-173: an image is said by its parts.
#[test]
fn another_image() {
    let declared = both(
        include_str!("examples/02-aws-image.yaml"),
        &[
            "spec.deployment.containers[0].image: Invalid value: \"string\": spec.deployment.containers[0].image in body must be of type object: \"string\"",
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ],
    );
    let image = ImageOverride::Parts {
        repository: Some("gcr.io/myregistry".to_owned()),
        name: Some("capa-controller".to_owned()),
        tag: Some("v0.6.0-foo".to_owned()),
    };
    assert_eq!(declared.deployment.containers[0].image, Some(image));
}

// OP-235, OP-063, OP-176
#[test]
fn limits_of_resources() {
    let declared = one::<ControlPlaneProvider>(include_str!("examples/03-kubeadm-resources.yaml"));
    let resources = declared.deployment.containers[0].resources.clone().unwrap();
    assert_eq!(resources["limits"]["memory"], "30Mi");
    assert_eq!(resources["requests"]["cpu"], "100m");
}

// OP-235, OP-007, OP-152
#[test]
fn a_name_of_ones_own_with_a_url() {
    let declared = one::<InfrastructureProvider>(include_str!("examples/04-myazure-url.yaml"));
    assert_eq!(declared.key.name, "myazure");
    let url = "https://github.com/myorg/awesome-azure-provider/releases";
    assert_eq!(declared.fetch, Fetch::Url(url.to_owned()));
}

// OP-235, OP-008, OP-150
#[test]
fn a_known_name_without_a_url() {
    let declared = one::<InfrastructureProvider>(include_str!("examples/06-vsphere.yaml"));
    assert_eq!(declared.fetch, Fetch::Default);
}

// OP-235, OP-057, OP-164, OP-165: what stands no deeper than its key belongs to nothing, so the ConfigMaps of the example are empty.
#[test]
fn without_a_network() {
    let documents = documents(include_str!("examples/08-azure-configmaps.yaml"));
    let [as_written, corrected, provider] = documents.as_slice() else {
        panic!("three documents");
    };
    assert_eq!(as_written["data"]["components"].as_str().map(str::trim), Some(""));
    assert!(
        corrected["data"]["components"]
            .as_str()
            .unwrap()
            .contains("kind: Deployment")
    );
    let declared = stored::<InfrastructureProvider>(provider).declared().unwrap();
    let Fetch::Selector(selector) = declared.fetch else {
        panic!("a selector");
    };
    let labels = corrected["metadata"]["labels"].as_object().unwrap();
    for (label, value) in selector.match_labels.unwrap() {
        assert_eq!(labels[&label], value);
    }
    assert_eq!(corrected["metadata"]["name"].as_str(), declared.version.as_deref());
}
