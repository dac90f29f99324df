//! `cargo xtask bench build`: what it costs to build the project, clean and after a change, and how large the program is.
//!
//! Builds in a target folder of its own, which is deleted before and afterwards. Dependencies are downloaded before the clock starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::Args;

use super::child::{Ending, demo};
use super::figures::{Figure, Figures, Unit};
use super::{number, say};
use crate::cargo;

/// The file that is changed: the heart of a controller.
const CHANGED: &str = "crates/core-controllers/src/machine_set/plan.rs";

/// Options of `bench build`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How often a file is changed; the figure is the median. Clean builds run once
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), String> {
    let folder = Folder::new(cargo::target(root).join("bench-build"))?;
    let mut figures = Figures::of_this_machine();
    let builder = Builder {
        root,
        target: &folder.0,
    };
    builder.fetch()?;
    say("clean release build with demo");
    let seconds = builder.cargo(&["build", "--release", "--bin", "windlass"])?;
    figures.add(Figure::new(
        "clean release build with demo",
        Unit::Seconds,
        vec![seconds],
        Some(360.0),
    ));
    figures.add(Figure::new(
        "release program",
        Unit::Megabytes,
        vec![megabytes(&folder.0.join("release/windlass"))?],
        Some(45.0),
    ));
    folder.clear()?;
    say("clean cargo test --workspace --no-run");
    let seconds = builder.cargo(&["test", "--workspace", "--no-run"])?;
    figures.add(Figure::new(
        "clean cargo test --workspace --no-run",
        Unit::Seconds,
        vec![seconds],
        Some(200.0),
    ));
    let debug = ["build", "--bin", "windlass"];
    builder.cargo(&debug)?;
    let mut changes = Vec::new();
    for run in 1..=options.runs {
        say(&format!("a line added to {CHANGED}, run {run} of {}", options.runs));
        let _changed = Changed::new(root.join(CHANGED))?;
        let built = builder.cargo(&debug)?;
        let report = demo(&folder.0.join("debug/windlass"), &[], Ending::ByItself)?;
        changes.push(built + number(&report["startSeconds"]));
    }
    figures.add(Figure::new(
        "a changed line in core to a running debug demo",
        Unit::Seconds,
        changes,
        Some(25.0),
    ));
    if options.json {
        anstream::println!("{}", figures.json());
    } else {
        anstream::print!("{}", figures.text());
    }
    Ok(())
}

struct Builder<'a> {
    root: &'a Path,
    target: &'a Path,
}

impl Builder<'_> {
    /// Downloads what is missing.
    fn fetch(&self) -> Result<(), String> {
        if cargo::run(&mut cargo::cargo(self.root, &["fetch", "--locked", "--quiet"]))? {
            Ok(())
        } else {
            Err("the dependencies cannot be downloaded".to_owned())
        }
    }

    /// Runs cargo; seconds.
    fn cargo(&self, args: &[&str]) -> Result<f64, String> {
        let mut command: Command = cargo::cargo(self.root, args);
        command
            .args(["--quiet", "--offline"])
            .env("CARGO_TARGET_DIR", self.target);
        let started = Instant::now();
        if cargo::run(&mut command)? {
            Ok(started.elapsed().as_secs_f64())
        } else {
            Err(format!("`cargo {}` failed", args.join(" ")))
        }
    }
}

/// A target folder that is deleted at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(path: PathBuf) -> Result<Self, String> {
        let folder = Self(path);
        folder.clear()?;
        Ok(folder)
    }

    fn clear(&self) -> Result<(), String> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {error}", self.0.display())),
            _ => Ok(()),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            anstream::eprintln!("{error}");
        }
    }
}

/// A source file with one line more at its top, which moves all others. Its text comes back at the end.
struct Changed {
    path: PathBuf,
    text: String,
}

impl Changed {
    fn new(path: PathBuf) -> Result<Self, String> {
        let text = crate::sources::read(&path)?;
        fs::write(&path, format!("// A change.\n{text}")).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path, text })
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.path, &self.text) {
            anstream::eprintln!("{}: {error}: take out its first line", self.path.display());
        }
    }
}

fn megabytes(program: &Path) -> Result<f64, String> {
    let size = fs::metadata(program).map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(u32::try_from(size.len()).map_or(f64::INFINITY, f64::from) / 1e6)
}
