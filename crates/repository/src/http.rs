//! HTTP requests: one connection each, with limits of time and length, and a separate error for each type of failure.

pub(crate) mod cache;
mod dial;
pub(crate) mod proxies;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;

use crate::content;
use crate::error::Error;
use crate::url::{Scheme, Url};
use cache::{Cache, Kept};
use dial::{Dial, authorities_of};
use proxies::Proxies;

const MOST_REDIRECTS: usize = 8;
/// The size limit of an error response.
const LONGEST_WORDS: usize = 64 << 10;
/// The initial capacity, enough for most files.
const ROOM: usize = 2 << 20;
const AGENT: &str = concat!("windlass/", env!("CARGO_PKG_VERSION"));
/// Pause after a rate limit without a time.
const HOLD: Duration = Duration::from_mins(1);

/// Connection settings. The default trusts the CA certificates of the system and uses no proxy.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The proxies.
    pub proxies: Proxies,
    /// Authorities to trust in addition to the system's, each a text with PEM certificates.
    pub authorities: Vec<String>,
    /// Addresses of hosts that override DNS: by `host:port`, `host`, `*:port` or `*`.
    pub hosts: BTreeMap<String, SocketAddr>,
    /// The timeout of a connection, and then of each next piece of a response.
    pub patience: Duration,
    /// The size limit of a file.
    pub longest: usize,
    /// Size of the memory cache in bytes.
    pub kept: usize,
    /// A folder for a persistent cache.
    pub kept_in: Option<PathBuf>,
    /// Whether local folders are read. For command lines only: otherwise every author of provider objects could read them.
    pub folders: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            proxies: Proxies::none(),
            authorities: Vec::new(),
            hosts: BTreeMap::new(),
            patience: Duration::from_secs(30),
            longest: 32 << 20,
            kept: 16 << 20,
            kept_in: None,
            folders: false,
        }
    }
}

/// An HTTP client, one per process. Its cache is shared by all requests, and used only after revalidation by the server.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    dial: Dial,
    cache: Cache,
    patience: Duration,
    longest: usize,
    folders: bool,
}

/// A request.
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) accept: &'static str,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Bytes,
    /// The cache lifetime of the response.
    pub(crate) kept: bool,
}

impl Ask {
    pub(crate) fn get(url: Url, accept: &'static str) -> Self {
        Self {
            method: Method::GET,
            url,
            accept,
            content_type: None,
            authorization: None,
            body: Bytes::new(),
            kept: true,
        }
    }

    pub(crate) fn authorized(mut self, authorization: Option<String>) -> Self {
        self.authorization = authorization;
        self
    }
}

/// A response with its complete body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) url: Url,
}

impl Default for Client {
    /// A client with the default settings, which are always valid.
    fn default() -> Self {
        Self::trusting(Settings::default(), Vec::new())
    }
}

