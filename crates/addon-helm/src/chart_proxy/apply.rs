//! Carries out the plan of a HelmChartProxy. The only file of this controller that writes.

use futures::StreamExt;
use windlass_api::kind::ApiKind;
use windlass_api_ext::addons::{HelmReleaseProxy, finalizers, reasons};
use windlass_controller_runtime::{Cx, EventType, ObjectKey, WriteError};

use super::observed::Observed;
use super::plan::{Action, Failure, Plan};
use super::status::Done;
use crate::names::managers::CHART_PROXY;

/// Writes that are under way at a time.
const AT_A_TIME: usize = 8;

/// Carries out all actions: a failure does not keep the others waiting. Deletions come before creations.
pub(super) async fn apply(cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
    let mut failures = Vec::new();
    let goes = |action: &&Action| matches!(action, Action::Delete { .. });
    let (first, then): (Vec<&Action>, Vec<&Action>) = plan.actions.iter().partition(goes);
    for actions in [first, then] {
        let writes: Vec<_> = actions.into_iter().map(|action| carry_out(cx, seen, action)).collect();
        let mut under_way = futures::stream::iter(writes).buffer_unordered(AT_A_TIME);
        while let Some(failure) = under_way.next().await {
            failures.extend(failure);
        }
    }
    // They come in any order, and messages must not depend on it.
    failures.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    Done::from(failures)
}

async fn carry_out(cx: &Cx, seen: &Observed, action: &Action) -> Option<Failure> {
    let (cluster, reason, outcome) = match action {
        Action::Create(wanted) => {
            let outcome = create(cx, seen, wanted).await;
            (
                wanted.spec.cluster_name(),
                reasons::HELM_RELEASE_PROXY_CREATION_FAILED,
                outcome,
            )
        }
        Action::Patch { name, cluster, patch } => {
            let key = ObjectKey::new(seen.proxy.key().namespace, name.as_str());
            let outcome = cx
                .writer()
                .merge_patch::<HelmReleaseProxy>(CHART_PROXY, &key, patch)
                .await
                .map(drop);
            (
                cluster.as_str(),
                reasons::HELM_RELEASE_PROXY_CREATION_FAILED,
                outcome.map_err(|e| e.to_string()),
            )
        }
        Action::Delete { release, why } => {
            let outcome = delete(cx, seen, release, why).await;
            (
                release.spec.cluster_name(),
                reasons::HELM_RELEASE_PROXY_DELETION_FAILED,
                outcome.map_err(|e| e.to_string()),
            )
        }
        Action::RemoveFinalizer => {
            let released = cx
                .writer()
                .remove_finalizer(CHART_PROXY, &*seen.proxy, finalizers::HELM_CHART_PROXY);
            (
                "",
                reasons::HELM_RELEASE_PROXY_DELETION_FAILED,
                released.await.map_err(|e| e.to_string()),
            )
        }
    };
    let message = outcome.err()?;
    Some(Failure {
        cluster: Some(cluster.to_owned()).filter(|cluster| !cluster.is_empty()),
        reason,
        message,
        may_pass: true,
    })
}

async fn create(cx: &Cx, seen: &Observed, wanted: &HelmReleaseProxy) -> Result<(), String> {
    let (name, cluster) = (wanted.key().name, wanted.spec.cluster_name());
    match cx.writer().create(CHART_PROXY, wanted).await {
        Ok(_) => {
            let message = format!("Created HelmReleaseProxy {name} for Cluster {cluster}");
            cx.event(&*seen.proxy, EventType::Normal, "SuccessfulCreate", message);
            Ok(())
        }
        Err(error) if error.is_already_exists() => {
            let key = wanted.key();
            Err(format!(
                "HelmReleaseProxy {key} exists already and is not of this HelmChartProxy: delete it, or give it the label of this one"
            ))
        }
        Err(error) => Err(error.to_string()),
    }
}

async fn delete(cx: &Cx, seen: &Observed, release: &HelmReleaseProxy, why: &str) -> Result<(), WriteError> {
    cx.writer().delete(release).await?;
    let message = format!("Deleted HelmReleaseProxy {}: {why}", release.key().name);
    cx.event(&*seen.proxy, EventType::Normal, "SuccessfulDelete", message);
    Ok(())
}
