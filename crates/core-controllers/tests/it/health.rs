//! MachineHealthChecks, together with the MachineSets that do what they ask for.

use kube::ResourceExt as _;
use serde_json::json;
use windlass_api::core::{Machine, MachineDeployment, MachineHealthCheck};
use windlass_api::kind::Conditioned as _;

use crate::env::Env;

/// Makes a check of all workers.
async fn check(env: &Env) {
    env.create::<MachineHealthCheck>(json!({
        "metadata": { "name": "check" },
        "spec": { "clusterName": "c", "selector": { "matchLabels": { "role": "w" } },
            "checks": { "nodeStartupTimeoutSeconds": 600 } },
    }))
    .await;
}

#[tokio::test]
async fn a_machine_that_the_user_marks_is_replaced() {
    let env = Env::empty().await;
    env.run_controllers();
    // Machines do not come up: without Nodes no connection to the workload cluster is needed.
    env.deployment(2).await;
    let machines = env
        .until::<Machine>("there are two Machines", |all| all.len() == 2)
        .await;
    check(&env).await;
    let checks = env
        .until::<MachineHealthCheck>("it counts two Machines", |all| {
            all.iter().all(|check| {
                check
                    .status
                    .as_ref()
                    .is_some_and(|status| status.expected_machines == Some(2))
            })
        })
        .await;
    assert_eq!(checks[0].owner_references()[0].kind, "Cluster");
    assert_eq!(checks[0].conditions()[0].type_, "RemediationAllowed");
    assert_eq!(checks[0].status.as_ref().unwrap().current_healthy, Some(0));

    let marked = machines[0].clone();
    let patch = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/remediate-machine": "" } } });
    env.patch::<Machine>(&marked.name_any(), patch).await;
    env.until::<Machine>("it is being replaced", |all| {
        let sick = all.iter().find(|machine| machine.uid() == marked.uid());
        sick.is_some_and(|machine| {
            let said = |type_: &str, reason: &str| {
                machine
                    .conditions()
                    .iter()
                    .any(|have| have.type_ == type_ && have.status == "False" && have.reason == reason)
            };
            machine.metadata.deletion_timestamp.is_some()
                && said("HealthCheckSucceeded", "HasRemediateAnnotation")
                && said("OwnerRemediated", "MachineDeleting")
        })
    })
    .await;
    env.run_machines();
    env.until::<Machine>("it was replaced", |all| {
        all.len() == 2 && all.iter().all(|machine| machine.uid() != marked.uid())
    })
    .await;
    env.until::<MachineDeployment>("all Machines are available", |all| {
        all.iter().all(|md| {
            md.status
                .as_ref()
                .is_some_and(|status| status.available_replicas == Some(2))
        })
    })
    .await;
}

#[tokio::test]
async fn a_higher_limit_of_replacements_counts_at_once() {
    let env = Env::empty().await;
    env.run_controllers();
    env.deployment(2).await;
    let limit = async |count: i32| {
        let patch = json!({ "spec": { "remediation": { "maxInFlight": count } } });
        env.patch::<MachineDeployment>("md", patch).await;
    };
    limit(0).await;
    let machines = env
        .until::<Machine>("there are two Machines", |all| all.len() == 2)
        .await;
    check(&env).await;
    for machine in &machines {
        let patch = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/remediate-machine": "" } } });
        env.patch::<Machine>(&machine.name_any(), patch).await;
    }
    let remediation = |machine: &Machine| {
        let mut all = machine.conditions().iter();
        all.find(|have| have.type_ == "OwnerRemediated")
            .map(|have| have.reason.clone())
    };
    env.until::<Machine>("both replacements are deferred", |all| {
        all.iter()
            .all(|machine| remediation(machine).as_deref() == Some("RemediationDeferred"))
    })
    .await;
    env.quiet().await;
    limit(1).await;
    env.until::<Machine>("one of them is being replaced", |all| {
        let going = all
            .iter()
            .filter(|machine| machine.metadata.deletion_timestamp.is_some());
        going.count() == 1
    })
    .await;
}
