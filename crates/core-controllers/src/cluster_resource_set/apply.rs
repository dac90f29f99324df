//! Carries out the plan of a ClusterResourceSet: the only file of it that writes.

use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use windlass_api::addons::reasons;
use windlass_api::addons::{
    CLUSTER_RESOURCE_SET_FINALIZER, ClusterResourceSetBinding, ResourceRef, STRATEGY_RECONCILE,
};
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::Clusters;
use windlass_controller_runtime::{Cx, ObjectKey, ReconcileError, WriteError};

use super::observed::Observed;
use super::plan::{Action, Bind, Plan, Problem, change, recorded, unrecorded};
use super::remote::{Mode, NotWritten, Remote};
use crate::shared::keys::managers;
use crate::shared::legacy::Legacy;

/// Clusters that get resources at the same time.
const AT_A_TIME: usize = 8;
/// Objects of a resource whose failures are listed.
const MOST_FAILURES: usize = 5;

/// What became of a plan.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// What kept resources from Clusters.
    pub problems: Vec<Problem>,
    /// All failures as one.
    pub failed: Option<ReconcileError>,
    /// Whether a record was written by someone else meanwhile.
    pub has_conflict: bool,
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref()
    }
}

impl Done {
    fn add(&mut self, failure: Failure) {
        self.has_conflict |= failure.is_conflict;
        self.problems.extend(failure.problem);
        let failed = [self.failed.take(), Some(failure.error)];
        self.failed = ReconcileError::join(&failed.into_iter().flatten().collect::<Vec<_>>());
    }
}

/// A step that failed.
struct Failure {
    /// What the condition says of it; nothing of a record that another set has changed.
    problem: Option<Problem>,
    error: ReconcileError,
    is_conflict: bool,
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        let is_conflict = error.is_conflict() || error.is_already_exists() || error.is_not_found();
        let problem = Problem {
            reason: reasons::INTERNAL_ERROR,
            legacy: Legacy::warning("ApplyFailed", error.to_string()),
            message: error.to_string(),
        };
        Self {
            problem: (!is_conflict).then_some(problem),
            error: error.into(),
            is_conflict,
        }
    }
}

/// Owners of resources come first, and what Clusters get after them. A Cluster does not wait for another one that fails.
pub(super) async fn apply(cx: &Cx, clusters: &Clusters, seen: &Observed, plan: &Plan) -> Done {
    let mut done = Done::default();
    let (binds, others): (Vec<&Action>, Vec<&Action>) = plan
        .actions
        .iter()
        .partition(|action| matches!(action, Action::Bind(_)));
    for action in others {
        if let Err(error) = carry_out(cx, seen, action).await {
            done.add(error.into());
            // The finalizer stays until all records are changed. An owner that is missing keeps nothing waiting.
            if !matches!(action, Action::Own { .. }) {
                return done;
            }
        }
    }
    let steps: Vec<_> = binds
        .into_iter()
        .filter_map(|action| match action {
            Action::Bind(step) => Some(bind(cx, clusters, seen, step)),
            _ => None,
        })
        .collect();
    let mut running = futures::stream::iter(steps).buffer_unordered(AT_A_TIME);
    while let Some(failures) = running.next().await {
        for failure in failures {
            done.add(failure);
        }
    }
    // They come in any order, and messages must not depend on it.
    done.problems.sort_by(|a, b| a.message.cmp(&b.message));
    done
}

async fn carry_out(cx: &Cx, seen: &Observed, action: &Action) -> Result<(), WriteError> {
    let (writer, manager) = (cx.writer(), managers::CLUSTER_RESOURCE_SET);
    match action {
        Action::Own {
            resource: ResourceRef { kind, name },
            owners,
            resource_version,
        } => {
            let key = ObjectKey::new(seen.set.metadata.namespace(), name.as_str());
            let patch = json!({ "metadata": { "ownerReferences": owners, "resourceVersion": resource_version } });
            if kind == "Secret" {
                writer.merge_patch::<Secret>(manager, &key, &patch).await?;
            } else {
                writer.merge_patch::<ConfigMap>(manager, &key, &patch).await?;
            }
        }
        Action::Unbind(record) => match unrecorded(&seen.set, record) {
            Some(rest) => write(cx, &rest).await?,
            None => {
                writer.delete(&**record).await?;
            }
        },
        Action::RemoveFinalizer => {
            writer
                .remove_finalizer(manager, &*seen.set, CLUSTER_RESOURCE_SET_FINALIZER)
                .await?;
        }
        Action::Bind(_) => {}
    }
    Ok(())
}

