//! `cargo xtask bench operator`: what it costs to install providers, and to have them.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::runtime::Runtime;
use tokio::time::sleep;
use windlass_testkit::Deployments;

use super::child::{Folder, Running};
use super::figures::{Figure, Figures, Unit};
use super::{MIB, build, say};
use crate::providers::files::{self, Release};
use crate::providers::web::Web;
use crate::providers::{declare, operators};

/// How many providers are installed; those that the folder lacks are look-alikes.
const PROVIDERS: usize = 10;
/// How long nothing is asked by an operator that has come to rest.
const REST: Duration = Duration::from_secs(5);
/// The provider whose files are the largest.
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
        let up = Up::start(&program, &runtime)?;
        seconds.push(runtime.block_on(up.install(&all))?);
        memory.push(up.peak_memory()?);
        if run == options.runs {
            let before = runtime.block_on(up.rest())?;
            say(&format!("left alone for {} s", options.idle));
            runtime.block_on(async { sleep(Duration::from_secs(options.idle)).await });
            let requests = up.requests()? - before;
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
        // Beside a core that is next to nothing.
        let alone = files::filled_up(largest, 2);
        let (mut apart, mut together) = (Vec::new(), Vec::new());
        for run in 1..=options.runs {
            say(&format!("{LARGEST}, run {run} of {}", options.runs));
            for (start, memory) in [(Up::apart as Start, &mut apart), (Up::start, &mut together)] {
                let up = start(&program, &runtime)?;
                runtime.block_on(up.install(&alone))?;
                memory.push(up.peak_memory()?);
                up.stop()?;
            }
        }
        figures.add(Figure::new(
            format!("{LARGEST}: peak memory of the operator"),
            Unit::Mebibytes,
            apart,
            Some(100.0),
        ));
        figures.add(Figure::new(
            format!("{LARGEST}: peak memory of operator and API server in one process"),
            Unit::Mebibytes,
            together,
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

/// A management cluster with the operator's controllers.
struct Up {
    /// What runs the controllers.
    operator: Running,
    /// The API server, where it is a process of its own.
    server: Option<Running>,
    folder: Folder,
    metrics: u16,
}

impl Up {
    /// Everything in one process: `windlass up`.
    fn start(program: &Path, _: &Runtime) -> Result<Self, String> {
        let (folder, (port, metrics)) = (Folder::new()?, free_ports()?);
        let operator = Self::run(program, &folder, &["up"], &[serve(&folder, port), control(metrics)])?;
        Ok(Self {
            operator,
            server: None,
            folder,
            metrics,
        })
    }

    /// `windlass manager` on `windlass apiserver`.
    fn apart(program: &Path, runtime: &Runtime) -> Result<Self, String> {
        let (folder, (port, metrics)) = (Folder::new()?, free_ports()?);
        let server = Self::run(program, &folder, &["apiserver"], &[serve(&folder, port)])?;
        runtime.block_on(written(&folder.path().join("kubeconfig")))?;
        let line = ["manager", "--install-crds"];
        let operator = Self::run(program, &folder, &line, &[control(metrics)])?;
        Ok(Self {
            operator,
            server: Some(server),
            folder,
            metrics,
        })
    }

    fn run(program: &Path, folder: &Folder, command: &[&str], options: &[Vec<String>]) -> Result<Running, String> {
        let kubeconfig = folder.argument("kubeconfig");
        let options = options.iter().flatten().map(String::as_str);
        let line: Vec<&str> = command.iter().copied().chain(options).collect();
        Running::start(program, &[&line, &["--kubeconfig", kubeconfig.as_str()][..]].concat())
    }

    fn stop(self) -> Result<(), String> {
        self.operator.stop()?;
        self.server.map_or(Ok(()), Running::stop)
    }

    /// Waits until nothing has been asked for a while; the requests until then. What only changes words of a status is written
    /// seconds later.
    async fn rest(&self) -> Result<f64, String> {
        let (started, mut since) = (Instant::now(), Instant::now());
        let mut seen = self.requests()?;
        while since.elapsed() < REST && started.elapsed() < declare::PATIENCE {
            sleep(declare::POLL).await;
            let requests = self.requests()?;
            if requests > seen {
                (seen, since) = (requests, Instant::now());
            }
        }
        Ok(seen)
    }

    /// Installs providers, all declared at once; seconds until all are installed and available.
    async fn install(&self, releases: &[Release]) -> Result<f64, String> {
        let client = self.client().await?;
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

    /// A client, as soon as there are a server and controllers.
    async fn client(&self) -> Result<kube::Client, String> {
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
            if started.elapsed() > declare::PATIENCE {
                return Err("windlass does not answer".to_owned());
            }
            sleep(declare::POLL).await;
        }
    }

    /// The most memory that the process ever had, in MiB.
    fn peak_memory(&self) -> Result<f64, String> {
        let path = format!("/proc/{}/status", self.operator.id());
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        kibibytes
            .map(|number| number * 1024.0 / MIB)
            .ok_or_else(|| format!("{path}: there is no VmHWM"))
    }

    /// The requests of the controllers so far.
    fn requests(&self) -> Result<f64, String> {
        let text = self
            .ask("/metrics")
            .map_err(|error| format!("metrics cannot be read: {error}"))?;
        let lines = text
            .lines()
            .filter(|line| line.starts_with("rest_client_requests_total"));
        Ok(lines
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum())
    }

    /// Whether the controllers run.
    fn is_ready(&self) -> bool {
        let answer = self.ask("/readyz");
        answer.is_ok_and(|text| text.lines().next().is_some_and(|line| line.contains(" 200 ")))
    }

    fn ask(&self, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.metrics))?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// Options of what serves the API.
fn serve(folder: &Folder, port: u16) -> Vec<String> {
    let (data, port) = (folder.argument("data"), port.to_string());
    ["--data-dir", &data, "--port", &port].map(str::to_owned).to_vec()
}

/// Options of what runs the controllers.
fn control(metrics: u16) -> Vec<String> {
    let (names, address) = (operators().join(","), format!("127.0.0.1:{metrics}"));
    ["--controllers", &names, "--metrics-address", &address]
        .map(str::to_owned)
        .to_vec()
}

/// Waits until there is a file.
async fn written(file: &Path) -> Result<(), String> {
    let started = Instant::now();
    while !file.exists() {
        if started.elapsed() > declare::PATIENCE {
            return Err("windlass apiserver does not start".to_owned());
        }
        sleep(declare::POLL).await;
    }
    Ok(())
}

/// Two ports that are free now; another process may take them before ours does, and then the measurement fails and says so.
fn free_ports() -> Result<(u16, u16), String> {
    let listen = || {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| Ok((listener.local_addr()?.port(), listener)))
    };
    let failed = |error| format!("no free port: {error}");
    let (one, _held) = listen().map_err(failed)?;
    let (other, _) = listen().map_err(failed)?;
    Ok((one, other))
}
