//! Lifecycle hooks of a topology, served by an extension over HTTPS.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::json;
use windlass_api::core::{Cluster, Machine, MachineDeployment};
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_runtime_extension::Extension;
use windlass_runtime_extension::hooks::Response as _;
use windlass_runtime_extension::hooks::lifecycle::{
    AfterClusterUpgrade, AfterClusterUpgradeResponse, AfterControlPlaneInitialized,
    AfterControlPlaneInitializedResponse, AfterControlPlaneUpgrade, AfterControlPlaneUpgradeResponse,
    AfterWorkersUpgrade, AfterWorkersUpgradeResponse, BeforeClusterCreate, BeforeClusterCreateResponse,
    BeforeClusterUpgrade, BeforeClusterUpgradeResponse, BeforeControlPlaneUpgrade, BeforeControlPlaneUpgradeResponse,
    BeforeWorkersUpgrade, BeforeWorkersUpgradeResponse, UpgradeStep,
};
use windlass_runtime_extension::hooks::upgrade_plan::{GenerateUpgradePlan, GenerateUpgradePlanResponse};
use windlass_testkit::faults::Faults;
use windlass_testkit::{CLASS, ClusterOf, Env};

use crate::extensions::{Served, config, is_discovered, says};

const PENDING: &str = "runtime.cluster.x-k8s.io/pending-hooks";

/// What the extension was asked, with the versions in the question, and what it blocks.
#[derive(Clone, Default)]
struct Story {
    told: Arc<Mutex<Vec<String>>>,
    /// The messages of hooks that block.
    blocks: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

impl Story {
    /// Notes a call; gives the message if it blocks. A hook that blocks is noted once.
    fn call(&self, hook: &'static str, versions: &str) -> Option<String> {
        let line = format!("{hook} {versions}").trim_end().to_owned();
        let message = self.blocks.lock().unwrap().get(hook).cloned();
        let line = if message.is_some() {
            format!("{line} blocks")
        } else {
            line
        };
        let mut told = self.told.lock().unwrap();
        if told.last() != Some(&line) {
            told.push(line);
        }
        message
    }

    fn block(&self, hook: &'static str) {
        self.blocks.lock().unwrap().insert(hook, format!("{hook} says no"));
    }

