//! What admission completes and refuses: the webhooks from the registry of rules, the rest from the cases that tests run through an API
//! server (`crates/admission/cases`).

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;
use windlass_admission::{Hook, Operation, WRITES};
use windlass_manager::FeatureGates;
use windlass_manager::registry::admission;

use super::{code, table};

const CASES: &str = "crates/admission/cases";

/// The page.
pub(super) fn page(root: &Path) -> Result<String, String> {
    let mut text = "# Admission\n\nWhat is set and refused before an object is stored. `windlass up` does it in process, `windlass manager \
                    --webhook-address` by webhooks with these names.\n\nA write is also refused if an object that a rule needs cannot be read: the \
                    message says which, and the write may be repeated. What was wrong before, and is not changed, does not refuse an update.\n\n\
                    A Cluster with a ClusterClass of another namespace is refused, unless its user may read that class and the templates \
                    that it names, or has the verb `use` on it: see [classes for other namespaces](../security.md#classes-for-other-namespaces). The way out is a Role with \
                    that verb in the namespace of the class, bound to the user.\n\n\
                    The examples are the cases of the tests: an object that is good, and what is different.\n\n"
        .to_owned();
    text.push_str(&table(&["webhook", "operations", "path"], &webhooks()));
    let mut files: Vec<_> = fs::read_dir(root.join(CASES))
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("{CASES}: {error}"))?;
    files.sort_by_key(fs::DirEntry::path);
    let mut sections: Vec<(String, Value)> = Vec::new();
    for file in files {
        let path = file.path();
        let failed = |why: String| format!("{}: {why}", path.display());
        let content = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        let content: Value = serde_saphyr::from_str(&content).map_err(|error| failed(error.to_string()))?;
        let without = |case: &&Value| !case["refused"].is_null() && case["wayOut"].as_str().is_none_or(str::is_empty);
        if let Some(case) = list(&content, "cases").iter().find(without) {
            return Err(failed(format!("case {} is refused and has no wayOut", case["name"])));
        }
        let kind = content["base"]["kind"].as_str().unwrap_or_default().to_owned();
        sections.push((kind, content));
    }
    let mut kinds: Vec<&str> = sections.iter().map(|(kind, _)| kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let of_kind = sections.iter().filter(|(of, _)| of == kind);
        let cases: Vec<&Value> = of_kind.flat_map(|(_, content)| list(content, "cases")).collect();
        let _ = write!(text, "## {kind}\n\n");
        let head = ["what", "what is different", "what is stored"];
        part(&mut text, "Completed", &head, &cases, |case| {
            (!case["gets"].is_null()).then(|| vec![json(&case["gets"])])
        });
        let head = ["what", "what is different", "message", "way out"];
        part(&mut text, "Refused", &head, &cases, |case| {
            let words: Vec<&str> = list(case, "refused").iter().filter_map(Value::as_str).collect();
            let way_out = case["wayOut"].as_str().unwrap_or_default().to_owned();
            (!words.is_empty()).then(|| vec![words.join(" ... "), way_out])
        });
    }
    Ok(text)
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn json(value: &Value) -> String {
    code(&value.to_string())
}

fn webhooks() -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for rule in admission::rules(&FeatureGates::default()) {
        for hook in Hook::ALL.into_iter().filter(|hook| rule.has(*hook)) {
            let operations = match hook {
                Hook::Complete => WRITES,
                Hook::Check => rule.admission.operations,
                Hook::Scale => &[Operation::Update],
            };
            let operations: Vec<&str> = operations.iter().map(|operation| operation.as_str()).collect();
            rows.push(vec![
                code(&rule.name(hook)),
                operations.join(", "),
                code(&rule.path(hook)),
            ]);
        }
    }
    rows
}

/// One table of cases, if there are any.
fn part(text: &mut String, title: &str, head: &[&str], cases: &[&Value], last: impl Fn(&Value) -> Option<Vec<String>>) {
    let rows: Vec<Vec<String>> = cases
        .iter()
        .filter_map(|case| {
            let result = last(case)?;
            let name = case["name"].as_str().unwrap_or_default().to_owned();
            Some([vec![name, written(case)], result].concat())
        })
        .collect();
    if !rows.is_empty() {
        let _ = write!(text, "### {title}\n\n{}", table(head, &rows));
    }
}

/// What a case writes.
fn written(case: &Value) -> String {
    if case["delete"] == true {
        return "the object is deleted".to_owned();
    }
    if let Some(replicas) = case["scale"].as_i64() {
        return format!("{replicas} replicas by the scale subresource");
    }
    let new = json(&case["new"]);
    match (case["update"] == true, &case["old"]) {
        (false, _) => new,
        (true, Value::Null) => format!("an update: {new}"),
        (true, old) => format!("an update: {new}, from {}", json(old)),
    }
}
