//! Clusters of one class, of which a test plays the control planes and workers.

use std::collections::BTreeSet;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::env::{Env, VSPHERE, cluster, condition, documents, name};

/// A label that the class gives control planes, by which a newer class differs from the first one.
pub(super) const NEWER: &str = "newer";

pub(super) struct Fleet {
    pub(super) env: Env,
    /// Clusters whose control planes do not follow their specs.
    pub(super) broken: BTreeSet<String>,
}

/// A rollout of the class of the example.
pub(super) fn rollout(spec: &Value) -> Value {
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ClusterClassRollout",
        "metadata": {"name": "mixed", "namespace": "bar"}, "spec": spec,
    })
}

/// A Cluster of the class of the example.
pub(super) fn member(name: &str) -> Value {
    let mut object = cluster();
    object["metadata"]["name"] = name.into();
    object["spec"]["topology"]["workers"] =
        json!({"machineDeployments": [{"class": "linux-worker", "name": "md", "replicas": 2}]});
    object
}

impl Fleet {
    pub(super) async fn start(names: &[&str]) -> Self {
        let clusters = names.iter().map(|name| member(name));
        Self::of(documents(VSPHERE), clusters.collect()).await
    }

    /// These Clusters, when they are up, with this class.
    pub(super) async fn of(class: Vec<Value>, clusters: Vec<Value>) -> Self {
        Self::on(Env::start().await, class, clusters).await
    }

    /// The same on a server of the test's.
    pub(super) async fn on(env: Env, class: Vec<Value>, clusters: Vec<Value>) -> Self {
        for object in class {
            env.apply(object).await;
        }
        let fleet = Self {
            env,
            broken: BTreeSet::new(),
        };
        for object in clusters {
            fleet.env.apply(object).await;
        }
        let up = async || {
            fleet.play().await;
            let clusters = fleet.env.list("Cluster").await;
            let is_up =
                |cluster: &Value| condition(cluster, "TopologyReconciled").is_some_and(|c| c["status"] == "True");
            clusters.iter().all(is_up).then_some(())
        };
        fleet.env.wait("all Clusters", up).await;
        fleet
    }

    pub(super) async fn create(&self, name: &str) {
        self.env.apply(member(name)).await;
    }

