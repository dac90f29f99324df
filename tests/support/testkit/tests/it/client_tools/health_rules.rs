//! What Flux and Argo CD show of a cluster from its creation to its deletion: the rules of both, on every version of its objects.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::task::JoinHandle;
use windlass_api::core::{Machine, MachineHealthCheck};
use windlass_envtest::Tools;
use windlass_infra_dev::Trouble;
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE, go_module, wait};

const CORE: &str = "cluster.x-k8s.io";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
const KINDS: [(&str, &str); 5] = [
    (CORE, "Cluster"),
    (CORE, "Machine"),
    (CORE, "MachineDeployment"),
    (CORE, "MachineHealthCheck"),
    (CONTROL_PLANE, "KubeadmControlPlane"),
];
/// The tools read the version of the manifest that they applied.
const VERSIONS: [&str; 2] = ["v1beta1", "v1beta2"];

/// The answers for one version of an object.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    flux: Health,
    #[serde(rename = "argoCD")]
    argo_cd: Option<Health>,
}

#[derive(Clone, Debug, Deserialize)]
struct Health {
    status: String,
}

/// All versions of all objects of a kind, in one API version, from now on.
struct Recorder {
    kind: &'static str,
    version: &'static str,
    api: Api<DynamicObject>,
    seen: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Recorder {
    fn start(env: &Env, group: &str, version: &'static str, kind: &'static str) -> Self {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::namespaced_with(env.client().clone(), NAMESPACE, &resource);
        let seen = Arc::<Mutex<Vec<Value>>>::default();
        let (watched, into) = (api.clone(), seen.clone());
        let task = tokio::spawn(async move {
            let mut from = "0".to_owned();
            // The server ends a watch after some minutes.
            loop {
                let events = watched.watch(&WatchParams::default().timeout(290), &from).await;
                let mut events = events.expect("objects can be watched").boxed();
                while let Some(event) = events.next().await {
                    match event.expect("a watch can be read") {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                            from = object.resource_version().expect("a stored object has a version");
                            let object = serde_json::to_value(object).expect("an object is JSON");
                            into.lock().push(object);
                        }
                        WatchEvent::Deleted(object) => {
                            from = object.resource_version().expect("a stored object has a version");
                        }
                        WatchEvent::Bookmark(mark) => from = mark.metadata.resource_version,
                        WatchEvent::Error(status) => panic!("{status:?}"),
                    }
                }
            }
        });
        Self {
            kind,
            version,
            api,
            seen,
            task,
        }
    }

    /// Waits until it has seen what is stored, and returns how many versions it has seen.
    async fn catches_up(&self) -> usize {
        let stored = self
            .api
            .list(&kube::api::ListParams::default())
            .await
            .expect("objects can be listed");
        let has_seen = |object: &DynamicObject| {
            let version = object.metadata.resource_version.as_deref();
            let seen = self.seen.lock();
            seen.iter()
                .any(|seen| seen["metadata"]["resourceVersion"].as_str() == version)
        };
        let waiting = async {
            let mut looks = wait::looks();
            while !stored.iter().all(has_seen) {
                looks.tick().await;
            }
        };
        let in_time = tokio::time::timeout(wait::TIMEOUT, waiting).await;
        in_time.unwrap_or_else(|_| panic!("the watch of {} {} is behind", self.version, self.kind));
        self.seen.lock().len()
    }
}

/// All recorders, and how much each had seen at the end of each stage.
struct Story {
    recorders: Vec<Recorder>,
    stages: Vec<(&'static str, Vec<usize>)>,
}

impl Story {
    fn begin(env: &Env) -> Self {
        let kinds = KINDS.into_iter();
        let both = kinds.flat_map(|(group, kind)| VERSIONS.map(|version| (group, version, kind)));
        let recorders = both.map(|(group, version, kind)| Recorder::start(env, group, version, kind));
        Self {
            recorders: recorders.collect(),
            stages: Vec::new(),
        }
    }

    async fn ends(&mut self, stage: &'static str) {
        let mut seen = Vec::new();
        for recorder in &self.recorders {
            seen.push(recorder.catches_up().await);
        }
        self.stages.push((stage, seen));
    }

