//! A Cluster that is changed again and again, with a plan before each change.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use kube::client::Body;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use windlass_api::core::{Cluster, Machine, MachineSet};
use windlass_controller_runtime::{Metrics, transport};
use windlass_preview::model::{Report, Verdict};
use windlass_preview::render::text;
use windlass_preview::{Change, Source, preview};
use windlass_testkit::wait::TIMEOUT;
use windlass_testkit::{CLASS, Env, NAMESPACE};

use super::compare::{self, State};

pub(super) const NAME: &str = "plan";

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// Nothing changes.
    Same,
    /// The default of a variable that the Cluster has a value of.
    VariableDefault,
    NodeLabel(&'static str),
    CertSans(&'static str),
    StartupDuration(&'static str),
    WorkerLabel(&'static str),
    Workers(u32),
    ControlPlane(u32),
    /// The class names another template, with other content.
    ClassTemplate,
    HealthCheck(u32),
    NoHealthCheck,
    Version(&'static str),
    /// A version behind other ones.
    Chain(&'static str),
    AddWorker(&'static str),
    RemoveWorker(&'static str),
    /// The Cluster moves to another class with other templates.
    Rebase,
}

/// Changes, several of them at once.
pub(super) fn any(seed: u64, number: usize) -> Vec<Vec<Edit>> {
    let mut random = StdRng::seed_from_u64(seed);
    let choices = [
        Edit::VariableDefault,
        Edit::NodeLabel("red"),
        Edit::NodeLabel("green"),
        Edit::CertSans("b.example.com"),
        Edit::StartupDuration("2ms"),
        Edit::StartupDuration("0s"),
        Edit::WorkerLabel("team-b"),
        Edit::WorkerLabel("team-c"),
        Edit::Workers(4),
        Edit::ClassTemplate,
        Edit::HealthCheck(120),
        Edit::NoHealthCheck,
        Edit::Version("v1.34.0"),
        Edit::AddWorker("md-2"),
        Edit::RemoveWorker("md-2"),
        Edit::Rebase,
    ];
    (0..number)
        .map(|_| {
            let some = random.random_range(1..=2);
            choices.sample(&mut random, some).copied().collect()
        })
        .collect()
}

/// A Cluster of the example class, and its manifests.
pub(super) struct Subject {
    env: Env,
    /// Everything that was applied: templates, class and Cluster.
    documents: Vec<Value>,
    templates: usize,
}

fn find<'a>(documents: &'a mut [Value], kind: &str, name: &str) -> &'a mut Value {
    let found = documents
        .iter_mut()
        .find(|one| one["kind"] == kind && one["metadata"]["name"] == name);
    found.unwrap()
}

impl Subject {
    pub(super) async fn start(version: &str) -> Self {
        let env = Env::start().await;
        let mut documents: Vec<Value> = serde_saphyr::from_multiple(CLASS).unwrap();
        documents.push(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {
                "clusterNetwork": {"services": {"cidrBlocks": ["10.128.0.0/12"]}, "pods": {"cidrBlocks": ["192.168.0.0/16"]}},
                "topology": {
                    "classRef": {"name": "quick-start"}, "version": version, "controlPlane": {"replicas": 1},
                    "workers": {"machineDeployments": [{"class": "default-worker", "name": "md-0", "replicas": 2}]},
                    "variables": [
                        {"name": "startupDuration", "value": "0s"}, {"name": "certSANs", "value": []}, {"name": "nodeLabel", "value": ""},
                    ],
                },
            },
        }));
        for document in &mut documents {
            document["metadata"]["namespace"] = NAMESPACE.into();
            if document["kind"] == "ClusterClass" {
                let versions = ["v1.33.0", "v1.34.0", "v1.35.0", "v1.36.0"];
                document["spec"]["kubernetesVersions"] = json!(versions);
            }
            env.apply(document).await;
        }
        let subject = Self {
            env,
            documents,
            templates: 0,
        };
        subject.settled().await;
        subject
    }

    pub(super) async fn stop(self) {
        self.env.stop().await;
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    pub(super) fn cluster(&self) -> Value {
        find(&mut self.documents.clone(), "Cluster", NAME).clone()
    }

    pub(super) fn class(&self) -> Value {
        find(&mut self.documents.clone(), "ClusterClass", "quick-start").clone()
    }

    /// A plan from a client of its own. Nothing of the server changes by it.
    pub(super) async fn plan(&self, documents: &[Value]) -> Report {
        let change = Change {
            objects: documents.to_vec(),
            ..Change::default()
        };
        self.plan_change(change).await
    }

    /// The same for any change.
    pub(super) async fn plan_change(&self, change: Change) -> Report {
        let change = Change {
            namespace: NAMESPACE.to_owned(),
            field_manager: windlass_testkit::MANAGER.to_owned(),
            ..change
        };
        let before = State::of(&self.env).await;
        let sent: Arc<Mutex<Vec<String>>> = Arc::default();
        let record = sent.clone();
        let service = self
            .env
            .server()
            .service("plan")
            .map_request(move |request: http::Request<Body>| {
                let line = format!("{} {}", request.method(), request.uri());
                record.lock().push(line);
                request
            });
        let client = transport::in_process(service, &Metrics::new());
        let report = preview(Source::Server(client), &change).await.unwrap();
        let after = State::of(&self.env).await;
        let is_harmless = |line: &&String| line.starts_with("GET ") || line.contains("dryRun=All");
        let sent = sent.lock().clone();
        let harmful: Vec<_> = sent.iter().filter(|line| !is_harmless(line)).collect();
        assert!(harmful.is_empty(), "{harmful:?}");
        // A list a kind: the number does not grow with that of Clusters.
        let lists: Vec<_> = sent.iter().filter(|line| line.starts_with("GET ")).collect();
        let different: BTreeSet<_> = lists.iter().collect();
        assert_eq!(lists.len(), different.len(), "{lists:?}");
        assert_eq!(
            before.changed_since(&after),
            Vec::<String>::new(),
            "a plan writes nothing"
        );
        report
    }

    /// Plans a change, has it made in another way, and compares.
    pub(super) async fn plan_and_see(&self, change: Change, make: impl AsyncFnOnce(&Env)) -> Report {
        let report = self.plan_change(change).await;
        let shown = text::text(&report);
        assert_eq!(report.verdict(), Verdict::Changes, "{shown}");
        let before = State::of(&self.env).await;
        make(&self.env).await;
        self.settled().await;
        compare::compare(&report, &before, &State::of(&self.env).await, &shown);
        report
    }

    pub(super) async fn plan_and_make(&mut self, edit: Edit) {
        self.plan_and_make_all(&[edit]).await;
    }

    /// Changes documents, and gives those that have changed.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Self)) -> Vec<Value> {
        let before = self.documents.clone();
        change(self);
        let is_changed = |one: &&Value| !before.contains(one);
        self.documents.iter().filter(is_changed).cloned().collect()
    }

    pub(super) async fn plan_and_make_all(&mut self, edits: &[Edit]) {
        let changed = self.change(|subject| edits.iter().for_each(|edit| subject.edit(*edit)));
        let report = self.plan(&changed).await;
        let shown = text::text(&report);
        assert_ne!(report.verdict(), Verdict::Problems, "{edits:?}\n{shown}");
        let before = State::of(&self.env).await;
        for document in &changed {
            self.env.apply(document).await;
        }
        self.settled().await;
        let after = State::of(&self.env).await;
        compare::compare(&report, &before, &after, &format!("{edits:?}\n{shown}"));
        let is_same = changed.is_empty() || edits == [Edit::Same];
        assert!(!is_same || report.verdict() == Verdict::Same, "{edits:?}\n{shown}");
    }

    pub(super) fn edit(&mut self, edit: Edit) {
        let documents = &mut self.documents;
        let class_name = find(documents, "Cluster", NAME)["spec"]["topology"]["classRef"]["name"].clone();
        let class_name = class_name.as_str().unwrap().to_owned();
        match edit {
            Edit::Same => {}
            Edit::VariableDefault => {
                let class = find(documents, "ClusterClass", &class_name);
                class["spec"]["variables"][2]["schema"]["openAPIV3Schema"]["default"] = "pink".into();
            }
            Edit::ClassTemplate => {
                self.templates += 1;
                let class = find(documents, "ClusterClass", &class_name);
                let worker = &mut class["spec"]["workers"]["machineDeployments"][0];
                let reference = &mut worker["bootstrap"]["templateRef"]["name"];
                let old = reference.as_str().unwrap().to_owned();
                let name = format!("{old}-{}", self.templates);
                *reference = name.as_str().into();
                let mut template = find(documents, "KubeadmConfigTemplate", &old).clone();
                template["metadata"]["name"] = name.into();
                template["spec"]["template"]["spec"]["preKubeadmCommands"] =
                    json!([format!("echo {}", self.templates)]);
                documents.insert(0, template);
            }
            Edit::HealthCheck(seconds) => {
                let class = find(documents, "ClusterClass", &class_name);
                class["spec"]["workers"]["machineDeployments"][0]["healthCheck"] = json!({"checks": {
                    "nodeStartupTimeoutSeconds": 600,
                    "unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": seconds}],
                }});
            }
            Edit::NoHealthCheck => {
                let class = find(documents, "ClusterClass", &class_name);
                let worker = class["spec"]["workers"]["machineDeployments"][0]
                    .as_object_mut()
                    .unwrap();
                worker.remove("healthCheck");
            }
            Edit::Rebase => {
                let next = format!("{class_name}-b");
                let mut class = find(documents, "ClusterClass", &class_name).clone();
                class["metadata"]["name"] = next.as_str().into();
                let reference = &mut class["spec"]["controlPlane"]["machineInfrastructure"]["templateRef"]["name"];
                let old = reference.as_str().unwrap().to_owned();
                let name = format!("{old}-b");
                *reference = name.as_str().into();
                let mut template = find(documents, "DevMachineTemplate", &old).clone();
                template["metadata"]["name"] = name.into();
                let vm = &mut template["spec"]["template"]["spec"]["backend"]["inMemory"]["vm"]["provisioning"];
                vm["startupJitter"] = format!("0.{}", next.len()).into();
                documents.insert(0, template);
                documents.insert(1, class);
                find(documents, "Cluster", NAME)["spec"]["topology"]["classRef"]["name"] = next.into();
            }
            Edit::NodeLabel(value) => self.variable(2, json!(value)),
            Edit::CertSans(name) => self.variable(1, json!([name])),
            Edit::StartupDuration(time) => self.variable(0, json!(time)),
            Edit::WorkerLabel(value) => {
                self.topology()["workers"]["machineDeployments"][0]["metadata"] = json!({"labels": {"team": value}});
            }
            Edit::Workers(number) => self.topology()["workers"]["machineDeployments"][0]["replicas"] = number.into(),
            Edit::ControlPlane(number) => self.topology()["controlPlane"]["replicas"] = number.into(),
            Edit::Version(version) | Edit::Chain(version) => self.topology()["version"] = version.into(),
            Edit::AddWorker(name) => {
                let all = self.topology()["workers"]["machineDeployments"].as_array_mut().unwrap();
                all.retain(|one| one["name"] != name);
                all.push(json!({"class": "default-worker", "name": name, "replicas": 1}));
            }
            Edit::RemoveWorker(name) => {
                let all = self.topology()["workers"]["machineDeployments"].as_array_mut().unwrap();
                all.retain(|one| one["name"] != name);
            }
        }
    }

    pub(super) fn topology(&mut self) -> &mut Value {
        &mut find(&mut self.documents, "Cluster", NAME)["spec"]["topology"]
    }

    fn variable(&mut self, index: usize, value: Value) {
        self.topology()["variables"][index]["value"] = value;
    }

    /// What the condition TopologyReconciled says once it says this.
    pub(super) async fn topology_message(&self, part: &str) -> String {
        let message = |cluster: &Cluster| {
            let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
            let found = conditions.find(|one| one.type_ == "TopologyReconciled");
            found.map_or_else(String::new, |found| found.message.clone())
        };
        let key = windlass_controller_runtime::ObjectKey::new(NAMESPACE, NAME);
        let is_so = |cluster: &Cluster| message(cluster).contains(part);
        message(&self.env.wait_for::<Cluster>(&key, part, is_so).await)
    }

    /// Waits until nothing is written any more, and everything is as it should be.
    pub(super) async fn settled(&self) {
        let begun = Instant::now();
        self.env.rest().await;
        while !self.is_right().await {
            assert!(begun.elapsed() < TIMEOUT, "never settled\n{}", self.env.explain().await);
            self.env.rest().await;
        }
    }

    async fn is_right(&self) -> bool {
        let machines = self.env.list::<Machine>().await;
        let sets = self.env.list::<MachineSet>().await;
        let is_well = |kind: &str, machine: &Machine| {
            let conditions = machine.status.iter().flat_map(|status| &status.conditions);
            conditions.clone().any(|one| one.type_ == kind && one.status == "True")
        };
        let well = machines
            .iter()
            .all(|machine| is_well("Available", machine) && is_well("UpToDate", machine));
        let is_empty = |set: &MachineSet| set.spec.replicas == Some(0) && !machines.is_empty();
        let clusters = self.env.list::<Cluster>().await;
        let reconciled = clusters.iter().all(|cluster| {
            let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
            conditions.clone().any(|one| {
                one.type_ == "TopologyReconciled"
                    && one.status == "True"
                    && one.observed_generation == cluster.metadata.generation
            })
        });
        well && reconciled && !sets.iter().any(is_empty) && !machines.is_empty()
    }
}
