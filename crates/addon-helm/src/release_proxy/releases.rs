//! The releases on workload clusters: one watch of their metadata for each cluster that has HelmReleaseProxies, and the contents of those that
//! HelmReleaseProxies name.
//!
//! Helm stores a release in a Secret for each revision. The watch carries names and labels only. The contents of a Secret are read once after
//! each change. A fleet at rest causes no requests.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use windlass_cluster_cache::RemoteCluster;
use windlass_controller_runtime::{ApiClient, Cache, Codec, Cx, ListQuery, ObjectKey, Seen, Stored, Tasks, gvk_of};
use windlass_helm::{MARK, Status, release};

use super::digest::Digest;
use super::observed::{Depth, Release};
use super::operations::Place;

/// How long an answer of a workload cluster may take.
const ANSWER: Duration = Duration::from_secs(10);
/// The labels of Helm's Secrets that are read.
const LABELS: [&str; 4] = ["name", "version", "status", MARK];
/// Index of Secrets by the release that they are of.
const BY_RELEASE: &str = "release";
/// Index of Secrets by the owner that their release names.
const BY_OWNER: &str = "owner";

/// The metadata of a Secret that are kept: its name and labels.
#[derive(Clone, Debug)]
pub(super) struct Trace(ObjectMeta);

impl Stored for Trace {
    fn metadata(&self) -> &ObjectMeta {
        &self.0
    }

    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&json!({ "metadata": self.0 }))
    }
}

impl Codec for Trace {
    fn decode(json: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Whole {
            metadata: ObjectMeta,
        }
        Ok(Self::of(serde_json::from_slice::<Whole>(json)?.metadata))
    }
}

impl Trace {
    fn of(meta: ObjectMeta) -> Self {
        let mut labels = meta.labels.unwrap_or_default();
        labels.retain(|key, _| LABELS.contains(&key.as_str()));
        Self(ObjectMeta {
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
            labels: Some(labels),
            ..ObjectMeta::default()
        })
    }

    fn label(&self, key: &str) -> &str {
        let found = self.0.labels.as_ref().and_then(|labels| labels.get(key));
        found.map(String::as_str).unwrap_or_default()
    }

    /// The release and the revision that it is of.
    fn revision(&self) -> Option<(&str, u32)> {
        release::of_name(self.0.name.as_deref()?)
    }

    fn namespace(&self) -> &str {
        self.0.namespace.as_deref().unwrap_or_default()
    }

    fn is_of(&self, place: &Place) -> bool {
        let named = self.revision().is_some_and(|(name, _)| name == place.name);
        named && self.namespace() == place.namespace
    }
}

fn index(trace: &Trace) -> Vec<String> {
    let found = trace.revision();
    found
        .map(|(name, _)| value(trace.namespace(), name))
        .into_iter()
        .collect()
}

