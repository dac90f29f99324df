//! Carries out what was planned for a HelmReleaseProxy. The only file of this controller that writes.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api_ext::addons::{HelmReleaseProxy, annotations, finalizers};
use windlass_helm::{ChartSource, Engine, Freshness, HelmError, Kind, Marker, Options, Secret, Target};
use windlass_kit::{Cx, EventType, ReconcileError, WriteError, key_of};

use super::index;
use super::observe::Sight;
use super::observed::{Latest, Observed, Operation};
use super::operations::{Place, Ticket};
use super::options;
use super::plan::{self, Plan, Step};
use super::ports::HelmReleases;
use super::status::Done;
use crate::names::managers::RELEASE_PROXY;

/// Carries out a step.
pub(super) async fn apply(cx: &Cx, helm: &HelmReleases, sight: &Sight, plan: &Plan) -> Done {
    let seen = &sight.observed;
    let mut done = Done::default();
    let written = match &plan.step {
        Step::Rest(_) | Step::Wait(_) => Ok(()),
        Step::Name(name) => store_name(cx, &seen.proxy, name).await,
        Step::Remember => remember(cx, &seen.proxy).await,
        Step::Start(operation, why) => {
            done.failed = start(cx, helm, sight, *operation, why).err();
            Ok(())
        }
        Step::Stop => {
            helm.0.operations.stop(&key_of(&seen.proxy.metadata));
            Ok(())
        }
        Step::LetGo(why) => {
            let let_go = let_go(cx, helm, &seen.proxy, why).await;
            done.gone = let_go.is_ok();
            let_go
        }
    };
    if let Err(error) = written {
        done.failed = Some(error.into());
    }
    done
}

/// The name that was made up becomes part of the object before anything is installed, unless the object changed meanwhile.
async fn store_name(cx: &Cx, proxy: &HelmReleaseProxy, name: &str) -> Result<(), WriteError> {
    let patch = json!({
        "metadata": {
            "uid": proxy.metadata.uid,
            "resourceVersion": proxy.metadata.resource_version,
            "annotations": { (annotations::IS_RELEASE_NAME_GENERATED): "true" },
        },
        "spec": { "releaseName": name },
    });
    write(cx, proxy, &patch).await
}

async fn remember(cx: &Cx, proxy: &HelmReleaseProxy) -> Result<(), WriteError> {
    let patch = json!({
        "metadata": {
            "uid": proxy.metadata.uid,
            "annotations": { (annotations::RELEASE_SUCCESSFULLY_INSTALLED): "true" },
        },
    });
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

async fn let_go(cx: &Cx, helm: &HelmReleases, proxy: &HelmReleaseProxy, why: &str) -> Result<(), WriteError> {
    tracing::debug!(why, "the object is let go");
    let writer = cx.writer();
    writer
        .remove_finalizer(RELEASE_PROXY, proxy, finalizers::HELM_RELEASE_PROXY)
        .await?;
    helm.forget(proxy);
    Ok(())
}

/// What Helm is asked, with all that it needs.
struct Job {
    engine: Arc<dyn Engine>,
    operation: Operation,
    target: Target,
    source: Option<ChartSource>,
    values: String,
    options: Options,
}

/// Begins an operation, which goes on when this returns.
fn start(cx: &Cx, helm: &HelmReleases, sight: &Sight, operation: Operation, why: &str) -> Result<(), ReconcileError> {
    let proxy = &sight.observed.proxy;
    let job = job(helm, sight, operation)?;
    let place = index::place_of(proxy).ok_or_else(|| unready("the release has no name"))?;
    let (key, wish) = (key_of(&proxy.metadata), plan::wish(&sight.observed));
    // Somebody else was faster, and wakes us when it is done.
    let Some(ticket) = helm.0.operations.begin(&key, &place, operation, wish, cx.now()) else {
        return Ok(());
    };
    tracing::info!(
        release = place.name,
        namespace = place.namespace,
        why,
        "helm {}",
        operation.name()
    );
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

fn job(helm: &HelmReleases, sight: &Sight, operation: Operation) -> Result<Job, ReconcileError> {
    let seen = &sight.observed;
    let spec = &seen.proxy.spec;
    let connection = sight
        .connection
        .as_ref()
        .ok_or_else(|| unready("there is no connection"))?;
    let kubeconfig = connection.kubeconfig();
    let kubeconfig = kubeconfig.map_err(|error| ReconcileError::new("Kubeconfig", error.to_string()))?;
    let kubeconfig = String::from_utf8(kubeconfig).map_err(|_| unready("the kubeconfig is not text"))?;
    Ok(Job {
        engine: helm.0.engine.clone(),
        operation,
        target: Target {
            kubeconfig: Secret::new(kubeconfig),
            namespace: spec.release_namespace().to_owned(),
            release: spec.release_name().unwrap_or_default().to_owned(),
            marker: Marker::owner(&seen.owner),
        },
        source: exact_source(seen),
        values: spec.values.clone().unwrap_or_default(),
        options: options::of(spec.options.as_ref(), operation, plan::timeout(seen)),
    })
}

/// The chart in exactly the version that was decided on.
fn exact_source(seen: &Observed) -> Option<ChartSource> {
    let mut source = seen.source.as_ref().ok()?.clone();
    match &seen.version {
        Latest::Pinned(version) | Latest::Found(version) => source.version = Some(version.clone()),
        Latest::Asking | Latest::Failed(_) => {}
    }
    Some(source)
}

impl Job {
    /// Asks Helm; gives the revision that an installation or upgrade led to.
    async fn run(&self) -> Result<Option<u32>, HelmError> {
        let (engine, target, options) = (&self.engine, &self.target, &self.options);
        match self.operation {
            Operation::Rollback { to } => engine.rollback(target, to, options).await.map(|()| None),
            Operation::Uninstall { .. } => engine.uninstall(target, options).await.map(|()| None),
            Operation::Install { .. } | Operation::Upgrade => {
                let source = self.source.as_ref();
                let source = source.ok_or_else(|| HelmError::new(Kind::Invalid, "there is no chart to install"))?;
                let chart = engine.chart(source, Freshness::Any).await?;
                let summary = if self.operation == Operation::Upgrade {
                    engine.upgrade(target, &chart, &self.values, options).await?
                } else {
                    engine.install(target, &chart, &self.values, options).await?
                };
                Ok(Some(summary.revision))
            }
        }
    }
}

/// An operation that goes on.
struct Work {
    cx: Cx,
    helm: HelmReleases,
    proxy: Arc<HelmReleaseProxy>,
    place: Place,
}

impl Work {
    async fn run(&self, job: Job, ticket: Ticket) {
        let stopped = ticket.stopped();
        let turn = self.helm.0.operations.turn(job.options.wait);
        let result = tokio::select! {
            biased;
            () = stopped => Err(HelmError::new(Kind::Cancelled, "it was ended, as nobody wants its outcome any more")),
            result = async {
                // The semaphore is never closed.
                let _turn = turn.acquire().await;
                job.run().await
            } => result,
        };
        self.say(job.operation, &result);
        ticket.end(&result, self.cx.now());
        // It may have written nothing that anybody is told of.
        self.helm.wake(key_of(&self.proxy.metadata));
        self.helm.tell(&self.place);
    }

    fn say(&self, operation: Operation, result: &Result<Option<u32>, HelmError>) {
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
                tracing::warn!(release, namespace = self.place.namespace, kind = error.kind.name(), %error, "helm {name} failed");
                let message = format!("helm {name} of release {release}: {error}");
                self.cx.event(&*self.proxy, EventType::Warning, "HelmFailed", message);
            }
        }
    }
}
