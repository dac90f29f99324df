//! Certificates of the operator's own, where cert-manager is not there to make them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use windlass_controller_runtime::Timestamp;
use windlass_pki::{KeyAlgorithm, KeyPool};
use windlass_provider_components::certificates::{Means, StandIn, stand_in};

use crate::objects::ObjectRef;

/// Small and quick to make, and every program that speaks TLS knows it.
const ALGORITHM: KeyAlgorithm = KeyAlgorithm::EcdsaP256;

/// Whose certificates, and with what.
pub(crate) struct Office<'a> {
    /// The label of the provider.
    pub(crate) label: &'a str,
    /// Where it is.
    pub(crate) namespace: &'a str,
    /// Keys.
    pub(crate) keys: &'a KeyPool,
    /// The Secrets of the provider that are stored, by name.
    pub(crate) live: &'a BTreeMap<String, Secret>,
    /// What time it is.
    pub(crate) now: Timestamp,
}

impl Office<'_> {
    /// The Secret with the provider's own authority.
    pub(crate) fn authority(&self) -> String {
        format!("{}-authority", self.label)
    }

    /// Replaces what objects ask of cert-manager, with certificates that are stored and still good, or new ones.
    pub(crate) fn stand_in(&self, objects: &mut Vec<Value>) -> Result<StandIn, String> {
        let stored = |secret: &str, key: &str| {
            let data = self.live.get(secret)?.data.as_ref()?;
            data.get(key).map(|bytes| bytes.0.clone())
        };
        let mut new_key = || self.keys.take(ALGORITHM).wait();
        let mut means = Means {
            namespace: self.namespace,
            authority: &self.authority(),
            stored: &stored,
            new_key: &mut new_key,
            now: self.now,
        };
        stand_in(objects, &mut means).map_err(|error| error.to_string())
    }
}

/// Where an object says whose authority it trusts.
const INJECTED: &str = "cert-manager.io/inject-ca-from";

/// What objects ask of cert-manager: its own objects, and of others no more than their names and what is to be put into them.
pub(crate) fn asked(objects: &[Value]) -> Vec<Value> {
    let mut asked = Vec::new();
    for object in objects {
        let from = &object["metadata"]["annotations"][INJECTED];
        if object["apiVersion"]
            .as_str()
            .is_some_and(|v| v.starts_with("cert-manager.io/"))
        {
            asked.push(object.clone());
        } else if from.is_string() {
            let meta = json!({ "name": object["metadata"]["name"], "annotations": { INJECTED: from } });
            asked.push(json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": meta }));
        }
    }
    asked
}

/// Has objects ask again for what was put into them.
pub(crate) fn ask_again(objects: &mut Vec<Value>, asked: &[Value]) {
    for one in asked {
        let of = ObjectRef::of(one).identity();
        let from = &one["metadata"]["annotations"][INJECTED];
        match objects.iter_mut().find(|object| ObjectRef::of(object).identity() == of) {
            Some(object) if from.is_string() => object["metadata"]["annotations"][INJECTED] = from.clone(),
            None if !from.is_string() => objects.push(one.clone()),
            _ => {}
        }
    }
}
