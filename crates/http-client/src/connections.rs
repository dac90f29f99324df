//! Connections that are kept and shared: HTTP/2 where the server has it, HTTP/1.1 otherwise.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt as _, Limited};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tower::BoxError;

use crate::dial;

/// How often an HTTP/2 connection is checked.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// A pool of connections that `C` opens, for requests with bodies `B`.
pub type Pool<C, B> = legacy::Client<HttpsConnector<C>, B>;

/// Settings that differ between clients.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Addresses without TLS are allowed.
    pub plain: bool,
    /// HTTP/1.1 only, for requests that upgrade their connection.
    pub only_http1: bool,
    /// The name in the server's certificate, if it is not the host of the address.
    pub server_name: Option<ServerName<'static>>,
    /// Unread bytes that a server may send of one HTTP/2 answer, and of a whole connection.
    pub windows: Option<(u32, u32)>,
    /// Idle connections are closed in the background, and not only when the next request looks for one.
    pub closes_idle: bool,
}

/// Makes pools that open their connections in the same way.
#[derive(Debug, Clone)]
pub struct Connections<C> {
    connector: HttpsConnector<C>,
    builder: legacy::Builder,
}

impl<C: Clone> Connections<C> {
    /// `dial` opens a connection to the host of an address.
    pub fn new(dial: C, tls: ClientConfig, options: Options) -> Self {
        let connector = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls);
        let connector = if options.plain {
            connector.https_or_http()
        } else {
            connector.https_only()
        };
        let connector = match options.server_name {
            Some(name) => connector.with_server_name_resolver(FixedServerNameResolver::new(name)),
            None => connector,
        };
        let connector = if options.only_http1 {
            connector.enable_http1().wrap_connector(dial)
        } else {
            connector.enable_all_versions().wrap_connector(dial)
        };
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder.http2_keep_alive_interval(KEEP_ALIVE).timer(TokioTimer::new());
        if let Some((stream, connection)) = options.windows {
            builder
                .http2_initial_stream_window_size(stream)
                .http2_initial_connection_window_size(connection);
        }
        if options.closes_idle {
            builder.pool_timer(TokioTimer::new());
        }
        Self { connector, builder }
    }

    /// A new pool. It shares no connection with others, and TLS sessions with all.
    pub fn pool<B>(&self) -> Pool<C, B>
    where
        HttpsConnector<C>: legacy::connect::Connect + Clone,
        B: http_body::Body + Send,
        B::Data: Send,
    {
        self.builder.build(self.connector.clone())
    }
}

/// Reads an answer to its end. An answer with more than `limit` bytes is an error.
pub async fn read_all<B>(body: B, limit: usize) -> Result<Bytes, BoxError>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    Ok(Limited::new(body, limit).collect().await?.to_bytes())
}

/// The target of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A socket address.
    Address(SocketAddr),
    /// A host name or an IP address, and a port.
    Host(String, u16),
}

impl Target {
    /// The host of an address.
    pub fn of(uri: &Uri) -> Option<Self> {
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(443);
        Some(Self::Host(host.to_owned(), port))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Host(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

/// A connection that could not be opened. The message is the one of Go programs.
#[derive(Debug, thiserror::Error)]
#[error("dial tcp {to}: connect: {why}")]
pub struct DialError {
    to: Target,
    why: String,
}

impl DialError {
    fn new(to: Target, error: &io::Error) -> Self {
        let why = if error.kind() == io::ErrorKind::ConnectionRefused {
            "connection refused".to_owned()
        } else {
            error.to_string()
        };
        Self { to, why }
    }
}

/// Finds the target of an address.
type Find = dyn Fn(&Uri) -> Result<Target, BoxError> + Send + Sync;

/// Opens TCP connections to the target that a function finds for each address.
#[derive(Clone)]
pub struct Dial {
    find: Arc<Find>,
}

impl Dial {
    /// `find` is called for each new connection.
    pub fn new(find: impl Fn(&Uri) -> Result<Target, BoxError> + Send + Sync + 'static) -> Self {
        Self { find: Arc::new(find) }
    }
}

impl tower::Service<Uri> for Dial {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let found = (self.find)(&uri);
        Box::pin(async move {
            let to = found?;
            let stream = match &to {
                Target::Address(address) => dial::tcp(address).await,
                Target::Host(host, port) => dial::tcp((host.as_str(), *port)).await,
            };
            let stream = stream.map_err(|error| DialError::new(to, &error))?;
            Ok(TokioIo::new(stream))
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn an_answer_is_read_up_to_its_limit() {
        let body = || Full::new(Bytes::from_static(b"12345"));
        assert_eq!(read_all(body(), 5).await.unwrap(), "12345");
        let error = read_all(body(), 4).await.unwrap_err();
        assert_eq!(error.to_string(), "length limit exceeded");
    }

    #[tokio::test]
    async fn a_refused_connection_names_its_target() {
        let held = tokio::net::TcpSocket::new_v4().unwrap();
        held.bind(([127, 0, 0, 1], 0).into()).unwrap();
        // A bound socket that does not listen refuses connections.
        let port = held.local_addr().unwrap().port();
        let mut dial = Dial::new(|uri| Target::of(uri).ok_or_else(|| "no host".into()));
        let uri: Uri = format!("https://127.0.0.1:{port}/a").parse().unwrap();
        let error = tower::Service::call(&mut dial, uri).await.unwrap_err();
        let expected = format!("dial tcp 127.0.0.1:{port}: connect: connection refused");
        assert_eq!(error.to_string(), expected);
        let error = tower::Service::call(&mut dial, Uri::from_static("/a"))
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "no host");
    }

    #[test]
    fn the_target_of_an_address_is_its_host_and_port() {
        let check = |uri: &'static str, host: &str, port| {
            let expected = Some(Target::Host(host.to_owned(), port));
            assert_eq!(Target::of(&Uri::from_static(uri)), expected, "{uri}");
        };
        check("https://example.com/a", "example.com", 443);
        check("https://example.com:8443/a", "example.com", 8443);
        check("https://[::1]:8443/a", "::1", 8443);
    }
}
