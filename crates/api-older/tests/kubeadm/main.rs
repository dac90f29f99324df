//! The kubeadm kinds, from the hub version to v1beta1 and back, with random objects.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

mod cases;
mod random;

use std::sync::LazyLock;

use proptest::prelude::*;
use random::{Choices, obey_rules};
use serde_json::{Value, json};
use windlass_api::crd::open_api_schema;
use windlass_api::kind::ApiKind;
use windlass_api_kubeadm::{bootstrap, controlplane};
use windlass_api_older::{DATA, References, convert};
use windlass_cel::Validator;
use windlass_meta::GroupKind;
use windlass_schema::Dialect;

/// A kind in both versions.
struct Kind {
    name: &'static str,
    hub: Side,
    older: Side,
}

/// A kind in one version.
struct Side {
    api_version: String,
    schema: Value,
    validator: Validator,
}

impl Side {
    fn new(api_version: String, schema: Value) -> Self {
        let validator = Validator::parse(&schema, Dialect::Crd, "schema").unwrap();
        Self {
            api_version,
            schema,
            validator,
        }
    }

    fn errors(&self, object: &Value) -> Vec<String> {
        let errors = self.validator.validate(object, None);
        errors.iter().map(ToString::to_string).collect()
    }
}

fn kind<H: ApiKind>() -> Kind {
    let api_version = format!("{}/v1beta1", H::GROUP);
    let older = windlass_api_older::older(&api_version, H::KIND).unwrap();
    let schema = (older.definition)()["schema"]["openAPIV3Schema"].take();
    Kind {
        name: H::KIND,
        hub: Side::new(H::API_VERSION.to_owned(), open_api_schema::<H>()),
        older: Side::new(api_version, schema),
    }
}

static KINDS: LazyLock<[Kind; 4]> = LazyLock::new(|| {
    [
        kind::<bootstrap::KubeadmConfig>(),
        kind::<bootstrap::KubeadmConfigTemplate>(),
        kind::<controlplane::KubeadmControlPlane>(),
        kind::<controlplane::KubeadmControlPlaneTemplate>(),
    ]
});

/// All kinds are served in v1beta2.
struct Hubs;

impl References for Hubs {
    fn api_version(&self, kind: &GroupKind) -> Result<String, String> {
        Ok(format!("{}/v1beta2", kind.group))
    }
}

/// No CRD says a version.
struct Unknown;

impl References for Unknown {
    fn api_version(&self, _: &GroupKind) -> Result<String, String> {
        Err("it has no CRD".to_owned())
    }
}

fn convert_with(object: &Value, wanted: &Side, references: &dyn References) -> Result<Value, String> {
    let bytes = convert(&serde_json::to_vec(object).unwrap(), &wanted.api_version, references);
    bytes
        .map(|bytes| serde_json::from_slice(&bytes).unwrap())
        .map_err(|error| error.to_string())
}

fn converted(object: &Value, wanted: &Side) -> Value {
    convert_with(object, wanted, &Hubs).unwrap_or_else(|error| panic!("{error}\n{object:#}"))
}

fn data_of(object: &mut Value) -> &mut Value {
    &mut object["metadata"]["annotations"][DATA]
}

/// Removes the hub form that an object carries.
fn forget(object: &mut Value) {
    object["metadata"].as_object_mut().unwrap().remove("annotations");
}

/// The paths at which two values differ, with the values.
fn differences(ours: &Value, expected: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![(String::new(), ours, expected)];
    while let Some((path, ours, expected)) = left.pop() {
        match (ours, expected) {
            (Value::Object(a), Value::Object(b)) => {
                let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
                let null = &Value::Null;
                let of = |fields: &'_ serde_json::Map<String, Value>, name: &str| fields.contains_key(name);
                for name in names {
                    let at = format!("{path}.{name}");
                    match (of(a, name), of(b, name)) {
                        (true, true) => left.push((at, &a[name], &b[name])),
                        (true, false) => left.push((at, &a[name], null)),
                        (false, _) => left.push((at, null, &b[name])),
                    }
                }
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                let items = a.iter().zip(b).enumerate();
                left.extend(items.map(|(index, (a, b))| (format!("{path}[{index}]"), a, b)));
            }
            _ if ours != expected => found.push(format!("{path}: {ours} instead of {expected}")),
            _ => {}
        }
    }
    found
}

/// The choices of an object.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..2500)
}

/// An object in the hub version that a server would store.
fn hub_object(kind: &Kind, bytes: Vec<u8>) -> Value {
    let mut object = Choices::new(bytes, true).object(&kind.hub.schema, &kind.hub.api_version, kind.name);
    obey_rules(&mut object);
    object
}

/// An object in v1beta1.
fn older_object(kind: &Kind, bytes: Vec<u8>) -> Value {
    Choices::new(bytes, true).object(&kind.older.schema, &kind.older.api_version, kind.name)
}

/// A kind, and an object of it in the hub version.
fn hub_objects() -> impl Strategy<Value = (usize, Value)> {
    (0..KINDS.len(), bytes()).prop_map(|(index, bytes)| (index, hub_object(&KINDS[index], bytes)))
}

