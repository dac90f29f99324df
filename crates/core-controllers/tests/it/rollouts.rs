//! MachineDeployments: creation, rollout, changes in place, deletion.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::runtime::ExtensionConfig;
use windlass_core_controllers::machine_set::PreflightChecks;
use windlass_runtime_client::Callable;
use windlass_testkit::faults::{Fault, Faults};
use windlass_testkit::wait;

use crate::env::{Env, api, cluster, configs, dev_machines, dynamic, has, template};

fn settled(all: &[MachineDeployment], replicas: i32) -> bool {
    all.iter().all(|md| {
        md.status.as_ref().is_some_and(|status| {
            status.observed_generation == md.metadata.generation
                && [status.replicas, status.available_replicas, status.up_to_date_replicas] == [Some(replicas); 3]
        })
    })
}

async fn uids(env: &Env) -> BTreeSet<String> {
    env.list::<Machine>()
        .await
        .iter()
        .filter_map(kube::ResourceExt::uid)
        .collect()
}

#[tokio::test]
async fn a_deployment_makes_complete_machines_with_few_writes() {
    let env = Env::start().await;
    let before = env.server.counters().writes();
    env.deployment(3).await;
    let all = env
        .until::<MachineDeployment>("three Machines are available", |all| settled(all, 3))
        .await;
    let md = &all[0];
    assert_eq!(md.annotations()["machinedeployment.clusters.x-k8s.io/revision"], "1");
    assert_eq!(md.owner_references()[0].kind, "Cluster");
    assert_eq!(md.finalizers(), ["cluster.x-k8s.io/machinedeployment"]);
    assert_eq!(md.status.as_ref().unwrap().phase.as_deref(), Some("Running"));

    let set = &env.list::<MachineSet>().await[0];
    assert_eq!(set.owner_references()[0].controller, Some(true));
    let (configs, infra) = (configs(&env.client), dev_machines(&env.client));
    for machine in env.list::<Machine>().await {
        let name = machine.name_any();
        assert!(name.starts_with(&format!("{}-", set.name_any())), "{name}");
        assert_eq!(machine.labels()["cluster.x-k8s.io/set-name"], set.name_any());
        let manager = machine
            .managed_fields()
            .iter()
            .find(|entry| entry.manager.as_deref() == Some("capi-machineset"));
        assert_eq!(manager.and_then(|entry| entry.operation.as_deref()), Some("Apply"));
        for clones in [&configs, &infra] {
            let clone = clones.get(&name).await.unwrap();
            let owner = &clone.owner_references()[0];
            assert_eq!(
                (owner.kind.as_str(), &owner.uid, owner.controller),
                ("Machine", &machine.uid().unwrap(), Some(true))
            );
            assert_eq!(clone.labels(), machine.labels());
            assert!(clone.annotations().contains_key("cluster.x-k8s.io/cloned-from-name"));
        }
    }
    // The player writes three times; events are counted, too.
    let writes = env.server.counters().writes() - before;
    assert!(
        writes <= 3 * 10 + 10,
        "{writes} writes: {:#?}",
        env.server.counters().snapshot()
    );
}

#[tokio::test]
async fn a_settled_deployment_writes_nothing() {
    let env = Env::start().await;
    env.deployment(2).await;
    env.until::<MachineDeployment>("two Machines are available", |all| settled(all, 2))
        .await;
    env.quiet().await;
    let before = env.server.counters().writes();
    // This wakes the sets and changes nothing for them.
    env.patch::<Cluster>("c", json!({ "metadata": { "annotations": { "note": "x" } } }))
        .await;
    env.quiet().await;
    assert_eq!(
        env.server.counters().writes(),
        before + 1,
        "{:#?}",
        env.server.counters().snapshot()
    );
}

#[tokio::test]
async fn a_rollout_never_surges_or_starves_beyond_its_limits() {
    let env = Env::start().await;
    env.deployment(3).await;
    env.until::<MachineDeployment>("three Machines are available", |all| settled(all, 3))
        .await;
    let patch = json!({ "spec": { "template": { "spec": { "version": "v1.36.0" } } } });
    let mut most = 0;
    let new = env.until::<Machine>("all Machines are new", |all| {
        most = most.max(all.len());
        let available = all
            .iter()
            .filter(|machine| machine.metadata.deletion_timestamp.is_none() && has(machine, "Available", "True"));
        assert!(available.count() >= 3, "{all:#?}");
        all.len() == 3
            && all
                .iter()
                .all(|machine| machine.spec.version.as_deref() == Some("v1.36.0"))
    });
    // At once: a rollout that has ended before the first look shows no surge.
    let (machines, ()) = tokio::join!(new, env.patch::<MachineDeployment>("md", patch));
    assert_eq!((machines.len(), most), (3, 4));
    let sets = env
        .until::<MachineSet>("the old set is gone", |all| all.len() == 1)
        .await;
    assert_eq!(
        sets[0].annotations()["machinedeployment.clusters.x-k8s.io/revision"],
        "2"
    );
    env.until::<MachineDeployment>("the rollout has ended", |all| settled(all, 3))
        .await;
}

