//! A copy of the management cluster in memory. Controllers read and write it as they would the original.
//!
//! The copy is an embedded API server without sockets. It has schemas, field managers and our admission, but not the webhooks of others. So the
//! first write to each object, and each dry run about an object that is as it was, is first asked of the original as a dry run: its answer, with
//! all defaults, is what the copy stores, and its refusal is a refusal. Later writes are about objects that the original does not have in that
//! state, so the copy answers them by itself.

mod path;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use windlass_apiserver::{ApiServer, Options, UserInfo};
use windlass_controller_runtime::{Cx, GroupKind, Metrics, ObjectKey, Runtime, transport};
use windlass_manager::registry::install;
use windlass_manager::{InProcess, OlderVersions};
use windlass_store::{Limits, Store};

use crate::error::PreviewError;
use crate::names::{Id, cluster_of, text};
use crate::state::State;
use crate::upstream::{Upstream, is_dry};
use path::Path;

/// A write that reached the copy.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// The object.
    pub(crate) id: Id,
    /// As it was.
    pub(crate) before: Option<Value>,
    /// As it is now.
    pub(crate) after: Option<Value>,
}

/// A write that was refused.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// The Cluster of the object; none if the object is of none.
    pub(crate) cluster: Option<ObjectKey>,
    /// The status of the answer.
    pub(crate) status: StatusCode,
    /// The server's words.
    pub(crate) why: String,
}

/// A copy of a management cluster.
pub(crate) struct Shadow {
    inner: Arc<Inner>,
    server: ApiServer,
    runtime: Runtime,
    cx: Cx,
}

struct Inner {
    server: ApiServer,
    copy: kube::Client,
    upstream: Option<Upstream>,
    /// Whether the original is asked about first writes.
    asks: AtomicBool,
    /// Objects that the copy has in another state than the original, or that only it has.
    touched: Mutex<HashSet<String>>,
    /// Namespaces that only the copy has.
    new_namespaces: Mutex<HashSet<String>>,
    log: Mutex<Vec<Written>>,
    refused: Mutex<Vec<Refused>>,
    /// The newest resourceVersion of each kind.
    newest: Mutex<HashMap<GroupKind, u64>>,
    /// The version of each kind that controllers read, by group and kind.
    versions: HashMap<(String, String), String>,
}

