//! Path and query of a request, parsed.

use crate::error::ApiError;

/// A path of the resource API.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The old form of a watch: `watch` before the rest of the path.
    pub(crate) watch: bool,
}

/// Decodes `%41` and, in queries, `+`.
pub(crate) fn percent_decode(text: &str, plus: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'+' if plus => out.push(b' '),
            b'%' => {
                let hex = text.get(i + 1..i + 3);
                if let Some(byte) = hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
                    out.push(byte);
                    i += 2;
                } else {
                    out.push(b'%');
                }
            }
            byte => out.push(byte),
        }
        i += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Parses a path below /api/v1 or /apis/GROUP/VERSION; `None` if it is not a path of a resource.
pub(crate) fn parse_path(path: &str) -> Option<ResourcePath> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let mut parts: Vec<String> = path
        .strip_suffix('/')
        .unwrap_or(path)
        .split('/')
        .map(|p| percent_decode(p, false))
        .collect();
    if parts.iter().any(String::is_empty) {
        return None;
    }
    let mut out = ResourcePath::default();
    let skip = match parts.first().map(String::as_str) {
        Some("api") if parts.len() >= 3 => {
            out.version.clone_from(&parts[1]);
            2
        }
        Some("apis") if parts.len() >= 4 => {
            out.group.clone_from(&parts[1]);
            out.version.clone_from(&parts[2]);
            3
        }
        _ => return None,
    };
    parts.drain(..skip);
    if parts[0] == "watch" && parts.len() > 1 {
        out.watch = true;
        parts.remove(0);
    }
    let is_namespaced = parts[0] == "namespaces"
        && parts.len() >= 3
        && !(out.group.is_empty() && parts.len() == 3 && matches!(parts[2].as_str(), "status" | "finalize"));
    if is_namespaced {
        out.namespace = Some(parts.remove(1));
        parts.remove(0);
    }
    let mut parts = parts.into_iter();
    out.resource = parts.next()?;
    out.name = parts.next();
    out.subresource = parts.next();
    if parts.next().is_some() {
        return None;
    }
    Some(out)
}

/// The query, decoded, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        Self(
            text.split('&')
                .filter(|p| !p.is_empty())
                .map(|p| {
                    let (k, v) = p.split_once('=').unwrap_or((p, ""));
                    (percent_decode(k, true), percent_decode(v, true))
                })
                .collect(),
        )
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(k, v)| k == key && !v.is_empty())
            .map(|(_, v)| v.as_str())
    }

    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.0
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| !(v == "0" || v.eq_ignore_ascii_case("false")))
    }

    /// A whole number. The error for anything else has the wording of Go's number parser.
    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.get(key) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|error: std::num::ParseIntError| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let why = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            ApiError::bad_request(format!("strconv.ParseInt: parsing \"{text}\": {why}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, want: &str) {
        let got = parse_path(path).map_or_else(String::new, |p| {
            format!(
                "{}/{} ns={} {} {} {}",
                p.group,
                p.version,
                p.namespace.unwrap_or_default(),
                p.resource,
                p.name.unwrap_or_default(),
                p.subresource.unwrap_or_default()
            )
        });
        assert_eq!(got.trim_end(), want, "{path}");
    }

    #[test]
    fn takes_paths_apart() {
        check("/api/v1/pods", "/v1 ns= pods");
        check("/api/v1/namespaces/a", "/v1 ns= namespaces a");
        check("/api/v1/watch/namespaces/a/pods/b", "/v1 ns=a pods b");
        check("/api/v1/pods/", "/v1 ns= pods");
        check("/api/v1//pods", "");
        check("/api/v1/namespaces/a/status", "/v1 ns= namespaces a status");
        check("/api/v1/namespaces/a/pods", "/v1 ns=a pods");
        check("/api/v1/namespaces/a/pods/b/log", "/v1 ns=a pods b log");
        check("/apis/apps/v1/deployments", "apps/v1 ns= deployments");
        check(
            "/apis/apps/v1/namespaces/a/deployments/b%3Ac/scale",
            "apps/v1 ns=a deployments b:c scale",
        );
        check("/apis/apps/v1", "");
        check("/api", "");
    }
}
