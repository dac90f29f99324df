//! The extensions of a management cluster, for controllers.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use windlass_api::k8s::Namespace;
use windlass_api::meta::MetaExt as _;
use windlass_api::runtime::{ExtensionConfig, ExtensionHandler};
use windlass_controller_runtime::{ApiClient, Cache, Cx, ObjectKey};
use windlass_runtime_hooks::discovery::{DISCOVERY, DiscoveryRequest, DiscoveryResponse};
use windlass_runtime_hooks::{DEFAULT_TIMEOUT_SECONDS, Hook, Message as _, Request as _, Response, Status};

use crate::answers::{CallError, checked, together};
use crate::call::{Calls, ClientIdentity};
use crate::handlers::{self, Handler};
use crate::metrics::Counters;
use crate::{address, discovery};

/// How many calls one extension gets at once.
const AT_ONCE: usize = 32;

/// What a hook is called about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The namespace of the object.
    pub namespace: String,
    /// The uid of the object.
    pub uid: String,
    /// A number that changes with what the question says of the object. The answer of a handler that blocks is kept while it is the same.
    pub version: u64,
}

/// Calls the handlers of extensions. Cheap to clone.
#[derive(Clone)]
pub struct Extensions(Arc<Inner>);

struct Inner {
    cx: Cx,
    configs: Cache<ExtensionConfig>,
    calls: Calls,
    counters: Counters,
    /// One per ExtensionConfig.
    turns: Mutex<HashMap<String, Arc<Semaphore>>>,
    held: Mutex<HashMap<(&'static str, String), Held>>,
}

/// The answer of handlers that block.
struct Held {
    version: u64,
    until: Timestamp,
    message: String,
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").finish_non_exhaustive()
    }
}

impl Extensions {
    /// The extensions of the management cluster of `cx`.
    pub fn new(cx: &Cx, identity: Option<ClientIdentity>) -> Self {
        Self(Arc::new(Inner {
            cx: cx.clone(),
            configs: cx.cache::<ExtensionConfig>(),
            calls: Calls::new(identity),
            counters: Counters::new(cx.metrics()),
            turns: Mutex::default(),
            held: Mutex::default(),
        }))
    }

    /// The handlers of a hook for objects of a namespace, by name. An error when that cannot be told.
    pub async fn handlers<H: Hook>(&self, namespace: &str) -> Result<Vec<Handler>, CallError> {
        self.handlers_of(H::NAME, namespace).await
    }

    async fn handlers_of(&self, hook: &str, namespace: &str) -> Result<Vec<Handler>, CallError> {
        let mut found = handlers::all(&self.0.configs.all());
        found.retain(|handler| handler.hook == hook);
        let mut selected = Vec::new();
        for handler in found {
            if self.is_for(&handler, namespace).await? {
                selected.push(handler);
            }
        }
        Ok(selected)
    }

