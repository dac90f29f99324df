//! The server on the network: TLS, client certificates, bearer tokens.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncWrite, BufWriter};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::error::ApiError;
use crate::http::body::{self, ApiBody, gather};
use crate::http::connections::{Connection, Refusals};
use crate::http::dispatch;
use crate::http::slow_client::Patient;
use crate::server::ApiServer;
use crate::state::Inner;
use windlass_meta::budget::{HEADER_BYTES, HEADERS, STREAMS};
use windlass_rbac::user::UserInfo;

const HANDSHAKE: Duration = Duration::from_secs(10);
/// The time for requests to finish after a shutdown; watches end at once.
const DRAIN: Duration = Duration::from_secs(5);
/// The time limit for the headers of a request, and for an idle connection.
const HEAD: Duration = Duration::from_mins(1);
/// How long a client may leave sent bytes unread.
const STALL: Duration = Duration::from_mins(1);
/// The size of one write. HTTP/2 emits every frame separately, and a change wakes many watches of a connection at once.
const WRITE: usize = 32 << 10;

/// The `extra` key of a user with the fingerprint of its certificate.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// The TLS configuration of an API server: HTTP/2 and HTTP/1.1; a client certificate is requested but optional.
///
/// The configuration has no state of a server: several servers may share it, with a resolver that selects the certificate.
pub fn tls_config(
    certificates: Arc<dyn ResolvesServerCert>,
    client_authorities: &[CertificateDer<'static>],
) -> Result<Arc<rustls::ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        rustls::ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = if client_authorities.is_empty() {
        builder.with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        for authority in client_authorities {
            roots.add(authority.clone())?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(|e| rustls::Error::General(e.to_string()))?;
        builder.with_client_cert_verifier(verifier)
    };
    let mut config = builder.with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Chooses the TLS configuration of a connection that was accepted, for one listener of several servers. A connection without one is
/// closed.
pub type ChooseTls = Arc<dyn Fn() -> Option<Arc<rustls::ServerConfig>> + Send + Sync>;

/// The user of a verified client certificate, and its expiry: connections may last longer than the certificate is valid.
#[derive(Clone)]
struct Known {
    user: Arc<UserInfo>,
    /// Seconds since 1970.
    until: i64,
}

/// The user that a verified client certificate names: common name and organizations.
fn certificate_user(certificate: &CertificateDer<'_>) -> Option<Known> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?;
    let groups: Vec<&str> = subject.iter_organization().filter_map(|o| o.as_str().ok()).collect();
    let mut user = UserInfo::new(name, &groups);
    let print: String = Sha256::digest(certificate)
        .iter()
        .fold(String::new(), |mut print, byte| {
            let _ = write!(print, "{byte:02x}");
            print
        });
    user.extra
        .insert(CREDENTIAL.to_owned(), vec![format!("X509SHA256={print}")]);
    (!name.is_empty()).then(|| Known {
        user: Arc::new(user),
        until: parsed.validity().not_after.timestamp(),
    })
}

impl ApiServer {
    /// Serves a listener until [`ApiServer::shutdown`]. Fails only if the listener does.
    pub fn serve(
        &self,
        listener: TcpListener,
        tls: Arc<rustls::ServerConfig>,
    ) -> BoxFuture<'static, std::io::Result<()>> {
        self.serve_by(listener, Arc::new(move || Some(Arc::clone(&tls))))
    }

    /// [`ApiServer::serve`], with a TLS configuration of its own for each connection.
    pub fn serve_by(&self, listener: TcpListener, choose: ChooseTls) -> BoxFuture<'static, std::io::Result<()>> {
        Box::pin(self.clone().accept(listener, choose))
    }

    async fn accept(self, listener: TcpListener, choose: ChooseTls) -> std::io::Result<()> {
        let shutdown = self.inner.shutdown.clone();
        let mut connections = tokio::task::JoinSet::new();
        let mut refusals = Refusals::default();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = shutdown.cancelled() => break,
                Some(_) = connections.join_next() => continue,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) if is_passing(&error) => {
                    // Out of file descriptors, or the connection was closed before it was accepted.
                    if let Some(before) = refusals.note() {
                        tracing::warn!(%error, before, "cannot accept a connection");
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Some(tls) = choose() else { continue };
            let _ = stream.set_nodelay(true);
            let (server, acceptor) = (self.clone(), TlsAcceptor::from(tls));
            let connection = self.inner.connections.add();
            connections.spawn(async move {
                let handshake = tokio::select! {
                    done = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)) => done,
                    () = connection.replaced.cancelled() => return,
                };
                match handshake {
                    Ok(Ok(stream)) => server.serve_as(stream, connection).await,
                    Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                    Err(_) => tracing::debug!("TLS handshake took too long"),
                }
            });
        }
        drop(listener);
        let _ = tokio::time::timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
        Ok(())
    }

    /// Serves a connection after its TLS handshake, until it ends or the server shuts down.
    pub async fn serve_stream<S>(&self, stream: TlsStream<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connection = self.inner.connections.add();
        self.serve_as(stream, connection).await;
    }

    async fn serve_as<S>(&self, stream: TlsStream<S>, open: Connection)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let open = Arc::new(open);
        let known = stream
            .get_ref()
            .1
            .peer_certificates()
            .and_then(|chain| chain.first())
            .and_then(certificate_user);
        let (inner, of_requests) = (Arc::clone(&self.inner), Arc::clone(&open));
        let service = service_fn(move |request: Request<Incoming>| {
            let (inner, open, known) = (Arc::clone(&inner), Arc::clone(&of_requests), known.clone());
            async move { Ok::<_, Infallible>(answer(&inner, &open, known, request).await) }
        });
        let builder = auto::Builder::new(TokioExecutor::new());
        // The handshake has selected the protocol, so the first bytes need not be inspected.
        let mut builder = if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            builder.http2_only()
        } else {
            builder.http1_only()
        };
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_headers(HEADERS)
            .max_buf_size(HEADER_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            // HTTP/2 refuses what is not below it.
            .max_header_list_size(u32::try_from(HEADER_BYTES + 1).unwrap_or(u32::MAX))
            .keep_alive_interval(Duration::from_secs(30));
        let stream = BufWriter::with_capacity(WRITE, Patient::new(stream, STALL));
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(error, "connection failed");
                }
                return;
            }
            () = open.replaced.cancelled() => return,
            () = open.refused.cancelled() => {}
            () = self.inner.shutdown.cancelled() => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(DRAIN, connection).await;
    }
}

fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    // ENFILE and EMFILE have no `ErrorKind`.
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
        || matches!(error.raw_os_error(), Some(23 | 24))
}

async fn answer(
    server: &Arc<Inner>,
    open: &Arc<Connection>,
    known: Option<Known>,
    mut request: Request<Incoming>,
) -> Response<ApiBody> {
    let user = match known {
        Some(known) if known.until < server.now().as_second() => {
            return body::error(&ApiError::unauthorized());
        }
        Some(known) => known.user,
        None => match bearer(&request).map(|token| token.map(|token| server.tokens.find(token))) {
            Ok(None) => Arc::new(UserInfo::anonymous()),
            Ok(Some(Some(user))) => Arc::clone(user),
            Ok(Some(None)) | Err(_) => return body::error(&ApiError::unauthorized()),
        },
    };
    if let Err(error) = open.belongs_to(&user, server.heavy.is_exempt(&user)) {
        return body::error(&error);
    }
    request.extensions_mut().insert(Arc::clone(open));
    let (parts, body) = request.into_parts();
    if !dispatch::takes_body(&parts) {
        return dispatch::handle(server, &user, parts, Bytes::new(), None).await;
    }
    // Bodies of unauthorized requests are not read.
    if !body.is_end_stream()
        && let Err(error) = dispatch::admit(server, &user, &parts)
    {
        return body::error(&error);
    }
    match gather(body, &server.heavy, &user).await {
        Ok((body, turn)) => dispatch::handle(server, &user, parts, body, turn).await,
        Err(error) => body::error(&error),
    }
}

/// The bearer token of a request, if it has one. Credentials that cannot be read are not none: their sender is not anonymous.
fn bearer<B>(request: &Request<B>) -> Result<Option<&str>, header::ToStrError> {
    let Some(value) = request.headers().get(header::AUTHORIZATION) else {
        return Ok(None);
    };
    let found = value.to_str()?.split_once(' ');
    let found = found.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    Ok(found.map(|(_, token)| token.trim()))
}