/// Changes a record, if it is still what was read.
async fn write(cx: &Cx, record: &ClusterResourceSetBinding) -> Result<(), WriteError> {
    let key = ObjectKey::new(record.metadata.namespace(), record.metadata.name());
    let manager = managers::CLUSTER_RESOURCE_SET;
    let written: Arc<ClusterResourceSetBinding> = cx.writer().merge_patch(manager, &key, &change(record)).await?;
    drop(written);
    Ok(())
}

/// Gives a Cluster its resources, and records what it got.
async fn bind(cx: &Cx, clusters: &Clusters, seen: &Observed, bind: &Bind) -> Vec<Failure> {
    let (mut failures, mut applied) = (Vec::new(), Vec::new());
    if bind.items.iter().any(|item| item.contents.is_some()) {
        let mut remote = match clusters.get(&bind.cluster) {
            Ok(cluster) => Remote::of(&cluster),
            Err(error) => return vec![unreachable(&bind.cluster.name, &error.to_string())],
        };
        let mode = if seen.set.spec.strategy.as_deref() == Some(STRATEGY_RECONCILE) {
            Mode::Apply
        } else {
            Mode::Create
        };
        'items: for item in &bind.items {
            let objects = item
                .contents
                .as_ref()
                .and_then(|contents| contents.objects.as_ref().ok());
            let is_secret = item.resource.kind == "Secret";
            let mut errors = Vec::new();
            for object in objects.iter().flat_map(|objects| objects.iter()) {
                match remote.put(object, mode, is_secret).await {
                    Ok(()) => {}
                    Err(NotWritten::Refused(why)) => errors.push(why),
                    // Each further object would wait as long. What is not recorded is applied again.
                    Err(NotWritten::Unreachable(why)) => {
                        failures.push(unreachable(&bind.cluster.name, &why));
                        break 'items;
                    }
                }
            }
            applied.push(objects.is_some() && errors.is_empty());
            failures.extend(not_applied(&bind.cluster.name, &item.resource, &errors));
        }
    } else {
        applied.resize(bind.items.len(), false);
    }
    if let Some(record) = recorded(&seen.set, bind, &applied, cx.now()) {
        let written = if bind.record.is_some() {
            write(cx, &record).await
        } else {
            let created = cx.writer().create(managers::CLUSTER_RESOURCE_SET, &record).await;
            created.map(drop)
        };
        failures.extend(written.err().map(Failure::from));
    }
    failures
}

/// The failure of a Cluster that does not answer.
fn unreachable(cluster: &str, why: &str) -> Failure {
    let message = format!("Cluster {cluster} does not answer: {why}");
    Failure {
        problem: Some(Problem {
            reason: reasons::INTERNAL_ERROR,
            legacy: Legacy::error("RemoteClusterClientFailed", message.as_str()),
            message: message.clone(),
        }),
        error: ReconcileError::new("NotConnected", message),
        is_conflict: false,
    }
}

/// The failure of a resource.
fn not_applied(cluster: &str, ResourceRef { kind, name }: &ResourceRef, errors: &[String]) -> Option<Failure> {
    let mut told: Vec<&str> = errors.iter().take(MOST_FAILURES).map(String::as_str).collect();
    let rest = errors.len().saturating_sub(MOST_FAILURES);
    let more = format!("and {rest} more objects");
    if rest > 0 {
        told.push(&more);
    }
    if told.is_empty() {
        return None;
    }
    let message = format!("{kind} {name} on Cluster {cluster}: {}", told.join("; "));
    Some(Failure {
        problem: Some(Problem {
            reason: reasons::NOT_APPLIED,
            legacy: Legacy::warning("ApplyFailed", message.as_str()),
            message: message.clone(),
        }),
        error: ReconcileError::new("ApplyFailed", message),
        is_conflict: false,
    })
}
