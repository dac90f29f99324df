//! A write of one of our kinds: `resource` (`clusters.cluster.x-k8s.io`), `old` and `new` object, `beside` (other objects), `scale` (the
//! replicas of a write to the subresource).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use windlass_admission::view::Objects;
use windlass_admission::{Change, Operation, Rule};
use windlass_manager::FeatureGates;
use windlass_manager::registry::admission;
use windlass_manager::registry::kinds::{KINDS, KindEntry};
use windlass_schema::{MOST_ERRORS, Schema};

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| admission::rules(&FeatureGates::default()));
/// The schemas of our kinds.
static SCHEMAS: LazyLock<HashMap<&str, Schema>> = LazyLock::new(schemas);
static NOTHING: Value = Value::Null;

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let Ok(input) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let Some(rule) = RULES.iter().find(|rule| input["resource"] == rule.qualified()) else {
        return;
    };
    let beside = input["beside"].as_array().into_iter().flatten();
    let view = Objects(beside.cloned().map(Arc::new).collect());
    let (old, new) = (&input["old"], &input["new"]);
    // API servers admit only objects.
    let operation = match (old, new) {
        (Value::Null, Value::Object(_)) => Operation::Create,
        (Value::Object(_), Value::Object(_)) => Operation::Update,
        (Value::Object(_), Value::Null) => Operation::Delete,
        _ => return,
    };
    if let (Some(check), Some(replicas)) = (rule.admission.scale, input["scale"].as_i64()) {
        assert!(
            check(replicas, old).is_none_or(|why| !why.is_empty()),
            "a reason is missing"
        );
    }
    let resource = rule.qualified();
    let change = |new| Change {
        resource: &resource,
        operation,
        dry_run: input["dryRun"] == true,
        old,
        new,
        view: &view,
    };
    // It is asked before anything is known of the object.
    let _ = rule.reference(&change(new));
    let mut object = new.clone();
    let completed = rule.complete(&change(&NOTHING), &mut object);
    let is_completed = completed.is_ok_and(|verdict| verdict.is_allowed());
    if is_completed {
        let mut again = object.clone();
        let completed = rule.complete(&change(&NOTHING), &mut again);
        assert!(
            completed.is_ok_and(|verdict| verdict.is_allowed()),
            "it is refused the second time"
        );
        assert_eq!(again, object, "what is complete is completed again");
    }
    let checked = rule.check(&change(&object));
    if let Ok(verdict) = &checked {
        assert!(verdict.errors.len() <= MOST_ERRORS, "{} errors", verdict.errors.len());
        for error in &verdict.errors {
            assert!(!error.detail.is_empty(), "{error}");
        }
    }
    let is_accepted = is_completed && checked.is_ok_and(|verdict| verdict.is_allowed());
    if is_accepted && operation != Operation::Delete {
        is_readable(rule, object);
    }
}

/// Asserts that controllers can read an object if it conforms to its schema.
fn is_readable(rule: &Rule, mut object: Value) {
    let entry = KINDS
        .iter()
        .find(|entry| (entry.group, entry.kind) == (rule.group, rule.kind));
    let entry = entry.expect("a rule is about one of our kinds");
    let Some(schema) = SCHEMAS.get(rule.kind).filter(|_| object.is_object()) else {
        return;
    };
    windlass_schema::prune(schema, &mut object);
    windlass_schema::drop_nulls(schema, &mut object);
    windlass_schema::default(schema, &mut object);
    // An API server makes metadata good or refuses it.
    object["metadata"] = json!({"namespace": "a", "name": "b"});
    object["apiVersion"] = format!("{}/{}", rule.group, rule.version).into();
    object["kind"] = rule.kind.into();
    if windlass_schema::validate_at(schema, "", &object, None).is_empty() {
        let read = (entry.decode)(object.to_string().as_bytes());
        assert!(read.is_ok(), "controllers cannot read what is accepted: {object}");
    }
}

fn schemas() -> HashMap<&'static str, Schema> {
    let of_kind = |entry: &KindEntry| {
        let definition = (entry.crd)();
        let mut versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        let stored = versions
            .find(|version| version["storage"] == true)
            .expect("a version is stored");
        (entry.kind, Schema::stored(&stored["schema"]["openAPIV3Schema"]))
    };
    KINDS.iter().map(of_kind).collect()
}
