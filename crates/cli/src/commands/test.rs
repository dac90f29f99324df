//! `windlass test`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windlass_class_check::unit::{CaseResult, Suite, SuiteResult, junit, run as run_suite, suites};

use crate::args::{TestArgs, TestOutput};
use crate::commands::files;
use crate::commands::lint::counted;
use crate::error::CliError;
use crate::printer::{BOLD, Printer, styled};

/// Runs unit tests of classes, and prints what is not as they expect.
pub(crate) fn run(args: &TestArgs, printer: &Printer) -> Result<(), CliError> {
    let tests = read(args)?;
    let mut results = Vec::new();
    for test in &tests {
        results.push(run_one(test, args)?);
    }
    let text = match args.output {
        TestOutput::Text => text(&results, args.verbose),
        TestOutput::Json => json_document(&results),
        TestOutput::Junit => junit::document(&results),
    };
    printer.text(&text)?;
    let is_good = results.iter().all(|suite| suite.failed() + suite.broken() == 0);
    if is_good { Ok(()) } else { Err(CliError::Reported) }
}

/// The tests of all files, with the cases that are wanted.
fn read(args: &TestArgs) -> Result<Vec<Suite>, CliError> {
    let input = |what: String| CliError::Input { what, source: None };
    let mut tests = Vec::new();
    for file in files::read_all(&args.files)? {
        let found = files::deeply(|| suites(&file))?;
        tests.extend(found.map_err(|findings| {
            let lines: Vec<String> = findings
                .iter()
                .map(|finding| format!("{}:{}: {}", finding.file, finding.position.line, finding.message))
                .collect();
            input(lines.join("; "))
        })?);
    }
    if tests.is_empty() {
        return Err(input("there is no ClusterClassTest in the files".to_owned()));
    }
    if let Some(part) = &args.filter {
        for test in &mut tests {
            test.filter(part);
        }
        tests.retain(|test| test.cases() > 0);
        if tests.is_empty() {
            return Err(CliError::Usage(format!("no case has {part:?} in its name")));
        }
    }
    Ok(tests)
}

/// The directory to which the paths in a test file are relative.
fn folder(test: &Suite) -> PathBuf {
    Path::new(&test.file).parent().map(Path::to_owned).unwrap_or_default()
}

fn run_one(test: &Suite, args: &TestArgs) -> Result<SuiteResult, CliError> {
    let folder = folder(test);
    let sources: Vec<PathBuf> = test.files.iter().map(|file| folder.join(file)).collect();
    let sources = files::read_all(&sources)?;
    let mut goldens = BTreeMap::new();
    for golden in test.goldens() {
        let path = folder.join(golden);
        match fs::read_to_string(&path) {
            Ok(text) => {
                goldens.insert(golden.to_owned(), text);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => {
                let what = format!("cannot read {}", path.display());
                let source = Some(source);
                return Err(CliError::Input { what, source });
            }
        }
    }
    let run =
        |goldens: &BTreeMap<String, String>| files::deeply(|| run_suite(test, &sources, goldens, files::our_kinds()));
    let result = run(&goldens)?;
    if !args.update {
        return Ok(result);
    }
    let written = result.cases.iter().filter_map(|case| case.golden.as_ref());
    for (name, text) in written.filter(|(name, text)| goldens.get(name) != Some(text)) {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(Path::new(""));
        let write = || {
            if !parent.as_os_str().is_empty() {
                fs::create_dir_all(parent)?;
            }
            // A link could lead out of the folder.
            let (inside, top) = (
                fs::canonicalize(absolute(parent))?,
                fs::canonicalize(absolute(&folder))?,
            );
            let is_link = fs::symlink_metadata(&path).is_ok_and(|about| about.is_symlink());
            if is_link || !inside.starts_with(&top) {
                return Err(io::Error::other(
                    "it leads out of the folder of the test file by a link",
                ));
            }
            fs::write(&path, text)
        };
        write().map_err(|source| CliError::failed(format!("cannot write {}", path.display()), source))?;
    }
    goldens.extend(result.cases.iter().filter_map(|case| case.golden.clone()));
    run(&goldens)
}

fn text(suites: &[SuiteResult], verbose: bool) -> String {
    let mut out = String::new();
    for suite in suites {
        for case in &suite.cases {
            write_case(&mut out, suite, case, verbose);
        }
    }
    let sum = |count: fn(&SuiteResult) -> usize| suites.iter().map(count).sum::<usize>();
    let (all, failed, broken) = (
        sum(|suite| suite.cases.len()),
        sum(SuiteResult::failed),
        sum(SuiteResult::broken),
    );
    let _ = write!(
        out,
        "{}: {} passed, {failed} failed",
        counted(all, "case"),
        all - failed - broken
    );
    if broken > 0 {
        let _ = write!(out, ", {broken} could not be run");
    }
    out.push('\n');
    out
}

fn write_case(out: &mut String, suite: &SuiteResult, case: &CaseResult, verbose: bool) {
    let name = format!("{}: {}: {}", suite.file, suite.name, case.name);
    let name = name.replace(char::is_control, " ");
    if case.failures.is_empty() {
        if verbose {
            let _ = writeln!(out, "pass {name}");
        }
        return;
    }
    let word = if case.is_broken { "error" } else { "FAIL" };
    let _ = writeln!(out, "{}", styled(BOLD, &format!("{word} {name}")));
    let mut write = |text: &str, indent: &str| {
        for line in text.lines() {
            let _ = writeln!(
                out,
                "{indent}{}",
                line.replace(|c: char| c.is_control() && c != '\t', "?")
            );
        }
    };
    for failure in &case.failures {
        write(failure, "  ");
    }
    if verbose && !case.generated.is_empty() {
        write("generated objects:", "  ");
        write(&case.generated, "    ");
    }
}

fn json_document(suites: &[SuiteResult]) -> String {
    let case = |case: &CaseResult| {
        json!({
            "name": case.name,
            "result": match (case.is_broken, case.failures.is_empty()) {
                (true, _) => "error",
                (false, true) => "passed",
                (false, false) => "failed",
            },
            "failures": case.failures,
        })
    };
    let suite = |suite: &SuiteResult| {
        let cases: Vec<Value> = suite.cases.iter().map(case).collect();
        json!({"file": suite.file, "name": suite.name, "cases": cases})
    };
    let sum = |count: fn(&SuiteResult) -> usize| suites.iter().map(count).sum::<usize>();
    let document = json!({
        "cases": sum(|suite| suite.cases.len()),
        "failed": sum(SuiteResult::failed),
        "errors": sum(SuiteResult::broken),
        "suites": suites.iter().map(suite).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

/// The present folder has no name of its own.
fn absolute(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    }
}
