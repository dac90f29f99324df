//! Other programs that run providers which this process has controllers of: two of them would reconcile the same objects.
//!
//! A provider is run by another program if
//!
//! - a Deployment of the name and namespace of its releases wants replicas, whether they are ready or not, as they may come up at any time;
//! - or a webhook configuration of its name, or with its label `cluster.x-k8s.io/provider`, calls another server than this process.
//!
//! Labels of Deployments do not count: users of a namespace could stop this process with one. The Deployment that runs this process is none
//! of another program, so that it may take the place of the manager in a provider's own Deployment. The provider operator counts as a provider
//! here. What cannot be read is not known, and nothing starts then. What was decided at the start holds until the process ends, so it ends
//! when another decision is due.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::Value;
use tokio::sync::Notify;
use windlass_api_operator::{BUILT_IN, labels};
use windlass_cluster_cache::OwnPod;
use windlass_controller_runtime::{ApiClient, Cache, Cx, Dynamic, EventType, Repeats, Tasks, gvk_from};
use windlass_webhook::Target;

use crate::registry::controllers::{CONTROLLERS, ControllerInfo, OPERATOR};
use crate::{ManagerError, Selection};

/// The reason of events about what others run.
const REASON: &str = "ProviderOfAnotherProgram";
/// After a look that failed, the next one waits this long, in addition to events.
const AGAIN: Duration = Duration::from_secs(10);

/// Where the releases of a provider have their manager: the provider's label, the namespace and the Deployment.
///
/// The operator has two: that of its components, and that of its chart under the name of its documentation.
pub(crate) const PLACES: [(&str, &str, &str); 7] = [
    ("cluster-api", "capi-system", "capi-controller-manager"),
    (
        "bootstrap-kubeadm",
        "capi-kubeadm-bootstrap-system",
        "capi-kubeadm-bootstrap-controller-manager",
    ),
    (
        "control-plane-kubeadm",
        "capi-kubeadm-control-plane-system",
        "capi-kubeadm-control-plane-controller-manager",
    ),
    ("infrastructure-docker", "capd-system", "capd-controller-manager"),
    ("addon-helm", "caaph-system", "caaph-controller-manager"),
    (OPERATOR, "capi-operator-system", "capi-operator-controller-manager"),
    (OPERATOR, "capi-operator-system", "capi-operator-cluster-api-operator"),
];

/// The kinds of webhook configurations: kind, resource, and the part of the name.
pub(crate) const HOOKS: [(&str, &str, &str); 2] = [
    (
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "mutating",
    ),
    (
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "validating",
    ),
];
pub(crate) const HOOKS_VERSION: &str = "admissionregistration.k8s.io/v1";

/// The parts of this process in the cluster, which must not be taken for another program.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// The pod that it runs in, if it knows it.
    pub pod: Option<OwnPod>,
    /// How the API server reaches its webhooks, if it serves any.
    pub webhooks: Option<Target>,
}

/// A provider that another program runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The provider's label.
    label: &'static str,
    /// The objects that show it, and what they show.
    shown_by: Vec<(ObjectReference, String)>,
}

impl Found {
    /// What was found, in a sentence.
    fn sentence(&self) -> String {
        let provider = BUILT_IN.iter().find(|built_in| built_in.label() == self.label);
        let provider = provider.map(|built_in| format!("{} {}", built_in.type_, built_in.name));
        let provider = provider.unwrap_or_else(|| self.label.to_owned());
        let shown: Vec<&str> = self.shown_by.iter().map(|(_, shown)| shown.as_str()).collect();
        format!("another program runs the {provider}: {}", shown.join(", "))
    }
}

