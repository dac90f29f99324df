//! What the schemas take, refuse and fill in, as an API server does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

use serde_json::{Value, json};
use windlass_api::crd::{crd, open_api_schema};
use windlass_api::kind::ApiKind;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_cel::Validator;
use windlass_schema::Dialect;

/// An object as a server stores it: pruned and defaulted; and what it refuses.
fn stored<K: ApiKind>(mut spec: Value) -> (Value, Vec<String>) {
    let validator = Validator::parse(&open_api_schema::<K>(), Dialect::Crd, "schema").unwrap();
    let schema = validator.schema();
    let mut object =
        json!({"apiVersion": K::API_VERSION, "kind": K::KIND, "metadata": {"name": "a"}, "spec": spec.take()});
    windlass_schema::prune(schema, &mut object);
    windlass_schema::default(schema, &mut object);
    let errors = validator.validate(&object, None);
    let paths = errors.into_iter().map(|error| error.path).collect();
    // What is stored is what is read.
    let read = K::from_json(&object).unwrap_or_default();
    if object["spec"]["chartName"].is_string() {
        let again = read.to_json();
        assert_eq!(again["spec"], object["spec"]);
    }
    (object["spec"].take(), paths)
}

fn chart() -> Value {
    json!({"clusterSelector": {}, "chartName": "calico", "repoURL": "https://charts.example"})
}

// AD-047, AD-050, AD-051, AD-155, AD-165
#[test]
fn the_definitions_have_their_names() {
    let chart = crd::<HelmChartProxy>();
    assert_eq!(chart["metadata"]["name"], "helmchartproxies.addons.cluster.x-k8s.io");
    assert_eq!(
        chart["metadata"]["labels"]["clusterctl.cluster.x-k8s.io/move-hierarchy"],
        "true"
    );
    assert_eq!(chart["metadata"]["labels"]["cluster.x-k8s.io/provider"], "addon-helm");
    assert_eq!(
        (&chart["spec"]["scope"], &chart["spec"]["names"]["shortNames"]),
        (&json!("Namespaced"), &json!(["hcp"]))
    );
    let release = crd::<HelmReleaseProxy>();
    assert_eq!(
        release["metadata"]["name"],
        "helmreleaseproxies.addons.cluster.x-k8s.io"
    );
    assert_eq!(
        (&release["spec"]["scope"], &release["spec"]["names"]["shortNames"]),
        (&json!("Namespaced"), &json!(["hrp"]))
    );
    for version in [&chart["spec"]["versions"][0], &release["spec"]["versions"][0]] {
        assert_eq!(
            (&version["name"], &version["subresources"]["status"]),
            (&json!("v1alpha1"), &json!({}))
        );
    }
}

// AD-058, AD-072, feature 473, feature 486: no webhook is needed for what is filled in.
#[test]
fn the_server_fills_in_what_is_left_out() {
    let (spec, errors) = stored::<HelmChartProxy>(chart());
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(spec["namespace"], "default");
    assert_eq!(spec["options"], json!({"timeout": "10m0s", "enableClientCache": false}));
    let mut given = chart();
    given["options"] = json!({"install": {}, "upgrade": {}, "timeout": "1m"});
    let (spec, _) = stored::<HelmChartProxy>(given);
    let expect = json!({
        "timeout": "1m", "enableClientCache": false, "install": {"createNamespace": true}, "upgrade": {"maxHistory": 10},
    });
    assert_eq!(spec["options"], expect);
    let (spec, _) =
        stored::<HelmReleaseProxy>(json!({"clusterRef": {}, "chartName": "a", "repoURL": "https://a.example"}));
    assert_eq!(spec["namespace"], "default");
}

