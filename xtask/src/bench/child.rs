//! The program as a child process.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize as _;
use serde_json::Value;

/// How a demo ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// After all its steps.
    ByItself,
    /// Stopped after it has printed its report.
    AfterReport,
}

/// A child process that ends with this one.
pub(super) struct Running(Child);

impl Running {
    /// Starts the program with these arguments, without logs.
    pub(super) fn start(program: &Path, line: &[&str]) -> Result<Self, String> {
        let mut command = Command::new(program);
        command
            .args(["--log-level", "error"])
            .args(line)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let child = command
            .spawn()
            .map_err(|error| format!("{}: cannot be started: {error}", program.display()))?;
        Ok(Self(child))
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Sends the signal of Ctrl-C, and waits for the end.
    pub(super) fn stop(mut self) -> Result<(), String> {
        let asked = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        asked.map_err(|error| format!("cannot run kill: {error}"))?;
        self.wait()
    }

    fn wait(&mut self) -> Result<(), String> {
        match self.0.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("windlass ended with {status}")),
            Err(error) => Err(format!("windlass was lost: {error}")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `windlass demo`, and returns its report.
pub(super) fn demo(program: &Path, line: &[&str], ending: Ending) -> Result<Value, String> {
    let mut running = Running::start(program, &[&["demo", "--output", "json"], line].concat())?;
    let output = running.0.stdout.take().ok_or("windlass has no output")?;
    // The report is one document; any output after it is ignored.
    let mut stream = serde_json::Deserializer::from_reader(std::io::BufReader::new(output));
    let report = Value::deserialize(&mut stream).map_err(|error| match running.wait() {
        Ok(()) => format!("windlass demo {}: its report cannot be read: {error}", line.join(" ")),
        Err(failure) => format!("windlass demo {}: {failure}", line.join(" ")),
    })?;
    match ending {
        Ending::ByItself => running.wait()?,
        Ending::AfterReport => running.stop()?,
    }
    Ok(report)
}

/// A temporary folder.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Creates one.
    pub(super) fn new() -> Result<Self, String> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        let path = std::env::temp_dir().join(format!("windlass-bench-{}-{now}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("{}: cannot be made: {error}", path.display()))?;
        Ok(Self(path))
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// A path in it, as an argument.
    pub(super) fn argument(&self, name: impl AsRef<OsStr>) -> String {
        self.0.join(name.as_ref()).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Errors are ignored: a leftover in the temporary folder is harmless.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
