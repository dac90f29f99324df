//! The task of the built-in controllers: garbage collection, and the deletion of the contents of namespaces and definitions.
//! Changes of the store drive it; nothing is polled.

pub(crate) mod definitions;
mod jobs;
mod namespace;
mod owner_graph;
pub(crate) mod role_aggregation;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use windlass_store::{Change, Event, Expect, Key, OwnerLink, Record, Write};

use crate::controllers::owner_graph::{Action, Graph};
use crate::crds;
use crate::error::ApiError;
use crate::objects::convert::served;
use crate::objects::encoding::decode;
use crate::objects::resource::Resource;
use crate::objects::stored;
use crate::state::Inner;
use crate::verbs::call::Call;
use crate::verbs::delete::{DeleteOptions, Propagation};
use crate::verbs::mutation::Mutation;
use crate::verbs::options::WriteOptions;
use crate::verbs::read;
use windlass_objects::Part;
use windlass_objects::metadata::{finalizers, meta_value, seconds, text};
use windlass_rbac::user::UserInfo;

use self::jobs::{Done, Job, Jobs};

/// Concurrent deletions of one kind in one namespace.
const CONCURRENT: usize = 32;
/// Events are kept for this time after their last write.
const EVENT_TTL: Duration = Duration::from_hours(1);

/// The state of the task.
struct Work {
    graph: Graph,
    /// Namespaces being deleted.
    namespaces: BTreeSet<String>,
    /// Definitions being deleted.
    definitions: BTreeSet<String>,
    /// Namespaces being deleted, to process now.
    empty_namespaces: BTreeSet<String>,
    empty_definitions: BTreeSet<String>,
    /// Groups in which a definition was deleted, so that its names are free.
    freed_groups: BTreeSet<String>,
    /// Events in the order in which they expire: each once, however often it is written.
    expiring: BTreeSet<(Instant, Key)>,
    /// Expiry and revision of the events.
    events: HashMap<Key, (Instant, u64)>,
}

/// Starts the task.
pub(crate) fn start(server: &Arc<Inner>) {
    let mut feed = server.store.feed();
    let weak = Arc::downgrade(server);
    let mut work = Work::new(Graph::new(move |storage| {
        let server = weak.upgrade()?;
        let found = server.registry().find_storage(storage);
        found.map(|resource| resource.kind.clone())
    }));
    for resource in server.store.resources() {
        for record in stored::all(&server.store, &resource, None) {
            work.object(&record);
        }
    }
    let shutdown = server.shutdown.clone();
    let server = Arc::downgrade(server);
    tokio::spawn(async move {
        tokio::select! {
            () = run(&server, &mut feed, work) => {}
            () = shutdown.cancelled() => {}
        }
    });
}

async fn run(server: &Weak<Inner>, feed: &mut UnboundedReceiver<Arc<Event>>, mut work: Work) {
    let mut jobs = Jobs::default();
    loop {
        {
            let Some(server) = server.upgrade() else {
                return;
            };
            expire(&server, &mut work).await;
            for job in jobs.due(Instant::now()) {
                work.again(job);
            }
            work.decide(&mut jobs);
            jobs.start(|job| Box::pin(perform(Arc::clone(&server), job)));
        }
        let expires = work.expiring.first().map(|(at, _)| *at);
        let wakes = [expires, jobs.due_at()].into_iter().flatten().min();
        let mut done = tokio::select! {
            event = feed.recv() => match event {
                Some(event) => {
                    work.event(&event);
                    None
                }
                None => return,
            },
            Some(done) = jobs.next() => Some(done),
            () = sleep_until(wakes) => None,
        };
        while let Some(one) = done {
            if let Some(job) = jobs.finish(one, Instant::now()) {
                work.again(job);
            }
            done = jobs.ended();
        }
        while let Ok(event) = feed.try_recv() {
            work.event(&event);
        }
    }
}

