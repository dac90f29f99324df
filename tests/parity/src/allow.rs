//! Differences that are meant, each with its reason.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::differ::Difference;
use crate::path;

/// The list.
#[derive(Debug, Default)]
pub struct Allowed {
    lines: Vec<(Line, AtomicUsize)>,
}

/// A line of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// `AREA/TOPIC: CLAIM`, or the beginning of it.
    case: String,
    /// The path of what differs, with `*` for a step and `**` for any number of steps.
    path: String,
    /// What kube-apiserver says there, where the recording alone does not show what is meant.
    recorded: Option<Expected>,
    /// What the embedded server says there.
    ours: Expected,
    /// Why it is meant.
    why: String,
}

/// What may be said where two differ.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Expected {
    /// Nothing.
    Absent,
    /// Of an item in a list, the apiVersion or the kind that the list gives it.
    OfTheList,
    /// Something with this shape: every text in place of which there is `*` may be another.
    Value(Value),
}

impl Expected {
    fn is(&self, found: Option<&Value>, path: &str, answers: &[Value]) -> bool {
        match (self, found) {
            (Self::Absent, found) => found.is_none(),
            (Self::Value(expected), Some(found)) => is_shaped(expected, found),
            (Self::OfTheList, Some(found)) => of_the_list(path, answers).as_ref() == Some(found),
            (_, None) => false,
        }
    }
}

fn is_shaped(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::String(any), Value::String(_)) if any == "*" => true,
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len() && expected.iter().zip(found).all(|(one, other)| is_shaped(one, other))
        }
        (Value::Object(expected), Value::Object(found)) => {
            expected.len() == found.len()
                && expected
                    .iter()
                    .all(|(key, one)| found.get(key).is_some_and(|other| is_shaped(one, other)))
        }
        _ => expected == found,
    }
}

/// What a list says of the items in it, by the path of an item's field: `3.body.items.0.kind`.
fn of_the_list(path: &str, answers: &[Value]) -> Option<Value> {
    let (step, rest) = path.split_once('.')?;
    let answer = answers.get(step.parse::<usize>().ok()?.checked_sub(1)?)?;
    let list = &answer["body"];
    match rest.rsplit_once('.')?.1 {
        "apiVersion" => Some(list["apiVersion"].clone()),
        "kind" => Some(json!(list["kind"].as_str()?.strip_suffix("List")?)),
        _ => None,
    }
}

impl Allowed {
    /// Reads the list.
    pub fn read(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let lines: Vec<Line> = serde_saphyr::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        if let Some(line) = lines.iter().find(|line| line.why.len() < 20) {
            return Err(format!(
                "{}: {} needs a reason that explains it",
                file.display(),
                line.case
            ));
        }
        Ok(Self {
            lines: lines.into_iter().map(|line| (line, AtomicUsize::new(0))).collect(),
        })
    }

    /// Whether a difference between what is recorded and what ours answered is meant.
    pub fn covers(&self, topic: &str, claim: &str, difference: &Difference, answers: [&[Value]; 2]) -> bool {
        let name = format!("{topic}: {claim}");
        let mut found = false;
        for (line, used) in &self.lines {
            if name.starts_with(&line.case)
                && path::matches(&line.path, &difference.path)
                && line
                    .recorded
                    .as_ref()
                    .is_none_or(|recorded| recorded.is(difference.first.as_ref(), &difference.path, answers[0]))
                && line.ours.is(difference.second.as_ref(), &difference.path, answers[1])
            {
                used.fetch_add(1, Ordering::Relaxed);
                found = true;
            }
        }
        found
    }

    /// Lines that nothing needed.
    pub fn unused(&self) -> Vec<String> {
        let unused = self.lines.iter().filter(|(_, used)| used.load(Ordering::Relaxed) == 0);
        unused
            .map(|(line, _)| format!("{} at {} ({})", line.case, line.path, line.why))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_allowed_and_not_places() {
        let answers = [json!({"body": {"apiVersion": "v1", "kind": "PodList", "items": [{"kind": "Pod"}]}})];
        let kind = "1.body.items.0.kind";
        assert!(Expected::OfTheList.is(Some(&json!("Pod")), kind, &answers));
        assert!(!Expected::OfTheList.is(Some(&json!("Node")), kind, &answers));
        assert!(!Expected::OfTheList.is(None, kind, &answers));
        assert!(Expected::OfTheList.is(Some(&json!("v1")), "1.body.items.0.apiVersion", &answers));
        assert!(Expected::Absent.is(None, kind, &answers) && !Expected::Absent.is(Some(&json!(1)), kind, &answers));
        let expected = Expected::Value(json!([{"time": "*", "manager": "m"}]));
        assert!(expected.is(Some(&json!([{"time": "now", "manager": "m"}])), kind, &answers));
        assert!(!expected.is(Some(&json!([{"time": "now", "manager": "n"}])), kind, &answers));
        assert!(!expected.is(Some(&json!([{"time": "now", "manager": "m", "x": 1}])), kind, &answers));
    }
}
