//! Both gRPC services on one connection, for simulated etcd members.

use std::convert::Infallible;
use std::task::{Context, Poll};

use tonic::body::Body as TonicBody;
use tonic::codegen::{Body, BoxFuture, Service, StdError, http};

use crate::proto::cluster_server::{Cluster, ClusterServer};
use crate::proto::maintenance_server::{Maintenance, MaintenanceServer};

/// A tower service that answers the Cluster and Maintenance services of one member.
///
/// Serve it with hyper over HTTP/2. Unknown services get the gRPC status Unimplemented.
#[derive(Debug)]
pub struct EtcdService<T> {
    cluster: ClusterServer<T>,
    maintenance: MaintenanceServer<T>,
}

impl<T> Clone for EtcdService<T> {
    fn clone(&self) -> Self {
        Self {
            cluster: self.cluster.clone(),
            maintenance: self.maintenance.clone(),
        }
    }
}

impl<T: Cluster + Maintenance + Clone> EtcdService<T> {
    /// A service for `member`.
    pub fn new(member: T) -> Self {
        Self {
            cluster: ClusterServer::new(member.clone()),
            maintenance: MaintenanceServer::new(member),
        }
    }
}

impl<T, B> Service<http::Request<B>> for EtcdService<T>
where
    T: Cluster + Maintenance,
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<TonicBody>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        if request.uri().path().starts_with("/etcdserverpb.Maintenance/") {
            self.maintenance.call(request)
        } else {
            self.cluster.call(request)
        }
    }
}
