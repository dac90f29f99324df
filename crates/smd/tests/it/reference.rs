//! A slow, simple model of ownership: sets of whole paths, objects without order. For random schemas, objects and managers, the
//! model and the crate must have the same results.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_schema::Schema;
use windlass_smd::{ApplyError, ManagedFields, Request, Scope, Versions, apply, update};

use self::model::{Model, Path, Paths, Ty, sorted};
use crate::vectors::without_empty;

mod model;

fn set_of(fields: &Value, at: &Path, out: &mut Paths) {
    for (step, below) in fields.as_object().into_iter().flatten() {
        if step == "." {
            continue;
        }
        let mut path = at.clone();
        path.push(step.clone());
        if below
            .as_object()
            .is_some_and(|map| map.is_empty() || map.contains_key("."))
        {
            out.insert(path.clone());
        }
        set_of(below, &path, out);
    }
}

/// The owners of fields in the crate.
fn owners(object: &Value) -> BTreeMap<(String, bool), Paths> {
    let managers = ManagedFields::of(object).expect("managers");
    let sets = managers.entries.iter().map(|entry| {
        let mut paths = Paths::new();
        set_of(&entry.fields.to_value(), &Vec::new(), &mut paths);
        (
            (entry.manager.clone(), entry.operation == windlass_smd::Operation::Apply),
            paths,
        )
    });
    sets.collect()
}

#[derive(Debug, Clone)]
struct Step {
    manager: &'static str,
    applies: bool,
    force: bool,
    value: Value,
}

fn types() -> impl Strategy<Value = Ty> {
    let leaf = prop_oneof![
        3 => Just(Ty::Number),
        1 => Just(Ty::AtomicList),
        1 => Just(Ty::AtomicMap),
        1 => Just(Ty::Set),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let fields = prop::collection::btree_map("[abc]", inner.clone(), 1..3);
        prop_oneof![
            3 => fields.clone().prop_map(Ty::Struct),
            2 => inner.prop_map(|ty| Ty::Map(Box::new(ty))),
            3 => fields.prop_map(Ty::Keyed),
        ]
    })
}

fn histories() -> impl Strategy<Value = (Ty, Vec<Step>)> {
    prop::collection::btree_map("[stuv]", types(), 1..4).prop_flat_map(|fields| {
        let ty = Ty::Struct(fields);
        let step = (
            prop::sample::select(vec!["a", "b", "c"]),
            prop::bool::weighted(0.75),
            any::<bool>(),
            ty.values(),
        )
            .prop_map(|(manager, applies, force, value)| Step {
                manager,
                applies,
                force,
                value,
            });
        (Just(ty), prop::collection::vec(step, 1..7))
    })
}

fn request<'a>(schema: &'a Schema, live: Option<&'a Value>, step: &Step) -> Request<'a> {
    Request {
        schema: Some(schema),
        versions: Versions::ALIKE,
        live,
        manager: step.manager,
        api_version: "v1",
        subresource: "",
        scope: Scope::ALL,
        now: jiff::Timestamp::UNIX_EPOCH,
    }
}

fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("metadata");
    }
    object
}

fn with_metadata(value: &Value) -> Value {
    let mut object = value.clone();
    object["metadata"] = json!({});
    object
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("SMD_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150)
    ))]

    #[test]
    fn the_model_and_the_crate_agree((ty, steps) in histories()) {
        let schema = Schema::open_api(&ty.schema(), &Value::Null).expect("schema");
        let mut model = Model::default();
        let mut live: Option<Value> = None;
        for step in &steps {
            let mut object = with_metadata(&step.value);
            if step.applies {
                let ours = apply(&request(&schema, live.as_ref(), step), &object, step.force);
                let theirs = model.apply(&ty, step.manager, &step.value, step.force);
                match (ours, theirs) {
                    (Ok(applied), Ok(())) => live = Some(applied.object),
                    (Err(ApplyError::Conflicts(found)), Err(expected)) => {
                        let found: BTreeSet<String> = found.listed.into_iter().map(|conflict| conflict.path).collect();
                        prop_assert_eq!(found.len(), expected.len());
                    }
                    (ours, theirs) => prop_assert!(false, "{:?} but the model says {:?}", ours, theirs),
                }
            } else {
                update(&request(&schema, live.as_ref(), step), &mut object);
                live = Some(object);
                model.update(&ty, step.manager, &step.value);
            }
            if let Some(live) = &live {
                let value = model.value.clone().unwrap_or_default();
                prop_assert_eq!(sorted(&ty, &plain(live)), sorted(&ty, &value), "after {:?}", step);
                prop_assert_eq!(owners(live), model.owners.clone(), "after {:?}", step);
            }
        }
    }

    #[test]
    fn a_forced_apply_leaves_no_conflict_and_nothing_to_apply((ty, steps) in histories()) {
        let schema = Schema::open_api(&ty.schema(), &Value::Null).expect("schema");
        let mut live: Option<Value> = None;
        for step in &steps {
            // An emptied field is null, and empty again after another apply.
            let object = with_metadata(&without_empty(&step.value));
            let applied = apply(&request(&schema, live.as_ref(), step), &object, true).expect("forced");
            let again = apply(&request(&schema, Some(&applied.object), step), &object, false).expect("no conflict");
            prop_assert!(!again.changed);
            prop_assert_eq!(&again.object, &applied.object);
            live = Some(applied.object);
        }
    }

    #[test]
    fn who_wrote_something_may_apply_it((ty, steps) in histories()) {
        let schema = Schema::open_api(&ty.schema(), &Value::Null).expect("schema");
        for step in &steps {
            let mut live = with_metadata(&step.value);
            update(&request(&schema, None, step), &mut live);
            let object = with_metadata(&step.value);
            let applied = apply(&request(&schema, Some(&live), step), &object, false).expect("no conflict");
            prop_assert_eq!(plain(&applied.object), plain(&live));
        }
    }
}
