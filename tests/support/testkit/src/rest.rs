//! Waiting until the controllers have nothing left to do, and comparing what is stored then.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, ListParams};
use serde_json::Value;
use windlass_manager::registry::kinds::KINDS;
use windlass_webhook::SECRET_NAME;

use crate::{Env, Objects, wait};

/// Changes of texts in a status are delayed no longer than this: a controller without writes for so long has none left.
pub const HELD_BACK: Duration = Duration::from_secs(4);

/// The stored objects of our kinds and the Secrets, by `Kind name`.
pub type Stored = BTreeMap<String, Value>;

impl Objects {
    /// All objects of our kinds, and all Secrets but the certificate of the webhooks, as they are stored, without their managed fields.
    pub async fn all(&self) -> Stored {
        let mut found = Stored::new();
        for entry in KINDS {
            let all = self.dynamic(&entry.full_name()).list(&ListParams::default()).await;
            for mut object in all.unwrap_or_else(|error| panic!("cannot list {}: {error}", entry.plural)) {
                object.metadata.managed_fields = None;
                let name = named(entry.kind, &object);
                let mut object = value(&object);
                object["apiVersion"] = format!("{}/{}", entry.group, entry.version).into();
                object["kind"] = entry.kind.into();
                found.insert(name, object);
            }
        }
        for mut secret in self.list::<Secret>().await {
            secret.metadata.managed_fields = None;
            let name = secret.metadata.name.clone().unwrap_or_default();
            if name == SECRET_NAME {
                continue;
            }
            let mut object = value(&secret);
            object["kind"] = "Secret".into();
            object["apiVersion"] = "v1".into();
            found.insert(format!("Secret {name}"), object);
        }
        found
    }
}

impl Env {
    /// Waits until the controllers are idle and have written nothing for some seconds.
    pub async fn rest(&self) {
        self.rest_for(HELD_BACK).await;
    }

    /// Waits until the controllers are idle and have written nothing for this long.
    pub async fn rest_for(&self, time: Duration) {
        let begun = Instant::now();
        let (mut before, mut quiet) = (self.writes_by_kind(), Instant::now());
        let mut looks = wait::looks();
        loop {
            looks.tick().await;
            let now = self.writes_by_kind();
            let waited = now == before && quiet.elapsed() > time;
            if waited && self.load().busy.is_empty() {
                return;
            }
            if waited || now != before {
                assert!(
                    begun.elapsed() < wait::TIMEOUT + time,
                    "still writing: {:?}",
                    more(&before, &now)
                );
                (before, quiet) = (now, Instant::now());
            }
        }
    }
}

/// The writes of `after` that `before` has not, with their numbers.
pub fn more(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let more = |(what, count): (&String, &u64)| (what.clone(), count - before.get(what).unwrap_or(&0));
    after.iter().map(more).filter(|(_, count)| *count > 0).collect()
}

/// The fields that differ between two stored states, one line each. `ignored` names paths such as `metadata.uid`.
pub fn differences(before: &Stored, after: &Stored, ignored: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for name in before
        .keys()
        .chain(after.keys().filter(|name| !before.contains_key(*name)))
    {
        match (before.get(name), after.get(name)) {
            (Some(old), Some(new)) => compare(name, "", old, new, ignored, &mut lines),
            (Some(_), None) => lines.push(format!("{name} is gone")),
            (None, _) => lines.push(format!("{name} is new")),
        }
    }
    lines
}

fn compare(name: &str, path: &str, old: &Value, new: &Value, ignored: &[&str], lines: &mut Vec<String>) {
    if old == new || ignored.contains(&path) {
        return;
    }
    match (old, new) {
        (Value::Object(one), Value::Object(other)) => {
            for key in one.keys().chain(other.keys().filter(|key| !one.contains_key(*key))) {
                let below = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                compare(name, &below, &old[key], &new[key], ignored, lines);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (one, other) in one.iter().zip(other) {
                let below = match one["type"].as_str() {
                    Some(kind) => format!("{path}[{kind}]"),
                    None => format!("{path}[]"),
                };
                compare(name, &below, one, other, ignored, lines);
            }
        }
        _ => lines.push(format!("{name}: {path} was {old}, is {new}")),
    }
}

fn named(kind: &str, object: &DynamicObject) -> String {
    format!("{kind} {}", object.metadata.name.as_deref().unwrap_or_default())
}

fn value(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_else(|error| panic!("an object without a JSON form: {error}"))
}