impl Client {
    /// A client with these settings.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let extra = authorities_of(&settings.authorities)?;
        Ok(Self::trusting(settings, extra))
    }

    fn trusting(settings: Settings, extra: Vec<CertificateDer<'static>>) -> Self {
        let inner = Inner {
            dial: Dial::new(settings.proxies, settings.hosts, extra, settings.patience),
            cache: Cache::new(settings.kept, settings.kept_in),
            patience: settings.patience,
            longest: settings.longest,
            folders: settings.folders,
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn reads_folders(&self) -> bool {
        self.inner.folders
    }

    pub(crate) fn longest(&self) -> usize {
        self.inner.longest
    }

    /// Sends a request and follows redirects. Any status is a response; 304 is replaced by the cached content.
    pub(crate) async fn send(&self, ask: &Ask) -> Result<Answer, Error> {
        let key = format!("{} {}", ask.accept, ask.url.whole());
        let keeps = ask.kept && ask.method == Method::GET;
        let known = if keeps { self.inner.cache.find(&key).await } else { None };
        let mut answer = self.follow(ask, known.as_ref()).await?;
        match known {
            Some(kept) if answer.status == StatusCode::NOT_MODIFIED => {
                answer.status = StatusCode::OK;
                answer.body = kept.body;
            }
            _ if keeps && answer.status == StatusCode::OK => {
                if let Some(tag) = text_of(&answer.headers, header::ETAG) {
                    let kept = Kept {
                        tag: tag.to_owned(),
                        body: answer.body.clone(),
                    };
                    self.inner.cache.keep(&key, kept).await;
                }
            }
            _ => {}
        }
        Ok(answer)
    }

    async fn follow(&self, ask: &Ask, known: Option<&Kept>) -> Result<Answer, Error> {
        let mut url = ask.url.clone();
        for _ in 0..=MOST_REDIRECTS {
            // A token is valid for the host for which it was issued.
            let authorization = ask.authorization.as_deref().filter(|_| url.same_origin(&ask.url));
            let answer = self.exchange(ask, &url, authorization, known).await?;
            let redirects = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308) && ask.method == Method::GET;
            let Some(location) = redirects.then(|| text_of(&answer.headers, header::LOCATION)).flatten() else {
                return Ok(answer);
            };
            let next = url.join(location).map_err(|_| Error::Redirect {
                url: url.to_string(),
                why: "to something that is not an address".to_owned(),
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

    /// Sends a request on a new connection.
    async fn exchange(
        &self,
        ask: &Ask,
        url: &Url,
        authorization: Option<&str>,
        known: Option<&Kept>,
    ) -> Result<Answer, Error> {
        let opened = self.inner.dial.open(url).await?;
        let target = match &opened.through {
            Some(_) => format!("{}{}", url.origin(), url.path_and_query()),
            None => url.path_and_query(),
        };
        let proxy = opened.through.as_ref().and_then(proxies::Proxy::authorization);
        let headers = [
            (header::HOST, Some(url.authority())),
            (header::USER_AGENT, Some(AGENT.to_owned())),
            (header::ACCEPT, Some(ask.accept.to_owned())),
            (header::CONTENT_TYPE, ask.content_type.map(str::to_owned)),
            (header::AUTHORIZATION, authorization.map(str::to_owned)),
            (header::PROXY_AUTHORIZATION, proxy),
            (header::IF_NONE_MATCH, known.map(|kept| kept.tag.clone())),
            (header::CONNECTION, Some("close".to_owned())),
        ];
        let unsendable = |why: &str| Error::invalid_url(&url.to_string(), why);
        let mut request = Request::builder().method(ask.method.clone()).uri(target);
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
        // Limits the total time as well, for servers that send a byte now and then.
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

/// The server and the names of its variables, for error messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) sent: bool,
    /// The variables of credentials; empty if none are ever sent.
    pub(crate) variables: &'static str,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        text_of(&self.headers, name)
    }

    /// The error for a response that is not a file. Callers handle "not found" themselves.
    pub(crate) fn refusal(&self, access: Access) -> Error {
        let (host, url) = (self.url.authority(), self.url.to_string());
        let message = content::words(&self.body);
        match self.status.as_u16() {
            401 => Error::Unauthorized {
                host,
                sent: access.sent,
                variables: access.variables,
            },
            403 | 429 => self.limited(access).unwrap_or(Error::Forbidden {
                host,
                url,
                message,
                sent: access.sent,
            }),
            status @ 500.. => Error::Server { url, status, message },
            status => Error::Status { url, status, message },
        }
    }

    /// A rate limit: by the status, by headers, or only by the text (GitHub's limit of bursts).
    fn limited(&self, access: Access) -> Option<Error> {
        let number = |name: &str| self.header(name).and_then(|text| text.trim().parse::<i64>().ok());
        let after = number("retry-after");
        let used_up = number("x-ratelimit-remaining") == Some(0) || number("ratelimit-remaining") == Some(0);
        let in_words = content::words(&self.body).to_ascii_lowercase().contains("rate limit");
        if self.status != StatusCode::TOO_MANY_REQUESTS && after.is_none() && !used_up && !in_words {
            return None;
        }
        let now = self
            .header("date")
            .and_then(|text| jiff::fmt::rfc2822::parse(text).ok());
        let now = now.map_or_else(Timestamp::now, |date| date.timestamp());
        let reset = number("x-ratelimit-reset").or_else(|| number("ratelimit-reset"));
        let reset = reset.filter(|_| used_up || after.is_none());
        let wait = match (after, reset) {
            (Some(seconds), _) => Duration::from_secs(seconds.max(1).unsigned_abs()),
            (None, Some(reset)) => Duration::from_secs((reset - now.as_second()).max(1).unsigned_abs()),
            (None, None) => HOLD,
        };
        // Maximum cache lifetime: one day, whatever the server allows.
        let wait = wait.min(Duration::from_hours(24));
        Some(Error::RateLimited {
            host: self.url.authority(),
            until: now.checked_add(wait).ok(),
            wait,
            token: (!access.sent && !access.variables.is_empty()).then_some(access.variables),
        })
    }
}
