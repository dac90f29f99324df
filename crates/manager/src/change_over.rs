//! The change of a management cluster from the managers of Cluster API to this program, and back: what is done of it, and what comes next.
//!
//! Nothing is stopped or started here. What was done is read from the management cluster each time, so that a user may stop between any two steps.
//!
//! The order keeps writes refused rather than unchecked: the webhooks of the managers that stopped refuse all writes until those of the other
//! side answer.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;
use windlass_controller_runtime::ApiClient;
use windlass_webhook::Target;

use crate::ManagerError;
use crate::others::{self, Own};
use crate::registry::kinds;

/// The managers of v1.14 that this program replaces: namespace, Deployment, Lease, and what `clusterctl generate provider` calls the provider.
const MANAGERS: [(&str, &str, &str, &str); 3] = [
    (
        "capi-system",
        "capi-controller-manager",
        "controller-leader-election-capi",
        "--core cluster-api",
    ),
    (
        "capi-kubeadm-bootstrap-system",
        "capi-kubeadm-bootstrap-controller-manager",
        "kubeadm-bootstrap-manager-leader-election-capi",
        "--bootstrap kubeadm",
    ),
    (
        "capi-kubeadm-control-plane-system",
        "capi-kubeadm-control-plane-controller-manager",
        "kubeadm-control-plane-manager-leader-election-capi",
        "--control-plane kubeadm",
    ),
];

/// Managers beside those of v1.14 whose controllers this program has, too: namespace, Deployment, Lease, and what installs them with their
/// webhooks. They are not always there.
const OPTIONAL: [(&str, &str, &str, &str); 4] = [
    (
        "caaph-system",
        "caaph-controller-manager",
        "5a2dee3e.cluster.x-k8s.io",
        "clusterctl generate provider --addon helm:VERSION | kubectl apply --server-side --force-conflicts --filename -",
    ),
    (
        "capd-system",
        "capd-controller-manager",
        "controller-leader-election-capd",
        "clusterctl generate provider --infrastructure docker:VERSION | kubectl apply --server-side --force-conflicts --filename -",
    ),
    (
        "capi-operator-system",
        "capi-operator-controller-manager",
        "controller-leader-election-capi-operator",
        "kubectl apply --server-side --force-conflicts --filename operator-components.yaml",
    ),
    (
        "capi-operator-system",
        "capi-operator-cluster-api-operator",
        "controller-leader-election-capi-operator",
        "helm upgrade capi-operator capi-operator/cluster-api-operator --namespace capi-operator-system",
    ),
];

/// How long a Lease lasts that does not say it.
const LEASE: SignedDuration = SignedDuration::from_secs(15);

/// A step of a change-over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What is to be done.
    pub title: String,
    /// Whether it is.
    pub state: State,
    /// What shows that it is not done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown_by: Vec<String>,
    /// The commands that do it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// The state of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// It is done.
    Done,
    /// It is the next one.
    Next,
    /// It comes after the next one.
    Later,
}

/// A manager of Cluster API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Manager {
    namespace: String,
    name: String,
    wanted: i64,
    running: i64,
    /// Who holds its Lease.
    holder: Option<String>,
}

impl Manager {
    /// What installs it, if it is one that is not always there.
    fn installed_by(&self) -> Option<&'static str> {
        let of = OPTIONAL
            .iter()
            .find(|(namespace, name, ..)| (*namespace, *name) == (&*self.namespace, &*self.name));
        of.map(|(.., command)| *command)
    }
}

/// What counts of a management cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    managers: Vec<Manager>,
    /// Webhook configurations that call servers of those managers.
    hooks: Vec<Hook>,
    /// Definitions of our kinds that are converted elsewhere.
    converted_elsewhere: Vec<String>,
    /// Who holds the Lease of this program.
    holder: Option<String>,
    /// Our webhook configurations.
    own_hooks: Vec<Hook>,
}

/// A webhook configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hook {
    resource: &'static str,
    name: String,
    /// What it calls.
    server: String,
    /// It belongs to a manager that every management cluster has.
    is_core: bool,
}

/// Where this program runs, or will.
#[derive(Clone, Debug)]
pub struct Place {
    /// The Service of its webhooks, as `NAMESPACE/NAME[:PORT]`.
    pub webhooks: String,
    /// The namespace and name of its Lease.
    pub lease: (String, String),
}

impl Scene {
    /// Whether the managers of Cluster API were stopped, or are none.
    pub fn is_begun(&self) -> bool {
        self.managers.iter().all(|manager| manager.wanted == 0)
    }

