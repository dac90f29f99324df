//! What an API server does with an object before it stores it.

use serde_json::Value;
use windlass_api::crd::crd;
use windlass_api::kind::ApiKind;
use windlass_cel::Validator;
use windlass_schema::{Dialect, Schema, default, drop_nulls, prune, unknown_fields};

/// What is wrong with a write, in the server's words; with `old`, of a change of it.
pub(crate) fn refusals<K: ApiKind>(object: &Value, old: Option<&Value>) -> Vec<String> {
    let validator = validator::<K>();
    let schema = validator.schema();
    let mut words: Vec<String> = unknown_fields(schema, object)
        .into_iter()
        .map(|field| format!("unknown field \"{field}\""))
        .collect();
    let object = completed(schema, object);
    let old = old.map(|old| completed(schema, old));
    words.extend(
        validator
            .validate(&object, old.as_ref())
            .iter()
            .map(ToString::to_string),
    );
    words
}

/// An object as it is stored, read into its type.
pub(crate) fn stored<K: ApiKind>(object: &Value) -> K {
    assert_eq!(refusals::<K>(object, None), Vec::<String>::new());
    K::from_json(&completed(validator::<K>().schema(), object)).unwrap()
}

fn validator<K: ApiKind>() -> Validator {
    let definition = crd::<K>();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    Validator::parse(schema, Dialect::Crd, "schema").unwrap()
}

fn completed(schema: &Schema, object: &Value) -> Value {
    let mut object = object.clone();
    prune(schema, &mut object);
    drop_nulls(schema, &mut object);
    default(schema, &mut object);
    object
}
