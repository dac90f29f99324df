//! The server, which plays a different host for each requested name.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::answer::{Answer, Body};
use crate::chart::ChartLike;
use crate::provider::LookAlike;
use crate::registry::Registry;
use crate::{github, gitlab, registry, tls, web};

/// The names that the forge has certificates for.
pub mod hosts {
    /// Releases, the web site.
    pub const GITHUB: &str = "github.com";
    /// Releases, the API.
    pub const GITHUB_API: &str = "api.github.com";
    /// The host of release files.
    pub const GITHUB_FILES: &str = "objects.githubusercontent.com";
    /// GitHub in a company.
    pub const ENTERPRISE: &str = "github.example.com";
    /// A GitLab with packages.
    pub const GITLAB: &str = "gitlab.example.com";
    /// A web server with folders.
    pub const WEB: &str = "files.example.com";
    /// An OCI registry.
    pub const REGISTRY: &str = "registry.example.com";
    /// The token service of the registry.
    pub const REGISTRY_TOKENS: &str = "auth.example.com";
    /// The host of the registry's blobs.
    pub const REGISTRY_FILES: &str = "storage.example.com";
    /// The web server with a certificate that clients do not trust.
    pub const UNTRUSTED: &str = "untrusted.example.com";

    pub(crate) const TRUSTED: [&str; 9] = [
        GITHUB,
        GITHUB_API,
        GITHUB_FILES,
        ENTERPRISE,
        GITLAB,
        WEB,
        REGISTRY,
        REGISTRY_TOKENS,
        REGISTRY_FILES,
    ];
}

/// Files by name.
pub(crate) type Files = BTreeMap<String, Bytes>;

/// A received request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The requested host.
    pub host: String,
    /// The method.
    pub method: String,
    /// The path with the query.
    pub path: String,
    /// The credentials.
    pub authorization: Option<String>,
    /// Whether the request was conditional.
    pub conditional: bool,
    /// The status of the answer.
    pub status: u16,
}

/// The credentials that a host requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Demand {
    /// This token. Without any token, GitHub answers that nothing exists.
    Token(String),
    /// A name and a password in every request.
    Basic(String, String),
    /// A token from [`hosts::REGISTRY_TOKENS`], which requires a name and a password.
    Login(String, String),
    /// A token from there, in exchange for this refresh token.
    Refresh(String),
    /// A token from there, without credentials.
    Anonymous,
}

/// A fault of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// This status.
    Status(u16),
    /// 403 with the headers of a rate limit that ends after this many seconds.
    RateLimited(u32),
    /// 429 with only a Retry-After header of this many seconds.
    TooMany(u32),
    /// 403 that reports too many concurrent requests in its text only.
    Burst,
    /// The connection closes after half of the content.
    Truncated,
    /// A sign-in page, with status 200.
    Html,
    /// No answer.
    Stall,
    /// The head of an answer, and then nothing.
    StallAfterHead,
    /// The connection closes without an answer.
    HangUp,
    /// A redirect to this address.
    Redirect(String),
    /// Changed content.
    Changed,
    /// This content with status 200.
    Content(String),
}

#[derive(Debug)]
struct Planned {
    matching: String,
    fault: Fault,
    left: Option<usize>,
}

/// The published content, the required credentials, and the received requests.
#[derive(Default)]
pub(crate) struct State {
    /// By `owner/repository`, then in order of publication.
    pub(crate) releases: Mutex<BTreeMap<String, Vec<github::Release>>>,
    /// By project and package, then by version.
    pub(crate) packages: Mutex<BTreeMap<(String, String), BTreeMap<String, Files>>>,
    /// By path, without leading and trailing slashes.
    pub(crate) web: Mutex<Files>,
    pub(crate) registry: Mutex<Registry>,
    pub(crate) demands: Mutex<BTreeMap<String, Demand>>,
    pub(crate) page: Mutex<Option<usize>>,
    pub(crate) unlisted: Mutex<bool>,
    faults: Mutex<Vec<Planned>>,
    seen: Mutex<Vec<Seen>>,
}