    /// Whether a handler is called for objects of a namespace.
    async fn is_for(&self, handler: &Handler, namespace: &str) -> Result<bool, CallError> {
        let unusable = |why: String| CallError::Unusable {
            handler: handler.name.clone(),
            why,
        };
        let Some(selector) = handlers::namespaces(&handler.config).map_err(unusable)? else {
            return Ok(true);
        };
        let client = ApiClient::from(self.0.cx.client());
        let read = client.get::<Namespace>(&ObjectKey::cluster_scoped(namespace)).await;
        let failed = |why: String| {
            unusable(format!(
                "failed to match namespace: failed to get namespace {namespace}: {why}"
            ))
        };
        match read {
            Ok(Some(found)) => Ok(selector.matches(found.metadata.labels.as_ref())),
            Ok(None) => Err(failed("it does not exist".to_owned())),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Calls all handlers of a hook, one after the other, up to the first that fails. While one of them blocks, its answer counts until it
    /// wants to be asked again.
    pub async fn call_all<H: Hook>(&self, about: &About, request: &H::Request) -> Result<H::Response, CallError> {
        if let Some(held) = self.held::<H>(about) {
            return Ok(held);
        }
        let mut answers = Vec::new();
        for handler in self.handlers::<H>(&about.namespace).await? {
            answers.push(self.call::<H>(&handler, request).await?);
        }
        let whole = together(&answers);
        self.hold::<H>(about, &whole);
        Ok(whole)
    }

    fn held<H: Hook>(&self, about: &About) -> Option<H::Response> {
        let now = self.0.cx.now();
        let held = self.0.held.lock();
        let held = held.get(&(H::NAME, about.uid.clone()))?;
        let left = held.until.duration_since(now);
        (held.version == about.version && left.is_positive()).then(|| {
            let mut answer = H::Response::success();
            answer.set(Status::Success, held.message.clone());
            // Rounded up: asked again a moment too early, nothing would have changed.
            let seconds = i32::try_from(left.as_secs()).unwrap_or(i32::MAX).saturating_add(1);
            answer.set_retry_after_seconds(seconds);
            answer
        })
    }

    fn hold<H: Hook>(&self, about: &About, answer: &H::Response) {
        let now = self.0.cx.now();
        let mut held = self.0.held.lock();
        held.retain(|_, held| held.until > now);
        let wait = answer.retry_after_seconds();
        let until = now.checked_add(SignedDuration::from_secs(i64::from(wait)));
        if let Ok(until) = until
            && wait > 0
        {
            let held_answer = Held {
                version: about.version,
                until,
                message: answer.message().to_owned(),
            };
            held.insert((H::NAME, about.uid.clone()), held_answer);
        }
    }

    /// Calls a handler. The settings of its ExtensionConfig are added to those of the request, which have priority.
    pub async fn call<H: Hook>(&self, handler: &Handler, request: &H::Request) -> Result<H::Response, CallError> {
        let unanswered = |why: String| CallError::Unanswered {
            handler: handler.name.clone(),
            why,
        };
        let mut settings = handler.config.spec.settings.clone();
        settings.extend(request.settings().clone());
        let body = request
            .encode_with(settings)
            .map_err(|error| unanswered(error.to_string()))?;
        let decode = |body: &[u8]| {
            let answer = H::Response::decode(body);
            answer.map_err(|error| format!("http call failed: failed to decode response: {error}"))
        };
        match self
            .post(handler, body, decode, |answer| answer.status().as_str().to_owned())
            .await
        {
            Ok(answer) => checked(&handler.name, answer),
            Err(why) if handler.is_ignored => {
                tracing::warn!(handler = %handler.name, why, "no answer of an extension: ignored because of its failurePolicy");
                Ok(H::Response::success())
            }
            Err(why) => Err(unanswered(why)),
        }
    }

    /// Sends a request to a handler.
    async fn post<R>(
        &self,
        handler: &Handler,
        body: Vec<u8>,
        decode: impl FnOnce(&[u8]) -> Result<R, String>,
        status: impl FnOnce(&R) -> String,
    ) -> Result<R, String> {
        let config = &handler.config.spec.client_config;
        let to = address::of(config, &handler.hook, handler.own_name(), handler.timeout_seconds)?;
        let ca_bundle = config.ca_bundle.as_ref().map_or(&[][..], |ByteString(bytes)| bytes);
        let began = Instant::now();
        let answered = {
            let turns = self.turns(handler.config.metadata.name());
            let send = async {
                // The semaphore is never closed.
                let _turn = turns.acquire().await.ok();
                let left = handler.timeout().saturating_sub(began.elapsed());
                self.0.calls.post(&to, ca_bundle, body, left).await
            };
            tokio::time::timeout(handler.timeout() + Duration::from_secs(1), send).await
        };
        let (code, answer) = match answered {
            Ok(answered) => (answered.code, answered.body.and_then(|body| decode(&body))),
            Err(_) => (
                None,
                Err(format!(
                    "http call failed: Post \"{to}\": {AT_ONCE} other calls of the extension are not answered"
                )),
            ),
        };
        let said = answer.as_ref().map_or_else(|_| String::new(), status);
        self.0.counters.add(&handler.hook, &to, code, &said, began.elapsed());
        answer
    }

    fn turns(&self, config: &str) -> Arc<Semaphore> {
        let mut turns = self.0.turns.lock();
        if !turns.contains_key(config) {
            turns.retain(|_, turns| Arc::strong_count(turns) > 1);
        }
        let turns = turns.entry(config.to_owned());
        turns.or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))).clone()
    }

    /// Asks an extension for its handlers, for the status of its ExtensionConfig.
    pub async fn discover(&self, config: &Arc<ExtensionConfig>) -> Result<Vec<ExtensionHandler>, String> {
        let name = config.metadata.name();
        let failed = |why: String| format!("failed to discover extension {name:?}: {why}");
        let handler = Handler {
            config: config.clone(),
            name: String::new(),
            hook: DISCOVERY.to_owned(),
            timeout_seconds: DEFAULT_TIMEOUT_SECONDS,
            is_ignored: false,
        };
        let body = DiscoveryRequest::default()
            .encode()
            .map_err(|error| failed(error.to_string()))?;
        let decode = |body: &[u8]| {
            let answer = DiscoveryResponse::decode(body);
            answer.map_err(|error| format!("http call failed: failed to decode response: {error}"))
        };
        let status = |answer: &DiscoveryResponse| answer.status.as_str().to_owned();
        let answer = self.post(&handler, body, decode, status).await.map_err(failed)?;
        if answer.status != Status::Success {
            let said = checked(name, answer).err();
            return Err(match said {
                Some(CallError::Failed { why, .. }) => failed(why),
                _ => failed("it has failed".to_owned()),
            });
        }
        discovery::handlers(name, &answer).map_err(failed)
    }
}
