//! `cargo xtask bench operator`: measures the installation and the idle cost of providers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use tokio::runtime::Runtime;
use tokio::time::sleep;
use windlass_testkit::Deployments;

use super::figures::{Figure, Figures, Unit};
use super::server::Up;
use super::{build, say};
use crate::providers::files::{self, Release};
use crate::providers::web::Web;
use crate::providers::{declare, operators};

/// The number of providers; those that are not in the folder are fake ones.
const PROVIDERS: usize = 10;
/// The provider with the largest files.
const LARGEST: &str = "infrastructure-aws";

/// Options of `bench operator`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// The folder with the files of real providers; without it all are look-alikes
    #[arg(long, value_name = "DIR")]
    providers: Option<PathBuf>,
    /// How often everything is installed; the figures are medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// How long the installed providers are left alone, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    idle: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), String> {
    let program = build(root, &["windlass"])?.join("windlass");
    let real = options
        .providers
        .as_deref()
        .map(files::read)
        .transpose()?
        .unwrap_or_default();
    let largest: Vec<Release> = real
        .iter()
        .filter(|release| release.label() == LARGEST)
        .cloned()
        .collect();
    let all = files::filled_up(real.clone(), PROVIDERS);
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let mut figures = Figures::of_this_machine();
    let title = format!("{PROVIDERS} providers, {} of them real", real.len());
    let (mut seconds, mut memory) = (Vec::new(), Vec::new());
    for run in 1..=options.runs {
        say(&format!("{title}, run {run} of {}", options.runs));
        let up = together(&program, &runtime)?;
        seconds.push(runtime.block_on(install(&up, &all))?);
        memory.push(up.peak_memory()?);
        if run == options.runs {
            let before = runtime.block_on(up.rest())?;
            say(&format!("left alone for {} s", options.idle));
            runtime.block_on(async { sleep(Duration::from_secs(options.idle)).await });
            let requests = (up.requests()? - before).all;
            figures.add(Figure::new(
                format!("{title}: requests in {} s, settled", options.idle),
                Unit::Count,
                vec![requests],
                Some(0.0),
            ));
        }
        up.stop()?;
    }
    figures.add(Figure::new(
        format!("{title}: installed and available"),
        Unit::Seconds,
        seconds,
        Some(10.0),
    ));
    figures.add(Figure::new(
        format!("{title}: peak memory"),
        Unit::Mebibytes,
        memory,
        None,
    ));
    if !largest.is_empty() {
        // Together with a minimal core.
        let alone = files::filled_up(largest, 2);
        let (mut alone_memory, mut both_memory) = (Vec::new(), Vec::new());
        for run in 1..=options.runs {
            say(&format!("{LARGEST}, run {run} of {}", options.runs));
            for (start, memory) in [(apart as Start, &mut alone_memory), (together, &mut both_memory)] {
                let up = start(&program, &runtime)?;
                runtime.block_on(install(&up, &alone))?;
                memory.push(up.peak_memory()?);
                up.stop()?;
            }
        }
        figures.add(Figure::new(
            format!("{LARGEST}: peak memory of the operator"),
            Unit::Mebibytes,
            alone_memory,
            Some(100.0),
        ));
        figures.add(Figure::new(
            format!("{LARGEST}: peak memory of operator and API server in one process"),
            Unit::Mebibytes,
            both_memory,
            None,
        ));
    }
    if options.json {
        anstream::println!("{}", figures.json());
    } else {
        anstream::print!("{}", figures.text());
    }
    Ok(())
}

type Start = fn(&Path, &Runtime) -> Result<Up, String>;

/// `windlass up` with the operator's controllers.
fn together(program: &Path, _: &Runtime) -> Result<Up, String> {
    Up::start(program, &only_operators())
}

/// `windlass manager` with the operator's controllers, on `windlass apiserver`.
fn apart(program: &Path, runtime: &Runtime) -> Result<Up, String> {
    Up::apart(program, runtime, &only_operators())
}

fn only_operators() -> Vec<String> {
    vec!["--controllers".to_owned(), operators().join(",")]
}

/// Installs providers, all declared at once. Returns the seconds until all are installed and available.
async fn install(up: &Up, releases: &[Release]) -> Result<f64, String> {
    let client = up.client().await?;
    let _deployments = Deployments::run(client.clone());
    let web = Web::serve(releases.iter()).await?;
    let started = Instant::now();
    for release in releases {
        declare::declare(&client, release, &web.url(release)).await?;
    }
    for release in releases {
        declare::installed(&client, release).await?;
    }
    Ok(started.elapsed().as_secs_f64())
}
