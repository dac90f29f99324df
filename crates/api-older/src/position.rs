//! Where in an encoded object a decoder stopped, so that an error can name the field.

use std::fmt::Write as _;

use windlass_meta::beginning;
use windlass_meta::budget::PATH_BYTES;

/// The most bytes of what is wrong: a decoder quotes a text that it does not expect, however long it is.
const REASON_BYTES: usize = 512;

/// What is wrong, without the position in the text.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    beginning(&text[..end], REASON_BYTES).into_owned()
}

/// One level of the document on the way to the position.
enum Level {
    /// In an object, with the name of the current field.
    Object(String),
    /// In an array, with the index of the current item.
    Array(usize),
}

/// The path of the value that ends at a column (counted from 1) of a document of one line: `spec.pools[2].name`.
pub(crate) fn path(document: &[u8], column: usize) -> String {
    let mut levels: Vec<Level> = Vec::new();
    let mut is_name = false;
    let mut at = 0;
    let end = column.min(document.len());
    while at < end {
        match document[at] {
            b'{' => {
                levels.push(Level::Object(String::new()));
                is_name = true;
            }
            b'[' => {
                levels.push(Level::Array(0));
                is_name = false;
            }
            b'}' | b']' if at + 1 < end => {
                levels.pop();
            }
            // The object as a whole does not fit, and none of its fields.
            b'}' => {
                if let Some(Level::Object(name)) = levels.last_mut() {
                    name.clear();
                }
            }
            b',' if at + 1 < end => match levels.last_mut() {
                Some(Level::Array(index)) => *index += 1,
                Some(Level::Object(_)) => is_name = true,
                None => {}
            },
            b':' => is_name = false,
            b'"' => {
                let start = at + 1;
                at = start;
                while at < document.len() && document[at] != b'"' {
                    at += if document[at] == b'\\' { 2 } else { 1 };
                }
                if is_name && let Some(Level::Object(name)) = levels.last_mut() {
                    let text = document.get(start..at.min(document.len())).unwrap_or_default();
                    *name = String::from_utf8_lossy(text).into_owned();
                }
            }
            _ => {}
        }
        at += 1;
    }
    let mut path = String::new();
    for level in levels {
        match level {
            Level::Object(name) => {
                if !path.is_empty() && !name.is_empty() {
                    path.push('.');
                }
                path.push_str(&name);
            }
            Level::Array(index) => {
                // Writing to a String cannot fail.
                let _ = write!(path, "[{index}]");
            }
        }
    }
    beginning(&path, PATH_BYTES).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use windlass_api::codec::Codec as _;
    use windlass_api::core::Machine;

    use super::*;

    #[test]
    fn an_error_names_the_field_that_does_not_fit() {
        let check = |json: &str, expect: &str| {
            let error = Machine::decode(json.as_bytes()).unwrap_err();
            assert_eq!(path(json.as_bytes(), error.column()), expect, "{error}");
        };
        check(
            r#"{"spec":{"bootstrap":{"dataSecretName":1}}}"#,
            "spec.bootstrap.dataSecretName",
        );
        check(
            r#"{"spec":{"version":"v1","minReadySeconds":"x"}}"#,
            "spec.minReadySeconds",
        );
        check(r#"{"spec":{"taints":[{},{"key":3}]}}"#, "spec.taints[1].key");
        check(r#"{"metadata":{"name":{}},"spec":{}}"#, "metadata.name");
        let conditions = "status.deprecated.v1beta1.conditions[0]";
        check(
            r#"{"status":{"deprecated":{"v1beta1":{"conditions":[{"type":"a"}]}}}}"#,
            conditions,
        );
    }

    #[test]
    fn any_position_of_any_text_has_a_path() {
        for text in [r#"{"a":["\"",{"b":"#, "]]}}", "\"\\", r#"{"a":{"b":[1,2,{"c":"é"}]}}"#] {
            for column in 0..text.len() + 3 {
                path(text.as_bytes(), column);
            }
        }
        assert_eq!(
            reason(&serde_json::from_str::<Value>("{").unwrap_err()),
            "EOF while parsing an object"
        );
    }

    #[test]
    fn a_long_text_is_quoted_in_part() {
        let long = "x".repeat(1 << 20);
        let json = format!(r#"{{"spec":{{"minReadySeconds":"{long}"}}}}"#);
        let error = Machine::decode(json.as_bytes()).unwrap_err();
        let text = reason(&error);
        assert!(
            text.starts_with("invalid type: string \"xxx") && text.len() < 1024,
            "{}",
            text.len()
        );
        let json = format!(r#"{{"spec":{{"{long}":7,"minReadySeconds":"x"}}}}"#);
        let error = Machine::decode(json.as_bytes()).unwrap_err();
        assert_eq!(path(json.as_bytes(), error.column()), "spec.minReadySeconds");
    }
}
