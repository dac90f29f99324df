//! Validation of definitions, with errors in the order and wording of kube-apiserver. Pure.

use std::collections::HashSet;

use serde_json::{Value, json};
use windlass_cel::review;
use windlass_schema::{FieldError, Patterns, Reviewing, Steps};

use super::layout::Layout;
use super::{approval, is_established, names, versions};
use windlass_objects::jsonpath::{JsonPath, PathError};
use windlass_objects::metadata::{meta, strings, text};
use windlass_objects::names::{NameRule, subdomain_problems};

type Errors = windlass_schema::FieldErrors;

/// The largest number of selectable fields of a version.
const MAX_SELECTABLE: usize = 8;
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// Errors of a definition.
pub(crate) fn errors(crd: &Value, old: Option<&Value>) -> Errors {
    let mut out = Errors::new();
    if old.is_none() && meta(crd, "name") != super::full_name(crd) {
        let words = "must be spec.names.plural+\".\"+spec.group";
        out.push(FieldError::invalid("metadata.name", meta(crd, "name").into(), words));
    }
    spec(crd, old, &mut out);
    if let Some(old) = old {
        immutable(crd, old, &mut out);
    }
    let accepted = crd.pointer("/status/acceptedNames").unwrap_or(&Value::Null);
    name_forms(accepted, "status.acceptedNames", &mut out);
    stored_versions(crd, &mut out);
    approval::errors(crd, old, &mut out);
    if crd.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true))
        && old.is_none_or(|old| old.pointer("/spec/preserveUnknownFields") != Some(&Value::Bool(true)))
    {
        let words =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        out.push(FieldError::invalid("spec.preserveUnknownFields", true.into(), words));
    }
    out
}

/// Errors of a definition whose status was written.
pub(crate) fn status_errors(crd: &Value) -> Errors {
    let mut out = Errors::new();
    let accepted = crd.pointer("/status/acceptedNames").unwrap_or(&Value::Null);
    name_forms(accepted, "status.acceptedNames", &mut out);
    out
}

fn spec(crd: &Value, old: Option<&Value>, out: &mut Errors) {
    let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or("");
    let problems = subdomain_problems(group);
    if group.is_empty() {
        out.push(FieldError::required("spec.group", ""));
    } else if !problems.is_empty() {
        out.push(FieldError::invalid("spec.group", group.into(), problems.join(",")));
    } else if !group.contains('.') {
        let words = "should be a domain with at least one dot";
        out.push(FieldError::invalid("spec.group", group.into(), words));
    }
    one_of(
        crd.pointer("/spec/scope"),
        "spec.scope",
        &["Cluster", "Namespaced"],
        out,
    );
    let layout = Layout::of(crd);
    let patterns = Patterns::default();
    for (i, version) in versions(crd).iter().enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none() && !(layout.schema && has_schema(crd)) {
            out.push(FieldError::required(
                format!("spec.versions[{i}].schema.openAPIV3Schema"),
                "",
            ));
        }
    }
    let preserves = crd.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true));
    if preserves && versions(crd).iter().any(has_defaults) {
        let words = "must be false in order to use defaults in the schema";
        out.push(FieldError::invalid("spec.preserveUnknownFields", true.into(), words));
    }
    for (i, version) in versions(crd).iter().enumerate() {
        let at = format!("spec.versions[{i}]");
        version_name(version, &at, out);
        deprecation(version, &at, out);
        let own = Own {
            crd,
            old,
            version,
            layout: &layout,
            patterns: &patterns,
        };
        own.errors(&at, false, out);
    }
    together(crd, out);
    required_names(crd, out);
    name_forms(names(crd), "spec.names", out);
    if let Some(version) = versions(crd).first() {
        let own = Own {
            crd,
            old,
            version,
            layout: &layout,
            patterns: &patterns,
        };
        own.errors("spec", true, out);
    }
    conversion(crd, out);
}

fn has_schema(crd: &Value) -> bool {
    versions(crd)
        .first()
        .is_some_and(|v| v.pointer("/schema/openAPIV3Schema").is_some())
}

fn has_defaults(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.get("default").is_some_and(|d| !d.is_null()) || map.values().any(has_defaults),
        Value::Array(items) => items.iter().any(has_defaults),
        _ => false,
    }
}

fn one_of(value: Option<&Value>, at: &str, allowed: &[&str], out: &mut Errors) {
    let value = value.and_then(Value::as_str).unwrap_or("");
    if value.is_empty() {
        out.push(FieldError::required(at, ""));
    } else if !allowed.contains(&value) {
        let allowed: Vec<String> = allowed.iter().map(|a| (*a).to_owned()).collect();
        out.push(FieldError::not_supported(at, value.into(), &allowed));
    }
}

