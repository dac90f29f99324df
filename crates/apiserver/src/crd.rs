//! Custom resource definitions: their rules, their status, and the resources they define. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_schema::{FieldError, Schema};

use crate::names::{NameRule, label_problems};
use crate::object::{meta, strings, text};
use crate::resource::{Column, Resource, ScalePaths, SchemaSource, Special, api_version};

/// The store's name for definitions.
pub(crate) const STORAGE: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// Keeps a definition until its objects are gone.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

fn versions(crd: &Value) -> &[Value] {
    crd.pointer("/spec/versions")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn names(crd: &Value) -> &Value {
    crd.pointer("/spec/names").unwrap_or(&Value::Null)
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key) == Some(&Value::Bool(true))
}

/// The version that is written.
pub(crate) fn storage_version(crd: &Value) -> &str {
    versions(crd)
        .iter()
        .find(|v| flag(v, "storage"))
        .map_or("", |v| text(v, "name"))
}

/// Whether its resources are served.
pub(crate) fn is_established(crd: &Value) -> bool {
    condition(crd, "Established").is_some_and(|c| text(c, "status") == "True")
}

fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    crd.pointer("/status/conditions")?
        .as_array()?
        .iter()
        .find(|c| text(c, "type") == kind)
}

/// Fills in names that follow from others.
pub(crate) fn default(crd: &mut Value) {
    let Some(names) = crd.pointer_mut("/spec/names").and_then(Value::as_object_mut) else {
        return;
    };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or("").to_owned();
    if !kind.is_empty() {
        names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
        names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    }
    if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    }
}

