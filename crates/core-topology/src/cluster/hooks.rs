//! What extensions are asked about a Cluster: lifecycle hooks, the versions of an upgrade, and patches and checks of templates.

use std::collections::BTreeMap;

use serde_json::Value;
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
use windlass_runtime_hooks::topology::{
    GeneratePatches, GeneratePatchesRequest, GeneratePatchesRequestItem, HolderReference, ValidateTopology,
    ValidateTopologyRequest, ValidateTopologyRequestItem, Variable,
};
use windlass_runtime_hooks::upgrade_plan::{GenerateUpgradePlan, GenerateUpgradePlanRequest};
use windlass_runtime_hooks::{Hook as Served, Response as _};
use windlass_topology::hooks::{Answer, Call, Hook, Hooks, PlanAnswer, PlanRequest};
use windlass_topology::model::ClassSpec;
use windlass_topology::patches::external::{self, Purpose};
use windlass_topology::upgrade::UpgradePlan;
use windlass_topology::variables::Values;

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

/// Stands for the ExtensionConfigs of the handlers that patch the templates of a class: a mended extension gives another text.
pub(super) fn revisions(extensions: &Extensions, class: &ClassSpec) -> Vec<String> {
    let external = class.patches.iter().filter_map(|patch| patch.external.as_ref());
    let handlers: Vec<&str> = external.filter_map(|external| external.generates()).collect();
    extensions.revisions(&handlers)
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

/// Asks the extension of an external patch how it changes the templates, or whether it finds them good.
pub(super) async fn ask_about_templates(
    extensions: &Extensions,
    cluster: &Cluster,
    question: external::Question,
) -> external::Answered {
    let namespace = cluster.metadata.namespace();
    let answer = match question.purpose {
        Purpose::Generate => patches(extensions, namespace, &question).await,
        Purpose::Validate => check(extensions, namespace, &question).await.map(|()| Vec::new()),
    };
    external::Answered {
        answer: answer.map_err(|error| error.to_string()),
        question,
    }
}

async fn patches(
    extensions: &Extensions,
    namespace: &str,
    question: &external::Question,
) -> Result<Vec<external::Given>, CallError> {
    let handler = extensions
        .named::<GeneratePatches>(namespace, &question.handler)
        .await?;
    let items = question.items.iter().map(|item| GeneratePatchesRequestItem {
        uid: item.uid.clone(),
        holder_reference: holder(&item.holder),
        object: item.template.clone(),
        variables: variables(&item.variables),
    });
    let request = GeneratePatchesRequest {
        settings: question.settings.clone(),
        variables: variables(&question.variables),
        items: items.collect(),
    };
    let answer = extensions.call::<GeneratePatches>(&handler, &request).await?;
    let given = answer.items.into_iter().map(|item| external::Given {
        uid: item.uid,
        form: item.patch_type,
        patch: item.patch.0,
    });
    Ok(given.collect())
}

async fn check(extensions: &Extensions, namespace: &str, question: &external::Question) -> Result<(), CallError> {
    let handler = extensions
        .named::<ValidateTopology>(namespace, &question.handler)
        .await?;
    let items = question.items.iter().map(|item| ValidateTopologyRequestItem {
        holder_reference: holder(&item.holder),
        object: item.template.clone(),
        variables: variables(&item.variables),
    });
    let request = ValidateTopologyRequest {
        settings: question.settings.clone(),
        variables: variables(&question.variables),
        items: items.collect(),
    };
    extensions.call::<ValidateTopology>(&handler, &request).await.map(drop)
}

fn variables(values: &Values) -> Vec<Variable> {
    let variable = |(name, value): (&String, &Value)| Variable {
        name: name.clone(),
        value: value.clone(),
    };
    values.iter().map(variable).collect()
}

fn holder(holder: &external::Holder) -> HolderReference {
    HolderReference {
        api_version: holder.api_version.clone(),
        kind: holder.kind.clone(),
        namespace: holder.namespace.clone(),
        name: holder.name.clone(),
        field_path: holder.field_path.clone(),
    }
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
