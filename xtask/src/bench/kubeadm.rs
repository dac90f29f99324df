//! `cargo xtask bench kubeadm`: many control planes of three machines, with keys of either algorithm.

use std::path::Path;

use clap::Args;
use serde_json::Value;

use super::child::{Ending, Folder, demo};
use super::figures::{Figure, Figures, Unit};
use super::{build, class, mebibytes, number, say, step};

/// The algorithms of keys: as kubeadm chooses, and the one that costs least.
const ALGORITHMS: [&str; 2] = ["RSA-2048", "ECDSA-P256"];

/// Options of `bench kubeadm`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Control planes of three machines
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    clusters: u32,
    /// How long they are left alone, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    idle: u32,
}

/// Measures and prints.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), String> {
    let program = build(root, &["windlass"])?.join("windlass");
    let mut figures = Figures::of_this_machine();
    for algorithm in ALGORITHMS {
        fleet(root, &program, algorithm, options, &mut figures)?;
    }
    anstream::print!("{}", figures.text());
    Ok(())
}

fn fleet(root: &Path, program: &Path, algorithm: &str, options: &Options, figures: &mut Figures) -> Result<(), String> {
    let folder = Folder::new()?;
    let class = class::with_keys(root, folder.path(), algorithm)?;
    let title = format!("{} control planes of 3, {algorithm}", options.clusters);
    say(&title);
    let (count, idle) = (options.clusters.to_string(), format!("{}s", options.idle));
    let line = [
        "--class",
        &class.to_string_lossy(),
        "--clusters",
        &count,
        "--control-plane-replicas",
        "3",
        "--workers",
        "0",
        "--timeout",
        "60m",
        "--idle",
        &idle,
        "--keep",
    ];
    let report = demo(program, &line, Ending::AfterReport)?;
    let create = step(&report, "create");
    let rest = step(&report, "idle");
    let mut add = |what: &str, unit, value: &Value, target| {
        figures.add(Figure::new(
            format!("{title}: {what}"),
            unit,
            vec![number(value)],
            target,
        ));
    };
    add("create", Unit::Seconds, &create["seconds"], None);
    add("processor time of create", Unit::Seconds, &create["cpuSeconds"], None);
    add("writes at rest", Unit::Count, &rest["writesTotal"], Some(0.0));
    add("processor time at rest", Unit::Seconds, &rest["cpuSeconds"], None);
    figures.add(Figure::new(
        format!("{title}: peak memory after create"),
        Unit::Mebibytes,
        vec![mebibytes(&create["peakMemoryBytes"])],
        None,
    ));
    Ok(())
}
