//! The demo's management cluster: the embedded API server, or a running one, with all controllers in this process.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kube::Config;
use tempfile::TempDir;
use windlass_apiserver::{RequestKey, UserInfo};
use windlass_controller_runtime::{Cx, Metrics, transport};
use windlass_manager::registry::kinds;
use windlass_manager::up::{self, CONTROLLERS_AGENT, Up};
use windlass_manager::{
    BuiltIns, EmbeddedOptions, FeatureGates, Fetcher, Helming, Running, Selection, WebhookOptions, WebhookTarget,
    Webhooks, controllers, network, webhooks,
};

use super::MANAGER;
use crate::counting::{Counted, Counts};
use crate::error::DemoError;
use crate::options::Server;

/// A management cluster with its controllers.
pub(super) enum Place {
    /// The same as `windlass up`. A temporary folder is removed with it.
    Embedded { up: Box<Up>, _folder: Option<TempDir> },
    /// The same as `windlass manager`, against a running API server.
    Running(Box<Controllers>),
}

/// The controllers, and their connection to the API server.
pub(super) struct Controllers {
    kubeconfig: PathBuf,
    config: Config,
    counts: Counts,
    running: Running,
    webhooks: Option<Webhooks>,
}

impl Place {
    /// Starts the controllers, and the API server if it is the embedded one.
    pub(super) async fn start(server: &Server) -> Result<Self, DemoError> {
        match server {
            Server::Embedded(Some(folder)) => Ok(Self::Embedded {
                up: Box::new(embedded(folder).await?),
                _folder: None,
            }),
            Server::Embedded(None) => {
                // Removed when dropped, also after a failure.
                let folder = tempfile::Builder::new()
                    .prefix("windlass-demo-")
                    .permissions(std::fs::Permissions::from_mode(0o700))
                    .tempdir()
                    .map_err(|source| DemoError::failed("cannot make a temporary folder", source))?;
                Ok(Self::Embedded {
                    up: Box::new(embedded(folder.path()).await?),
                    _folder: Some(folder),
                })
            }
            Server::Running {
                kubeconfig,
                webhook_address,
            } => {
                let controllers = Controllers::start(kubeconfig, *webhook_address).await?;
                Ok(Self::Running(Box::new(controllers)))
            }
        }
    }

    /// The URL of the API server.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Embedded { up, .. } => up.embedded().url(),
            Self::Running(controllers) => controllers.config.cluster_url.to_string(),
        }
    }

    /// The kubeconfig of its administrator.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Embedded { up, .. } => up.embedded().kubeconfig().to_owned(),
            Self::Running(controllers) => controllers.kubeconfig.clone(),
        }
    }

    /// The administrator's client.
    pub(super) fn client(&self) -> Result<kube::Client, DemoError> {
        match self {
            Self::Embedded { up, .. } => Ok(up.embedded().client(MANAGER, &Metrics::new())),
            Self::Running(controllers) => connect_patiently(&controllers.config),
        }
    }

    /// The client of a user without groups.
    pub(super) fn client_of(&self, user: &str) -> Result<kube::Client, DemoError> {
        match self {
            Self::Embedded { up, .. } => {
                let service = up.embedded().server().client_service(UserInfo::new(user, &[]));
                Ok(transport::in_process(service, &Metrics::new()))
            }
            Self::Running(controllers) => {
                let mut config = controllers.config.clone();
                config.auth_info.impersonate = Some(user.to_owned());
                connect_patiently(&config)
            }
        }
    }

    /// The caches of the controllers.
    pub(super) fn cx(&self) -> Cx {
        match self {
            Self::Embedded { up, .. } => up.running().kit().cx(),
            Self::Running(controllers) => controllers.running.kit().cx(),
        }
    }

    /// The requests since the start; for a running API server, only the writes of the controllers.
    pub(super) fn requests(&self) -> BTreeMap<RequestKey, u64> {
        match self {
            Self::Embedded { up, .. } => up.embedded().server().counters().snapshot(),
            Self::Running(controllers) => controllers.counts.snapshot(),
        }
    }

    /// Stops everything.
    pub(super) async fn shutdown(&self) {
        match self {
            Self::Embedded { up, .. } => up.shutdown().await,
            Self::Running(controllers) => controllers.shutdown().await,
        }
    }
}

/// The controllers of the demo: it installs no providers, and leaves no inventory of them on a running API server.
fn selection() -> Selection {
    Selection::all().without_operator()
}

async fn embedded(data_dir: &Path) -> Result<Up, DemoError> {
    let options = EmbeddedOptions {
        data_dir: data_dir.to_owned(),
        kubeconfig: None,
        port: 0,
        tokens: None,
        definitions: true,
        gates: FeatureGates::default(),
        built_ins: BuiltIns::default(),
    };
    let (fetcher, helm) = (Fetcher::default(), Helming::default());
    Ok(up::start(
        options,
        &selection(),
        &fetcher,
        &helm,
        up::Listeners::default(),
        up::Reconciling::default(),
    )
    .await?)
}

impl Controllers {
    async fn start(kubeconfig: &Path, webhook_address: Option<SocketAddr>) -> Result<Self, DemoError> {
        let config = network::config(Some(kubeconfig), None).await?;
        let admin = network::connect_patiently(&config).await?;
        network::definitions(&admin, &kinds::all_crds(), true).await?;
        let webhooks = match webhook_address {
            Some(address) => Some(serve_admission(admin, address).await?),
            None => None,
        };
        let (metrics, counts) = (Metrics::new(), Counts::default());
        let counted = Counted {
            client: network::connect(&config, &Metrics::new())?,
            agent: CONTROLLERS_AGENT,
            counts: counts.clone(),
        };
        let client = transport::in_process(counted, &metrics);
        let running = controllers::start(client, metrics, &selection(), &Fetcher::default(), &Helming::default());
        Ok(Self {
            kubeconfig: kubeconfig.to_owned(),
            config,
            counts,
            running,
            webhooks,
        })
    }

    async fn shutdown(&self) {
        self.running.shutdown().await;
        let Some(webhooks) = &self.webhooks else { return };
        // First, because while it serves, it restores a deleted configuration.
        webhooks.shutdown().await;
        // With a configuration that names a stopped server, every write would be refused.
        let withdrawn = match network::connect(&self.config, &Metrics::new()) {
            Ok(client) => windlass_webhook::withdraw(&client)
                .await
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = withdrawn {
            tracing::error!("the admission webhook configuration of the demo cannot be removed: {why}");
        }
    }
}

async fn serve_admission(client: kube::Client, address: SocketAddr) -> Result<Webhooks, DemoError> {
    let listener = network::listen(address, "--webhook-address").await?;
    let address = listener
        .local_addr()
        .map_err(|source| DemoError::failed("cannot tell where webhooks are answered", source))?;
    let options = WebhookOptions {
        listener,
        target: WebhookTarget::url(&format!("https://{address}")).map_err(DemoError::plain)?,
        certificate_dir: None,
        gates: FeatureGates::default(),
        built_ins: BuiltIns::default(),
    };
    Ok(webhooks::start(client, options).await?)
}

fn connect_patiently(config: &Config) -> Result<kube::Client, DemoError> {
    transport::connect_patiently(config, &Metrics::new())
        .map_err(|source| DemoError::failed("cannot reach the API server", source))
}
