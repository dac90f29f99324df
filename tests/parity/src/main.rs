//! Plays the cases, shows differences, records what the real server answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use windlass_judge::{Judge, Options};
use windlass_parity::allow::Allowed;
use windlass_parity::case;
use windlass_parity::recording::{self, Answers};
use windlass_parity::run::{Report, all, compare, recorded};
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

async fn run(args: Args) -> Result<bool, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let allowed = Allowed::read(&folder.join("allow.yaml"))?;
    let (Task::Show { filters } | Task::Record { filters } | Task::Check { filters } | Task::Ours { filters }) =
        &args.task;
    let topics = case::load(&folder.join("cases"), filters)?;
    let more = BTreeMap::new();
    let real = match (&args.task, &args.real) {
        (Task::Ours { .. }, _) => None,
        (_, Some(kubeconfig)) => Some(all(&Target::of(kubeconfig).await?, &topics, &more, false).await),
        (_, None) => {
            let judge = Judge::start(&Options::default()).await.map_err(|e| e.to_string())?;
            Some(all(&Target::of(&judge.kubeconfig_path()).await?, &topics, &more, false).await)
        }
    };
    let ours = match args.task {
        Task::Show { .. } | Task::Ours { .. } => Some(all(&Target::embedded().await?, &topics, &more, true).await),
        _ => None,
    };
    let mut report = Report::default();
    let nothing = BTreeMap::new();
    for topic in &topics {
        let from =
            |played: Option<&BTreeMap<_, _>>| played.and_then(|all| all.get(&topic.name)).unwrap_or(&nothing).clone();
        match args.task {
            Task::Show { .. } => {
                report.add(compare(topic, &from(real.as_ref()), &from(ours.as_ref()), &allowed));
            }
            Task::Ours { .. } => {
                let kept = recorded(recording::read(&topic.recording)?);
                report.add(compare(topic, &kept, &from(ours.as_ref()), &allowed));
            }
            Task::Check { .. } => {
                let kept = recorded(recording::read(&topic.recording)?);
                report.add(compare(topic, &from(real.as_ref()), &kept, &Allowed::default()));
            }
            Task::Record { .. } => {
                let mut answers = Answers::new();
                report.cases += topic.cases.len();
                for (claim, played) in from(real.as_ref()) {
                    match played {
                        Ok(played) => {
                            answers.insert(claim, played);
                        }
                        Err(error) => report.failures.push(format!("{}: {claim}\n  {error}\n", topic.name)),
                    }
                }
                recording::write(&topic.recording, &topic.cases, &answers)?;
            }
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