    /// The rules' answers to everything.
    async fn judged(&self, program: &Path, scripts: &Path) -> Judged {
        let all: Vec<Vec<Value>> = self
            .recorders
            .iter()
            .map(|recorder| recorder.seen.lock().clone())
            .collect();
        let input: Vec<String> = all.iter().flatten().map(Value::to_string).collect();
        let input = input.join("\n");
        let mut command = Command::new(program);
        command
            .arg(scripts)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("the rules can be run");
        let mut stdin = child.stdin.take().expect("it has an input");
        let writing = tokio::spawn(async move { stdin.write_all(input.as_bytes()).await });
        let output = child.wait_with_output().await.expect("the rules can be run");
        writing
            .await
            .expect("it is not cancelled")
            .expect("it reads everything");
        assert!(output.status.success(), "the rules failed, see standard error");
        let mut answers = output
            .stdout
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let mut judged = Judged::default();
        for (at, (recorder, objects)) in self.recorders.iter().zip(all).enumerate() {
            for (index, object) in objects.into_iter().enumerate() {
                let line = answers.next().expect("each object has an answer");
                let answer = serde_json::from_slice(line).expect("an answer is JSON");
                let stage = self
                    .stages
                    .iter()
                    .find(|(_, seen)| index < seen[at])
                    .map_or("", |(stage, _)| stage);
                let key = (recorder.version, recorder.kind, stage);
                judged.0.entry(key).or_default().push((object, answer));
            }
        }
        judged
    }
}

/// All versions with their answers, by API version, kind and stage.
#[derive(Debug, Default)]
struct Judged(BTreeMap<Key, Vec<(Value, Answer)>>);

/// API version, kind and stage.
type Key = (&'static str, &'static str, &'static str);

impl Judged {
    fn of(&self, version: &'static str, kind: &'static str, stage: &'static str) -> &[(Value, Answer)] {
        self.0
            .get(&(version, kind, stage))
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The statuses of Flux or Argo CD, without repetition, from when a controller has looked at the object.
    fn steps(&self, version: &'static str, kind: &'static str, stage: &'static str, tool: Tool) -> Vec<String> {
        let looked_at = self
            .of(version, kind, stage)
            .iter()
            .filter(|(object, _)| is_looked_at(object));
        let mut steps: Vec<String> = looked_at.filter_map(|(_, answer)| tool.of(answer)).collect();
        steps.dedup();
        steps
    }

    /// Checks what a tool shows in the course of a stage, and at its end.
    fn expect(&self, stage: &'static str, tool: Tool, rows: &[Row]) {
        for (version, kind, course, end) in rows {
            let steps = self.steps(version, kind, stage, tool);
            let shown = steps.iter().any(|step| step == course);
            assert!(
                shown,
                "{stage}: {tool:?} never shows {course} for {version} {kind}, but {steps:?}"
            );
            let last = steps.last().map(String::as_str);
            assert_eq!(
                last,
                Some(*end),
                "{stage}: {tool:?} of {version} {kind} at the end of {steps:?}"
            );
        }
    }

    /// Checks that a tool never shows a status of a kind, in any API version or only in one.
    fn never(&self, stage: &'static str, tool: Tool, kinds: &[(&'static str, &'static str)], status: &str) {
        for (version, kind) in kinds {
            let steps = self.steps(version, kind, stage, tool);
            assert!(
                !steps.iter().any(|step| step == status),
                "{stage}: {tool:?} of {version} {kind}: {steps:?}"
            );
        }
    }
}

/// Whether a controller has reported a condition.
fn is_looked_at(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| !all.is_empty())
}

/// API version, kind, what is shown in the course of a stage, and at its end.
type Row = (&'static str, &'static str, &'static str, &'static str);

#[derive(Clone, Copy, Debug)]
enum Tool {
    Flux,
    ArgoCd,
}

impl Tool {
    fn of(self, answer: &Answer) -> Option<String> {
        match self {
            Self::Flux => Some(answer.flux.status.clone()),
            Self::ArgoCd => answer.argo_cd.as_ref().map(|health| health.status.clone()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flux_and_argo_cd_show_the_stages_of_a_cluster() {
    let Some(program) = Tools::required("health-rules") else {
        return;
    };
    let scripts = go_module("argo-cd", "github.com/argoproj/argo-cd/v3").join("resource_customizations");
    let env = Env::start().await;
    let mut story = Story::begin(&env);
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("judged", 1, 1);
    apply_slow(&env, &cluster).await;
    cluster.wait_running(&env).await;
    check_health(&env).await;
    env.rest().await;
    story.ends("creating").await;

    let cluster = cluster.version("v1.36.0");
    apply_slow(&env, &cluster).await;
    cluster.wait_running(&env).await;
    env.rest().await;
    story.ends("upgrading").await;

    break_it(&env, &cluster).await;
    story.ends("broken").await;
    for machine in env.list::<Machine>().await {
        let name = machine.metadata.name.unwrap();
        env.cloud().recover(&cluster.key(), &name).await.unwrap();
    }
    cluster.wait_running(&env).await;
    wait_checked(&env, 2).await;
    env.rest().await;
    story.ends("recovering").await;

    env.merge("Cluster", "judged", &json!({"spec": {"paused": true}})).await;
    env.rest().await;
    story.ends("pausing").await;
    env.merge("Cluster", "judged", &json!({"spec": {"paused": null}})).await;
    cluster.wait_running(&env).await;
    env.rest().await;
    story.ends("resuming").await;

    env.delete("Cluster", "judged").await;
    env.wait_gone("judged").await;
    story.ends("deleting").await;

    let judged = story.judged(&program, &scripts).await;
    flux(&judged);
    argo_cd(&judged);
    env.stop().await;
}

/// Machines come up slowly enough for each stage to be shown: a status that holds for an instant may never be written.
async fn apply_slow(env: &Env, cluster: &ClusterOf) {
    let mut object = cluster.object();
    object["spec"]["topology"]["variables"] = json!([{"name": "startupDuration", "value": "1s"}]);
    env.apply(&object).await;
}

/// A check of all Machines that replaces none of them.
async fn check_health(env: &Env) {
    env.apply(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "all", "namespace": NAMESPACE},
        "spec": {
            "clusterName": "judged",
            "selector": {"matchLabels": {"cluster.x-k8s.io/cluster-name": "judged"}},
            "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 0}]},
            "remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": 0}},
        },
    }))
    .await;
    wait_checked(env, 2).await;
}

async fn wait_checked(env: &Env, healthy: i32) {
    env.wait_all::<MachineHealthCheck>("checked", |all| {
        let status = all.first().and_then(|check| check.status.as_ref());
        status.is_some_and(|status| status.current_healthy == Some(healthy))
    })
    .await;
}

/// No Node is ready any more.
async fn break_it(env: &Env, cluster: &ClusterOf) {
    for machine in env.list::<Machine>().await {
        let name = machine.metadata.name.unwrap();
        let sent = env.cloud().trouble(&cluster.key(), &name, Trouble::NotReady).await;
        sent.unwrap();
    }
    wait_checked(env, 0).await;
    env.rest().await;
}

fn flux(judged: &Judged) {
    let coming_up: [Row; 5] = [
        ("v1beta1", "Cluster", "InProgress", "Current"),
        ("v1beta1", "KubeadmControlPlane", "InProgress", "Current"),
        ("v1beta1", "MachineDeployment", "InProgress", "Current"),
        // A Machine may be ready before its first status is written.
        ("v1beta1", "Machine", "Current", "Current"),
        ("v1beta2", "Machine", "Current", "Current"),
    ];
    judged.expect("creating", Tool::Flux, &coming_up);
    judged.expect("upgrading", Tool::Flux, &coming_up[1..3]);
    // Ready of the older version is true from the initialization of the control plane on.
    for stage in ["upgrading", "broken", "recovering"] {
        judged.expect(stage, Tool::Flux, &[("v1beta1", "Cluster", "Current", "Current")]);
    }
    judged.expect(
        "broken",
        Tool::Flux,
        &[
            ("v1beta1", "KubeadmControlPlane", "InProgress", "InProgress"),
            ("v1beta2", "Machine", "InProgress", "InProgress"),
        ],
    );
    let all: Vec<_> = KINDS
        .iter()
        .flat_map(|(_, kind)| VERSIONS.map(|version| (version, *kind)))
        .collect();
    for stage in ["creating", "upgrading", "broken", "recovering", "pausing", "resuming"] {
        judged.never(stage, Tool::Flux, &all, "Failed");
        judged.never(stage, Tool::Flux, &all, "Unknown");
    }
    for version in VERSIONS {
        for kind in ["Cluster", "KubeadmControlPlane", "MachineDeployment", "Machine"] {
            judged.expect("deleting", Tool::Flux, &[(version, kind, "Terminating", "Terminating")]);
        }
    }
}

fn argo_cd(judged: &Judged) {
    let both = |kind, course, end| VERSIONS.map(|version| -> Row { (version, kind, course, end) });
    // Its Machines may be there before its first status is written: then it is never ScalingUp.
    judged.expect(
        "creating",
        Tool::ArgoCd,
        &both("MachineDeployment", "Healthy", "Healthy"),
    );
    judged.expect("creating", Tool::ArgoCd, &both("Machine", "Healthy", "Healthy"));
    judged.expect(
        "upgrading",
        Tool::ArgoCd,
        &both("MachineDeployment", "Progressing", "Healthy"),
    );
    for stage in ["creating", "upgrading", "broken", "recovering", "resuming"] {
        judged.expect(stage, Tool::ArgoCd, &both("Cluster", "Healthy", "Healthy"));
    }
    let calm = [
        ("v1beta1", "Cluster"),
        ("v1beta2", "Cluster"),
        ("v1beta1", "MachineDeployment"),
        ("v1beta2", "MachineDeployment"),
        ("v1beta1", "Machine"),
        ("v1beta2", "Machine"),
    ];
    for stage in ["creating", "upgrading"] {
        judged.never(stage, Tool::ArgoCd, &calm, "Degraded");
    }
    judged.expect(
        "broken",
        Tool::ArgoCd,
        &both("MachineHealthCheck", "Degraded", "Degraded"),
    );
    judged.expect(
        "recovering",
        Tool::ArgoCd,
        &both("MachineHealthCheck", "Healthy", "Healthy"),
    );
    judged.expect("pausing", Tool::ArgoCd, &both("Cluster", "Suspended", "Suspended"));
    for kind in ["Cluster", "MachineDeployment", "Machine"] {
        judged.expect("deleting", Tool::ArgoCd, &both(kind, "Progressing", "Progressing"));
    }
    // Before anything has looked at them, they are on their way.
    for version in VERSIONS {
        for kind in ["Cluster", "MachineDeployment"] {
            let first = &judged.of(version, kind, "creating")[0].1;
            assert_eq!(
                Tool::ArgoCd.of(first).as_deref(),
                Some("Progressing"),
                "{version} {kind}"
            );
        }
    }
}
