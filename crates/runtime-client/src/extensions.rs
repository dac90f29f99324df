//! The extensions of a management cluster, for controllers.

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use windlass_api::k8s::Namespace;
use windlass_api::meta::MetaExt as _;
use windlass_api::runtime::{ExtensionConfig, ExtensionHandler};
use windlass_contract::Labels;
use windlass_controller_runtime::{ApiClient, Cache, Cx, ObjectKey, Repeats, Selection};
use windlass_runtime_hooks::discovery::{DISCOVERY, DiscoveryRequest, DiscoveryResponse};
use windlass_runtime_hooks::in_place::{CanUpdateMachine, CanUpdateMachineSet, UpdateMachine};
use windlass_runtime_hooks::topology::{DiscoverVariables, GeneratePatches, ValidateTopology};
use windlass_runtime_hooks::upgrade_plan::GenerateUpgradePlan;
use windlass_runtime_hooks::{
    DEFAULT_TIMEOUT_SECONDS, Hook, Message as _, Request as _, Response, Status, Undecodable,
};

use crate::answers::{CallError, beginning, checked, together};
use crate::call::{self, Calls, ClientIdentity};
use crate::handlers::{self, Discovered, Handler};
use crate::in_place::{InPlace, NO_EXTENSION};
use crate::metrics::Counters;
use crate::{address, discovery};

/// How many calls one extension gets at once: fewer than the workers of the controllers that call it, so that a slow one cannot hold all of them.
const AT_ONCE: usize = 32;
/// How long a call waits until one of the others has ended. The object comes again later.
const WAIT_FOR_TURN: Duration = Duration::from_secs(2);
/// How long a failure counts. Events of one object come in bursts, and an extension that does not answer costs each of them its time-out.
const FAILED_FOR: SignedDuration = SignedDuration::from_secs(5);

/// How long the answer of a hook counts that asks what an extension can do: it depends on nothing but the question. Cluster API's time.
const CAPABILITY_COUNTS_FOR: SignedDuration = SignedDuration::from_mins(10);

/// What a hook is called about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The uid of the object.
    pub uid: String,
    /// A number that changes with what the question says of the object. The answer of a handler that blocks, and a failure, count while it is
    /// the same.
    pub version: u64,
}

/// Which hooks are called. What is not called is as if no extension served it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callable {
    /// Those of Clusters with a topology, and of ClusterClasses.
    pub of_topologies: bool,
    /// Those of updates in place.
    pub in_place: bool,
    /// Whether only those are called that answer a question. The others tell extensions that something happens, or have it done.
    pub asks_only: bool,
}

impl Default for Callable {
    /// All of them.
    fn default() -> Self {
        Self {
            of_topologies: true,
            in_place: true,
            asks_only: false,
        }
    }
}

impl Callable {
    fn has(self, hook: &str) -> bool {
        if self.asks_only && !is_question(hook) {
            return false;
        }
        if of_updates_in_place(hook) {
            self.in_place
        } else {
            self.of_topologies
        }
    }
}

fn is_question(hook: &str) -> bool {
    [
        CanUpdateMachineSet::NAME,
        CanUpdateMachine::NAME,
        DiscoverVariables::NAME,
        GeneratePatches::NAME,
        ValidateTopology::NAME,
        GenerateUpgradePlan::NAME,
    ]
    .contains(&hook)
}

fn of_updates_in_place(hook: &str) -> bool {
    [CanUpdateMachineSet::NAME, CanUpdateMachine::NAME, UpdateMachine::NAME].contains(&hook)
}

/// Calls the handlers of extensions. Cheap to clone.
#[derive(Clone)]
pub struct Extensions(Arc<Inner>);

