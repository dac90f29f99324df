//! A `windlass` server process: start, requests and measurements.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::runtime::Runtime;
use tokio::time::sleep;

use super::MIB;
use super::child::{Folder, Running};
use crate::providers::declare::{PATIENCE, POLL};

/// Idle controllers send no requests for this time.
const REST: Duration = Duration::from_secs(5);

/// A management cluster.
pub(super) struct Up {
    /// The process of the controllers.
    controllers: Running,
    /// The process of the API server, if it is separate.
    server: Option<Running>,
    folder: Folder,
    ports: Ports,
}

/// The ports of the controllers' process.
#[derive(Clone, Copy)]
struct Ports {
    metrics: u16,
    health: u16,
}

impl Up {
    /// Starts everything in one process: `windlass up`, with additional options.
    pub(super) fn start(program: &Path, options: &[String]) -> Result<Self, String> {
        let (folder, port, ports) = (Folder::new()?, reserved_port()?, Ports::reserved()?);
        let all = [serve(&folder, port), control(ports, options)];
        let controllers = run(program, &folder, &["up"], &all)?;
        Ok(Self {
            controllers,
            server: None,
            folder,
            ports,
        })
    }

    /// Starts `windlass manager`, with additional options, on `windlass apiserver`.
    pub(super) fn apart(program: &Path, runtime: &Runtime, options: &[String]) -> Result<Self, String> {
        let (folder, port, ports) = (Folder::new()?, reserved_port()?, Ports::reserved()?);
        let server = run(program, &folder, &["apiserver"], &[serve(&folder, port)])?;
        runtime.block_on(written(&folder.path().join("kubeconfig")))?;
        let line = ["manager", "--install-crds"];
        let controllers = run(program, &folder, &line, &[control(ports, options)])?;
        Ok(Self {
            controllers,
            server: Some(server),
            folder,
            ports,
        })
    }

    pub(super) fn stop(self) -> Result<(), String> {
        self.controllers.stop()?;
        self.server.map_or(Ok(()), Running::stop)
    }

    /// Waits until there have been no requests for a while, except those that keep connections alive. Returns the requests until
    /// then. Changes of texts in a status are written seconds later.
    pub(super) async fn rest(&self) -> Result<Requests, String> {
        let (started, mut since) = (Instant::now(), Instant::now());
        let mut seen = self.requests()?;
        while since.elapsed() < REST && started.elapsed() < PATIENCE {
            sleep(POLL).await;
            let now = self.requests()?;
            if now.decided() > seen.decided() {
                since = Instant::now();
            }
            seen = now;
        }
        Ok(seen)
    }

    /// A client, once the server and the controllers are ready.
    pub(super) async fn client(&self) -> Result<kube::Client, String> {
        let (path, started) = (self.folder.path().join("kubeconfig"), Instant::now());
        loop {
            if self.is_ready()
                && let Ok(found) = Kubeconfig::read_from(&path)
                && let Ok(config) = kube::Config::from_custom_kubeconfig(found, &KubeConfigOptions::default()).await
                && let Ok(client) = kube::Client::try_from(config)
                && client.apiserver_version().await.is_ok()
            {
                return Ok(client);
            }
            if started.elapsed() > PATIENCE {
                return Err("windlass does not answer".to_owned());
            }
            sleep(POLL).await;
        }
    }

    /// The process's peak memory, in MiB.
    pub(super) fn peak_memory(&self) -> Result<f64, String> {
        self.memory("VmHWM:")
    }

    /// The process's current memory, in MiB.
    pub(super) fn memory_now(&self) -> Result<f64, String> {
        self.memory("VmRSS:")
    }

    fn memory(&self, field: &str) -> Result<f64, String> {
        memory(self.controllers.id(), "status", field)
    }

    /// Watches the child processes from now on.
    pub(super) fn children(&self) -> Children {
        Children::watch(self.controllers.id())
    }

    /// Processor time in seconds: of the process, and of its ended child processes.
    pub(super) fn processor_time(&self) -> Result<(f64, f64), String> {
        let path = format!("/proc/{}/stat", self.controllers.id());
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        // The name of the program, in parentheses, may contain spaces. The fields after it are numbered from the state on, which
        // is the third field.
        let fields: Vec<&str> = text
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_whitespace()
            .collect();
        let ticks = |number: usize| fields.get(number - 3).and_then(|field| field.parse::<f64>().ok());
        let sum = |one, other| Some((ticks(one)? + ticks(other)?) / TICKS);
        sum(14, 15)
            .zip(sum(16, 17))
            .ok_or_else(|| format!("{path}: there are no times"))
    }

    /// The requests of the controllers so far.
    pub(super) fn requests(&self) -> Result<Requests, String> {
        let text = self.scrape()?;
        Ok(Requests {
            all: sum(&text, "rest_client_requests_total"),
            probes: sum(&text, "capi_cluster_cache_healthchecks_total"),
            watches: sum(&text, "windlass_watches_total"),
        })
    }