#[tokio::test]
async fn labels_come_and_go_in_place() {
    let env = Env::start().await;
    env.deployment(2).await;
    env.until::<MachineDeployment>("two Machines are available", |all| settled(all, 2))
        .await;
    let before = uids(&env).await;
    for team in [json!("a"), json!(null)] {
        let patch = json!({ "spec": { "template": { "metadata": { "labels": { "team": team } } } } });
        env.patch::<MachineDeployment>("md", patch).await;
        let want = team.as_str();
        env.until::<Machine>("the Machines have the label", |all| {
            all.iter()
                .all(|machine| machine.labels().get("team").map(String::as_str) == want)
        })
        .await;
        for clones in [configs(&env.client), dev_machines(&env.client)] {
            env.until_in(&clones, "what they refer to has it", |all| {
                all.len() == 2
                    && all
                        .iter()
                        .all(|clone| clone.labels().get("team").map(String::as_str) == want)
            })
            .await;
        }
    }
    assert_eq!(uids(&env).await, before, "no Machine was replaced");
}

#[tokio::test]
async fn scaling_takes_the_marked_machine() {
    let env = Env::start().await;
    env.deployment(3).await;
    env.until::<MachineDeployment>("three Machines are available", |all| settled(all, 3))
        .await;
    let marked = env.list::<Machine>().await[1].name_any();
    let patch = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/delete-machine": "" } } });
    env.patch::<Machine>(&marked, patch).await;
    env.patch::<MachineDeployment>("md", json!({ "spec": { "replicas": 2 } }))
        .await;
    let left = env.until::<Machine>("one Machine is gone", |all| all.len() == 2).await;
    assert!(left.iter().all(|machine| machine.name_any() != marked));
    env.patch::<MachineDeployment>("md", json!({ "spec": { "replicas": 4 } }))
        .await;
    env.until::<MachineDeployment>("four Machines are available", |all| settled(all, 4))
        .await;
}

#[tokio::test]
async fn a_deleted_deployment_leaves_nothing() {
    let env = Env::start().await;
    env.deployment(2).await;
    env.until::<MachineDeployment>("two Machines are available", |all| settled(all, 2))
        .await;
    api::<MachineDeployment>(&env.client)
        .delete("md", &DeleteParams::default())
        .await
        .unwrap();
    env.until::<MachineDeployment>("it is gone", <[_]>::is_empty).await;
    env.until::<MachineSet>("its sets are gone", <[_]>::is_empty).await;
    env.until::<Machine>("its Machines are gone", <[_]>::is_empty).await;
    for clones in [configs(&env.client), dev_machines(&env.client)] {
        env.until_in(&clones, "what they referred to is gone", <[_]>::is_empty)
            .await;
    }
}

#[tokio::test]
async fn a_paused_deployment_does_not_roll_out() {
    let env = Env::start().await;
    env.deployment(2).await;
    env.until::<MachineDeployment>("two Machines are available", |all| settled(all, 2))
        .await;
    let before = uids(&env).await;
    let patch = json!({ "spec": { "paused": true, "template": { "spec": { "version": "v1.36.0" } } } });
    env.patch::<MachineDeployment>("md", patch).await;
    env.until::<MachineDeployment>("the pause is seen", |all| settled(all, 2))
        .await;
    assert_eq!(env.list::<MachineSet>().await.len(), 1);
    assert_eq!(uids(&env).await, before);
    env.patch::<MachineDeployment>("md", json!({ "spec": { "paused": false } }))
        .await;
    env.until::<Machine>("the rollout went on", |all| {
        all.len() == 2
            && all
                .iter()
                .all(|machine| machine.spec.version.as_deref() == Some("v1.36.0"))
    })
    .await;
}