fn version_name(version: &Value, at: &str, out: &mut Errors) {
    let name = text(version, "name");
    let problems = NameRule::Label1035.problems(name, false);
    if !problems.is_empty() {
        out.push(FieldError::invalid(
            format!("{at}.name"),
            name.into(),
            problems.join(","),
        ));
    }
}

fn deprecation(version: &Value, at: &str, out: &mut Errors) {
    const MAX: usize = 256;
    let Some(words) = version.get("deprecationWarning").and_then(Value::as_str) else {
        return;
    };
    let mut wrong = |problem: String| {
        out.push(FieldError::shown(
            format!("{at}.deprecationWarning"),
            windlass_schema::Kind::Invalid,
            Value::from(words).to_string(),
            problem,
        ));
    };
    if version.get("deprecated") != Some(&Value::Bool(true)) {
        wrong("can only be set for deprecated versions".to_owned());
        return;
    }
    if words.len() > MAX {
        wrong(format!("must be <= {MAX} characters long"));
    }
    if words.is_empty() {
        wrong("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = words.char_indices().find(|(_, c)| c.is_control()) {
        wrong(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
}

/// A version, or the values that all versions share.
struct Own<'a> {
    crd: &'a Value,
    old: Option<&'a Value>,
    version: &'a Value,
    layout: &'a Layout,
    /// The patterns of all schemas that change.
    patterns: &'a Patterns,
}

impl Own<'_> {
    /// Errors of the values at `at`. Values that all versions share are at the top.
    fn errors(&self, at: &str, common: bool, out: &mut Errors) {
        if self.layout.schema == common {
            self.schema(at, common, out);
        }
        if self.layout.subresources == common {
            scale(self.version, &format!("{at}.subresources"), out);
        }
        if self.layout.columns == common {
            let columns = list(self.version, "additionalPrinterColumns");
            for (i, column) in columns.iter().enumerate() {
                column_errors(column, &format!("{at}.additionalPrinterColumns[{i}]"), out);
            }
        }
        if self.layout.selectable == common {
            self.selectable(&format!("{at}.selectableFields"), out);
        }
    }

    fn schema(&self, at: &str, common: bool, out: &mut Errors) {
        let Some(schema) = self.version.pointer("/schema/openAPIV3Schema") else {
            return;
        };
        let at = if common {
            "spec.validation.openAPIV3Schema".to_owned()
        } else {
            format!("{at}.schema.openAPIV3Schema")
        };
        let has_status = |version: &Value| version.pointer("/subresources/status").is_some_and(|s| !s.is_null());
        let status = if common || self.layout.subresources {
            versions(self.crd).iter().any(has_status)
        } else {
            has_status(self.version)
        };
        let known = self.old.is_some_and(|old| {
            versions(old)
                .iter()
                .find(|v| text(v, "name") == text(self.version, "name"))
                .is_some_and(|v| v.pointer("/schema/openAPIV3Schema") == Some(schema))
        });
        let unlimited = Patterns::trusted();
        out.extend(review(
            schema,
            &Reviewing {
                at: &at,
                resource: true,
                status,
                known,
                patterns: if known { &unlimited } else { self.patterns },
            },
        ));
    }

    fn selectable(&self, at: &str, out: &mut Errors) {
        let fields = list(self.version, "selectableFields");
        let Some(schema) = self.version.pointer("/schema/openAPIV3Schema") else {
            if !fields.is_empty() {
                let words = "may only be set when `version.schema.openAPIV3Schema` is not included";
                out.push(FieldError::invalid(at, "".into(), words));
            }
            return;
        };
        let mut seen: HashSet<String> = HashSet::new();
        for (i, field) in fields.iter().enumerate() {
            let at = format!("{at}[{i}].jsonPath");
            let path = text(field, "jsonPath");
            if path.is_empty() {
                out.push(FieldError::required(at, ""));
                continue;
            }
            let mut wrong = |words: String| out.push(FieldError::invalid(at.clone(), path.into(), words));
            let found = match Steps::in_schema(path, schema) {
                Ok(found) => found,
                Err(why) => {
                    wrong(format!("is an invalid path: {why}"));
                    continue;
                }
            };
            if found.first == "metadata" {
                wrong("must not point to fields in metadata".to_owned());
            }
            if !matches!(found.kind, "string" | "boolean" | "integer") {
                wrong("must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.".to_owned());
            }
            if !seen.insert(found.path) {
                out.push(FieldError::duplicate(at, path.into()));
            }
        }
        let unchanged = self.old.is_some_and(|old| {
            let old = versions(old)
                .iter()
                .find(|v| text(v, "name") == text(self.version, "name"));
            old.and_then(|v| v.get("selectableFields")) == self.version.get("selectableFields")
        });
        if seen.len() > MAX_SELECTABLE && !unchanged {
            let words = format!("must have at most {MAX_SELECTABLE} items");
            out.push(FieldError::new(
                at,
                windlass_schema::Kind::TooMany,
                Some(seen.len().into()),
                words,
            ));
        }
    }
}

fn list<'a>(version: &'a Value, key: &str) -> &'a [Value] {
    version.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn simple_path(path: &str, at: &str) -> Option<FieldError> {
    (!path.starts_with('.')).then(|| FieldError::invalid(at, path.into(), "must be a simple json path starting with ."))
}

