//! Runs helm: one process, with input, output and termination, also after its caller is gone.
//!
//! A process belongs to a task, not to the call that waits for it. Dropping the call tells the task to stop the process. Helm
//! then has time to record that the operation failed, so that the release is not left pending; after that it is killed.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// The output of an installation is the whole release.
const MOST_OUTPUT: usize = 64 << 20;
const MOST_ERRORS: usize = 64 << 10;
/// Maximum time that output may stay open after the process has ended.
const LINGER: Duration = Duration::from_secs(2);

/// The command to run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// The whole environment.
    pub(crate) environment: Vec<(String, std::ffi::OsString)>,
    pub(crate) folder: PathBuf,
    pub(crate) input: Vec<u8>,
    /// The time limit.
    pub(crate) limit: Duration,
    /// Grace period after the termination signal.
    pub(crate) grace: Duration,
}

/// The result.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) end: End,
    /// Up to a limit; `None` if it was longer.
    pub(crate) stdout: Option<Vec<u8>>,
    /// The end of the output.
    pub(crate) stderr: String,
}

/// Why the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself.
    Exit(ExitStatus),
    /// The time limit was exceeded.
    TimedOut,
    /// The caller is gone.
    Cancelled,
}

/// Runs a process to its end, or stops it when `stop` is cancelled.
pub(crate) async fn run(plan: Plan, stop: CancellationToken) -> io::Result<Output> {
    let mut child = start(&plan)?;
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let (input, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut input) = input {
            // A process that ends early does not read all of its input.
            let _ = input.write_all(&plan.input).await;
        }
    };
    // Output is read while a process may write it, but a pipe that a child left open does not block the call.
    let mut out = Kept::first(MOST_OUTPUT);
    let mut err = Kept::last(MOST_ERRORS);
    let end = {
        let pipes = async {
            tokio::join!(write, out.read(stdout), err.read(stderr));
        };
        tokio::pin!(pipes);
        let watch = watch(&mut child, group, &plan, &stop);
        tokio::pin!(watch);
        tokio::select! {
            end = &mut watch => {
                let _ = tokio::time::timeout(LINGER, &mut pipes).await;
                end?
            }
            () = &mut pipes => watch.await?,
        }
    };
    Ok(Output {
        end,
        stdout: out.whole(),
        stderr: String::from_utf8_lossy(&err.bytes).into_owned(),
    })
}

fn start(plan: &Plan) -> io::Result<Child> {
    let mut command = Command::new(&plan.program);
    command
        .args(&plan.args)
        .env_clear()
        .envs(plan.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&plan.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Separates it from our signals, such as those of a terminal, and allows to end it with all of its children.
        .process_group(0)
        .kill_on_drop(true);
    command.spawn()
}

/// Waits for the end of a process, and forces it if necessary.
async fn watch(child: &mut Child, group: Option<Pid>, plan: &Plan, stop: &CancellationToken) -> io::Result<End> {
    let why = tokio::select! {
        status = child.wait() => return Ok(End::Exit(status?)),
        () = tokio::time::sleep(plan.limit) => End::TimedOut,
        () = stop.cancelled() => End::Cancelled,
    };
    signal(group, Signal::TERM);
    if tokio::time::timeout(plan.grace, child.wait()).await.is_err() {
        signal(group, Signal::KILL);
        child.wait().await?;
    }
    Ok(why)
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // A process that has ended needs no signal.
        let _ = kill_process_group(group, signal);
    }
}

/// Maximum length of kept output. The rest is read and discarded.
struct Kept {
    bytes: Vec<u8>,
    most: usize,
    last: bool,
    over: bool,
}

impl Kept {
    fn first(most: usize) -> Self {
        Self::of(most, false)
    }

    fn last(most: usize) -> Self {
        Self::of(most, true)
    }

    fn of(most: usize, last: bool) -> Self {
        Self {
            bytes: Vec::new(),
            most,
            last,
            over: false,
        }
    }

    async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut piece = vec![0; 16 << 10];
        while let Ok(read @ 1..) = stream.read(&mut piece).await {
            self.add(&piece[..read]);
        }
    }

    fn add(&mut self, piece: &[u8]) {
        if self.last {
            self.bytes.extend_from_slice(piece);
            // Not after every piece.
            if self.bytes.len() > 2 * self.most {
                self.bytes.drain(..self.bytes.len() - self.most);
            }
            return;
        }
        let room = self.most.saturating_sub(self.bytes.len());
        self.over |= piece.len() > room;
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn whole(self) -> Option<Vec<u8>> {
        (!self.over).then_some(self.bytes)
    }
}

/// Finds a program: an absolute path, or the first file of that name in the folders of `search`.
pub(crate) fn find(program: &Path, search: Option<&std::ffi::OsStr>) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return is_program(program).then(|| program.to_owned());
    }
    let folders = std::env::split_paths(search?);
    folders.map(|folder| folder.join(program)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
#[path = "process/tests.rs"]
mod tests;
