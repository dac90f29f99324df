//! The hook BeforeClusterDelete of the Runtime SDK. It is called by the controller that takes a Cluster down, so that nothing goes before it has
//! agreed. What it was asked with success is recorded in an annotation: the deletion takes several passes, and may be continued by another
//! process.

use std::collections::BTreeMap;

use windlass_api::annotations::OK_TO_DELETE;
use windlass_api::core::Cluster;
use windlass_api::meta::MetaExt as _;
use windlass_api::{conditions, reasons};
use windlass_runtime_client::{About, Extensions, clusters};
use windlass_runtime_hooks::lifecycle::{BeforeClusterDelete, BeforeClusterDeleteRequest};

use super::observe::Observed;

/// A fact that the plan asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Whether extensions let the Cluster go.
    BeforeDelete,
}

/// What extensions say to the deletion of a Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BeforeDelete {
    /// None serves the hook for this Cluster.
    Unserved,
    /// All of them agree.
    Agreed,
    /// Not yet: ask again in so many seconds.
    Blocked(i32, String),
    /// One has failed, does not answer, or cannot be found.
    Failed(String),
}

/// Whether the hook is called before the Cluster goes: it has a topology, the hook has not agreed yet, and nothing goes already. An extension
/// that comes later has nothing to say any more.
pub(crate) fn concerns(cluster: &Cluster) -> bool {
    let deleting = cluster.status.iter().flat_map(|status| &status.conditions);
    let has_begun = deleting.into_iter().any(|condition| {
        let waits = [reasons::WAITING_FOR_BEFORE_DELETE_HOOK, reasons::NOT_DELETING];
        condition.type_ == conditions::DELETING && !waits.contains(&condition.reason.as_str())
    });
    cluster.spec.topology.is_some() && cluster.metadata.annotation(OK_TO_DELETE).is_none() && !has_begun
}

/// Whether extensions serve the hook for a Cluster. When that cannot be told, the Cluster waits as well.
pub(crate) async fn is_served(extensions: &Extensions, cluster: &Cluster) -> bool {
    let handlers = extensions
        .handlers::<BeforeClusterDelete>(cluster.metadata.namespace())
        .await;
    handlers.map_or(true, |handlers| !handlers.is_empty())
}

/// Asks the extensions.
pub(super) async fn ask(extensions: &Extensions, mut seen: Observed) -> Observed {
    seen.before_delete = Some(answer(extensions, &seen.cluster).await);
    seen
}

async fn answer(extensions: &Extensions, cluster: &Cluster) -> BeforeDelete {
    let namespace = cluster.metadata.namespace();
    let handlers = match extensions.handlers::<BeforeClusterDelete>(namespace).await {
        Ok(handlers) if handlers.is_empty() => return BeforeDelete::Unserved,
        Ok(handlers) => handlers,
        Err(error) => return BeforeDelete::Failed(error.to_string()),
    };
    let about = About {
        uid: cluster.metadata.uid().to_owned(),
        version: clusters::version(cluster),
    };
    let request = BeforeClusterDeleteRequest {
        settings: BTreeMap::new(),
        cluster: clusters::shown(cluster),
    };
    match extensions
        .call_all::<BeforeClusterDelete>(&handlers, &about, &request)
        .await
    {
        Ok(answer) if answer.retry_after_seconds != 0 => {
            BeforeDelete::Blocked(answer.retry_after_seconds, answer.message)
        }
        Ok(_) => BeforeDelete::Agreed,
        Err(error) => BeforeDelete::Failed(error.to_string()),
    }
}