    fn release(&self) {
        self.blocks.lock().unwrap().clear();
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }
}

/// Serves all hooks that block.
macro_rules! serve {
    ($extension:expr, $story:expr, $($hook:ident, $response:ident, $versions:expr;)+) => {{
        let mut extension = $extension;
        $(
            let story = $story.clone();
            extension = extension
                .handle($hook, stringify!($hook).to_lowercase().as_str(), move |request| {
                    let versions: String = $versions(&request);
                    let message = story.call(stringify!($hook), &versions);
                    async move {
                        message.map_or_else($response::success, |message| $response::blocked(1, message))
                    }
                })
                .unwrap();
        )+
        extension
    }};
}

fn extension(story: &Story) -> Extension {
    let initialized = story.clone();
    let extension = Extension::new()
        .handle(AfterControlPlaneInitialized, "initialized", move |_| {
            initialized.call("AfterControlPlaneInitialized", "");
            async { AfterControlPlaneInitializedResponse::success() }
        })
        .unwrap();
    serve!(
        extension, story,
        BeforeClusterCreate, BeforeClusterCreateResponse, |_: &_| String::new();
        BeforeClusterUpgrade, BeforeClusterUpgradeResponse,
            |r: &windlass_runtime_extension::hooks::lifecycle::BeforeClusterUpgradeRequest| {
                format!("{} {}", r.from_kubernetes_version, r.to_kubernetes_version)
            };
        BeforeControlPlaneUpgrade, BeforeControlPlaneUpgradeResponse,
            |r: &windlass_runtime_extension::hooks::lifecycle::BeforeControlPlaneUpgradeRequest| {
                format!("{} {}", r.from_kubernetes_version, r.to_kubernetes_version)
            };
        AfterControlPlaneUpgrade, AfterControlPlaneUpgradeResponse,
            |r: &windlass_runtime_extension::hooks::lifecycle::AfterControlPlaneUpgradeRequest| r.kubernetes_version.clone();
        BeforeWorkersUpgrade, BeforeWorkersUpgradeResponse,
            |r: &windlass_runtime_extension::hooks::lifecycle::BeforeWorkersUpgradeRequest| {
                format!("{} {}", r.from_kubernetes_version, r.to_kubernetes_version)
            };
        AfterWorkersUpgrade, AfterWorkersUpgradeResponse,
            |r: &windlass_runtime_extension::hooks::lifecycle::AfterWorkersUpgradeRequest| r.kubernetes_version.clone();
        AfterClusterUpgrade, AfterClusterUpgradeResponse,
            |r: &windlass_runtime_extension::hooks::lifecycle::AfterClusterUpgradeRequest| r.kubernetes_version.clone();
    )
}

fn pending(cluster: &Cluster) -> &str {
    let all = cluster.metadata.annotations.as_ref();
    all.and_then(|all| all.get(PENDING)).map_or("", String::as_str)
}

/// The versions of the control plane and of the MachineDeployment.
async fn versions(env: &Env) -> (String, String) {
    let planes = env.list::<KubeadmControlPlane>().await;
    let deployments = env.list::<MachineDeployment>().await;
    let workers = deployments[0].spec.template.spec.version.clone();
    (planes[0].spec.version.clone(), workers.unwrap_or_default())
}

async fn site(story: &Story) -> (Env, Served) {
    let env = Env::start().await;
    let served = Served::start(extension(story)).await;
    env.apply(&served.config("story")).await;
    config(&env, "discovered", is_discovered).await;
    env.apply_yaml(CLASS).await;
    (env, served)
}

// TO-321; rows 310, 332 to 338: each hook blocks what comes after it, in the order of v1.14.
#[tokio::test]
async fn an_upgrade_goes_from_hook_to_hook() {
    let story = Story::default();
    let (env, _served) = site(&story).await;
    let cluster = ClusterOf::new("told", 1, 1);
    story.block("BeforeClusterCreate");
    cluster.apply(&env).await;
    let blocked =
        "Following hooks are blocking Cluster topology creation: BeforeClusterCreate: BeforeClusterCreate says no";
    says(&env, &cluster.key(), "ClusterCreating", blocked).await;
    assert!(env.list::<KubeadmControlPlane>().await.is_empty());
    story.release();
    let running = cluster.wait_running(&env).await;
    let done = env
        .wait_for::<Cluster>(&cluster.key(), "no hook is pending", |cluster| {
            pending(cluster).is_empty()
        })
        .await;
    assert_eq!(running.metadata.uid, done.metadata.uid);
    assert_eq!(
        story.told(),
        [
            "BeforeClusterCreate blocks",
            "BeforeClusterCreate",
            "AfterControlPlaneInitialized"
        ]
    );

    let steps = [
        ("BeforeClusterUpgrade", "v1.35.0", "v1.35.0"),
        ("BeforeControlPlaneUpgrade", "v1.35.0", "v1.35.0"),
        ("AfterControlPlaneUpgrade", "v1.36.0", "v1.35.0"),
        ("BeforeWorkersUpgrade", "v1.36.0", "v1.35.0"),
        ("AfterWorkersUpgrade", "v1.36.0", "v1.36.0"),
        ("AfterClusterUpgrade", "v1.36.0", "v1.36.0"),
    ];
    story.block(steps[0].0);
    let cluster = cluster.version("v1.36.0");
    cluster.apply(&env).await;
    for (number, (hook, control_plane, workers)) in steps.iter().enumerate() {
        let text = format!("Following hooks are blocking upgrade: {hook}: {hook} says no");
        says(&env, &cluster.key(), "ClusterUpgrading", &text).await;
        assert_eq!(
            versions(&env).await,
            ((*control_plane).to_owned(), (*workers).to_owned()),
            "{hook}"
        );
        story.release();
        if let Some((next, ..)) = steps.get(number + 1) {
            story.block(next);
        }
    }
    cluster.wait_running(&env).await;
    let done = says(&env, &cluster.key(), "ReconcileSucceeded", "").await;
    assert_eq!(pending(&done), "");
    assert_eq!(
        story.told(),
        [
            "BeforeClusterUpgrade v1.35.0 v1.36.0 blocks",
            "BeforeClusterUpgrade v1.35.0 v1.36.0",
            "BeforeControlPlaneUpgrade v1.35.0 v1.36.0 blocks",
            "BeforeControlPlaneUpgrade v1.35.0 v1.36.0",
            "AfterControlPlaneUpgrade v1.36.0 blocks",
            "AfterControlPlaneUpgrade v1.36.0",
            "BeforeWorkersUpgrade v1.35.0 v1.36.0 blocks",
            "BeforeWorkersUpgrade v1.35.0 v1.36.0",
            "AfterWorkersUpgrade v1.36.0 blocks",
            "AfterWorkersUpgrade v1.36.0",
            "AfterClusterUpgrade v1.36.0 blocks",
            "AfterClusterUpgrade v1.36.0",
        ]
    );
    env.stop().await;
}

// A hook that is marked is called by the next process as well.
#[tokio::test]
async fn hooks_are_called_after_a_restart() {
    let story = Story::default();
    let (mut env, _served) = site(&story).await;
    let cluster = ClusterOf::new("again", 1, 1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    story.block("AfterControlPlaneUpgrade");
    let cluster = cluster.version("v1.36.0");
    cluster.apply(&env).await;
    says(
        &env,
        &cluster.key(),
        "ClusterUpgrading",
        "AfterControlPlaneUpgrade says no",
    )
    .await;
    env.stop_controllers().await;
    story.release();
    story.told();
    env.start_controllers(&Faults::none());
    cluster.wait_running(&env).await;
    let done = says(&env, &cluster.key(), "ReconcileSucceeded", "").await;
    assert_eq!(pending(&done), "");
    assert_eq!(
        story.told(),
        [
            "AfterControlPlaneUpgrade v1.36.0",
            "BeforeWorkersUpgrade v1.35.0 v1.36.0",
            "AfterWorkersUpgrade v1.36.0",
            "AfterClusterUpgrade v1.36.0",
        ]
    );
    assert_eq!(env.list::<Machine>().await.len(), 2);
    env.stop().await;
}

// An extension that does not answer fails the step and nothing else, and is named.
#[tokio::test]
async fn an_extension_that_does_not_answer_holds_up_the_upgrade_and_is_named() {
    let story = Story::default();
    let (env, served) = site(&story).await;
    let cluster = ClusterOf::new("mute", 1, 1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    drop(served);
    let scaled = cluster.clone().workers(2).version("v1.36.0");
    scaled.apply(&env).await;
    let text = "hook BeforeClusterUpgrade has no answer: failed to call extension handler";
    says(&env, &cluster.key(), "ReconcileFailed", text).await;
    assert_eq!(versions(&env).await.0, "v1.35.0");
    // Without the extension all goes on.
    env.delete("ExtensionConfig", "story").await;
    scaled.wait_running(&env).await;
    env.merge(
        "Cluster",
        "mute",
        &json!({"metadata": {"annotations": {"example.com/a": "b"}}}),
    )
    .await;
    env.stop().await;
}

// Rows 274, 304, 343: an extension says which versions are gone through; what it says wrongly is named.
#[tokio::test]
async fn an_extension_says_which_versions_an_upgrade_goes_through() {
    let env = Env::start().await;
    let steps = Arc::new(Mutex::new(vec!["v1.37.0"]));
    let given = Arc::clone(&steps);
    let extension = Extension::new()
        .handle(GenerateUpgradePlan, "plan", move |request| {
            assert_eq!(request.to_kubernetes_version, "v1.37.0");
            let all = given.lock().unwrap().clone();
            let step = |version: &&str| UpgradeStep {
                version: (*version).to_owned(),
            };
            let behind = all
                .iter()
                .filter(|version| **version > request.from_control_plane_kubernetes_version.as_str());
            let mut answer = GenerateUpgradePlanResponse::success();
            answer.control_plane_upgrades = behind.map(step).collect();
            async { answer }
        })
        .unwrap();
    let served = Served::start(extension).await;
    env.apply(&served.config("ext")).await;
    config(&env, "discovered", is_discovered).await;
    env.apply_yaml(CLASS).await;
    let patch = json!({"spec": {"upgrade": {"external": {"generateUpgradePlanExtension": "plan.ext"}}}});
    env.merge("ClusterClass", "quick-start", &patch).await;
    let cluster = ClusterOf::new("planned", 1, 1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let cluster = cluster.version("v1.37.0");
    cluster.apply(&env).await;
    let wrong = "expecting a version with minor 35 or 36, found version v1.37.0";
    says(&env, &cluster.key(), "ReconcileFailed", wrong).await;
    assert_eq!(versions(&env).await, ("v1.35.0".to_owned(), "v1.35.0".to_owned()));
    *steps.lock().unwrap() = vec!["v1.36.2", "v1.37.0"];
    // What it has said counts for ten minutes, and not after a restart.
    let mut env = env;
    env.stop_controllers().await;
    env.start_controllers(&Faults::none());
    let seen = says(
        &env,
        &cluster.key(),
        "ClusterUpgrading",
        "upgrading to version v1.36.2 (v1.37.0 pending)",
    )
    .await;
    let planned = seen.status.unwrap().control_plane.unwrap().upgrade_plan;
    assert_eq!(planned.last().map(|step| step.version.as_str()), Some("v1.37.0"));
    cluster.wait_running(&env).await;
    says(&env, &cluster.key(), "ReconcileSucceeded", "").await;
    env.stop().await;
}
