//! Development tasks.

mod bench;
mod builtin;
mod cargo;
mod change_over;
mod compat;
mod conversions;
mod dist;
mod envtest;
mod etcd;
mod faults;
mod r#gen;
mod pipeline;
mod providers;
mod recorded;
mod reference;
mod rows;
mod sources;
mod suites;
mod templates;
mod tidy;
mod tools;
mod vectors;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

#[derive(Debug, Parser)]
#[command(about = "Development tasks of Windlass")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Write the files that are derived from the code: CRDs and docs/reference
    Gen {
        /// Only report stale files, and fail if there are any.
        #[arg(long)]
        check: bool,
        /// Also read the schemas and columns of built-in kinds from a running kube-apiserver: its kubeconfig.
        #[arg(long, value_name = "KUBECONFIG", conflicts_with = "check")]
        server: Option<PathBuf>,
    },
    /// Run a command with a real API server of its own (`cargo xtask tools`): etcd, kube-apiserver, kube-controller-manager.
    Envtest {
        /// The command and its arguments; `KUBECONFIG` names the administrator's kubeconfig.
        #[arg(
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "COMMAND"
        )]
        command: Vec<String>,
    },
    /// Generate the messages of the etcd API from `crates/etcd/proto/etcd.proto`.
    Etcd {
        /// Only report whether the generated file is stale, and fail if it is.
        #[arg(long)]
        check: bool,
    },
    /// Store recorded management clusters of Cluster API on an API server (`WINDLASS_TEST_SERVER`), start our controllers, and report what they
    /// change.
    ChangeOver {
        /// The folder with recorded objects, one folder per step.
        dir: PathBuf,
        /// Only this step.
        #[arg(long, value_name = "STEP", conflicts_with = "pin")]
        step: Option<String>,
        /// Record the values of the allowed differences.
        #[arg(long)]
        pin: bool,
    },
    /// Compare the CRDs with the field tables in a folder.
    Compat {
        /// The folder with the tables (`GROUP_KIND_VERSION.tsv`).
        dir: PathBuf,
    },
    /// Measure times, memory and writes; prints figures beside their targets, asserts nothing.
    #[command(subcommand)]
    Bench(Bench),
    /// Compare conversions between API versions with those that Cluster API made of the same objects.
    Conversions {
        /// The gzipped file with a conversion in each line.
        file: PathBuf,
    },
    /// Play recorded steps and compare the objects of our controllers with those of Cluster API's.
    Recorded {
        /// The folder with recorded objects, one folder per step.
        dir: PathBuf,
        /// Write our objects to this folder, one file per step.
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
        /// Record the values of the allowed differences.
        #[arg(long)]
        pin: bool,
    },
    /// Install, repair, upgrade and remove real providers with the operator.
    Providers {
        /// The folder with their files: `TYPE-NAME/VERSION/` with a components file and `metadata.yaml`.
        dir: PathBuf,
    },
    /// Report which rows of the requirement lists are named by which tests, and fail where a count of `xtask/rows.tsv` went down.
    Rows {
        /// The folder with the lists, one Markdown file each.
        dir: PathBuf,
        /// Print each row with its tests.
        #[arg(long)]
        list: bool,
        /// Write the present counts to xtask/rows.tsv.
        #[arg(long)]
        update: bool,
    },
    /// Build the program as it is shipped, and write it with a list of its crates (CycloneDX) and checksums to `target/dist-files`.
    Dist(dist::Options),
    /// Run the suites of faults for long: lost connections, restarts, lost and restored objects, and the simulations of control planes
    /// with many seeds.
    Faults(faults::Options),
    /// Kill a server under load repeatedly, and check that acknowledged writes survive.
    Crash {
        /// The number of rounds.
        #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
    },
    /// Run the tests of the workspace, test programs side by side, on one kind of API server.
    Suites(suites::Options),
    /// Check the rules that keep the workspace in shape.
    Tidy {
        /// First write lower counts of avoided words to xtask/words-left.tsv.
        #[arg(long)]
        update: bool,
    },
    /// Render the templates of the corpus with Go, and record the output.
    Templates {
        /// Only report differences from Go's output, and fail if there are any; succeeds with a message without Go.
        #[arg(long)]
        check: bool,
    },
    /// Compute the test vectors of schemas, patches and applies with Kubernetes' libraries, and record the results.
    Vectors {
        /// Only report differences from their results, and fail if there are any; succeeds with a message without Go.
        #[arg(long)]
        check: bool,
    },
    /// Build the programs that tests compare with (etcd, kube-apiserver and so on) into `target/tools`; needs Go.
    Tools(tools::Options),
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// `windlass demo` and `windlass up`, in a release build.
    Demo(bench::Options),
    /// How long builds take, clean and after a change, and how large the program is.
    Build(bench::build::Options),
    /// The same load on `windlass apiserver` and on kube-apiserver with etcd (`cargo xtask tools`), in release builds.
    Apiserver {
        /// Options of the measuring program (`--help` among them)
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// The store alone, in a release build: commits, memory and start with 100,000 objects of 4 KiB.
    Store {
        /// Where to make the data folders, which decides what disk is measured [default: the temporary folder]
        dir: Option<PathBuf>,
    },
    /// Ten providers installed by `windlass up`, in a release build: time, memory, and requests once all is done.
    Operator(bench::operator::Options),
    /// One chart on 200 simulated clusters, in a release build: time, helm processes, memory, and requests once all is done.
    Addons(bench::addons::Options),
    /// Requests that are made to cost much, in a release build: the time until `/readyz` answers meanwhile, and memory.
    Hostile(bench::hostile::Options),
    /// Conversion between API versions, in a release build: of single objects each way, of lists, and of changes for watches.
    Conversion {
        /// How many objects the lists have.
        #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
    },
    /// Admission of writes with many Clusters, in process and by the webhook server, in a release build: the time of each, and reviews per
    /// second of one core.
    Admission {
        /// How many Clusters; a thousand of them are of the class that is changed.
        #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(5001..))]
        count: u32,
    },
    /// The core controllers with a fleet of clusters, in a release build: reconciles and writes per Machine, requests once all is done,
    /// allocations of a settled reconcile, memory of a drain
    Core {
        /// How many clusters of three machines.
        #[arg(long, value_name = "N", default_value_t = 100)]
        count: u32,
    },
    /// Managed topologies, in a release build: the time to compute the objects of a Cluster and a change of a class of 1,000 Clusters, allocations
    /// and requests of a settled topology
    Topology {
        /// How many settled clusters.
        #[arg(long, value_name = "N", default_value_t = 100)]
        count: u32,
    },
    /// Bootstrap data of one machine, and many control planes of three machines with keys of either algorithm, in release builds.
    Kubeadm(bench::kubeadm::Options),
    /// Memory of idle simulated workload clusters, in a release build.
    Clusters {
        /// How many clusters of 3+3 nodes.
        #[arg(long, value_name = "N", default_value_t = 200)]
        count: u32,
    },
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let logs = EnvFilter::builder()
        .with_default_directive(LevelFilter::OFF.into())
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(logs)
        .with_writer(std::io::stderr)
        .init();
    match run(&root, Args::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            anstream::eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one task; false means that it found something wrong and said so.
/// Prints a report, and hands on whether it is good.
fn shown(text: &str, good: bool) -> bool {
    anstream::print!("{text}");
    good
}

fn run(root: &Path, task: Task) -> Result<bool, String> {
    match task {
        Task::Gen { check, server } => {
            if let Some(kubeconfig) = server {
                anstream::println!("{}", builtin::run(root, &kubeconfig)?);
            }
            let report = r#gen::run(root, check)?;
            for path in &report.stale {
                anstream::println!(
                    "{path}: {}",
                    if check {
                        "stale; run `cargo xtask gen`"
                    } else {
                        "written"
                    }
                );
            }
            anstream::println!("{} files, {} stale", report.files, report.stale.len());
            Ok(!check || report.stale.is_empty())
        }
        Task::Envtest { command } => envtest::run(&command),
        Task::Etcd { check } => {
            let stale = etcd::run(root, check)?;
            if let Some(path) = &stale {
                let state = if check {
                    "stale; run `cargo xtask etcd`"
                } else {
                    "written"
                };
                anstream::println!("{}: {state}", path.display());
            }
            Ok(!check || stale.is_none())
        }
        Task::ChangeOver { dir, step, pin } => {
            change_over::run(root, &dir, step.as_deref(), pin).map(|outcome| shown(&outcome.text, outcome.good))
        }
        Task::Compat { dir } => compat::run(root, &dir).map(|outcome| shown(&outcome.text, outcome.good)),
        Task::Conversions { file } => conversions::run(&file).map(|outcome| shown(&outcome.text, outcome.good)),
        Task::Bench(bench) => run_bench(root, bench),
        Task::Recorded { dir, keep, pin } => {
            recorded::run(root, &dir, keep.as_deref(), pin).map(|outcome| shown(&outcome.text, outcome.good))
        }
        Task::Providers { dir } => providers::run(&dir).map(|outcome| shown(&outcome.text, outcome.good)),
        Task::Tools(options) => {
            tools::run(root, &options)?;
            Ok(true)
        }
        Task::Templates { check } => {
            let Some(report) = templates::run(root, check)? else {
                return Ok(true);
            };
            let state = if check {
                "not what Go gives; run `cargo xtask templates`"
            } else {
                "written"
            };
            for path in &report.stale {
                anstream::println!("{path}: {state}");
            }
            anstream::println!("{} cases, {} files stale", report.cases, report.stale.len());
            Ok(!check || report.stale.is_empty())
        }
        Task::Vectors { check } => {
            let Some(stale) = vectors::run(root, check)? else {
                return Ok(true);
            };
            let state = if check {
                "not what the libraries give; run `cargo xtask vectors`"
            } else {
                "written"
            };
            for file in &stale {
                anstream::println!("{file}: {state}");
            }
            anstream::println!("{} files stale", stale.len());
            Ok(!check || stale.is_empty())
        }
        Task::Dist(options) => {
            anstream::println!("{}", dist::run(root, &options)?.display());
            Ok(true)
        }
        Task::Faults(options) => faults::run(root, &options),
        Task::Crash { rounds } => crash(root, rounds),
        Task::Suites(options) => suites::run(root, &options),
        Task::Tidy { update } => {
            if update {
                words::check(root, true)?;
            }
            let findings = tidy::check(root)?;
            for finding in &findings {
                anstream::println!("{}: {}", finding.place, finding.what);
            }
            anstream::println!("{} findings", findings.len());
            Ok(findings.is_empty())
        }
        Task::Rows { dir, list, update } => {
            rows::run(root, &dir, list, update).map(|outcome| shown(&outcome.text, outcome.good))
        }
    }
}

/// Runs one benchmark; false when its program failed.
fn run_bench(root: &Path, bench: Bench) -> Result<bool, String> {
    match bench {
        Bench::Demo(options) => {
            bench::run(root, &options)?;
            Ok(true)
        }
        Bench::Build(options) => {
            bench::build::run(root, &options)?;
            Ok(true)
        }
        Bench::Apiserver { options } => bench::apiserver(root, &options),
        Bench::Store { dir } => {
            let dir = dir.unwrap_or_else(std::env::temp_dir);
            example(root, "windlass-store", "bench", &dir.display().to_string())
        }
        Bench::Addons(options) => {
            bench::addons::run(root, &options)?;
            Ok(true)
        }
        Bench::Operator(options) => {
            bench::operator::run(root, &options)?;
            Ok(true)
        }
        Bench::Hostile(options) => bench::hostile::run(root, &options),
        Bench::Admission { count } => example(root, "windlass-manager", "admission", &count.to_string()),
        Bench::Conversion { count } => example(root, "windlass-manager", "conversion", &count.to_string()),
        Bench::Core { count } => example(root, "windlass-testkit", "core", &count.to_string()),
        Bench::Topology { count } => example(root, "windlass-testkit", "topology", &count.to_string()),
        Bench::Kubeadm(options) => {
            if !example(root, "windlass-kubeadm", "bootstrap_data", "")? {
                return Ok(false);
            }
            bench::kubeadm::run(root, &options)?;
            Ok(true)
        }
        Bench::Clusters { count } => example(root, "windlass-infra-dev", "clusters", &count.to_string()),
    }
}

/// Runs an example in a release build; false when it failed.
fn example(root: &Path, package: &str, name: &str, argument: &str) -> Result<bool, String> {
    let example = ["--release", "-p", package, "--example", name, "--", argument];
    cargo::run(cargo::cargo(root, &["run", "--quiet"]).args(example))
}

/// Runs the crash tests of server and store; false when one failed.
fn crash(root: &Path, rounds: u32) -> Result<bool, String> {
    for (package, test) in [("windlass", "crash::"), ("windlass-store", "killed::")] {
        let mut tests = cargo::cargo(root, &["test", "-p", package, "--test", "it", test]);
        if !cargo::run(tests.env("WINDLASS_CRASH_ROUNDS", rounds.to_string()))? {
            return Ok(false);
        }
    }
    Ok(true)
}
