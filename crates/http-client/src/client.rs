//! Requests with a connection each: proxies, redirects, and limits of time and size.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;

use crate::dial::Dial;
use crate::error::Error;
use crate::proxies::{Proxies, Proxy};
use crate::tls;
use crate::url::{Scheme, Url};

const MOST_REDIRECTS: usize = 8;
/// The limit of an answer that is an error: only its message matters.
const LONGEST_WORDS: usize = 64 << 10;
/// The first capacity for an answer; most files are shorter.
const ROOM: usize = 2 << 20;
const AGENT: &str = concat!("windlass/", env!("CARGO_PKG_VERSION"));

/// Connection settings. The default trusts the CA certificates of the system and uses no proxy.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The proxies.
    pub proxies: Proxies,
    /// CA certificates to trust beside the system's, each a text in PEM.
    pub authorities: Vec<String>,
    /// Addresses of hosts that override DNS: by `host:port`, `host`, `*:port` or `*`.
    pub hosts: BTreeMap<String, SocketAddr>,
    /// How long to wait for a connection, and then for each next piece of an answer.
    pub patience: Duration,
    /// The longest answer in bytes.
    pub longest: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            proxies: Proxies::none(),
            authorities: Vec::new(),
            hosts: BTreeMap::new(),
            patience: Duration::from_secs(30),
            longest: 32 << 20,
        }
    }
}

/// Sends requests. A clone shares its settings.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    dial: Dial,
    patience: Duration,
    longest: usize,
}

/// A request.
#[derive(Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: &'a Url,
    /// The accepted media types.
    pub accept: &'a str,
    /// The media type of the body.
    pub content_type: Option<&'a str>,
    /// The value of `Authorization`. It is sent only to the origin of the address, and never along a redirect to another.
    pub authorization: Option<&'a str>,
    /// The tag of a known answer: the server may answer that it is still valid.
    pub known_tag: Option<&'a str>,
    /// The body.
    pub body: Bytes,
}

/// An answer with its whole body.
#[derive(Debug)]
pub struct Answer {
    /// The status; any is an answer.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The address after all redirects.
    pub url: Url,
}

impl Answer {
    /// A header, if it is text.
    pub fn header(&self, name: impl header::AsHeaderName) -> Option<&str> {
        text_of(&self.headers, name)
    }
}

impl Default for Client {
    /// A client with the default settings, which are valid.
    fn default() -> Self {
        Self::trusting(Settings::default(), Vec::new())
    }
}

