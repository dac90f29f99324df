//! `docs/helm-addons.md` and `docs/values-templates.md`: what they show is accepted, and what they list is all there is.

use kube::api::{Api, Patch, PatchParams, ValidationDirective};
use serde_json::{Value, json};
use windlass_addon_helm::rules;
use windlass_addon_values::{Objects, Template};
use windlass_api_addons::HelmChartProxy;
use windlass_suite::kinds;
use windlass_testkit::{MANAGER, Server};

const PAGE: &str = include_str!("../../../../docs/helm-addons.md");
const REASONS: &str = include_str!("../../../api-addons/src/reasons.rs");
const CONDITIONS: &str = include_str!("../../../api-addons/src/conditions.rs");

/// All blocks of YAML, object by object.
fn examples() -> Vec<Value> {
    let blocks = PAGE
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let objects = blocks.flat_map(|block| {
        let found: Vec<Value> = serde_saphyr::from_multiple(block).unwrap_or_else(|error| panic!("{error} in {block}"));
        found
    });
    objects.collect()
}

// AD-047, AD-051, AD-055, AD-122
#[tokio::test]
async fn every_example_is_accepted_and_gives_values() {
    let server = Server::start().await;
    server.define(&kinds::all_crds()).await;
    let proxies: Api<HelmChartProxy> = Api::namespaced(server.client("admin"), "default");
    let parameters = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply(MANAGER)
    };
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "quick-start", "namespace": "default"},
        "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}}},
    });
    let objects = Objects {
        cluster: &cluster,
        control_plane: None,
        infra_cluster: None,
    };
    let examples = examples();
    assert!(examples.len() >= 2, "{}", examples.len());
    for object in &examples {
        assert_eq!(object["kind"], "HelmChartProxy", "{object}");
        let name = object["metadata"]["name"].as_str().unwrap();
        let stored = proxies.patch(name, &parameters, &Patch::Apply(object)).await;
        let stored = stored.unwrap_or_else(|error| panic!("{object}: {error}"));
        assert_eq!(rules::chart_proxy(None, &stored), [], "{object}");
        if let Some(text) = &stored.spec.values_template {
            let values = Template::parse(text).unwrap().render(&objects).unwrap();
            assert!(values.contains("192.168.0.0/16"), "{values}");
        }
    }
    server.stop().await;
}

/// The texts of the constants of a file.
fn constants(source: &str) -> Vec<&str> {
    let strings = source.split("&str =").skip(1);
    let texts = strings.filter_map(|rest| rest.split('"').nth(1));
    texts.collect()
}

// AD-143: each type and reason of a condition is explained.
#[test]
fn every_condition_and_every_reason_is_explained() {
    let (reasons, types) = (constants(REASONS), constants(CONDITIONS));
    assert!(reasons.len() >= 18 && types.len() >= 5, "{reasons:?} {types:?}");
    for reason in reasons {
        assert!(PAGE.contains(&format!("`{reason}`")), "{reason}");
    }
    for type_ in types {
        assert!(PAGE.contains(type_), "{type_}");
    }
}