#[tokio::test]
async fn sets_and_machines_that_lost_their_owners_are_taken_back_and_none_is_replaced() {
    let env = Env::start().await;
    env.deployment(2).await;
    env.until::<MachineDeployment>("two Machines are available", |all| settled(all, 2))
        .await;
    let (machines, sets) = (uids(&env).await, env.list::<MachineSet>().await);
    let unowned = json!({ "metadata": { "ownerReferences": [] } });
    env.patch::<MachineSet>(&sets[0].name_any(), unowned.clone()).await;
    for machine in env.list::<Machine>().await {
        env.patch::<Machine>(&machine.name_any(), unowned.clone()).await;
    }
    let found = env
        .until::<MachineSet>("the set is taken back", |all| {
            all.iter().all(|set| !set.owner_references().is_empty())
        })
        .await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].spec, sets[0].spec);
    assert_eq!(found[0].owner_references(), sets[0].owner_references());
    env.until::<Machine>("the Machines are taken back", |all| {
        all.iter().all(|machine| !machine.owner_references().is_empty())
    })
    .await;
    env.until::<MachineDeployment>("all is as before", |all| settled(all, 2))
        .await;
    env.quiet().await;
    assert_eq!(uids(&env).await, machines);
}

#[tokio::test]
async fn a_set_that_cannot_be_taken_back_has_an_event() {
    let faults = Faults::when(|seen| {
        let adopts = seen.path.contains("/machinesets/") && seen.path.contains("fieldManager=capi-adoption");
        adopts.then_some(Fault::Refused(403))
    });
    let env = Env::with(&faults).await;
    env.run_controllers();
    env.deployment(1).await;
    let sets = env.until::<MachineSet>("there is a set", |all| !all.is_empty()).await;
    let name = sets[0].name_any();
    env.patch::<MachineSet>(&name, json!({ "metadata": { "ownerReferences": [] } }))
        .await;
    let deployments = env.list::<MachineDeployment>().await;
    let message = format!("Failed to adopt MachineSet \"{name}\": ");
    env.event(&deployments[0].name_any(), "FailedAdopt", &message).await;
}

/// Machines of the second template cannot be completed: what is made for them is refused from then on.
#[tokio::test]
async fn a_rollout_that_the_provider_refuses_gives_way_to_the_next_one() {
    let broken: Arc<Mutex<(bool, BTreeSet<String>)>> = Arc::default();
    let state = broken.clone();
    let faults = Faults::when(move |request| {
        let path = request.path.split('?').next().unwrap_or_default();
        if request.method.as_str() != "PATCH" || !path.contains("/devmachines/") {
            return None;
        }
        let (is_broken, refused) = &mut *state.lock().unwrap();
        if *is_broken {
            refused.insert(path.to_owned());
        }
        refused.contains(path).then_some(Fault::Refused(403))
    });
    let env = Env::with(&faults).await;
    env.run_controllers();
    env.run_machines_if(|machine| machine.spec.version.as_deref() != Some("v1.35.1"));
    env.deployment(2).await;
    env.until::<MachineDeployment>("two Machines are available", |all| settled(all, 2))
        .await;
    broken.lock().unwrap().0 = true;
    let template = |version: &str| json!({ "spec": { "template": { "spec": { "version": version } } } });
    env.patch::<MachineDeployment>("md", template("v1.35.1")).await;
    let mut looks = wait::looks();
    while faults.injected().is_empty() {
        looks.tick().await;
    }
    broken.lock().unwrap().0 = false;
    env.patch::<MachineDeployment>("md", template("v1.35.2")).await;
    env.until::<MachineDeployment>("the next template is rolled out", |all| settled(all, 2))
        .await;
    env.until::<Machine>("no other Machine is left", |all| {
        all.len() == 2
            && all
                .iter()
                .all(|machine| machine.spec.version.as_deref() == Some("v1.35.2"))
    })
    .await;
}

