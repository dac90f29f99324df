//! Connections to the Pods of a simulated control plane.

use std::io;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio_rustls::TlsAcceptor;
use windlass_apiserver::{PodConnection, PodTunnel};
use windlass_etcd::server::EtcdService;

use crate::backend::etcd::EtcdCluster;
use crate::backend::station::{Roster, Station};

/// The port on which etcd answers its clients.
const ETCD_PORT: u16 = 2379;
/// The port on which an API server answers.
const API_SERVER_PORT: u16 = 6443;

/// Leads connections to the port of an etcd Pod to the simulated member, and shows the certificate of an API server to those
/// who ask its Pod for it.
pub(super) struct Tunnel {
    pub(super) etcd: EtcdCluster,
    pub(super) roster: Arc<Roster>,
}

impl Tunnel {
    /// A connection on which only the handshake is answered: enough to read the certificate, which is what API server Pods are asked
    /// for. Requests go to the cluster's own address.
    fn handshake(station: &Station) -> PodConnection {
        let (near, far) = tokio::io::duplex(16 << 10);
        let acceptor = TlsAcceptor::from(Arc::clone(station.shown()));
        tokio::spawn(async move {
            if let Err(error) = acceptor.accept(far).await {
                tracing::debug!(%error, "handshake with a simulated API server ended");
            }
        });
        Box::pin(near)
    }
}

impl PodTunnel for Tunnel {
    fn connect(&self, namespace: &str, pod: &str, port: u16) -> BoxFuture<'static, io::Result<PodConnection>> {
        let refused = |why: String| io::Error::new(io::ErrorKind::ConnectionRefused, why);
        let of = |component: &str, on: u16| {
            let node = pod
                .strip_prefix(component)
                .filter(|_| namespace == "kube-system" && port == on);
            let node = node.filter(|node| self.etcd.runs(node))?;
            self.roster.named(node)
        };
        if let Some(station) = of("kube-apiserver-", API_SERVER_PORT) {
            let connection = Self::handshake(&station);
            return async move { Ok(connection) }.boxed();
        }
        let member = of("etcd-", ETCD_PORT).and_then(|station| {
            let config = station.etcd()?;
            Some((
                self.etcd.endpoint(station.name()),
                TlsAcceptor::from(Arc::clone(config)),
            ))
        });
        let Some((endpoint, acceptor)) = member else {
            let why = refused(format!("nothing listens on port {port} of pod {namespace}/{pod}"));
            return async move { Err(why) }.boxed();
        };
        async move {
            let (near, far) = tokio::io::duplex(64 << 10);
            // Ends with the connection: the holder of the near end decides how long it lives.
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(far).await else { return };
                let service = TowerToHyperService::new(EtcdService::new(endpoint));
                let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service);
                if let Err(error) = served.await {
                    tracing::debug!(%error, "connection to a simulated etcd member ended");
                }
            });
            Ok(Box::pin(near) as PodConnection)
        }
        .boxed()
    }
}