/// A request, as the hosts see it.
pub(crate) struct Asked {
    pub(crate) host: String,
    /// `https` or `http`.
    pub(crate) scheme: &'static str,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) authorization: Option<String>,
    pub(crate) accept: String,
    pub(crate) body: Bytes,
}

/// The server; it ends when dropped.
pub struct Forge {
    state: Arc<State>,
    https: SocketAddr,
    http: SocketAddr,
    authority: String,
    tasks: Vec<JoinHandle<()>>,
}

impl Forge {
    /// Starts with nothing published.
    pub async fn start() -> io::Result<Self> {
        let tls = tls::tls(&hosts::TRUSTED, &[hosts::UNTRUSTED])?;
        let state = Arc::new(State::default());
        let (secure, plain) = (
            TcpListener::bind("127.0.0.1:0").await?,
            TcpListener::bind("127.0.0.1:0").await?,
        );
        let (https, http) = (secure.local_addr()?, plain.local_addr()?);
        let acceptor = Some(TlsAcceptor::from(tls.config));
        let tasks = [(secure, acceptor), (plain, None)]
            .map(|(listener, acceptor)| tokio::spawn(accept(listener, acceptor, Arc::clone(&state))));
        Ok(Self {
            state,
            https,
            http,
            authority: tls.authority,
            tasks: tasks.into(),
        })
    }

    /// The address for all hosts: by `*:PORT`.
    pub fn hosts(&self) -> BTreeMap<String, SocketAddr> {
        BTreeMap::from([("*:443".to_owned(), self.https), ("*:80".to_owned(), self.http)])
    }

    /// The CA certificate for clients, as PEM.
    pub fn authority(&self) -> String {
        self.authority.clone()
    }

    /// The address without TLS. It is a registry and, for paths that do not begin with `/v2/`, a web server.
    pub fn plain(&self) -> SocketAddr {
        self.http
    }

    /// Adds files to a release of `owner/repository`. Creates the release if needed.
    pub fn release(&self, repository: &str, tag: &str, files: &[(String, String)]) {
        let mut releases = self.state.releases.lock();
        let releases = releases.entry(repository.to_owned()).or_default();
        github::release(releases, tag, false).files.extend(bytes(files));
    }

    /// Adds an unpublished release.
    pub fn draft(&self, repository: &str, tag: &str) {
        let mut releases = self.state.releases.lock();
        github::release(releases.entry(repository.to_owned()).or_default(), tag, true);
    }

    /// Releases a fake provider.
    pub fn publish(&self, repository: &str, provider: &LookAlike) {
        self.release(repository, provider.release(), &provider.files());
    }

    /// Adds a package version to a project, whose name is URL-encoded.
    pub fn package(&self, project: &str, package: &str, version: &str, files: &[(String, String)]) {
        let mut packages = self.state.packages.lock();
        let versions = packages.entry((project.to_owned(), package.to_owned())).or_default();
        versions.entry(version.to_owned()).or_default().extend(bytes(files));
    }

    /// Adds files to a folder of the web server.
    pub fn folder(&self, folder: &str, files: &[(String, String)]) {
        let folder = folder.trim_matches('/');
        let files = bytes(files).map(|(name, content)| (format!("{folder}/{name}"), content));
        self.state.web.lock().extend(files);
    }

    /// Adds a chart to a folder of the web server that is a chart repository with an index.
    pub fn chart(&self, folder: &str, chart: &ChartLike) {
        let folder = folder.trim_matches('/');
        let archive = format!("{}-{}.tgz", chart.name(), chart.version());
        let index = format!("{folder}/index.yaml");
        let mut web = self.state.web.lock();
        let known = web.get(&index).and_then(|known| serde_json::from_slice(known).ok());
        let mut file: Value = known.unwrap_or_else(|| json!({"apiVersion": "v1", "entries": {}}));
        if let Value::Array(versions) = &mut file["entries"][chart.name()] {
            versions.push(chart.entry(&archive));
        } else {
            file["entries"][chart.name()] = json!([chart.entry(&archive)]);
        }
        web.insert(index, file.to_string().into());
        web.insert(format!("{folder}/{archive}"), chart.archive());
    }

