//! Random objects of every kind and version through conversions and back.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use windlass_api_older::{DATA, OLDER, OlderVersion, References, convert};
use windlass_meta::GroupKind;

use crate::random::{self, Random};

/// Objects of each kind in a run.
const ROUNDS: u64 = 100;

/// Every kind has one version.
struct Versions;

impl References for Versions {
    fn api_version(&self, kind: &GroupKind) -> Result<String, String> {
        Ok(format!("{}/v1beta2", kind.group))
    }
}

/// A source of random objects: a fixed one, or another with each run that sets `WINDLASS_SEED`. The seed is in the messages of failures.
fn source() -> Random {
    let given = std::env::var("WINDLASS_SEED").ok().filter(|text| !text.is_empty());
    Random::new(given.map_or(1, |text| text.parse().expect("WINDLASS_SEED is a number")))
}

/// Whether a value is what Go's zero values look like in JSON.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty() || text == "0s",
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
    }
}

/// What is in `before` and not the same in `after`, and what is new in `after` and not zero. Paths have no indexes.
fn lost(path: &str, before: &Value, after: &Value, out: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let null = Value::Null;
                lost(
                    &format!("{path}.{name}"),
                    a.get(name).unwrap_or(&null),
                    b.get(name).unwrap_or(&null),
                    out,
                );
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b) {
                lost(path, a, b, out);
            }
        }
        (Value::Null, new) if is_zero(new) => {}
        // Numbers of the older generation of the status have no unset value.
        (Value::Number(old), Value::Null) if old.as_i64() == Some(0) && path.contains(".deprecated.") => {}
        // v1.14 does not tell these flags apart from unset ones.
        (Value::Bool(false), Value::Null) if path.ends_with(".readOnly") => {}
        (old, Value::Null) if (old.is_array() || old.is_object()) && is_zero(old) => {}
        _ if before != after => out.push(format!("{path}: {before} became {after}")),
        _ => {}
    }
}

/// Failure domains are a map in older versions, so their order is that of the names.
fn in_order(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(domains) = fields.get_mut("failureDomains").and_then(Value::as_array_mut) {
                domains.sort_by_key(|domain| domain["name"].as_str().map(str::to_owned));
            }
            fields.values_mut().for_each(in_order);
        }
        Value::Array(items) => items.iter_mut().for_each(in_order),
        _ => {}
    }
}

/// The versions whose random objects have to obey only their schema. Those of the kubeadm kinds have to obey rules in CEL, too: see `tests/kubeadm`.
fn older_versions() -> impl Iterator<Item = &'static OlderVersion> {
    OLDER.iter().filter(|older| !older.kind.starts_with("Kubeadm"))
}

/// What a version before the hub has and the hub has not, as in Cluster API v1.14: by the end of the path.
const GIVEN_UP: &[&str] = &[
    // References have no version, and are always to the object's own namespace.
    ".apiVersion",
    ".namespace",
    ".uid",
    ".fieldPath",
    ".resourceVersion",
    ".nodeRef.kind",
    // Never used, or not accepted any more.
    ".definitionFrom",
    ".spec.topology.rolloutAfter",
    ".revisionHistoryLimit",
    ".progressDeadlineSeconds",
];

fn object(older: &OlderVersion, api_version: &str, schema: &Value, random: &mut Random) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": older.kind,
        "metadata": {"name": "a", "namespace": "n", "labels": {"l": "v"}, "annotations": {"keep": "1"}},
    });
    for (name, schema) in schema["properties"].as_object().unwrap() {
        if matches!(name.as_str(), "spec" | "status") {
            object[name] = random::value(schema, name, random);
        }
    }
    object
}

fn convert_value(object: &Value, wanted: &str) -> Value {
    let bytes = convert(&serde_json::to_vec(object).unwrap(), wanted, &Versions)
        .unwrap_or_else(|error| panic!("to {wanted}: {error}\n{object}"));
    serde_json::from_slice(&bytes).unwrap()
}

fn hub_schema(older: &OlderVersion) -> Value {
    let schemas = hub_schemas();
    schemas
        .get(&(older.group, older.kind))
        .unwrap_or_else(|| panic!("{} has no hub schema here", older.kind))
        .clone()
}

