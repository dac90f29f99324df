//! An extension: its handlers, and the server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_http_server::Server;
use windlass_runtime_hooks::discovery::{DISCOVERY, DiscoveryRequest, DiscoveryResponse, ExtensionHandler};
use windlass_runtime_hooks::{Hook, Message as _, Response, Status, path};

use crate::call::{LONGEST, Route, Routes, Unanswered, answer, said};
use crate::handler::{BadHandler, Handler};

/// How long the answer to Discovery may take: it is ready, but its request has to arrive.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// An extension: handlers of hooks.
pub struct Extension {
    handlers: Vec<ExtensionHandler>,
    routes: Routes,
    drain: Duration,
}

impl Default for Extension {
    fn default() -> Self {
        Self {
            handlers: Vec::new(),
            routes: Routes::default(),
            // No answer is waited for longer.
            drain: LONGEST,
        }
    }
}

impl std::fmt::Debug for Extension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extension")
            .field("handlers", &self.handlers)
            .finish_non_exhaustive()
    }
}

impl Extension {
    /// An extension without handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a handler of a hook. The handler is a name, or a [`Handler`] with options. `serve` is called for each request.
    pub fn handle<H, F, A>(mut self, _: H, handler: impl Into<Handler>, serve: F) -> Result<Self, BadHandler>
    where
        H: Hook,
        F: Fn(H::Request) -> A + Send + Sync + 'static,
        A: Future<Output = H::Response> + Send + 'static,
    {
        let handler = handler.into();
        let timeout = handler.timeout();
        let handler = handler.discovered::<H>(&self.handlers)?;
        let route = Route {
            hook: H::NAME,
            handler: handler.name.clone(),
            timeout,
            call: Box::new(move |body| {
                let serving = H::Request::decode(body).map(&serve);
                async move {
                    let response = serving
                        .map_err(|error| Unanswered::Undecodable(error.to_string()))?
                        .await;
                    encoded(&response)
                }
                .boxed()
            }),
        };
        self.routes.insert(path(H::NAME, &handler.name), route);
        self.handlers.push(handler);
        Ok(self)
    }

    /// Sets how long running requests may take after the server was stopped: 30 s by default, the longest time that Cluster API waits for an answer.
    /// Kubernetes ends a container after `terminationGracePeriodSeconds` of its Pod (30 by default), which should be longer.
    #[must_use]
    pub fn drain(mut self, longest: Duration) -> Self {
        self.drain = longest;
        self
    }

    /// Serves the hook Discovery and the handlers until `stop` is cancelled. Running requests are then completed, within the time of
    /// [`Self::drain`].
    pub async fn serve(self, listener: TcpListener, tls: Arc<ServerConfig>, stop: CancellationToken) {
        let server = Server {
            name: "a runtime extension",
            listener,
            tls: Some(tls),
            drain: self.drain,
        };
        let routes = Arc::new(self.routes());
        let handler = move |request| {
            let routes = Arc::clone(&routes);
            async move { answer(&routes, request).await }
        };
        server.serve(handler, stop).await;
    }

    /// All routes by their paths.
    fn routes(self) -> BTreeMap<String, Route> {
        let mut response = DiscoveryResponse::success();
        response.handlers = self.handlers;
        let discovery = Route {
            hook: DISCOVERY,
            handler: String::new(),
            timeout: DISCOVERY_TIMEOUT,
            call: Box::new(move |body| {
                let request = DiscoveryRequest::decode(body);
                let result = request.map_err(|error| Unanswered::Undecodable(error.to_string()));
                let result = result.and_then(|_| encoded(&response));
                std::future::ready(result).boxed()
            }),
        };
        let mut routes = self.routes;
        routes.insert(path(DISCOVERY, ""), discovery);
        routes
    }
}

/// The response as JSON. A missing status stays missing, as in Cluster API's server.
fn encoded<R: Response>(response: &R) -> Result<Vec<u8>, Unanswered> {
    if *response.status() == Status::Missing
        && let Some(repeated) = said(R::KIND, "", "no status")
    {
        tracing::warn!(
            kind = R::KIND,
            repeated,
            "a handler has returned a response without a status, which counts as a failure"
        );
    }
    let json = response.encode();
    json.map_err(|error| Unanswered::Unencodable(error.to_string()))
}
