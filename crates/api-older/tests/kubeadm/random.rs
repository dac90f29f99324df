//! Random objects that a schema accepts. They are made of bytes, so that a failing object shrinks: without bytes nothing optional is set.

use serde_json::{Map, Value, json};

/// Where the choices come from.
pub(crate) struct Choices {
    bytes: std::vec::IntoIter<u8>,
    /// Whether texts without a least length may be empty.
    may_be_empty: bool,
}

impl Choices {
    pub(crate) fn new(bytes: Vec<u8>, may_be_empty: bool) -> Self {
        Self {
            bytes: bytes.into_iter(),
            may_be_empty,
        }
    }

    fn byte(&mut self) -> usize {
        usize::from(self.bytes.next().unwrap_or_default())
    }

    fn is_set(&mut self) -> bool {
        self.byte() >= 110
    }

    fn of<T: Clone>(&mut self, options: &[T]) -> T {
        options[self.byte() % options.len()].clone()
    }

    /// An object of a kind, with `apiVersion`, `kind` and `metadata`.
    pub(crate) fn object(&mut self, schema: &Value, api_version: &str, kind: &str) -> Value {
        let mut object = self.value(schema, "");
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": "a", "namespace": "ns", "labels": {"x": "y"}});
        object
    }

    fn value(&mut self, schema: &Value, name: &str) -> Value {
        if schema["x-kubernetes-int-or-string"] == true {
            let is_quantity = schema["pattern"].is_string();
            return match self.of(&[1, 2, 3]) {
                _ if is_quantity => json!(self.of(&["1Mi", "7"])),
                3 => json!("25%"),
                number => json!(number),
            };
        }
        match schema["type"].as_str() {
            Some("object") => self.structure(schema),
            Some("array") => self.list(schema, name),
            Some("string") => self.text(schema, name),
            Some("integer") => self.number(schema),
            Some("boolean") => json!(self.byte() % 2 == 1),
            kind => panic!("{name}: no values of type {kind:?}"),
        }
    }

    fn structure(&mut self, schema: &Value) -> Value {
        let mut fields = Map::new();
        if schema["additionalProperties"].is_object() {
            for _ in 0..=self.byte() % 3 {
                let key = self.of(&["b", "c", "a", "d.e/f"]);
                fields.insert(key.to_owned(), self.value(&schema["additionalProperties"], key));
            }
        }
        let is_required = |name: &str| {
            let required = schema["required"].as_array();
            required.is_some_and(|required| required.iter().any(|field| field == name))
        };
        // A reference without one of these is to nothing.
        let is_reference = schema["properties"]["resourceVersion"].is_object();
        let is_needed = |name: &str| is_reference && matches!(name, "apiVersion" | "kind" | "name");
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            if is_required(name) || is_needed(name) || self.is_set() {
                fields.insert(name.clone(), self.value(field, name));
            }
        }
        if fields.is_empty()
            && schema["minProperties"] == 1
            && let Some((name, field)) = schema["properties"].as_object().and_then(|fields| fields.iter().next())
        {
            fields.insert(name.clone(), self.value(field, name));
        }
        Value::Object(fields)
    }

    fn list(&mut self, schema: &Value, name: &str) -> Value {
        // An empty list is the same as none, except for taints: there it means no taints.
        let least = usize::from(name != "taints" || schema["minItems"] == 1);
        let count = least + self.byte() % 3;
        let mut items: Vec<Value> = (0..count).map(|_| self.value(&schema["items"], name)).collect();
        if let Some(keys) = schema["x-kubernetes-list-map-keys"].as_array() {
            // Flags are unique by their name alone.
            let is_flag = keys.iter().any(|key| key == "value");
            let key_of = |item: &Value| -> Vec<Value> {
                let keys = keys.iter().filter_map(Value::as_str);
                let keys = keys.filter(|key| !is_flag || *key == "name");
                keys.map(|key| item[key].clone()).collect()
            };
            let mut seen = Vec::new();
            items.retain(|item| {
                let key = key_of(item);
                let is_new = !seen.contains(&key);
                seen.push(key);
                is_new
            });
        }
        Value::Array(items)
    }

    fn text(&mut self, schema: &Value, name: &str) -> Value {
        if let Some(options) = schema["enum"].as_array() {
            return self.of(options);
        }
        match (schema["format"].as_str(), name) {
            (Some("date-time"), _) => json!(self.of(&["2026-01-02T03:04:05Z", "2027-11-12T13:14:15Z"])),
            (Some("byte"), _) => json!(self.of(&["YQ==", "YWJj"])),
            (_, "token") => json!("abcdef.0123456789abcdef"),
            (_, "apiVersion") => json!(self.of(&["a.example/v1beta2", "b.example/v1beta2"])),
            (_, "partitionType") => json!(self.of(&["Linux", "LVM"])),
            // Only v1beta1 has durations.
            (_, "ttl" | "timeout" | "timeoutForControlPlane" | "retryPeriod" | "minHealthyPeriod") => self.duration(),
            (_, name) if name.starts_with("node") && name.ends_with("Timeout") => self.duration(),
            _ if self.may_be_empty
                && schema["minLength"].as_u64().unwrap_or_default() == 0
                && schema["pattern"].is_null() =>
            {
                json!(self.of(&["", "a", "b"]))
            }
            // These fit the patterns of all names.
            _ => json!(self.of(&["a", "b", "c1"])),
        }
    }

    fn duration(&mut self) -> Value {
        json!(self.of(&["0s", "10s", "1m30s", "1h0m0s"]))
    }

    fn number(&mut self, schema: &Value) -> Value {
        let least = schema["minimum"].as_i64().unwrap_or_default();
        let most = schema["maximum"].as_i64().unwrap_or(i64::from(i32::MAX));
        json!(self.of(&[least, least + 1, least + 30, most]))
    }
}

/// Makes an object of the hub version one that the rules across fields accept, too.
pub(crate) fn obey_rules(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("device") && !fields.contains_key("filesystem") {
                // A partition table: one of `layout` and `diskLayout`.
                if fields.contains_key("diskLayout") {
                    fields.remove("layout");
                } else {
                    fields.entry("layout").or_insert(json!(true));
                }
            }
            if fields.contains_key("initConfiguration") || fields.contains_key("joinConfiguration") {
                wait_equally(fields);
            }
            fields.values_mut().for_each(obey_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(obey_rules),
        _ => {}
    }
}

/// The webhooks want the same timeout for the control plane of kubeadm init and kubeadm join.
fn wait_equally(spec: &mut Map<String, Value>) {
    const FIELD: &str = "controlPlaneComponentHealthCheckSeconds";
    let init = spec
        .get("initConfiguration")
        .and_then(|init| init["timeouts"].get(FIELD))
        .cloned();
    if let Some(seconds) = init {
        let join = spec.entry("joinConfiguration").or_insert(json!({}));
        join["timeouts"][FIELD] = seconds;
    } else if let Some(timeouts) = spec
        .get_mut("joinConfiguration")
        .and_then(|join| join.get_mut("timeouts"))
    {
        let timeouts = timeouts.as_object_mut().unwrap();
        timeouts.remove(FIELD);
        timeouts.entry("tlsBootstrapSeconds").or_insert(json!(5));
    }
}
