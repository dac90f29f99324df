//! Continue tokens of lists, in the form of Kubernetes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::error::ApiError;
use windlass_objects::metadata::text;

const VERSION: &str = "meta.k8s.io/v1";

/// The position where a list continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Continue {
    /// The revision of all pages; `None` for the current one.
    pub(crate) revision: Option<u64>,
    /// The last key of the previous page; the namespace is empty for a list within one.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Continue {
    pub(crate) fn encode(&self) -> String {
        let rv = self.revision.and_then(|r| i64::try_from(r).ok()).unwrap_or(-1);
        let place = if self.namespace.is_empty() {
            format!("/{}\0", self.name)
        } else {
            format!("/{}/{}\0", self.namespace, self.name)
        };
        URL_SAFE_NO_PAD.encode(json!({"v": VERSION, "rv": rv, "start": place}).to_string())
    }

    pub(crate) fn decode(token: &str) -> Result<Self, ApiError> {
        parse(token)
            .map_err(|why| ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}")))
    }
}

fn parse(token: &str) -> Result<Continue, String> {
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) => at,
            _ => token.len(),
        };
        format!("illegal base64 data at input byte {at}")
    })?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| match bytes.first() {
        Some(first) if *first != b'{' => {
            let first = char::from(*first);
            format!("invalid character {first:?} looking for beginning of value")
        }
        _ => error.to_string(),
    })?;
    if text(&value, "v") != VERSION {
        return Err(format!(
            "server does not recognize this encoded version {}",
            text(&value, "v")
        ));
    }
    let revision = match value.get("rv").and_then(Value::as_i64).unwrap_or(0) {
        0 => return Err(format!("incorrect encoded start resourceVersion (version {VERSION})")),
        rv => u64::try_from(rv).ok(),
    };
    let start = text(&value, "start");
    if start.is_empty() {
        return Err(format!("encoded start key empty (version {VERSION})"));
    }
    let place = start.strip_prefix('/').unwrap_or(start);
    let place = place.strip_suffix('\0').unwrap_or(place);
    if place.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(start.to_owned());
    }
    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
    Ok(Continue {
        revision,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_was_put_into_it() {
        for (revision, namespace) in [(Some(7), ""), (None, "ns")] {
            let made = Continue {
                revision,
                namespace: namespace.to_owned(),
                name: "a.b".to_owned(),
            };
            assert_eq!(Continue::decode(&made.encode()).unwrap(), made);
        }
    }

    #[test]
    fn other_tokens_are_refused() {
        let check = |json: &str, want: &str| {
            let error = Continue::decode(&URL_SAFE_NO_PAD.encode(json)).unwrap_err();
            assert_eq!(error.code, 400);
            assert!(error.message.ends_with(want), "{}", error.message);
        };
        check("{}", "encoded version ");
        check(
            r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#,
            "(version meta.k8s.io/v1)",
        );
        check(
            r#"{"v":"meta.k8s.io/v1","rv":1}"#,
            "start key empty (version meta.k8s.io/v1)",
        );
        check(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#, "../a");
        check("x", "'x' looking for beginning of value");
    }
}
