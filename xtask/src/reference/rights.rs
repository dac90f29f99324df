//! The rights that the files of this repository grant, from these files.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{code, table};

/// The files with roles for those who run the program.
const FILES: [&str; 3] = [
    "config/manager-role.yaml",
    "config/provider-operator.yaml",
    "examples/externally-managed/role.yaml",
];

/// The page.
pub(super) fn page(root: &Path) -> Result<String, String> {
    let mut text = "# Rights\n\nThe roles in the files of this repository. [Security](../security.md) says what each amounts to.\n\n".to_owned();
    for file in FILES {
        let content = fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
        let objects: Vec<Value> = serde_saphyr::from_multiple(&content).map_err(|error| format!("{file}: {error}"))?;
        let mut reasons = reasons(&content).into_iter();
        for role in objects.iter().filter(|object| is_role(object)) {
            let _ = write!(
                text,
                "## {} {} ({})\n\n",
                text_of(&role["kind"]),
                name(role),
                code(file)
            );
            if let Some(labels) = aggregated(role) {
                let _ = write!(text, "All rules of the ClusterRoles with {labels}.\n\n");
            }
            let rules = role["rules"].as_array().into_iter().flatten();
            let rows: Vec<Vec<String>> = rules
                .map(|rule| row(rule, reasons.next().unwrap_or_default()))
                .collect();
            if !rows.is_empty() {
                text.push_str(&table(&["API groups", "resources", "verbs", "what for"], &rows));
            }
        }
        let subjects = subjects(&objects);
        if !subjects.is_empty() {
            let _ = write!(
                text,
                "Granted to {}.\n\n",
                subjects.into_iter().collect::<Vec<_>>().join(", ")
            );
        }
    }
    Ok(text)
}

fn is_role(object: &Value) -> bool {
    matches!(object["kind"].as_str(), Some("Role" | "ClusterRole"))
}

fn name(object: &Value) -> String {
    code(object["metadata"]["name"].as_str().unwrap_or_default())
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The labels by which a role is put together from others.
fn aggregated(role: &Value) -> Option<String> {
    let labels = role.pointer("/aggregationRule/clusterRoleSelectors/0/matchLabels")?;
    let pairs = labels.as_object()?.iter();
    let pairs: Vec<String> = pairs
        .map(|(key, value)| code(&format!("{key}: {}", text_of(value))))
        .collect();
    Some(pairs.join(", "))
}

fn row(rule: &Value, reason: String) -> Vec<String> {
    let groups = list(
        &rule["apiGroups"],
        |group| if group.is_empty() { "core" } else { group },
    );
    let paths = list(&rule["nonResourceURLs"], |path| path);
    let resources = list(&rule["resources"], |resource| resource);
    let resources = if paths.is_empty() {
        resources
    } else {
        format!("paths {paths}")
    };
    vec![groups, resources, list(&rule["verbs"], |verb| verb), reason]
}

fn list(values: &Value, shown: fn(&str) -> &str) -> String {
    let values = values.as_array().into_iter().flatten();
    let words: Vec<String> = values.map(|value| code(shown(text_of(value)))).collect();
    words.join(", ")
}

/// Who the bindings of a file name.
fn subjects(objects: &[Value]) -> BTreeSet<String> {
    let subjects = objects
        .iter()
        .flat_map(|object| object["subjects"].as_array().into_iter().flatten());
    subjects
        .map(|subject| {
            let namespace = subject["namespace"].as_str().map(|namespace| format!("{namespace}/"));
            let full = format!("{}{}", namespace.unwrap_or_default(), text_of(&subject["name"]));
            format!("{} {}", text_of(&subject["kind"]), code(&full))
        })
        .collect()
}

/// The comment above each rule, in the order of the rules of the file.
fn reasons(content: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut comment = String::new();
    for line in content.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix('#') {
            if !comment.is_empty() {
                comment.push(' ');
            }
            comment.push_str(words.trim());
            continue;
        }
        if line.starts_with("- apiGroups:") || line.starts_with("- nonResourceURLs:") {
            reasons.push(std::mem::take(&mut comment));
        }
        comment.clear();
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_with_the_comment_above_them() {
        let content = "# The file.\nkind: ClusterRole\nrules:\n# One\n# reason.\n- apiGroups: [\"\"]\n  resources: [pods]\n  verbs: [get]\n- nonResourceURLs: [/metrics]\n  verbs: [get]\n";
        let found = reasons(content);
        assert_eq!(found, ["One reason.", ""]);
        let object: Value = serde_saphyr::from_str(content).unwrap();
        let rows: Vec<Vec<String>> = object["rules"]
            .as_array()
            .unwrap()
            .iter()
            .zip(found)
            .map(|(rule, reason)| row(rule, reason))
            .collect();
        assert_eq!(rows[0], ["`core`", "`pods`", "`get`", "One reason."]);
        assert_eq!(rows[1], ["", "paths `/metrics`", "`get`", ""]);
    }
}
