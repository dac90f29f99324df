//! A replacement for the Deployment controller and kubelets: it sets the status of Deployments, without ReplicaSets and Pods. No
//! server of a test runs pods: the embedded server has no such controllers, and the real one is started without them.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The field manager of the statuses.
pub const KUBELET: &str = "kubelet-stand-in";
/// Delay before a refused write is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// The simulated state of a Deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// All its pods are available at once.
    #[default]
    Runs,
    /// Its pods exist, but are not available.
    IsHeld,
    /// [`Self::IsHeld`], and its progress deadline has passed.
    Fails,
}

/// Selects Deployments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    key: Option<(String, String)>,
    image: Option<String>,
}

impl Which {
    /// Selects all.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects by name, also a Deployment that is created later or again.
    pub fn named(namespace: &str, name: &str) -> Self {
        Self {
            key: Some((namespace.to_owned(), name.to_owned())),
            image: None,
        }
    }

    /// Only with an image that contains this text, such as a version.
    #[must_use]
    pub fn with_image(mut self, part: &str) -> Self {
        self.image = Some(part.to_owned());
        self
    }

    fn is(&self, deployment: &Deployment) -> bool {
        let is_named = self.key.as_ref().is_none_or(|(namespace, name)| {
            deployment.namespace().as_ref() == Some(namespace) && deployment.name_any() == *name
        });
        let spec = deployment.spec.template.spec.as_ref();
        let mut images = spec.into_iter().flat_map(|spec| &spec.containers);
        let has_image =
            |part: &String| images.any(|container| container.image.as_ref().is_some_and(|i| i.contains(part)));
        is_named && self.image.as_ref().is_none_or(has_image)
    }
}

/// The running replacement; it ends when dropped, and leaves statuses as they are.
#[derive(Debug)]
pub struct Deployments {
    rules: watch::Sender<Vec<(Which, Fate)>>,
    task: JoinHandle<()>,
}

impl Drop for Deployments {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Deployments {
    /// Starts to run all Deployments of a server, existing and future ones. Needs a tokio runtime.
    pub fn run(client: kube::Client) -> Self {
        let (rules, told) = watch::channel(Vec::new());
        Self {
            rules,
            task: tokio::spawn(drive(Api::all(client.clone()), client, told)),
        }
    }

    /// Sets the simulated state of the selected Deployments. The latest setting of a Deployment wins; those without a setting
    /// run.
    pub fn let_them(&self, which: Which, fate: Fate) {
        self.rules.send_modify(|rules| rules.push((which, fate)));
    }
}

/// Updates each Deployment when it changes, and all of them when the rules do.
async fn drive(api: Api<Deployment>, client: kube::Client, mut rules: watch::Receiver<Vec<(Which, Fate)>>) {
    let mut known: BTreeMap<(String, String), Deployment> = BTreeMap::new();
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    let mut failed = false;
    loop {
        let looks = tokio::select! {
            event = events.next() => match event {
                Some(Ok(watcher::Event::Init)) => {
                    known.clear();
                    Vec::new()
                }
                Some(Ok(watcher::Event::Apply(deployment) | watcher::Event::InitApply(deployment))) => {
                    let key = key(&deployment);
                    known.insert(key.clone(), deployment);
                    vec![key]
                }
                Some(Ok(watcher::Event::Delete(deployment))) => {
                    known.remove(&key(&deployment));
                    Vec::new()
                }
                Some(Ok(watcher::Event::InitDone) | Err(_)) => Vec::new(),
                None => return,
            },
            changed = rules.changed() => match changed {
                Ok(()) => known.keys().cloned().collect(),
                Err(_) => return,
            },
            () = tokio::time::sleep(AGAIN), if failed => known.keys().cloned().collect(),
        };
        let rules = rules.borrow().clone();
        if !looks.is_empty() {
            failed = false;
        }
        for deployment in looks.iter().filter_map(|key| known.get(key)) {
            let rule = rules.iter().rev().find(|(which, _)| which.is(deployment));
            let fate = rule.map(|(_, fate)| *fate).unwrap_or_default();
            failed |= !settle(&client, deployment, fate).await;
        }
    }
}

fn key(deployment: &Deployment) -> (String, String) {
    (deployment.namespace().unwrap_or_default(), deployment.name_any())
}

/// Writes the status of a Deployment unless it is correct; false if the write is to be tried again.
async fn settle(client: &kube::Client, deployment: &Deployment, fate: Fate) -> bool {
    let Some(status) = status(deployment, fate, Timestamp::now()) else {
        return true;
    };
    let (namespace, name) = key(deployment);
    let body = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        // A new object of the same name must not be written to.
        "metadata": {"name": name, "namespace": namespace, "uid": deployment.uid()},
        "status": status,
    });
    let api: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let parameters = PatchParams::apply(KUBELET).force();
    match api.patch_status(&name, &parameters, &Patch::Apply(&body)).await {
        Ok(_) => true,
        Err(kube::Error::Api(refused)) => matches!(refused.code, 404 | 409),
        Err(_) => false,
    }
}

