//! Lifecycle hooks: which ones extensions serve for a Cluster, and what they answer.

use std::collections::BTreeMap;

use windlass_api::core::Cluster;
use windlass_api::meta::MetaExt as _;
use windlass_runtime_client::{About, CallError, Extensions, clusters};
use windlass_runtime_hooks::lifecycle::{
    AfterClusterUpgrade, AfterClusterUpgradeRequest, AfterControlPlaneInitialized, AfterControlPlaneInitializedRequest,
    AfterControlPlaneUpgrade, AfterControlPlaneUpgradeRequest, AfterWorkersUpgrade, AfterWorkersUpgradeRequest,
    BeforeClusterCreate, BeforeClusterCreateRequest, BeforeClusterUpgrade, BeforeClusterUpgradeRequest,
    BeforeControlPlaneUpgrade, BeforeControlPlaneUpgradeRequest, BeforeWorkersUpgrade, BeforeWorkersUpgradeRequest,
    UpgradeStep,
};
use windlass_runtime_hooks::upgrade_plan::{GenerateUpgradePlan, GenerateUpgradePlanRequest};
use windlass_runtime_hooks::{Hook as Served, Response as _};
use windlass_topology::hooks::{Answer, Call, Hook, Hooks, PlanAnswer, PlanRequest};
use windlass_topology::upgrade::UpgradePlan;

/// The hooks that extensions serve for Clusters of a namespace.
pub(super) async fn served(extensions: &Extensions, namespace: &str) -> Hooks {
    match extensions.served(namespace).await {
        Ok(served) => Hooks {
            served,
            ..Hooks::default()
        },
        Err(error) => Hooks {
            unknown: Some(error.to_string()),
            ..Hooks::default()
        },
    }
}

/// Asks, in order, up to the first hook that does not pass.
pub(super) async fn ask(extensions: &Extensions, cluster: &Cluster, calls: &[Call]) -> BTreeMap<Hook, Answer> {
    let mut answers = BTreeMap::new();
    for call in calls {
        let answer = one(extensions, cluster, call).await;
        let passed = answer == Answer::Passed;
        answers.insert(call.hook, answer);
        // Nothing waits for this one but its own mark.
        if !passed && call.hook != Hook::AfterControlPlaneInitialized {
            break;
        }
    }
    answers
}

/// Asks the handler that a class names which versions an upgrade goes through.
pub(super) async fn ask_plan(extensions: &Extensions, cluster: &Cluster, request: PlanRequest) -> PlanAnswer {
    let answer = given(extensions, cluster, &request).await;
    PlanAnswer {
        answer: answer.map_err(|error| error.to_string()),
        request,
    }
}

async fn given(extensions: &Extensions, cluster: &Cluster, request: &PlanRequest) -> Result<UpgradePlan, CallError> {
    let namespace = cluster.metadata.namespace();
    let handler = extensions
        .named::<GenerateUpgradePlan>(namespace, &request.handler)
        .await?;
    let question = GenerateUpgradePlanRequest {
        settings: BTreeMap::new(),
        cluster: clusters::shown(cluster),
        from_control_plane_kubernetes_version: request.from_control_plane.clone(),
        from_workers_kubernetes_version: request.from_workers.clone(),
        to_kubernetes_version: request.to.clone(),
    };
    let answer = extensions.call::<GenerateUpgradePlan>(&handler, &question).await?;
    let versions = |steps: Vec<UpgradeStep>| steps.into_iter().map(|step| step.version).collect();
    Ok(UpgradePlan {
        control_plane: versions(answer.control_plane_upgrades),
        workers: versions(answer.workers_upgrades),
    })
}

async fn one(extensions: &Extensions, cluster: &Cluster, call: &Call) -> Answer {
    let steps = |versions: &[String]| -> Vec<UpgradeStep> {
        let step = |version: &String| UpgradeStep {
            version: version.clone(),
        };
        versions.iter().map(step).collect()
    };
    let (control_plane_upgrades, workers_upgrades) = (steps(&call.control_plane), steps(&call.workers));
    let (from_kubernetes_version, to_kubernetes_version) = (call.from.clone(), call.to.clone());
    let kubernetes_version = call.to.clone();
    let (about, cluster) = (cluster, clusters::shown(cluster));
    let settings = BTreeMap::new();
    macro_rules! ask {
        ($hook:ident, $request:ident { $($field:ident),* }) => {
            answer::<$hook>(extensions, about, &$request { settings, cluster, $($field),* }).await
        };
    }
    match call.hook {
        Hook::BeforeClusterCreate => ask!(BeforeClusterCreate, BeforeClusterCreateRequest {}),
        Hook::AfterControlPlaneInitialized => {
            ask!(AfterControlPlaneInitialized, AfterControlPlaneInitializedRequest {})
        }
        Hook::BeforeClusterUpgrade => ask!(
            BeforeClusterUpgrade,
            BeforeClusterUpgradeRequest {
                from_kubernetes_version,
                to_kubernetes_version,
                control_plane_upgrades,
                workers_upgrades
            }
        ),
        Hook::BeforeControlPlaneUpgrade => ask!(
            BeforeControlPlaneUpgrade,
            BeforeControlPlaneUpgradeRequest {
                from_kubernetes_version,
                to_kubernetes_version,
                control_plane_upgrades,
                workers_upgrades
            }
        ),
        Hook::BeforeWorkersUpgrade => ask!(
            BeforeWorkersUpgrade,
            BeforeWorkersUpgradeRequest {
                from_kubernetes_version,
                to_kubernetes_version,
                control_plane_upgrades,
                workers_upgrades
            }
        ),
        Hook::AfterControlPlaneUpgrade => ask!(
            AfterControlPlaneUpgrade,
            AfterControlPlaneUpgradeRequest {
                kubernetes_version,
                control_plane_upgrades,
                workers_upgrades
            }
        ),
        Hook::AfterWorkersUpgrade => ask!(
            AfterWorkersUpgrade,
            AfterWorkersUpgradeRequest {
                kubernetes_version,
                control_plane_upgrades,
                workers_upgrades
            }
        ),
        Hook::AfterClusterUpgrade => ask!(AfterClusterUpgrade, AfterClusterUpgradeRequest { kubernetes_version }),
    }
}

async fn answer<H: Served>(extensions: &Extensions, cluster: &Cluster, request: &H::Request) -> Answer {
    let handlers = match extensions.handlers::<H>(cluster.metadata.namespace()).await {
        Ok(handlers) => handlers,
        Err(error) => return Answer::Failed(error.to_string()),
    };
    let about = About {
        uid: cluster.metadata.uid().to_owned(),
        version: clusters::version(cluster),
    };
    match extensions.call_all::<H>(&handlers, &about, request).await {
        Ok(answer) if answer.retry_after_seconds() != 0 => Answer::Blocks {
            seconds: answer.retry_after_seconds(),
            message: answer.message().to_owned(),
        },
        Ok(_) => Answer::Passed,
        Err(error) => Answer::Failed(error.to_string()),
    }
}