fn scale(version: &Value, at: &str, out: &mut Errors) {
    let Some(scale) = version.pointer("/subresources/scale").filter(|s| !s.is_null()) else {
        return;
    };
    for (key, below) in [("specReplicasPath", "spec"), ("statusReplicasPath", "status")] {
        let path = text(scale, key);
        let at = format!("{at}.scale.{key}");
        if path.is_empty() {
            out.push(FieldError::required(at, ""));
        } else if let Some(error) = simple_path(path, &at) {
            out.push(error);
        } else if !path.starts_with(&format!(".{below}.")) {
            let words = format!("should be a json path under .{below}");
            out.push(FieldError::invalid(at, path.into(), words));
        }
    }
    let path = text(scale, "labelSelectorPath");
    let at = format!("{at}.scale.labelSelectorPath");
    if path.is_empty() {
        return;
    }
    if let Some(error) = simple_path(path, &at) {
        out.push(error);
    } else if !path.starts_with(".spec.") && !path.starts_with(".status.") {
        let words = "should be a json path under either .spec or .status";
        out.push(FieldError::invalid(at, path.into(), words));
    }
}

fn column_errors(column: &Value, at: &str, out: &mut Errors) {
    if text(column, "name").is_empty() {
        out.push(FieldError::required(format!("{at}.name"), ""));
    }
    let kind = text(column, "type");
    let words = format!("must be one of {}", COLUMN_TYPES.join(","));
    if kind.is_empty() {
        out.push(FieldError::required(format!("{at}.type"), words));
    } else if !COLUMN_TYPES.contains(&kind) {
        out.push(FieldError::invalid(format!("{at}.type"), kind.into(), words));
    }
    let format = text(column, "format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let words = format!("must be one of {}", COLUMN_FORMATS.join(","));
        out.push(FieldError::invalid(format!("{at}.format"), format.into(), words));
    }
    let path = text(column, "jsonPath");
    let at = format!("{at}.JSONPath");
    if path.is_empty() {
        out.push(FieldError::required(at, ""));
    } else if let Some(error) = simple_path(path, &at) {
        out.push(error);
    } else if let Err(PathError::Limit(why)) = JsonPath::parse(path) {
        out.push(FieldError::invalid(at, path.into(), why));
    }
}

/// Errors that concern all versions together.
fn together(crd: &Value, out: &mut Errors) {
    let versions = versions(crd);
    let mut wrong = |words: &str| {
        let shown = super::layout::shown(crd);
        out.push(FieldError::shown(
            "spec.versions",
            windlass_schema::Kind::Invalid,
            shown,
            words,
        ));
    };
    let mut names = HashSet::new();
    if !versions.iter().all(|version| names.insert(text(version, "name"))) {
        wrong("must contain unique version names");
    }
    if versions.iter().filter(|v| super::flag(v, "storage")).count() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
    if let Some(first) = versions.first() {
        let name = text(first, "name");
        let problems = NameRule::Label1035.problems(name, false);
        if !name.is_empty() && !problems.is_empty() {
            out.push(FieldError::invalid("spec.version", name.into(), problems.join(",")));
        }
    }
}

fn required_names(crd: &Value, out: &mut Errors) {
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(names(crd), key).is_empty() {
            out.push(FieldError::required(format!("spec.names.{key}"), ""));
        }
    }
}

