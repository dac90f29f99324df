//! `cargo xtask suites`: runs every test program of the workspace, two at a time, the longest first.
//!
//! `cargo test` runs programs one after the other, although most of them mainly wait and end with one long test. On an API server
//! other than the embedded one, only suites run whose subject is a client of an API server ([`SERVED`]). Of these, only the tests
//! run that used a server of the test kit in the last run on the embedded one, if that is known. A program without tests fails,
//! and so does a suite that used a server and is in no table. Of tests that have run on the embedded server, a run on another one may take a
//! share only, another one with each `WINDLASS_SEED`; some tests are in every share ([`ALWAYS`]).

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::cargo;

/// The suites that run on every kind of API server, the longest first: crate, and the prefix of its tests with a server (empty
/// for all).
const SERVED: &[(&str, &str)] = &[
    ("operator", ""),
    ("testkit", ""),
    ("core-controllers", ""),
    ("core-topology", ""),
    ("controlplane-kubeadm", ""),
    ("controller-runtime", ""),
    ("addon-helm", ""),
    // The other tests are about the server that the program starts.
    ("cli", "guide::"),
    ("webhook", ""),
    ("helm", ""),
];

/// The suites that run on the embedded server only: crate, and why.
const UNSERVED: &[(&str, &str)] = &[
    (
        "bootstrap-kubeadm",
        "hours pass in its test, on the clock of the controller and of the server",
    ),
    (
        "apiserver",
        "about ours itself; tests/parity compares it with a real one, request by request",
    ),
    ("store", "about ours itself"),
    (
        "infra-dev",
        "its servers are simulated workload clusters, which are ours by design",
    ),
    (
        "cluster-cache",
        "its servers are simulated workload clusters, which are ours by design",
    ),
    ("cli", "but for the guide, about the server that the program starts"),
];

/// Tests of a served suite that run on the embedded server only, unless their program is named: suite, prefix of the names, and why.
const OURS: &[(&str, &str, &str)] = &[
    (
        "testkit",
        "safety::trouble::",
        "about hosts and etcd members of simulated workload clusters",
    ),
    (
        "testkit",
        "safety::drain::",
        "about Nodes, pods and volumes of simulated workload clusters",
    ),
];

/// Tests of a served suite that every share has: suite, prefix of the names, and why.
const ALWAYS: &[(&str, &str, &str)] = &[
    (
        "testkit",
        "kubeadm::a_control_plane_goes_through_every_size_and_two_minor_versions",
        "the way that most clusters go: every size, and upgrades",
    ),
    (
        "testkit",
        "authorities::",
        "an interrupted rotation may leave a cluster without access",
    ),
    (
        "testkit",
        "safety::replaced::",
        "a wrong replacement costs etcd its quorum",
    ),
];

/// The variable that chooses what a run tries: see `windlass_testkit::seeds`.
const SEED: &str = "WINDLASS_SEED";

/// The suite whose tests mainly wait, for grace periods and for whole clusters: several times as many run at a time as there are cores.
const PATIENT: &str = "testkit";

/// How many tests of a program run at a time, for each core. Each test on a real server has processes of its own: with more of them at
/// a time more are started, which costs more than is won. `RUST_TEST_THREADS` is not asked, as cargo sets it for this process.
const fn tests_per_core(is_patient: bool, server: Server) -> usize {
    match (server, is_patient) {
        (Server::Real, true) | (Server::Embedded | Server::Socket, false) => 2,
        (Server::Real, false) => 1,
        (Server::Embedded | Server::Socket, true) => 5,
    }
}

/// The tests to run, and how.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The API server that tests run on.
    #[arg(long, value_enum, default_value_t = Server::Embedded)]
    server: Server,
    /// How many test programs run at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
    /// How many tests of a program run at a time; by server and number of cores without.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    threads: Option<u8>,
    /// Run one of this many tests of each suite, chosen by `WINDLASS_SEED`, where it is known which tests have a server.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    share: u8,
    /// Parts of the names of programs, such as `core-topology`; all without.
    only: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Server {
    /// Embedded, in the process of the test.
    Embedded,
    /// Embedded, over TLS.
    Socket,
    /// kube-apiserver with etcd and kube-controller-manager.
    Real,
}

