//! The management cluster of the demo: in this process, or, for developers, on a real Kubernetes API server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kube::Config;
use tokio::net::TcpListener;
use windlass_apiserver::{RequestKey, UserInfo};
use windlass_envtest::{ControlPlane, Ledger};
use windlass_kit::{Cx, Metrics, transport};
use windlass_manager::up::{self, CONTROLLERS_AGENT, Up};
use windlass_manager::{
    EmbeddedOptions, Fetcher, Helming, Running, Selection, WebhookOptions, WebhookTarget, Webhooks, controllers,
    network, webhooks,
};
use windlass_suite::kinds;

use super::MANAGER;
use crate::args::ApiServer;
use crate::error::CliError;

/// A management cluster with its controllers.
pub(super) enum Place {
    /// What `windlass up` runs.
    Embedded(Box<Up>),
    /// What `windlass manager` runs, and the server that it runs on.
    Real(Box<Real>),
}

/// The controllers beside a real API server.
pub(super) struct Real {
    control_plane: ControlPlane,
    config: Config,
    ledger: Ledger,
    running: Running,
    webhooks: Webhooks,
}

impl Place {
    /// Starts one. Only the embedded server keeps anything in the folder.
    pub(super) async fn start(server: ApiServer, data_dir: &Path) -> Result<Self, CliError> {
        match server {
            ApiServer::Embedded => {
                let options = EmbeddedOptions {
                    data_dir: data_dir.to_owned(),
                    kubeconfig: None,
                    port: 0,
                    tokens: None,
                    definitions: true,
                };
                Ok(Self::Embedded(Box::new(
                    up::start(
                        options,
                        &Selection::all(),
                        &Fetcher::default(),
                        &Helming::default(),
                        None,
                    )
                    .await?,
                )))
            }
            ApiServer::Real => Ok(Self::Real(Box::new(Real::start().await?))),
        }
    }

    /// Where the API server answers.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Embedded(up) => up.embedded().url(),
            Self::Real(real) => real.control_plane.url().to_owned(),
        }
    }

    /// The kubeconfig of its administrator.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Embedded(up) => up.embedded().kubeconfig().to_owned(),
            Self::Real(real) => real.control_plane.kubeconfig_path(),
        }
    }

    /// The administrator's client.
    pub(super) fn client(&self) -> Result<kube::Client, CliError> {
        match self {
            Self::Embedded(up) => Ok(up.embedded().client(MANAGER, &Metrics::new())),
            Self::Real(real) => connect_patiently(&real.config),
        }
    }

    /// The client of a user without groups.
    pub(super) fn client_of(&self, user: &str) -> Result<kube::Client, CliError> {
        match self {
            Self::Embedded(up) => {
                let service = up.embedded().server().client_service(UserInfo::new(user, &[]));
                Ok(transport::in_process(service, &Metrics::new()))
            }
            Self::Real(real) => {
                let mut config = real.config.clone();
                config.auth_info.impersonate = Some(user.to_owned());
                connect_patiently(&config)
            }
        }
    }

    /// What the controllers read by.
    pub(super) fn cx(&self) -> Cx {
        match self {
            Self::Embedded(up) => up.running().kit().cx(),
            Self::Real(real) => real.running.kit().cx(),
        }
    }

    /// Requests since the start; of a real server only the writes of the controllers.
    pub(super) fn requests(&self) -> BTreeMap<RequestKey, u64> {
        match self {
            Self::Embedded(up) => up.embedded().server().counters().snapshot(),
            Self::Real(real) => {
                let mut requests = BTreeMap::new();
                for (write, count) in real.ledger.snapshot() {
                    let resource = match write.subresource.as_str() {
                        "" => write.resource,
                        subresource => format!("{}/{subresource}", write.resource),
                    };
                    let key = RequestKey {
                        verb: write.verb.to_owned(),
                        group: String::new(),
                        resource,
                        agent: write.agent.to_owned(),
                        code: write.code,
                    };
                    *requests.entry(key).or_default() += count;
                }
                requests
            }
        }
    }

    /// Stops everything.
    pub(super) async fn shutdown(&self) {
        match self {
            Self::Embedded(up) => up.shutdown().await,
            Self::Real(real) => {
                real.running.shutdown().await;
                real.webhooks.shutdown().await;
            }
        }
    }
}

impl Real {
    async fn start() -> Result<Self, CliError> {
        let control_plane = ControlPlane::start(&windlass_envtest::Options::default())
            .await
            .map_err(|source| CliError::failed("cannot start a real API server", source))?;
        let config = network::config(Some(&control_plane.kubeconfig_path()), None).await?;
        let admin = network::connect_patiently(&config).await?;
        network::definitions(&admin, &kinds::all_crds(), true).await?;
        let webhooks = serve_admission(admin).await?;
        let (metrics, ledger) = (Metrics::new(), Ledger::default());
        let counted = ledger.wrap(network::connect(&config, &Metrics::new())?, CONTROLLERS_AGENT);
        let client = transport::in_process(counted, &metrics);
        let running = controllers::start(
            client,
            metrics,
            &Selection::all(),
            &Fetcher::default(),
            &Helming::default(),
        );
        Ok(Self {
            control_plane,
            config,
            ledger,
            running,
            webhooks,
        })
    }
}

async fn serve_admission(client: kube::Client) -> Result<Webhooks, CliError> {
    let listener = network::listen(([127, 0, 0, 1], 0).into(), "--port").await?;
    let url = address(&listener)?;
    let options = WebhookOptions {
        listener,
        target: WebhookTarget::url(&url).map_err(|why| CliError::plain(why, None))?,
        certificate_dir: None,
    };
    Ok(webhooks::start(client, options).await?)
}

fn address(listener: &TcpListener) -> Result<String, CliError> {
    let address = listener.local_addr();
    let address = address.map_err(|source| CliError::failed("cannot tell where webhooks are answered", source))?;
    Ok(format!("https://{address}"))
}

fn connect_patiently(config: &Config) -> Result<kube::Client, CliError> {
    transport::connect_patiently(config, &Metrics::new())
        .map_err(|source| CliError::failed("cannot reach the real API server", source))
}
