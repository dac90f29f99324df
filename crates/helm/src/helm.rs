//! The engine: the real program behind [`Engine`].

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::{Mutex as Turn, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::blame::{self, Asked};
use crate::charts::Charts;
use crate::counters::Counters;
use crate::flags::On;
use crate::home::{CallFolder, Home};
use crate::probe::Probe;
use crate::process::{self, End, Output, Plan};
use crate::version::Version;
use crate::words::{self, Mask};
use crate::{
    BoxFuture, Chart, ChartSource, Engine, Freshness, HelmError, Kind, Options, Status, Stop, Summary, Target,
    kubeconfig, values,
};

/// Environment variables that are passed to helm: proxies, and trusted certificates.
const PASSED_ON: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// How long helm may take to end after it was asked to, unless the settings say otherwise.
pub const GRACE: Duration = Duration::from_secs(30);

/// Settings of an engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The helm program: a path, or a name to look up in `search`.
    pub program: PathBuf,
    /// The folders to look in, as in `PATH`.
    pub search: Option<OsString>,
    /// The parent folder of all files; it is made private.
    pub home: PathBuf,
    /// Number of concurrent operations on releases. Operations that wait for their release are counted separately and
    /// may be four times as many: they use little CPU and block no other call.
    pub operations: usize,
    /// The number of concurrent fetches.
    pub fetches: usize,
    /// The time limit for fetching a chart or a list of versions.
    pub fetch_limit: Duration,
    /// Grace period beyond helm's own timeout, and for its termination. Defaults to [`GRACE`].
    pub grace: Duration,
    /// Maximum size of a chart archive in bytes.
    pub largest_chart: u64,
    /// The environment of helm.
    pub environment: Vec<(String, OsString)>,
}

impl Settings {
    /// The helm in `PATH`, with a number of processes that suits the machine, and files below `home`.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, NonZero::get);
        let variable = |name: &str| Some((name.to_owned(), std::env::var_os(name)?));
        Self {
            program: "helm".into(),
            search: std::env::var_os("PATH"),
            home: home.into(),
            // Most of the time an operation waits for responses of the cluster.
            operations: (4 * cores).clamp(8, 32),
            fetches: cores.clamp(2, 8),
            fetch_limit: Duration::from_mins(2),
            grace: GRACE,
            largest_chart: 32 << 20,
            environment: PASSED_ON.into_iter().filter_map(variable).collect(),
        }
    }
}

/// The real helm. Clones are handles to the same engine; its files are removed with the last one.
#[derive(Clone, Debug)]
pub struct Helm(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Settings,
    home: Home,
    probe: Mutex<Probe>,
    /// Held by the caller that determines helm's version.
    probing: Turn<()>,
    operations: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    fetches: Arc<Semaphore>,
    charts: Charts,
    /// All callers' secrets, which must not be in messages.
    mask: Mask,
    counters: Counters,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// A process to run, with its name in counters and errors.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) verb: &'static str,
    pub(crate) asked: Asked,
    pub(crate) args: Vec<String>,
    pub(crate) input: Vec<u8>,
    pub(crate) limit: Duration,
    pub(crate) mask: Mask,
}

impl Helm {
    /// Creates its folder, and removes leftovers of killed processes below the same home. The helm program is looked up
    /// on first use.
    pub fn new(settings: Settings) -> std::io::Result<Self> {
        Ok(Self(Arc::new(Inner {
            home: Home::open(&settings.home)?,
            probe: Mutex::default(),
            probing: Turn::default(),
            operations: turns(settings.operations),
            waiting: turns(settings.operations.saturating_mul(4)),
            fetches: turns(settings.fetches),
            charts: Charts::default(),
            mask: hidden(&settings.environment),
            counters: Counters::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            settings,
        })))
    }

    /// The version of helm.
    pub async fn version(&self) -> Result<String, HelmError> {
        Ok(self.ready().await?.1.to_string())
    }