fn value(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// The contents of a release, with the version of the Secret that they were read from.
struct Known {
    secret: String,
    version: String,
    depth: Depth,
    release: Release,
}

/// The releases on one cluster, for as long as a connection lasts.
struct Watched {
    connection: Weak<RemoteCluster>,
    cache: Cache<Trace>,
    tasks: Tasks,
    users: HashSet<ObjectKey>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

/// Wakes the objects of a release that has changed.
pub(super) type UserWaker = Arc<dyn Fn(&Place) + Send + Sync>;

/// The releases on all clusters.
#[derive(Default)]
pub(super) struct Releases {
    watched: Mutex<HashMap<ObjectKey, Watched>>,
    known: Mutex<HashMap<Place, Known>>,
}

impl Releases {
    /// A release as the watch of its cluster shows it. `waker` is called with every change from now on.
    pub(super) async fn look(
        &self,
        cx: &Cx,
        connection: &Arc<RemoteCluster>,
        (user, waker): (&ObjectKey, &UserWaker),
        place: &Place,
        depth: Depth,
    ) -> Seen<Arc<Release>> {
        let cache = match self.synced(cx, connection, user, waker).await {
            Ok(cache) => cache,
            Err(why) => return Seen::Failed(why),
        };
        let traces = cache.by_index(BY_RELEASE, &value(&place.namespace, &place.name));
        self.read(connection, place, &traces, depth).await
    }

    /// The name of a release in a namespace whose label names this owner, unless it is uninstalled.
    pub(super) async fn owned(
        &self,
        cx: &Cx,
        connection: &Arc<RemoteCluster>,
        (user, waker): (&ObjectKey, &UserWaker),
        namespace: &str,
        owner: &str,
    ) -> Seen<String> {
        let cache = match self.synced(cx, connection, user, waker).await {
            Ok(cache) => cache,
            Err(why) => return Seen::Failed(why),
        };
        let mut newest: BTreeMap<String, (u32, bool)> = BTreeMap::new();
        for trace in cache.by_index(BY_OWNER, &value(namespace, owner)) {
            let Some((name, revision)) = trace.revision() else {
                continue;
            };
            let is_there = Status::read(trace.label("status")) != Status::Uninstalled;
            let known = newest.entry(name.to_owned()).or_default();
            *known = (*known).max((revision, is_there));
        }
        let mut there = newest.into_iter().filter(|(_, (_, is_there))| *is_there);
        there.next().map(|(name, _)| name).into()
    }

    /// The cache of the releases on a cluster, after its first list.
    async fn synced(
        &self,
        cx: &Cx,
        connection: &Arc<RemoteCluster>,
        user: &ObjectKey,
        waker: &UserWaker,
    ) -> Result<Cache<Trace>, String> {
        let cache = self.watch(cx, connection, user, waker);
        let synced = tokio::time::timeout(ANSWER, cache.synced()).await;
        synced.map_err(|_| "the list of releases does not come: no answer in time".to_owned())?;
        Ok(cache)
    }

    /// A release as its cluster answers now.
    pub(super) async fn ask(&self, connection: &RemoteCluster, place: &Place, depth: Depth) -> Seen<Arc<Release>> {
        let client = ApiClient::from(connection.client());
        let which = ListQuery {
            namespace: &place.namespace,
            labels: &release::selector(&place.name),
            metadata_only: true,
            ..ListQuery::default()
        };
        let listed = match tokio::time::timeout(ANSWER, client.list_as::<Secret, Trace>(which)).await {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => return Seen::Failed(format!("the release cannot be looked for: {error}")),
            Err(_) => return Seen::Failed("the release cannot be looked for: no answer in time".to_owned()),
        };
        let traces = listed.into_iter().map(Arc::new);
        let traces: Vec<_> = traces.filter(|trace| trace.is_of(place)).collect();
        self.read(connection, place, &traces, depth).await
    }

    /// Drops the interest of an object. The watch of a cluster ends with the last one.
    pub(super) fn forget(&self, user: &ObjectKey, place: Option<&Place>) {
        let mut watched = self.watched.lock();
        watched.retain(|_, watched| {
            watched.users.remove(user);
            !watched.users.is_empty()
        });
        if let Some(place) = place {
            self.known.lock().remove(place);
        }
    }

    /// Ends the watch of a cluster that is no longer connected.
    pub(super) fn close(&self, cluster: &ObjectKey) {
        self.watched.lock().remove(cluster);
    }

    /// The watch of a cluster. It begins with the first object that uses the connection.
    fn watch(&self, cx: &Cx, connection: &Arc<RemoteCluster>, user: &ObjectKey, waker: &UserWaker) -> Cache<Trace> {
        let cluster = connection.cluster();
        let mut all = self.watched.lock();
        if let Some(watched) = all.get_mut(cluster)
            && watched.connection.as_ptr() == Arc::as_ptr(connection)
        {
            watched.users.insert(user.clone());
            return watched.cache.clone();
        }
        let tasks = cx.tasks().child();
        let client = connection.client().clone();
        let gvk = gvk_of::<Secret>();
        let cache = Cache::<Trace>::stand_alone_metadata(client, "/api/v1/secrets", gvk, "owner=helm", &tasks);
        cache.add_index(BY_RELEASE, index);
        cache.add_index(BY_OWNER, |trace| match trace.label(MARK) {
            "" => Vec::new(),
            owner => vec![value(trace.namespace(), owner)],
        });
        // Objects that used the old connection use this one.
        let mut users = all
            .get_mut(cluster)
            .map(|old| std::mem::take(&mut old.users))
            .unwrap_or_default();
        users.insert(user.clone());
        let watched = Watched {
            connection: Arc::downgrade(connection),
            cache: cache.clone(),
            tasks,
            users,
        };
        all.insert(cluster.clone(), watched);
        drop(all);
        let (cluster, waker) = (cluster.clone(), waker.clone());
        cache.subscribe(move |change| {
            let Some((trace, (name, _))) = change.object().and_then(|trace| Some((trace, trace.revision()?))) else {
                return;
            };
            waker(&Place {
                cluster: cluster.clone(),
                namespace: trace.namespace().to_owned(),
                name: name.to_owned(),
            });
        });
        cache
    }

    async fn read(
        &self,
        connection: &RemoteCluster,
        place: &Place,
        traces: &[Arc<Trace>],
        depth: Depth,
    ) -> Seen<Arc<Release>> {
        let revision = |trace: &Trace| trace.revision().map_or(0, |(_, revision)| revision);
        let mut revisions: Vec<_> = traces
            .iter()
            .map(|trace| (revision(trace), Status::read(trace.label("status"))))
            .collect();
        revisions.sort_unstable_by_key(|(revision, _)| *revision);
        let Some(newest) = traces.iter().max_by_key(|trace| revision(trace)) else {
            self.known.lock().remove(place);
            return Seen::NotFound;
        };
        let owner = Some(newest.label(MARK))
            .filter(|owner| !owner.is_empty())
            .map(str::to_owned);
        if depth == Depth::Labels {
            return Seen::Found(Arc::new(Release {
                revision: revision(newest),
                status: Status::read(newest.label("status")),
                owner,
                revisions,
                ..Release::default()
            }));
        }
        let contents = match self.known(place, newest, depth) {
            Some(release) => release,
            None => match self.contents(connection, place, newest, depth).await {
                Ok(release) => release,
                Err(why) => return Seen::Failed(why),
            },
        };
        Seen::Found(Arc::new(Release {
            owner,
            revisions,
            ..contents
        }))
    }

    /// The contents that were read before, if the Secret has not changed since.
    fn known(&self, place: &Place, newest: &Trace, depth: Depth) -> Option<Release> {
        let known = self.known.lock();
        let known = known.get(place)?;
        let is_same = newest.0.name.as_deref() == Some(&known.secret)
            && newest.0.resource_version.as_deref() == Some(&known.version);
        let is_enough = depth != Depth::Values || known.depth == Depth::Values;
        (is_same && is_enough).then(|| known.release.clone())
    }

    async fn contents(
        &self,
        connection: &RemoteCluster,
        place: &Place,
        newest: &Trace,
        depth: Depth,
    ) -> Result<Release, String> {
        let name = newest.0.name.as_deref().unwrap_or_default();
        let failed = |why: &dyn std::fmt::Display| format!("Secret {}/{name} cannot be read: {why}", place.namespace);
        let (client, key) = (
            ApiClient::from(connection.client()),
            ObjectKey::new(place.namespace.as_str(), name),
        );
        let secret = match tokio::time::timeout(ANSWER, client.get::<Secret>(&key)).await {
            Ok(Ok(Some(secret))) => secret,
            Ok(Ok(None)) => return Err(failed(&"it is gone")),
            Ok(Err(error)) => return Err(failed(&error)),
            Err(_) => return Err(failed(&"no answer in time")),
        };
        let stored = release::decode(&secret).map_err(|error| failed(&error))?;
        let release = Release {
            revision: stored.revision,
            status: stored.status,
            description: stored.description,
            chart: stored.chart,
            version: stored.chart_version,
            values: Digest::of_values(&stored.values),
            data: (depth == Depth::Values).then(|| Arc::new(stored.values)),
            since: stored.last_deployed,
            owner: None,
            revisions: Vec::new(),
        };
        let known = Known {
            secret: name.to_owned(),
            version: secret.metadata.resource_version.unwrap_or_default(),
            depth,
            release: release.clone(),
        };
        self.known.lock().insert(place.clone(), known);
        Ok(release)
    }
}
