//! Installs the CustomResourceDefinitions into an API server.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_controller_runtime::{Cache, Dynamic, Tasks, gvk_from};

use crate::registry::kinds::converted_crds;

/// The field manager of CRDs.
pub const MANAGER: &str = "windlass";
/// Timeout until a server has established the CRDs.
const ESTABLISH: Duration = Duration::from_mins(1);
/// Number of CRDs that are applied concurrently.
const AT_A_TIME: usize = 8;

/// Errors of the installation of CRDs.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The server refused, or did not answer.
    #[error("cannot {verb} {what}")]
    Request {
        /// The operation that failed.
        verb: &'static str,
        /// The object.
        what: String,
        /// The server's error.
        #[source]
        source: Box<kube::Error>,
    },
    /// The server did not establish them.
    #[error("the API server has not established these definitions after {} s: {}", ESTABLISH.as_secs(), names.join(", "))]
    NotEstablished {
        /// Their names, with the reason where the server gives one.
        names: Vec<String>,
    },
}

fn definitions(client: &kube::Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let resource = ApiResource::from_gvk_with_plural(&kind, "customresourcedefinitions");
    Api::all_with(client.clone(), &resource)
}

fn name(definition: &Value) -> &str {
    definition["metadata"]["name"].as_str().unwrap_or_default()
}

/// Where objects of our kinds are converted between their versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// In the process of the server.
    InProcess,
    /// By a webhook. Until one is set up, only the storage versions are served.
    Webhook,
}

fn has_webhook(definition: &Value) -> bool {
    definition["spec"]["conversion"]["strategy"] == "Webhook"
}

/// A CRD for a server that may have it already.
fn adapted(want: &Value, have: Option<&Value>, conversion: Conversion) -> Value {
    let mut want = want.clone();
    if !converted_crds().contains(name(&want)) {
        return want;
    }
    match (conversion, have.filter(|have| has_webhook(have))) {
        (Conversion::InProcess, _) => want["spec"]["conversion"] = json!({"strategy": "None"}),
        // What is set up stays. The webhook server keeps it right.
        (Conversion::Webhook, Some(_)) => {}
        (Conversion::Webhook, None) => {
            for version in want["spec"]["versions"].as_array_mut().into_iter().flatten() {
                version["served"] = version["storage"].clone();
            }
        }
    }
    want
}

/// Whether a stored CRD is up to date: the same spec, except for server defaults, and our labels. A CRD whose conversion is unset
/// takes any by webhook.
fn is_current(want: &Value, have: &Value) -> bool {
    let (mut spec, mut stored) = (want["spec"].clone(), have["spec"].clone());
    if want["spec"].get("conversion").is_none() && has_webhook(have) && converted_crds().contains(name(want)) {
        spec["conversion"] = stored["conversion"].clone();
    }
    for spec in [&mut spec, &mut stored] {
        if spec.get("conversion").is_none() {
            spec["conversion"] = json!({"strategy": "None"});
        }
    }
    let labels = want["metadata"]["labels"].as_object();
    spec == stored
        && labels
            .into_iter()
            .flatten()
            .all(|(key, value)| have["metadata"]["labels"].get(key) == Some(value))
}

/// Checks that the server serves the kind of a CRD; the error is the reason.
fn established(definition: &Value) -> Result<(), String> {
    let conditions = definition["status"]["conditions"].as_array();
    let of = |kind: &str| conditions.into_iter().flatten().find(|c| c["type"] == kind).cloned();
    if of("Established").is_some_and(|c| c["status"] == "True") {
        return Ok(());
    }
    let refused = of("NamesAccepted").filter(|c| c["status"] == "False");
    Err(refused
        .and_then(|c| Some(c["message"].as_str()?.to_owned()))
        .unwrap_or_default())
}

/// Applies CRDs that are missing or differ, with server-side apply, and waits until the server serves all of them.
/// Returns the names of the applied ones.
pub async fn install(
    client: &kube::Client,
    wanted: &[Value],
    conversion: Conversion,
) -> Result<Vec<String>, InstallError> {
    let api = definitions(client);
    let stored = stored(&api).await?;
    let adapted = wanted
        .iter()
        .map(|want| adapted(want, stored.get(name(want)), conversion));
    let wanted = &adapted.collect::<Vec<Value>>();
    let stale: Vec<&Value> = wanted
        .iter()
        .filter(|want| !stored.get(name(want)).is_some_and(|have| is_current(want, have)))
        .collect();
    let parameters = PatchParams::apply(MANAGER).force();
    let requests = stale
        .iter()
        .map(|want| send(&api, want, stored.get(name(want)), &parameters));
    let requests: Vec<_> = requests.collect();
    futures::stream::iter(requests)
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<()>>()
        .await?;
    let all_served = stale.is_empty()
        && wanted
            .iter()
            .all(|want| stored.get(name(want)).is_some_and(|have| established(have).is_ok()));
    if !all_served {
        wait_established(client, wanted).await?;
    }
    Ok(stale.iter().map(|want| name(want).to_owned()).collect())
}