    /// Counters of processes, for metrics.
    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// Stops all running helm processes and waits for their end; no process starts afterwards. Running operations end as failed
    /// rather than pending, if helm can still record that.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Whether a process runs.
    pub fn is_running(&self) -> bool {
        !self.0.tasks.is_empty()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn home(&self) -> &Home {
        &self.0.home
    }

    pub(crate) fn charts(&self) -> &Charts {
        &self.0.charts
    }

    /// The program and its version. The version is determined once, and again if the file changes.
    pub(crate) async fn ready(&self) -> Result<(PathBuf, Version), HelmError> {
        let settings = &self.0.settings;
        let found = Probe::look(&settings.program, settings.search.as_deref())?;
        if let Some(known) = self.0.probe.lock().known(&found) {
            return known;
        }
        let _turn = self.0.probing.lock().await;
        if let Some(known) = self.0.probe.lock().known(&found) {
            return known;
        }
        let call = Call {
            verb: "version",
            asked: Asked::LocalFile,
            args: vec!["version".to_owned(), "--template={{.Version}}".to_owned()],
            input: Vec::new(),
            limit: Duration::from_secs(30),
            mask: Mask::default(),
        };
        let output = self
            .start(
                &found.path,
                call,
                self.folder()?,
                Arc::clone(&self.0.fetches),
                &Stop::default(),
            )
            .await;
        let answer = found.judge(output.as_ref());
        // A temporary problem is not stored as the result.
        match output {
            Err(error) if error.kind == Kind::Cancelled => Err(error),
            _ => {
                self.0.probe.lock().learn(found, answer.clone());
                answer
            }
        }
    }

    pub(crate) fn folder(&self) -> Result<CallFolder, HelmError> {
        self.0.home.call().map_err(|error| file("a folder for a call", &error))
    }

    /// Runs helm for a chart.
    pub(crate) async fn fetch(&self, program: &Path, call: Call, folder: CallFolder) -> Result<String, HelmError> {
        let fetches = Arc::clone(&self.0.fetches);
        self.start(program, call, folder, fetches, &Stop::default()).await
    }

    /// Runs helm on a release.
    async fn operate(
        &self,
        verb: &'static str,
        target: &Target,
        options: &Options,
        input: Vec<u8>,
        flags: impl FnOnce(&On<'_>) -> Result<Vec<String>, HelmError>,
    ) -> Result<String, HelmError> {
        let (program, version) = self.ready().await?;
        let mut mask = Mask::default();
        let config = kubeconfig::read(&target.kubeconfig, &mut mask)?;
        let folder = self.folder()?;
        let kubeconfig = folder
            .write("kubeconfig", &config)
            .map_err(|error| file("the kubeconfig of a call", &error))?;
        let on = On {
            version,
            target,
            kubeconfig: &kubeconfig,
            options,
        };
        let call = Call {
            verb,
            asked: Asked::Cluster,
            args: flags(&on)?,
            input,
            limit: on.limit(self.0.settings.grace),
            mask,
        };
        let waits = options.wait || options.atomic;
        let turns = if waits { &self.0.waiting } else { &self.0.operations };
        self.start(&program, call, folder, Arc::clone(turns), &target.stop)
            .await
    }

    /// Runs a process in its own task when there is room, and converts failures to errors. When it has to end, this waits until it has.
    async fn start(
        &self,
        program: &Path,
        call: Call,
        folder: CallFolder,
        turns: Arc<Semaphore>,
        ends: &Stop,
    ) -> Result<String, HelmError> {
        let cancelled = || HelmError::new(Kind::Cancelled, "helm is being shut down");
        let stop = self.0.stop.child_token();
        // A call that is dropped while it waits has started nothing; later the task is cancelled.
        let stops = stop.clone().drop_guard();
        let turn = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(cancelled()),
            () = ends.requested() => return Err(HelmError::new(Kind::Cancelled, "it was ended before helm began")),
            turn = turns.acquire_owned() => turn.map_err(|_| cancelled())?,
        };
        let plan = self.plan(program, &call, &folder);
        let (verb, asked, mask, limit) = (call.verb, call.asked, call.mask, call.limit);
        let mask = mask.with(&self.0.mask);
        let counters = self.0.counters.clone();
        let stopping = stop.clone();
        let mut task = self.0.tasks.spawn(async move {
            // Dropped after the process has ended in any way.
            let (_turn, _folder, _running) = (turn, folder, counters.start(verb));
            let begun = Instant::now();
            let result = match process::run(plan, stop).await {
                Ok(output) => judge(asked, output, limit, &mask),
                Err(error) => Err(HelmError::new(
                    Kind::NotInstalled,
                    format!("helm cannot be started: {error}"),
                )),
            };
            let end = result.as_ref().map_or_else(|error| error.kind.name(), |_| "ok");
            counters.end(verb, end, begun.elapsed());
            result
        });
        let result = tokio::select! {
            result = &mut task => result,
            () = ends.requested() => {
                stopping.cancel();
                task.await
            }
        };
        let result = result.unwrap_or_else(|_| Err(cancelled()));
        let _guard = stops;
        result
    }

    fn plan(&self, program: &Path, call: &Call, folder: &CallFolder) -> Plan {
        let settings = &self.0.settings;
        let own = |name: &str| OsString::from(folder.path().join(name));
        let mut environment = settings.environment.clone();
        // Caches of discovery are below HOME; each call has its own, because another cluster may have the same address later.
        for (name, place) in [
            ("HOME", "home"),
            ("TMPDIR", "."),
            ("HELM_CACHE_HOME", "cache"),
            ("HELM_CONFIG_HOME", "config"),
            ("HELM_DATA_HOME", "data"),
            ("HELM_PLUGINS", "plugins"),
        ] {
            environment.push((name.to_owned(), own(place)));
        }
        environment.push(("HELM_DRIVER".to_owned(), "secret".into()));
        environment.push(("NO_COLOR".to_owned(), "1".into()));
        Plan {
            program: program.to_owned(),
            args: call.args.clone(),
            environment,
            folder: folder.path().to_owned(),
            input: call.input.clone(),
            limit: call.limit,
            grace: settings.grace,
        }
    }
}

impl Engine for Helm {
    fn unusable(&self) -> Option<String> {
        let settings = &self.0.settings;
        let found = match Probe::look(&settings.program, settings.search.as_deref()) {
            Ok(found) => found,
            Err(error) => return Some(error.message),
        };
        let known = self.0.probe.lock().known(&found)?;
        known.err().map(|error| error.message)
    }

