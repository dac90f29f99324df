//! Plays the cases, shows differences, and records the answers of the real server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use windlass_envtest::{ControlPlane, Options};
use windlass_parity::allow::Allowed;
use windlass_parity::case::{self, Topic};
use windlass_parity::recording::{self, Answers};
use windlass_parity::run::{Played, Report, Side, all, compare, recorded};
use windlass_parity::target::Target;

#[derive(Debug, Parser)]
#[command(about = "The same requests to the embedded API server and to kube-apiserver")]
struct Args {
    /// The kubeconfig of the real server's administrator; without it, a server is started (`cargo xtask tools`).
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

/// The answers of a server, by topic.
type All = BTreeMap<String, Played>;

async fn run(args: Args) -> Result<bool, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let allowed = Allowed::read(&folder.join("allow.yaml"))?;
    let (Task::Show { filters } | Task::Record { filters } | Task::Check { filters } | Task::Ours { filters }) =
        &args.task;
    let topics = case::load(&folder.join("cases"), filters)?;
    if matches!(args.task, Task::Check { .. }) {
        let real = Real::of(args.real.as_deref()).await?;
        return Ok(tell(&check(&real.target, topics).await?));
    }
    let real: All = match args.task {
        Task::Ours { .. } => All::new(),
        _ => all(&Real::of(args.real.as_deref()).await?.target, &topics, false).await,
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
            Task::Check { .. } => {}
            Task::Record { .. } => report.add(record(topic, answered)?),
        }
    }
    Ok(tell(&report))
}

/// Prints a report. Returns whether it has no failures.
fn tell(report: &Report) -> bool {
    for failure in &report.failures {
        anstream::println!("{failure}");
    }
    anstream::println!(
        "{} cases, {} differences that are meant, {} cases fail",
        report.cases,
        report.allowed,
        report.failures.len()
    );
    report.failures.is_empty()
}

/// The real server. If it was started here, it ends with this value.
struct Real {
    target: Target,
    _control_plane: Option<ControlPlane>,
}

impl Real {
    async fn of(kubeconfig: Option<&Path>) -> Result<Self, String> {
        let (path, control_plane) = if let Some(path) = kubeconfig {
            (path.to_owned(), None)
        } else {
            let control_plane = ControlPlane::start(&Options::default())
                .await
                .map_err(|e| e.to_string())?;
            (control_plane.kubeconfig_path(), Some(control_plane))
        };
        Ok(Self {
            target: Target::of(&path).await?,
            _control_plane: control_plane,
        })
    }
}

/// The number of plays of a topic until the answers match the recording. The caches of a real server lag behind, and the order of
/// its checks is sometimes random. An answer that does not occur in this many plays counts as different.
const PLAYS: usize = 3;

/// Compares the recordings with the answers of a real server.
async fn check(target: &Target, mut topics: Vec<Topic>) -> Result<Report, String> {
    let (mut report, nothing) = (Report::default(), Played::new());
    for play in 1..=PLAYS {
        let real = all(target, &topics, false).await;
        let mut again = Vec::new();
        for topic in topics {
            let kept = recorded(recording::read(&topic.recording, &topic.cases)?);
            let answered = real.get(&topic.name).unwrap_or(&nothing);
            let sides = [Side::new("real", answered), Side::new("recorded", &kept)];
            let found = compare(&topic, sides, &Allowed::default());
            if found.failures.is_empty() || play == PLAYS {
                report.add(found);
                continue;
            }
            for failure in &found.failures {
                anstream::eprintln!("played again, as it may be chance: {failure}");
            }
            again.push(topic);
        }
        topics = again;
    }
    Ok(report)
}

/// Records the answers to a topic. A missing answer is a failure.
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