/// Runs a job.
async fn perform(server: Arc<Inner>, job: Job) -> Done {
    let result = match &job {
        Job::Action(action) => carry_out(&server, action).await,
        Job::Namespace(name) => namespace::empty(&server, name).await,
        Job::Definition(name) => empty_definition(&server, name).await,
        Job::Names(group) => crate::controllers::definitions::settle_group(&server, group).await,
    };
    (job, result)
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Deletes expired events, unless they were written again.
async fn expire(server: &Arc<Inner>, work: &mut Work) {
    let now = Instant::now();
    while work.expiring.first().is_some_and(|(at, _)| *at <= now) {
        let Some((_, key)) = work.expiring.pop_first() else {
            return;
        };
        let Some((_, revision)) = work.events.remove(&key) else {
            continue;
        };
        let write = Write {
            key,
            expect: Expect::Revision(revision),
            change: Change::Delete(None),
        };
        // A conflict means that the event was written again and gets a later entry here.
        let _ = server.store.commit(vec![write]).await;
    }
}

impl Work {
    fn new(graph: Graph) -> Self {
        Self {
            graph,
            namespaces: BTreeSet::new(),
            definitions: BTreeSet::new(),
            empty_namespaces: BTreeSet::new(),
            empty_definitions: BTreeSet::new(),
            freed_groups: BTreeSet::new(),
            expiring: BTreeSet::new(),
            events: HashMap::new(),
        }
    }

    /// Schedules another look at the subject of a job.
    fn again(&mut self, job: Job) {
        match job {
            Job::Action(action) => self.graph.again(&action),
            Job::Namespace(name) => {
                self.empty_namespaces.insert(name);
            }
            Job::Definition(name) => {
                self.empty_definitions.insert(name);
            }
            Job::Names(group) => {
                self.freed_groups.insert(group);
            }
        }
    }

    /// Derives jobs from the changes so far.
    fn decide(&mut self, jobs: &mut Jobs) {
        let actions = self.graph.decide().into_iter().map(Job::Action);
        let namespaces = std::mem::take(&mut self.empty_namespaces);
        let definitions = std::mem::take(&mut self.empty_definitions);
        let groups = std::mem::take(&mut self.freed_groups);
        let others = namespaces.into_iter().map(Job::Namespace);
        let others = others.chain(groups.into_iter().map(Job::Names));
        for job in actions
            .chain(others)
            .chain(definitions.into_iter().map(Job::Definition))
        {
            jobs.push(job);
        }
    }

    fn object(&mut self, record: &Record) {
        self.graph.put(record);
        self.containers(record);
    }

    fn event(&mut self, event: &Event) {
        self.graph.observe(event);
        if !event.deleted {
            self.containers(&event.record);
            return;
        }
        let key = &event.record.key;
        match key.resource.as_ref() {
            "namespaces" => {
                self.namespaces.remove(key.name());
            }
            crds::STORAGE => {
                self.definitions.remove(key.name());
                if let Some((_, group)) = key.name().split_once('.') {
                    self.freed_groups.insert(group.to_owned());
                }
            }
            resource => {
                if let Some((at, _)) = self.events.remove(key) {
                    self.expiring.remove(&(at, key.clone()));
                }
                if self.namespaces.contains(key.namespace()) {
                    self.empty_namespaces.insert(key.namespace().to_owned());
                }
                if self.definitions.contains(resource) {
                    self.empty_definitions.insert(resource.to_owned());
                }
            }
        }
    }

    fn containers(&mut self, record: &Record) {
        if record.key.resource.as_ref() == "events" {
            let at = Instant::now() + EVENT_TTL;
            let before = self.events.insert(record.key.clone(), (at, record.revision));
            if let Some((before, _)) = before {
                self.expiring.remove(&(before, record.key.clone()));
            }
            self.expiring.insert((at, record.key.clone()));
        }
        if !record.header.deleting {
            return;
        }
        let name = record.key.name();
        match record.key.resource.as_ref() {
            "namespaces" if self.namespaces.insert(name.to_owned()) => {
                self.empty_namespaces.insert(name.to_owned());
            }
            crds::STORAGE if self.definitions.insert(name.to_owned()) => {
                self.empty_definitions.insert(name.to_owned());
            }
            _ => {}
        }
    }
}

/// Performs writes as the controller that does them in Kubernetes.
struct Internal<'a> {
    server: &'a Arc<Inner>,
    user: UserInfo,
    options: WriteOptions,
}