    fn chart<'a>(&'a self, source: &'a ChartSource, fresh: Freshness) -> BoxFuture<'a, Result<Chart, HelmError>> {
        Box::pin(crate::charts::chart(self, source, fresh))
    }

    fn install<'a>(
        &'a self,
        target: &'a Target,
        chart: &'a Chart,
        values: &'a str,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Summary, HelmError>> {
        Box::pin(async move {
            let values = input(values)?;
            let flags = |on: &On<'_>| on.install(&chart.archive);
            summary(&self.operate("install", target, options, values, flags).await?)
        })
    }

    fn upgrade<'a>(
        &'a self,
        target: &'a Target,
        chart: &'a Chart,
        values: &'a str,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Summary, HelmError>> {
        Box::pin(async move {
            let values = input(values)?;
            let flags = |on: &On<'_>| on.upgrade(&chart.archive);
            summary(&self.operate("upgrade", target, options, values, flags).await?)
        })
    }

    fn rollback<'a>(
        &'a self,
        target: &'a Target,
        to_revision: u32,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<(), HelmError>> {
        Box::pin(async move {
            let flags = |on: &On<'_>| on.rollback(to_revision);
            self.operate("rollback", target, options, Vec::new(), flags).await?;
            Ok(())
        })
    }

    fn uninstall<'a>(&'a self, target: &'a Target, options: &'a Options) -> BoxFuture<'a, Result<(), HelmError>> {
        Box::pin(async move {
            let flags = |on: &On<'_>| on.uninstall();
            match self.operate("uninstall", target, options, Vec::new(), flags).await {
                // (Helm's own flag for this ignores every error of the lookup.)
                Err(error) if error.kind == Kind::ReleaseNotFound => Ok(()),
                other => other.map(drop),
            }
        })
    }
}

fn turns(at_once: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(at_once.clamp(1, Semaphore::MAX_PERMITS)))
}