impl Server {
    fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Socket => "socket",
            Self::Real => "real",
        }
    }
}

/// A test program that cargo built.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    /// `core it`.
    name: String,
    /// The folder of the crate, in which its tests run.
    folder: PathBuf,
    file: PathBuf,
    /// Whether it has only tests.
    is_suite: bool,
    /// Arguments that select tests.
    filters: Vec<String>,
}

impl Program {
    /// The folder's name of its crate.
    fn package(&self) -> &str {
        self.name.split(' ').next().unwrap_or_default()
    }

    /// Where it comes among programs whose duration is not known.
    fn rank(&self) -> usize {
        let place = SERVED.iter().position(|(suite, _)| *suite == self.package());
        if self.is_suite {
            place.unwrap_or(SERVED.len())
        } else {
            usize::MAX
        }
    }
}

/// The result of a program.
struct Outcome {
    name: String,
    took: Duration,
    passed: usize,
    went_well: bool,
    output: String,
}

/// Runs the tests. Returns false if one failed.
pub(crate) fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let folder = cargo::target(root).join("suites");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: cannot be made: {error}", folder.display()))?;
    let folder = fs::canonicalize(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let served = folder.join("served");
    let mut programs = programs(&build(root)?, &options.only);
    if options.server == Server::Embedded {
        if options.only.is_empty() {
            let _ = fs::remove_dir_all(&served);
        }
        fs::create_dir_all(&served).map_err(|error| format!("{}: cannot be made: {error}", served.display()))?;
    } else {
        if options.only.is_empty() {
            check_tables(&programs, &served)?;
        }
        let ours = if options.only.is_empty() { OURS } else { &[] };
        let share = Share::new(options.share, env::var(SEED).ok().as_deref())?;
        programs = on_servers(programs, &served, ours, share)?;
        anstream::println!("suites that have no other server:");
        for (suite, why) in UNSERVED {
            anstream::println!("  {suite}: {why}");
        }
        for (suite, prefix, why) in ours {
            anstream::println!("  {suite} {prefix}: {why}");
        }
    }
    if programs.is_empty() {
        return Err(format!(
            "no test program has one of these names: {}",
            options.only.join(", ")
        ));
    }
    let times = Times::read(&folder.join(format!("{}.tsv", options.server.name())));
    programs.sort_by_key(|program| (std::cmp::Reverse(times.of(&program.name)), program.rank()));
    let outcomes = run_all(programs, options, &folder, &served)?;
    times.write(&outcomes)?;
    let doc = options.server != Server::Embedded || !options.only.is_empty() || doc_tests(root)?;
    Ok(summary(&outcomes) && doc)
}

/// Cargo's output while it builds all test programs.
fn build(root: &Path) -> Result<String, String> {
    let words = [
        "test",
        "--workspace",
        "--no-run",
        "--message-format",
        "json-render-diagnostics",
    ];
    let mut command = cargo::cargo(root, &words);
    let failed = |error| format!("cannot run cargo: {error}");
    let begun = Instant::now();
    let out = command.stderr(Stdio::inherit()).output().map_err(failed)?;
    if !out.status.success() {
        return Err("the tests cannot be built".to_owned());
    }
    anstream::println!("built in {} s", begun.elapsed().as_secs());
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

fn programs(messages: &str, only: &[String]) -> Vec<Program> {
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        let file = message["executable"].as_str()?;
        let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let (kind, target) = (
            message["target"]["kind"][0].as_str()?,
            message["target"]["name"].as_str()?,
        );
        let what = if kind == "test" { target } else { kind };
        is_test.then(|| Program {
            name: format!("{} {what}", folder.file_name().unwrap_or_default().to_string_lossy()),
            folder: folder.to_owned(),
            file: file.into(),
            is_suite: kind == "test",
            filters: Vec::new(),
        })
    };
    let is_meant = |program: &Program| only.is_empty() || only.iter().any(|part| program.name.contains(part.as_str()));
    messages.filter_map(program).filter(is_meant).collect()
}

