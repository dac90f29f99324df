//! Options of requests, from the query or the body of a deletion, and their validation.

use serde_json::{Value, json};
use windlass_schema::{FieldError, Kind};

use crate::error::ApiError;
use crate::http::request::Query;
use windlass_objects::selector::{FieldSelector, LabelSelector};

const MAX_MANAGER: usize = 128;

/// The error for invalid options of a kind.
fn refuse(kind: &str, errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid("meta.k8s.io", kind, "", errors))
}

fn not_supported(path: &str, value: Value, allowed: &[&str]) -> FieldError {
    let allowed: Vec<String> = allowed.iter().map(|a| (*a).to_owned()).collect();
    FieldError::not_supported(path, value, &allowed)
}

/// Whether the request is a dry run; `given` are all values of `dryRun`.
fn dry_run(given: &[&str], errors: &mut Vec<FieldError>) -> bool {
    if given.iter().any(|v| *v != "All") {
        errors.push(not_supported("dryRun", json!(given), &["All"]));
    }
    !given.is_empty()
}

/// How to treat fields that are not in the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    /// Drop them.
    Ignore,
    /// Drop them and warn.
    #[default]
    Warn,
    /// Refuse.
    Strict,
}

/// The verb of a write, as far as it affects its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteVerb {
    Create,
    Update,
    Patch,
    Apply,
}

impl WriteVerb {
    fn options(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch | Self::Apply => "PatchOptions",
        }
    }
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
    pub(crate) fn parse(query: &Query, verb: WriteVerb) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        let mut out = Self {
            field_manager: query.get("fieldManager").map(str::to_owned),
            force: query.flag("force"),
            ..Self::default()
        };
        if verb == WriteVerb::Patch && out.force.is_some() {
            errors.push(FieldError::forbidden(
                "force",
                "may not be specified for non-apply patch",
            ));
        }
        if verb == WriteVerb::Apply && out.field_manager.is_none() {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        if let Some(manager) = &out.field_manager {
            manager_errors(manager, &mut errors);
        }
        let given: Vec<&str> = query.all("dryRun").collect();
        out.dry_run = dry_run(&given, &mut errors);
        match query.get("fieldValidation") {
            None => {}
            Some("Ignore") => out.field_validation = FieldValidation::Ignore,
            Some("Warn") => out.field_validation = FieldValidation::Warn,
            Some("Strict") => out.field_validation = FieldValidation::Strict,
            Some(other) => errors.push(not_supported(
                "fieldValidation",
                other.into(),
                &["", "Ignore", "Strict", "Warn"],
            )),
        }
        refuse(verb.options(), &errors)?;
        Ok(out)
    }
}

fn manager_errors(manager: &str, errors: &mut Vec<FieldError>) {
    if manager.len() > MAX_MANAGER {
        errors.push(FieldError::new(
            "fieldManager",
            Kind::TooLong,
            None,
            format!("may not be more than {MAX_MANAGER} bytes"),
        ));
    }
    if let Some((at, c)) = manager.char_indices().find(|(_, c)| c.is_control()) {
        errors.push(FieldError::invalid(
            "fieldManager",
            manager.into(),
            format!("invalid character U+{:04X} (at position {at})", u32::from(c)),
        ));
    }
}

/// How to match a list's resourceVersion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
}

/// Options of list and watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListOptions {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) limit: Option<usize>,
    pub(crate) continues: Option<String>,
    /// The text as given: each verb has its own error for a text that is not a number.
    pub(crate) version: Option<String>,
    pub(crate) matching: Option<VersionMatch>,
    pub(crate) watch: bool,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
    pub(crate) timeout: Option<u64>,
}

/// Whether a field selector compares the key of an object with this field, which is known without decoding it.
pub(crate) fn is_of_key(field: &str) -> bool {
    matches!(field, "metadata.name" | "metadata.namespace")
}