/// The passwords of proxies.
fn hidden(environment: &[(String, OsString)]) -> Mask {
    let mut mask = Mask::default();
    for address in environment.iter().filter_map(|(_, value)| value.to_str()) {
        let user = address
            .split_once("://")
            .map_or(address, |(_, rest)| rest)
            .rsplit_once('@');
        if let Some((_, password)) = user.and_then(|(user, _)| user.split_once(':')) {
            mask.hide(password);
        }
    }
    mask
}

/// Values in the form for helm: the data that is compared, so that nothing is parsed in two ways.
fn input(text: &str) -> Result<Vec<u8>, HelmError> {
    let values = values::parse(text).map_err(|why| HelmError::new(Kind::ValuesInvalid, why))?;
    serde_json::to_vec(&values).map_err(|error| HelmError::new(Kind::ValuesInvalid, error.to_string()))
}

/// Converts the exit of a process.
fn judge(asked: Asked, output: Output, limit: Duration, mask: &Mask) -> Result<String, HelmError> {
    let stdout = output.stdout.as_deref().map(String::from_utf8_lossy);
    match output.end {
        End::Exit(status) if status.success() => {
            let stdout = stdout.ok_or_else(|| HelmError::new(Kind::Other, "helm answered with too much to read"))?;
            Ok(stdout.into_owned())
        }
        End::Exit(status) => {
            // The repository's message is on standard output, separated by tabs.
            let told = stdout
                .as_deref()
                .filter(|_| asked == Asked::Repository)
                .unwrap_or_default();
            let told: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix('\t')).collect();
            let printed = if told.is_empty() {
                output.stderr
            } else {
                told.join("\n")
            };
            let words = match words::of(&printed, mask) {
                words if words.is_empty() => format!("helm ended with {status} and without a word"),
                words => words,
            };
            Err(HelmError::new(blame::kind(asked, &words), words))
        }
        End::TimedOut => {
            let words = words::of(&output.stderr, mask);
            let message = format!("helm did not end within {} s and was stopped: {words}", limit.as_secs());
            Err(HelmError::new(Kind::TimedOut, message.trim_end_matches([':', ' '])))
        }
        End::Cancelled => Err(HelmError::new(Kind::Cancelled, "helm was stopped before it was done")),
    }
}

/// The error of a local file.
pub(crate) fn file(what: &str, error: &std::io::Error) -> HelmError {
    HelmError::new(Kind::Other, format!("{what} cannot be made: {error}"))
}

/// Parses helm's output about a release.
fn summary(printed: &str) -> Result<Summary, HelmError> {
    #[derive(Deserialize)]
    struct Printed {
        version: u32,
        info: Info,
    }
    #[derive(Deserialize)]
    struct Info {
        status: String,
        #[serde(default)]
        description: String,
    }
    // It is one line; logs of hooks may precede it.
    let line = printed.lines().rev().find(|line| line.starts_with('{'));
    let release: Printed = serde_json::from_str(line.unwrap_or_default()).map_err(|_| {
        let message = "helm succeeded, but what it printed of the release cannot be read";
        HelmError::new(Kind::Other, message)
    })?;
    Ok(Summary {
        revision: release.version,
        status: Status::read(&release.info.status),
        description: release.info.description,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_proxies_are_hidden() {
        let variable = |value: &str| ("HTTPS_PROXY".to_owned(), OsString::from(value));
        let environment = [
            "http://amy:sesame@proxy:3128",
            "amy:hushhush@proxy",
            "http://proxy:3128",
        ]
        .map(variable);
        let mut mask = Mask::default();
        mask.hide("my-token");
        let mask = mask.with(&hidden(&environment));
        let printed = "Error: proxy:3128 amy sesame hushhush my-token";
        assert_eq!(words::of(printed, &mask), "proxy:3128 amy *** *** ***");
    }

    #[test]
    fn what_helm_prints_of_a_release_is_read() {
        let printed = r#"the log of a hook: {}
{"level": "info", "msg": "the log of another"}
{"name":"web","info":{"status":"deployed","description":"Install complete"},"version":3,"chart":{}}"#;
        let read = summary(printed).unwrap();
        assert_eq!((read.revision, read.status), (3, Status::Deployed));
        for odd in ["", "none", "{}", "{\"version\": \"1\"}"] {
            assert_eq!(summary(odd).unwrap_err().kind, Kind::Other, "{odd}");
        }
    }
}
