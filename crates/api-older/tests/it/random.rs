//! Random objects that a schema accepts.

use regex::Regex;
use serde_json::{Map, Value, json};

/// A source of numbers (splitmix64): the same seed gives the same objects.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    /// A source that begins at a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// The seed.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a limit that is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    /// One of some things.
    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = usize::try_from(self.below(of.len() as u64)).unwrap();
        &of[at]
    }
}

/// Texts for strings with a pattern. The first that fits is taken, beginning at a random one.
const CANDIDATES: [&str; 8] = ["abc", "a.b-c", "x1", "g.io/v1", "[1-3]", "5", "Abc", "10.0.0.0/16"];

/// A value that the schema accepts. `name` is the field.
pub(crate) fn value(schema: &Value, name: &str, random: &mut Random) -> Value {
    if schema["x-kubernetes-int-or-string"] == true {
        // A quantity has a pattern, and is always written as text.
        if schema.get("pattern").is_some() {
            return json!(random.below(9).to_string());
        }
        return if random.coin() {
            json!(random.below(9))
        } else {
            json!("25%")
        };
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, random),
        Some("array") => array(schema, name, random),
        Some("string") => text(schema, name, random),
        Some("integer" | "number") => {
            let least = schema["minimum"].as_i64().unwrap_or(0);
            let most = schema["maximum"].as_i64().unwrap_or(least + 900);
            json!(least + i64::try_from(random.below(u64::try_from(most - least + 1).unwrap())).unwrap())
        }
        Some("boolean") => json!(random.coin()),
        _ if schema["x-kubernetes-preserve-unknown-fields"] == true => json!({"x": random.below(9)}),
        other => panic!("{name}: a schema of type {other:?}"),
    }
}

fn object(schema: &Value, random: &mut Random) -> Value {
    let mut fields = Map::new();
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        for index in 0..random.below(3) {
            fields.insert(format!("k{index}"), value(values, "value", random));
        }
    }
    let Some(properties) = schema["properties"].as_object() else {
        let is_open = schema["x-kubernetes-preserve-unknown-fields"] == true;
        return if is_open {
            json!({"x": random.below(9)})
        } else {
            Value::Object(fields)
        };
    };
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    // A reference without one of these is to nothing.
    let is_reference = properties.contains_key("resourceVersion") && properties.contains_key("fieldPath");
    let is_needed = |name: &str| is_reference && matches!(name, "apiVersion" | "kind" | "name");
    for (name, schema) in properties {
        if is_needed(name) || required.contains(&name.as_str()) || random.coin() {
            fields.insert(name.clone(), value(schema, name, random));
        }
    }
    if fields.is_empty() && schema["minProperties"].as_u64().unwrap_or(0) > 0 {
        let names: Vec<&String> = properties.keys().collect();
        let name = *random.one(&names);
        fields.insert(name.clone(), value(&properties[name], name, random));
    }
    Value::Object(fields)
}

fn array(schema: &Value, name: &str, random: &mut Random) -> Value {
    let least = schema["minItems"].as_u64().unwrap_or(0);
    let mut items: Vec<Value> = Vec::new();
    let given = schema["x-kubernetes-list-map-keys"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let mut keys: Vec<&str> = given.collect();
    // Admission refuses two variables, or two definitions, of the same name.
    let names = ["name", "from"]
        .into_iter()
        .filter(|name| schema["items"]["properties"].get(*name).is_some());
    if keys.is_empty() {
        keys.extend(names);
    }
    let key = |item: &Value| -> Vec<Value> { keys.iter().map(|key| item[*key].clone()).collect() };
    for _ in 0..least + random.below(3) {
        let item = value(&schema["items"], name, random);
        if keys.is_empty() || items.iter().all(|other| key(other) != key(&item)) {
            items.push(item);
        }
    }
    Value::Array(items)
}

fn text(schema: &Value, name: &str, random: &mut Random) -> Value {
    if let Some(words) = schema["enum"].as_array() {
        return random.one(words).clone();
    }
    if schema["format"] == "date-time" {
        return json!(format!(
            "2026-0{}-1{}T0{}:00:00Z",
            1 + random.below(9),
            random.below(9),
            random.below(9)
        ));
    }
    if schema["format"] == "byte" {
        return json!("YWJj");
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        let pattern = Regex::new(pattern).unwrap();
        let start = usize::try_from(random.below(CANDIDATES.len() as u64)).unwrap();
        let mut candidates = CANDIDATES.iter().cycle().skip(start).take(CANDIDATES.len());
        let fits = candidates.find(|text| pattern.is_match(text));
        return json!(fits.unwrap_or_else(|| panic!("{name}: no candidate fits {pattern}")));
    }
    match name {
        "apiVersion" => json!(format!("g{}.io/v1beta2", random.below(3))),
        // Every text that may be a duration is one.
        _ => json!(format!("{}m{}s", 1 + random.below(9), random.below(60))),
    }
}
