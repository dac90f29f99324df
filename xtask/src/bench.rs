//! `cargo xtask bench demo`: measures time, memory and writes of the program. Prints figures beside their targets and asserts
//! nothing, because figures depend on the machine and its load.

pub(crate) mod addons;
pub(crate) mod build;
mod child;
mod class;
mod figures;
pub(crate) mod hostile;
pub(crate) mod kubeadm;
pub(crate) mod operator;
mod server;
mod up;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, ValueEnum};
use serde_json::Value;

use self::child::{Ending, demo};
use self::figures::{Figure, Figures, Unit};
use crate::cargo;

/// The measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// One cluster whose machines start at once.
    Quick,
    /// One cluster whose machines start as slowly as in Cluster API's own in-memory example.
    Delays,
    /// Many small clusters, and whether the controllers become idle.
    Fleet,
    /// The time until a management cluster is ready.
    Up,
}

/// Options of `bench demo`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How often each of the quick measurements runs; the figures are medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only these parts
    #[arg(long, value_enum, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,
    /// Clusters of the fleet
    #[arg(long, value_name = "N", default_value_t = 100)]
    clusters: u32,
    /// How long the fleet is left alone, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    idle: u32,
    /// How often the fleet is created
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    fleet_runs: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), String> {
    let program = build(root, &["windlass"])?.join("windlass");
    let mut figures = Figures::of_this_machine();
    let is_on = |part| options.only.is_empty() || options.only.contains(&part);
    if is_on(Part::Quick) {
        quick(&program, options.runs, &mut figures)?;
    }
    if is_on(Part::Delays) {
        delays(root, &program, options.runs, &mut figures)?;
    }
    if is_on(Part::Up) {
        up::measure(&program, options.runs, &mut figures)?;
    }
    if is_on(Part::Fleet) {
        fleet(&program, options, &mut figures)?;
    }
    if options.json {
        anstream::println!("{}", figures.json());
    } else {
        anstream::print!("{}", figures.text());
    }
    Ok(())
}

/// Measures the embedded API server beside kube-apiserver and etcd, with a separate program in a release build.
pub(crate) fn apiserver(root: &Path, options: &[String]) -> Result<bool, String> {
    let folder = build(root, &["windlass", "windlass-bench"])?;
    let (windlass, program, disk) = (
        folder.join("windlass"),
        folder.join("windlass-bench"),
        folder.join("bench"),
    );
    std::fs::create_dir_all(&disk).map_err(|error| format!("{}: {error}", disk.display()))?;
    let mut measure = Command::new(&program);
    measure
        .arg("--windlass")
        .arg(&windlass)
        .arg("--disk")
        .arg(&disk)
        .args(options);
    cargo::run(measure.current_dir(root))
}

/// Builds programs of the workspace in release mode. Returns their folder.
fn build(root: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    let mut build = cargo::cargo(root, &["build", "--release", "--quiet"]);
    build.args(packages.iter().flat_map(|package| ["--package", package]));
    if !cargo::run(&mut build)? {
        return Err("the release build failed".to_owned());
    }
    Ok(cargo::target(root).join("release"))
}

fn say(what: &str) {
    anstream::eprintln!("{what} …");
}

/// A step of a report.
fn step<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut steps = report["steps"].as_array().into_iter().flatten();
    steps.find(|step| step["name"] == name).unwrap_or(&Value::Null)
}

const MIB: f64 = 1_048_576.0;

