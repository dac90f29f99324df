//! Every case of the corpus gives the output of Go's text/template with Sprig (`cargo xtask templates` regenerates it with Go).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Functions, Rules, Template};
use serde_json::Value;

/// Templates with an intentionally different output, and the reason.
const DIFFERENCES: &str = "differences.jsonl";

struct Case {
    place: String,
    template: String,
    data: Value,
    functions: Functions,
    /// `None` if Go fails.
    output: Option<String>,
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

fn lines(file: &Path) -> Vec<(String, Value)> {
    let text = fs::read_to_string(file).unwrap();
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    text.lines()
        .enumerate()
        .map(|(at, line)| {
            let place = format!("{name}:{}", at + 1);
            let value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{place}: {e}"));
            (place, value)
        })
        .collect()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn cases() -> Vec<Case> {
    let mut files: Vec<PathBuf> = fs::read_dir(testdata()).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "jsonl") && !file.ends_with(DIFFERENCES));
    files.sort();
    let all = files.iter().flat_map(|file| lines(file));
    all.map(|(place, case)| Case {
        place,
        template: text(&case, "template"),
        data: case["data"].clone(),
        functions: if case["builtin"] == true {
            Functions::Builtin
        } else {
            Functions::Sprig
        },
        output: case["output"].as_str().map(str::to_owned),
    })
    .collect()
}

fn ours(case: &Case) -> Result<String, String> {
    Template::parse(&case.template, case.functions)
        .and_then(|template| template.render(&case.data, Rules::GO))
        .map_err(|error| error.to_string())
}

// AD-118, AD-119, AD-130
#[test]
fn every_case_gives_what_go_gives() {
    let mut differences: BTreeMap<String, Value> = lines(&testdata().join(DIFFERENCES))
        .into_iter()
        .map(|(_, value)| (text(&value, "template"), value))
        .collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in cases() {
        count += 1;
        let ours = ours(&case);
        let same = ours.as_ref().ok() == case.output.as_ref();
        match differences.remove(&case.template) {
            Some(difference) if same => wrong.push(format!(
                "{}: there is no difference any more: {}",
                case.place, difference["template"]
            )),
            Some(difference) => {
                assert!(!text(&difference, "because").is_empty(), "{}", case.template);
                if difference["output"].as_str() != ours.as_deref().ok() {
                    wrong.push(format!("{}: {difference}, but we give {ours:?}", case.place));
                }
            }
            None if same => {}
            None => wrong.push(format!(
                "{}: {}\n  Go   {:?}\n  ours {ours:?}",
                case.place, case.template, case.output
            )),
        }
    }
    wrong.extend(differences.keys().map(|template| format!("no case has {template:?}")));
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 1000, "the corpus has only {count} cases");
}
