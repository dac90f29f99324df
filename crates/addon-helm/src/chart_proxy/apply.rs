//! Carries out the plan of a HelmChartProxy: the only file of it that writes.

use futures::StreamExt;
use windlass_api::kind::ApiKind;
use windlass_api_ext::addons::{HelmReleaseProxy, finalizers, reasons};
use windlass_kit::{Cx, EventType, ObjectKey, WriteError};

use super::observed::Observed;
use super::plan::{Action, Failure, Plan};
use super::status::Done;
use crate::names::managers::CHART_PROXY;

/// Writes that are under way at a time.
const AT_A_TIME: usize = 8;

/// Does everything that can be done: one that fails keeps no other waiting. What goes, goes before anything new comes.
pub(super) async fn apply(cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
    let mut done = Done::default();
    let goes = |action: &&Action| matches!(action, Action::Delete { .. });
    let (first, then): (Vec<&Action>, Vec<&Action>) = plan.actions.iter().partition(goes);
    for actions in [first, then] {
        let writes: Vec<_> = actions.into_iter().map(|action| carry_out(cx, seen, action)).collect();
        let mut under_way = futures::stream::iter(writes).buffer_unordered(AT_A_TIME);
        while let Some(failure) = under_way.next().await {
            done.failures.extend(failure);
        }
    }
    // They come in any order, and the words about them must not depend on it.
    done.failures.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    done
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
        Action::Delete { name, cluster, why } => {
            let outcome = delete(cx, seen, name, cluster, why).await;
            (
                cluster.as_str(),
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

async fn delete(cx: &Cx, seen: &Observed, name: &str, cluster: &str, why: &str) -> Result<(), WriteError> {
    let Some(release) = seen.releases.iter().find(|release| release.key().name == name) else {
        return Ok(());
    };
    tracing::info!(release = name, cluster, why, "deleting HelmReleaseProxy");
    cx.writer().delete(&**release).await?;
    let message = format!("Deleted HelmReleaseProxy {name}: {why}");
    cx.event(&*seen.proxy, EventType::Normal, "SuccessfulDelete", message);
    Ok(())
}
