//! What the real server answered, kept beside the cases: a line of JSON for each step.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::case::Case;

/// The answers of each case, by its claim.
pub type Answers = BTreeMap<String, Vec<Value>>;

#[derive(Deserialize, Serialize)]
struct Line<V> {
    case: String,
    /// What was asked, so that a recording is seen to be of another text.
    step: String,
    answer: V,
}

/// What a step asks, in a line.
fn asked(case: &Case, at: usize) -> String {
    let step = &case.steps[at];
    let what = [&step.send, &step.watch, &step.read];
    what.into_iter().flatten().next().cloned().unwrap_or_default()
}

/// Reads a recording; one that is not there is empty.
pub fn read(file: &Path) -> Result<Answers, String> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Answers::new()),
        Err(error) => return Err(format!("{}: {error}", file.display())),
    };
    let mut out = Answers::new();
    for line in text.lines() {
        let line: Line<Value> = serde_json::from_str(line).map_err(|e| format!("{}: {e}", file.display()))?;
        out.entry(line.case).or_default().push(line.answer);
    }
    Ok(out)
}

/// Writes a recording, in the order of the cases.
pub fn write(file: &Path, cases: &[Case], answers: &Answers) -> Result<(), String> {
    let mut text = String::new();
    for case in cases {
        for (at, answer) in answers.get(&case.case).into_iter().flatten().enumerate() {
            let line = Line {
                case: case.case.clone(),
                step: asked(case, at),
                answer,
            };
            let line = serde_json::to_string(&line).map_err(|e| e.to_string())?;
            let _ = writeln!(text, "{line}");
        }
    }
    std::fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))
}