struct Inner {
    cx: Cx,
    configs: Cache<ExtensionConfig>,
    callable: Callable,
    /// The ExtensionConfigs as they were last discovered, by uid.
    discovered: Arc<Mutex<Discovered>>,
    calls: Calls,
    counters: Counters,
    /// The failures that are ignored, as far as they were logged.
    said: Repeats,
    /// One per ExtensionConfig.
    turns: Mutex<HashMap<String, Arc<Semaphore>>>,
    held: Mutex<HashMap<(&'static str, String), Held>>,
    /// The metadata of the Namespaces. They are watched from the first extension on that selects by them.
    namespaces: OnceLock<Cache<Namespace>>,
}

/// An answer that counts for some time, or a failure.
struct Held {
    version: u64,
    until: Timestamp,
    /// The response of the hook, or what follows from it.
    answer: Result<Arc<dyn Any + Send + Sync>, CallError>,
}

/// Why a request has no answer.
enum Lost {
    /// It cannot be sent. This does not pass by itself, and is never ignored.
    Unsendable(String),
    /// It is not sent: the extension has enough to do. It is not known what it would answer, so this is never ignored either.
    Busy(String),
    /// There is no answer, or none that can be read.
    Unanswered(String),
}

impl Lost {
    fn why(self) -> String {
        match self {
            Self::Unsendable(why) | Self::Busy(why) | Self::Unanswered(why) => why,
        }
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").finish_non_exhaustive()
    }
}

impl Extensions {
    /// The extensions of the management cluster of `cx`, of which only these hooks are called.
    pub fn new(cx: &Cx, identity: Option<ClientIdentity>, callable: Callable) -> Self {
        let configs = cx.cache::<ExtensionConfig>();
        let discovered = Arc::new(Mutex::new(Discovered::default()));
        let seen = discovered.clone();
        configs.subscribe(move |change| seen.lock().see(change.old.as_ref(), change.new.as_ref()));
        Self(Arc::new(Inner {
            cx: cx.clone(),
            configs,
            callable,
            discovered,
            calls: Calls::new(identity),
            counters: Counters::new(cx.metrics()),
            said: Repeats::default(),
            turns: Mutex::default(),
            held: Mutex::default(),
            namespaces: OnceLock::new(),
        }))
    }

    /// The handlers of a hook for objects of a namespace, by name. An error when that cannot be told: an extension was never discovered, or
    /// the namespace cannot be read.
    pub async fn handlers<H: Hook>(&self, namespace: &str) -> Result<Vec<Handler>, CallError> {
        self.handlers_of(H::NAME, namespace).await
    }

    async fn handlers_of(&self, hook: &str, namespace: &str) -> Result<Vec<Handler>, CallError> {
        if !self.0.callable.has(hook) {
            return Ok(Vec::new());
        }
        let mut all = self.all_handlers(namespace).await?;
        all.retain(|handler| handler.hook == hook);
        Ok(all)
    }

    /// The handler of this name, for objects of a namespace. An error when there is none, it serves another hook, or is not for the namespace.
    pub async fn named<H: Hook>(&self, namespace: &str, name: &str) -> Result<Handler, CallError> {
        let unusable = |why: &str| CallError::Unusable {
            handler: name.to_owned(),
            why: why.to_owned(),
        };
        if !self.0.callable.has(H::NAME) {
            return Err(unusable(&format!(
                "a feature gate is off, so the hook {} is not called",
                H::NAME
            )));
        }
        let configs = self.0.discovered.lock().usable(self.0.configs.all());
        let found = handlers::all(&configs).into_iter().find(|handler| handler.name == name);
        let handler = found.ok_or_else(|| {
            unusable("no ExtensionConfig lists a handler of this name, which is that of the handler, a dot and that of the ExtensionConfig")
        })?;
        if handler.hook != H::NAME {
            return Err(unusable(&format!("handler does not match GroupHook {:?}", H::NAME)));
        }
        let mut place = Place::new(&self.0, namespace);
        if !place.is_selected_by(&handler.config).await? {
            return Err(unusable(&format!(
                "namespaceSelector did not match namespace {namespace}"
            )));
        }
        Ok(handler)
    }

    /// For each of these names of handlers, a text that changes with the spec of its ExtensionConfig as it was last discovered, and with another
    /// object of the same name; empty where no ExtensionConfig lists the handler.
    pub fn revisions(&self, names: &[&str]) -> Vec<String> {
        if names.is_empty() {
            return Vec::new();
        }
        let configs = self.0.discovered.lock().usable(self.0.configs.all());
        let all = handlers::all(&configs);
        let revision = |name: &&str| {
            let found = all.iter().find(|handler| handler.name == *name);
            found.map(handlers::revision).unwrap_or_default()
        };
        names.iter().map(revision).collect()
    }

    /// The names of the hooks of topologies that extensions serve for objects of a namespace. An error as in [`Self::handlers`].
    pub async fn served(&self, namespace: &str) -> Result<BTreeSet<String>, CallError> {
        if !self.0.callable.of_topologies {
            return Ok(BTreeSet::new());
        }
        let all = self.all_handlers(namespace).await?;
        let hooks = all.into_iter().map(|handler| handler.hook);
        Ok(hooks.filter(|hook| !of_updates_in_place(hook)).collect())
    }