impl<'a> Internal<'a> {
    fn new(server: &'a Arc<Inner>, who: &str) -> Self {
        Self {
            server,
            user: UserInfo::account("kube-system", who),
            options: WriteOptions::default(),
        }
    }

    fn call<'b>(&'b self, resource: &'b Arc<Resource>, namespace: &'b str) -> Call<'b> {
        Call {
            server: self.server,
            resource,
            namespace,
            user: &self.user,
            options: &self.options,
            manager: "kube-controller-manager".to_owned(),
        }
    }
}

async fn carry_out(server: &Arc<Inner>, action: &Action) -> Result<(), ApiError> {
    let (Action::Delete { key, uid, .. } | Action::Disown { key, uid, .. } | Action::Release { key, uid, .. }) = action;
    let Some(resource) = server.registry().find_storage(&key.resource) else {
        return Ok(());
    };
    let internal = Internal::new(server, "generic-garbage-collector");
    let call = internal.call(&resource, key.namespace());
    let record = read::find_served(server, &resource, key.namespace(), key.name()).await?;
    if record.header.uid.as_ref() != uid.as_ref() {
        return Ok(());
    }
    let object = served(&resource, &record)?;
    match action {
        Action::Delete { unseen, .. } | Action::Disown { unseen, .. }
            if !unseen.is_empty() && !resolvable(server, &resource, &object, unseen) =>
        {
            tracing::debug!(key = ?record.key, "has an owner of a kind that is not served, and is left alone");
            Ok(())
        }
        // The object has another owner now, or no owner any more: that change schedules it again.
        Action::Delete { owners, .. } if !are_gone(&record.header.owners, owners) => Ok(()),
        Action::Delete { unblock: true, .. } => {
            let mut owners = meta_value(&object, "ownerReferences").cloned().unwrap_or_default();
            for owner in owners.as_array_mut().into_iter().flatten() {
                if owner.get("blockOwnerDeletion") == Some(&Value::Bool(true)) {
                    owner["blockOwnerDeletion"] = false.into();
                }
            }
            let owners = owners.as_array().cloned().unwrap_or_default();
            patch(&call, &record, "ownerReferences", owners).await
        }
        Action::Delete { foreground, .. } => {
            let propagation = if finalizers(&object).contains(&crate::verbs::delete::ORPHAN) {
                Propagation::Orphan
            } else if *foreground || finalizers(&object).contains(&crate::verbs::delete::FOREGROUND) {
                Propagation::Foreground
            } else {
                Propagation::Background
            };
            let options = DeleteOptions {
                uid: Some(uid.to_string()),
                revision: Some(record.revision.to_string()),
                propagation: Some(propagation),
                ..DeleteOptions::default()
            };
            call.delete(key.name(), &options).await.map(|_| ())
        }
        Action::Disown { owners, .. } => {
            let gone: HashSet<&str> = owners.iter().map(AsRef::as_ref).collect();
            let left: Vec<Value> = meta_value(&object, "ownerReferences")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter(|o| !gone.contains(text(o, "uid")))
                .cloned()
                .collect();
            patch(&call, &record, "ownerReferences", left).await
        }
        Action::Release { finalizer, .. } => {
            let left: Vec<Value> = finalizers(&object)
                .into_iter()
                .filter(|f| f != finalizer)
                .map(Into::into)
                .collect();
            patch(&call, &record, "finalizers", left).await
        }
    }
}

/// Whether an object has owners, and all of them are gone. Another writer may have added some.
fn are_gone(owners: &[OwnerLink], gone: &[Arc<str>]) -> bool {
    let gone: HashSet<&str> = gone.iter().map(AsRef::as_ref).collect();
    !owners.is_empty() && owners.iter().all(|owner| gone.contains(&*owner.uid))
}

