//! The measured servers: separate programs with data folders on a disk.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tempfile::TempDir;
use windlass_envtest::{ControlPlane, Options, Usage};

use crate::client::Access;
use crate::item::definition;

/// The kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Ours,
    Real,
}

enum Running {
    Ours { child: Child, _folder: TempDir },
    Real(Box<ControlPlane>),
}

/// A running server.
pub(crate) struct Subject {
    pub(crate) access: Access,
    /// The time from its start until it was ready.
    pub(crate) start: Duration,
    running: Running,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Self::Ours { child, .. } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

const LOOK: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_mins(2);

async fn until_ready(access: &Access, since: Instant) -> Result<Duration, String> {
    while since.elapsed() < PATIENCE {
        if let Ok(mut connection) = access.connect().await
            && connection
                .send(Method::GET, "/readyz", "application/json", Bytes::new())
                .await
                .is_ok()
        {
            return Ok(since.elapsed());
        }
        tokio::time::sleep(LOOK).await;
    }
    Err("the server does not become ready".to_owned())
}

impl Subject {
    /// Starts a server with an empty data folder and the definition of items.
    pub(crate) async fn start(kind: Kind, program: &Path, disk: &Path) -> Result<Self, String> {
        let subject = match kind {
            Kind::Ours => ours(program, disk).await?,
            Kind::Real => real(disk).await?,
        };
        let mut connection = subject.access.connect().await?;
        let to = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        connection
            .send(Method::POST, to, "application/json", definition())
            .await?;
        let begun = Instant::now();
        while connection.drain(crate::item::ITEMS).await.is_err() {
            if begun.elapsed() > PATIENCE {
                return Err("the definition of items is not served".to_owned());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(subject)
    }

    /// The resources of all its programs: resident bytes, processor time.
    pub(crate) fn usage(&self) -> (u64, Duration) {
        let all: Vec<Usage> = match &self.running {
            Running::Ours { child, .. } => Usage::of(child.id()).into_iter().collect(),
            Running::Real(control_plane) => control_plane.usage().into_iter().map(|(_, usage)| usage).collect(),
        };
        (
            all.iter().map(|usage| usage.memory).sum(),
            all.iter().map(|usage| usage.cpu).sum(),
        )
    }
}

async fn ours(program: &Path, disk: &Path) -> Result<Subject, String> {
    let folder = tempfile::tempdir_in(disk).map_err(|e| format!("{}: {e}", disk.display()))?;
    let kubeconfig: PathBuf = folder.path().join("kubeconfig");
    let since = Instant::now();
    let child = Command::new(program)
        .args(["--log-level", "error", "apiserver", "--port", "0", "--data-dir"])
        .arg(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    let running = Running::Ours { child, _folder: folder };
    let access = loop {
        if let Ok(found) = Kubeconfig::read_from(&kubeconfig)
            && let Ok(config) = Config::from_custom_kubeconfig(found, &KubeConfigOptions::default()).await
        {
            break Access::new(&config)?;
        }
        if since.elapsed() > PATIENCE {
            return Err("windlass apiserver writes no kubeconfig".to_owned());
        }
        tokio::time::sleep(LOOK).await;
    };
    let start = until_ready(&access, since).await?;
    Ok(Subject { access, start, running })
}

async fn real(disk: &Path) -> Result<Subject, String> {
    let since = Instant::now();
    let options = Options {
        fsync: true,
        parent: Some(disk.to_owned()),
        controllers: false,
        ..Options::default()
    };
    let control_plane = ControlPlane::start(&options).await.map_err(|e| e.to_string())?;
    let config = control_plane.config().await.map_err(|e| e.to_string())?;
    let access = Access::new(&config)?;
    let start = until_ready(&access, since).await?;
    Ok(Subject {
        access,
        start,
        running: Running::Real(Box::new(control_plane)),
    })
}
