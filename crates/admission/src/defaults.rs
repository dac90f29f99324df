//! Defaults in objects. A part with a value of another type than expected is left as it is: the schema refuses it later.

use serde_json::{Map, Value};

/// The object at a path of names with points between them. Creates missing objects; none if something else stands there.
pub fn object_at<'a>(object: &'a mut Value, path: &str) -> Option<&'a mut Map<String, Value>> {
    let mut at = object.as_object_mut()?;
    for name in path.split('.') {
        let below = at.entry(name).or_insert(Value::Null);
        if below.is_null() {
            *below = Value::Object(Map::new());
        }
        at = below.as_object_mut()?;
    }
    Some(at)
}

/// Sets a field of the object at a path, unless it has a value.
pub fn default(object: &mut Value, path: &str, name: &str, value: impl Into<Value>) {
    let is_missing = object
        .pointer(&format!("/{}/{name}", path.replace('.', "/")))
        .is_none_or(Value::is_null);
    if is_missing {
        set(object, path, name, value);
    }
}

/// Sets a field of the object at a path.
pub fn set(object: &mut Value, path: &str, name: &str, value: impl Into<Value>) {
    if let Some(at) = object_at(object, path) {
        at.insert(name.to_owned(), value.into());
    }
}

/// Gives the version at a path its leading `v`. An empty one stays as it is.
pub fn version(object: &mut Value, pointer: &str) {
    if let Some(Value::String(version)) = object.pointer_mut(pointer)
        && !version.is_empty()
        && !version.starts_with('v')
    {
        version.insert(0, 'v');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_fill_what_is_missing_and_spare_what_is_wrong() {
        let check = |mut object: Value, expect: &Value| {
            default(&mut object, "spec.deletion", "seconds", 10);
            assert_eq!(object, *expect);
        };
        check(json!({}), &json!({"spec": {"deletion": {"seconds": 10}}}));
        check(
            json!({"spec": {"deletion": null}}),
            &json!({"spec": {"deletion": {"seconds": 10}}}),
        );
        check(
            json!({"spec": {"deletion": {"seconds": 0}}}),
            &json!({"spec": {"deletion": {"seconds": 0}}}),
        );
        check(json!({"spec": 7}), &json!({"spec": 7}));
        check(json!([]), &json!([]));
        let mut object = json!({"spec": {"version": "1.2.3"}});
        version(&mut object, "/spec/version");
        version(&mut object, "/spec/version");
        version(&mut object, "/spec/none");
        assert_eq!(object, json!({"spec": {"version": "v1.2.3"}}));
    }
}
