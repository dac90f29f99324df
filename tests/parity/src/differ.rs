//! Compares two transcripts of a case.

use serde_json::Value;

/// A difference: its path, and the value on each side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path, beginning with the number of the step (the first is 1).
    pub path: String,
    /// The value on the first side.
    pub first: Option<Value>,
    /// The value on the second side.
    pub second: Option<Value>,
}

/// All differences between two transcripts of one case.
pub fn differences(first: &[Value], second: &[Value]) -> Vec<Difference> {
    let mut out = Vec::new();
    for at in 0..first.len().max(second.len()) {
        compare(&(at + 1).to_string(), first.get(at), second.get(at), &mut out);
    }
    out
}

fn compare(path: &str, first: Option<&Value>, second: Option<&Value>, out: &mut Vec<Difference>) {
    match (first, second) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let path = format!("{path}.{}", key.replace('.', "\\."));
                compare(&path, a.get(key), b.get(key), out);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for at in 0..a.len().max(b.len()) {
                compare(&format!("{path}.{at}"), a.get(at), b.get(at), out);
            }
        }
        (a, b) if a == b => {}
        (a, b) => out.push(Difference {
            path: path.to_owned(),
            first: a.cloned(),
            second: b.cloned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_place_that_differs_is_named() {
        let found = differences(&[json!({"a": [1, 2], "b": 1})], &[json!({"a": [1, 3], "c.d": 1})]);
        let places: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(places, ["1.a.1", "1.b", "1.c\\.d"]);
        assert_eq!(differences(&[json!(1)], &[]).len(), 1);
    }
}