/// Fails for a table that names no suite, and for a suite that used a server and is in no table.
fn check_tables(programs: &[Program], served: &Path) -> Result<(), String> {
    let suites: BTreeSet<&str> = programs
        .iter()
        .filter(|program| program.is_suite)
        .map(Program::package)
        .collect();
    let tables = || SERVED.iter().chain(UNSERVED).map(|(suite, _)| *suite);
    if let Some(gone) = tables().find(|suite| !suites.contains(suite)) {
        return Err(format!("xtask/src/suites.rs names {gone}, which has no suite"));
    }
    let is_noted = |program: &&Program| served.join(&program.name).is_file();
    let mut noted = programs.iter().filter(is_noted).map(Program::package);
    match noted.find(|suite| !tables().any(|known| known == *suite)) {
        Some(suite) => Err(format!(
            "{suite} has tests with a server: name it in a table of xtask/src/suites.rs"
        )),
        None => Ok(()),
    }
}

/// Which part of the tests of a suite runs: each test is in exactly one of `of` parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    of: u64,
    part: u64,
}

impl Share {
    /// The part that a seed chooses; without a seed the first one.
    fn new(of: u8, seed: Option<&str>) -> Result<Self, String> {
        let seed = match seed {
            Some(text) => text.parse().map_err(|error| format!("{SEED}={text}: {error}"))?,
            None => 0,
        };
        let of = u64::from(of);
        Ok(Self { of, part: seed % of })
    }

    /// Whether a test is in it: by its name, so that a new test moves no other.
    fn has(self, test: &str) -> bool {
        let digest = Sha256::digest(test);
        let number = digest.iter().fold(0_u64, |all, byte| (all << 8) | u64::from(*byte));
        number % self.of == self.part
    }
}

/// The suites that run on other servers, with their tests that use a server, without those of `ours`.
fn on_servers(
    programs: Vec<Program>,
    served: &Path,
    ours: &[(&str, &str, &str)],
    share: Share,
) -> Result<Vec<Program>, String> {
    let mut found = Vec::new();
    for mut program in programs.into_iter().filter(|program| program.is_suite) {
        let Some((_, part)) = SERVED.iter().find(|(suite, _)| *suite == program.package()) else {
            continue;
        };
        let noted = fs::read_to_string(served.join(&program.name)).unwrap_or_default();
        let noted: BTreeSet<&str> = noted.lines().filter(|test| test.starts_with(part)).collect();
        let (ours, always) = (prefixes(ours, &program), prefixes(ALWAYS, &program));
        program.filters = if noted.is_empty() {
            unknown(part, &ours)
        } else {
            // A recorded name that is not a test would leave out the test that used the server.
            let all = list(&program)?;
            if let Some(unknown) = noted.iter().find(|test| !all.contains(**test)) {
                return Err(format!("{}: {unknown} had a server and is no test", program.name));
            }
            exact(&noted, &ours, &always, share).map_err(|why| format!("{}: {why}", program.name))?
        };
        // Without a name the program would run all of its tests.
        if program.filters != ["--exact"] {
            found.push(program);
        }
    }
    Ok(found)
}

/// The prefixes that a table has for a program.
fn prefixes<'a>(table: &[(&str, &'a str, &str)], program: &Program) -> Vec<&'a str> {
    let of = table.iter().filter(|(suite, _, _)| *suite == program.package());
    of.map(|(_, prefix, _)| *prefix).collect()
}

/// Arguments for all tests with a prefix but those of ours, if it is not known which use a server.
fn unknown(part: &str, ours: &[&str]) -> Vec<String> {
    let part = Some(part).filter(|part| !part.is_empty());
    let skipped = ours.iter().flat_map(|prefix| ["--skip", prefix]);
    part.into_iter().chain(skipped).map(str::to_owned).collect()
}