    /// Reads a management cluster.
    pub async fn read(client: &kube::Client, place: &Place, now: Timestamp) -> Result<Self, ManagerError> {
        let client = ApiClient::from(client);
        let get = async |url: String, what: String| {
            let failed = |why: String| ManagerError::OthersUnknown { what, why };
            client.get_value(&url).await.map_err(|error| failed(error.to_string()))
        };
        let own = Own {
            pod: None,
            webhooks: Target::service(&place.webhooks).ok(),
        };
        let lease = async |(namespace, name): (&str, &str)| {
            let url = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
            let lease = get(url, format!("Lease {namespace}/{name}")).await?;
            Ok::<_, ManagerError>(lease.as_ref().and_then(|lease| holder(lease, now)))
        };
        let mut scene = Self {
            holder: lease((&place.lease.0, &place.lease.1)).await?,
            ..Self::default()
        };
        for (namespace, name, election, _) in MANAGERS.into_iter().chain(OPTIONAL) {
            let url = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
            let Some(deployment) = get(url, format!("Deployment {namespace}/{name}")).await? else {
                continue;
            };
            scene.managers.push(Manager {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                wanted: deployment["spec"]["replicas"].as_i64().unwrap_or(1),
                running: deployment["status"]["replicas"].as_i64().unwrap_or(0),
                holder: lease((namespace, election)).await?,
            });
        }
        for (kind, resource, _) in others::HOOKS {
            let url = format!("/apis/{}/{resource}", others::HOOKS_VERSION);
            let list = get(url, format!("{kind}s")).await?;
            let items = list.as_ref().and_then(|list| list["items"].as_array());
            for item in items.into_iter().flatten() {
                let hook = |server: String, is_core: bool| Hook {
                    resource,
                    name: item["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                    server,
                    is_core,
                };
                if others::calls(item, &own) {
                    scene.own_hooks.push(hook(place.webhooks.clone(), true));
                }
                let mut servers = others::PLACES.iter().filter_map(|(label, _, manager)| {
                    let is_core = MANAGERS.iter().any(|(_, ours, ..)| ours == manager);
                    Some((others::server(item, (label, manager), &own)?, is_core))
                });
                scene
                    .hooks
                    .extend(servers.next().map(|(server, is_core)| hook(server, is_core)));
            }
        }
        for name in kinds::converted_crds() {
            let url = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            let Some(definition) = get(url, format!("CustomResourceDefinition {name}")).await? else {
                continue;
            };
            let config = &definition["spec"]["conversion"]["webhook"]["clientConfig"];
            if config.is_object() && !others::is_to(config, &own) {
                scene.converted_elsewhere.push(name);
            }
        }
        Ok(scene)
    }
}

/// Who holds a Lease.
fn holder(lease: &Value, now: Timestamp) -> Option<String> {
    let spec = &lease["spec"];
    let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?;
    let renewed: Timestamp = spec["renewTime"].as_str()?.parse().ok()?;
    let lasts = spec["leaseDurationSeconds"]
        .as_i64()
        .map_or(LEASE, SignedDuration::from_secs);
    let ends = renewed.checked_add(lasts).ok()?;
    (now < ends).then(|| holder.to_owned())
}

/// The steps to this program. `differences` is what a trial says would change.
pub fn take_over(scene: &Scene, differences: Option<String>, place: &Place) -> Vec<Step> {
    let mut steps = Steps::default();
    steps.add(
        "see that nothing changes",
        differences.filter(|_| !scene.is_begun()).into_iter().collect(),
        vec!["windlass adopt".to_owned()],
    );
    let wanting = || scene.managers.iter().filter(|manager| manager.wanted > 0);
    let stop = wanting().map(|Manager { namespace, name, .. }| {
        format!("kubectl --namespace {namespace} scale deployment {name} --replicas 0")
    });
    let shown = wanting().map(|manager| {
        let Manager {
            namespace,
            name,
            wanted,
            ..
        } = manager;
        format!("Deployment {namespace}/{name} wants {wanted} replicas")
    });
    steps.add("stop the managers of Cluster API", shown.collect(), stop.collect());
    steps.add("wait until they have ended", running(scene), Vec::new());
    let is_missing = scene.holder.is_none() || scene.own_hooks.is_empty();
    let shown = is_missing.then(|| "no process holds the Lease, or its webhook configurations are missing".to_owned());
    steps.add(
        "start Windlass",
        shown.into_iter().collect(),
        vec![format!(
            "windlass manager --take-over --install-crds --webhook-address 0.0.0.0:9443 --webhook-service {}",
            place.webhooks
        )],
    );
    steps.add(
        "delete the webhook configurations of the old managers, which refuse writes until then",
        scene
            .hooks
            .iter()
            .map(|hook| format!("{} calls {}", hook.name, hook.server))
            .collect(),
        deletions(&scene.hooks),
    );
    let shown = scene
        .converted_elsewhere
        .iter()
        .map(|name| format!("{name} is converted by another server"));
    steps.add(
        "have older versions converted by Windlass",
        shown.collect(),
        vec!["windlass crds | kubectl apply --server-side --force-conflicts --filename -".to_owned()],
    );
    steps.0
}

/// The steps back to the managers of Cluster API.
pub fn way_back(scene: &Scene) -> Vec<Step> {
    let mut steps = Steps::default();
    let holder = scene.holder.iter().map(|holder| format!("{holder} holds the Lease"));
    steps.add("stop all processes of windlass manager", holder.collect(), Vec::new());
    let mut managers = scene.managers.iter();
    let is_wanted = managers.any(|manager| manager.installed_by().is_none() && manager.wanted > 0);
    let mut missing = Vec::new();
    if !is_wanted || !scene.hooks.iter().any(|hook| hook.is_core) {
        missing.push("no manager of Cluster API is wanted, or its webhook configurations are missing".to_owned());
    }
    let core = MANAGERS.map(|(.., provider)| {
        format!(
            "clusterctl generate provider {provider}:VERSION | kubectl apply --server-side --force-conflicts --filename -"
        )
    });
    // Whether these ran before is not known.
    let optional = scene
        .managers
        .iter()
        .filter_map(Manager::installed_by)
        .map(str::to_owned);
    let start = core.into_iter().chain(optional).collect();
    steps.add(
        "start the managers of Cluster API, with their definitions and webhooks",
        missing,
        start,
    );
    let wanted = scene.managers.iter();
    let wanted = wanted.filter(|manager| manager.installed_by().is_none() || manager.wanted > 0);
    let waiting = wanted.filter(|manager| manager.holder.is_none());
    let shown = waiting.map(|Manager { namespace, name, .. }| format!("no pod of {namespace}/{name} holds its Lease"));
    steps.add("wait until they lead", shown.collect(), Vec::new());
    steps.add(
        "delete the webhook configurations of Windlass, which refuse writes until then",
        scene
            .own_hooks
            .iter()
            .map(|hook| format!("{} is there", hook.name))
            .collect(),
        deletions(&scene.own_hooks),
    );
    steps.0
}

/// Pods and Leases of managers that are to end.
fn running(scene: &Scene) -> Vec<String> {
    let mut shown = Vec::new();
    for Manager {
        namespace,
        name,
        running,
        holder,
        ..
    } in &scene.managers
    {
        if *running > 0 {
            shown.push(format!("Deployment {namespace}/{name} has {running} pods"));
        }
        if let Some(holder) = holder {
            shown.push(format!("{holder} holds the Lease of {namespace}/{name}"));
        }
    }
    shown
}

fn deletions(hooks: &[Hook]) -> Vec<String> {
    let delete = |hook: &Hook| format!("kubectl delete {} {}", hook.resource, hook.name);
    hooks.iter().map(delete).collect()
}

#[derive(Default)]
struct Steps(Vec<Step>);

impl Steps {
    /// Adds a step; it is done if nothing shows that it is not, and those before it are.
    fn add(&mut self, title: &str, shown_by: Vec<String>, commands: Vec<String>) {
        let is_open = self.0.iter().any(|step| step.state != State::Done);
        let state = match (is_open, shown_by.is_empty()) {
            (false, true) => State::Done,
            (false, false) => State::Next,
            (true, _) => State::Later,
        };
        self.0.push(Step {
            title: title.to_owned(),
            state,
            shown_by,
            commands: if state == State::Done { Vec::new() } else { commands },
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place() -> Place {
        Place {
            webhooks: "windlass-system/windlass-webhook".to_owned(),
            lease: ("default".to_owned(), "windlass-manager".to_owned()),
        }
    }

    fn hook(resource: &'static str, name: &str, server: &str) -> Hook {
        Hook {
            resource,
            name: name.to_owned(),
            server: server.to_owned(),
            is_core: true,
        }
    }

    /// A management cluster that v1.14 runs.
    fn upstream() -> Scene {
        let manager = |(namespace, name, ..): (&str, &str, &str, &str)| Manager {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            wanted: 1,
            running: 1,
            holder: Some("pod".to_owned()),
        };
        let server = "Service capi-system/x";
        Scene {
            managers: MANAGERS.map(manager).into(),
            hooks: vec![
                hook(
                    "mutatingwebhookconfigurations",
                    "capi-mutating-webhook-configuration",
                    server,
                ),
                hook(
                    "validatingwebhookconfigurations",
                    "capi-validating-webhook-configuration",
                    server,
                ),
            ],
            converted_elsewhere: vec!["clusters.cluster.x-k8s.io".to_owned()],
            ..Scene::default()
        }
    }

    fn next(steps: &[Step]) -> Option<&Step> {
        let next: Vec<&Step> = steps.iter().filter(|step| step.state == State::Next).collect();
        assert!(next.len() <= 1, "{steps:?}");
        let open = steps
            .iter()
            .position(|step| step.state != State::Done)
            .unwrap_or(steps.len());
        assert!(
            steps[open..].iter().skip(1).all(|step| step.state == State::Later),
            "{steps:?}"
        );
        next.first().copied()
    }

    #[test]
    fn the_steps_follow_what_is_done() {
        let place = place();
        let mut scene = upstream();
        let expect = |scene: &Scene, differences: Option<&str>, title: &str| {
            let steps = take_over(scene, differences.map(str::to_owned), &place);
            let next = next(&steps).unwrap_or_else(|| panic!("{steps:?}"));
            assert!(next.title.starts_with(title), "{next:?}");
            next.commands.clone()
        };
        expect(&scene, Some("2 objects would change"), "see that nothing");
        assert_eq!(expect(&scene, None, "stop the managers").len(), 3);
        for manager in &mut scene.managers {
            manager.wanted = 0;
        }
        // What is found now cannot hold it back any more.
        expect(&scene, Some("the API server refuses writes"), "wait until");
        for manager in &mut scene.managers {
            manager.running = 0;
        }
        expect(&scene, None, "wait until");
        for manager in &mut scene.managers {
            manager.holder = None;
        }
        expect(&scene, None, "start Windlass");
        scene.holder = Some("host".to_owned());
        scene.own_hooks = vec![
            hook(
                "mutatingwebhookconfigurations",
                "windlass-mutating-webhook-configuration",
                "",
            ),
            hook(
                "validatingwebhookconfigurations",
                "windlass-validating-webhook-configuration",
                "",
            ),
        ];
        let deletions = expect(&scene, None, "delete the webhook");
        assert_eq!(
            deletions[1],
            "kubectl delete validatingwebhookconfigurations capi-validating-webhook-configuration"
        );
        scene.hooks.clear();
        expect(&scene, None, "have older versions");
        scene.converted_elsewhere.clear();
        let steps = take_over(&scene, None, &place);
        assert!(
            next(&steps).is_none() && steps.iter().all(|step| step.commands.is_empty()),
            "{steps:?}"
        );

        let back = |scene: &Scene, title: &str| {
            let steps = way_back(scene);
            let next = next(&steps).unwrap_or_else(|| panic!("{steps:?}"));
            assert!(next.title.starts_with(title), "{next:?}");
            next.commands.clone()
        };
        back(&scene, "stop all processes");
        scene.holder = None;
        assert_eq!(back(&scene, "start the managers").len(), 3);
        let Scene { managers, hooks, .. } = upstream();
        scene.managers = managers;
        scene.hooks = hooks;
        scene.managers[2].holder = None;
        back(&scene, "wait until they lead");
        // A manager that was stopped with the others is named, and holds nothing up, as it may have been stopped before.
        scene.managers.push(Manager {
            namespace: "caaph-system".to_owned(),
            name: "caaph-controller-manager".to_owned(),
            ..Manager::default()
        });
        back(&scene, "wait until they lead");
        let hooks = std::mem::take(&mut scene.hooks);
        scene.hooks.extend(hooks.first().map(|hook| Hook {
            is_core: false,
            ..hook.clone()
        }));
        let start = back(&scene, "start the managers");
        assert!(
            start[3].starts_with("clusterctl generate provider --addon helm:VERSION"),
            "{start:?}"
        );
        scene.hooks = hooks;
        scene.managers.pop();
        scene.managers[2].holder = Some("pod".to_owned());
        let deletions = back(&scene, "delete the webhook");
        assert_eq!(
            deletions[0],
            "kubectl delete mutatingwebhookconfigurations windlass-mutating-webhook-configuration"
        );
        scene.own_hooks.clear();
        assert!(next(&way_back(&scene)).is_none());
    }

    #[test]
    fn a_lease_is_held_until_it_ends() {
        let now: Timestamp = "2026-01-01T00:00:20Z".parse().unwrap();
        let check = |holder_: &str, renewed: &str, expect: bool| {
            let lease = json!({"spec": {"holderIdentity": holder_, "renewTime": renewed, "leaseDurationSeconds": 15}});
            assert_eq!(holder(&lease, now).is_some(), expect, "{lease}");
        };
        check("a", "2026-01-01T00:00:06.000000Z", true);
        check("a", "2026-01-01T00:00:05.000000Z", false);
        check("", "2026-01-01T00:00:06.000000Z", false);
        check("a", "", false);
    }
}
