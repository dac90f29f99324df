//! What rendering needs of the cluster.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass_api_operator::{Declared, ProviderType, keys, labels};
use windlass_controller_runtime::{Cx, ObjectKey, Seen, gvk_from};

use super::unread;
use crate::kept::vouched::Strange;
use crate::kept::{self, Release, Sealed};
use crate::names::reasons;
use crate::objects::ObjectRef;
use crate::peers::Peer;
use crate::ports::Operator;
use crate::provider::blocked::{Blocked, Stage};

/// What the provider's Secret says, as text.
pub(crate) async fn variables(cx: &Cx, declared: &Declared) -> Result<BTreeMap<String, String>, Blocked> {
    let Some(key) = &declared.config_secret else {
        return Ok(BTreeMap::new());
    };
    let missing = |message: String| Blocked::new(Stage::Install, reasons::SECRET_MISSING, message);
    let secret = match cx.read::<Secret>(key).await {
        Seen::Found(secret) => secret,
        Seen::NotFound => {
            return Err(missing(format!(
                "Secret {key} with the variables is not there; create it"
            )));
        }
        Seen::Failed(why) => return Err(unread(reasons::SECRET_MISSING, why)),
    };
    let mut variables = BTreeMap::new();
    for (name, bytes) in secret.data.unwrap_or_default() {
        match String::from_utf8(bytes.0) {
            Ok(text) => {
                variables.insert(name, text);
            }
            Err(_) => return Err(missing(format!("Secret {key}: key {name} is not text in UTF-8"))),
        }
    }
    Ok(variables)
}

/// The text of the additional manifests.
pub(super) async fn manifests(cx: &Cx, declared: &Declared) -> Result<Option<String>, Blocked> {
    let Some(key) = &declared.manifests else {
        return Ok(None);
    };
    let missing = |message: String| Blocked::new(Stage::Install, reasons::MANIFESTS_MISSING, message);
    match cx.read::<ConfigMap>(key).await {
        Seen::Found(map) => match map.data.unwrap_or_default().remove(keys::MANIFESTS) {
            Some(text) => Ok(Some(text)),
            None => Err(missing(format!("ConfigMap {key} has no key {}", keys::MANIFESTS))),
        },
        Seen::NotFound => Err(missing(format!(
            "ConfigMap {key} with additional manifests is not there; create it"
        ))),
        Seen::Failed(why) => Err(unread(reasons::MANIFESTS_MISSING, why)),
    }
}

/// Whether cert-manager would make certificates here.
pub(super) async fn has_cert_manager(cx: &Cx) -> Result<bool, Blocked> {
    match cx.resource(&gvk_from("cert-manager.io/v1", "Certificate")).await {
        Seen::Found(_) => Ok(true),
        Seen::NotFound => Ok(false),
        Seen::Failed(why) => Err(unread(reasons::APPLY_ERROR, why)),
    }
}

/// The Secrets with certificates that the operator issued for this provider before, by name.
pub(crate) async fn certificates(
    cx: &Cx,
    key: &ObjectKey,
    type_: ProviderType,
) -> Result<BTreeMap<String, Secret>, Blocked> {
    let selector = format!("{}={}", labels::PROVIDER, type_.label(&key.name));
    match cx.list::<Secret>(&key.namespace, &selector).await {
        Seen::Found(secrets) => {
            let named = secrets
                .into_iter()
                .filter_map(|secret| Some((secret.metadata.name.clone()?, secret)));
            Ok(named.collect())
        }
        Seen::NotFound => Ok(BTreeMap::new()),
        Seen::Failed(why) => Err(unread(reasons::APPLY_ERROR, why)),
    }
}

/// What another program has installed of a provider and is not in the release that takes its place. Definitions and namespaces stay.
pub(super) async fn installed_by_others(
    cx: &Cx,
    declared: &Declared,
    index: &[ObjectRef],
) -> Result<Vec<ObjectRef>, Blocked> {
    let found = labelled(cx, declared.type_, &declared.key).await;
    let mut left = found.map_err(|why| unread(reasons::APPLY_ERROR, why))?;
    let there: BTreeSet<_> = index.iter().map(ObjectRef::identity).collect();
    left.retain(|object| !object.is_kept_for_users() && !there.contains(&object.identity()));
    Ok(left)
}

/// Objects with the labels of a provider, as clusterctl sets them, that nothing else owns: those of the provider's namespace, and
/// cluster-scoped ones.
pub(crate) async fn labelled(cx: &Cx, type_: ProviderType, key: &ObjectKey) -> Result<Vec<ObjectRef>, String> {
    let kinds = match cx.served().await {
        Seen::Found(kinds) => kinds,
        Seen::NotFound => Vec::new(),
        Seen::Failed(why) => return Err(why),
    };
    let selector = format!("{},{}={}", labels::CLUSTERCTL, labels::PROVIDER, type_.label(&key.name));
    let mut all = Vec::new();
    for gvk in kinds {
        // Kinds that the operator may not list hold nothing that it could delete.
        let found = match cx.listable_metadata_of(&gvk, &selector).await {
            Seen::Found(found) => found,
            Seen::NotFound => continue,
            Seen::Failed(why) => return Err(why),
        };
        for meta in found {
            let object = ObjectRef {
                api_version: gvk.api_version(),
                kind: gvk.kind.clone(),
                namespace: meta.namespace.unwrap_or_default(),
                name: meta.name.unwrap_or_default(),
            };
            let is_ours = object.namespace.is_empty() || object.namespace == key.namespace;
            let is_free = meta.owner_references.is_none_or(|owners| owners.is_empty());
            if is_ours && is_free {
                all.push(object);
            }
        }
    }
    all.sort();
    all.dedup_by_key(|object| object.identity());
    Ok(all)
}

/// A kept release with its objects.
pub(crate) async fn release(cx: &Cx, operator: &Operator, me: &Peer, release: &Release) -> Result<Sealed, Blocked> {
    let failed = |why: String| unread(reasons::APPLY_ERROR, why);
    let mut secrets = Vec::new();
    for name in &release.secrets {
        let key = ObjectKey::new(me.key.namespace.as_str(), name.as_str());
        match cx.read::<Secret>(&key).await {
            Seen::Found(secret) => secrets.push(secret),
            Seen::NotFound => {
                // A user deleted it: the others are read again.
                operator.0.kept.lock().remove(&me.uid);
                return Err(failed(format!("Secret {key}, which holds what is installed, is gone")));
            }
            Seen::Failed(why) => return Err(failed(why)),
        }
    }
    let mut parts = secrets.into_iter();
    let Some(packed) = kept::objects(release, |_| parts.next()) else {
        // The next reconcile finds out which release it is, and has it rendered again.
        operator.0.kept.lock().remove(&me.uid);
        let strange = Strange {
            secrets: release.secrets.clone(),
            is_old: false,
        };
        return Err(failed(strange.to_string()));
    };
    Ok(Sealed {
        release: release.clone(),
        packed,
    })
}
