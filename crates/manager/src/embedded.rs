//! The embedded API server with its data directory: objects, certificates and a kubeconfig.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::registry::{install, kinds};
use http::HeaderValue;
use http::header::USER_AGENT;
use jiff::Timestamp;
use kube::client::Body;
use rustls::pki_types::CertificateDer;
use rustls::sign::SingleCertAndKey;
use tokio::net::TcpListener;
use tower::ServiceExt as _;
use windlass_apiserver::{ApiServer, Authorization, Options, UserInfo};
use windlass_controller_runtime::{Metrics, transport};
use windlass_pki::Kubeconfig;
use windlass_store::{Limits, Store};

use crate::admission::InProcess;
use crate::conversion::OlderVersions;
use crate::files::{make_folder, write_private};
use crate::identity::{self, Identity};
use crate::{BuiltIns, FeatureGates, ManagerError, network, tokens};

/// Options of an embedded server.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The data folder.
    pub data_dir: PathBuf,
    /// The kubeconfig to write. Defaults to `kubeconfig` in the data folder.
    pub kubeconfig: Option<PathBuf>,
    /// The port on the loopback interface; 0 selects a free one.
    pub port: u16,
    /// Bearer tokens and their users: one per line, `token,user,uid,"group1,group2"`.
    pub tokens: Option<PathBuf>,
    /// Whether the server has the CRDs from the first request on and runs admission in process. A manager over the
    /// network does both itself.
    pub definitions: bool,
    /// The feature gates of its admission.
    pub gates: FeatureGates,
    /// The providers that are built in where its controllers run, for its admission.
    pub built_ins: BuiltIns,
}

/// A running embedded server.
#[derive(Debug)]
pub struct Embedded {
    server: ApiServer,
    store: Store,
    address: SocketAddr,
    kubeconfig: PathBuf,
    data_dir: PathBuf,
}

/// The subfolder of objects in the data folder.
pub(crate) const STORE: &str = "store";
/// The name of the cluster in its kubeconfig.
const CLUSTER: &str = "windlass";

/// Only kubeconfigs of Windlass are overwritten: other files may hold the user's other clusters.
fn check_ours(path: &Path) -> Result<(), ManagerError> {
    let not_ours = |holds: String| ManagerError::NotOurs {
        path: path.to_owned(),
        holds,
    };
    let text = match std::fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => return Ok(()),
        Ok(text) => text,
        // The code that creates the data folder reports its errors.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        Err(error) => return Err(not_ours(error.to_string())),
    };
    let found = kube::config::Kubeconfig::from_yaml(&text).map_err(|_| not_ours("it is no kubeconfig".to_owned()))?;
    let other: Vec<&str> = found
        .clusters
        .iter()
        .map(|cluster| cluster.name.as_str())
        .filter(|name| *name != CLUSTER)
        .collect();
    if other.is_empty() {
        Ok(())
    } else {
        Err(not_ours(format!("it knows {}", other.join(", "))))
    }
}

/// The folders of the options: the data folder is made if there is none. A kubeconfig elsewhere needs a directory that is there: the path
/// may have a typing error.
fn check_folders(data_dir: &Path, kubeconfig: &Path) -> Result<(), ManagerError> {
    let folder = kubeconfig.parent().filter(|folder| !folder.as_os_str().is_empty());
    let checked = [("--data-dir", Some(data_dir)), ("--kubeconfig", folder)];
    for (option, folder) in checked {
        let is_file = |folder: &&Path| folder.exists() && !folder.is_dir();
        if let Some(path) = folder.filter(is_file) {
            let path = path.to_owned();
            return Err(ManagerError::NotAFolder { option, path });
        }
    }
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match folder {
        Some(folder) if !absolute(folder).starts_with(absolute(data_dir)) && !folder.exists() => {
            let path = folder.to_owned();
            Err(ManagerError::NoFolder { path })
        }
        _ => Ok(()),
    }
}