/// Looks for other programs that run providers of the selected controllers.
pub async fn look(client: &kube::Client, selection: &Selection, own: &Own) -> Result<Vec<Found>, ManagerError> {
    if !PLACES.iter().any(|(label, ..)| has(selection, label)) {
        return Ok(Vec::new());
    }
    let client = ApiClient::from(client);
    let read = async |url: &str, what: String| {
        let failed = |why: String| ManagerError::OthersUnknown { what, why };
        client.get_value(url).await.map_err(|error| failed(error.to_string()))
    };
    let mut hooks = Vec::new();
    for (kind, resource, _) in HOOKS {
        let list = read(&format!("/apis/{HOOKS_VERSION}/{resource}"), format!("{kind}s")).await?;
        let items = list.as_ref().and_then(|list| list["items"].as_array());
        hooks.extend(items.into_iter().flatten().map(|item| (kind, item.clone())));
    }
    let mut all = Vec::new();
    for (label, namespace, name) in PLACES.into_iter().filter(|(label, ..)| has(selection, label)) {
        let url = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
        let deployment = read(&url, format!("Deployment {namespace}/{name}")).await?;
        let shown_by: Vec<_> = deployment
            .iter()
            .filter_map(|deployment| manager(deployment, own))
            .chain(
                hooks
                    .iter()
                    .filter_map(|(kind, hook)| webhook(kind, hook, (label, name), own)),
            )
            .collect();
        if shown_by.is_empty() {
            continue;
        }
        // A provider may have several places.
        match all.iter_mut().find(|found: &&mut Found| found.label == label) {
            Some(found) => {
                let new = shown_by.into_iter().filter(|shown| !found.shown_by.contains(shown));
                let new: Vec<_> = new.collect();
                found.shown_by.extend(new);
            }
            None => all.push(Found { label, shown_by }),
        }
    }
    Ok(all)
}

/// Whether a controller of the provider is selected.
fn has(selection: &Selection, label: &str) -> bool {
    CONTROLLERS
        .iter()
        .any(|info| info.provider == label && selection.has(info.name))
}

/// A Deployment of another program.
fn manager(deployment: &Value, own: &Own) -> Option<(ObjectReference, String)> {
    let of = reference("apps/v1", "Deployment", deployment);
    let (namespace, name) = (of.namespace.clone()?, of.name.clone()?);
    let is_own = own.pod.as_ref().is_some_and(|pod| {
        pod.namespace == namespace && pod.name.strip_prefix(&name).is_some_and(|rest| rest.starts_with('-'))
    });
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let ready = deployment["status"]["readyReplicas"].as_i64().unwrap_or(0);
    let shown = format!("Deployment {namespace}/{name} wants {wanted} replicas, of which {ready} are ready");
    (!is_own && wanted > 0).then_some((of, shown))
}

/// A webhook configuration of another program for this provider.
fn webhook(kind: &str, hook: &Value, place: (&str, &str), own: &Own) -> Option<(ObjectReference, String)> {
    let of = reference(HOOKS_VERSION, kind, hook);
    let server = server(hook, place, own)?;
    let shown = format!("{kind} {} calls {server}", of.name.as_deref().unwrap_or_default());
    Some((of, shown))
}

/// The server that a webhook configuration of another program for this provider calls.
pub(crate) fn server(hook: &Value, (label, manager): (&str, &str), own: &Own) -> Option<String> {
    let prefix = manager.strip_suffix("controller-manager").unwrap_or(manager);
    let is_named = |part: &str| hook["metadata"]["name"] == format!("{prefix}{part}-webhook-configuration");
    let is_its =
        HOOKS.iter().any(|(_, _, part)| is_named(part)) || hook["metadata"]["labels"][labels::PROVIDER] == label;
    let calls = hook["webhooks"].as_array().into_iter().flatten();
    let mut others = calls
        .map(|call| &call["clientConfig"])
        .filter(|config| !is_to(config, own));
    let config = others.next().filter(|_| is_its)?;
    let text = |field: &str| config["service"][field].as_str().unwrap_or_default();
    Some(match config["url"].as_str() {
        Some(url) => url.to_owned(),
        None => format!("Service {}/{}", text("namespace"), text("name")),
    })
}

/// Whether a webhook configuration calls this process, and no other one.
pub(crate) fn calls(hook: &Value, own: &Own) -> bool {
    let calls = hook["webhooks"].as_array();
    calls.is_some_and(|calls| !calls.is_empty() && calls.iter().all(|call| is_to(&call["clientConfig"], own)))
}

