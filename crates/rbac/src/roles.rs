//! Defaults and validation of roles and bindings. Pure.

use serde_json::{Value, json};
use windlass_schema::{FieldError, FieldErrors, Kind};

use crate::GROUP;
use windlass_objects::metadata::text;
use windlass_objects::names::NameRule;

/// Sets the default API groups of references.
pub fn default(object: &mut Value) {
    if text(object, "kind").ends_with("Binding")
        && let Some(map) = object.as_object_mut()
    {
        map.entry("roleRef").or_insert_with(|| json!({}));
    }
    if let Some(role) = object.get_mut("roleRef").and_then(Value::as_object_mut) {
        let group = role.entry("apiGroup").or_insert_with(|| GROUP.into());
        if group == "" {
            *group = GROUP.into();
        }
    }
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        let is_ours = matches!(text(subject, "kind"), "User" | "Group");
        if is_ours
            && text(subject, "apiGroup").is_empty()
            && let Some(map) = subject.as_object_mut()
        {
            map.insert("apiGroup".to_owned(), GROUP.into());
        }
    }
}

/// The validation errors of a role or binding.
pub fn errors(kind: &str, object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    match kind {
        "Role" | "ClusterRole" => {
            let rules = object.get("rules").and_then(Value::as_array);
            for (index, rule) in rules.into_iter().flatten().enumerate() {
                rule_errors(kind, &format!("rules[{index}]"), rule, errors);
            }
            if let Some(aggregation) = object.get("aggregationRule").filter(|rule| !rule.is_null()) {
                aggregation_errors(aggregation, errors);
            }
        }
        _ => {
            role_ref_errors(kind, object, old, errors);
            let subjects = object.get("subjects").and_then(Value::as_array);
            for (index, subject) in subjects.into_iter().flatten().enumerate() {
                subject_errors(kind, &format!("subjects[{index}]"), subject, errors);
            }
        }
    }
}

fn rule_errors(kind: &str, at: &str, rule: &Value, errors: &mut FieldErrors) {
    let list = |key: &str| rule.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let urls = list("nonResourceURLs");
    if list("verbs").is_empty() {
        errors.push(FieldError::required(
            format!("{at}.verbs"),
            "verbs must contain at least one value",
        ));
    }
    if !urls.is_empty() {
        let wrong = if kind == "Role" {
            "namespaced rules cannot apply to non-resource URLs"
        } else if !list("apiGroups").is_empty() || !list("resources").is_empty() || !list("resourceNames").is_empty() {
            "rules cannot apply to both regular resources and non-resource URLs"
        } else {
            return;
        };
        errors.push(FieldError::invalid(format!("{at}.nonResourceURLs"), json!(urls), wrong));
        return;
    }
    if list("apiGroups").is_empty() {
        errors.push(FieldError::required(
            format!("{at}.apiGroups"),
            "resource rules must supply at least one api group",
        ));
    }
    if list("resources").is_empty() {
        errors.push(FieldError::required(
            format!("{at}.resources"),
            "resource rules must supply at least one resource",
        ));
    }
}

fn aggregation_errors(rule: &Value, errors: &mut FieldErrors) {
    let at = "aggregationRule.clusterRoleSelectors";
    let selectors = rule.get("clusterRoleSelectors").and_then(Value::as_array);
    let selectors = selectors.map_or(&[][..], Vec::as_slice);
    if selectors.is_empty() {
        errors.push(FieldError::required(
            at,
            "at least one clusterRoleSelector required if aggregationRule is non-nil",
        ));
    }
    for (index, selector) in selectors.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let before = errors.len();
        windlass_objects::selector::errors(selector, &at, errors);
        if errors.len() > before {
            errors.push(FieldError::invalid(at, Value::Null, "invalid label selector."));
        }
    }
}

fn unsupported(at: String, value: &str, supported: &[&str]) -> FieldError {
    let quoted: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
    let detail = format!("supported values: {}", quoted.join(", "));
    FieldError::new(at, Kind::NotSupported, Some(value.into()), detail)
}

