//! The inventory of installed providers, which clusterctl reads: its entries, and those of the providers that are built in.
//!
//! The entry of an installed provider is one of the objects of its release. A built-in provider has no release, so its entry is kept by a
//! task of the process: it is written when it is missing or differs, with each event of the inventory.

mod apply;
mod plan;

use std::sync::Arc;
use std::time::Instant;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use tokio::sync::Notify;
use windlass_api::kind::ApiKind as _;
use windlass_api_operator::{ProviderType, inventory, labels};
use windlass_controller_runtime::{Backoff, Cx, Failing};

use crate::built_in::BuiltIns;

/// On entries of built-in providers: what wrote them.
const WRITTEN_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "windlass");

/// The entry of a provider, as clusterctl writes it.
pub(crate) fn entry(type_: ProviderType, name: &str, namespace: &str, version: &str) -> Value {
    let label = type_.label(name);
    json!({
        "apiVersion": inventory::Provider::API_VERSION,
        "kind": inventory::Provider::KIND,
        "metadata": {
            "name": label,
            "namespace": namespace,
            "labels": {
                (labels::CLUSTERCTL): "",
                (labels::CLUSTERCTL_CORE): labels::CLUSTERCTL_CORE_INVENTORY,
                (labels::PROVIDER): label,
            },
        },
        "providerName": name,
        "type": type_.inventory(),
        "version": version,
        "watchedNamespace": "",
    })
}

/// Whether an entry is one of a built-in provider.
pub(crate) fn is_ours(meta: &ObjectMeta) -> bool {
    let (key, value) = WRITTEN_BY;
    meta.labels
        .as_ref()
        .is_some_and(|labels| labels.get(key).is_some_and(|written_by| written_by == value))
}

/// Keeps the entries of built-in providers, from now on until the process ends.
pub(crate) fn keep(cx: &Cx, built_ins: Arc<BuiltIns>) {
    let cx = cx.clone();
    cx.tasks().clone().spawn("inventory", async move {
        let (stored, changed) = (cx.cache::<inventory::Provider>(), Arc::new(Notify::new()));
        let tell = changed.clone();
        stored.subscribe(move |_| tell.notify_one());
        stored.synced().await;
        let (mut failures, mut failing) = (0, Failing::default());
        loop {
            let plan = plan::plan(&built_ins, &stored.all());
            match apply::apply(&cx, &plan).await {
                Ok(()) => {
                    failures = 0;
                    failing.ended(Instant::now());
                    changed.notified().await;
                }
                Err(error) => {
                    failures += 1;
                    let delay = Backoff::per_watch().jittered(failures);
                    if let Some(repeated) = failing.failed(&error.to_string(), delay, Instant::now()) {
                        let what = "the inventory does not have the built-in providers yet";
                        tracing::warn!(%error, failures, repeated, "{what}");
                    }
                    tokio::time::sleep(delay).await;
                }
            }
        }
    });
}
