//! The interface for connections to ports of pods.

use std::pin::Pin;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// A stream of bytes in both directions.
pub trait PodStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> PodStream for T {}

/// A connection to a pod.
pub type PodConnection = Pin<Box<dyn PodStream>>;

/// Opens connections to ports of pods.
pub trait PodTunnel: Send + Sync + 'static {
    /// Connects to a port of a pod that exists. The client receives the error.
    fn connect(&self, namespace: &str, pod: &str, port: u16) -> BoxFuture<'static, std::io::Result<PodConnection>>;
}
