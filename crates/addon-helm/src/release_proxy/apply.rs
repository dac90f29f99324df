//! Carries out the plan of a HelmReleaseProxy. The only file of this controller that writes.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use windlass_api_ext::addons::{HelmReleaseProxy, annotations, finalizers};
use windlass_controller_runtime::{Cx, EventType, ReconcileError, WriteError, key_of};
use windlass_helm::{ChartSource, Engine, HelmError, Kind, Marker, Options, Secret, Stop, Target};

use super::fetches::Fetches;
use super::observed::{Observed, Operation};
use super::operations::{Place, Ticket};
use super::plan::{Action, Plan, Start};
use super::ports::HelmReleases;
use super::status::Done;
use super::{facts, index};
use crate::names::managers::RELEASE_PROXY;

/// Carries out the actions, up to the first failure.
pub(super) async fn apply(cx: &Cx, helm: &HelmReleases, seen: &Observed, plan: &Plan) -> Done {
    for action in &plan.actions {
        if let Err(error) = carry_out(cx, helm, seen, action).await {
            return Done { failed: Some(error) };
        }
    }
    Done::default()
}

async fn carry_out(cx: &Cx, helm: &HelmReleases, seen: &Observed, action: &Action) -> Result<(), ReconcileError> {
    let proxy = &seen.proxy;
    let key = key_of(&proxy.metadata);
    match action {
        Action::Follow(source) => {
            let charts = &helm.0.charts;
            charts.follow(cx.tasks(), &key, source, &seen.version, &helm.waker());
        }
        Action::Unfollow => helm.0.charts.forget(&key),
        Action::StoreName(chart) => {
            let second = helm.0.operations.second(&index::cluster_of(proxy), cx.now());
            store_name(cx, proxy, &facts::generated_name(chart, second)).await?;
        }
        Action::TakeName(name) => store_name(cx, proxy, name).await?,
        Action::RecordCluster => annotate(cx, proxy, &[]).await?,
        Action::RecordInstallation => annotate(cx, proxy, &[annotations::RELEASE_SUCCESSFULLY_INSTALLED]).await?,
        Action::Start(start) => begin(cx, helm, seen, start).await?,
        Action::Stop => helm.0.operations.stop(&key),
        Action::RemoveFinalizer(_) => {
            let writer = cx.writer();
            writer
                .remove_finalizer(RELEASE_PROXY, &**proxy, finalizers::HELM_RELEASE_PROXY)
                .await?;
            helm.forget(proxy);
        }
    }
    Ok(())
}

/// Stores a generated name in the object, unless the object has changed meanwhile.
async fn store_name(cx: &Cx, proxy: &HelmReleaseProxy, name: &str) -> Result<(), WriteError> {
    let patch = json!({
        "metadata": {
            "uid": proxy.metadata.uid,
            "resourceVersion": proxy.metadata.resource_version,
            "annotations": {
                (annotations::IS_RELEASE_NAME_GENERATED): "true",
                (annotations::CLUSTER_SEEN): proxy.metadata.uid,
            },
        },
        "spec": { "releaseName": name },
    });
    write(cx, proxy, &patch).await
}

/// Sets annotations with the value `true`, and records that the Cluster exists.
async fn annotate(cx: &Cx, proxy: &HelmReleaseProxy, keys: &[&str]) -> Result<(), WriteError> {
    let uid = &proxy.metadata.uid;
    let mut patch = json!({ "metadata": { "uid": uid, "annotations": { (annotations::CLUSTER_SEEN): uid } } });
    for key in keys {
        patch["metadata"]["annotations"][*key] = "true".into();
    }
    write(cx, proxy, &patch).await
}

async fn write(cx: &Cx, proxy: &HelmReleaseProxy, patch: &Value) -> Result<(), WriteError> {
    let key = key_of(&proxy.metadata);
    let written = cx
        .writer()
        .merge_patch::<HelmReleaseProxy>(RELEASE_PROXY, &key, patch)
        .await;
    written.map(drop)
}

/// An operation with everything that Helm needs for it.
struct Job {
    engine: Arc<dyn Engine>,
    fetches: Arc<Fetches>,
    operation: Operation,
    target: Target,
    source: Option<ChartSource>,
    values: String,
    options: Options,
}

/// Begins an operation, which goes on when this returns.
async fn begin(cx: &Cx, helm: &HelmReleases, seen: &Observed, start: &Start) -> Result<(), ReconcileError> {
    let proxy = &seen.proxy;
    let job = job(helm, seen, start).await?;
    let place = index::place_of(proxy).ok_or_else(|| unready("the release has no name"))?;
    let (operations, key) = (&helm.0.operations, key_of(&proxy.metadata));
    // Without a ticket another object has begun an operation on the release. Its end wakes this object.
    let Some(ticket) = operations.begin(&key, &place, start.operation, start.desired, cx.now()) else {
        return Ok(());
    };
    // An operation that has written nothing wakes no object through a watch.
    let (waking, users) = (helm.clone(), place.clone());
    let ticket = ticket.waking(move || {
        waking.wake(key);
        waking.wake_users(&users);
    });
    let work = Work {
        cx: cx.clone(),
        helm: helm.clone(),
        proxy: proxy.clone(),
        place,
    };
    cx.tasks().spawn("helm", async move { work.run(job, ticket).await });
    Ok(())
}

