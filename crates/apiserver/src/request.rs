//! What a request asks for: path and query, taken apart.

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

/// Takes a path below /api/v1 or /apis/GROUP/VERSION apart; `None` when it is not one of a resource.
pub(crate) fn parse_path(path: &str) -> Option<ResourcePath> {
    let mut parts: Vec<String> = path
        .trim_matches('/')
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
            .map(|(_, v)| !matches!(v.as_str(), "false" | "0" | "False" | "FALSE" | "f" | "F"))
    }

    fn number(&self, key: &str) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.get(key) else {
            return Ok(None);
        };
        text.parse()
            .map(Some)
            .map_err(|_| ApiError::bad_request(format!("invalid value for {key}: {text:?} is not a number")))
    }
}

/// What to do with fields that the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    /// Drop them.
    Ignore,
    /// Drop them and say so.
    #[default]
    Warn,
    /// Refuse.
    Strict,
}

/// Options of writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_manager: Option<String>,
    pub(crate) field_validation: FieldValidation,
    pub(crate) force: Option<bool>,
}

impl WriteOptions {
    pub(crate) fn parse(query: &Query) -> Result<Self, ApiError> {
        let mut out = Self {
            field_manager: query.get("fieldManager").map(str::to_owned),
            force: query.flag("force"),
            ..Self::default()
        };
        for value in query.all("dryRun") {
            out.set_dry_run(value)?;
        }
        if let Some(value) = query.get("fieldValidation") {
            out.field_validation = match value {
                "Ignore" => FieldValidation::Ignore,
                "Warn" => FieldValidation::Warn,
                "Strict" => FieldValidation::Strict,
                other => {
                    return Err(ApiError::new(
                        422,
                        "Invalid",
                        format!(
                            "fieldValidation: Unsupported value: \"{other}\": supported values: \"Ignore\", \"Strict\", \"Warn\""
                        ),
                    ));
                }
            };
        }
        if out.field_manager.as_deref().is_some_and(|m| m.len() > 128) {
            return Err(ApiError::new(
                422,
                "Invalid",
                "fieldManager: Too long: may not be more than 128 bytes",
            ));
        }
        Ok(out)
    }

    pub(crate) fn set_dry_run(&mut self, value: &str) -> Result<(), ApiError> {
        match value {
            "" => Ok(()),
            "All" => {
                self.dry_run = true;
                Ok(())
            }
            other => Err(ApiError::new(
                422,
                "Invalid",
                format!("dryRun: Unsupported value: \"{other}\": supported values: \"All\""),
            )),
        }
    }
}

/// How a list's resourceVersion is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
}

/// Options of list and watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListOptions {
    pub(crate) labels: crate::selector::LabelSelector,
    pub(crate) fields: crate::selector::FieldSelector,
    pub(crate) limit: Option<usize>,
    pub(crate) continues: Option<String>,
    pub(crate) revision: Option<u64>,
    pub(crate) matching: Option<VersionMatch>,
    pub(crate) watch: bool,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
    pub(crate) timeout: Option<u64>,
}

impl ListOptions {
    pub(crate) fn parse(query: &Query) -> Result<Self, ApiError> {
        let out = Self {
            labels: crate::selector::LabelSelector::parse(query.get("labelSelector").unwrap_or(""))?,
            fields: crate::selector::FieldSelector::parse(query.get("fieldSelector").unwrap_or(""))?,
            limit: query
                .number("limit")?
                .filter(|n| *n > 0)
                .and_then(|n| usize::try_from(n).ok()),
            continues: query.get("continue").map(str::to_owned),
            revision: parse_revision(query.get("resourceVersion"))?,
            matching: match query.get("resourceVersionMatch") {
                None => None,
                Some("Exact") => Some(VersionMatch::Exact),
                Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
                Some(other) => {
                    return Err(list_invalid(
                        "resourceVersionMatch",
                        &format!("Unsupported value: \"{other}\": supported values: \"Exact\", \"NotOlderThan\", \"\""),
                    ));
                }
            },
            watch: query.flag("watch").unwrap_or(false),
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            initial_events: query.flag("sendInitialEvents"),
            timeout: query.number("timeoutSeconds")?.filter(|n| *n > 0),
        };
        out.check()?;
        Ok(out)
    }

    fn check(&self) -> Result<(), ApiError> {
        let forbidden = |why: &str| Err(list_invalid("resourceVersionMatch", &format!("Forbidden: {why}")));
        if self.watch {
            if self.initial_events.is_some() && self.matching != Some(VersionMatch::NotOlderThan) {
                return forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
            }
            if self.initial_events.is_none() && self.matching.is_some() {
                return forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
            }
            return Ok(());
        }
        if self.initial_events.is_some() {
            return Err(list_invalid(
                "sendInitialEvents",
                "Forbidden: sendInitialEvents is forbidden for list",
            ));
        }
        if self.matching.is_some() && self.revision.is_none() {
            return forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if self.matching.is_some() && self.continues.is_some() {
            return forbidden("resourceVersionMatch is forbidden when continue is provided");
        }
        if self.matching == Some(VersionMatch::Exact) && self.revision == Some(0) {
            return forbidden("resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"");
        }
        Ok(())
    }
}

fn list_invalid(field: &str, why: &str) -> ApiError {
    ApiError::new(
        422,
        "Invalid",
        format!("ListOptions.meta.k8s.io \"\" is invalid: {field}: {why}"),
    )
}

/// Parses a resourceVersion; empty means none.
pub(crate) fn parse_revision(text: Option<&str>) -> Result<Option<u64>, ApiError> {
    match text {
        None | Some("") => Ok(None),
        Some(text) => text
            .parse()
            .map(Some)
            .map_err(|_| ApiError::bad_request(format!("invalid resource version: {text:?} is not a number"))),
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