/// Errors of a definition.
pub(crate) fn errors(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let group = text(crd.get("spec").unwrap_or(&Value::Null), "group");
    let plural = text(names(crd), "plural");
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(
            "spec.group",
            group.into(),
            "should be a domain with at least one dot",
        ));
    } else {
        for problem in NameRule::Subdomain.problems(group, false) {
            errors.push(FieldError::invalid("spec.group", group.into(), problem));
        }
    }
    let name = meta(crd, "name");
    if name != format!("{plural}.{group}") {
        errors.push(FieldError::invalid(
            "metadata.name",
            name.into(),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    let approved = crd.pointer("/metadata/annotations/api-approved.kubernetes.io");
    if (group == "k8s.io" || group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io")) && approved.is_none() {
        errors.push(FieldError::required(
            "metadata.annotations[api-approved.kubernetes.io]",
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111",
        ));
    }
    let scope = crd.pointer("/spec/scope").cloned().unwrap_or_else(|| "".into());
    if !matches!(scope.as_str(), Some("Namespaced" | "Cluster")) {
        errors.push(FieldError::not_supported(
            "spec.scope",
            scope.clone(),
            &["Cluster".to_owned(), "Namespaced".to_owned()],
        ));
    }
    name_errors(crd, &mut errors);
    version_errors(crd, &mut errors);
    if let Some(old) = old.filter(|old| is_established(old)) {
        for (path, pointer) in [
            ("spec.group", "/spec/group"),
            ("spec.scope", "/spec/scope"),
            ("spec.names.kind", "/spec/names/kind"),
            ("spec.names.plural", "/spec/names/plural"),
        ] {
            if old.pointer(pointer) != crd.pointer(pointer) {
                let value = crd.pointer(pointer).cloned().unwrap_or(Value::Null);
                errors.push(FieldError::invalid(path, value, "field is immutable"));
            }
        }
    }
    errors
}

fn name_errors(crd: &Value, errors: &mut Vec<FieldError>) {
    let names = names(crd);
    for key in ["plural", "singular", "kind", "listKind"] {
        let value = text(names, key);
        let at = format!("spec.names.{key}");
        if value.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        for problem in label_problems(&value.to_lowercase()) {
            errors.push(FieldError::invalid(at.clone(), value.into(), problem));
        }
    }
    for (i, short) in strings(names.get("shortNames")).into_iter().enumerate() {
        for problem in label_problems(short) {
            errors.push(FieldError::invalid(
                format!("spec.names.shortNames[{i}]"),
                short.into(),
                problem,
            ));
        }
    }
}

fn version_errors(crd: &Value, errors: &mut Vec<FieldError>) {
    let versions = versions(crd);
    if versions.is_empty() {
        errors.push(FieldError::required("spec.versions", "must have at least one version"));
        return;
    }
    let stored = versions.iter().filter(|v| flag(v, "storage")).count();
    if stored != 1 {
        errors.push(FieldError::invalid(
            "spec.versions",
            crd.pointer("/spec/versions").cloned().unwrap_or(Value::Null),
            "must have exactly one version marked as storage version",
        ));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (i, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{i}]");
        let name = text(version, "name");
        if seen.contains(&name) {
            errors.push(FieldError::invalid(
                "spec.versions",
                name.into(),
                "must contain unique version names",
            ));
        }
        seen.push(name);
        for problem in label_problems(name) {
            errors.push(FieldError::invalid(format!("{at}.name"), name.into(), problem));
        }
        match version.pointer("/schema/openAPIV3Schema") {
            None => errors.push(FieldError::required(
                format!("{at}.schema.openAPIV3Schema"),
                "schemas are required",
            )),
            Some(schema) => {
                let at = format!("{at}.schema.openAPIV3Schema");
                if let Err(found) = Schema::parse(schema, windlass_schema::Dialect::Crd, &at) {
                    errors.extend(found.0);
                }
            }
        }
    }
    let names: Vec<&str> = versions.iter().map(|v| text(v, "name")).collect();
    for (i, stored) in strings(crd.pointer("/status/storedVersions")).into_iter().enumerate() {
        if !names.contains(&stored) {
            errors.push(FieldError::invalid(
                format!("status.storedVersions[{i}]"),
                stored.into(),
                "missing from spec.versions; must be present in spec.versions",
            ));
        }
    }
}

/// The status that follows from the spec: names are accepted unless another definition of the group has them.
pub(crate) fn set_status(crd: &mut Value, others: &[Value], now: &str) {
    let taken = names_taken(crd, others);
    let accepted = taken.is_none();
    let spec_names = names(crd).clone();
    let stored = storage_version(crd).to_owned();
    let mut status = crd
        .get("status")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_else(Map::new);
    if accepted {
        status.insert("acceptedNames".into(), spec_names);
    } else {
        status
            .entry("acceptedNames")
            .or_insert_with(|| json!({"plural": "", "kind": ""}));
    }
    let mut versions: Vec<String> = strings(status.get("storedVersions"))
        .into_iter()
        .map(str::to_owned)
        .collect();
    if !stored.is_empty() && !versions.contains(&stored) {
        versions.push(stored);
    }
    status.insert("storedVersions".into(), json!(versions));
    let mut conditions = status
        .get("conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let was_established = is_established(crd);
    match taken {
        None => set_condition(
            &mut conditions,
            "NamesAccepted",
            true,
            "NoConflicts",
            "no conflicts found",
            now,
        ),
        Some(why) => set_condition(&mut conditions, "NamesAccepted", false, "NameConflict", &why, now),
    }
    if accepted || was_established {
        set_condition(
            &mut conditions,
            "Established",
            true,
            "InitialNamesAccepted",
            "the initial names have been accepted",
            now,
        );
    } else {
        set_condition(
            &mut conditions,
            "Established",
            false,
            "NotAccepted",
            "not all names are accepted",
            now,
        );
    }
    status.insert("conditions".into(), conditions.into());
    if let Some(map) = crd.as_object_mut() {
        map.insert("status".into(), status.into());
    }
}

fn set_condition(conditions: &mut Vec<Value>, kind: &str, is_true: bool, reason: &str, message: &str, now: &str) {
    let status = if is_true { "True" } else { "False" };
    let found = conditions.iter().position(|c| text(c, "type") == kind);
    let since = found
        .filter(|i| text(&conditions[*i], "status") == status)
        .map_or(now, |i| text(&conditions[i], "lastTransitionTime"))
        .to_owned();
    let condition = json!({
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    });
    match found {
        Some(i) => conditions[i] = condition,
        None => conditions.push(condition),
    }
}

/// Marks a definition as being deleted.
pub(crate) fn set_terminating(crd: &mut Value, now: &str) {
    if let Some(conditions) = crd.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        set_condition(
            conditions,
            "Terminating",
            true,
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            now,
        );
    }
}

fn names_taken(crd: &Value, others: &[Value]) -> Option<String> {
    let group = crd.pointer("/spec/group");
    let mut resources: BTreeMap<&str, &str> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    for other in others {
        if other.pointer("/spec/group") != group || meta(other, "name") == meta(crd, "name") {
            continue;
        }
        let accepted = other.pointer("/status/acceptedNames").unwrap_or(&Value::Null);
        for key in ["plural", "singular"] {
            resources.insert(text(accepted, key), meta(other, "name"));
        }
        for short in strings(accepted.get("shortNames")) {
            resources.insert(short, meta(other, "name"));
        }
        for key in ["kind", "listKind"] {
            kinds.insert(text(accepted, key), meta(other, "name"));
        }
    }
    let wanted = names(crd);
    let mut words = vec![text(wanted, "plural"), text(wanted, "singular")];
    words.extend(strings(wanted.get("shortNames")));
    let clash = words
        .into_iter()
        .find(|w| !w.is_empty() && resources.contains_key(w))
        .or_else(|| {
            [text(wanted, "kind"), text(wanted, "listKind")]
                .into_iter()
                .find(|w| !w.is_empty() && kinds.contains_key(w))
        })?;
    Some(format!("\"{clash}\" is already in use"))
}

/// The resources that a definition serves, newest version first; empty when it is not established.
pub(crate) fn resources(crd: &Value) -> Vec<Arc<Resource>> {
    if !is_established(crd) {
        return Vec::new();
    }
    let mut served: Vec<&Value> = versions(crd).iter().filter(|v| flag(v, "served")).collect();
    served.sort_by(|a, b| compare_versions(text(b, "name"), text(a, "name")));
    served.into_iter().filter_map(|v| resource(crd, v)).collect()
}

fn resource(crd: &Value, version: &Value) -> Option<Arc<Resource>> {
    let spec = crd.get("spec")?;
    let group = text(spec, "group");
    let names = names(crd);
    let raw = version.pointer("/schema/openAPIV3Schema")?;
    let schema = match Schema::crd(raw) {
        Ok(schema) => Arc::new(schema),
        Err(error) => {
            tracing::error!(%error, crd = meta(crd, "name"), "the schema of a stored definition cannot be used");
            return None;
        }
    };
    let scale = version.pointer("/subresources/scale");
    let version_name = text(version, "name");
    Some(Arc::new(Resource {
        group: group.to_owned(),
        version: version_name.to_owned(),
        kind: text(names, "kind").to_owned(),
        list_kind: text(names, "listKind").to_owned(),
        plural: text(names, "plural").to_owned(),
        singular: text(names, "singular").to_owned(),
        short_names: owned(names.get("shortNames")),
        categories: owned(names.get("categories")),
        namespaced: text(spec, "scope") == "Namespaced",
        storage: format!("{}.{group}", text(names, "plural")).into(),
        storage_api_version: api_version(group, storage_version(crd)),
        status: version.pointer("/subresources/status").is_some(),
        scale: scale.map(|s| ScalePaths {
            spec: dotted(text(s, "specReplicasPath")),
            status: dotted(text(s, "statusReplicasPath")),
            selector: s.get("labelSelectorPath").and_then(Value::as_str).map(dotted),
        }),
        generation: true,
        name_rule: NameRule::Subdomain,
        special: Special::Custom,
        create_on_update: false,
        needs_revision: true,
        columns: columns(version),
        selectable: version
            .get("selectableFields")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|f| dotted(text(f, "jsonPath")))
            .map(|p| (p.clone(), p))
            .collect(),
        schema: SchemaSource::Custom(schema),
        raw_schema: Some(Arc::new(raw.clone())),
        deprecation: flag(version, "deprecated").then(|| {
            let words = text(version, "deprecationWarning");
            if words.is_empty() {
                format!("{group}/{version_name} {} is deprecated", text(names, "kind"))
            } else {
                words.to_owned()
            }
        }),
    }))
}

fn owned(value: Option<&Value>) -> Vec<String> {
    strings(value).into_iter().map(str::to_owned).collect()
}

fn dotted(path: &str) -> String {
    path.trim_start_matches('.').to_owned()
}

fn columns(version: &Value) -> Vec<Column> {
    let mut out = vec![Column {
        name: "Name".to_owned(),
        kind: "string".to_owned(),
        format: "name".to_owned(),
        description: String::new(),
        priority: 0,
        path: "@name".to_owned(),
    }];
    let own = version.get("additionalPrinterColumns").and_then(Value::as_array);
    for column in own.into_iter().flatten() {
        out.push(Column {
            name: text(column, "name").to_owned(),
            kind: text(column, "type").to_owned(),
            format: text(column, "format").to_owned(),
            description: text(column, "description").to_owned(),
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
            path: text(column, "jsonPath").to_owned(),
        });
    }
    if own.is_none_or(Vec::is_empty) {
        out.push(Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            path: ".metadata.creationTimestamp".to_owned(),
        });
    }
    out
}

/// Compares versions as Kubernetes prefers them: v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > anything else.
pub(crate) fn compare_versions(a: &str, b: &str) -> std::cmp::Ordering {
    rank(a).cmp(&rank(b)).then_with(|| b.cmp(a))
}

fn rank(version: &str) -> (u8, u64, u64) {
    let parsed = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let major: u64 = rest[..digits].parse().ok()?;
        let rest = &rest[digits..];
        if rest.is_empty() {
            return Some((3, major, 0));
        }
        for (word, stage) in [("beta", 2), ("alpha", 1)] {
            if let Some(minor) = rest.strip_prefix(word) {
                return Some((stage, major, minor.parse().ok()?));
            }
        }
        None
    };
    parsed().unwrap_or((0, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_preferred_as_kubernetes_does() {
        let mut versions = vec!["foo", "v1alpha1", "v2", "v1beta2", "v1", "v10", "v1beta1"];
        versions.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