#[tokio::test]
async fn clusters_share_a_template() {
    let env = Env::start().await;
    env.deployment(1).await;
    env.create::<Cluster>(cluster("d")).await;
    let mut template = template();
    template["spec"]["clusterName"] = json!("d");
    template["metadata"]["labels"]["role"] = json!("d");
    env.create::<MachineDeployment>(json!({
        "metadata": { "name": "other", "labels": { "cluster.x-k8s.io/cluster-name": "d" } },
        "spec": { "clusterName": "d", "replicas": 1, "selector": { "matchLabels": { "role": "d" } }, "template": template },
    }))
    .await;
    env.until::<MachineDeployment>("both are available", |all| all.len() == 2 && settled(all, 1))
        .await;
    env.quiet().await;
    for kind in ["DevMachineTemplate infra", "KubeadmConfigTemplate boot"] {
        let (kind, name) = kind.split_once(' ').unwrap();
        let group = if kind.starts_with("Dev") {
            "infrastructure"
        } else {
            "bootstrap"
        };
        let templates = dynamic(&env.client, &format!("{group}.cluster.x-k8s.io"), kind);
        let owners = templates.get(name).await.unwrap().owner_references().to_vec();
        let names: BTreeSet<&str> = owners.iter().map(|owner| owner.name.as_str()).collect();
        assert_eq!(names, BTreeSet::from(["c", "d"]), "{kind}");
    }
}

/// An ExtensionConfig that is never discovered, for objects of these namespaces.
async fn extension(env: &Env, name: &str, selector: serde_json::Value) {
    let all: Api<ExtensionConfig> = Api::all(env.client.clone());
    let spec = json!({ "clientConfig": { "url": "https://127.0.0.1:1" }, "namespaceSelector": selector });
    let object = json!({ "metadata": { "name": name }, "spec": spec });
    let object = serde_json::from_value(object).unwrap();
    all.create(&PostParams::default(), &object).await.unwrap();
}

#[tokio::test]
async fn a_rollout_waits_for_no_extension_when_updates_in_place_are_off() {
    let env = Env::empty().await;
    let callable = Callable {
        in_place: false,
        ..Callable::default()
    };
    env.run_with(PreflightChecks::default(), callable);
    env.run_machines();
    env.deployment(2).await;
    env.until::<MachineDeployment>("two Machines are available", |all| settled(all, 2))
        .await;
    // With updates in place it would not be known which hooks it serves.
    extension(&env, "unknown", json!({})).await;
    env.patch::<MachineDeployment>(
        "md",
        json!({ "spec": { "template": { "spec": { "version": "v1.36.0" } } } }),
    )
    .await;
    env.until::<Machine>("all Machines are replaced", |all| {
        all.len() == 2
            && all
                .iter()
                .all(|machine| machine.spec.version.as_deref() == Some("v1.36.0"))
    })
    .await;
}

/// A rollout may wait for an extension, and goes on when that changes.
#[tokio::test]
async fn an_extension_wakes_the_deployments_that_roll_out_and_no_others() {
    let env = Env::empty().await;
    env.run_controllers();
    // Machines of the next version do not come up, so that a rollout waits for events alone.
    env.run_machines_if(|machine| machine.spec.version.as_deref() == Some("v1.35.0"));
    env.deployment(2).await;
    env.until::<MachineDeployment>("two Machines are available", |all| settled(all, 2))
        .await;
    env.silence().await;
    let looks = || env.reconciles("machinedeployment");
    let elsewhere = json!({ "matchLabels": { "a": "b" } });
    let before = looks();
    extension(&env, "early", elsewhere.clone()).await;
    env.quiet().await;
    assert_eq!(looks(), before, "it is at rest");

    env.patch::<MachineDeployment>(
        "md",
        json!({ "spec": { "template": { "spec": { "version": "v1.36.0" } } } }),
    )
    .await;
    // What the Machine controller finds.
    let condition = |type_: &str, status: &str| json!({ "type": type_, "status": status, "reason": type_, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let conditions = json!([
        condition("Ready", "True"),
        condition("Available", "True"),
        condition("UpToDate", "False")
    ]);
    let machines: Api<Machine> = api(&env.client);
    for machine in env.list::<Machine>().await {
        if machine.spec.version.as_deref() == Some("v1.35.0") {
            let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
            let by = PatchParams::default();
            machines.patch_status(&machine.name_any(), &by, &patch).await.unwrap();
        }
    }
    env.until::<MachineDeployment>("it rolls out", |all| {
        let mut conditions = all[0].status.iter().flat_map(|status| &status.conditions);
        conditions.any(|one| one.type_ == "RollingOut" && one.status == "True")
    })
    .await;
    env.silence().await;
    let before = looks();
    extension(&env, "late", elsewhere).await;
    let mut ticks = wait::looks();
    let woken = tokio::time::timeout(wait::TIMEOUT, async {
        while looks() == before {
            ticks.tick().await;
        }
    });
    woken.await.expect("the extension wakes it");
}
