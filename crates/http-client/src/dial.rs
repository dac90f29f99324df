//! Opens connections: by host name or by a configured address, through proxies, with TLS.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio_rustls::TlsConnector;

use crate::error::Error;
use crate::proxies::{Proxies, Proxy};
use crate::tls;
use crate::url::{Scheme, Url};

pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An open connection.
pub(crate) struct Opened {
    pub(crate) stream: Box<dyn Stream>,
    /// The proxy of the request, which needs absolute URLs.
    pub(crate) through: Option<Proxy>,
}

pub(crate) struct Dial {
    pub(crate) proxies: Proxies,
    pub(crate) hosts: BTreeMap<String, SocketAddr>,
    pub(crate) patience: Duration,
    extra: Vec<CertificateDer<'static>>,
    /// Created on first use: reading the CA certificates of the system takes a while.
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Dial {
    pub(crate) fn new(
        proxies: Proxies,
        hosts: BTreeMap<String, SocketAddr>,
        extra: Vec<CertificateDer<'static>>,
        patience: Duration,
    ) -> Self {
        Self {
            proxies,
            hosts,
            patience,
            extra,
            tls: OnceLock::new(),
        }
    }

    pub(crate) async fn open(&self, url: &Url) -> Result<Opened, Error> {
        let opened = tokio::time::timeout(self.patience, self.open_now(url));
        opened.await.unwrap_or_else(|_| {
            Err(Error::TimedOut {
                url: url.to_string(),
                after: self.patience,
            })
        })
    }

    async fn open_now(&self, url: &Url) -> Result<Opened, Error> {
        let Some(proxy) = self.proxies.route(url) else {
            let stream: Box<dyn Stream> = Box::new(self.connect(url).await?);
            let stream = self.secured(url, stream).await?;
            return Ok(Opened { stream, through: None });
        };
        let failed = |why: String| Error::Proxy {
            proxy: proxy.url.origin(),
            host: url.host.clone(),
            why,
        };
        let stream: Box<dyn Stream> = match self.connect(&proxy.url).await {
            Ok(stream) => Box::new(stream),
            Err(Error::Unreachable { why, .. }) => return Err(failed(why)),
            Err(other) => return Err(other),
        };
        let mut stream = self.secured(&proxy.url, stream).await?;
        if url.scheme == Scheme::Http {
            let through = Some(proxy.clone());
            return Ok(Opened { stream, through });
        }
        tunnel(&mut stream, url, proxy).await.map_err(failed)?;
        let stream = self.secured(url, stream).await?;
        Ok(Opened { stream, through: None })
    }

    async fn connect(&self, url: &Url) -> Result<TcpStream, Error> {
        let unreachable = |error: io::Error| Error::Unreachable {
            host: url.authority(),
            why: error.to_string(),
        };
        let (host, port) = (url.host.trim_matches(['[', ']']), url.port());
        let keys = [
            format!("{host}:{port}"),
            host.to_owned(),
            format!("*:{port}"),
            "*".to_owned(),
        ];
        let stream = match keys.iter().find_map(|key| self.hosts.get(key)) {
            Some(address) => tcp(address).await,
            None => tcp((host, port)).await,
        };
        stream.map_err(unreachable)
    }

    async fn secured(&self, url: &Url, stream: Box<dyn Stream>) -> Result<Box<dyn Stream>, Error> {
        if url.scheme == Scheme::Http {
            return Ok(stream);
        }
        let unreachable = |why: String| Error::Unreachable {
            host: url.authority(),
            why,
        };
        let config = self.tls.get_or_init(|| self.config()).clone().map_err(unreachable)?;
        let name = url.host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|error| unreachable(error.to_string()))?;
        match TlsConnector::from(config).connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(tls_error(url, &error)),
        }
    }

    fn config(&self) -> Result<Arc<ClientConfig>, String> {
        let mut roots = tls::system_roots();
        if !self.extra.is_empty() {
            Arc::make_mut(&mut roots).add_parsable_certificates(self.extra.iter().cloned());
        }
        let builder = tls::trusting(roots).map_err(|error| error.to_string())?;
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Opens a TCP connection for small messages.
pub(crate) async fn tcp(to: impl ToSocketAddrs) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(to).await?;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Asks a proxy to connect to the host. Reads no byte beyond its response.
pub(crate) async fn tunnel(stream: &mut impl Stream, url: &Url, proxy: &Proxy) -> Result<(), String> {
    const LONGEST: usize = 16 << 10;
    let target = format!("{}:{}", url.host, url.port());
    let authorization = proxy.authorization();
    let authorization = authorization
        .map(|value| format!("Proxy-Authorization: {value}\r\n"))
        .unwrap_or_default();
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .map_err(|error| error.to_string())?;
    stream.flush().await.map_err(|error| error.to_string())?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = stream
            .read_u8()
            .await
            .map_err(|_| "it ends the connection without an answer".to_owned())?;
        head.push(byte);
        if head.len() > LONGEST {
            return Err("its answer does not end".to_owned());
        }
    }
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let status = line.split(' ').nth(1).unwrap_or_default();
    if status.starts_with('2') && line.starts_with("HTTP/1.") {
        return Ok(());
    }
    Err(format!("it answers {:?}", line.chars().take(80).collect::<String>()))
}

fn tls_error(url: &Url, error: &io::Error) -> Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(wrong)) => Error::Untrusted {
            host: url.authority(),
            why: certificate_words(wrong),
        },
        Some(rustls::Error::InvalidMessage(_)) => Error::Unreachable {
            host: url.authority(),
            why: "it does not speak TLS there".to_owned(),
        },
        _ => Error::Unreachable {
            host: url.authority(),
            why: format!("TLS: {error}"),
        },
    }
}

fn certificate_words(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => "its issuer is not trusted".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet".to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for other names".to_owned()
        }
        other => other.to_string(),
    }
}
