//! How deep a value is.

use serde_json::Value;

/// The path of a part of the value that is below more than so many levels of objects and lists, if there is one. The value itself is at
/// level one if it is an object or a list.
pub fn deeper_than(value: &Value, levels: usize) -> Option<String> {
    if !(value.is_object() || value.is_array()) {
        return None;
    }
    let Some(levels) = levels.checked_sub(1) else {
        return Some(String::new());
    };
    match value {
        Value::Object(map) => map
            .iter()
            .find_map(|(name, child)| Some(format!(".{name}{}", deeper_than(child, levels)?))),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, child)| Some(format!("[{index}]{}", deeper_than(child, levels)?))),
        _ => None,
    }
}

/// How many values a value has below it, itself included; `None` if it is deeper than so many levels.
pub(crate) fn size_within(value: &Value, levels: usize) -> Option<usize> {
    let below = || levels.checked_sub(1);
    let add = |levels: usize| move |sum: usize, child: &Value| Some(sum + size_within(child, levels)?);
    match value {
        Value::Object(map) => map.values().try_fold(1, add(below()?)),
        Value::Array(items) => items.iter().try_fold(1, add(below()?)),
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_part_that_is_too_deep_is_found() {
        let value = json!({"a": 1, "b": [{"c": {}}]});
        assert_eq!(deeper_than(&value, 4), None);
        assert_eq!(deeper_than(&value, 3).as_deref(), Some(".b[0].c"));
        assert_eq!(deeper_than(&value, 0).as_deref(), Some(""));
        assert_eq!(deeper_than(&json!(1), 0), None);
        assert_eq!(size_within(&value, 4), Some(5));
        assert_eq!(size_within(&value, 3), None);
        assert_eq!(size_within(&json!(1), 0), Some(1));
    }
}