/// A kind, and an object of it in v1beta1.
fn older_objects() -> impl Strategy<Value = (usize, Value)> {
    (0..KINDS.len(), bytes()).prop_map(|(index, bytes)| (index, older_object(&KINDS[index], bytes)))
}

/// A kind, and an object of it in each version.
fn pairs() -> impl Strategy<Value = (usize, Value, Value)> {
    (0..KINDS.len(), bytes(), bytes()).prop_map(|(index, hub, older)| {
        let kind = &KINDS[index];
        (index, hub_object(kind, hub), older_object(kind, older))
    })
}

/// What v1beta1 has and the hub does not keep, and what the conversion back always fills in.
fn without_what_is_lost(value: &mut Value, name: &str) {
    match value {
        Value::Object(fields) => {
            if name.ends_with("Configuration") {
                for lost in ["apiVersion", "kind", "networking", "kubernetesVersion", "clusterName"] {
                    fields.remove(lost);
                }
            }
            fields.remove("useExperimentalRetryJoin");
            if name == "infrastructureRef" {
                for lost in ["fieldPath", "namespace", "resourceVersion", "uid"] {
                    fields.remove(lost);
                }
            }
            if name == "rolloutStrategy" {
                fields.remove("type");
            }
            if name == "status" {
                fields.remove("ready");
            }
            for (name, field) in fields.iter_mut() {
                without_what_is_lost(field, name);
            }
            // Empty texts and flags that are not set are as if they were not there, except in lists and maps.
            fields.retain(|_, field| !is_nothing(field));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without_what_is_lost(item, "")),
        _ => {}
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty() || text == "0s",
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Null => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_hub_object_comes_back_as_it_was((index, object) in hub_objects()) {
        let kind = &KINDS[index];
        prop_assert_eq!(kind.hub.errors(&object), Vec::<String>::new());
        let older = converted(&object, &kind.older);
        prop_assert_eq!(kind.older.errors(&older), Vec::<String>::new(), "{:#}", older);
        let again = converted(&older, &kind.hub);
        prop_assert_eq!(differences(&again, &object), Vec::<String>::new());
    }

    #[test]
    fn an_older_object_comes_back_with_all_that_the_hub_keeps((index, mut object) in older_objects()) {
        let kind = &KINDS[index];
        let mut again = converted(&converted(&object, &kind.hub), &kind.older);
        forget(&mut again);
        // The same with what the annotation restores.
        let mut twice = converted(&converted(&again, &kind.hub), &kind.older);
        forget(&mut twice);
        prop_assert_eq!(differences(&twice, &again), Vec::<String>::new());
        without_what_is_lost(&mut object, "");
        without_what_is_lost(&mut again, "");
        prop_assert_eq!(differences(&again, &object), Vec::<String>::new());
    }

    #[test]
    fn what_an_older_client_writes_wins((index, object, other) in pairs()) {
        let kind = &KINDS[index];
        // Another object with the hub form of the first one: only what v1beta1 does not have comes from there.
        let mut carrier = converted(&object, &kind.older);
        let mut changed = other;
        changed["metadata"] = carrier["metadata"].take();
        let hub = converted(&changed, &kind.hub);
        let mut again = converted(&hub, &kind.older);
        let mut expected = converted(&converted(&forgotten(changed), &kind.hub), &kind.older);
        // A timeout that v1beta1 does not set is the kept one.
        for side in [&mut again, &mut expected] {
            forget(side);
            without_what_is_lost(side, "");
            without_timeouts(side);
        }
        prop_assert_eq!(differences(&again, &expected), Vec::<String>::new());
    }

    #[test]
    fn truncated_or_foreign_data_is_an_error_that_names_the_annotation(
        (index, object) in hub_objects(),
        cut in any::<prop::sample::Index>(),
        foreign in prop::sample::select(vec!["", "null", "3", "{\"spec\":3}", "{\"metadata\":{\"name\":[]}}", "\u{0}", "{}x", "hub"]),
    ) {
        let kind = &KINDS[index];
        let older = converted(&object, &kind.older);
        let whole = data_of(&mut older.clone()).as_str().unwrap().to_owned();
        for data in [&whole[..cut.index(whole.len())], foreign] {
            let mut broken = older.clone();
            *data_of(&mut broken) = json!(data);
            let error = convert_with(&broken, &kind.hub, &Hubs).unwrap_err();
            let annotation = format!("metadata.annotations[{DATA}]: ");
            prop_assert!(error.starts_with(&annotation), "{error}");
            prop_assert!(error.contains("remove the annotation"), "{error}");
        }
    }
}

fn forgotten(mut object: Value) -> Value {
    forget(&mut object);
    object
}

/// Removes the timeouts that are elsewhere in the hub, and what is empty without them.
fn without_timeouts(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.remove("timeoutForControlPlane");
        if let Some(discovery) = fields.get_mut("discovery").and_then(Value::as_object_mut) {
            discovery.remove("timeout");
        }
        fields.values_mut().for_each(without_timeouts);
        fields.retain(|_, field| !is_nothing(field));
    }
}