const CORE_GROUP: &str = "cluster.x-k8s.io";

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Shadow {
    /// Starts a copy with this state. `upstream` is the original, if there is one.
    pub(crate) async fn start(state: State, upstream: Option<Upstream>) -> Result<Self, PreviewError> {
        let mut options = Options::new(Store::memory(Limits::default()));
        options.admission.push(Arc::new(InProcess::default()));
        options.converter = Some(Arc::new(OlderVersions));
        options.collects_garbage = false;
        let server = ApiServer::start(options).await.map_err(failed)?;
        let user = UserInfo::admin("kubernetes-admin");
        let copy = transport::in_process(server.client_service(user), &Metrics::new());
        let inner = Arc::new(Inner {
            server: server.clone(),
            copy,
            upstream,
            asks: AtomicBool::new(true),
            touched: Mutex::default(),
            new_namespaces: Mutex::default(),
            log: Mutex::default(),
            refused: Mutex::default(),
            newest: Mutex::default(),
            versions: state.versions(),
        });
        inner.fill(state).await?;
        let runtime = Runtime::builder(inner.clone().client()).build();
        let cx = runtime.cx();
        Ok(Self {
            inner,
            server,
            runtime,
            cx,
        })
    }

    /// A client for controllers of the caller, which read and write the copy.
    pub(crate) fn client(&self) -> kube::Client {
        self.inner.clone().client()
    }

    /// How many writes have reached the copy since the log was taken.
    pub(crate) fn writes(&self) -> usize {
        self.inner.log.lock().len()
    }

    /// The ports of controllers on the copy.
    pub(crate) fn cx(&self) -> &Cx {
        &self.cx
    }

    /// Whether there is an original.
    pub(crate) fn has_original(&self) -> bool {
        self.inner.upstream.is_some()
    }

    /// From now on, the original is asked nothing more: what is planned now depends on what it does not have.
    pub(crate) fn leave_original(&self) {
        self.inner.asks.store(false, Ordering::SeqCst);
    }

    /// Stores an object as it is. Nothing of it is logged.
    pub(crate) async fn put(&self, object: Value) -> Result<(), PreviewError> {
        self.inner.import(object).await.map(drop)
    }

    /// Makes a Namespace that the copy does not have. What is in it is not asked of the original, which does not have it either.
    pub(crate) async fn make_namespace(&self, name: &str) -> Result<(), PreviewError> {
        if self.at(&format!("/api/v1/namespaces/{name}")).await.is_none() {
            self.inner.new_namespaces.lock().insert(name.to_owned());
            self.server.import(namespace(name)).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Removes an object, whatever its finalizers are.
    pub(crate) async fn remove(&self, object: &Value) -> Result<(), PreviewError> {
        let version = self.server.forget(object).await.map_err(failed)?;
        if let Some(version) = version {
            self.inner.saw(&Id::of(object), version);
        }
        Ok(())
    }

    /// Writes as a user does: the copy as it is, or the original by a dry run where it can answer. Gives the object, or the refusal.
    pub(crate) async fn write(
        &self,
        request: Request<Body>,
        asks_original: bool,
    ) -> Result<Result<Value, String>, PreviewError> {
        let answer = self.inner.write(request, asks_original).await;
        let answer = answer.map_err(|error| PreviewError::Copy(error.to_string()))?;
        let status = answer.status();
        let body = answer.into_body().collect_bytes().await;
        let body = body.map_err(|error| PreviewError::Copy(error.to_string()))?;
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() {
            return Ok(Ok(value));
        }
        let message = value["message"]
            .as_str()
            .map_or_else(|| status.to_string(), str::to_owned);
        Ok(Err(message))
    }

    /// Why an object of another version than the one of the copy cannot be part of a change.
    pub(crate) fn other_version(&self, object: &Value) -> Option<String> {
        let (group, version) = text(object, "/apiVersion").split_once('/')?;
        let place = (group.to_owned(), text(object, "/kind").to_owned());
        let read = self.inner.versions.get(&place).filter(|read| *read != version)?;
        Some(format!(
            "it has version {version}, and plans are made in {read}: objects are not converted; write it in {group}/{read}"
        ))
    }

    /// The URL of an object; none if its kind is not served.
    pub(crate) async fn url_of(&self, object: &Value) -> Option<String> {
        let gvk = windlass_controller_runtime::gvk_from(text(object, "/apiVersion"), text(object, "/kind"));
        let resource = self.cx.resource(&gvk).await;
        let resource = resource.found()?.clone();
        let group = if gvk.group.is_empty() {
            format!("/api/{}", gvk.version)
        } else {
            format!("/apis/{}/{}", gvk.group, gvk.version)
        };
        let (plural, name) = (&resource.plural, text(object, "/metadata/name"));
        Some(if resource.namespaced {
            format!(
                "{group}/namespaces/{}/{plural}/{name}",
                text(object, "/metadata/namespace")
            )
        } else {
            format!("{group}/{plural}/{name}")
        })
    }

    /// Ports for one reconcile.
    pub(crate) fn fresh(&self) -> Cx {
        self.runtime.cx()
    }

    /// An object of a kind of the core.
    pub(crate) async fn own(&self, kind: &str, key: &ObjectKey) -> Option<Value> {
        self.named(CORE_GROUP, kind, &key.namespace, &key.name).await
    }

    /// An object of any kind, in the version that controllers read.
    pub(crate) async fn named(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let version = self.inner.versions.get(&(group.to_owned(), kind.to_owned()))?;
        let identity = json!({
            "apiVersion": format!("{group}/{version}"), "kind": kind, "metadata": {"namespace": namespace, "name": name},
        });
        self.at(&self.url_of(&identity).await?).await
    }

    /// An object of the same kind with another name.
    pub(crate) async fn like(&self, object: Option<&Value>, name: &str) -> Option<Value> {
        let id = Id::of(object?);
        self.named(&id.group, &id.kind, &id.namespace, name).await
    }

    /// The object at a URL of the copy.
    pub(crate) async fn at(&self, url: &str) -> Option<Value> {
        self.inner.stored(url).await
    }

    /// What was written since the last call, in order.
    pub(crate) fn take_log(&self) -> Vec<Written> {
        std::mem::take(&mut *self.inner.log.lock())
    }

    /// What was refused since the last call.
    pub(crate) fn take_refused(&self) -> Vec<Refused> {
        std::mem::take(&mut *self.inner.refused.lock())
    }

    /// Waits until the caches have seen everything that was written.
    pub(crate) async fn caught_up(&self) -> Result<(), PreviewError> {
        let newest: Vec<_> = self.inner.newest.lock().drain().collect();
        for (kind, version) in newest {
            if !self.cx.has_caught_up(&kind, version).await {
                return Err(PreviewError::Copy(format!("the watch of {} is late", kind.kind)));
            }
        }
        Ok(())
    }

    /// Ends it.
    pub(crate) async fn stop(self) {
        self.runtime.shutdown().await;
        self.server.shutdown();
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: windlass_apiserver::ApiError) -> PreviewError {
    PreviewError::Copy(error.to_string())
}

impl Inner {
    async fn fill(&self, state: State) -> Result<(), PreviewError> {
        let (ready, others): (Vec<Value>, Vec<Value>) = state
            .definitions
            .into_iter()
            .partition(|one| one.pointer("/status/conditions").is_some());
        for definition in ready {
            self.server.import(definition).await.map_err(failed)?;
        }
        if !others.is_empty() {
            let installed = install::install(&self.copy, &others, install::Conversion::InProcess).await;
            installed.map_err(|error| PreviewError::Copy(error.to_string()))?;
        }
        let mut namespaces: Vec<&str> = state
            .objects
            .iter()
            .map(|one| text(one, "/metadata/namespace"))
            .collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        let known: HashSet<&str> = state
            .objects
            .iter()
            .filter(|one| text(one, "/kind") == "Namespace" && text(one, "/apiVersion") == "v1")
            .map(|one| text(one, "/metadata/name"))
            .collect();
        namespaces.retain(|name| !name.is_empty() && !known.contains(name));
        let (of_files, objects): (Vec<Value>, Vec<Value>) = state
            .objects
            .iter()
            .cloned()
            .partition(|one| text(one, "/kind") == "Namespace" && text(one, "/apiVersion") == "v1");
        for mut object in of_files {
            if text(&object, "/metadata/uid").is_empty() {
                let labels = object["metadata"]["labels"].clone();
                object = namespace(text(&object, "/metadata/name"));
                if let (Some(all), Some(more)) = (object["metadata"]["labels"].as_object_mut(), labels.as_object()) {
                    all.extend(more.clone());
                }
            }
            self.server.import(object).await.map_err(failed)?;
        }
        for name in namespaces {
            self.server.import(namespace(name)).await.map_err(failed)?;
        }
        let (known, fresh): (Vec<Value>, Vec<Value>) = objects
            .into_iter()
            .partition(|one| !text(one, "/metadata/uid").is_empty());
        for object in known {
            // Plans do not depend on objects of kinds that the copy does not have.
            if self.server.serves(&object) {
                self.import(object).await?;
            }
        }
        for object in in_order(fresh) {
            self.create(object).await?;
        }
        Ok(())
    }

    /// Creates an object of a file that never was on a server: with the defaults and checks of admission.
    async fn create(&self, object: Value) -> Result<(), PreviewError> {
        let id = Id::of(&object);
        let gvk = windlass_controller_runtime::gvk_from(text(&object, "/apiVersion"), text(&object, "/kind"));
        let kind = kube::core::GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
        let found = kube::discovery::pinned_kind(&self.copy, &kind).await;
        let Ok((resource, _)) = found else {
            // Objects that plans do not depend on.
            return Ok(());
        };
        let status = object.get("status").cloned();
        let api: kube::Api<kube::core::DynamicObject> = if id.namespace.is_empty() {
            kube::Api::all_with(self.copy.clone(), &resource)
        } else {
            kube::Api::namespaced_with(self.copy.clone(), &id.namespace, &resource)
        };
        let decoded = serde_json::from_value(object)
            .map_err(|error| PreviewError::Change(format!("{id}: it is no object: {error}")))?;
        let made = api.create(&kube::api::PostParams::default(), &decoded).await;
        let made = made.map_err(|error| match error {
            kube::Error::Api(status) => PreviewError::Change(format!("{id}: {}", status.message)),
            error => PreviewError::Copy(format!("{id}: {error}")),
        })?;
        let mut made = serde_json::to_value(made).unwrap_or_default();
        // Names are derived from uids: the same files give the same plan.
        made["metadata"]["uid"] = format!("{}/{}/{}/{}", id.group, id.kind, id.namespace, id.name).into();
        if let Some(status) = status {
            made["status"] = status;
        }
        self.import(made).await?;
        Ok(())
    }

    async fn import(&self, object: Value) -> Result<u64, PreviewError> {
        let id = Id::of(&object);
        let version = self.server.import(object).await.map_err(failed)?;
        self.saw(&id, version);
        Ok(version)
    }

    fn saw(&self, id: &Id, version: u64) {
        let mut newest = self.newest.lock();
        let known = newest.entry(id.group_kind()).or_default();
        *known = version.max(*known);
    }

    async fn stored(&self, path: &str) -> Option<Value> {
        let request = Request::get(path).body(Body::empty()).ok()?;
        let answer = self.copy.send(request).await.ok()?;
        if !answer.status().is_success() {
            return None;
        }
        serde_json::from_slice(&answer.into_body().collect_bytes().await.ok()?).ok()
    }

    fn client(self: Arc<Self>) -> kube::Client {
        let service = tower::service_fn(move |request| self.clone().route(request));
        transport::in_process(service, &Metrics::new())
    }

    async fn route(self: Arc<Self>, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        if request.method() == Method::GET {
            return Ok(self.copy.send(request).await?);
        }
        if is_dry(request.uri()) {
            let path = Path::of(request.uri().path());
            return Ok(match self.original_for(&path) {
                Some(original) => original.send(request).await?,
                None => self.copy.send(request).await?,
            });
        }
        self.write(request, true).await
    }

    /// The original, if it has an object as the copy has it, or neither has it.
    fn original_for(&self, path: &Path) -> Option<&Upstream> {
        let asks = self.asks.load(Ordering::SeqCst) && path.subresource.is_none() && path.group != "events.k8s.io";
        let upstream = self.upstream.as_ref().filter(|_| asks)?;
        if self.new_namespaces.lock().contains(&path.namespace) {
            return None;
        }
        (!self.touched.lock().contains(&path.key())).then_some(upstream)
    }

    async fn write(&self, request: Request<Body>, asks: bool) -> Result<Response<Body>, BoxError> {
        let path = Path::of(request.uri().path());
        if path.is_of_events() {
            return Ok(self.copy.send(request).await?);
        }
        let before = self.stored(request.uri().path()).await;
        let original = self.original_for(&path).filter(|_| asks).cloned();
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let again = |uri: Uri, body: Vec<u8>| -> Result<Request<Body>, BoxError> {
            let mut request = Request::builder()
                .method(parts.method.clone())
                .uri(uri)
                .body(Body::from(body))?;
            request.headers_mut().extend(parts.headers.clone());
            Ok(request)
        };
        if path.subresource.is_none() {
            self.touched.lock().insert(path.key());
        }
        let mut answer = None;
        if let Some(original) = original {
            let said = if parts.method == Method::DELETE {
                original.try_delete(parts.uri.path()).await?
            } else {
                original.send(again(dry(&parts.uri)?, without_version(&body))?).await?
            };
            let status = said.status();
            let said = said.into_body().collect_bytes().await?;
            if !status.is_success() {
                return Ok(self.refuse(cluster(before.as_ref(), &body), status, said.to_vec()));
            }
            if parts.method != Method::DELETE {
                let object: Value = serde_json::from_slice(&said)?;
                answer = Some(self.take_over(object, before.as_ref()).await?);
            }
        }
        let after = if let Some(object) = answer {
            object
        } else {
            let said = self.copy.send(again(parts.uri.clone(), body.to_vec())?).await?;
            let status = said.status();
            let said = said.into_body().collect_bytes().await?;
            if !status.is_success() {
                return Ok(self.refuse(cluster(before.as_ref(), &body), status, said.to_vec()));
            }
            serde_json::from_slice(&said)?
        };
        let is_gone = text(&after, "/kind") == "Status";
        let known = if is_gone { before.as_ref() } else { Some(&after) };
        if let Some(known) = known {
            let id = Id::of(known);
            let version = text(&after, "/metadata/resourceVersion").parse().unwrap_or_default();
            self.saw(&id, version);
            let after = (!is_gone).then(|| after.clone());
            self.log.lock().push(Written { id, before, after });
        }
        let mut answer = Response::new(Body::from(serde_json::to_vec(&after)?));
        let json = HeaderValue::from_static("application/json");
        answer.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok(answer)
    }

    /// Stores what the original would have. Its uid is the one that the copy has, as a dry run gives a new object another one each time.
    async fn take_over(&self, mut object: Value, before: Option<&Value>) -> Result<Value, BoxError> {
        if let Some(before) = before {
            object["metadata"]["uid"] = before["metadata"]["uid"].clone();
        }
        let version = self.import(object.clone()).await?;
        object["metadata"]["resourceVersion"] = version.to_string().into();
        Ok(object)
    }

    fn refuse(&self, cluster: Option<ObjectKey>, status: StatusCode, body: Vec<u8>) -> Response<Body> {
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        self.refused.lock().push(Refused {
            cluster,
            status,
            why: said["message"].as_str().unwrap_or("no reason is given").to_owned(),
        });
        let mut answer = Response::new(Body::from(body));
        *answer.status_mut() = status;
        answer
    }
}

/// The Cluster of an object that is written: as it is stored, or as it is to be.
fn cluster(before: Option<&Value>, body: &[u8]) -> Option<ObjectKey> {
    match before {
        Some(before) => cluster_of(before),
        None => cluster_of(&serde_json::from_slice(body).ok()?),
    }
}

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "uid": format!("namespace-{name}"), "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    })
}

/// What others refer to comes first.
pub(crate) fn in_order(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(|object| match text(object, "/kind") {
        "Namespace" => 0,
        kind if kind.ends_with("Template") => 1,
        "ClusterClass" => 2,
        "Cluster" => 3,
        _ => 4,
    });
    objects
}

/// The same request as a dry run.
fn dry(uri: &Uri) -> Result<Uri, BoxError> {
    let query = uri.query().map_or_else(String::new, |query| format!("{query}&"));
    Ok(format!("{}?{query}dryRun=All", uri.path()).parse()?)
}

/// The versions of the copy mean nothing to the original.
fn without_version(body: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(body) else {
        return body.to_vec();
    };
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    serde_json::to_vec(&value).unwrap_or_else(|_| body.to_vec())
}