fn hub_schemas() -> BTreeMap<(&'static str, &'static str), Value> {
    fn of<K: windlass_api::kind::ApiKind>() -> ((&'static str, &'static str), Value) {
        ((K::GROUP, K::KIND), windlass_api::crd::open_api_schema::<K>())
    }
    use windlass_api::{addons, core, ipam, runtime};
    use windlass_api_ext::infrastructure;
    use windlass_api_kubeadm::{bootstrap, controlplane};
    [
        of::<core::Cluster>(),
        of::<core::ClusterClass>(),
        of::<core::Machine>(),
        of::<core::MachineDeployment>(),
        of::<core::MachineDrainRule>(),
        of::<core::MachineHealthCheck>(),
        of::<core::MachinePool>(),
        of::<core::MachineSet>(),
        of::<bootstrap::KubeadmConfig>(),
        of::<bootstrap::KubeadmConfigTemplate>(),
        of::<controlplane::KubeadmControlPlane>(),
        of::<controlplane::KubeadmControlPlaneTemplate>(),
        of::<addons::ClusterResourceSet>(),
        of::<addons::ClusterResourceSetBinding>(),
        of::<ipam::IPAddress>(),
        of::<ipam::IPAddressClaim>(),
        of::<runtime::ExtensionConfig>(),
        of::<infrastructure::DevCluster>(),
        of::<infrastructure::DevClusterTemplate>(),
        of::<infrastructure::DevMachine>(),
        of::<infrastructure::DevMachineTemplate>(),
    ]
    .into()
}

#[test]
fn an_object_of_the_hub_comes_back_whole() {
    let mut random = source();
    for older in older_versions() {
        let schema = hub_schema(older);
        for _ in 0..ROUNDS {
            let mut hub = object(older, older.hub_version, &schema, &mut random);
            in_order(&mut hub);
            let back = convert_value(&convert_value(&hub, older.api_version), older.hub_version);
            let mut differences = Vec::new();
            lost("", &hub, &back, &mut differences);
            assert!(
                differences.is_empty(),
                "{}, seed {}: {differences:#?}\n{hub}",
                older.kind,
                random.seed()
            );
            assert_eq!(
                convert_value(&convert_value(&back, older.api_version), older.hub_version),
                back
            );
        }
    }
}

#[test]
fn blanks_between_the_fields_change_nothing() {
    let mut random = source();
    for older in older_versions() {
        let schema = hub_schema(older);
        for _ in 0..ROUNDS {
            let hub = object(older, older.hub_version, &schema, &mut random);
            let forms = [
                (&hub, older.api_version),
                (&convert_value(&hub, older.api_version), older.hub_version),
            ];
            for (object, wanted) in forms {
                let of = |text: String| convert(text.as_bytes(), wanted, &Versions).unwrap();
                let (spaced, dense) = (format!("{object:#}"), object.to_string());
                assert_eq!(of(spaced), of(dense), "{object}, seed {}", random.seed());
            }
        }
    }
}

#[test]
fn an_object_in_an_older_version_keeps_what_the_hub_has() {
    let mut random = source();
    for older in older_versions() {
        let schema = (older.definition)()["schema"]["openAPIV3Schema"].clone();
        for _ in 0..ROUNDS {
            let before = object(older, older.api_version, &schema, &mut random);
            check_kept(older, &before);
        }
    }
}

