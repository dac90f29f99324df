//! Takes fields back from the stand-in that owns them after `managedFields` were lost, so that the next apply can remove them.

use serde_json::{Value, json};

use super::apply::To;
use super::send::{Answer, Call, Verb};
use super::{Writer, query};
use crate::error::WriteError;
use crate::tracking::{STAND_IN, is_lost};

impl Writer {
    /// Removes the entry of the stand-in from the object that an apply answered with. Returns the answer of the last request.
    pub(super) async fn reclaim(&self, to: To<'_>, body: &Value, answer: Answer) -> Result<Answer, WriteError> {
        if !is_lost(answer.json()) {
            return Ok(answer);
        }
        let Some(reclaimed) = Reclaimed::of(&answer.value(), to, body) else {
            return Ok(answer);
        };
        let target = to.target;
        tracing::info!(kind = %target.gvk.kind, object = %target.key, manager = to.manager, "managedFields were lost, restoring them");
        let patch = json!([
            {"op": "replace", "path": "/metadata/managedFields", "value": reclaimed.entries},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": answer.version()},
        ]);
        let call = Call {
            verb: Verb::JsonPatch,
            target,
            url: format!("{}?fieldManager={}", target.url(None), query(to.manager)),
            body: Some(&patch),
        };
        let answer = self.send_or_doubt(&call).await?;
        self.note(target, &answer);
        if !reclaimed.has_claims {
            return Ok(answer);
        }
        let mut body = body.clone();
        self.send_only_apply(to, &mut body).await
    }
}

/// The repaired `managedFields` of an object.
#[derive(Debug, PartialEq)]
struct Reclaimed {
    entries: Vec<Value>,
    /// Whether the applier got fields that it has not applied. Another apply removes them.
    has_claims: bool,
}

impl Reclaimed {
    /// `None` when the stand-in owns nothing.
    fn of(object: &Value, to: To<'_>, body: &Value) -> Option<Self> {
        let mut entries = object["metadata"]["managedFields"].as_array()?.clone();
        let before = entries.len();
        entries.retain(|entry| entry["manager"] != STAND_IN);
        if entries.len() == before {
            return None;
        }
        let mut has_claims = false;
        if to.subresource.is_none() && body["spec"]["kubeadmConfigSpec"].is_object() {
            // The same manager may have applied in an older version, whose arguments have another form.
            let ours = |entry: &&mut Value| {
                entry["manager"] == to.manager
                    && entry["operation"] == "Apply"
                    && entry["subresource"].is_null()
                    && entry["apiVersion"] == body["apiVersion"]
            };
            if let Some(fields) = entries.iter_mut().find(ours).map(|entry| &mut entry["fieldsV1"]) {
                let config = &mut fields["f:spec"]["f:kubeadmConfigSpec"];
                has_claims = claim(&object["spec"]["kubeadmConfigSpec"], config);
            }
        }
        Some(Self { entries, has_claims })
    }
}

/// Adds all arguments of kubeadm's components to a set of fields. Whether an argument was applied before or comes from another client
/// is not known. One that stays by mistake keeps a component from starting, so the applier of the configuration gets them all.
fn claim(config: &Value, fields: &mut Value) -> bool {
    let mut has_claims = false;
    for (name, value) in config.as_object().into_iter().flatten() {
        let field = format!("f:{name}");
        if !are_arguments(name) {
            if holds_arguments(value) {
                has_claims |= claim(value, &mut fields[field]);
            }
            continue;
        }
        for (argument, owned) in owned_arguments(value) {
            let claimed = &mut fields[&field][argument];
            has_claims |= claimed.is_null();
            *claimed = owned;
        }
    }
    has_claims
}

/// Whether a field has arguments of a component.
fn are_arguments(name: &str) -> bool {
    name == "extraArgs" || name == "kubeletExtraArgs"
}

fn holds_arguments(config: &Value) -> bool {
    let mut sections = config.as_object().into_iter().flatten();
    sections.any(|(name, value)| (are_arguments(name) && !owned_arguments(value).is_empty()) || holds_arguments(value))
}