fn mebibytes(bytes: &Value) -> f64 {
    bytes.as_f64().unwrap_or(f64::NAN) / MIB
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Writes by verb and kind, per Machine.
fn writes(title: &str, report: &Value, figures: &mut Figures) {
    let machines = number(&report["clusters"]) * (number(&report["controlPlaneReplicas"]) + number(&report["workers"]));
    for (verb, resources) in step(report, "create")["writes"].as_object().into_iter().flatten() {
        for (resource, count) in resources.as_object().into_iter().flatten() {
            figures.detail(
                format!("{title}: {verb} {resource} per Machine"),
                number(count) / machines,
            );
        }
    }
}

fn quick(program: &Path, runs: u32, figures: &mut Figures) -> Result<(), String> {
    let title = "3+3 without delays";
    let mut reports = Vec::new();
    for run in 1..=runs {
        say(&format!("{title}, run {run} of {runs}"));
        reports.push(demo(program, &[], Ending::ByItself)?);
    }
    let all = |read: &dyn Fn(&Value) -> f64| reports.iter().map(read).collect::<Vec<f64>>();
    figures.add(Figure::new(
        format!("{title}: start to created and ready"),
        Unit::Seconds,
        all(&|report| number(&report["startSeconds"]) + number(&step(report, "create")["seconds"])),
        Some(5.0),
    ));
    figures.add(Figure::new(
        format!("{title}: processor time of create"),
        Unit::Seconds,
        all(&|report| number(&step(report, "create")["cpuSeconds"])),
        None,
    ));
    for name in ["scale", "upgrade", "delete"] {
        figures.add(Figure::new(
            format!("{title}: {name}"),
            Unit::Seconds,
            all(&|report| number(&step(report, name)["seconds"])),
            None,
        ));
    }
    figures.add(Figure::new(
        format!("{title}: whole demo"),
        Unit::Seconds,
        all(&|report| number(&report["seconds"])),
        Some(30.0),
    ));
    figures.add(Figure::new(
        format!("{title}: peak memory after create"),
        Unit::Mebibytes,
        all(&|report| mebibytes(&step(report, "create")["peakMemoryBytes"])),
        None,
    ));
    figures.add(Figure::new(
        format!("{title}: peak memory of whole demo"),
        Unit::Mebibytes,
        all(&|report| mebibytes(&report["peakMemoryBytes"])),
        Some(150.0),
    ));
    figures.add(Figure::new(
        format!("{title}: writes per Machine"),
        Unit::Count,
        all(&|report| number(&report["writesPerMachine"])),
        Some(25.0),
    ));
    figures.add(Figure::new(
        format!("{title}: events per Machine"),
        Unit::Count,
        all(&|report| number(&report["eventsPerMachine"])),
        None,
    ));
    if let Some(report) = reports.first() {
        writes(title, report, figures);
    }
    Ok(())
}

fn delays(root: &Path, program: &Path, runs: u32, figures: &mut Figures) -> Result<(), String> {
    let title = "3+3 with start-up delays";
    let folder = child::Folder::new()?;
    let class = class::with_delays(root, folder.path())?;
    let class = class.to_string_lossy();
    let mut seconds = Vec::new();
    for run in 1..=runs {
        say(&format!("{title}, run {run} of {runs}"));
        let report = demo(program, &["--class", &class, "--keep"], Ending::AfterReport)?;
        seconds.push(number(&report["startSeconds"]) + number(&step(&report, "create")["seconds"]));
    }
    figures.add(Figure::new(
        format!("{title}: start to created and ready"),
        Unit::Seconds,
        seconds,
        Some(60.0),
    ));
    Ok(())
}

fn fleet(program: &Path, options: &Options, figures: &mut Figures) -> Result<(), String> {
    let (clusters, idle) = (options.clusters, options.idle);
    let title = format!("{clusters} of 1+1");
    let (count, idle_time) = (clusters.to_string(), format!("{idle}s"));
    let mut reports = Vec::new();
    for run in 1..=options.fleet_runs {
        say(&format!("{title}, run {run} of {}", options.fleet_runs));
        let line = [
            "--clusters",
            &count,
            "--control-plane-replicas",
            "1",
            "--workers",
            "1",
            "--timeout",
            "30m",
            "--idle",
            &idle_time,
        ];
        reports.push(demo(program, &line, Ending::ByItself)?);
    }
    let all = |read: &dyn Fn(&Value) -> f64| reports.iter().map(read).collect::<Vec<f64>>();
    let hundred = |target: f64| (clusters == 100).then_some(target);
    for name in ["create", "scale", "upgrade", "delete"] {
        let target = if name == "create" { hundred(60.0) } else { None };
        figures.add(Figure::new(
            format!("{title}: {name}"),
            Unit::Seconds,
            all(&|report| number(&step(report, name)["seconds"])),
            target,
        ));
        figures.add(Figure::new(
            format!("{title}: processor time of {name}"),
            Unit::Seconds,
            all(&|report| number(&step(report, name)["cpuSeconds"])),
            None,
        ));
    }
    figures.add(Figure::new(
        format!("{title}: peak memory after create"),
        Unit::Mebibytes,
        all(&|report| mebibytes(&step(report, "create")["peakMemoryBytes"])),
        hundred(600.0),
    ));
    figures.add(Figure::new(
        format!("{title}: peak memory of whole demo"),
        Unit::Mebibytes,
        all(&|report| mebibytes(&report["peakMemoryBytes"])),
        None,
    ));
    figures.add(Figure::new(
        format!("{title}: writes per Machine"),
        Unit::Count,
        all(&|report| number(&report["writesPerMachine"])),
        Some(25.0),
    ));
    let rest =
        |report: &Value| number(&step(report, "idle")["writesTotal"]) + number(&step(report, "idle")["eventsTotal"]);
    figures.add(Figure::new(
        format!("{title}: writes in {idle} idle seconds"),
        Unit::Count,
        all(&rest),
        Some(0.0),
    ));
    figures.add(Figure::new(
        format!("{title}: processor time of {idle} idle seconds"),
        Unit::Seconds,
        all(&|report| number(&step(report, "idle")["cpuSeconds"])),
        None,
    ));
    if let Some(report) = reports.first() {
        writes(&title, report, figures);
        for (verb, resources) in step(report, "idle")["writes"].as_object().into_iter().flatten() {
            for (resource, count) in resources.as_object().into_iter().flatten() {
                figures.detail(format!("{title}: {verb} {resource} while idle"), number(count));
            }
        }
    }
    Ok(())
}