    /// The sum of a metric over all labels; 0 if the metric does not exist yet.
    pub(super) fn metric(&self, name: &str) -> Result<f64, String> {
        Ok(sum(&self.scrape()?, name))
    }

    fn scrape(&self) -> Result<String, String> {
        ask(self.ports.metrics, "/metrics").map_err(|error| format!("metrics cannot be read: {error}"))
    }

    /// Whether the controllers are ready.
    fn is_ready(&self) -> bool {
        let answer = ask(self.ports.health, "/readyz");
        answer.is_ok_and(|text| text.lines().next().is_some_and(|line| line.contains(" 200 ")))
    }
}

fn ask(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// The memory of a process, in MiB, from a field of a file in `/proc`.
pub(super) fn memory(process: u32, file: &str, field: &str) -> Result<f64, String> {
    let path = format!("/proc/{process}/{file}");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kibibytes
        .map(|number| number * 1024.0 / MIB)
        .ok_or_else(|| format!("{path}: there is no {field}"))
}

/// The peak memory of a process's children together, sampled ten times a second.
pub(super) struct Children {
    /// Sampling ends when this is dropped.
    going_on: Sender<()>,
    looks: JoinHandle<f64>,
}

impl Children {
    fn watch(parent: u32) -> Self {
        let (going_on, ended) = mpsc::channel();
        let looks = std::thread::spawn(move || {
            let mut most = 0.0;
            while ended.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                most = f64::max(most, together(parent));
            }
            most
        });
        Self { going_on, looks }
    }

    /// The peak, in MiB.
    pub(super) fn most(self) -> f64 {
        drop(self.going_on);
        self.looks.join().unwrap_or(f64::NAN)
    }
}

/// The current memory of a process's children; those that end meanwhile have none.
fn together(parent: u32) -> f64 {
    // A child is listed with the thread that started it.
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    let memory = |list: String| -> f64 {
        let children = list.split_whitespace().filter_map(|id| id.parse().ok());
        // Memory that they share, such as the program itself, counts once.
        children
            .filter_map(|child| memory(child, "smaps_rollup", "Pss:").ok())
            .sum()
    };
    lists.map(memory).sum()
}

/// Requests to API servers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requests {
    pub(super) all: f64,
    /// Of these, health probes of workload clusters.
    pub(super) probes: f64,
    /// Of these, new or renewed watches.
    pub(super) watches: f64,
}

impl Requests {
    /// Deliberate requests; the others keep connections alive.
    pub(super) fn decided(self) -> f64 {
        self.all - self.probes - self.watches
    }
}

impl std::ops::Sub for Requests {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            all: self.all - before.all,
            probes: self.probes - before.probes,
            watches: self.watches - before.watches,
        }
    }
}

/// The sum of a metric in a scrape.
fn sum(scrape: &str, name: &str) -> f64 {
    let lines = scrape
        .lines()
        .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
    lines
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
        .sum()
}

/// The frequency of the processor's clock in Linux's interface.
const TICKS: f64 = 100.0;

fn run(program: &Path, folder: &Folder, command: &[&str], options: &[Vec<String>]) -> Result<Running, String> {
    let kubeconfig = folder.argument("kubeconfig");
    let options = options.iter().flatten().map(String::as_str);
    let line: Vec<&str> = command.iter().copied().chain(options).collect();
    Running::start(program, &[&line, &["--kubeconfig", kubeconfig.as_str()][..]].concat())
}

/// The options of an API server.
fn serve(folder: &Folder, port: u16) -> Vec<String> {
    let (data, port) = (folder.argument("data"), port.to_string());
    ["--data-dir", &data, "--port", &port].map(str::to_owned).to_vec()
}

/// The options of controllers.
fn control(ports: Ports, more: &[String]) -> Vec<String> {
    let address = |port: u16| format!("127.0.0.1:{port}");
    let mut options = more.to_vec();
    options.extend(["--diagnostics-address".to_owned(), address(ports.metrics)]);
    options.extend(["--health-addr".to_owned(), address(ports.health)]);
    options.push("--insecure-diagnostics".to_owned());
    options
}

/// Waits until a file exists.
async fn written(file: &Path) -> Result<(), String> {
    let started = Instant::now();
    while !file.exists() {
        if started.elapsed() > PATIENCE {
            return Err("windlass apiserver does not start".to_owned());
        }
        sleep(POLL).await;
    }
    Ok(())
}

impl Ports {
    fn reserved() -> Result<Self, String> {
        Ok(Self {
            metrics: reserved_port()?,
            health: reserved_port()?,
        })
    }
}

/// A port that stays reserved until the program listens on it.
fn reserved_port() -> Result<u16, String> {
    windlass_envtest::reserved_port().map_err(|error| format!("no free port: {error}"))
}