/// Arguments as owned fields: those of a list (v1beta2) or of a map (v1beta1).
fn owned_arguments(arguments: &Value) -> Vec<(String, Value)> {
    let of_item = |argument: &Value| {
        let key = json!({"name": argument["name"], "value": argument["value"].as_str().unwrap_or_default()});
        (format!("k:{key}"), json!({".": {}, "f:name": {}, "f:value": {}}))
    };
    match arguments {
        Value::Array(items) => items.iter().map(of_item).collect(),
        Value::Object(map) => map.keys().map(|name| (format!("f:{name}"), json!({}))).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{ObjectKey, gvk_from};
    use crate::writer::Target;

    fn entry(manager: &str, fields: Value) -> Value {
        let mut entry = json!({"manager": manager, "operation": "Apply", "fieldsV1": {}});
        entry["fieldsV1"] = fields;
        entry
    }

    fn check(object: &Value, body: &Value, expect: Option<&(Value, bool)>) {
        let target = Target {
            gvk: gvk_from("x.io/v1", "Foo"),
            key: ObjectKey::new("n", "a"),
            plural: "foos".to_owned(),
        };
        let to = To {
            manager: "m",
            target: &target,
            subresource: None,
            any_version: false,
        };
        let found = Reclaimed::of(object, to, body).map(|r| (Value::Array(r.entries), r.has_claims));
        assert_eq!(found.as_ref(), expect);
    }

    #[test]
    fn the_stand_in_goes_and_the_others_stay() {
        let (ours, theirs) = (entry("m", json!({"f:spec": {}})), entry("t", json!({"f:spec": {}})));
        let object = |entries: Value| json!({"metadata": {"managedFields": entries}, "spec": {"a": 1}});
        check(&object(json!([ours, theirs])), &json!({}), None);
        check(&json!({"metadata": {}}), &json!({}), None);
        let lost = object(json!([entry(STAND_IN, json!({"f:spec": {"f:a": {}}})), ours, theirs]));
        check(&lost, &json!({"spec": {}}), Some(&(json!([ours, theirs]), false)));
    }

    #[test]
    fn arguments_of_kubeadm_go_to_the_applier_of_its_configuration() {
        let object = json!({
            "metadata": {"managedFields": [
                entry(STAND_IN, json!({})),
                entry("m", json!({"f:spec": {"f:kubeadmConfigSpec": {"f:format": {}}}})),
            ]},
            "spec": {"kubeadmConfigSpec": {
                "format": "cloud-config",
                "clusterConfiguration": {
                    "apiServer": {"extraArgs": [{"name": "v", "value": "4"}]},
                    "controllerManager": {"extraArgs": []},
                    "scheduler": {"extraArgs": {"x": "1"}},
                },
                "joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "w"}]}},
            }},
        });
        let owned = json!({".": {}, "f:name": {}, "f:value": {}});
        let claimed = json!({"f:spec": {"f:kubeadmConfigSpec": {
            "f:format": {},
            "f:clusterConfiguration": {
                "f:apiServer": {"f:extraArgs": {"k:{\"name\":\"v\",\"value\":\"4\"}": owned}},
                "f:scheduler": {"f:extraArgs": {"f:x": {}}},
            },
            "f:joinConfiguration": {"f:nodeRegistration": {"f:kubeletExtraArgs": {"k:{\"name\":\"w\",\"value\":\"\"}": owned}}},
        }}});
        let applied = json!({"spec": {"kubeadmConfigSpec": {"format": "cloud-config"}}});
        check(&object, &applied, Some(&(json!([entry("m", claimed.clone())]), true)));
        // What it applied in an older version has another form, and stays as it is.
        let mut older = entry("m", json!({"f:spec": {"f:kubeadmConfigSpec": {"f:format": {}}}}));
        older["apiVersion"] = json!("x.io/v1beta1");
        let mut mixed = object.clone();
        let entries = mixed["metadata"]["managedFields"].as_array_mut().unwrap();
        entries.insert(0, older.clone());
        check(&mixed, &applied, Some(&(json!([older, entry("m", claimed)]), true)));
        // One that applies metadata only does not own the configuration.
        let ours = object["metadata"]["managedFields"][1].clone();
        check(&object, &json!({"metadata": {}}), Some(&(json!([ours]), false)));
    }
}