/// Errors in the form of names that are set.
fn name_forms(names: &Value, at: &str, out: &mut Errors) {
    let problems = |name: &str| NameRule::Label1035.problems(name, false).join(",");
    let mut wrong = |at: String, name: &str, words: String| {
        if !words.is_empty() {
            out.push(FieldError::invalid(at, name.into(), words));
        }
    };
    for key in ["plural", "singular"] {
        let name = text(names, key);
        if !name.is_empty() {
            wrong(format!("{at}.{key}"), name, problems(name));
        }
    }
    for key in ["kind", "listKind"] {
        let name = text(names, key);
        let found = problems(&name.to_lowercase());
        if !name.is_empty() && !found.is_empty() {
            let words = format!("may have mixed case, but should otherwise match: {found}");
            wrong(format!("{at}.{key}"), name, words);
        }
    }
    for (i, name) in strings(names.get("shortNames")).into_iter().enumerate() {
        wrong(format!("{at}.shortNames[{i}]"), name, problems(name));
    }
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        let words = "kind and listKind may not be the same".to_owned();
        wrong(format!("{at}.listKind"), list_kind, words);
    }
    for (i, name) in strings(names.get("categories")).into_iter().enumerate() {
        wrong(format!("{at}.categories[{i}]"), name, problems(name));
    }
}

fn conversion(crd: &Value, out: &mut Errors) {
    const KNOWN: [&str; 2] = ["v1", "v1beta1"];
    let Some(conversion) = crd.pointer("/spec/conversion") else {
        return;
    };
    let at = "spec.conversion";
    let strategy = text(conversion, "strategy");
    let preserves = crd.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true));
    if strategy != "None" && preserves {
        let words = "must be None if spec.preserveUnknownFields is true";
        out.push(FieldError::invalid(format!("{at}.strategy"), strategy.into(), words));
    }
    one_of(
        conversion.get("strategy"),
        &format!("{at}.strategy"),
        &["None", "Webhook"],
        out,
    );
    let config = conversion.pointer("/webhook/clientConfig").filter(|c| !c.is_null());
    let reviews = strings(conversion.pointer("/webhook/conversionReviewVersions"));
    let client = format!("{at}.webhookClientConfig");
    let versions = format!("{at}.conversionReviewVersions");
    if strategy != "Webhook" {
        let words = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            out.push(FieldError::forbidden(client, words));
        }
        if !reviews.is_empty() {
            out.push(FieldError::forbidden(versions, words));
        }
        return;
    }
    match config {
        None => out.push(FieldError::required(client, "required when strategy is set to Webhook")),
        Some(config) => crate::admission::webhook::check_client(config, true, &client, out),
    }
    if reviews.is_empty() {
        out.push(FieldError::required(versions, ""));
        return;
    }
    let mut seen = HashSet::new();
    for (i, version) in reviews.iter().enumerate() {
        let at = format!("{versions}[{i}]");
        if !seen.insert(version) {
            out.push(FieldError::invalid(at, (*version).into(), "duplicate version"));
            continue;
        }
        for problem in NameRule::Label1035.problems(version, false) {
            out.push(FieldError::invalid(at.clone(), (*version).into(), problem));
        }
    }
    if !reviews.iter().any(|version| KNOWN.contains(version)) {
        let words = format!("must include at least one of {}", KNOWN.join(", "));
        out.push(FieldError::invalid(versions, json!(reviews), words));
    }
}

fn immutable(crd: &Value, old: &Value, out: &mut Errors) {
    let mut same = |path: &str, pointer: &str| {
        if old.pointer(pointer) != crd.pointer(pointer) {
            let value = crd.pointer(pointer).cloned().unwrap_or_else(|| "".into());
            out.push(FieldError::invalid(path, value, "field is immutable"));
        }
    };
    if is_established(old) {
        same("spec.scope", "/spec/scope");
        same("spec.names.kind", "/spec/names/kind");
    }
    same("spec.group", "/spec/group");
    same("spec.names.plural", "/spec/names/plural");
}

/// Errors of the stored versions: objects stored in a version must stay readable.
fn stored_versions(crd: &Value, out: &mut Errors) {
    const AT: &str = "status.storedVersions";
    let stored = strings(crd.pointer("/status/storedVersions"));
    let shown = || crd.pointer("/status/storedVersions").cloned().unwrap_or(Value::Null);
    if stored.is_empty() {
        let words = "must have at least one stored version";
        out.push(FieldError::invalid(AT, Value::Null, words));
        return;
    }
    let known: HashSet<&str> = versions(crd).iter().map(|v| text(v, "name")).collect();
    for version in versions(crd) {
        let name = text(version, "name");
        if super::flag(version, "storage") && !stored.contains(&name) {
            let words = format!("must have the storage version {name}");
            out.push(FieldError::invalid(AT, shown(), words));
        }
    }
    for (i, version) in stored.iter().enumerate() {
        if !known.contains(version) {
            let words = format!(
                "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
            );
            out.push(FieldError::invalid(format!("{AT}[{i}]"), (*version).into(), words));
        }
    }
}
