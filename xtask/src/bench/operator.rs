//! `cargo xtask bench operator`: what it costs to install providers, and to have them.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use windlass_testkit::Deployments;

use super::child::{Folder, Running};
use super::figures::{Figure, Figures, Unit};
use super::{MIB, build, say};
use crate::providers::files::{self, Release};
use crate::providers::web::Web;
use crate::providers::{declare, operators};

/// How many providers are installed; those that the folder lacks are look-alikes.
const PROVIDERS: usize = 10;
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
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let mut figures = Figures::of_this_machine();
    let title = format!("{PROVIDERS} providers, {} of them real", real.len());
    let (mut seconds, mut memory) = (Vec::new(), Vec::new());
    for run in 1..=options.runs {
        say(&format!("{title}, run {run} of {}", options.runs));
        let up = Up::start(&program)?;
        seconds.push(runtime.block_on(up.install(&all))?);
        memory.push(up.peak_memory()?);
        if run == options.runs {
            say(&format!("left alone for {} s", options.idle));
            let before = up.requests()?;
            runtime.block_on(tokio::time::sleep(Duration::from_secs(options.idle)));
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
        let mut memory = Vec::new();
        for run in 1..=options.runs {
            say(&format!("{LARGEST}, run {run} of {}", options.runs));
            let up = Up::start(&program)?;
            runtime.block_on(up.install(&alone))?;
            memory.push(up.peak_memory()?);
            up.stop()?;
        }
        figures.add(Figure::new(
            format!("{LARGEST}: peak memory of operator and API server"),
            Unit::Mebibytes,
            memory,
            Some(100.0),
        ));
    }
    if options.json {
        anstream::println!("{}", figures.json());
    } else {
        anstream::print!("{}", figures.text());
    }
    Ok(())
}

/// `windlass up` with the operator's controllers.
struct Up {
    running: Running,
    folder: Folder,
    metrics: u16,
}

impl Up {
    fn start(program: &Path) -> Result<Self, String> {
        let folder = Folder::new()?;
        let (port, metrics) = free_ports()?;
        let (data, kubeconfig, controllers) = (
            folder.argument("data"),
            folder.argument("kubeconfig"),
            operators().join(","),
        );
        let (port, address) = (port.to_string(), format!("127.0.0.1:{metrics}"));
        let line = [
            "up",
            "--data-dir",
            &data,
            "--port",
            &port,
            "--kubeconfig",
            &kubeconfig,
            "--controllers",
            &controllers,
            "--metrics-address",
            &address,
        ];
        Ok(Self {
            running: Running::start(program, &line)?,
            folder,
            metrics,
        })
    }

    fn stop(self) -> Result<(), String> {
        self.running.stop()
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

    /// A client, as soon as there is a server.
    async fn client(&self) -> Result<kube::Client, String> {
        let (path, started) = (self.folder.path().join("kubeconfig"), Instant::now());
        loop {
            if let Ok(found) = Kubeconfig::read_from(&path)
                && let Ok(config) = kube::Config::from_custom_kubeconfig(found, &KubeConfigOptions::default()).await
                && let Ok(client) = kube::Client::try_from(config)
                && client.apiserver_version().await.is_ok()
            {
                return Ok(client);
            }
            if started.elapsed() > declare::PATIENCE {
                return Err("windlass up does not answer".to_owned());
            }
            tokio::time::sleep(declare::POLL).await;
        }
    }

    /// The most memory that the process ever had, in MiB.
    fn peak_memory(&self) -> Result<f64, String> {
        let path = format!("/proc/{}/status", self.running.id());
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        kibibytes
            .map(|number| number * 1024.0 / MIB)
            .ok_or_else(|| format!("{path}: there is no VmHWM"))
    }

    /// The requests of the controllers so far.
    fn requests(&self) -> Result<f64, String> {
        let failed = |error: std::io::Error| format!("metrics cannot be read: {error}");
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.metrics)).map_err(failed)?;
        stream
            .write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
            .map_err(failed)?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map_err(failed)?;
        let lines = text
            .lines()
            .filter(|line| line.starts_with("rest_client_requests_total"));
        Ok(lines
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum())
    }
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
