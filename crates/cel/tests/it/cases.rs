//! Schemas with values, and the results of kube-apiserver's own code for them: structural errors, unknown fields, defaults, error
//! texts.

use serde_json::{Value, json};
use windlass_cel::Validator;
use windlass_schema::{Dialect, default, prune, unknown_fields};

/// Texts that depend on the engine; only the path of these errors is compared.
const ENGINE_TEXTS: [&str; 2] = [
    "must be a valid regular expression, but isn't: ",
    "compilation failed: ",
];

fn shorten(text: &str) -> String {
    for marker in ENGINE_TEXTS {
        if let Some((before, _)) = text.split_once(marker) {
            return format!("{before}{marker}");
        }
    }
    text.to_owned()
}

fn texts(case: &Value, name: &str) -> Vec<String> {
    case.get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|t| t.as_str().map(shorten))
        .collect()
}

fn run(case: &Value) -> Value {
    let validator = match Validator::parse(&case["schema"], Dialect::Crd, "schema") {
        Ok(validator) => validator,
        Err(errors) => {
            return json!({"structural": errors.0.iter().map(|e| shorten(&e.to_string())).collect::<Vec<_>>()});
        }
    };
    let schema = validator.schema();
    let mut value = case["value"].clone();
    let unknown = unknown_fields(schema, &value);
    prune(schema, &mut value);
    default(schema, &mut value);
    let mut errors: Vec<(String, String)> = validator
        .validate(&value, case.get("old"))
        .iter()
        .map(|e| (shorten(&e.to_string()), e.kind.reason().to_owned()))
        .collect();
    errors.sort();
    let (errors, reasons): (Vec<_>, Vec<_>) = errors.into_iter().unzip();
    json!({"unknown": unknown, "defaulted": whole(&value), "errors": errors, "reasons": reasons})
}

/// Numbers in Go's form: 2.0 is 2.
fn whole(value: &Value) -> Value {
    match value {
        #[expect(clippy::cast_possible_truncation, reason = "small numbers in cases")]
        Value::Number(n) if n.is_f64() => match n.as_f64() {
            Some(f) if f.fract() == 0.0 && f.abs() < 1e15 => json!(f as i64),
            _ => value.clone(),
        },
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), whole(v))).collect()),
        Value::Array(items) => Value::Array(items.iter().map(whole).collect()),
        other => other.clone(),
    }
}

#[test]
fn recorded_cases_come_out_the_same() {
    let mut wrong = Vec::new();
    for line in include_str!("cases.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("case");
        let have = run(&case);
        let want = if case.get("structural").is_some() {
            json!({"structural": texts(&case, "structural")})
        } else {
            json!({
                "unknown": texts(&case, "unknown"), "defaulted": whole(&case["defaulted"]),
                "errors": texts(&case, "errors"), "reasons": texts(&case, "reasons"),
            })
        };
        if have != want {
            wrong.push(format!(
                "schema {}\nvalue {}\nold {:?}\nhave {have}\nwant {want}\n",
                case["schema"],
                case["value"],
                case.get("old")
            ));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}