fn check_kept(older: &OlderVersion, before: &Value) {
    let mut after = convert_value(&convert_value(before, older.hub_version), older.api_version);
    after["metadata"]["annotations"]
        .as_object_mut()
        .map(|all| all.remove(DATA));
    let mut before = before.clone();
    before["metadata"]["annotations"]
        .as_object_mut()
        .map(|all| all.remove(DATA));
    let mut differences = Vec::new();
    lost("", &before, &after, &mut differences);
    differences.retain(|difference| {
        let path = difference.split(": ").next().unwrap_or_default();
        // A flag and a number that are unset in the hub are written as zero here.
        let is_reset =
            difference.ends_with("became null") && (difference.contains(": false ") || difference.contains(": 0 "));
        // A class without a template has an empty reference.
        let is_reference = path.starts_with(".spec.") && difference.ends_with(r#""ref":{"namespace":"n"}}"#);
        !is_reset && !is_reference && !GIVEN_UP.iter().any(|end| path.ends_with(end))
    });
    assert!(differences.is_empty(), "{}: {differences:#?}\n{before}", older.kind);
}

#[test]
fn a_field_that_is_changed_in_an_older_version_wins() {
    let mut random = source();
    for older in older_versions() {
        let hub_schema = hub_schema(older);
        let schema = (older.definition)()["schema"]["openAPIV3Schema"].clone();
        for _ in 0..ROUNDS {
            let hub = object(older, older.hub_version, &hub_schema, &mut random);
            let mut edited = convert_value(&hub, older.api_version);
            let other = object(older, older.api_version, &schema, &mut random);
            let Some(fields) = other["spec"].as_object() else {
                continue;
            };
            let names: Vec<&String> = fields.keys().collect();
            if names.is_empty() {
                continue;
            }
            let name = *random.one(&names);
            edited["spec"][name] = fields[name].clone();
            check_kept(older, &edited);
        }
    }
}

#[test]
fn data_that_is_not_of_the_kind_is_an_error_that_names_the_annotation() {
    let mut random = source();
    for older in OLDER {
        let hub = object(older, older.hub_version, &hub_schema(older), &mut random);
        let mut object = convert_value(&hub, older.api_version);
        let Some(data) = object["metadata"]["annotations"][DATA].as_str().map(str::to_owned) else {
            continue;
        };
        let cut = data[..data.len() - 1].to_owned();
        for wrong in [
            cut.as_str(),
            "",
            "null",
            "[]",
            "7",
            r#"{"spec":7}"#,
            r#"{"spec":{"a":"#,
            "\u{0}",
        ] {
            object["metadata"]["annotations"][DATA] = json!(wrong);
            let error = convert(&serde_json::to_vec(&object).unwrap(), older.hub_version, &Versions).unwrap_err();
            assert_eq!(
                error.field,
                format!("metadata.annotations[{DATA}]"),
                "{}: {wrong}",
                older.kind
            );
        }
        // Data of a newer version of the kind has fields that are not known here.
        let mut newer: Map<String, Value> = serde_json::from_str(&data).unwrap();
        newer.insert("fromTheFuture".to_owned(), json!({"a": 1}));
        object["metadata"]["annotations"][DATA] = json!(Value::Object(newer).to_string());
        assert_eq!(
            convert_value(&object, older.hub_version),
            convert_value(&convert_value(&hub, older.api_version), older.hub_version)
        );
    }
}

#[test]
fn any_input_has_a_result_or_an_error() {
    let mut random = source();
    let wrong = [
        json!(null),
        json!(1),
        json!("x"),
        json!([]),
        json!({}),
        json!([{}]),
        json!(true),
        json!(-1.5e300),
    ];
    for older in OLDER {
        let schema = (older.definition)()["schema"]["openAPIV3Schema"].clone();
        for round in 0..ROUNDS {
            let mut object = object(older, older.api_version, &schema, &mut random);
            let field = *random.one(&["metadata", "spec", "status"]);
            if let Some(field) = object.get_mut(field) {
                spoil(field, &wrong, &mut random);
            }
            let wanted = if round % 2 == 0 {
                older.hub_version
            } else {
                older.api_version
            };
            let _ = convert(&serde_json::to_vec(&object).unwrap(), wanted, &Versions);
            object["apiVersion"] = json!(older.hub_version);
            let _ = convert(&serde_json::to_vec(&object).unwrap(), older.api_version, &Versions);
        }
    }
}

/// Replaces a value at a random place by one of another type.
fn spoil(value: &mut Value, wrong: &[Value], random: &mut Random) {
    match value {
        Value::Object(fields) if !fields.is_empty() && random.below(5) > 0 => {
            let at = usize::try_from(random.below(fields.len() as u64)).unwrap();
            spoil(fields.values_mut().nth(at).unwrap(), wrong, random);
        }
        Value::Array(items) if !items.is_empty() => {
            let at = usize::try_from(random.below(items.len() as u64)).unwrap();
            spoil(&mut items[at], wrong, random);
        }
        other => *other = random.one(wrong).clone(),
    }
}

#[test]
fn a_reference_to_an_unknown_kind_is_an_error_that_names_its_field() {
    struct None;
    impl References for None {
        fn api_version(&self, _: &GroupKind) -> Result<String, String> {
            Err("no CustomResourceDefinition of the kind is installed".to_owned())
        }
    }
    let machine = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "a", "namespace": "n"},
        "spec": {"clusterName": "c", "bootstrap": {}, "infrastructureRef": {"apiGroup": "g.io", "kind": "Host", "name": "h"}},
    });
    let error = convert(
        &serde_json::to_vec(&machine).unwrap(),
        "cluster.x-k8s.io/v1beta1",
        &None,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "spec.infrastructureRef: the version of Host.g.io is not known: no CustomResourceDefinition of the kind is installed"
    );
}

