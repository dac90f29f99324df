//! Intended differences, each with its reason.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::differ::Difference;
use crate::path;

/// The list of intended differences.
#[derive(Debug, Default)]
pub struct Allowed {
    lines: Vec<(Line, AtomicUsize)>,
}

/// A line of the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// `AREA/TOPIC: CLAIM`, or a prefix of it.
    case: String,
    /// The path of the difference, with `*` for a step and `**` for any number of steps.
    path: String,
    /// The value that kube-apiserver has there, if the recording alone does not explain the difference.
    recorded: Option<Expected>,
    /// The value that the embedded server has there.
    ours: Expected,
    /// The reason.
    why: String,
}

/// The expected value of one side.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Expected {
    /// No value.
    Absent,
    /// For an item of a list: the apiVersion or kind that the list implies.
    OfTheList,
    /// A value of this shape; `*` in a text matches any text.
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

/// The apiVersion or kind that a list implies for an item's field, by the path `3.body.items.0.kind`.
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

    /// Whether a line covers a difference between the recording and the embedded server.
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

    /// The lines that covered no difference.
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
