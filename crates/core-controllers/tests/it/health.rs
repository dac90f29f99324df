//! MachineHealthChecks, together with the MachineSets that do what they ask for.

use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::json;
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineHealthCheck};
use windlass_api::kind::Conditioned as _;

use crate::env::{Env, api, cluster, has};

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
async fn a_check_of_a_cluster_that_does_not_exist_says_so() {
    let env = Env::empty().await;
    env.run_controllers();
    env.create::<MachineHealthCheck>(json!({
        "metadata": { "name": "check" },
        "spec": { "clusterName": "ghost", "selector": { "matchLabels": { "role": "w" } } },
    }))
    .await;
    let said = async |status: &str, words: &str| {
        env.until::<MachineHealthCheck>(words, |all| {
            let mut conditions = all.iter().flat_map(MachineHealthCheck::conditions);
            conditions
                .any(|have| have.type_ == "RemediationAllowed" && have.status == status && have.message.contains(words))
        })
        .await
    };
    said("Unknown", "spec.clusterName: Cluster ghost does not exist").await;
    env.create::<Cluster>(cluster("ghost")).await;
    said("True", "").await;
}

#[tokio::test]
async fn a_remediation_request_that_is_refused_is_reported_and_tried_again() {
    let env = Env::empty().await;
    // A kind of requests that needs a field which the template does not have.
    let definition = |kind: &str, spec: serde_json::Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{}s.fix.io", kind.to_lowercase()), "labels": { "cluster.x-k8s.io/v1beta2": "v1" } },
            "spec": {
                "group": "fix.io", "scope": "Namespaced",
                "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": format!("{}s", kind.to_lowercase()), "singular": kind.to_lowercase() },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                    "type": "object", "properties": { "spec": spec } } } }],
            },
        })
    };
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let needs = json!({ "type": "object", "required": ["way"], "properties": { "way": { "type": "string" } } });
    env.define(definition("FixRemediationTemplate", open)).await;
    env.define(definition("FixRemediation", needs)).await;
    let templates = fix(&env, "FixRemediationTemplate");
    let template = |spec: serde_json::Value| -> DynamicObject {
        serde_json::from_value(json!({ "apiVersion": "fix.io/v1", "kind": "FixRemediationTemplate",
            "metadata": { "name": "fix" }, "spec": { "template": { "spec": spec } } }))
        .unwrap()
    };
    let created = PostParams::default();
    templates.create(&created, &template(json!({}))).await.unwrap();
    env.run_controllers();
    env.deployment(2).await;
    let machines = env
        .until::<Machine>("there are two Machines", |all| all.len() == 2)
        .await;
    env.create::<MachineHealthCheck>(json!({
        "metadata": { "name": "check" },
        "spec": { "clusterName": "c", "selector": { "matchLabels": { "role": "w" } },
            "checks": { "nodeStartupTimeoutSeconds": 600 },
            "remediation": { "templateRef": { "apiVersion": "fix.io/v1", "kind": "FixRemediationTemplate", "name": "fix" } } },
    }))
    .await;
    for machine in &machines {
        let patch = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/remediate-machine": "" } } });
        env.patch::<Machine>(&machine.name_any(), patch).await;
    }
    let external = |machine: &Machine, reason: &str, words: &str| {
        let mut all = machine.conditions().iter();
        all.any(|have| have.type_ == "ExternallyRemediated" && have.reason == reason && have.message.contains(words))
    };
    env.until::<Machine>("both say that there is no request", |all| {
        all.iter()
            .all(|machine| external(machine, "RemediationRequestCreationFailed", "spec.way"))
    })
    .await;
    let patch = Patch::Merge(template(json!({ "way": "reboot" })));
    templates.patch("fix", &PatchParams::default(), &patch).await.unwrap();
    env.until::<Machine>("both wait for their request", |all| {
        all.iter().all(|machine| external(machine, "WaitingForRemediation", ""))
    })
    .await;
    assert_eq!(
        fix(&env, "FixRemediation")
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        2
    );
    // The condition is up to the controller of the remediation from here on.
    let machine = machines[0].name_any();
    let condition = json!({ "type": "ExternallyRemediated", "status": "False", "reason": "Rebooting", "message": "",
        "lastTransitionTime": "2026-01-01T12:00:00Z" });
    let status =
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "status": { "conditions": [condition] } });
    let fixer = PatchParams::apply("fixer").force();
    let all = api::<Machine>(&env.client);
    all.patch_status(&machine, &fixer, &Patch::Apply(status)).await.unwrap();
    env.quiet().await;
    let now = all.get(&machine).await.unwrap();
    assert!(external(&now, "Rebooting", ""), "{:?}", now.conditions());
}

/// Objects of the kinds of the remediation.
fn fix(env: &Env, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("fix.io", "v1", kind));
    Api::namespaced_with(env.client.clone(), "default", &resource)
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

/// A Machine that breaks while the infrastructure of its Cluster is not ready is judged once it is ready again.
#[tokio::test]
async fn machines_are_judged_when_the_infrastructure_of_their_cluster_is_ready_again() {
    let env = Env::empty().await;
    env.run_controllers();
    let gate = async |status: &str| {
        let condition = |type_: &str, status: &str| {
            json!({ "type": type_, "status": status, "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z" })
        };
        let status = json!({ "status": {
            "initialization": { "infrastructureProvisioned": true, "controlPlaneInitialized": true },
            "conditions": [condition("InfrastructureReady", status), condition("ControlPlaneInitialized", "False")],
        } });
        let clusters = api::<Cluster>(&env.client);
        clusters
            .patch_status("c", &PatchParams::default(), &Patch::Merge(&status))
            .await
            .unwrap();
    };
    gate("False").await;
    env.create::<Machine>(json!({
        "metadata": { "name": "cp", "labels": {
            "role": "w", "cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/control-plane": "" } },
        "spec": { "clusterName": "c", "bootstrap": { "dataSecretName": "data" }, "infrastructureRef": {
            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "cp" } },
    }))
    .await;
    let broken = json!({ "status": { "conditions": [{ "type": "Broken", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
    api::<Machine>(&env.client)
        .patch_status("cp", &PatchParams::default(), &Patch::Merge(&broken))
        .await
        .unwrap();
    env.create::<MachineHealthCheck>(json!({
        "metadata": { "name": "check" },
        "spec": { "clusterName": "c", "selector": { "matchLabels": { "role": "w" } },
            "checks": { "unhealthyMachineConditions": [{ "type": "Broken", "status": "True", "timeoutSeconds": 1 }] } },
    }))
    .await;
    env.until::<MachineHealthCheck>("it counts the Machine", |all| {
        let expected = |check: &MachineHealthCheck| check.status.as_ref().and_then(|status| status.expected_machines);
        all.iter().all(|check| expected(check) == Some(1))
    })
    .await;
    env.silence().await;
    gate("True").await;
    env.until::<Machine>("it is found unhealthy", |all| {
        all.iter().all(|machine| has(machine, "HealthCheckSucceeded", "False"))
    })
    .await;
}