/// Whether a webhook calls this process.
pub(crate) fn is_to(config: &Value, own: &Own) -> bool {
    match &own.webhooks {
        Some(Target::Service { namespace, name, .. }) => {
            config["service"]["namespace"] == namespace.as_str() && config["service"]["name"] == name.as_str()
        }
        _ => false,
    }
}

fn reference(api_version: &str, kind: &str, object: &Value) -> ObjectReference {
    let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
    ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(kind.to_owned()),
        namespace: text("namespace"),
        name: text("name"),
        uid: text("uid"),
        ..ObjectReference::default()
    }
}

/// What is decided at the start: which controllers run beside what others run.
#[derive(Clone, Debug)]
pub struct Decision {
    asked: Selection,
    found: Vec<Found>,
    takes_over: bool,
}

impl Decision {
    /// Looks, and decides. The controllers of providers that others run do not start, unless they are to be taken over.
    pub async fn make(
        client: &kube::Client,
        asked: Selection,
        own: &Own,
        takes_over: bool,
    ) -> Result<Self, ManagerError> {
        let found = match look(client, &asked, own).await {
            Err(error) if takes_over => {
                tracing::warn!(%error, "starts without knowing what others run (--take-over)");
                Vec::new()
            }
            found => found?,
        };
        let decision = Self {
            asked,
            found,
            takes_over,
        };
        if decision.runs().is_empty() {
            return Err(ManagerError::RunByOthers {
                found: decision.sentences(),
            });
        }
        for found in &decision.found {
            tracing::warn!("{}; {}", found.sentence(), decision.consequence());
        }
        Ok(decision)
    }

    /// The controllers that run.
    pub fn runs(&self) -> Selection {
        if self.takes_over {
            return self.asked.clone();
        }
        let is_run = |info: &ControllerInfo| self.found.iter().any(|found| found.label == info.provider);
        if self.found.is_empty() {
            return self.asked.clone();
        }
        self.asked.clone().without(is_run)
    }

    /// Whether controllers do not run because of what others run.
    pub fn yields(&self) -> bool {
        !self.takes_over && !self.found.is_empty()
    }

    /// Ok if everything runs that was asked for; else what does not, why, and what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.yields() {
            return Err(format!("{}; {}", self.sentences(), self.consequence()));
        }
        Ok(())
    }

    fn sentences(&self) -> String {
        let all: Vec<String> = self.found.iter().map(Found::sentence).collect();
        all.join("; ")
    }

    fn consequence(&self) -> &'static str {
        if self.takes_over {
            "its controllers start here all the same (--take-over): stop what is left of the other program, and delete its webhook \
             configurations, which refuse every write once nothing answers them"
        } else {
            "its controllers do not start here: scale its Deployment to 0 and delete its webhook configurations, or start with --take-over \
             if nothing of it runs, or name the controllers to run here with --controllers"
        }
    }

    /// Events about what shows that others run providers.
    pub fn tell(&self, cx: &Cx) {
        for found in &self.found {
            let message = format!("{}; {}", found.sentence(), self.consequence());
            for (about, _) in &found.shown_by {
                cx.event_about(about.clone(), EventType::Warning, REASON, message.as_str());
            }
        }
    }

    /// Resolves when another decision is due, with the reason. Never, if what others run is taken over. Watches what [`look`] reads.
    pub async fn overtaken(&self, client: &kube::Client, own: &Own) -> String {
        if self.takes_over || !PLACES.iter().any(|(label, ..)| has(&self.asked, label)) {
            return std::future::pending().await;
        }
        let tasks = Tasks::new();
        let changed = Arc::new(Notify::new());
        let _watches = self.watch(client, &tasks, &changed);
        let said = Repeats::default();
        loop {
            match look(client, &self.asked, own).await {
                Ok(found) if labels_of(&found) != labels_of(&self.found) => {
                    tasks.stop();
                    let now = Self { found, ..self.clone() };
                    return match now.check() {
                        Err(why) => why,
                        Ok(()) => "no other program runs these providers any more".to_owned(),
                    };
                }
                Ok(_) => changed.notified().await,
                Err(error) => {
                    if let Some(repeated) = said.line("", &error.to_string(), Instant::now()) {
                        tracing::warn!(%error, repeated, "what others run is not known at the moment");
                    }
                    // What was decided stays until it is known.
                    let _ = tokio::time::timeout(AGAIN, changed.notified()).await;
                }
            }
        }
    }

    /// Watches that tell of changes.
    fn watch(&self, client: &kube::Client, tasks: &Tasks, changed: &Arc<Notify>) -> Vec<Cache<Dynamic>> {
        let mut watches = Vec::new();
        for (kind, resource, _) in HOOKS {
            let url = format!("/apis/{HOOKS_VERSION}/{resource}");
            watches.push(Cache::stand_alone(
                client.clone(),
                url,
                gvk_from(HOOKS_VERSION, kind),
                tasks,
            ));
        }
        for (_, namespace, name) in PLACES.iter().filter(|(label, ..)| has(&self.asked, label)) {
            let url = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
            let gvk = gvk_from("apps/v1", "Deployment");
            watches.push(Cache::stand_alone_object(client.clone(), url, gvk, name, tasks));
        }
        for watch in &watches {
            let changed = changed.clone();
            watch.subscribe(move |_| changed.notify_one());
        }
        watches
    }
}

