//! Helm, played: releases are Secrets of the workload cluster as Helm stores them, and whatever can go wrong does on demand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use windlass_controller_runtime::{Metrics, transport};
use windlass_helm::release::{self, SECRET_TYPE};
use windlass_helm::{
    BoxFuture, Chart, ChartSource, Engine, Freshness, HelmError, Kind, Options, Release, Status, Summary, Target,
    values,
};

/// What goes wrong with an operation.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// It fails before it has written anything.
    Refused(Kind, &'static str),
    /// It fails, and what it stored says so.
    Failed(Kind, &'static str),
    /// It stores that it has begun, and goes on until it is ended.
    Hangs,
    /// The same, and when it is ended, it works on the release until it is let go.
    HangsOn(Arc<tokio::sync::Notify>),
}

/// What is played.
#[derive(Default)]
struct State {
    unusable: Option<String>,
    versions: BTreeMap<String, Vec<String>>,
    troubles: VecDeque<(&'static str, Trouble)>,
    lasting: BTreeMap<&'static str, Trouble>,
    calls: Vec<String>,
    asked: u64,
    sources: Vec<ChartSource>,
    silent: BTreeSet<String>,
    aliases: BTreeMap<String, String>,
}

/// Helm, played. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Fake(Arc<Mutex<State>>);

impl Fake {
    /// A repository with these versions of a chart.
    pub(crate) fn publish(&self, chart: &str, version: &str) {
        let mut state = self.0.lock();
        state
            .versions
            .entry(chart.to_owned())
            .or_default()
            .push(version.to_owned());
    }

    /// The repository never answers about a chart; its name is known.
    pub(crate) fn silence(&self, chart: &str) {
        self.0.lock().silent.insert(chart.to_owned());
    }

    /// The chart in an artifact has another name.
    pub(crate) fn alias(&self, artifact: &str, chart: &str) {
        self.0.lock().aliases.insert(artifact.to_owned(), chart.to_owned());
    }

    pub(crate) fn make_unusable(&self, why: Option<&str>) {
        self.0.lock().unusable = why.map(str::to_owned);
    }

    /// The next operation of this name goes wrong.
    pub(crate) fn next(&self, operation: &'static str, trouble: Trouble) {
        self.0.lock().troubles.push_back((operation, trouble));
    }

    /// All operations of this name go wrong from now on; or none.
    pub(crate) fn all(&self, operation: &'static str, trouble: Option<Trouble>) {
        let mut state = self.0.lock();
        match trouble {
            Some(trouble) => state.lasting.insert(operation, trouble),
            None => state.lasting.remove(operation),
        };
    }

    /// What was asked: `install default/web 1.0.0`.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.0.lock().calls.clone()
    }

    /// How often a repository was asked which versions it has.
    pub(crate) fn asked(&self) -> u64 {
        self.0.lock().asked
    }

    /// Where charts were looked for.
    pub(crate) fn sources(&self) -> Vec<ChartSource> {
        self.0.lock().sources.clone()
    }

    fn begin(&self, operation: &'static str, target: &Target, with: &str) -> Option<Trouble> {
        let mut state = self.0.lock();
        let call = format!("{operation} {}/{} {with}", target.namespace, target.release);
        state.calls.push(call.trim_end().to_owned());
        let next = state.troubles.iter().position(|(of, _)| *of == operation);
        let next = next.and_then(|position| state.troubles.remove(position));
        next.map(|(_, trouble)| trouble)
            .or_else(|| state.lasting.get(operation).cloned())
    }
}

/// The place of a release, and the way there.
pub(crate) struct Place {
    client: kube::Client,
    namespace: String,
    name: String,
}

/// What a revision is made of.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) revision: u32,
    pub(crate) status: Status,
    pub(crate) chart: String,
    pub(crate) version: String,
    pub(crate) values: Map<String, Value>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) since: Timestamp,
    pub(crate) description: String,
}

impl Stored {
    fn of(release: Release) -> Self {
        Self {
            revision: release.revision,
            status: release.status,
            chart: release.chart,
            version: release.chart_version,
            values: release.values,
            labels: release.labels,
            since: release.last_deployed.unwrap_or_default(),
            description: release.description,
        }
    }
}

impl Place {
    pub(crate) fn new(client: kube::Client, namespace: &str, name: &str) -> Self {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Self {
            client,
            namespace,
            name,
        }
    }

