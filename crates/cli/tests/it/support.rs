//! Starts, watches and ends the program.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

use kube::config::{KubeConfigOptions, Kubeconfig};
use windlass_testkit::Objects;

/// The built program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_windlass");

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    /// The signal that ended it, if any.
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// Asserts that the command failed, with all these texts on standard error.
    pub(crate) fn failed_with(&self, words: &[&str]) {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {self:?}");
        }
    }

    /// Asserts that it succeeded without warnings.
    pub(crate) fn went_well(&self) {
        assert_eq!((self.code, self.signal), (Some(0), None), "{self:?}");
        assert!(!self.stderr.contains("ERROR"), "{self:?}");
    }
}

/// A command with arguments, and its temporary files in `folder`.
fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    set_up(&mut command, folder).args(args);
    if args.first() == Some(&"manager") {
        // Several managers run at a time, so that none may have the default ports.
        for option in ["--health-addr", "--diagnostics-address"] {
            if !args.iter().any(|given| given.starts_with(option)) {
                command.args([option, "0"]);
            }
        }
    }
    command
}

fn set_up<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    for name in ["KUBECONFIG", "WINDLASS_DATA_DIR"] {
        command.env_remove(name);
    }
    // A home directory without the files of the current user.
    command.env("HOME", folder).env("TMPDIR", folder);
    command.env("NO_COLOR", "1").stdin(Stdio::null())
}

/// Runs the program to its end.
pub(crate) fn run(folder: &Path, args: &[&str]) -> Finished {
    finished(command(folder, args).output().expect("the program starts"))
}

/// Runs the program to its end, in `folder` and with this text as its standard input.
pub(crate) fn run_with(folder: &Path, args: &[&str], input: &str) -> Finished {
    let mut command = command(folder, args);
    let pipes = command
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A program that does not read it may have ended.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    finished(child.wait_with_output().expect("it ran"))
}

fn finished(output: Output) -> Finished {
    Finished {
        code: output.status.code(),
        signal: output.status.signal(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// A running server command, such as `windlass up` on `folder/data`, which writes `folder/kubeconfig`; killed when dropped.
#[derive(Debug)]
pub(crate) struct Up {
    child: Child,
    stdout: BufReader<ChildStdout>,
    said: String,
}

impl Up {
    /// Starts it, and waits until it reports that it is ready.
    pub(crate) fn start(folder: &Path, more: &[&str]) -> Self {
        Self::answering(command(folder, &[]), folder, more)
    }

    /// [`Self::start`] with a file size limit in blocks of 512 bytes, to simulate a full disk. [`Self::make_room`] takes it back.
    pub(crate) fn start_limited(folder: &Path, blocks: u32, more: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        // Without the trap, the signal at the limit ends the program.
        shell.args([
            "-c",
            &format!("trap '' XFSZ; ulimit -S -f {blocks}; exec \"$0\" \"$@\""),
            PROGRAM,
        ]);
        set_up(&mut shell, folder);
        Self::answering(shell, folder, more)
    }

    /// Takes the file size limit back.
    pub(crate) fn make_room(&self) {
        let pid = self.child.id().to_string();
        let set = Command::new("prlimit")
            .args(["--pid", &pid, "--fsize=unlimited"])
            .status();
        assert!(set.is_ok_and(|status: ExitStatus| status.success()));
    }

    /// The CPU time that it has used, in ticks of a hundredth of a second.
    pub(crate) fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it runs");
        let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
        let fields: Vec<&str> = fields.split_whitespace().collect();
        [11, 12]
            .map(|at| fields[at].parse::<u64>().expect("a number"))
            .iter()
            .sum()
    }

    fn answering(mut command: Command, folder: &Path, more: &[&str]) -> Self {
        let (data, kubeconfig) = (folder.join("data"), folder.join("kubeconfig"));
        command
            .arg("up")
            .arg("--data-dir")
            .arg(data)
            .arg("--kubeconfig")
            .arg(kubeconfig);
        command.args(["--log-level", "warn"]);
        if !more.contains(&"--port") {
            command.args(["--port", "0"]);
        }
        command.args(more);
        Self::serving(command, Stdio::piped(), "kubectl --kubeconfig")
    }

    /// [`Self::start`] with everything that can be logged in the file `log`, and with these environment variables.
    pub(crate) fn start_traced(folder: &Path, log: &Path, variables: &[(&str, &str)], more: &[&str]) -> Self {
        let path = |name: &str| folder.join(name).display().to_string();
        let (data, kubeconfig) = (path("data"), path("kubeconfig"));
        let args = [
            "up",
            "--data-dir",
            &data,
            "--kubeconfig",
            &kubeconfig,
            "--port",
            "0",
            "--log-level",
            "trace",
        ];
        let mut command = command(folder, &args);
        command.envs(variables.iter().copied()).args(more);
        let log = std::fs::File::create(log).expect("a log can be made");
        Self::serving(command, log.into(), "kubectl --kubeconfig")
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Starts another command, and waits for its first line.
    pub(crate) fn command(folder: &Path, args: &[&str], says: &str) -> Self {
        Self::serving(command(folder, args), Stdio::piped(), says)
    }

    /// [`Self::command`] with its log in a file: a pipe that is not read stops what writes to it.
    pub(crate) fn logged(folder: &Path, args: &[&str], log: &Path, says: &str) -> Self {
        let log = std::fs::File::create(log).expect("a log can be made");
        Self::serving(command(folder, args), log.into(), says)
    }

    fn serving(mut command: Command, stderr: Stdio, says: &str) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("the program starts");
        let mut up = Self {
            stdout: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
            said: String::new(),
        };
        up.says(says);
        up
    }

    /// Waits until it says this.
    pub(crate) fn says(&mut self, says: &str) {
        while !self.said.contains(says) {
            let read = self.stdout.read_line(&mut self.said).expect("readable");
            assert!(read > 0, "it ended before it said {says:?}: {:?}", self.finished());
        }
    }

    /// What it said so far.
    pub(crate) fn said(&self) -> &str {
        &self.said
    }

    /// Kills it.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ran");
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status();
        assert!(sent.is_ok_and(|status: ExitStatus| status.success()));
    }

    /// Sends Ctrl-C and waits for the end.
    pub(crate) fn interrupt(mut self) -> Finished {
        self.signal("INT");
        self.finished()
    }

    /// Waits for the end. What it logged to a file is not in the result.
    pub(crate) fn finished(&mut self) -> Finished {
        let mut stderr = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            pipe.read_to_string(&mut stderr).expect("UTF-8");
        }
        let mut stdout = std::mem::take(&mut self.said);
        self.stdout.read_to_string(&mut stdout).expect("UTF-8");
        let status = self.child.wait().expect("it ran");
        Finished {
            code: status.code(),
            signal: status.signal(),
            stdout,
            stderr,
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Access with the kubeconfig of `up`.
pub(crate) async fn objects(folder: &Path) -> Objects {
    let file = Kubeconfig::read_from(folder.join("kubeconfig")).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let client = kube::Client::try_from(config.expect("a usable kubeconfig")).expect("a client");
    Objects::new(client)
}

/// `windlass apiserver` on `folder/data`.
pub(crate) fn apiserver(folder: &Path) -> Up {
    let (data, kubeconfig) = (folder.join("data"), folder.join("kubeconfig"));
    let args = [
        "apiserver",
        "--data-dir",
        data.to_str().unwrap(),
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        "--port",
        "0",
        "--log-level",
        "warn",
    ];
    Up::command(folder, &args, "kubeconfig ")
}
