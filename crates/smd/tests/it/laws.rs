//! Properties that hold for any configuration.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use windlass_schema::Schema;
use windlass_smd::{
    ApplyError, FieldSet, ListKeys, ManagedFields, Operation, Request, Scope, Versions, apply, differs_with, update,
};

use crate::vectors::{schema, without_empty};

fn object(fields: Vec<(&'static str, Option<Value>)>) -> Value {
    Value::Object(
        fields
            .into_iter()
            .filter_map(|(k, v)| Some((k.to_owned(), v?)))
            .collect(),
    )
}

fn strings() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("k[123]", "[uv]", 0..3).prop_map(|m| json!(m))
}

fn items() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("n[1234]", (prop::option::of(0..2i64), prop::option::of(sub())), 0..4).prop_map(|m| {
        m.into_iter()
            .map(|(name, (v, sub))| {
                object(vec![
                    ("name", Some(json!(name))),
                    ("v", v.map(Value::from)),
                    ("sub", sub),
                ])
            })
            .collect()
    })
}

fn sub() -> impl Strategy<Value = Value> {
    (prop::option::of(0..2i64), prop::option::of(strings()))
        .prop_map(|(x, t)| object(vec![("x", x.map(Value::from)), ("t", t)]))
}

/// A configuration without empty lists, which leave no trace of ownership.
fn config() -> impl Strategy<Value = Value> {
    let spec = (
        prop::option::of(0..2i64),
        prop::option::of(strings()),
        prop::option::of(prop::collection::btree_set("s[123]", 0..3)),
        prop::option::of(items()),
        prop::option::of(strings()),
        prop::option::of(sub()),
        prop::option::of(prop::collection::vec("[ef]", 0..3)),
    );
    spec.prop_map(|(a, m, s, l, am, sub, al)| {
        let spec = object(vec![
            ("a", a.map(Value::from)),
            ("m", m),
            ("s", s.map(|s| json!(s))),
            ("l", l),
            ("am", am),
            ("sub", sub),
            ("al", al.map(|al| json!(al))),
        ]);
        json!({"metadata": {"name": "x"}, "spec": without_empty(&spec)})
    })
}

fn request<'a>(schema: &'a Schema, live: Option<&'a Value>, manager: &'a str, second: i64) -> Request<'a> {
    Request {
        schema: Some(schema),
        versions: Versions::ALIKE,
        live,
        manager,
        api_version: "v1",
        subresource: "",
        scope: Scope::ALL,
        now: jiff::Timestamp::from_second(1_700_000_000 + second).expect("time"),
    }
}

fn applied(
    live: Option<&Value>,
    config: &Value,
    manager: &str,
    force: bool,
    second: i64,
) -> Result<(Value, bool), ApplyError> {
    apply(&request(&schema(), live, manager, second), config, force).map(|a| (a.object, a.changed))
}

/// Items of sets and list maps in a fixed order.
fn ordered(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(name, child)| {
                    let mut child = ordered(child);
                    if matches!(name.as_str(), "s" | "l")
                        && let Value::Array(items) = &mut child
                    {
                        items.sort_by_key(ToString::to_string);
                    }
                    (name.clone(), child)
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(ordered).collect()),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn applying_again_changes_nothing(first in config(), second in config()) {
        let (live, _) = applied(None, &first, "a", false, 0).expect("create");
        let (live, _) = applied(Some(&live), &second, "b", true, 1).expect("apply");
        let (again, changed) = applied(Some(&live), &second, "b", false, 2).expect("apply again");
        prop_assert!(!changed);
        prop_assert_eq!(again, live);
    }

    #[test]
    fn what_was_applied_does_not_differ(first in config(), second in config()) {
        let (live, _) = applied(None, &first, "a", false, 0).expect("create");
        let (live, _) = applied(Some(&live), &second, "b", true, 1).expect("apply");
        let lists = [("l", ListKeys::Map(&["name"])), ("s", ListKeys::Set)];
        prop_assert_eq!(differs_with(&lists, &second, &live), None);
    }

    #[test]
    fn giving_up_undoes_what_was_applied(first in config(), second in config()) {
        let (live, _) = applied(None, &first, "a", false, 0).expect("create");
        if let Ok((merged, _)) = applied(Some(&live), &second, "b", false, 1) {
            let nothing = json!({"metadata": {"name": "x"}});
            let (after, _) = applied(Some(&merged), &nothing, "b", false, 2).expect("give up");
            prop_assert_eq!(ordered(&without_empty(&after)), ordered(&without_empty(&live)));
        }
    }

    #[test]
    fn sets_survive_their_encoding(config in config()) {
        let (live, _) = applied(None, &config, "a", false, 0).expect("create");
        for entry in ManagedFields::of(&live).expect("managers").entries {
            let encoded = entry.fields.to_value();
            prop_assert_eq!(FieldSet::from_value(&encoded).expect("decode"), entry.fields);
        }
    }

    #[test]
    fn an_update_that_changes_nothing_moves_nothing(first in config(), second in config()) {
        let (live, _) = applied(None, &first, "a", false, 0).expect("create");
        let (live, _) = applied(Some(&live), &second, "b", true, 1).expect("apply");
        let mut object = live.clone();
        update(&request(&schema(), Some(&live), "c", 100_000_000), &mut object);
        let uid = live.get("metadata").and_then(|m| m.get("managedFields"));
        prop_assert_eq!(object.get("metadata").and_then(|m| m.get("managedFields")), uid);
    }

    #[test]
    fn every_field_has_an_owner_and_no_owner_a_field_that_is_gone(configs in prop::collection::vec((config(), 0..3usize), 1..5)) {
        let mut live: Option<Value> = None;
        for (second, (config, manager)) in configs.iter().enumerate() {
            let second = i64::try_from(second).expect("few");
            let (next, _) = applied(live.as_ref(), config, ["a", "b", "c"][*manager], true, second).expect("apply");
            live = Some(next);
        }
        let live = live.expect("object");
        let managers = ManagedFields::of(&live).expect("managers");
        let mut owned = FieldSet::new();
        managers.entries.iter().for_each(|entry| owned.extend(&entry.fields));
        // Applying the whole current object changes only ownership.
        let mut all = live.clone();
        all["metadata"] = json!({"name": "x"});
        let (after, _) = applied(Some(&live), &all, "z", false, 9).expect("no conflict");
        prop_assert_eq!(&after["spec"], &live["spec"]);
        let mine = ManagedFields::of(&after).expect("managers").get("z", Operation::Apply, "").map(|e| e.fields.clone()).unwrap_or_default();
        let leaves = |set: &FieldSet| set.paths(usize::MAX).into_iter().collect::<std::collections::BTreeSet<_>>();
        // Named structs that became empty are members for one and not for the other.
        let gone: Vec<_> = leaves(&owned).difference(&leaves(&mine)).filter(|p| !without_empty(&live).to_string().is_empty() && is_leaf(&live, p)).cloned().collect();
        prop_assert!(gone.is_empty(), "owned but gone: {:?}", gone);
    }
}

/// Whether a path of plain field names has no value in the object.
fn is_leaf(live: &Value, path: &str) -> bool {
    if path.contains('[') {
        return false;
    }
    let mut here = Some(live);
    for name in path.split('.').filter(|n| !n.is_empty()) {
        here = here.and_then(|v| v.get(name));
    }
    here.is_none()
}

#[test]
fn an_empty_set_is_written_as_an_empty_object() {
    assert_eq!(FieldSet::new().to_value(), Value::Object(Map::new()));
}
