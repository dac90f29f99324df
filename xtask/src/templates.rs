//! `cargo xtask templates`: renders every case of the template corpus with Go's text/template and Sprig.
//!
//! The corpus is in `crates/gotemplate/testdata`, one JSON object per line: a template, its data, and the output. For a new case,
//! add a line without the output, and this task adds it. The tests of `gotemplate` compare our engine with it; this task compares
//! it with Go.

use std::fs;
use std::path::{Path, PathBuf};

use windlass_envtest::missing;

use crate::tools::{Go, ask};

const CORPUS: &str = "crates/gotemplate/testdata";
const PROGRAM: &str = "tools/template-corpus";

/// The intended differences, which Go cannot generate.
const DIFFERENCES: &str = "differences.jsonl";

/// The result.
#[derive(Debug)]
pub(crate) struct Report {
    /// Files that differ from Go's output.
    pub(crate) stale: Vec<String>,
    /// The number of cases.
    pub(crate) cases: usize,
}

/// Runs Go, and writes its output, or only compares it with `check`. Without Go, a check succeeds with a message.
pub(crate) fn run(root: &Path, check: bool) -> Result<Option<Report>, String> {
    if let Err(why) = Go::find(root, [(PROGRAM, "the template corpus")]) {
        if !check {
            return Err(why);
        }
        missing::left_out("comparing the template corpus with what Go gives", &why)?;
        return Ok(None);
    }
    let files = files(&root.join(CORPUS))?;
    let mut texts = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: cannot be read: {error}", file.display()))?;
        texts.push(text);
    }
    let answer = ask(&root.join(PROGRAM), &["run", "."], texts.concat())?;
    let mut lines = answer.lines();
    let mut report = Report {
        stale: Vec::new(),
        cases: 0,
    };
    for (file, have) in files.iter().zip(&texts) {
        let count = have.lines().filter(|line| !line.trim().is_empty()).count();
        let want: String = lines.by_ref().take(count).flat_map(|line| [line, "\n"]).collect();
        report.cases += count;
        if want == *have {
            continue;
        }
        report
            .stale
            .push(file.strip_prefix(root).unwrap_or(file).display().to_string());
        if !check {
            fs::write(file, want).map_err(|error| format!("{}: cannot be written: {error}", file.display()))?;
        }
    }
    Ok(Some(report))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error| format!("{}: cannot be read: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|e| e == "jsonl") && !path.ends_with(DIFFERENCES) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