    async fn of(target: &Target) -> Self {
        let kubeconfig = Kubeconfig::from_yaml(target.kubeconfig.reveal()).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = transport::connect(&config.unwrap(), &Metrics::new()).unwrap();
        Self::new(client, &target.namespace, &target.release)
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The Secrets of the release, the newest last.
    pub(crate) async fn stored(&self) -> Vec<Secret> {
        let which = ListParams::default().labels(&release::selector(&self.name));
        let mut found = self.secrets().list(&which).await.unwrap().items;
        found.sort_by_key(|secret| release::of_name(secret.metadata.name.as_deref().unwrap()).unwrap().1);
        found
    }

    /// The newest revision.
    pub(crate) async fn newest(&self) -> Option<Stored> {
        let stored = self.stored().await;
        stored.last().map(|secret| Stored::of(release::decode(secret).unwrap()))
    }

    /// Stores a revision, new or changed.
    pub(crate) async fn store(&self, revision: &Stored) {
        let document = json!({
            "name": self.name, "namespace": self.namespace, "version": revision.revision,
            "info": {
                "status": revision.status.as_str(), "description": revision.description,
                "first_deployed": revision.since.to_string(), "last_deployed": revision.since.to_string(),
            },
            "chart": {"metadata": {"name": revision.chart, "version": revision.version}},
            "config": revision.values, "manifest": "---\n",
        });
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(document.to_string().as_bytes()).unwrap();
        let text = BASE64_STANDARD.encode(gzip.finish().unwrap());
        let mut labels = revision.labels.clone();
        for (key, value) in [
            ("name", self.name.clone()),
            ("owner", "helm".to_owned()),
            ("status", revision.status.as_str().to_owned()),
            ("version", revision.revision.to_string()),
        ] {
            labels.insert(key.to_owned(), value);
        }
        let name = release::secret_name(&self.name, revision.revision);
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            type_: Some(SECRET_TYPE.to_owned()),
            data: Some([("release".to_owned(), ByteString(text.into_bytes()))].into()),
            ..Secret::default()
        };
        let parameters = PatchParams::apply("helm").force();
        self.secrets()
            .patch(&name, &parameters, &Patch::Apply(secret))
            .await
            .unwrap();
    }

    /// Changes the status of what is deployed.
    async fn supersede(&self) {
        for secret in self.stored().await {
            let mut revision = Stored::of(release::decode(&secret).unwrap());
            if revision.status == Status::Deployed {
                revision.status = Status::Superseded;
                self.store(&revision).await;
            }
        }
    }

    pub(crate) async fn remove(&self) {
        for secret in self.stored().await {
            let name = secret.metadata.name.unwrap();
            self.secrets().delete(&name, &DeleteParams::default()).await.unwrap();
        }
    }

    pub(crate) async fn make_namespace(&self) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let metadata = ObjectMeta {
            name: Some(self.namespace.clone()),
            ..ObjectMeta::default()
        };
        let namespace = Namespace {
            metadata,
            ..Namespace::default()
        };
        // It may be there.
        let _ = namespaces.create(&PostParams::default(), &namespace).await;
    }
}

