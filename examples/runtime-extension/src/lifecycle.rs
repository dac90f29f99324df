//! The hooks of creation and of upgrades: each waits while the Cluster has an annotation for it.

use std::collections::BTreeMap;

use windlass_runtime_extension::hooks::Response;
use windlass_runtime_extension::hooks::lifecycle::{
    AfterClusterUpgrade, AfterClusterUpgradeResponse, AfterControlPlaneInitialized,
    AfterControlPlaneInitializedResponse, AfterControlPlaneUpgrade, AfterControlPlaneUpgradeResponse,
    AfterWorkersUpgrade, AfterWorkersUpgradeResponse, BeforeClusterCreate, BeforeClusterCreateResponse,
    BeforeClusterUpgrade, BeforeClusterUpgradeResponse, BeforeControlPlaneUpgrade, BeforeControlPlaneUpgradeResponse,
    BeforeWorkersUpgrade, BeforeWorkersUpgradeResponse,
};
use windlass_runtime_extension::{BadHandler, Extension};

use crate::{AGAIN, HOLD};

type Annotations = BTreeMap<String, String>;

/// Why a hook waits, if it does.
fn held(annotations: Option<&Annotations>, hook: &str) -> Option<String> {
    let annotation = format!("{HOLD}{}", hook.to_lowercase());
    let reason = annotations?.get(&annotation)?;
    let colon = if reason.is_empty() { "" } else { ": " };
    Some(format!("the annotation {annotation} is set{colon}{reason}"))
}

/// Adds a handler for each hook that can block. The name of a handler is that of its hook.
macro_rules! hold {
    ($extension:expr, $($hook:ident $response:ident,)+) => {{
        let extension = $extension;
        $(
            let extension = extension.handle($hook, stringify!($hook).to_lowercase().as_str(), |request| async move {
                let held = held(request.cluster.metadata.annotations.as_ref(), stringify!($hook));
                held.map_or_else($response::success, |why| $response::blocked(AGAIN, why))
            })?;
        )+
        extension
    }};
}

pub(super) fn add(extension: Extension) -> Result<Extension, BadHandler> {
    // This hook cannot block: it tells others, such as an inventory.
    let extension = extension.handle(AfterControlPlaneInitialized, "initialized", |request| async move {
        let cluster = request.cluster.metadata;
        tracing::info!(namespace = ?cluster.namespace, name = ?cluster.name, "a control plane was initialized");
        AfterControlPlaneInitializedResponse::success()
    })?;
    Ok(hold!(
        extension,
        BeforeClusterCreate BeforeClusterCreateResponse,
        BeforeClusterUpgrade BeforeClusterUpgradeResponse,
        BeforeControlPlaneUpgrade BeforeControlPlaneUpgradeResponse,
        AfterControlPlaneUpgrade AfterControlPlaneUpgradeResponse,
        BeforeWorkersUpgrade BeforeWorkersUpgradeResponse,
        AfterWorkersUpgrade AfterWorkersUpgradeResponse,
        AfterClusterUpgrade AfterClusterUpgradeResponse,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_waits_while_its_own_annotation_is_set() {
        let annotations = |name: &str, value: &str| Annotations::from([(format!("{HOLD}{name}"), value.to_owned())]);
        let all = annotations("beforeclustercreate", "review 7");
        let why = "the annotation example.windlass.dev/hold-beforeclustercreate is set: review 7";
        assert_eq!(held(Some(&all), "BeforeClusterCreate").as_deref(), Some(why));
        assert_eq!(held(Some(&all), "BeforeClusterUpgrade"), None);
        assert_eq!(held(None, "BeforeClusterCreate"), None);
        let bare = held(Some(&annotations("afterclusterupgrade", "")), "AfterClusterUpgrade").unwrap();
        assert!(bare.ends_with("is set"), "{bare}");
    }
}