/// Arguments for these tests but ours, as far as they are in the share or in every one. Fails for a prefix that no test has.
fn exact(noted: &BTreeSet<&str>, ours: &[&str], always: &[&str], share: Share) -> Result<Vec<String>, String> {
    let is_of = |test: &str, prefix: &&str| test.starts_with(*prefix);
    let mut named = ours.iter().chain(always);
    if let Some(gone) = named.find(|prefix| !noted.iter().any(|test| is_of(test, prefix))) {
        return Err(format!(
            "xtask/src/suites.rs names {gone}, which no test with a server has"
        ));
    }
    let is_in = |prefixes: &[&str], test: &str| prefixes.iter().any(|prefix| is_of(test, prefix));
    let is_due = |test: &str| share.has(test) || is_in(always, test);
    let chosen = noted.iter().filter(|test| !is_in(ours, test) && is_due(test));
    Ok(std::iter::once(&"--exact")
        .chain(chosen)
        .map(|argument| (*argument).to_owned())
        .collect())
}

/// The names of a program's tests.
fn list(program: &Program) -> Result<BTreeSet<String>, String> {
    let out = Command::new(&program.file).arg("--list").output();
    let out = out.map_err(|error| format!("{}: {error}", program.file.display()))?;
    let text = String::from_utf8_lossy(&out.stdout);
    Ok(text
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect())
}

fn run_all(programs: Vec<Program>, options: &Options, folder: &Path, served: &Path) -> Result<Vec<Outcome>, String> {
    let queue = Mutex::new(programs.into_iter());
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    let done = Mutex::new(Vec::new());
    let work = |_| -> Result<(), String> {
        while let Some(program) = next() {
            let outcome = run_one(&program, options, folder, served)?;
            tell(&outcome);
            if let Ok(mut done) = done.lock() {
                done.push(outcome);
            }
        }
        Ok(())
    };
    let results: Vec<Result<(), String>> = thread::scope(|scope| {
        let running: Vec<_> = (0..options.jobs).map(|job| scope.spawn(move || work(job))).collect();
        let ended = running
            .into_iter()
            .map(|job| job.join().map_err(|_| "a job of suites ended by a panic".to_owned())?);
        ended.collect()
    });
    results.into_iter().collect::<Result<(), String>>()?;
    done.into_inner().map_err(|error| error.to_string())
}

fn run_one(program: &Program, options: &Options, folder: &Path, served: &Path) -> Result<Outcome, String> {
    let server = options.server;
    let log = folder.join(format!("{}-{}.log", program.name.replace(' ', "-"), server.name()));
    let failed = |error| format!("{}: {error}", log.display());
    let out = File::create(&log).map_err(failed)?;
    let mut command = Command::new(&program.file);
    command
        .args(&program.filters)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("WINDLASS_TEST_SERVER", server.name())
        .stdin(Stdio::null())
        .stderr(out.try_clone().map_err(failed)?)
        .stdout(out);
    if server == Server::Embedded {
        command.env("WINDLASS_TESTS_WITH_SERVER", served.join(&program.name));
    }
    let cores = thread::available_parallelism().map_or(2, NonZero::get);
    let threads = cores * tests_per_core(program.package() == PATIENT, server);
    let threads = options.threads.map_or(threads, usize::from);
    command.env("RUST_TEST_THREADS", threads.to_string());
    let begun = Instant::now();
    let status = command.status();
    let status = status.map_err(|error| format!("{}: cannot be run: {error}", program.file.display()))?;
    let output = fs::read(&log).map_err(failed)?;
    let output = String::from_utf8_lossy(&output).into_owned();
    let passed = passed(&output);
    Ok(Outcome {
        name: program.name.clone(),
        took: begun.elapsed(),
        passed,
        // A suite without tests proves nothing; a library without unit tests is normal.
        went_well: status.success() && (passed > 0 || !program.is_suite),
        output,
    })
}

/// The number of passed tests in the output of the test harness.
fn passed(output: &str) -> usize {
    let results = output.lines().filter_map(|line| line.strip_prefix("test result: "));
    let counts = results.filter_map(|result| result.split(' ').nth(1)?.parse::<usize>().ok());
    counts.sum()
}

