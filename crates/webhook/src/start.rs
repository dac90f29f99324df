//! Start and stop of the webhook server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_admission::Rule;
use windlass_controller_runtime::{ApiClient, RequestError, Tasks};
use windlass_meta::{Clock, SystemClock};

use crate::certified::Served;
use crate::configuration::Configuration;
use crate::definitions::Definitions;
use crate::error::WebhookError;
use crate::keeper::{Keeper, Source};
use crate::reads::Reads;
use crate::secret::Kept;
use crate::server;
use crate::target::Target;

/// Interval of reading files.
const LOOK: Duration = Duration::from_secs(5);
/// A generated certificate has its own schedule. The clock may have been suspended meanwhile.
const RARE_LOOK: Duration = Duration::from_hours(1);

/// How long API servers may take to follow a changed configuration. They need milliseconds.
const SPREAD: Duration = Duration::from_secs(10);

/// The source of the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// Generated, stored in the Secret [`SECRET_NAME`](crate::SECRET_NAME) of a namespace.
    Secret {
        /// The namespace.
        namespace: String,
    },
    /// `tls.crt`, `tls.key` and optionally `ca.crt` in a folder, reread every few seconds.
    Folder(PathBuf),
}

/// Options of the webhook server.
#[derive(Debug)]
pub struct Options {
    /// The listener of the webhook server.
    pub listener: TcpListener,
    /// How the API server reaches the webhook server.
    pub target: Target,
    /// The source of the certificate.
    pub certificates: Certificates,
    /// The rules.
    pub rules: Vec<Rule>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Interval of certificate checks, in addition to events.
    pub look: Duration,
    /// How long a certificate of a new authority waits until it is served, after the configurations name the authority.
    pub spread: Duration,
}

impl Options {
    /// The default options.
    pub fn new(listener: TcpListener, target: Target, certificates: Certificates, rules: Vec<Rule>) -> Self {
        let look = match &certificates {
            Certificates::Folder(_) => LOOK,
            Certificates::Secret { .. } => RARE_LOOK,
        };
        Self {
            listener,
            target,
            certificates,
            rules,
            clock: Arc::new(SystemClock),
            look,
            spread: SPREAD,
        }
    }
}

/// A running webhook server.
#[derive(Debug)]
pub struct Webhooks {
    stop: CancellationToken,
    tasks: TaskTracker,
    /// The informers of the caches that rules look at.
    caching: Tasks,
    address: Option<SocketAddr>,
}

/// Serves webhooks for the API server behind `client`. When this returns, they are ready, and the configurations and the definitions of
/// our kinds with older versions name them. Needs
/// a tokio runtime.
pub async fn start(client: kube::Client, options: Options) -> Result<Webhooks, WebhookError> {
    let names = options.target.names();
    let source = match options.certificates {
        Certificates::Secret { namespace } => Source::Secret(Kept {
            client: client.clone(),
            namespace,
            names,
            clock: Arc::clone(&options.clock),
        }),
        Certificates::Folder(folder) => Source::Folder { folder, names },
    };
    let current = source.read(None, options.clock.now()).await?;
    let served = Served::new(Arc::clone(&current.certified));
    let tls = windlass_http_server::tls(Arc::new(served.clone()));
    let tls = tls.map_err(|error| WebhookError::Tls(error.to_string()))?;
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let address = options.listener.local_addr().ok();
    let caching = Tasks::new();
    let reads = Reads::new(&options.rules, Some(&client), &caching);
    let definitions = Definitions::follow(&client, &caching);
    let routes = server::routes(&options.rules, Some(client.clone()), reads).converting(definitions.clone());
    // The server is ready before the configuration names it.
    tasks.spawn(server::serve(options.listener, tls, routes, stop.clone()));
    let mut keeper = Keeper::new(
        client,
        options.rules,
        options.target,
        source,
        current,
        (served, definitions),
        (options.clock, options.spread),
    );
    let webhooks = Webhooks {
        stop,
        tasks,
        caching,
        address,
    };
    if let Err(error) = keeper.begin().await {
        webhooks.shutdown().await;
        return Err(error);
    }
    let (look, stopped) = (options.look, webhooks.stop.clone());
    webhooks.tasks.spawn(async move { keeper.run(look, stopped).await });
    Ok(webhooks)
}

/// Deletes the webhook configurations, so that the API server behind `client` sends no more reviews over the network: for a server
/// whose own process now admits what a separate manager admitted before. False when there was no configuration of ours.
pub async fn withdraw(client: &kube::Client) -> Result<bool, RequestError> {
    let client = ApiClient::from(client);
    let mut found = false;
    for of in Configuration::ALL {
        match client.delete_value(&of.path()).await {
            Ok(()) => found = true,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

impl Webhooks {
    /// The address of the webhook server.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Completes running requests and stops. The configuration stays, because other processes may serve it. Without any server,
    /// covered writes are refused.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.caching.stop();
    }
}