    async fn all_handlers(&self, namespace: &str) -> Result<Vec<Handler>, CallError> {
        let configs = self.0.discovered.lock().usable(self.0.configs.all());
        let mut place = Place::new(&self.0, namespace);
        // This process would not discover those that it does not reconcile.
        let scope = self.0.cx.scope();
        let is_awaited =
            |config: &&Arc<ExtensionConfig>| handlers::is_unknown(config) && scope.reconciles(&config.metadata);
        for config in configs.iter().filter(is_awaited) {
            if place.is_selected_by(config).await? {
                return Err(CallError::Unusable {
                    handler: config.metadata.name().to_owned(),
                    why: "the ExtensionConfig was never discovered, so its hooks are not known".to_owned(),
                });
            }
        }
        let mut selected = Vec::new();
        for handler in handlers::all(&configs) {
            if place.is_selected_by(&handler.config).await? {
                selected.push(handler);
            }
        }
        Ok(selected)
    }

    /// Calls handlers of a hook, one after the other, up to the first that fails. While one of them blocks, its answer counts until it wants to
    /// be asked again.
    pub async fn call_all<H: Hook>(
        &self,
        handlers: &[Handler],
        about: &About,
        request: &H::Request,
    ) -> Result<H::Response, CallError> {
        let version = handlers::version(handlers) ^ about.version;
        let key = (H::NAME, about.uid.clone());
        if let Some(held) = self.held::<H>(&key, version) {
            return held;
        }
        let mut answers = Vec::new();
        for handler in handlers {
            match self.call::<H>(handler, request).await {
                Ok(answer) => answers.push(answer),
                Err(error) => return Err(self.hold_failure(key, version, error)),
            }
        }
        let whole = together(&answers);
        let wait = whole.retry_after_seconds();
        if wait != 0 {
            let wait = SignedDuration::from_secs(i64::from(wait));
            self.hold(key, version, wait, Ok(Arc::new(whole.clone())));
        }
        Ok(whole)
    }

    /// Calls the handler of a hook that only one extension may serve. `None` when none does. While it blocks, its answer counts until it wants
    /// to be asked again.
    pub async fn call_only<H: Hook>(
        &self,
        namespace: &str,
        about: &About,
        request: &H::Request,
    ) -> Result<Option<H::Response>, CallError> {
        let handlers = self.handlers::<H>(namespace).await?;
        match only::<H>(&handlers)? {
            Some(_) => self.call_all::<H>(&handlers, about, request).await.map(Some),
            None => Ok(None),
        }
    }

    /// Asks the handler of a hook what it can change, of which there may be one. `left` reads from its answer what it leaves unchanged. What
    /// follows counts for ten minutes, as long as the question is the same; the answer itself is not kept.
    pub async fn can<H: Hook>(
        &self,
        handlers: &[Handler],
        about: &About,
        request: &H::Request,
        left: impl FnOnce(&H::Response) -> Result<Vec<String>, String>,
    ) -> InPlace {
        let handler = match only::<H>(handlers) {
            Ok(Some(handler)) => handler,
            Ok(None) => return InPlace::Impossible(NO_EXTENSION.to_owned()),
            Err(error) => return InPlace::Unknown(error.to_string()),
        };
        let version = handlers::version(handlers) ^ about.version;
        let key = (H::NAME, about.uid.clone());
        if let Some((Ok(held), _)) = self.held_value::<InPlace>(&key, version) {
            return held;
        }
        let (found, counts_for) = match self.call::<H>(handler, request).await {
            Ok(answer) => match left(&answer) {
                Ok(left) => (InPlace::unless(&left), CAPABILITY_COUNTS_FOR),
                Err(why) => (InPlace::Unknown(beginning(&why).to_owned()), FAILED_FOR),
            },
            Err(error) => (InPlace::Unknown(error.to_string()), FAILED_FOR),
        };
        self.hold(key, version, counts_for, Ok(Arc::new(found.clone())));
        found
    }