async fn send(
    api: &Api<DynamicObject>,
    want: &Value,
    have: Option<&Value>,
    parameters: &PatchParams,
) -> Result<(), InstallError> {
    let failed = |source| InstallError::Request {
        verb: "apply",
        what: format!("CustomResourceDefinition {}", name(want)),
        source: Box::new(source),
    };
    if have.is_some_and(has_webhook) && want["spec"].get("conversion").is_some_and(|_| !has_webhook(want)) {
        // An apply would leave the fields of the webhook, which another manager has set, and no server takes them without it.
        let without = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
        let patched = api
            .patch(name(want), &PatchParams::default(), &Patch::Merge(without))
            .await;
        patched.map_err(failed)?;
    }
    let applied = api.patch(name(want), parameters, &Patch::Apply(want)).await;
    applied.map(drop).map_err(failed)
}

/// The names of CRDs that a server lacks.
pub async fn missing(client: &kube::Client, wanted: &[Value]) -> Result<Vec<String>, InstallError> {
    let stored = stored(&definitions(client)).await?;
    let names = wanted.iter().map(name).filter(|name| !stored.contains_key(*name));
    Ok(names.map(str::to_owned).collect())
}

async fn stored(api: &Api<DynamicObject>) -> Result<BTreeMap<String, Value>, InstallError> {
    let failed = |source: kube::Error| InstallError::Request {
        verb: "list",
        what: "CustomResourceDefinitions".to_owned(),
        source: Box::new(source),
    };
    let list = api.list(&ListParams::default()).await.map_err(failed)?;
    let values = list.items.into_iter().filter_map(|item| {
        let value = serde_json::to_value(item).ok()?;
        Some((name(&value).to_owned(), value))
    });
    Ok(values.collect())
}

async fn wait_established(client: &kube::Client, wanted: &[Value]) -> Result<(), InstallError> {
    let mut waiting: BTreeMap<String, String> = wanted
        .iter()
        .map(|want| (name(want).to_owned(), String::new()))
        .collect();
    let tasks = Tasks::default();
    let gvk = gvk_from("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let stored = Cache::<Dynamic>::stand_alone(client.clone(), url, gvk, &tasks);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    stored.subscribe(move |change| {
        if let Some(definition) = &change.new {
            // Once all are established, the receiver is gone.
            let _ = tell.send(definition.clone());
        }
    });
    let waited = tokio::time::timeout(ESTABLISH, async {
        while let Some(definition) = told.recv().await {
            match established(definition.value()) {
                Ok(()) => drop(waiting.remove(definition.name())),
                Err(why) => {
                    if let Some(known) = waiting.get_mut(definition.name()) {
                        *known = why;
                    }
                }
            }
            if waiting.is_empty() {
                return;
            }
        }
    });
    let in_time = waited.await.is_ok();
    tasks.stop();
    if in_time && waiting.is_empty() {
        return Ok(());
    }
    let names: BTreeSet<String> = waiting
        .into_iter()
        .map(|(name, why)| {
            if why.is_empty() {
                name
            } else {
                format!("{name} ({why})")
            }
        })
        .collect();
    Err(InstallError::NotEstablished {
        names: names.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_sent_only_when_it_differs() {
        let mut all = crate::registry::kinds::all_crds().into_iter();
        let want = all.find(|crd| !converted_crds().contains(name(crd))).unwrap();
        let check = |change: fn(&mut Value), expect: bool| {
            let mut have = want.clone();
            have["status"] = json!({});
            change(&mut have);
            assert_eq!(is_current(&want, &have), expect, "{have}");
        };
        check(|_| {}, true);
        check(|have| have["spec"]["conversion"] = json!({"strategy": "None"}), true);
        check(
            |have| have["spec"]["conversion"] = json!({"strategy": "Webhook"}),
            false,
        );
        check(|have| have["metadata"]["labels"]["mine"] = json!("1"), true);
        check(|have| have["metadata"]["labels"] = json!({}), false);
        check(|have| have["spec"]["versions"] = json!([]), false);
    }

    #[test]
    fn older_versions_are_served_where_they_are_converted() {
        let mut all = crate::registry::kinds::all_crds().into_iter();
        let want = all
            .find(|crd| name(crd) == "machinedrainrules.cluster.x-k8s.io")
            .unwrap();
        let served = |definition: &Value| -> Vec<bool> {
            let versions = definition["spec"]["versions"].as_array().unwrap().iter();
            versions.map(|version| version["served"] == true).collect()
        };
        let mut by_webhook = want.clone();
        by_webhook["spec"]["conversion"] =
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}});
        let check = |have: Option<&Value>, conversion: Conversion, expect: &[bool], needs_write: bool| {
            let adapted = adapted(&want, have, conversion);
            assert_eq!(served(&adapted), expect);
            assert_eq!(have.is_none_or(|have| !is_current(&adapted, have)), needs_write);
        };
        check(None, Conversion::InProcess, &[true, true], true);
        check(Some(&want), Conversion::InProcess, &[true, true], false);
        check(Some(&by_webhook), Conversion::InProcess, &[true, true], true);
        check(None, Conversion::Webhook, &[false, true], true);
        check(Some(&want), Conversion::Webhook, &[false, true], true);
        check(Some(&by_webhook), Conversion::Webhook, &[true, true], false);
    }

    #[test]
    fn a_taken_name_is_reported() {
        let check = |conditions: Value, expect: Result<(), &str>| {
            let definition = json!({"status": {"conditions": conditions}});
            assert_eq!(established(&definition), expect.map_err(str::to_owned));
        };
        check(json!([{"type": "Established", "status": "True"}]), Ok(()));
        check(json!([{"type": "Established", "status": "False"}]), Err(""));
        check(
            json!([{"type": "NamesAccepted", "status": "False", "message": "taken"}]),
            Err("taken"),
        );
    }
}