fn tell(outcome: &Outcome) {
    let mut text = String::new();
    if !outcome.went_well {
        text.push_str(&outcome.output);
    }
    for line in outcome.output.lines().filter(|line| line.starts_with("left out")) {
        let _ = writeln!(text, "{line}");
    }
    let state = match outcome {
        Outcome { went_well: true, .. } => "ok",
        Outcome { passed: 0, .. } => "FAILED, no test ran",
        _ => "FAILED",
    };
    let _ = writeln!(
        text,
        "{:>6.1} s  {:<28} {:>4} tests  {state}",
        outcome.took.as_secs_f64(),
        outcome.name,
        outcome.passed
    );
    anstream::print!("{text}");
}

/// Runs the documentation tests. Returns false if one failed.
fn doc_tests(root: &Path) -> Result<bool, String> {
    let begun = Instant::now();
    let mut command = cargo::cargo(root, &["test", "--quiet", "--workspace", "--doc"]);
    let out = command.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    let output = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    let outcome = Outcome {
        name: "documentation".to_owned(),
        took: begun.elapsed(),
        passed: passed(&output),
        went_well: out.status.success(),
        output: output.into_owned(),
    };
    tell(&outcome);
    Ok(outcome.went_well)
}

/// Prints the results. Returns whether all succeeded.
fn summary(outcomes: &[Outcome]) -> bool {
    let passed: usize = outcomes.iter().map(|outcome| outcome.passed).sum();
    let left_out = outcomes.iter().flat_map(|outcome| outcome.output.lines());
    let left_out = left_out.filter(|line| line.starts_with("left out")).count();
    let failed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| !outcome.went_well)
        .map(|outcome| outcome.name.as_str())
        .collect();
    anstream::println!(
        "{} programs, {passed} tests passed, {left_out} of them left out",
        outcomes.len()
    );
    if !failed.is_empty() {
        anstream::println!("failed: {}", failed.join(", "));
    }
    failed.is_empty()
}

/// The duration of each program in the last run; unknown ones come first.
struct Times {
    file: PathBuf,
    known: BTreeMap<String, u64>,
}