impl Embedded {
    /// Starts a server. When this returns, it accepts requests, and the kubeconfig is written.
    pub async fn start(options: EmbeddedOptions) -> Result<Self, ManagerError> {
        let data_dir = options.data_dir;
        let kubeconfig = options.kubeconfig.unwrap_or_else(|| data_dir.join("kubeconfig"));
        check_folders(&data_dir, &kubeconfig)?;
        check_ours(&kubeconfig)?;
        let known = options.tokens.as_deref().map(tokens::load).transpose()?;
        make_folder(&data_dir)?;
        // First, so that a taken port leaves the folder untouched.
        let listener = network::listen((Ipv4Addr::LOCALHOST, options.port).into(), "--port").await?;
        let address = listener.local_addr().map_err(|source| ManagerError::Listen {
            address: (Ipv4Addr::LOCALHOST, options.port).into(),
            source,
        })?;
        let (folder, pki) = (data_dir.join(STORE), data_dir.join("pki"));
        let opened = tokio::task::spawn_blocking(move || {
            let store = Store::open(&folder, Limits::default())?;
            let identity = identity::load_or_make(&pki, Timestamp::now())?;
            Ok::<_, ManagerError>((store, identity))
        });
        let (store, identity) = opened
            .await
            .map_err(|error| ManagerError::Server(error.to_string()))??;
        let failed = |error: windlass_apiserver::ApiError| ManagerError::Server(error.to_string());
        let mut serving = Options::new(store.clone());
        serving.authorization = Authorization::Rbac;
        serving.tokens = known.unwrap_or_default();
        serving.converter = Some(Arc::new(OlderVersions));
        if options.definitions {
            serving
                .admission
                .push(Arc::new(InProcess::new(&options.gates, &options.built_ins)));
        }
        let server = ApiServer::start(serving).await.map_err(failed)?;
        let embedded = Self {
            server,
            store,
            address,
            kubeconfig,
            data_dir,
        };
        if options.definitions {
            let client = embedded.client("windlass", &Metrics::new());
            let sent = install::install(&client, &kinds::all_crds(), install::Conversion::InProcess)
                .await
                .map_err(ManagerError::Install)?;
            tracing::debug!(applied = sent.len(), "CustomResourceDefinitions are up to date");
            // Left by a manager that served this data folder over the network: no server answers there now.
            let withdrawn = windlass_webhook::withdraw(&client).await;
            if withdrawn.map_err(|error| ManagerError::Server(error.to_string()))? {
                tracing::info!(
                    "admission now runs in process: removed the webhook configuration of an earlier manager"
                );
            }
        }
        embedded.serve(listener, &identity)?;
        embedded.write_kubeconfig(&identity)?;
        Ok(embedded)
    }

    fn serve(&self, listener: TcpListener, identity: &Identity) -> Result<(), ManagerError> {
        let certified = identity.server.certified().map_err(ManagerError::Server)?;
        let authority = CertificateDer::from(identity.authority.der().to_vec());
        let tls = windlass_apiserver::tls_config(Arc::new(SingleCertAndKey::from(certified)), &[authority])
            .map_err(|error| ManagerError::Server(error.to_string()))?;
        let server = self.server.clone();
        // Ends with the server's shutdown.
        tokio::spawn(async move {
            if let Err(error) = server.serve(listener, tls).await {
                tracing::error!(%error, "the API server's listener failed");
            }
        });
        Ok(())
    }

    fn write_kubeconfig(&self, identity: &Identity) -> Result<(), ManagerError> {
        let text = Kubeconfig {
            cluster: CLUSTER.to_owned(),
            server: self.url(),
            authority: identity.authority.to_pem(),
            client_certificate: identity.administrator.certificate.clone(),
            client_key: identity.administrator.key.clone(),
        }
        .render();
        if let Some(folder) = self.kubeconfig.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            make_folder(folder)?;
        }
        write_private(&self.kubeconfig, &text)
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The path of its kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The data folder.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The store of its objects.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The server itself.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// A client in this process, without a socket. `agent` is its name in the server's counters.
    pub fn client(&self, agent: &'static str, metrics: &Metrics) -> kube::Client {
        let service = self.server.client_service(UserInfo::admin("kubernetes-admin"));
        let named = service.map_request(move |mut request: http::Request<Body>| {
            request
                .headers_mut()
                .insert(USER_AGENT, HeaderValue::from_static(agent));
            request
        });
        transport::in_process(named, metrics)
    }

    /// Ends all watches and connections, and releases the data folder after all writes.
    pub async fn shutdown(&self) {
        self.server.shutdown();
        self.store.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubeconfigs_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let check = |text: &str, expect: Option<&str>| {
            std::fs::write(&path, text).unwrap();
            match (check_ours(&path), expect) {
                (Ok(()), None) => {}
                (Err(ManagerError::NotOurs { holds, .. }), Some(part)) => assert!(holds.contains(part), "{holds}"),
                (result, _) => panic!("{text}: {result:?}"),
            }
        };
        assert!(check_ours(&path).is_ok());
        check("", None);
        check(
            "clusters: [{name: windlass, cluster: {server: 'https://127.0.0.1:1'}}]",
            None,
        );
        check(
            "clusters: [{name: windlass, cluster: {server: 'https://127.0.0.1:1'}}, {name: prod, cluster: {server: 'https://p'}}]",
            Some("it knows prod"),
        );
        check("a: [", Some("no kubeconfig"));
        assert!(check_ours(folder.path()).is_err());
        assert!(check_ours(&path.join("below-a-file")).is_ok());
    }
}