/// The desired status of a Deployment; `None` if it is correct.
fn status(deployment: &Deployment, fate: Fate, now: Timestamp) -> Option<Value> {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let up = fate == Fate::Runs || wanted == 0;
    let mut status = json!({"observedGeneration": deployment.metadata.generation});
    // Zeros are omitted.
    let mut count = |field: &str, number: i32| {
        if number > 0 {
            status[field] = json!(number);
        }
    };
    count("replicas", wanted);
    count("updatedReplicas", wanted);
    count(if up { "availableReplicas" } else { "unavailableReplicas" }, wanted);
    count("readyReplicas", if up { wanted } else { 0 });
    let name = deployment.name_any();
    let (available, progressing) = match fate {
        _ if up => (
            [
                "True",
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.",
            ],
            ["True", "NewReplicaSetAvailable", "has successfully progressed."],
        ),
        Fate::Fails => (
            UNAVAILABLE,
            ["False", "ProgressDeadlineExceeded", "has timed out progressing."],
        ),
        _ => (UNAVAILABLE, ["True", "ReplicaSetUpdated", "is progressing."]),
    };
    let message = format!("ReplicaSet \"{name}-0\" {}", progressing[2]);
    let old = serde_json::to_value(&deployment.status).unwrap_or_default();
    let [s, reason, _] = progressing;
    status["conditions"] = json!([
        condition("Available", available, &old, now),
        condition("Progressing", [s, reason, &message], &old, now),
    ]);
    (status != old).then_some(status)
}

const UNAVAILABLE: [&str; 3] = [
    "False",
    "MinimumReplicasUnavailable",
    "Deployment does not have minimum availability.",
];

/// A condition with the times of the old one if the status is the same.
fn condition(kind: &str, [status, reason, message]: [&str; 3], old: &Value, now: Timestamp) -> Value {
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut known = old["conditions"].as_array().into_iter().flatten();
    let known = known.find(|known| known["type"] == kind).unwrap_or(&Value::Null);
    let time = |field: &str, is_same: bool| {
        let kept = known[field].as_str().filter(|_| is_same);
        kept.map_or_else(|| now.clone(), str::to_owned)
    };
    let is_same = known["status"] == status;
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": time("lastTransitionTime", is_same),
        "lastUpdateTime": time("lastUpdateTime", is_same && known["reason"] == reason && known["message"] == message),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(replicas: i32, status: &Value) -> Deployment {
        let object = json!({
            "metadata": {"name": "d", "namespace": "n", "generation": 3},
            "spec": {
                "replicas": replicas, "selector": {},
                "template": {"spec": {"containers": [{"name": "c", "image": "i:v1.2.0"}]}},
            },
            "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_status_that_is_right_stays_and_times_change_with_what_they_are_of() {
        let first = status(&deployment(2, &json!({})), Fate::IsHeld, at(0)).unwrap();
        assert_eq!(first["unavailableReplicas"], 2);
        assert_eq!(first["observedGeneration"], 3);
        assert_eq!(status(&deployment(2, &first), Fate::IsHeld, at(9)), None);
        let failed = status(&deployment(2, &first), Fate::Fails, at(9)).unwrap();
        assert_eq!(failed["conditions"][0], first["conditions"][0]);
        assert_eq!(failed["conditions"][1]["reason"], "ProgressDeadlineExceeded");
        assert_eq!(failed["conditions"][1]["lastTransitionTime"], "1970-01-01T00:00:09Z");
        let up = status(&deployment(2, &failed), Fate::Runs, at(10)).unwrap();
        assert_eq!(
            (&up["availableReplicas"], up.get("unavailableReplicas")),
            (&json!(2), None)
        );
    }

    #[test]
    fn nothing_is_missing_where_nothing_is_wanted() {
        let none = status(&deployment(0, &json!({})), Fate::Fails, at(0)).unwrap();
        assert_eq!(none["conditions"][0]["status"], "True");
        assert_eq!(none.get("replicas"), None);
    }

    #[test]
    fn rules_are_about_names_and_images() {
        let one = deployment(1, &json!({}));
        let check = |which: Which, expect: bool| assert_eq!(which.is(&one), expect, "{which:?}");
        check(Which::all(), true);
        check(Which::named("n", "d"), true);
        check(Which::named("m", "d"), false);
        check(Which::named("n", "d").with_image(":v1.2.0"), true);
        check(Which::all().with_image(":v1.3.0"), false);
    }
}
