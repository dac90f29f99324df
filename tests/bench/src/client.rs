//! A cheap client: one HTTP/2 connection, prepared bodies, unparsed responses.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Config;
use kube::client::ConfigExt as _;
use rustls::pki_types::ServerName;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The address of a server, and the credentials.
#[derive(Clone)]
pub(crate) struct Access {
    uri: Uri,
    tls: Arc<rustls::ClientConfig>,
}

/// The size of reads: TLS alone would use smaller ones.
const READ: usize = 64 << 10;

/// A connection.
#[derive(Clone)]
pub(crate) struct Connection {
    base: String,
    sender: SendRequest<Full<Bytes>>,
}

impl Access {
    pub(crate) fn new(config: &Config) -> Result<Self, String> {
        let mut tls = config.rustls_client_config().map_err(|e| e.to_string())?;
        tls.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self {
            uri: config.cluster_url.clone(),
            tls: Arc::new(tls),
        })
    }

    pub(crate) async fn connect(&self) -> Result<Connection, String> {
        let host = self.uri.host().unwrap_or("127.0.0.1").to_owned();
        let port = self.uri.port_u16().unwrap_or(443);
        let tcp = TcpStream::connect((host.as_str(), port))
            .await
            .map_err(|e| e.to_string())?;
        tcp.set_nodelay(true).map_err(|e| e.to_string())?;
        let name = ServerName::try_from(host).map_err(|e| e.to_string())?;
        let stream = TlsConnector::from(Arc::clone(&self.tls))
            .connect(name, BufReader::with_capacity(READ, tcp))
            .await
            .map_err(|e| e.to_string())?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(16 << 20)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|e| e.to_string())?;
        tokio::spawn(connection);
        Ok(Connection {
            base: self.uri.to_string().trim_end_matches('/').to_owned(),
            sender,
        })
    }
}

impl Connection {
    /// Sends a request, and returns at the beginning of the response.
    pub(crate) async fn start(
        &mut self,
        method: Method,
        path: &str,
        kind: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, String> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::CONTENT_TYPE, kind)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "bench/1.0")
            .body(Full::new(body))
            .map_err(|e| e.to_string())?;
        self.sender.ready().await.map_err(|e| e.to_string())?;
        self.sender.send_request(request).await.map_err(|e| e.to_string())
    }

    /// Sends a request and reads the whole response. Fails if it is an error.
    pub(crate) async fn send(&mut self, method: Method, path: &str, kind: &str, body: Bytes) -> Result<Bytes, String> {
        let response = self.start(method.clone(), path, kind, body).await?;
        let status = response.status();
        let answer = response
            .into_body()
            .collect()
            .await
            .map_err(|e| e.to_string())?
            .to_bytes();
        if status.is_success() {
            Ok(answer)
        } else {
            Err(format!(
                "{method} {path}: {status}: {}",
                String::from_utf8_lossy(&answer)
            ))
        }
    }

    /// Reads a response without keeping it. Returns its size.
    pub(crate) async fn drain(&mut self, path: &str) -> Result<usize, String> {
        let response = self.start(Method::GET, path, "application/json", Bytes::new()).await?;
        if response.status() != StatusCode::OK {
            return Err(format!("GET {path}: {}", response.status()));
        }
        let mut body = response.into_body();
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            size += frame
                .map_err(|e| e.to_string())?
                .into_data()
                .map_or(0, |data| data.len());
        }
        Ok(size)
    }
}