fn role_ref_errors(kind: &str, object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let role = object.get("roleRef").cloned().unwrap_or(Value::Null);
    let kinds: &[&str] = if kind == "ClusterRoleBinding" {
        &["ClusterRole"]
    } else {
        &["Role", "ClusterRole"]
    };
    if text(&role, "apiGroup") != GROUP {
        errors.push(unsupported(
            "roleRef.apiGroup".to_owned(),
            text(&role, "apiGroup"),
            &[GROUP],
        ));
    }
    if !kinds.contains(&text(&role, "kind")) {
        errors.push(unsupported("roleRef.kind".to_owned(), text(&role, "kind"), kinds));
    }
    let name = text(&role, "name");
    if name.is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    for problem in NameRule::PathSegment.problems(name, false) {
        errors.push(FieldError::invalid("roleRef.name", name.into(), problem));
    }
    if let Some(old) = old
        && old.get("roleRef") != Some(&role)
    {
        let part = |key| Value::from(text(&role, key));
        let shown = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            part("apiGroup"),
            part("kind"),
            part("name")
        );
        let words = format!("{shown}: cannot change roleRef");
        errors.push(FieldError::new("roleRef", Kind::Invalid, None, words));
    }
}

fn subject_errors(kind: &str, at: &str, subject: &Value, errors: &mut FieldErrors) {
    if text(subject, "name").is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), ""));
    }
    let group = text(subject, "apiGroup");
    match text(subject, "kind") {
        "User" | "Group" if group != GROUP => {
            errors.push(unsupported(format!("{at}.apiGroup"), group, &[GROUP]));
        }
        "User" | "Group" => {}
        "ServiceAccount" => {
            let name = text(subject, "name");
            if !name.is_empty() {
                for problem in NameRule::Subdomain.problems(name, false) {
                    errors.push(FieldError::invalid(format!("{at}.name"), name.into(), problem));
                }
            }
            if !group.is_empty() {
                errors.push(unsupported(format!("{at}.apiGroup"), group, &[""]));
            }
            if kind == "ClusterRoleBinding" && text(subject, "namespace").is_empty() {
                errors.push(FieldError::required(format!("{at}.namespace"), ""));
            }
        }
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            errors.push(unsupported(format!("{at}.kind"), other, &known));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &str, yaml: &str, want: &[&str]) {
        let mut object: Value = serde_saphyr::from_str(yaml).unwrap();
        default(&mut object);
        let mut found = windlass_schema::FieldErrors::new();
        errors(kind, &object, None, &mut found);
        let paths: Vec<&str> = found.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(paths, want, "{object}");
    }

    #[test]
    fn rules_name_resources_or_paths() {
        check(
            "Role",
            "{rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}",
            &[],
        );
        check("Role", "{}", &[]);
        check(
            "Role",
            "{rules: [{resources: [pods], verbs: []}]}",
            &["rules[0].verbs", "rules[0].apiGroups"],
        );
        check(
            "ClusterRole",
            "{rules: [{apiGroups: [''], verbs: [get]}]}",
            &["rules[0].resources"],
        );
        check("ClusterRole", "{rules: [{nonResourceURLs: [/x], verbs: [get]}]}", &[]);
        check(
            "Role",
            "{rules: [{nonResourceURLs: [/x], verbs: [get]}]}",
            &["rules[0].nonResourceURLs"],
        );
        check(
            "ClusterRole",
            "{rules: [{nonResourceURLs: [/x], resources: [pods], verbs: [get]}]}",
            &["rules[0].nonResourceURLs"],
        );
    }

    #[test]
    fn bindings_name_a_role_and_subjects() {
        check(
            "RoleBinding",
            "{roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}, {kind: ServiceAccount, name: s}]}",
            &[],
        );
        check(
            "ClusterRoleBinding",
            "{roleRef: {kind: Role, name: r}, subjects: [{kind: ServiceAccount, name: s}]}",
            &["roleRef.kind", "subjects[0].namespace"],
        );
        check(
            "RoleBinding",
            "{roleRef: {kind: Role, apiGroup: x}, subjects: [{kind: Robot}, {kind: User, name: u, apiGroup: x}]}",
            &[
                "roleRef.apiGroup",
                "roleRef.name",
                "subjects[0].name",
                "subjects[0].kind",
                "subjects[1].apiGroup",
            ],
        );
    }

    #[test]
    fn a_binding_is_to_one_role_for_ever() {
        let binding = |role: &str| json!({"roleRef": {"apiGroup": GROUP, "kind": "Role", "name": role}});
        let mut found = windlass_schema::FieldErrors::new();
        errors("RoleBinding", &binding("a"), Some(&binding("b")), &mut found);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().ends_with("cannot change roleRef"));
    }
}
