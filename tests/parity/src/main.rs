//! Plays the cases, shows differences, records what the real server answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use windlass_judge::{Judge, Options};
use windlass_parity::allow::Allowed;
use windlass_parity::case::{self, Topic};
use windlass_parity::recording::{self, Answers};
use windlass_parity::run::{Played, Report, Side, all, compare, recorded};
use windlass_parity::target::Target;

#[derive(Debug, Parser)]
#[command(about = "The same requests to the embedded API server and to kube-apiserver")]
struct Args {
    /// The kubeconfig of the real server, as its administrator; without it one is started (`cargo xtask tools`).
    #[arg(long, global = true)]
    real: Option<PathBuf>,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Plays cases against both servers, and prints where they differ.
    Show {
        /// Parts of AREA/TOPIC; all without.
        filters: Vec<String>,
    },
    /// Plays cases against the real server, and keeps its answers.
    Record {
        /// Parts of AREA/TOPIC; all without.
        filters: Vec<String>,
    },
    /// Plays cases against the real server, and fails where a recording says something else.
    Check {
        /// Parts of AREA/TOPIC; all without.
        filters: Vec<String>,
    },
    /// Plays cases against the embedded server, and fails where it answers otherwise than was recorded.
    Ours {
        /// Parts of AREA/TOPIC; all without.
        filters: Vec<String>,
    },
}

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return told(Err(error.to_string())),
    };
    told(runtime.block_on(run(Args::parse())))
}

fn told(outcome: Result<bool, String>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            anstream::eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What a server answered, by topic.
type All = BTreeMap<String, Played>;

async fn run(args: Args) -> Result<bool, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let allowed = Allowed::read(&folder.join("allow.yaml"))?;
    let (Task::Show { filters } | Task::Record { filters } | Task::Check { filters } | Task::Ours { filters }) =
        &args.task;
    let topics = case::load(&folder.join("cases"), filters)?;
    let real: All = match (&args.task, &args.real) {
        (Task::Ours { .. }, _) => All::new(),
        (_, Some(kubeconfig)) => all(&Target::of(kubeconfig).await?, &topics, false).await,
        (_, None) => {
            let judge = Judge::start(&Options::default()).await.map_err(|e| e.to_string())?;
            all(&Target::of(&judge.kubeconfig_path()).await?, &topics, false).await
        }
    };
    let ours: All = match args.task {
        Task::Show { .. } | Task::Ours { .. } => all(&Target::embedded().await?, &topics, true).await,
        Task::Record { .. } | Task::Check { .. } => All::new(),
    };
    let mut report = Report::default();
    let nothing = Played::new();
    for topic in &topics {
        let (real, ours) = (real.get(&topic.name), ours.get(&topic.name));
        let answered = real.unwrap_or(&nothing);
        let real = Side::new("real", answered);
        let ours = Side::new("ours", ours.unwrap_or(&nothing));
        let kept = || recording::read(&topic.recording, &topic.cases).map(recorded);
        match args.task {
            Task::Show { .. } => report.add(compare(topic, [real, ours], &allowed)),
            Task::Ours { .. } => report.add(compare(topic, [Side::new("recorded", &kept()?), ours], &allowed)),
            Task::Check { .. } => {
                report.add(compare(
                    topic,
                    [real, Side::new("recorded", &kept()?)],
                    &Allowed::default(),
                ));
            }
            Task::Record { .. } => report.add(record(topic, answered)?),
        }
    }
    for failure in &report.failures {
        anstream::println!("{failure}");
    }
    anstream::println!(
        "{} cases, {} differences that are meant, {} cases fail",
        report.cases,
        report.allowed,
        report.failures.len()
    );
    Ok(report.failures.is_empty())
}

/// Writes down what was answered to a topic; what was not answered is a failure.
fn record(topic: &Topic, played: &Played) -> Result<Report, String> {
    let mut report = Report {
        cases: topic.cases.len(),
        ..Report::default()
    };
    let mut answers = Answers::new();
    for (claim, played) in played {
        match played {
            Ok(played) => {
                answers.insert(claim.clone(), played.clone());
            }
            Err(error) => report.failures.push(format!("{}: {claim}\n  {error}\n", topic.name)),
        }
    }
    recording::write(&topic.recording, &topic.cases, &answers)?;
    Ok(report)
}