fn labels_of(found: &[Found]) -> Vec<&'static str> {
    found.iter().map(|found| found.label).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn own(webhooks: Option<&str>) -> Own {
        Own {
            pod: None,
            webhooks: webhooks.map(|service| Target::service(service).unwrap()),
        }
    }

    #[test]
    fn a_deployment_counts_while_it_wants_replicas() {
        let check = |replicas: Value, ready: i64, expect: bool| {
            let deployment = json!({
                "metadata": {"namespace": "capi-system", "name": "capi-controller-manager"},
                "spec": {"replicas": replicas}, "status": {"readyReplicas": ready},
            });
            assert_eq!(manager(&deployment, &Own::default()).is_some(), expect, "{deployment}");
        };
        check(json!(1), 1, true);
        check(json!(1), 0, true);
        check(Value::Null, 0, true);
        check(json!(0), 1, false);
    }

    #[test]
    fn a_webhook_configuration_counts_by_name_or_label_unless_it_calls_this_process() {
        let check = |name: &str, labels: Value, service: &str, expect: bool| {
            let hook = json!({
                "metadata": {"name": name, "labels": labels},
                "webhooks": [{"clientConfig": {"service": {"namespace": "ns", "name": service}}}],
            });
            let found = webhook(
                "ValidatingWebhookConfiguration",
                &hook,
                ("cluster-api", "capi-controller-manager"),
                &own(Some("ns/mine")),
            );
            assert_eq!(found.is_some(), expect, "{hook}");
        };
        let labelled = json!({"cluster.x-k8s.io/provider": "cluster-api"});
        check("capi-validating-webhook-configuration", Value::Null, "other", true);
        check(
            "capi-kubeadm-bootstrap-validating-webhook-configuration",
            Value::Null,
            "other",
            false,
        );
        check("mine", labelled.clone(), "other", true);
        check(
            "mine",
            json!({"cluster.x-k8s.io/provider": "infrastructure-aws"}),
            "other",
            false,
        );
        check("capi-validating-webhook-configuration", labelled, "mine", false);
        let none = json!({"metadata": {"name": "capi-validating-webhook-configuration"}, "webhooks": []});
        let of = ("cluster-api", "capi-controller-manager");
        assert_eq!(webhook("ValidatingWebhookConfiguration", &none, of, &own(None)), None);
    }

    #[test]
    fn the_role_of_a_manager_names_every_place() {
        let role = include_str!("../../../config/manager-role.yaml");
        for (_, _, name) in PLACES {
            assert!(role.contains(&format!("\n  - {name}\n")), "{name}");
        }
    }

    #[test]
    fn every_built_in_provider_has_a_place() {
        let mut labels: Vec<String> = PLACES.iter().map(|(label, ..)| (*label).to_owned()).collect();
        labels.retain(|label| label != OPERATOR);
        assert_eq!(labels, BUILT_IN.map(|built_in| built_in.label()));
    }
}
