//! Replicas that are left out: they are written, so that an autoscaler can read and write the subresource `scale`.

use std::collections::BTreeSet;
use std::fmt::Debug;

use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::core::{Machine, MachineDeployment, MachineSet};

use crate::env::{Env, api, template};

const MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
const MAX: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";

fn bounds(min: &str, max: &str) -> Value {
    json!({ MIN: min, MAX: max })
}

/// A MachineDeployment or MachineSet as a Git repository has it.
fn object(kind: &str, name: &str, replicas: Option<i32>, annotations: &Value) -> Value {
    let mut template = template();
    template["metadata"]["labels"] = json!({ "role": name });
    let mut object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind,
        "metadata": { "name": name, "annotations": annotations },
        "spec": { "clusterName": "c", "selector": { "matchLabels": { "role": name } }, "template": template },
    });
    if let Some(replicas) = replicas {
        object["spec"]["replicas"] = replicas.into();
    }
    object
}

/// Applies as a GitOps tool does: it gives up what it leaves out.
async fn sync<K>(env: &Env, object: &Value)
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Clone + Debug,
{
    let name = object["metadata"]["name"].as_str().unwrap();
    let params = PatchParams::apply("gitops").force();
    let sent = api::<K>(&env.client).patch(name, &params, &Patch::Apply(object)).await;
    sent.unwrap();
}

/// Waits until the object has this many replicas in its spec and is at rest with them, and reads its scale.
async fn settles<K>(env: &Env, name: &str, replicas: i32)
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + serde::Serialize
        + DeserializeOwned
        + Clone
        + Debug,
{
    let what = format!("{name} rests with {replicas} replicas");
    env.until::<K>(&what, |all| {
        let all = all.iter().map(|one| serde_json::to_value(one).unwrap());
        let mut ours = all.filter(|one| one["metadata"]["name"] == name);
        ours.any(|one| {
            one["spec"]["replicas"] == replicas
                && one["status"]["availableReplicas"] == replicas
                && one["status"]["observedGeneration"] == one["metadata"]["generation"]
        })
    })
    .await;
    let scale = api::<K>(&env.client).get_scale(name).await.unwrap();
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(replicas), "{name}");
    assert_eq!(scale.status.map(|status| status.replicas), Some(replicas), "{name}");
}

async fn machines(env: &Env) -> BTreeSet<String> {
    let all = env.list::<Machine>().await;
    all.iter()
        .filter(|machine| machine.metadata.deletion_timestamp.is_none())
        .map(kube::ResourceExt::name_any)
        .collect()
}

async fn autoscale<K>(env: &Env, name: &str, replicas: i32)
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Clone + Debug,
{
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    let params = PatchParams {
        field_manager: Some("cluster-autoscaler".to_owned()),
        ..PatchParams::default()
    };
    api::<K>(&env.client).patch_scale(name, &params, &patch).await.unwrap();
}

#[tokio::test]
async fn new_objects_without_replicas_get_the_lower_bound_or_one() {
    // Without admission the controllers do what it does.
    for (admission, env) in [(true, Env::start().await), (false, Env::start_unadmitted().await)] {
        for kind in ["MachineDeployment", "MachineSet"] {
            for (name, annotations, replicas) in [
                ("plain", json!({}), 1),
                ("bounded", bounds("2", "5"), 2),
                ("half", json!({ MIN: "2" }), 1),
                ("unreadable", bounds("two", "5"), 1),
            ] {
                if admission && name == "unreadable" {
                    continue;
                }
                let name = format!("{}-{name}", kind.to_lowercase());
                let object = object(kind, &name, None, &annotations);
                if kind == "MachineSet" {
                    sync::<MachineSet>(&env, &object).await;
                    settles::<MachineSet>(&env, &name, replicas).await;
                } else {
                    sync::<MachineDeployment>(&env, &object).await;
                    settles::<MachineDeployment>(&env, &name, replicas).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn handing_replicas_over_to_an_autoscaler_replaces_and_removes_no_machine() {
    let env = Env::start().await;
    sync::<MachineDeployment>(&env, &object("MachineDeployment", "md", Some(4), &json!({}))).await;
    settles::<MachineDeployment>(&env, "md", 4).await;
    let before = machines(&env).await;
    let handed_over = object("MachineDeployment", "md", None, &bounds("2", "5"));
    for _ in 0..2 {
        sync::<MachineDeployment>(&env, &handed_over).await;
        settles::<MachineDeployment>(&env, "md", 4).await;
        env.quiet().await;
        assert_eq!(machines(&env).await, before);
    }
    let sets = env.list::<MachineSet>().await;
    assert!(sets.iter().all(|set| set.spec.replicas == Some(4)));

    // The autoscaler's number is not taken back by the next syncs.
    autoscale::<MachineDeployment>(&env, "md", 3).await;
    settles::<MachineDeployment>(&env, "md", 3).await;
    sync::<MachineDeployment>(&env, &handed_over).await;
    env.quiet().await;
    settles::<MachineDeployment>(&env, "md", 3).await;

    // Taken over by hand and handed over again, above the upper bound.
    sync::<MachineDeployment>(&env, &object("MachineDeployment", "md", Some(4), &bounds("1", "2"))).await;
    settles::<MachineDeployment>(&env, "md", 4).await;
    sync::<MachineDeployment>(&env, &object("MachineDeployment", "md", None, &bounds("1", "2"))).await;
    settles::<MachineDeployment>(&env, "md", 2).await;
}

#[tokio::test]
async fn a_set_of_its_own_keeps_its_machines_when_its_replicas_are_handed_over() {
    let env = Env::start().await;
    sync::<MachineSet>(&env, &object("MachineSet", "ms", Some(3), &json!({}))).await;
    settles::<MachineSet>(&env, "ms", 3).await;
    let before = machines(&env).await;
    sync::<MachineSet>(&env, &object("MachineSet", "ms", None, &bounds("1", "5"))).await;
    settles::<MachineSet>(&env, "ms", 3).await;
    env.quiet().await;
    assert_eq!(machines(&env).await, before);
    autoscale::<MachineSet>(&env, "ms", 2).await;
    settles::<MachineSet>(&env, "ms", 2).await;
}