/// Whether missing owners that were never seen count as deleted. Their kinds must be served here, and they must be able to own
/// the object.
fn resolvable(server: &Inner, resource: &Resource, object: &Value, unseen: &[Arc<str>]) -> bool {
    let registry = server.registry();
    let unseen: HashSet<&str> = unseen.iter().map(AsRef::as_ref).collect();
    let kinds: HashSet<(&str, &str)> = meta_value(object, "ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|o| unseen.contains(text(o, "uid")))
        .map(|o| (text(o, "kind"), text(o, "apiVersion")))
        .collect();
    let mut may_own = HashMap::new();
    for owner in registry.everything() {
        if let Some(kind) = kinds.get(&(owner.kind.as_str(), owner.api_version())) {
            may_own.entry(*kind).or_insert(resource.namespaced || !owner.namespaced);
        }
    }
    kinds.iter().all(|kind| may_own.get(kind) == Some(&true))
}

async fn patch(call: &Call<'_>, record: &Record, field: &str, left: Vec<Value>) -> Result<(), ApiError> {
    let mut metadata = json!({"resourceVersion": record.revision.to_string()});
    metadata[field] = if left.is_empty() { Value::Null } else { left.into() };
    let mutation = Mutation::Merge(json!({"metadata": metadata}), Vec::new());
    call.change(record.key.name(), &mutation, Part::Main).await.map(|_| ())
}

/// Deletes the objects of a definition that is being deleted, and then the definition.
async fn empty_definition(server: &Arc<Inner>, name: &str) -> Result<(), ApiError> {
    let Some(record) = server.store.get(crds::STORAGE, "", name) else {
        return Ok(());
    };
    let definition = decode(&record)?;
    if !finalizers(&definition).contains(&crds::FINALIZER) {
        return Ok(());
    }
    let stage = |stage| {
        let mut next = definition.clone();
        crds::set_terminating(&mut next, stage, &seconds(server.now()));
        next.get("status").cloned().unwrap_or(Value::Null)
    };
    let internal = Internal::new(server, "customresource-controller");
    let items = stored::all(&server.store, name, None);
    let left = items.len();
    if left > 0 {
        crate::controllers::definitions::write_status(server, name, stage(crds::Deletion::InProgress)).await?;
    }
    delete_all(&internal, name, items).await?;
    let Some(record) = server.store.get(crds::STORAGE, "", name) else {
        return Ok(());
    };
    let Some(resource) = server.registry().find_storage(crds::STORAGE) else {
        return Ok(());
    };
    if left > 0 && server.store.count(name) > 0 {
        return Ok(());
    }
    let rest: Vec<Value> = finalizers(&decode(&record)?)
        .into_iter()
        .filter(|f| *f != crds::FINALIZER)
        .map(Into::into)
        .collect();
    let last = if crds::is_established(&definition) {
        crds::Deletion::Completed
    } else {
        crds::Deletion::NeverEstablished
    };
    let mutation = Mutation::Merge(
        json!({
            "metadata": {"resourceVersion": record.revision.to_string(), "finalizers": rest},
            "status": stage(last),
        }),
        Vec::new(),
    );
    let mut call = internal.call(&resource, "");
    "kube-apiserver".clone_into(&mut call.manager);
    call.change(name, &mutation, Part::Status).await.map(|_| ())
}

async fn delete_all(internal: &Internal<'_>, storage: &str, items: Vec<Arc<Record>>) -> Result<(), ApiError> {
    let Some(resource) = internal.server.registry().find_storage(storage) else {
        return Ok(());
    };
    let resource = &resource;
    let results: Vec<Result<(), ApiError>> = futures::stream::iter(items)
        .filter(|r| std::future::ready(!r.header.deleting))
        .map(|record| async move {
            let call = internal.call(resource, record.key.namespace());
            let options = DeleteOptions {
                propagation: Some(Propagation::Background),
                ..DeleteOptions::default()
            };
            match call.delete(record.key.name(), &options).await {
                Err(error) if error.code != 404 => Err(error),
                _ => Ok(()),
            }
        })
        .buffer_unordered(CONCURRENT)
        .collect()
        .await;
    results.into_iter().collect()
}
