//! HTTP requests: one connection each, with limits of time and length, and a separate error for each type of failure.

pub(crate) mod cache;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use jiff::Timestamp;
pub(crate) use windlass_http_client::Answer;
use windlass_http_client::{Proxies, Request, Url};

use crate::content;
use crate::error::Error;
use cache::{Cache, Kept};

/// Size of the memory cache in bytes, unless set.
const KEPT: usize = 16 << 20;
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
        let connections = windlass_http_client::Settings::default();
        Self {
            proxies: connections.proxies,
            authorities: connections.authorities,
            hosts: connections.hosts,
            patience: connections.patience,
            longest: connections.longest,
            kept: KEPT,
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
    requests: windlass_http_client::Client,
    cache: Cache,
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

impl Default for Client {
    /// A client with the default settings, which are always valid.
    fn default() -> Self {
        let inner = Inner {
            requests: windlass_http_client::Client::default(),
            cache: Cache::new(KEPT, None),
            folders: false,
        };
        Self { inner: Arc::new(inner) }
    }
}

impl Client {
    /// A client with these settings.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let requests = windlass_http_client::Client::new(windlass_http_client::Settings {
            proxies: settings.proxies,
            authorities: settings.authorities,
            hosts: settings.hosts,
            patience: settings.patience,
            longest: settings.longest,
        })?;
        let inner = Inner {
            requests,
            cache: Cache::new(settings.kept, settings.kept_in),
            folders: settings.folders,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub(crate) fn reads_folders(&self) -> bool {
        self.inner.folders
    }

    pub(crate) fn longest(&self) -> usize {
        self.inner.requests.longest()
    }

    /// Sends a request and follows redirects. Any status is a response; 304 is replaced by the cached content.
    pub(crate) async fn send(&self, ask: &Ask) -> Result<Answer, Error> {
        let key = format!("{} {}", ask.accept, ask.url.whole());
        let keeps = ask.kept && ask.method == Method::GET;
        let known = if keeps { self.inner.cache.find(&key).await } else { None };
        let request = Request {
            method: ask.method.clone(),
            url: &ask.url,
            accept: ask.accept,
            content_type: ask.content_type,
            authorization: ask.authorization.as_deref(),
            known_tag: known.as_ref().map(|kept| kept.tag.as_str()),
            body: ask.body.clone(),
        };
        let mut answer = self.inner.requests.send(&request).await?;
        match known {
            Some(kept) if answer.status == StatusCode::NOT_MODIFIED => {
                answer.status = StatusCode::OK;
                answer.body = kept.body;
            }
            _ if keeps && answer.status == StatusCode::OK => {
                if let Some(tag) = answer.header("etag") {
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
}

/// The server and the names of its variables, for error messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) sent: bool,
    /// The variables of credentials; empty if none are ever sent.
    pub(crate) variables: &'static str,
}

/// What an answer means that is not a file.
pub(crate) trait Refusal {
    /// The error for a response that is not a file. Callers handle "not found" themselves.
    fn refusal(&self, access: Access) -> Error;
}

impl Refusal for Answer {
    fn refusal(&self, access: Access) -> Error {
        let (host, url) = (self.url.authority(), self.url.to_string());
        let message = content::words(&self.body);
        match self.status.as_u16() {
            401 => Error::Unauthorized {
                host,
                sent: access.sent,
                variables: access.variables,
            },
            403 | 429 => limited(self, access).unwrap_or(Error::Forbidden {
                host,
                url,
                message,
                sent: access.sent,
            }),
            status @ 500.. => Error::Server { url, status, message },
            status => Error::Status { url, status, message },
        }
    }
}

/// A refusal for having asked too often: said by the status, by headers, or in words only (GitHub's limit for bursts).
fn limited(answer: &Answer, access: Access) -> Option<Error> {
    let number = |name: &str| answer.header(name).and_then(|text| text.trim().parse::<i64>().ok());
    let after = number("retry-after");
    let used_up = number("x-ratelimit-remaining") == Some(0) || number("ratelimit-remaining") == Some(0);
    let in_words = content::words(&answer.body).to_ascii_lowercase().contains("rate limit");
    if answer.status != StatusCode::TOO_MANY_REQUESTS && after.is_none() && !used_up && !in_words {
        return None;
    }
    let now = answer
        .header("date")
        .and_then(|text| jiff::fmt::rfc2822::parse(text).ok());
    let now = now.map_or_else(Timestamp::now, |date| date.timestamp());
    let reset = number("x-ratelimit-reset").or_else(|| number("ratelimit-reset"));
    let reset = reset.filter(|_| used_up || after.is_none());
    let wait = match (after, reset) {
        (Some(seconds), _) => Duration::from_secs(seconds.max(1).unsigned_abs()),
        (None, Some(reset)) => Duration::from_secs(reset.saturating_sub(now.as_second()).max(1).unsigned_abs()),
        (None, None) => HOLD,
    };
    // Maximum cache lifetime: one day, whatever the server allows.
    let wait = wait.min(Duration::from_hours(24));
    Some(Error::RateLimited {
        host: answer.url.authority(),
        until: now.checked_add(wait).ok(),
        wait,
        token: (!access.sent && !access.variables.is_empty()).then_some(access.variables),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any number in a header is one.
    #[test]
    fn a_limit_ends_at_the_latest_after_a_day() {
        let check = |reset: &str, expect: Duration| {
            let mut headers = http::HeaderMap::new();
            headers.insert("x-ratelimit-remaining", http::HeaderValue::from_static("0"));
            headers.insert("x-ratelimit-reset", reset.parse().unwrap());
            headers.insert("date", http::HeaderValue::from_static("Wed, 25 Nov 2026 10:00:00 GMT"));
            let answer = Answer {
                status: StatusCode::FORBIDDEN,
                headers,
                body: Bytes::new(),
                url: Url::parse("https://example.com/").unwrap(),
            };
            let access = Access {
                sent: false,
                variables: "",
            };
            assert_eq!(answer.refusal(access).retry_after(), Some(expect), "{reset}");
        };
        check("1795600860", Duration::from_mins(1));
        check("-9223372036854775808", Duration::from_secs(1));
        check("9223372036854775807", Duration::from_hours(24));
    }
}
