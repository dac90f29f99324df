//! Chart values as data.

use serde_json::{Map, Value};

/// Parses values as Helm does: `0644` is octal, `yes` is true; an empty text means no values. The error does not quote the text.
pub fn parse(text: &str) -> Result<Map<String, Value>, String> {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        strict_booleans: false,
        with_snippet: false,
    };
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match windlass_gocompat::yaml::read(text, options) {
        Ok(Value::Object(values)) => Ok(values),
        // Only comments, or `null`.
        Ok(Value::Null) => Ok(Map::new()),
        Ok(other) => Err(format!("values must be a mapping at the top, not {}", sort(&other))),
        Err(error) => {
            let line = error.location().map_or(1, |location| location.line());
            Err(format!("values are not valid YAML, see line {line}"))
        }
    }
}

fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// Whether two sets of values are equal as data, regardless of the order of keys and the notation of numbers.
pub fn same(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .all(|(key, value)| other.get(key).is_some_and(|found| same_value(value, found)))
}

fn same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => same(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_value(one, other))
        }
        // Helm converts numbers to Go's floats.
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        Value::Object(parse(text).unwrap())
    }

    #[test]
    fn values_are_read_as_helm_reads_them() {
        assert_eq!(
            read("a: yes\nb: 'yes'\nc: 0644\nd: 1.5\n"),
            json!({"a": true, "b": "yes", "c": 420, "d": 1.5})
        );
        assert_eq!(
            read("base: &b {x: 1}\nall: {<<: *b, y: 2}\n")["all"],
            json!({"x": 1, "y": 2})
        );
        for empty in ["", "  \n", "# nothing\n", "null\n", "{}\n"] {
            assert_eq!(read(empty), json!({}), "{empty:?}");
        }
    }

    // AD-127
    #[test]
    fn what_is_no_mapping_is_refused_without_a_word_of_it() {
        assert_eq!(
            parse("- a\n").unwrap_err(),
            "values must be a mapping at the top, not a list"
        );
        assert_eq!(
            parse("hidden").unwrap_err(),
            "values must be a mapping at the top, not a text"
        );
        let error = parse("a: 1\nb: [hidden\n").unwrap_err();
        assert!(error.starts_with("values are not valid YAML, see line "), "{error}");
    }

    // AD-089, AD-096
    #[test]
    fn values_are_compared_as_data() {
        let same_texts = |one, other| same(&parse(one).unwrap(), &parse(other).unwrap());
        assert!(same_texts("{a: 1, b: [x, {c: 2}]}", "b:\n- x\n- c: 2.0\na: 1.0\n"));
        assert!(same_texts("n: 12345678901234567890", "n: 12345678901234567000"));
        for other in [
            "{a: 2}",
            "{a: '1'}",
            "{a: 1, b: null}",
            "{}",
            "{b: 1}",
            "{a: [1]}",
            "{a: {b: 1}}",
        ] {
            assert!(!same_texts("{a: 1}", other), "{other}");
        }
        assert!(!same_texts("{a: [1, 2]}", "{a: [2, 1]}"));
        assert!(!same_texts("{a: [1, 2]}", "{a: [1]}"));
    }
}
