//! `docs/helm-addons.md` and `docs/values-templates.md`: their examples are accepted, and their lists are complete.

use std::collections::BTreeSet;

use kube::api::{Api, Patch, PatchParams, ValidationDirective};
use serde_json::{Value, json};
use windlass_addon_helm::rules;
use windlass_addon_values::{Objects, Template};
use windlass_api_ext::addons::HelmChartProxy;
use windlass_manager::registry::kinds;
use windlass_testkit::{ClusterOf, MANAGER, Server};

const PAGE: &str = include_str!("../../../../../docs/helm-addons.md");
const REASONS: &str = include_str!("../../../../../crates/api-ext/src/addons/reasons.rs");
const CONDITIONS: &str = include_str!("../../../../../crates/api-ext/src/addons/conditions.rs");
const VALUES: &str = include_str!("../../../../../docs/values-templates.md");
const OBJECTS: &str = include_str!("../../../../../crates/addon-values/src/lib.rs");
const OLDEST: &str = include_str!("../../../../../crates/helm/src/version.rs");
/// The modules of the helm versions that the tests use.
const TOOLS: [&str; 2] = [
    include_str!("../../../../../tools/helm/go.mod"),
    include_str!("../../../../../tools/helm4/go.mod"),
];

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

/// The rows of the table with this header, cell by cell.
fn table(page: &str, header: &str) -> Vec<Vec<String>> {
    let rows = page.lines().skip_while(|line| !line.starts_with(header)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        row.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    rows.map(cells).collect()
}

/// Major and minor of a version.
fn minor(version: &str) -> (u32, u32) {
    let mut parts = version.trim_start_matches('v').split('.');
    let mut next = || parts.next().and_then(|part| part.trim().parse().ok());
    let read = next().zip(next());
    read.unwrap_or_else(|| panic!("{version} is no version"))
}

/// The number after a word in the code.
fn number(code: &str, word: &str) -> u32 {
    let rest = code.split(word).nth(1).unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

// AD-110: the supported helm versions, the tested ones, and the Kubernetes versions for which each is built.
#[test]
fn versions_of_helm_and_kubernetes_are_documented() {
    let code = OLDEST.split("const OLDEST").nth(1).unwrap();
    let oldest = (number(code, "major: "), number(code, "minor: "));
    let words = format!("Helm {} from {}.{} on and Helm 4 will do", oldest.0, oldest.0, oldest.1);
    assert!(PAGE.contains(&words), "{words}");
    let tested = TOOLS.map(|tool| {
        let line = tool
            .lines()
            .find(|line| line.trim().starts_with("helm.sh/helm/"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().trim_start_matches('v')
    });
    let words = format!("The tests run with {} and with {}", tested[0], tested[1]);
    assert!(PAGE.contains(&words), "{words}");

    let rows = table(PAGE, "| helm | Kubernetes |");
    let mut known = Vec::new();
    for row in &rows {
        let (from, to) = row[1].split_once(" to ").unwrap();
        let (from, to) = (minor(from), minor(to));
        assert!(
            from.0 == 1 && to.0 == 1 && to.1 == from.1 + 3,
            "{row:?}: four minor versions"
        );
        known.extend(row[0].split(", ").map(|helm| (minor(helm), from..=to)));
    }
    let helms: Vec<(u32, u32)> = known.iter().map(|(helm, _)| *helm).collect();
    assert!(!helms.iter().any(|helm| *helm < oldest), "{helms:?}");
    for minor in oldest.1..=self::minor(tested[0]).1 {
        assert!(
            helms.contains(&(oldest.0, minor)),
            "helm {}.{minor} is not documented",
            oldest.0
        );
    }
    for newest in tested.map(minor) {
        let range = known.iter().find(|(helm, _)| *helm == newest);
        let (_, range) = range.unwrap_or_else(|| panic!("helm {newest:?} is not documented"));
        // The version in the examples.
        let class = minor(&ClusterOf::new("any", 1, 0).version);
        assert!(range.contains(&class), "{newest:?} and Kubernetes {class:?}");
    }
}

// AD-153: the objects available to templates are documented by name, and the list is complete.
#[test]
fn every_object_that_templates_see_is_documented() {
    let body = OBJECTS.split("/// The objects that a template sees.").next().unwrap();
    let offered: BTreeSet<String> = constants(body).into_iter().map(|name| format!("`.{name}`")).collect();
    assert_eq!(offered.len(), 3);
    let told: BTreeSet<String> = table(VALUES, "| name | what it is |")
        .into_iter()
        .map(|mut row| row.remove(0))
        .collect();
    assert_eq!(told, offered);
    let object = json!({"kind": "Any", "metadata": {"name": "any"}});
    let objects = Objects {
        cluster: &object,
        control_plane: Some(&object),
        infra_cluster: Some(&object),
    };
    let gives = |name: &str| {
        let text = format!("v: {{{{ {name}.metadata.name }}}}\n");
        Template::parse(&text).unwrap().render(&objects)
    };
    for name in &told {
        assert_eq!(gives(name.trim_matches('`')).as_deref(), Ok("v: any\n"), "{name}");
    }
    for name in [".Machines", ".MachineDeployments", ".Values", ".Release"] {
        assert!(gives(name).is_err(), "{name}");
    }
    assert!(VALUES.contains("Machines\nand MachineDeployments cannot be reached"));
}