#[test]
fn versions_that_do_not_exist_are_named() {
    let check = |object: Value, wanted: &str, expect: &str| {
        let error = convert(&serde_json::to_vec(&object).unwrap(), wanted, &Versions).unwrap_err();
        assert_eq!(error.to_string(), expect);
    };
    let machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine"});
    let words = |of: &str, version: &str, wanted: &str| {
        format!(
            "apiVersion: no conversion of Machine between {of} and {wanted} is known: {version} is not a version of the kind that is served"
        )
    };
    let (old, bad) = ("cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1alpha4");
    check(machine, bad, &words(old, bad, bad));
    check(
        json!({"apiVersion": bad, "kind": "Machine"}),
        old,
        &words(bad, bad, old),
    );
    check(
        json!({"kind": 3}),
        old,
        "the object is not JSON: invalid type: integer `3`, expected a string at line 1 column 9",
    );
}

/// Servers convert what is left of an object without the fields of one manager.
#[test]
fn an_object_with_gaps_is_converted() {
    fn punch(value: &mut Value, random: &mut Random) {
        match value {
            Value::Object(fields) => {
                let names: Vec<String> = fields.keys().cloned().collect();
                for name in names {
                    match random.below(12) {
                        0 => drop(fields.remove(&name)),
                        1 => fields[&name] = Value::Null,
                        _ => punch(&mut fields[&name], random),
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    if random.below(12) == 0 {
                        *item = Value::Null;
                    } else {
                        punch(item, random);
                    }
                }
            }
            _ => {}
        }
    }
    let mut random = source();
    for older in OLDER {
        let older_schema = (older.definition)()["schema"]["openAPIV3Schema"].clone();
        let versions = [
            (older.hub_version, older.api_version, hub_schema(older)),
            (older.api_version, older.hub_version, older_schema),
        ];
        for (version, wanted, schema) in versions {
            for _ in 0..ROUNDS {
                let mut object = object(older, version, &schema, &mut random);
                for part in ["spec", "status"] {
                    if object.get(part).is_some() {
                        punch(&mut object[part], &mut random);
                    }
                }
                convert_value(&object, wanted);
            }
        }
    }
}

#[test]
fn an_object_of_too_many_structures_is_refused() {
    let items = vec!["{}"; 200_000].join(",");
    let check = |object: String, expect: &str| {
        let error = convert(object.as_bytes(), "cluster.x-k8s.io/v1beta1", &Versions).unwrap_err();
        assert!(error.to_string().contains(expect), "{error}");
    };
    check(
        format!(
            r#"{{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"ClusterClass","metadata":{{"name":"a"}},"spec":{{"variables":[{items}]}}}}"#
        ),
        "the object has 200003 structures: limit is 100000",
    );
    let data = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "ClusterClass", "metadata": {"name": "a",
        "annotations": {DATA: format!(r#"{{"spec":{{"variables":[{items}]}}}}"#)}}});
    let error = convert(data.to_string().as_bytes(), "cluster.x-k8s.io/v1beta2", &Versions).unwrap_err();
    assert_eq!(error.field, format!("metadata.annotations[{DATA}]"));
}

/// Each variable and file looks for the one that it was made from.
#[test]
fn many_items_find_what_was_kept_of_them() {
    let count = 20_000;
    let names = |key: &str| -> Value { (0..count).map(|at| json!({key: format!("n{at}")})).collect() };
    let check = |group: &str, kind: &str, spec: Value| {
        let data = json!({"spec": spec}).to_string();
        let object = json!({"apiVersion": format!("{group}/v1beta1"), "kind": kind,
            "metadata": {"name": "a", "annotations": {DATA: data}}, "spec": spec});
        let begun = std::time::Instant::now();
        convert_value(&object, &format!("{group}/v1beta2"));
        assert!(begun.elapsed().as_secs() < 20, "{kind}: {:?}", begun.elapsed());
    };
    check("cluster.x-k8s.io", "ClusterClass", json!({"variables": names("name")}));
    check("cluster.x-k8s.io", "ClusterClass", json!({"patches": names("name")}));
    check(
        "bootstrap.cluster.x-k8s.io",
        "KubeadmConfig",
        json!({"files": names("path")}),
    );
}
