//! Values at paths.

use serde_json::{Map, Value};

/// The value at a path; absent when a step is absent, or the value is `null`.
pub fn value_at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter()
        .try_fold(object, |value, step| value.get(step))
        .filter(|value| !value.is_null())
}

/// The text at a path; absent when it is empty.
pub fn str_at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a str> {
    value_at(object, path)?.as_str().filter(|text| !text.is_empty())
}

/// The flag at a path.
pub fn bool_at(object: &Value, path: &[&str]) -> Option<bool> {
    value_at(object, path)?.as_bool()
}

/// Why the flag at a path is not true, beginning with the path; `None` if it is.
pub(crate) fn flag_lack(object: &Value, path: &[&str]) -> Option<String> {
    let words = match value_at(object, path) {
        Some(Value::Bool(true)) => return None,
        // An absent field counts as false.
        Some(Value::Bool(false)) | None => "false",
        Some(_) => "not a boolean",
    };
    Some(format!("{} is {words}", path.join(".")))
}

/// The number at a path.
pub fn int_at(object: &Value, path: &[&str]) -> Option<i32> {
    value_at(object, path)?.as_i64().and_then(|n| n.try_into().ok())
}

/// The items of `status.conditions`, undecoded. Crate `conditions` decodes them.
pub fn conditions_at(object: &Value) -> &[Value] {
    value_at(object, &["status", "conditions"])
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Sets the value at a path. Creates missing maps.
pub fn set_at(object: &mut Value, path: &[&str], value: Value) {
    let mut here = object;
    for step in path {
        if !here.is_object() {
            *here = Value::Object(Map::new());
        }
        here = &mut here[*step];
    }
    *here = value;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_are_total() {
        let object = json!({"a": {"b": "x", "n": 3, "t": true, "empty": "", "null": null}});
        assert_eq!(str_at(&object, &["a", "b"]), Some("x"));
        assert_eq!(str_at(&object, &["a", "empty"]), None);
        assert_eq!(str_at(&object, &["a", "n"]), None);
        assert_eq!(int_at(&object, &["a", "n"]), Some(3));
        assert_eq!(bool_at(&object, &["a", "t"]), Some(true));
        assert_eq!(value_at(&object, &["a", "null"]), None);
        assert_eq!(value_at(&object, &["a", "b", "c", "d"]), None);
    }

    #[test]
    fn setting_makes_the_way() {
        let mut object = json!({"a": 1});
        set_at(&mut object, &["b", "c"], json!(2));
        set_at(&mut object, &["a", "x"], json!(3));
        assert_eq!(object, json!({"a": {"x": 3}, "b": {"c": 2}}));
    }
}