    /// Control planes and workers are as they should be, and the Clusters available.
    pub(super) async fn play(&self) {
        for kind in ["KubeadmControlPlane", "MachineDeployment"] {
            for object in self.env.generated(kind).await {
                let (metadata, seen) = (&object["metadata"], &object["status"]["observedGeneration"]);
                let of = metadata["labels"]["cluster.x-k8s.io/cluster-name"].as_str().unwrap();
                if *seen == metadata["generation"] || self.broken.contains(of) {
                    continue;
                }
                let replicas = &object["spec"]["replicas"];
                let mut status = json!({
                    "observedGeneration": metadata["generation"], "replicas": replicas, "upToDateReplicas": replicas,
                    "readyReplicas": replicas, "availableReplicas": replicas,
                });
                if kind == "KubeadmControlPlane" {
                    status["versions"] = json!([{"version": object["spec"]["version"], "replicas": replicas}]);
                }
                self.env.status(kind, name(&object), status).await;
            }
        }
        for object in self.env.list("Cluster").await {
            if condition(&object, "Available").is_some() {
                continue;
            }
            let available = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name(&object)},
                "status": {"conditions": [{
                    "type": "Available", "status": "True", "reason": "Available", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }]},
            });
            let params = PatchParams::apply("player");
            let api = self.env.api("Cluster");
            api.patch_status(name(&object), &params, &Patch::Apply(available))
                .await
                .unwrap();
        }
    }

    /// A change of a Cluster's own topology goes through.
    pub(super) async fn scale_to_five(&self, cluster: &str) {
        let patch = json!({"spec": {"topology": {"controlPlane": {"replicas": 5}}}});
        self.env.merge("Cluster", cluster, patch).await;
        self.has_five(cluster).await;
    }

    pub(super) async fn has_five(&self, cluster: &str) {
        let done = async || (self.control_plane(cluster).await["spec"]["replicas"] == 5).then_some(());
        self.env.wait("5 replicas", done).await;
    }

    /// Another label for the control planes of the class.
    pub(super) async fn class_labels(&self, value: &str) {
        let patch = json!({"spec": {"controlPlane": {"metadata": {"labels": {"of-class": value}}}}});
        self.env.merge("ClusterClass", "mixed", patch).await;
    }

    pub(super) async fn object(&self) -> Value {
        self.env.get("ClusterClassRollout", "mixed").await.unwrap()
    }

    pub(super) async fn control_plane(&self, cluster: &str) -> Value {
        let all = self.env.generated("KubeadmControlPlane").await;
        let is_of = |object: &&Value| object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == cluster;
        all.iter().find(is_of).unwrap().clone()
    }

    /// Whether a Cluster has the newer class.
    pub(super) async fn is_changed(&self, cluster: &str) -> bool {
        let control_plane = self.control_plane(cluster).await;
        control_plane["metadata"]["labels"]
            .get("of-class")
            .is_some_and(|label| label == NEWER)
    }

    /// Plays until the rollout is as it should be; gives its status.
    async fn until(&self, what: &str, done: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = async || {
            self.play().await;
            last = self.object().await["status"].clone();
            done(&last).then(|| last.clone())
        };
        let found = Box::pin(self.env.wait(what, found));
        found.await
    }

    /// All Clusters have the newest class, whose revision is given.
    pub(super) async fn up_to_date(&self) -> String {
        let newest = self.env.get("ClusterClass", "mixed").await.unwrap()["metadata"]["generation"].clone();
        let mut revision = String::new();
        let done = async || {
            self.play().await;
            let object = self.object().await;
            let up_to_date = condition(&object, "UpToDate")?;
            object["status"]["updateRevision"].as_str()?.clone_into(&mut revision);
            let kept = self.env.get("ClusterClassRevision", &revision).await?;
            let is_newest = kept["spec"]["generation"] == newest || object["status"]["progress"] == "0/0";
            (up_to_date["status"] == "True" && is_newest).then_some(())
        };
        self.env.wait("all Clusters up to date", done).await;
        revision
    }

    /// A wave has begun; what comes after it is left to the test.
    pub(super) async fn in_wave(&self, number: i64, stage: &str) -> Value {
        let what = format!("wave {number}");
        self.until(&what, |status| {
            status["wave"]["number"] == number && status["wave"]["stage"] == stage
        })
        .await
    }

    /// The rollout is complete, with so many Clusters.
    pub(super) async fn until_complete(&self, clusters: i64) -> Value {
        let newest = self.env.get("ClusterClass", "mixed").await.unwrap()["metadata"]["generation"].clone();
        let done = async || {
            self.play().await;
            let status = self.object().await["status"].clone();
            let kept = self
                .env
                .get("ClusterClassRevision", status["updateRevision"].as_str()?)
                .await?;
            let up_to_date = condition(&json!({"status": status}), "UpToDate")?;
            let is_so = up_to_date["status"] == "True" && kept["spec"]["generation"] == newest;
            (is_so && status["clusters"] == clusters).then_some(status)
        };
        self.env.wait("a complete rollout", done).await
    }

    pub(super) async fn newest_is_not(&self, revision: &str) {
        self.until("another revision", |status| {
            status["updateRevision"]
                .as_str()
                .is_some_and(|newest| newest != revision)
        })
        .await;
    }

    pub(super) async fn plays_until_healthy(&self, number: i64) {
        self.until("healthy Clusters", |status| status["healthyClusters"] == number)
            .await;
    }

    /// A condition of the rollout has this reason, and its message this part.
    pub(super) async fn says(&self, type_: &str, reason: &str, part: &str) -> Value {
        let what = format!("{type_} with reason {reason} and message {part}");
        self.until(&what, |status| {
            let said = condition(&json!({"status": status}), type_);
            said.is_some_and(|said| said["reason"] == reason && said["message"].as_str().unwrap().contains(part))
        })
        .await
    }

    /// A Cluster has a revision of the class, and all of its objects were brought to it.
    pub(super) async fn has(&self, cluster: &str, revision: &str) {
        let done = async || {
            self.play().await;
            let object = self.env.get("Cluster", cluster).await?;
            let annotations = &object["metadata"]["annotations"];
            let is = |key: &str| annotations[format!("windlass.dev/{key}")] == revision;
            (is("class-revision") && is("reconciled-class-revision")).then_some(())
        };
        self.env
            .wait(&format!("{cluster} with revision {revision}"), done)
            .await;
    }

    /// How many templates of Machines that were made have this number of CPUs.
    pub(super) async fn templates_with(&self, cpus: u8) -> usize {
        let all = self.env.generated("VSphereMachineTemplate").await;
        all.iter()
            .filter(|object| object["spec"]["template"]["spec"]["numCPUs"] == cpus)
            .count()
    }

    pub(super) async fn revisions_are(&self, names: &[&str]) {
        let done = async || {
            let all = self.env.list("ClusterClassRevision").await;
            let found: BTreeSet<&str> = all.iter().map(name).collect();
            (found == names.iter().copied().collect()).then_some(())
        };
        self.env.wait("the revisions", done).await;
    }

    pub(super) async fn is_gone(&self) {
        let done = async || {
            self.play().await;
            let found = self.env.get("ClusterClassRollout", "mixed").await;
            found.is_none().then_some(())
        };
        self.env.wait("the end of the rollout", done).await;
    }
}