impl Times {
    fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let known = lines.filter_map(|(name, took)| Some((name.to_owned(), took.parse().ok()?)));
        Self {
            file: file.to_owned(),
            known: known.collect(),
        }
    }

    /// In milliseconds.
    fn of(&self, program: &str) -> u64 {
        self.known.get(program).copied().unwrap_or(u64::MAX)
    }

    fn write(mut self, outcomes: &[Outcome]) -> Result<(), String> {
        for outcome in outcomes {
            let took = u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX);
            self.known.insert(outcome.name.clone(), took);
        }
        let text = self.known.iter().fold(String::new(), |mut text, (name, took)| {
            let _ = writeln!(text, "{name}\t{took}");
            text
        });
        fs::write(&self.file, text).map_err(|error| format!("{}: cannot be written: {error}", self.file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_those_that_cargo_names() {
        let message = |name: &str, kind: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/core-controllers/Cargo.toml","target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{test}}},"executable":"/t/{name}"}}"#
            )
        };
        let messages = [
            message("it", "test", true),
            message("windlass_core_controllers", "lib", true),
            message("windlass", "bin", false),
        ];
        let found = programs(&messages.join("\n"), &[]);
        let names: Vec<(&str, bool)> = found
            .iter()
            .map(|found| (found.name.as_str(), found.is_suite))
            .collect();
        assert_eq!(names, [("core-controllers it", true), ("core-controllers lib", false)]);
        assert_eq!(programs(&messages.join("\n"), &["lib".to_owned()]).len(), 1);
    }

    #[test]
    fn passed_tests_are_counted() {
        assert_eq!(
            passed("running 2 tests\ntest result: ok. 2 passed; 0 failed;\ntest result: FAILED. 3 passed;\n"),
            5
        );
        assert_eq!(passed("test result: ok. 0 passed; 0 failed;\n"), 0);
    }

    #[test]
    fn tables_name_suites_and_all_that_have_a_server() {
        let folder = std::env::temp_dir().join(format!("windlass-suites-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let suite = |name: &str| Program {
            name: format!("{name} it"),
            folder: PathBuf::new(),
            file: PathBuf::new(),
            is_suite: true,
            filters: Vec::new(),
        };
        let mut all: Vec<Program> = SERVED.iter().chain(UNSERVED).map(|(name, _)| suite(name)).collect();
        all.push(suite("new"));
        let before = check_tables(&all, &folder);
        fs::write(folder.join("new it"), "a\n").unwrap();
        let after = check_tables(&all, &folder);
        let without = check_tables(&all[1..], &folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(before, Ok(()));
        assert!(after.is_err_and(|why| why.starts_with("new has tests")));
        assert!(without.is_err_and(|why| why.contains("operator")));
    }

    #[test]
    fn tests_about_simulated_clusters_run_on_the_embedded_server_only() {
        let noted = BTreeSet::from(["life::a", "safety::trouble::b", "safety::troubles"]);
        let all = Share::new(1, Some("7")).unwrap();
        assert_eq!(
            exact(&noted, &["safety::trouble::"], &[], all).unwrap(),
            ["--exact", "life::a", "safety::troubles"]
        );
        assert!(exact(&noted, &["safety::drain::"], &[], all).is_err());
        assert_eq!(unknown("", &["safety::drain::"]), ["--skip", "safety::drain::"]);
        assert_eq!(unknown("guide::", &[]), ["guide::"]);
    }

    #[test]
    fn some_tests_are_in_every_share() {
        let noted = BTreeSet::from(["rotated::a", "rotated::b", "rotated::ours::c", "life::d"]);
        let mut shares_of_others = 0;
        for seed in ["0", "1", "2"] {
            let share = Share::new(3, Some(seed)).unwrap();
            let chosen = exact(&noted, &["rotated::ours::"], &["rotated::"], share).unwrap();
            assert_eq!(chosen[0], "--exact");
            let chosen: BTreeSet<&str> = chosen[1..].iter().map(String::as_str).collect();
            assert!(chosen.is_superset(&BTreeSet::from(["rotated::a", "rotated::b"])));
            assert!(
                !chosen.contains("rotated::ours::c"),
                "it runs on the embedded server only"
            );
            shares_of_others += usize::from(chosen.contains("life::d"));
        }
        assert_eq!(shares_of_others, 1);
        let gone = exact(&noted, &[], &["renamed::"], Share { of: 1, part: 0 });
        assert!(gone.is_err_and(|why| why.contains("renamed::")));
    }

    #[test]
    fn tables_of_tests_name_served_suites() {
        for (suite, prefix, _) in OURS.iter().chain(ALWAYS) {
            assert!(SERVED.iter().any(|(served, _)| served == suite), "{suite} {prefix}");
        }
    }

    #[test]
    fn every_test_is_in_the_share_of_one_seed() {
        let parts: Vec<Share> = ["0", "7", "14"].map(|seed| Share::new(3, Some(seed)).unwrap()).into();
        let mut sizes = [0; 3];
        for test in (0..300).map(|number| format!("suite::test_{number}")) {
            let in_them: Vec<usize> = (0..3).filter(|part| parts[*part].has(&test)).collect();
            let [part] = in_them[..] else {
                panic!("{test} is in {in_them:?}")
            };
            sizes[part] += 1;
        }
        assert!(sizes.iter().all(|size| *size > 60), "{sizes:?}");
        assert_eq!(Share::new(2, None), Ok(Share { of: 2, part: 0 }));
        assert!(Share::new(2, Some("x")).is_err_and(|why| why.contains("WINDLASS_SEED=x")));
    }

    #[test]
    fn programs_that_are_not_known_come_first() {
        let times = Times {
            file: PathBuf::new(),
            known: BTreeMap::from([("a it".to_owned(), 5)]),
        };
        assert!(times.of("b it") > times.of("a it"));
    }
}