impl Fake {
    /// What an installation and an upgrade have in common: a pending revision, and then a deployed one.
    async fn deploy(
        &self,
        (operation, pending): (&'static str, Status),
        target: &Target,
        chart: &Chart,
        text: &str,
    ) -> Result<Summary, HelmError> {
        let trouble = self.begin(operation, target, &chart.version);
        if let Some(Trouble::Refused(kind, words)) = trouble {
            return Err(HelmError::new(kind, words));
        }
        let place = Place::of(target).await;
        let before = place.newest().await;
        match (&before, operation) {
            (Some(release), "install") if release.status != Status::Uninstalled => {
                return Err(HelmError::new(
                    Kind::NameInUse,
                    "cannot re-use a name that is still in use",
                ));
            }
            (Some(release), "upgrade") if release.status.is_pending() => {
                return Err(HelmError::new(Kind::Locked, "another operation is in progress"));
            }
            (None, "upgrade") => return Err(HelmError::new(Kind::ReleaseNotFound, "not found")),
            _ => {}
        }
        place.make_namespace().await;
        let mut labels = before.as_ref().map(|before| before.labels.clone()).unwrap_or_default();
        labels.extend(target.marker.labels.clone());
        let mut revision = Stored {
            revision: before.map_or(1, |before| before.revision + 1),
            status: pending,
            chart: chart.name.clone(),
            version: chart.version.clone(),
            values: values::parse(text).unwrap(),
            labels,
            since: Timestamp::now(),
            description: "underway".to_owned(),
        };
        place.store(&revision).await;
        match trouble {
            Some(Trouble::Hangs) => {
                target.stop.requested().await;
                return Err(HelmError::new(Kind::Cancelled, "it was ended"));
            }
            Some(Trouble::HangsOn(until)) => {
                target.stop.requested().await;
                until.notified().await;
                revision.status = Status::Failed;
                "it was ended".clone_into(&mut revision.description);
                place.store(&revision).await;
                return Err(HelmError::new(Kind::Cancelled, "it was ended"));
            }
            Some(Trouble::Failed(kind, words)) => {
                revision.status = Status::Failed;
                words.clone_into(&mut revision.description);
                place.store(&revision).await;
                return Err(HelmError::new(kind, words));
            }
            Some(Trouble::Refused(..)) | None => {}
        }
        place.supersede().await;
        revision.status = Status::Deployed;
        "complete".clone_into(&mut revision.description);
        place.store(&revision).await;
        Ok(Summary {
            revision: revision.revision,
            status: Status::Deployed,
            description: revision.description,
        })
    }

    async fn roll_back(&self, target: &Target, to: u32) -> Result<(), HelmError> {
        self.begin("rollback", target, &to.to_string());
        let place = Place::of(target).await;
        let stored = place.stored().await;
        let all = stored.iter().map(|secret| Stored::of(release::decode(secret).unwrap()));
        let all: Vec<_> = all.collect();
        let mut back = all.iter().find(|revision| revision.revision == to).unwrap().clone();
        place.supersede().await;
        back.revision = all.last().unwrap().revision + 1;
        back.status = Status::Deployed;
        back.since = Timestamp::now();
        place.store(&back).await;
        Ok(())
    }
}

impl Engine for Fake {
    fn unusable(&self) -> Option<String> {
        self.0.lock().unusable.clone()
    }

    fn chart<'a>(&'a self, source: &'a ChartSource, _: Freshness) -> BoxFuture<'a, Result<Chart, HelmError>> {
        Box::pin(async move {
            if self.0.lock().silent.contains(&source.chart) {
                std::future::pending::<()>().await;
            }
            let mut state = self.0.lock();
            if let Some(why) = &state.unusable {
                return Err(HelmError::new(Kind::NotInstalled, why));
            }
            state.sources.push(source.clone());
            let exact = source
                .version
                .as_deref()
                .filter(|version| version.split('.').count() == 3);
            if exact.is_none() {
                state.asked += 1;
            }
            let versions = state.versions.get(&source.chart).cloned().unwrap_or_default();
            let found = match exact {
                Some(exact) => versions.iter().find(|version| *version == exact),
                None => versions.last(),
            };
            let version =
                found.ok_or_else(|| HelmError::new(Kind::ChartNotFound, "the repository has no such chart"))?;
            Ok(Chart {
                name: state.aliases.get(&source.chart).unwrap_or(&source.chart).clone(),
                version: version.clone(),
                app_version: None,
                digest: String::new(),
                archive: PathBuf::new(),
            })
        })
    }

    fn install<'a>(
        &'a self,
        target: &'a Target,
        chart: &'a Chart,
        values: &'a str,
        _: &'a Options,
    ) -> BoxFuture<'a, Result<Summary, HelmError>> {
        Box::pin(self.deploy(("install", Status::PendingInstall), target, chart, values))
    }

    fn upgrade<'a>(
        &'a self,
        target: &'a Target,
        chart: &'a Chart,
        values: &'a str,
        _: &'a Options,
    ) -> BoxFuture<'a, Result<Summary, HelmError>> {
        Box::pin(self.deploy(("upgrade", Status::PendingUpgrade), target, chart, values))
    }

    fn rollback<'a>(
        &'a self,
        target: &'a Target,
        to_revision: u32,
        _: &'a Options,
    ) -> BoxFuture<'a, Result<(), HelmError>> {
        Box::pin(self.roll_back(target, to_revision))
    }

    fn uninstall<'a>(&'a self, target: &'a Target, _: &'a Options) -> BoxFuture<'a, Result<(), HelmError>> {
        Box::pin(async move {
            match self.begin("uninstall", target, "") {
                Some(Trouble::Refused(kind, words) | Trouble::Failed(kind, words)) => {
                    return Err(HelmError::new(kind, words));
                }
                Some(Trouble::Hangs | Trouble::HangsOn(_)) => std::future::pending().await,
                None => {}
            }
            Place::of(target).await.remove().await;
            Ok(())
        })
    }
}
