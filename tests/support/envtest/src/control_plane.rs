//! The control plane: starts it, waits until it is ready, and gives access to it.

use std::path::{Path, PathBuf};

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tempfile::TempDir;
use tokio::net::TcpStream;
use windlass_pki::LeafRequest;

use crate::child::{Program, Programs};
use crate::flags::Ports;
use crate::identity::{self, Identity};
use crate::{Options, StartError, Tools, Usage, reserved_port};

const ETCD: &str = "etcd";
const APISERVER: &str = "kube-apiserver";
const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// A running real API server. Dropping it ends all its programs and removes their files.
pub struct ControlPlane {
    /// Declared before the folder, so that the programs end first.
    programs: Programs,
    folder: TempDir,
    identity: Identity,
    url: String,
    etcd_url: String,
    kubeconfig: String,
}

impl std::fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlPlane")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Starts a control plane with the programs of this checkout, and returns when it is ready. Needs a tokio runtime.
    pub async fn start(options: &Options) -> Result<Self, StartError> {
        Self::start_with(&Tools::find()?, options).await
    }

    /// [`Self::start`] with other programs.
    pub async fn start_with(tools: &Tools, options: &Options) -> Result<Self, StartError> {
        let parent = options.parent.clone().unwrap_or_else(std::env::temp_dir);
        let cannot = |source| StartError::File {
            path: parent.join("windlass-envtest"),
            source,
        };
        // The programs run in the folder, so its path must not depend on the current directory.
        let folder = std::path::absolute(&parent).and_then(|parent| {
            let mut builder = tempfile::Builder::new();
            builder.prefix("windlass-envtest-").tempdir_in(parent)
        });
        let folder = folder.map_err(cannot)?;
        let ports = reserved_ports().map_err(cannot)?;
        let identity = Identity::make(folder.path())?;
        let url = format!("https://127.0.0.1:{}", ports.apiserver);
        let kubeconfig = identity.kubeconfig(&LeafRequest::administrator(), &url)?;
        identity::write(&folder.path().join("kubeconfig"), &kubeconfig)?;
        let mut control_plane = Self {
            programs: Programs::new(folder.path(), options.variables())?,
            folder,
            identity,
            url,
            etcd_url: format!("http://127.0.0.1:{}", ports.etcd),
            kubeconfig,
        };
        control_plane.start_programs(tools, options, ports).await?;
        Ok(control_plane)
    }

    async fn start_programs(&mut self, tools: &Tools, options: &Options, ports: Ports) -> Result<(), StartError> {
        let folder = self.folder.path().to_owned();
        self.programs
            .start(&tools.path(ETCD), ETCD, &options.etcd(&folder, ports), &folder)?;
        let address = ("127.0.0.1", ports.etcd);
        self.ready(ETCD, async || TcpStream::connect(address).await.is_ok())
            .await?;
        let flags = options.apiserver(&folder, ports);
        self.programs
            .start(&tools.path(APISERVER), APISERVER, &flags, &folder)?;
        let client = self.client().await?;
        self.ready(APISERVER, async || {
            // The default namespaces are created after everything else is ready.
            is_found(&client, "/readyz").await && is_found(&client, "/api/v1/namespaces/default").await
        })
        .await?;
        if options.controllers {
            let flags = options.controller_manager(&folder, ports);
            self.programs
                .start(&tools.path(CONTROLLER_MANAGER), CONTROLLER_MANAGER, &flags, &folder)?;
            let mut config = self.config().await?;
            let url = format!("https://127.0.0.1:{}", ports.controller_manager);
            config.cluster_url = url.parse().map_err(|error| no_client(&error))?;
            let client = Client::try_from(config).map_err(|error| no_client(&error))?;
            self.ready(CONTROLLER_MANAGER, async || is_found(&client, "/healthz").await)
                .await?;
        }
        Ok(())
    }

    /// Waits until a program is ready; an error if it ends before.
    async fn ready(&mut self, program: &'static str, is_ready: impl AsyncFn() -> bool) -> Result<(), StartError> {
        self.programs.ready(program, is_ready).await
    }

    /// The last lines of a program's log.
    pub fn log(&self, program: &str) -> String {
        let found = self.programs.get(program);
        found.map(Program::last_lines).unwrap_or_default()
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL of its etcd, without TLS.
    pub(crate) fn etcd_url(&self) -> &str {
        &self.etcd_url
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The administrator's kubeconfig as a file, which exists as long as the control plane.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The folder of all its files; its user may add others.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The CA certificate, PEM.
    pub fn authority(&self) -> String {
        self.identity.authority()
    }

    /// A kubeconfig of a user, with a client certificate that has one group.
    pub fn kubeconfig_of(&self, user: &str, group: &str) -> Result<String, StartError> {
        Ok(self.identity.kubeconfig(&LeafRequest::client(user, group), &self.url)?)
    }

    /// The administrator's client configuration.
    pub async fn config(&self) -> Result<Config, StartError> {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig).map_err(|error| no_client(&error))?;
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| no_client(&error))
    }

    /// The administrator's client.
    pub async fn client(&self) -> Result<Client, StartError> {
        Client::try_from(self.config().await?).map_err(|error| no_client(&error))
    }

    /// The resource usage of each program so far, by its name.
    pub fn usage(&self) -> Vec<(&'static str, Usage)> {
        let used = |program: &Program| Some((program.name(), Usage::of(program.pid())?));
        self.programs.iter().filter_map(used).collect()
    }

    /// The process ids of its programs.
    pub fn pids(&self) -> Vec<u32> {
        self.programs.iter().map(Program::pid).collect()
    }

    /// An error if a program has ended, with the end of its log.
    pub fn check(&mut self) -> Result<(), StartError> {
        self.programs.check()
    }
}

pub(crate) fn no_client(error: &dyn std::error::Error) -> StartError {
    StartError::Client(error.to_string())
}

pub(crate) async fn is_found(client: &Client, path: &str) -> bool {
    let Ok(request) = Request::get(path).body(Vec::new()) else {
        return false;
    };
    client.request_text(request).await.is_ok()
}

fn reserved_ports() -> std::io::Result<Ports> {
    Ok(Ports {
        etcd: reserved_port()?,
        peer: reserved_port()?,
        apiserver: reserved_port()?,
        controller_manager: reserved_port()?,
    })
}