// AD-052, AD-055, AD-057
#[test]
fn what_is_needed_is_asked_for_and_what_is_unknown_goes() {
    let (_, errors) = stored::<HelmChartProxy>(json!({}));
    assert_eq!(errors, ["spec.chartName", "spec.clusterSelector", "spec.repoURL"]);
    let mut odd = chart();
    odd["repoUrl"] = json!("x");
    odd["releaseNamespace"] = json!("x");
    let (spec, _) = stored::<HelmChartProxy>(odd);
    assert!(spec.get("repoUrl").is_none() && spec.get("releaseNamespace").is_none());
    let mut strategy = chart();
    strategy["reconcileStrategy"] = json!("Sometimes");
    assert_eq!(stored::<HelmChartProxy>(strategy).1, ["spec.reconcileStrategy"]);
}

// AD-064, AD-063: the list is always there, also when it is empty.
#[test]
fn an_empty_list_of_clusters_is_written() {
    let status = windlass_api_ext::addons::HelmChartProxyStatus {
        matching_clusters: Some(Vec::new()),
        ..Default::default()
    };
    assert_eq!(serde_json::to_value(status).unwrap(), json!({"matchingClusters": []}));
}

/// The names of the fields below a path of a kind.
fn fields<K: ApiKind>(path: &str) -> Vec<String> {
    let schema = open_api_schema::<K>();
    let below = path.replace('.', "/properties/");
    let found = schema
        .pointer(&format!("/properties/{below}/properties"))
        .and_then(Value::as_object);
    found.unwrap_or_else(|| panic!("no {path}")).keys().cloned().collect()
}

// AD-016, AD-061: a chart is all or nothing. Beyond its values nothing of what it makes can be told: no patch, no overlay, no part of it.
#[test]
fn a_chart_is_configured_by_its_values_alone() {
    let all = [
        "chartName",
        "clusterSelector",
        "credentials",
        "namespace",
        "options",
        "reconcileStrategy",
        "releaseName",
        "repoURL",
        "rollout",
        "tlsConfig",
        "valuesTemplate",
        "version",
    ];
    assert_eq!(fields::<HelmChartProxy>("spec"), all);
    assert_eq!(
        open_api_schema::<HelmChartProxy>()["properties"]["spec"]["properties"]["valuesTemplate"]["type"],
        "string"
    );
    let options = [
        "atomic",
        "dependencyUpdate",
        "disableHooks",
        "disableOpenAPIValidation",
        "enableClientCache",
        "install",
        "options",
        "skipCRDs",
        "takeOwnership",
        "timeout",
        "uninstall",
        "upgrade",
        "wait",
        "waitForJobs",
    ];
    assert_eq!(fields::<HelmChartProxy>("spec.options"), options);
    assert_eq!(fields::<HelmReleaseProxy>("spec.options"), options);
}

// AD-142: the namespace of a release is the requested one, and it is only in this field.
#[test]
fn the_namespace_of_a_release_is_in_its_spec() {
    let status = ["conditions", "observedGeneration", "revision", "status"];
    assert_eq!(fields::<HelmReleaseProxy>("status"), status);
    let (spec, _) = stored::<HelmReleaseProxy>(
        json!({"clusterRef": {}, "chartName": "a", "repoURL": "https://a.example", "namespace": "apps"}),
    );
    assert_eq!(spec["namespace"], "apps");
}

// AD-062, AD-075: conditions as Kubernetes has them, without a severity.
#[test]
fn conditions_are_those_of_kubernetes() {
    for schema in [
        open_api_schema::<HelmChartProxy>(),
        open_api_schema::<HelmReleaseProxy>(),
    ] {
        let one = &schema["properties"]["status"]["properties"]["conditions"]["items"];
        let names: Vec<&str> = one["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            names,
            [
                "lastTransitionTime",
                "message",
                "observedGeneration",
                "reason",
                "status",
                "type"
            ]
        );
        let mut required: Vec<&str> = one["required"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        required.sort_unstable();
        assert_eq!(required, ["lastTransitionTime", "message", "reason", "status", "type"]);
    }
}

// AD-138
#[test]
fn the_label_that_names_the_chart_has_its_key() {
    assert_eq!(
        windlass_api_ext::addons::labels::HELM_CHART_PROXY_NAME,
        "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name"
    );
}