impl Client {
    /// A client with these settings.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let mut extra = Vec::new();
        for bundle in &settings.authorities {
            let found = tls::authorities(bundle.as_bytes());
            extra.extend(found.map_err(|error| Error::Authorities { why: error.to_string() })?);
        }
        Ok(Self::trusting(settings, extra))
    }

    fn trusting(settings: Settings, extra: Vec<CertificateDer<'static>>) -> Self {
        let inner = Inner {
            dial: Dial::new(settings.proxies, settings.hosts, extra, settings.patience),
            patience: settings.patience,
            longest: settings.longest,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The longest answer in bytes.
    pub fn longest(&self) -> usize {
        self.inner.longest
    }

    /// Sends a request, and follows the redirects of a GET.
    pub async fn send(&self, ask: &Request<'_>) -> Result<Answer, Error> {
        let mut url = ask.url.clone();
        for _ in 0..=MOST_REDIRECTS {
            // A token is valid for the host for which it was issued.
            let authorization = ask.authorization.filter(|_| url.same_origin(ask.url));
            let answer = self.exchange(ask, &url, authorization).await?;
            let redirects = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308) && ask.method == Method::GET;
            let Some(location) = redirects.then(|| text_of(&answer.headers, header::LOCATION)).flatten() else {
                return Ok(answer);
            };
            let next = url.join(location).map_err(|wrong| Error::Redirect {
                url: url.to_string(),
                why: format!("to something else than an address of a file: {wrong}"),
            })?;
            if url.scheme == Scheme::Https && next.scheme == Scheme::Http {
                return Err(Error::Redirect {
                    url: url.to_string(),
                    why: format!("to {next}, which is not protected by TLS"),
                });
            }
            url = next;
        }
        Err(Error::Redirect {
            url: ask.url.to_string(),
            why: format!("more than {MOST_REDIRECTS} times"),
        })
    }

    /// One request on a connection of its own.
    async fn exchange(&self, ask: &Request<'_>, url: &Url, authorization: Option<&str>) -> Result<Answer, Error> {
        let opened = self.inner.dial.open(url).await?;
        let target = match &opened.through {
            Some(_) => format!("{}{}", url.origin(), url.path_and_query()),
            None => url.path_and_query(),
        };
        let proxy = opened.through.as_ref().and_then(Proxy::authorization);
        let headers = [
            (header::HOST, Some(url.authority())),
            (header::USER_AGENT, Some(AGENT.to_owned())),
            (header::ACCEPT, Some(ask.accept.to_owned())),
            (header::CONTENT_TYPE, ask.content_type.map(str::to_owned)),
            (header::AUTHORIZATION, authorization.map(str::to_owned)),
            (header::PROXY_AUTHORIZATION, proxy),
            (header::IF_NONE_MATCH, ask.known_tag.map(str::to_owned)),
            (header::CONNECTION, Some("close".to_owned())),
        ];
        let unsendable = |why: &str| Error::invalid_url(&url.to_string(), why);
        let mut request = http::Request::builder().method(ask.method.clone()).uri(target);
        for (name, value) in headers {
            let Some(value) = value else { continue };
            let secret = name == header::AUTHORIZATION || name == header::PROXY_AUTHORIZATION;
            let mut value = HeaderValue::try_from(value).map_err(|_| {
                let what = if secret { "its credentials have" } else { "it has" };
                unsendable(&format!("{what} characters that no request can have"))
            })?;
            value.set_sensitive(secret);
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(ask.body.clone()))
            .map_err(|error| unsendable(&error.to_string()))?;

        let broken = |error: hyper::Error| broken(url, &error);
        let (mut sender, connection) = http1::handshake(TokioIo::new(opened.stream)).await.map_err(broken)?;
        // A server that gives a byte now and then is patient, too.
        let most = self.inner.patience * 10;
        let answered = async {
            let whole = async {
                let head = self
                    .patiently(url, sender.send_request(request))
                    .await?
                    .map_err(broken)?;
                self.read(url, head).await
            };
            let late = |_| Error::TimedOut {
                url: url.to_string(),
                after: most,
            };
            tokio::time::timeout(most, whole).await.map_err(late)?
        };
        tokio::pin!(connection, answered);
        tokio::select! {
            biased;
            answer = &mut answered => answer,
            // Data that was received before the connection ended is still readable.
            _ = &mut connection => answered.await,
        }
    }

    async fn patiently<T>(&self, url: &Url, work: impl Future<Output = T>) -> Result<T, Error> {
        tokio::time::timeout(self.inner.patience, work)
            .await
            .map_err(|_| Error::TimedOut {
                url: url.to_string(),
                after: self.inner.patience,
            })
    }

    async fn read(&self, url: &Url, head: Response<Incoming>) -> Result<Answer, Error> {
        let (parts, mut body) = head.into_parts();
        let well = parts.status.is_success();
        let limit = if well { self.inner.longest } else { LONGEST_WORDS };
        let too_large = || Error::TooLarge {
            url: url.to_string(),
            limit,
        };
        let expected = text_of(&parts.headers, header::CONTENT_LENGTH).and_then(|text| text.parse::<u64>().ok());
        if well && expected.is_some_and(|length| length > limit as u64) {
            return Err(too_large());
        }
        // The declared length is only the initial capacity, because it may be wrong.
        let room = expected
            .and_then(|length| usize::try_from(length).ok())
            .unwrap_or(0)
            .min(ROOM);
        let mut whole = BytesMut::with_capacity(room);
        while let Some(frame) = self.patiently(url, body.frame()).await? {
            match frame {
                Ok(frame) => whole.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
                Err(_) if !well => break,
                Err(_) => {
                    return Err(Error::Truncated {
                        url: url.to_string(),
                        got: whole.len() as u64,
                        expected,
                    });
                }
            }
            if whole.len() > limit {
                if well {
                    return Err(too_large());
                }
                break;
            }
        }
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: whole.freeze(),
            url: url.clone(),
        })
    }
}

fn broken(url: &Url, error: &hyper::Error) -> Error {
    let inner = std::error::Error::source(error);
    let kind = inner
        .and_then(|inner| inner.downcast_ref::<io::Error>())
        .map(io::Error::kind);
    let ended = matches!(
        kind,
        Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
    );
    let why = match inner {
        _ if error.is_parse() => "it does not speak HTTP there".to_owned(),
        _ if ended || error.is_incomplete_message() => "it ended the connection without an answer".to_owned(),
        Some(inner) => format!("{error}: {inner}"),
        None => error.to_string(),
    };
    Error::Unreachable {
        host: url.authority(),
        why,
    }
}

fn text_of(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
