//! Configurations that managers apply and write in turn, as JSON documents separated by zero bytes.

use std::sync::LazyLock;

use serde_json::{Value, json};
use windlass_schema::Schema;
use windlass_smd::{FieldSet, ManagedFields, Request, Scope, Versions, apply, update};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "properties": {"k": text, "n": {"type": "integer", "default": 1}, "m": {"type": "object", "additionalProperties": text}}});
    let spec = json!({"type": "object", "properties": {
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "n"], "items": item},
        "a": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "t": item, "i": {"x-kubernetes-int-or-string": true}, "x": {"x-kubernetes-preserve-unknown-fields": true},
    }});
    Schema::open_api(
        &json!({"type": "object", "properties": {"spec": spec, "status": item}}),
        &Value::Null,
    )
    .expect("a schema")
});

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let mut live: Option<Value> = None;
    for (step, part) in data.split(|b| *b == 0).take(8).enumerate() {
        let Some((first, text)) = part.split_first() else {
            continue;
        };
        let Ok(mut object) = serde_json::from_slice::<Value>(text) else {
            continue;
        };
        let Some(map) = object.as_object_mut() else { continue };
        if !map.get("metadata").is_some_and(Value::is_object) {
            map.insert("metadata".to_owned(), json!({}));
        }
        let manager = ["a", "b", "kubectl"][usize::from(first % 3)];
        let now = jiff::Timestamp::from_second(i64::try_from(step).unwrap_or(0)).expect("a time");
        let schema = (first & 64 == 0).then_some(&*SCHEMA);
        let applies = first & 4 == 0;
        let request = Request {
            schema,
            versions: Versions::ALIKE,
            live: live.as_ref(),
            manager,
            api_version: "v1",
            subresource: "",
            scope: if applies && first & 8 == 0 {
                Scope::MAIN
            } else {
                Scope::ALL
            },
            now,
        };
        if applies {
            let onto = |live: Option<&Value>| apply(&Request { live, ..request }, &object, first & 16 == 0);
            if let Ok(applied) = onto(live.as_ref()) {
                // An emptied field is removed, and empty again after another apply. If no manager owns anything then, the apply after that one
                // records what is there for the manager before it. From then on nothing changes.
                let mut last = Some(applied.object.clone());
                let mut changes = 0;
                while let Some(Ok(again)) = last.take().map(|live| onto(Some(&live)))
                    && again.changed
                {
                    changes += 1;
                    assert!(changes <= 2, "applying again changes something: {object}");
                    last = Some(again.object);
                }
                live = Some(applied.object);
            }
        } else {
            update(&request, &mut object);
            live = Some(object);
        }
        let managers = live
            .as_ref()
            .and_then(|live| ManagedFields::of(live).ok())
            .unwrap_or_default();
        for entry in &managers.entries {
            let text = entry.fields.to_value();
            assert_eq!(
                FieldSet::from_value(&text).as_ref(),
                Ok(&entry.fields),
                "sets survive their encoding"
            );
        }
    }
}