    /// Calls a handler whose answer depends on nothing but the request, such as the variables that it defines. The answer counts for ten
    /// minutes, also for others that ask the same, as long as the ExtensionConfig is the same. No answer is a failure whatever the handler's
    /// `failurePolicy`: it does not say that there is nothing.
    pub async fn call_static<H: Hook>(
        &self,
        handler: &Handler,
        request: &H::Request,
    ) -> Result<H::Response, CallError> {
        let handler = &Handler {
            is_ignored: false,
            ..handler.clone()
        };
        let version = handlers::release(handler);
        // Settings are a map in the order of its names.
        let question = format!("{} {:?}", handler.name, request.settings());
        let key = (H::NAME, question);
        if let Some((held, _)) = self.held_value::<H::Response>(&key, version) {
            return held;
        }
        match self.call::<H>(handler, request).await {
            Ok(answer) => {
                self.hold(key, version, CAPABILITY_COUNTS_FOR, Ok(Arc::new(answer.clone())));
                Ok(answer)
            }
            Err(error) => Err(self.hold_failure(key, version, error)),
        }
    }

    fn held<H: Hook>(&self, key: &(&'static str, String), version: u64) -> Option<Result<H::Response, CallError>> {
        let (answer, left) = self.held_value::<H::Response>(key, version)?;
        Some(answer.map(|answer| with_time_left(answer, left)))
    }

    /// What is held of this type, and for how long it still counts.
    fn held_value<T: Clone + 'static>(
        &self,
        key: &(&'static str, String),
        version: u64,
    ) -> Option<(Result<T, CallError>, SignedDuration)> {
        let now = self.0.cx.now();
        let held = self.0.held.lock();
        let held = held.get(key).filter(|held| held.version == version)?;
        let left = held.until.duration_since(now);
        let answer = match &held.answer {
            Ok(answer) => Ok(answer.downcast_ref::<T>()?.clone()),
            Err(error) => Err(error.clone()),
        };
        left.is_positive().then_some((answer, left))
    }

    fn hold_failure(&self, key: (&'static str, String), version: u64, error: CallError) -> CallError {
        self.hold(key, version, FAILED_FOR, Err(error.clone()));
        error
    }

    fn hold(
        &self,
        key: (&'static str, String),
        version: u64,
        wait: SignedDuration,
        answer: Result<Arc<dyn Any + Send + Sync>, CallError>,
    ) {
        let now = self.0.cx.now();
        let mut held = self.0.held.lock();
        held.retain(|_, held| held.until > now);
        if let Ok(until) = now.checked_add(wait) {
            let answer = Held { version, until, answer };
            held.insert(key, answer);
        }
    }

    /// Calls a handler. The settings of its ExtensionConfig are added to those of the request, which have priority.
    pub async fn call<H: Hook>(&self, handler: &Handler, request: &H::Request) -> Result<H::Response, CallError> {
        let name = || handler.name.clone();
        let mut settings = handler.config.spec.settings.clone();
        settings.extend(request.settings().clone());
        let body = request.encode_with(settings).map_err(|error| CallError::Unusable {
            handler: name(),
            why: error.to_string(),
        })?;
        let decode = |body: &[u8]| {
            let answer = H::Response::decode(body);
            answer.map_err(|error| undecodable(&error))
        };
        match self.post(handler, body, decode, |answer| answer.status().clone()).await {
            Ok(answer) => checked(&handler.name, answer),
            Err(Lost::Unanswered(why)) if handler.is_ignored => {
                if let Some(repeated) = self.0.said.line(&handler.name, &why, Instant::now()) {
                    tracing::warn!(
                        handler = %handler.name,
                        why,
                        repeated,
                        "no answer of an extension: ignored because of its failurePolicy"
                    );
                }
                Ok(H::Response::success())
            }
            Err(Lost::Busy(why) | Lost::Unanswered(why)) => Err(CallError::Unanswered { handler: name(), why }),
            Err(Lost::Unsendable(why)) => Err(CallError::Unusable { handler: name(), why }),
        }
    }

    /// Sends a request to a handler.
    async fn post<R>(
        &self,
        handler: &Handler,
        body: Vec<u8>,
        decode: impl FnOnce(&[u8]) -> Result<R, String>,
        status: impl FnOnce(&R) -> Status,
    ) -> Result<R, Lost> {
        let config = &handler.config.spec.client_config;
        let to = address::of(config, &handler.hook, handler.own_name(), handler.timeout_seconds)
            .map_err(Lost::Unsendable)?;
        let ca_bundle = config.ca_bundle.as_ref().map_or(&[][..], |ByteString(bytes)| bytes);
        let http = self.0.calls.pool(ca_bundle).map_err(Lost::Unsendable)?;
        let turns = self.turns(handler.config.metadata.name());
        // The semaphore is never closed.
        let Ok(_turn) = tokio::time::timeout(WAIT_FOR_TURN, turns.acquire()).await else {
            let why = format!("{AT_ONCE} other calls of the extension are not answered yet");
            return Err(Lost::Busy(why));
        };
        let began = Instant::now();
        let answered = call::post(&http, &to, body, handler.timeout()).await;
        let answer = answered.body.and_then(|body| decode(&body));
        let said = answer.as_ref().map_or(Status::Missing, status);
        self.0
            .counters
            .add(&handler.hook, &to, answered.code, &said, began.elapsed());
        answer.map_err(Lost::Unanswered)
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
        let decode = |body: &[u8]| DiscoveryResponse::decode(body).map_err(|error| undecodable(&error));
        let answer = self.post(&handler, body, decode, |answer| answer.status.clone()).await;
        let answer = answer.map_err(|lost| failed(lost.why()))?;
        if answer.status != Status::Success {
            let said = checked(name, answer).err();
            return Err(match said {
                Some(CallError::Failed { why, .. }) => failed(why),
                _ => failed("it has failed".to_owned()),
            });
        }
        discovery::handlers(name, &answer).map_err(|why| failed(beginning(&why).to_owned()))
    }
}

/// The handler of a hook that one extension may serve.
fn only<H: Hook>(handlers: &[Handler]) -> Result<Option<&Handler>, CallError> {
    match handlers {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        many => {
            let names: Vec<&str> = many.iter().map(Handler::name).collect();
            Err(CallError::Several {
                hook: H::NAME,
                // There may be any number of them.
                handlers: beginning(&names.join(",")).to_owned(),
            })
        }
    }
}

/// An answer that blocks, with what is left of its time.
fn with_time_left<R: Response>(mut answer: R, left: SignedDuration) -> R {
    // Rounded up: asked again a moment too early, nothing would have changed.
    let seconds = i32::try_from(left.as_secs()).unwrap_or(i32::MAX).saturating_add(1);
    answer.set_retry_after_seconds(seconds);
    answer
}

/// Why an answer cannot be read. The text repeats parts of the answer.
fn undecodable(error: &Undecodable) -> String {
    let text = error.to_string();
    format!("http call failed: failed to decode response: {}", beginning(&text))
}

impl Inner {
    /// The labels of a Namespace, or why they are not known. The API server is asked for one that the cache does not have: it may be new.
    async fn labels(&self, namespace: &str) -> Result<Labels, String> {
        let key = ObjectKey::cluster_scoped(namespace);
        let watch = || self.cx.part::<Namespace, Namespace>(&Selection::metadata(""));
        let cached = self.namespaces.get_or_init(watch).get(&key);
        if let Some(cached) = cached {
            return Ok(cached.metadata.labels.clone().unwrap_or_default());
        }
        let client = ApiClient::from(self.cx.client());
        let found = client.get::<Namespace>(&key).await.map_err(|error| error.to_string())?;
        let found = found.ok_or("it does not exist")?;
        Ok(found.metadata.labels.unwrap_or_default())
    }
}

/// A namespace, whose labels are looked up when an extension selects by them.
struct Place<'a> {
    extensions: &'a Inner,
    namespace: &'a str,
    labels: Option<Labels>,
}

impl<'a> Place<'a> {
    fn new(extensions: &'a Inner, namespace: &'a str) -> Self {
        Self {
            extensions,
            namespace,
            labels: None,
        }
    }

    /// Whether an extension is called for objects of the namespace.
    async fn is_selected_by(&mut self, config: &ExtensionConfig) -> Result<bool, CallError> {
        let unusable = |why: String| CallError::Unusable {
            handler: config.metadata.name().to_owned(),
            why,
        };
        let Some(selector) = handlers::namespaces(config).map_err(unusable)? else {
            return Ok(true);
        };
        if self.labels.is_none() {
            let namespace = self.namespace;
            let labels = self.extensions.labels(namespace).await.map_err(|why| {
                unusable(format!(
                    "failed to match namespace: failed to get namespace {namespace}: {why}"
                ))
            })?;
            self.labels = Some(labels);
        }
        Ok(selector.matches(self.labels.as_ref()))
    }
}