    /// Adds a chart to a registry, below a path.
    pub fn push_chart(&self, path: &str, chart: &ChartLike) {
        self.state.registry.lock().chart(path, chart);
    }

    /// Folders of the web server no longer list their contents.
    pub fn hide_listings(&self) {
        *self.state.unlisted.lock() = true;
    }

    /// Adds an artifact with files, named by titles.
    pub fn artifact(&self, repository: &str, tag: &str, files: &[(String, String)]) {
        self.state.registry.lock().artifact(repository, tag, bytes(files));
    }

    /// Adds an index with one manifest for each list of files.
    pub fn artifact_index(&self, repository: &str, tag: &str, parts: &[Vec<(String, String)>]) {
        let parts = parts.iter().map(|files| bytes(files).collect());
        self.state.registry.lock().index(repository, tag, parts.collect());
    }

    /// Sets the credentials that a host requires.
    pub fn demand(&self, host: &str, demand: Demand) {
        self.state.demands.lock().insert(host.to_owned(), demand);
    }

    /// Sets the page size of lists, regardless of the request.
    pub fn page_size(&self, size: usize) {
        *self.state.page.lock() = Some(size);
    }

    /// Adds a fault to requests whose host and path contain this text: to this many, or to all.
    pub fn fault(&self, matching: &str, fault: Fault, times: Option<usize>) {
        let matching = matching.to_owned();
        self.state.faults.lock().push(Planned {
            matching,
            fault,
            left: times,
        });
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.state.faults.lock().clear();
    }

    /// All requests since the start or the last [`forget`](Self::forget).
    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().clone()
    }

    /// The number of requests with this text in host and path.
    pub fn count(&self, matching: &str) -> usize {
        let seen = self.state.seen.lock();
        seen.iter()
            .filter(|seen| format!("{}{}", seen.host, seen.path).contains(matching))
            .count()
    }

    /// Clears the received requests.
    pub fn forget(&self) {
        self.state.seen.lock().clear();
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

fn bytes(files: &[(String, String)]) -> impl Iterator<Item = (String, Bytes)> {
    files
        .iter()
        .map(|(name, content)| (name.clone(), Bytes::from(content.clone())))
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, state: Arc<State>) {
    // Connections end with the listener.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (tls, state) = (tls.clone(), Arc::clone(&state));
        connections.spawn(async move {
            match tls {
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, "https", state).await;
                    }
                }
                None => serve(stream, "http", state).await,
            }
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, scheme: &'static str, state: Arc<State>) {
    let service = service_fn(move |request| answered(request, scheme, Arc::clone(&state)));
    // Errors of connections are intended: clients are tested with them.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// An error closes the connection.
async fn answered(
    request: Request<Incoming>,
    scheme: &'static str,
    state: Arc<State>,
) -> Result<Response<Body>, io::Error> {
    let text = |name: header::HeaderName| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let known = text(header::IF_NONE_MATCH);
    let path_and_query = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str())
        .to_owned();
    let host = text(header::HOST)
        .or_else(|| request.uri().authority().map(ToString::to_string))
        .unwrap_or_default();
    let asked = Asked {
        host,
        scheme,
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
        query: query(request.uri().query().unwrap_or_default()),
        authorization: text(header::AUTHORIZATION),
        accept: text(header::ACCEPT).unwrap_or_default(),
        body: request
            .into_body()
            .collect()
            .await
            .map_err(io::Error::other)?
            .to_bytes(),
    };
    let fault = state.fault_for(&format!("{}{path_and_query}", asked.host));
    let good = || state.route(&asked).unless_known(known.as_deref());
    let (answer, how): (Answer, fn(Answer) -> Response<Body>) = match &fault {
        None => (good(), Answer::send),
        Some(Fault::Status(status)) => (
            Answer::json(*status, &json!({"message": "as the forge was told"})),
            Answer::send,
        ),
        Some(Fault::RateLimited(seconds)) => (limited(*seconds), Answer::send),
        Some(Fault::TooMany(seconds)) => (
            Answer::new(429, "slow down").with("retry-after", seconds.to_string()),
            Answer::send,
        ),
        Some(Fault::Burst) => {
            let words = "You have exceeded a secondary rate limit. Please wait.";
            (Answer::json(403, &json!({"message": words})), Answer::send)
        }
        Some(Fault::Truncated) => (good(), Answer::send_half),
        Some(Fault::Html) => {
            let page = "<!DOCTYPE html>\n<html><body>Sign in</body></html>\n";
            (Answer::new(200, page).with("content-type", "text/html"), Answer::send)
        }
        Some(Fault::StallAfterHead) => (good(), Answer::send_head),
        Some(Fault::Redirect(to)) => (Answer::redirect(to), Answer::send),
        Some(Fault::Changed) => {
            let mut answer = good();
            answer.body = [&answer.body[..], b" "].concat().into();
            (answer, Answer::send)
        }
        Some(Fault::Content(content)) => (Answer::new(200, content.clone()), Answer::send),
        Some(Fault::Stall | Fault::HangUp) => (Answer::new(599, ""), Answer::send),
    };
    state.seen.lock().push(Seen {
        host: asked.host,
        method: asked.method,
        path: path_and_query,
        authorization: asked.authorization,
        conditional: known.is_some(),
        status: answer.status,
    });
    match fault {
        Some(Fault::Stall) => std::future::pending().await,
        Some(Fault::HangUp) => Err(io::Error::other("the forge hangs up")),
        _ => Ok::<_, Infallible>(how(answer)).map_err(|never| match never {}),
    }
}

