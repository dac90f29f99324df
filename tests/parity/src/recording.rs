//! The recorded answers of the real server, stored beside the cases: a line of JSON for each step.

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
    /// The request, to detect recordings of a changed case.
    step: String,
    answer: V,
}

/// The request of a step, in a line.
fn asked(case: &Case, at: usize) -> String {
    let step = &case.steps[at];
    let what = [&step.send, &step.watch, &step.read];
    what.into_iter().flatten().next().cloned().unwrap_or_default()
}

/// Reads the recording of cases; a missing file is empty. An answer of a case that was removed or changed is an error.
pub fn read(file: &Path, cases: &[Case]) -> Result<Answers, String> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Answers::new()),
        Err(error) => return Err(format!("{}: {error}", file.display())),
    };
    let mut out = Answers::new();
    for line in text.lines() {
        let line: Line<Value> = serde_json::from_str(line).map_err(|e| format!("{}: {e}", file.display()))?;
        let answers: &mut Vec<Value> = out.entry(line.case.clone()).or_default();
        let case = cases.iter().find(|case| case.case == line.case);
        if !case.is_some_and(|case| answers.len() < case.steps.len() && asked(case, answers.len()) == line.step) {
            let (file, case, step) = (file.display(), line.case, line.step);
            return Err(format!(
                "{file}: there is no step {step:?} at this place of a case {case:?}: record it again"
            ));
        }
        answers.push(line.answer);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn case(claim: &str, sends: &[&str]) -> Case {
        let steps: Vec<Value> = sends.iter().map(|send| json!({"send": send})).collect();
        serde_json::from_value(json!({"case": claim, "steps": steps})).unwrap()
    }

    #[test]
    fn a_recording_of_another_text_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("topic.real.jsonl");
        assert_eq!(read(&file, &[]).unwrap(), Answers::new());
        let played = [case("a", &["GET /a", "GET /b"])];
        let answers = Answers::from([("a".to_owned(), vec![json!(1), json!(2)])]);
        write(&file, &played, &answers).unwrap();
        assert_eq!(read(&file, &played).unwrap(), answers);
        let other = [
            case("a", &["GET /a", "GET /c"]),
            case("a", &["GET /a"]),
            case("b", &["GET /a", "GET /b"]),
        ];
        for case in other {
            let error = read(&file, &[case]).unwrap_err();
            assert!(error.contains("record it again"), "{error}");
        }
    }
}