fn unready(why: &str) -> ReconcileError {
    ReconcileError::new("Helm", why)
}

async fn job(helm: &HelmReleases, seen: &Observed, start: &Start) -> Result<Job, ReconcileError> {
    let spec = &seen.proxy.spec;
    let connection = seen
        .connection
        .as_ref()
        .ok_or_else(|| unready("there is no connection"))?;
    let kubeconfig = connection.kubeconfig().await;
    let kubeconfig = kubeconfig.map_err(|error| ReconcileError::new("Kubeconfig", error.to_string()))?;
    let kubeconfig = String::from_utf8(kubeconfig).map_err(|_| unready("the kubeconfig is not text"))?;
    Ok(Job {
        engine: helm.0.engine.clone(),
        fetches: helm.0.fetches.clone(),
        operation: start.operation,
        target: Target {
            kubeconfig: Secret::new(kubeconfig),
            namespace: spec.release_namespace().to_owned(),
            release: spec.release_name().unwrap_or_default().to_owned(),
            marker: Marker::owner(&seen.owner),
            stop: Stop::default(),
        },
        source: start.source.clone(),
        values: spec.values.clone().unwrap_or_default(),
        options: start.options.clone(),
    })
}

impl Job {
    /// Runs Helm. The result of an installation or upgrade is the new revision. The chart is fetched before the operation takes a turn:
    /// a repository that does not answer keeps no turn from operations with other charts.
    async fn run(&self, turns: &Semaphore) -> Result<Option<u32>, HelmError> {
        let (engine, target, options) = (&self.engine, &self.target, &self.options);
        let chart = match self.operation {
            Operation::Rollback { .. } | Operation::Uninstall { .. } => None,
            Operation::Install { .. } | Operation::Upgrade => {
                let source = self.source.as_ref();
                let source = source.ok_or_else(no_chart)?;
                Some(self.unless_stopped(self.fetches.chart(source)).await??)
            }
        };
        // The semaphore is never closed.
        let _turn = self.unless_stopped(turns.acquire()).await?;
        match self.operation {
            Operation::Rollback { to } => engine.rollback(target, to, options).await.map(|()| None),
            Operation::Uninstall { .. } => engine.uninstall(target, options).await.map(|()| None),
            Operation::Install { .. } | Operation::Upgrade => {
                let chart = chart.as_ref().ok_or_else(no_chart)?;
                let summary = if self.operation == Operation::Upgrade {
                    engine.upgrade(target, chart, &self.values, options).await?
                } else {
                    engine.install(target, chart, &self.values, options).await?
                };
                Ok(Some(summary.revision))
            }
        }
    }

    /// What comes before Helm works on the release ends at once.
    async fn unless_stopped<T>(&self, step: impl Future<Output = T>) -> Result<T, HelmError> {
        tokio::select! {
            biased;
            () = self.target.stop.requested() => Err(HelmError::new(Kind::Cancelled, "it was ended before it began")),
            done = step => Ok(done),
        }
    }
}

fn no_chart() -> HelmError {
    HelmError::new(Kind::Invalid, "there is no chart to install")
}

/// An operation that is running.
struct Work {
    cx: Cx,
    helm: HelmReleases,
    proxy: Arc<HelmReleaseProxy>,
    place: Place,
}

impl Work {
    async fn run(&self, job: Job, ticket: Ticket) {
        let stopped = ticket.stopped();
        let turns = self.helm.0.operations.turn(job.options.wait);
        let running = job.run(&turns);
        tokio::pin!(running);
        let result = tokio::select! {
            biased;
            // The release is not free before Helm has ended, which may still change it.
            () = stopped => {
                job.target.stop.end();
                running.await
            }
            result = &mut running => result,
        };
        self.report(job.operation, &result);
        ticket.end(&result, self.cx.now());
    }

    fn report(&self, operation: Operation, result: &Result<Option<u32>, HelmError>) {
        let (name, release) = (operation.name(), &self.place.name);
        match result {
            Ok(revision) => {
                let revision = revision
                    .map(|revision| format!(", revision {revision}"))
                    .unwrap_or_default();
                let message = format!("helm {name} of release {release}{revision}");
                self.cx.event(&*self.proxy, EventType::Normal, "HelmSucceeded", message);
            }
            Err(error) => {
                let about = format!(
                    "{} {}/{release} {name}",
                    key_of(&self.proxy.metadata),
                    self.place.namespace
                );
                if let Some(repeated) = self.helm.0.said.line(&about, &error.to_string(), Instant::now()) {
                    let (namespace, kind) = (&self.place.namespace, error.kind.name());
                    tracing::warn!(release, namespace, kind, %error, repeated, "helm {name} failed");
                }
                let message = format!("helm {name} of release {release}: {error}");
                self.cx.event(&*self.proxy, EventType::Warning, "HelmFailed", message);
            }
        }
    }
}