fn limited(seconds: u32) -> Answer {
    let reset = Timestamp::now().as_second() + i64::from(seconds);
    let words = "API rate limit exceeded for 203.0.113.7.";
    Answer::json(403, &json!({"message": words}))
        .with("x-ratelimit-limit", "60")
        .with("x-ratelimit-remaining", "0")
        .with("x-ratelimit-reset", reset.to_string())
}

pub(crate) fn query(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), decoded(value))).collect()
}

/// Decodes %-encoding.
pub(crate) fn decoded(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let (hex, rest) = piece.split_at_checked(2).unwrap_or((piece, ""));
        bytes.extend(u8::from_str_radix(hex, 16));
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl State {
    fn fault_for(&self, asked: &str) -> Option<Fault> {
        let mut faults = self.faults.lock();
        let planned = faults
            .iter_mut()
            .find(|planned| asked.contains(&planned.matching) && planned.left != Some(0))?;
        planned.left = planned.left.map(|left| left - 1);
        Some(planned.fault.clone())
    }

    fn route(&self, asked: &Asked) -> Answer {
        match asked.host.as_str() {
            hosts::GITHUB | hosts::GITHUB_API | hosts::GITHUB_FILES | hosts::ENTERPRISE => github::answer(self, asked),
            hosts::GITLAB => gitlab::answer(self, asked),
            hosts::REGISTRY | hosts::REGISTRY_TOKENS | hosts::REGISTRY_FILES => registry::answer(self, asked),
            _ if asked.path.starts_with("/v2/") || asked.path == "/token" => registry::answer(self, asked),
            _ => web::answer(self, asked),
        }
    }

    /// The requested page of a list, and whether another follows.
    pub(crate) fn page<T: Clone>(&self, asked: &Asked, all: &[T]) -> (Vec<T>, Option<usize>) {
        let number = |name: &str, default: usize| {
            asked
                .query
                .get(name)
                .and_then(|text| text.parse().ok())
                .unwrap_or(default)
        };
        let size = self.page.lock().unwrap_or_else(|| number("per_page", 30));
        let page = number("page", 1).max(1);
        let found: Vec<T> = all.iter().skip((page - 1) * size).take(size).cloned().collect();
        (found, (page * size < all.len()).then_some(page + 1))
    }
}
