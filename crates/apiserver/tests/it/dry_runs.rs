//! A property: a dry run returns the same as the write would, and stores nothing. The topology controller relies on that.

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{install, start, widget_crd, widgets};

const NAME: &str = "a";

#[derive(Debug, Clone)]
struct Step {
    manager: &'static str,
    how: How,
    version: &'static str,
    body: Value,
}

#[derive(Debug, Clone, Copy)]
enum How {
    Apply { force: bool },
    ApplyStatus { force: bool },
    Merge,
    MergeStatus,
}

fn fields(fields: Vec<(&str, Option<Value>)>) -> Value {
    let there = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(there.collect())
}

/// Valid and invalid objects.
fn bodies() -> impl Strategy<Value = Value> {
    let value = |of: Vec<Value>| prop::option::weighted(0.6, prop::sample::select(of));
    let part = (prop::sample::select(vec!["x", "y", "z"]), prop::option::of(0..2_i64))
        .prop_map(|(name, count)| fields(vec![("name", Some(json!(name))), ("count", count.map(Value::from))]));
    (
        prop::option::weighted(
            0.9,
            prop::sample::select(vec![json!(1), json!(2), json!(2), json!(0), json!("big"), Value::Null]),
        ),
        value(vec![json!("red"), json!("blue"), json!("green"), Value::Null]),
        value(vec![json!(1), json!(2), Value::Null]),
        prop::option::of(prop::collection::vec(part, 0..3)),
        value(vec![json!(true)]),
        value(vec![json!({"l": "1"}), json!({"l": "2", "m": "1"}), json!({"m": null})]),
        value(vec![
            json!({"phase": "On"}),
            json!({"phase": "Off", "replicas": 1}),
            json!({"replicas": "many"}),
        ]),
    )
        .prop_map(|(size, color, replicas, parts, unknown, labels, status)| {
            let spec = fields(vec![
                ("size", size),
                ("color", color),
                ("replicas", replicas),
                ("parts", parts.map(Value::from)),
                ("unknown", unknown),
            ]);
            let metadata = fields(vec![("name", Some(json!(NAME))), ("labels", labels)]);
            fields(vec![
                ("metadata", Some(metadata)),
                ("spec", Some(spec)),
                ("status", status),
            ])
        })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let how = prop_oneof![
        6 => any::<bool>().prop_map(|force| How::Apply { force }),
        2 => any::<bool>().prop_map(|force| How::ApplyStatus { force }),
        2 => Just(How::Merge),
        1 => Just(How::MergeStatus),
    ];
    let step = (
        prop::sample::select(vec!["one", "two", "kubectl"]),
        how,
        prop::sample::select(vec!["v1", "v1", "v1", "v1alpha1"]),
        bodies(),
    )
        .prop_map(|(manager, how, version, body)| Step {
            manager,
            how,
            version,
            body,
        });
    prop::collection::vec(step, 1..8)
}

/// A response without the values that differ in each write: revisions, times, uids.
fn essence(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for name in ["resourceVersion", "uid", "creationTimestamp"] {
            metadata.remove(name);
        }
        if let Some(Value::Array(managers)) = metadata.get_mut("managedFields") {
            for time in managers.iter_mut().filter_map(Value::as_object_mut) {
                time.remove("time");
            }
            // Their order follows their times.
            managers.sort_by_key(ToString::to_string);
        }
    }
    object
}

async fn send(api: &Api<DynamicObject>, step: &Step, dry_run: bool) -> Result<Value, String> {
    let force = matches!(step.how, How::Apply { force: true } | How::ApplyStatus { force: true });
    let params = PatchParams {
        dry_run,
        force,
        field_manager: Some(step.manager.to_owned()),
        ..PatchParams::default()
    };
    let mut config = step.body.as_object().cloned().unwrap_or_else(Map::new);
    config.insert("apiVersion".to_owned(), format!("example.com/{}", step.version).into());
    config.insert("kind".to_owned(), "Widget".into());
    let config = Value::Object(config);
    let done = match step.how {
        How::Apply { .. } => api.patch(NAME, &params, &Patch::Apply(config)).await,
        How::ApplyStatus { .. } => api.patch_status(NAME, &params, &Patch::Apply(config)).await,
        How::Merge => api.patch(NAME, &params, &Patch::Merge(&step.body)).await,
        How::MergeStatus => api.patch_status(NAME, &params, &Patch::Merge(&step.body)).await,
    };
    match done {
        Ok(object) => Ok(serde_json::to_value(object).unwrap()),
        Err(kube::Error::Api(status)) => Err(serde_json::to_string(&status).unwrap()),
        Err(error) => panic!("{error}"),
    }
}

async fn stored(api: &Api<DynamicObject>) -> Option<Value> {
    let object = api.get_opt(NAME).await.unwrap();
    object.map(|object| serde_json::to_value(object).unwrap())
}

async fn check(steps: &[Step]) -> Result<(), TestCaseError> {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    for step in steps {
        let api = widgets(&client, step.version);
        let before = stored(&api).await;
        let told = send(&api, step, true).await;
        prop_assert_eq!(stored(&api).await, before, "{:?} left something", step);
        let done = send(&api, step, false).await;
        prop_assert_eq!(
            told.map(|o| essence(&o)),
            done.as_ref().map(essence).map_err(Clone::clone),
            "{:?}",
            step
        );
        if let Ok(done) = done {
            prop_assert_eq!(stored(&api).await, Some(done), "{:?} answered something else", step);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_dry_run_answers_what_the_write_answers(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(&steps))?;
    }
}
