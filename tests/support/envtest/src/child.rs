//! Child processes that end with the parent process.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::StartError;

/// A shell script that reads the ids of children from its input. If the input ends without a final message, the parent was
/// killed. Then the script kills the children and removes their folder, which the parent can no longer do.
const GUARD: &str = r#"trap '' INT TERM HUP
pids=
while read -r pid; do
  [ "$pid" = bye ] && exit 0
  pids="$pids $pid"
done
[ -n "$pids" ] && kill -9 $pids 2>/dev/null
rm -rf "$1""#;

/// Timeout until a program is ready; far more than it takes on an idle machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// Interval of readiness checks.
const LOOK: Duration = Duration::from_millis(25);

/// How many lines of a log an error shows.
const LAST_LINES: usize = 15;

/// A running program.
#[derive(Debug)]
pub(crate) struct Program {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Program {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The last lines that it wrote.
    pub(crate) fn last_lines(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    /// Returns an error if it has ended.
    fn check(&mut self) -> Result<(), StartError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.ended(&status.to_string())),
            Err(error) => Err(self.ended(&format!("an unknown status ({error})"))),
        }
    }

    fn ended(&self, status: &str) -> StartError {
        StartError::Ended {
            program: self.name,
            status: status.to_owned(),
            log: self.last_lines(),
        }
    }
}

/// Programs that belong together, such as those of a control plane. Dropping them ends them.
#[derive(Debug)]
pub(crate) struct Programs {
    guard: Child,
    variables: Vec<(&'static str, String)>,
    all: Vec<Program>,
}

impl Programs {
    /// No programs yet. The folder belongs to them. They get these environment variables beside those of this process.
    pub(crate) fn new(folder: &Path, variables: Vec<(&'static str, String)>) -> Result<Self, StartError> {
        let mut guard = Command::new("sh");
        guard
            .args(["-c", GUARD, "sh"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals of a terminal to the process group must not reach the guard before the program has ended.
            .process_group(0);
        let program = "sh";
        let guard = guard.spawn().map_err(|source| StartError::Start { program, source })?;
        Ok(Self {
            guard,
            variables,
            all: Vec::new(),
        })
    }

    /// Starts the program in a file.
    pub(crate) fn start(
        &mut self,
        program: &Path,
        name: &'static str,
        flags: &[String],
        folder: &Path,
    ) -> Result<(), StartError> {
        let log = folder.join(format!("{name}.log"));
        let failed = |source| StartError::Start { program: name, source };
        let out = File::create(&log).map_err(failed)?;
        let errors = out.try_clone().map_err(failed)?;
        let mut command = Command::new(program);
        command
            .args(flags)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .process_group(0)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        let child = command.spawn().map_err(failed)?;
        if let Some(guard) = &mut self.guard.stdin {
            writeln!(guard, "{}", child.id()).map_err(failed)?;
        }
        self.all.push(Program { name, child, log });
        Ok(())
    }

    /// Returns an error if a program has ended.
    pub(crate) fn check(&mut self) -> Result<(), StartError> {
        self.all.iter_mut().try_for_each(Program::check)
    }

    /// Waits until a program is ready; an error if one ends before.
    pub(crate) async fn ready(
        &mut self,
        program: &'static str,
        is_ready: impl AsyncFn() -> bool,
    ) -> Result<(), StartError> {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let waiting = async {
            loop {
                looks.tick().await;
                self.check()?;
                if is_ready().await {
                    return Ok(());
                }
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(result) => result,
            Err(_) => Err(StartError::NotReady {
                program,
                waited: PATIENCE,
                log: self.get(program).map(Program::last_lines).unwrap_or_default(),
            }),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Program> {
        self.all.iter().find(|program| program.name == name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Program> {
        self.all.iter()
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        // A program that has already ended cannot be killed, which needs no handling. The last one started ends first.
        for program in self.all.iter_mut().rev() {
            let _ = program.child.kill();
            let _ = program.child.wait();
        }
        if let Some(mut guard) = self.guard.stdin.take() {
            let _ = writeln!(guard, "bye");
        }
        let _ = self.guard.wait();
    }
}