impl ListOptions {
    pub(crate) fn parse(query: &Query) -> Result<Self, ApiError> {
        let out = Self {
            labels: LabelSelector::parse(query.get("labelSelector").unwrap_or("")).map_err(ApiError::bad_request)?,
            fields: FieldSelector::parse(query.get("fieldSelector").unwrap_or("")).map_err(ApiError::bad_request)?,
            limit: query
                .number("limit")?
                .filter(|n| *n > 0)
                .and_then(|n| usize::try_from(n).ok()),
            continues: query.get("continue").map(str::to_owned),
            version: query.get("resourceVersion").map(str::to_owned),
            matching: match query.get("resourceVersionMatch") {
                Some("Exact") => Some(VersionMatch::Exact),
                Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
                _ => None,
            },
            watch: query.flag("watch").unwrap_or(false),
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            initial_events: query.flag("sendInitialEvents"),
            timeout: query
                .number("timeoutSeconds")?
                .and_then(|n| u64::try_from(n).ok())
                .filter(|n| *n > 0),
        };
        let named = query.get("resourceVersionMatch").unwrap_or("");
        let errors = if out.watch {
            out.watch_errors(named)
        } else {
            out.list_errors(named)
        };
        refuse("ListOptions", &errors)?;
        Ok(out)
    }

    fn watch_errors(&self, named: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut forbid = |why: &str| errors.push(FieldError::forbidden("resourceVersionMatch", why));
        if self.initial_events.is_some() && self.matching != Some(VersionMatch::NotOlderThan) {
            forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if !named.is_empty() && self.initial_events.is_none() {
            forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
        }
        if !named.is_empty() && self.matching != Some(VersionMatch::NotOlderThan) {
            errors.push(not_supported("resourceVersionMatch", named.into(), &["NotOlderThan"]));
        }
        if self.continues.is_some() {
            errors.push(FieldError::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        errors
    }

    fn list_errors(&self, named: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut forbid = |why: &str| errors.push(FieldError::forbidden("resourceVersionMatch", why));
        if !named.is_empty() {
            if self.version.is_none() {
                forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if self.continues.is_some() {
                forbid("resourceVersionMatch is forbidden when continue is provided");
            }
            if self.matching == Some(VersionMatch::Exact) && self.version.as_deref() == Some("0") {
                forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
            if self.matching.is_none() {
                errors.push(not_supported(
                    "resourceVersionMatch",
                    named.into(),
                    &["Exact", "NotOlderThan", ""],
                ));
            }
        }
        if self.initial_events.is_some() {
            errors.push(FieldError::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        errors
    }

    /// Whether not all objects are wanted.
    pub(crate) fn is_selective(&self) -> bool {
        !self.labels.is_empty() || !self.fields.0.is_empty()
    }

    /// Whether the values of fields are compared that only the objects have.
    pub(crate) fn needs_objects(&self) -> bool {
        self.fields.0.iter().any(|term| !is_of_key(&term.field))
    }

    /// Whether a list may be of a past revision.
    pub(crate) fn may_be_past(&self) -> bool {
        let is_exact = self.matching == Some(VersionMatch::Exact) || self.limit.is_some();
        self.continues.is_some() || is_exact && matches!(self.revision(), Ok(Some(1..)))
    }

    /// Whether a watch begins with the stored objects.
    pub(crate) fn begins_with_objects(&self) -> bool {
        let from_start = || matches!(self.revision(), Ok(None | Some(0)));
        self.initial_events.unwrap_or_else(from_start)
    }

    /// The resourceVersion; `None` if it is not given.
    pub(crate) fn revision(&self) -> Result<Option<u64>, String> {
        self.version.as_deref().map(revision_option).transpose()
    }
}

/// Parses a resourceVersion option. The error is that of an invalid option.
pub(crate) fn revision_option(text: &str) -> Result<u64, String> {
    parse_revision(text).map_err(|why| FieldError::invalid("resourceVersion", text.into(), why).to_string())
}

/// Parses a resourceVersion. The error has the wording of Go's number parser.
pub(crate) fn parse_revision(text: &str) -> Result<u64, String> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain).ok_or_else(|| {
        let why = if plain { "value out of range" } else { "invalid syntax" };
        format!("strconv.ParseUint: parsing \"{text}\": {why}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_whole_numbers() {
        let check = |text: &str, want: Result<u64, &str>| {
            assert_eq!(
                parse_revision(text).map_err(|e| e.contains(want.unwrap_err())),
                want.map_err(|_| true)
            );
        };
        check("5", Ok(5));
        check("+5", Err("invalid syntax"));
        check("", Err("invalid syntax"));
        check("99999999999999999999", Err("out of range"));
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let query = Query::parse("dryRun=Some&fieldValidation=Maybe&force=1");
        let error = WriteOptions::parse(&query, WriteVerb::Patch).unwrap_err();
        assert_eq!(error.code, 422);
        assert_eq!(error.details.unwrap().causes.len(), 3);
    }
}
