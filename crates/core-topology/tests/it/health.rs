//! Health checks that class and topology define.

use serde_json::{Value, json};

use crate::env::{Env, assert_has, name};

const BIG: &str = "big-pool-of-machines-1";
const SMALL: &str = "small-pool-of-machines-1";
const WINDOWS: &str = "microsoft-1";
const KIND: &str = "MachineHealthCheck";

fn disk() -> Value {
    json!([{"type": "DiskPressure", "status": "True", "timeoutSeconds": 60}])
}

async fn gone(env: &Env, check: &str) {
    env.wait(&format!("the end of {check}"), async || {
        env.get(KIND, check).await.is_none().then_some(())
    })
    .await;
}

// TO-010, TO-019, TO-058, TO-247, TO-339, TO-342, TO-343, TO-347, TO-348, TO-351, TO-353, TO-355, TO-366: the class has health checks for all of its
// Machines; a topology replaces, drops and restores them.
#[tokio::test]
async fn a_topology_replaces_drops_and_restores_health_checks_of_its_class() {
    let env = Env::start().await;
    env.apply_example().await;
    let control_plane = env.generated("KubeadmControlPlane").await.remove(0);
    let control_plane = name(&control_plane);
    let mut names = Vec::new();
    for entry in [BIG, SMALL, WINDOWS] {
        names.push(name(&env.deployment(entry).await).to_owned());
    }
    let [big, small, windows] = names.as_slice() else {
        unreachable!("three worker sets")
    };
    assert_eq!(env.list(KIND).await.len(), 4);
    let checks = env.get(KIND, control_plane).await.unwrap();
    assert_has(
        &checks["spec"],
        &json!({
            "clusterName": "foo", "checks": {"nodeStartupTimeoutSeconds": 180},
            "remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "33%"}},
        }),
    );
    assert_eq!(
        checks["spec"]["checks"]["unhealthyNodeConditions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    // What the class leaves open has the defaults of the kind.
    let open = env.get(KIND, big).await.unwrap();
    assert_has(&open["spec"], &json!({"checks": {"nodeStartupTimeoutSeconds": 600}}));

    // What the topology says replaces all of it, with a template of the provider for repairs.
    let template = json!({"apiVersion": "example.com/v1", "kind": "RepairTemplate", "name": "repair"});
    env.topology(|topology| {
        topology["controlPlane"]["healthCheck"] = json!({"checks": {"unhealthyNodeConditions": disk()}});
        let workers = &mut topology["workers"]["machineDeployments"];
        workers[0]["healthCheck"] = json!({
            "enabled": true, "checks": {"unhealthyNodeConditions": disk(),
                "unhealthyMachineConditions": [{"type": "Healthy", "status": "False", "timeoutSeconds": 30}]},
            "remediation": {"triggerIf": {"unhealthyInRange": "[1-3]"}, "templateRef": template},
        });
        workers[1]["healthCheck"] = json!({"enabled": false});
    })
    .await;
    env.becomes(
        KIND,
        control_plane,
        json!({"spec": {
            "checks": {"nodeStartupTimeoutSeconds": 600, "unhealthyNodeConditions": disk()},
            "remediation": null,
        }}),
    )
    .await;
    env.becomes(
        KIND,
        big,
        json!({"spec": {
            "checks": {"unhealthyNodeConditions": disk(),
                "unhealthyMachineConditions": [{"type": "Healthy", "status": "False", "timeoutSeconds": 30}]},
            "remediation": {"triggerIf": {"unhealthyInRange": "[1-3]"}, "templateRef": {"kind": "RepairTemplate"}},
        }}),
    )
    .await;
    gone(&env, small).await;
    assert!(env.get(KIND, windows).await.is_some());

    // A change by hand is set back.
    let by_hand = json!({"spec": {"checks": {"unhealthyNodeConditions": [
        {"type": "Ready", "status": "Unknown", "timeoutSeconds": 1}]}}});
    env.merge(KIND, big, by_hand).await;
    env.becomes(
        KIND,
        big,
        json!({"spec": {"checks": {"unhealthyNodeConditions": disk()}}}),
    )
    .await;

    // It comes back, and goes with the definition of the class.
    env.topology(|topology| topology["workers"]["machineDeployments"][1]["healthCheck"] = Value::Null)
        .await;
    env.becomes(KIND, small, json!({"spec": {"clusterName": "foo"}})).await;
    let mut class = env.get("ClusterClass", "mixed").await.unwrap();
    class["spec"]["workers"]["machineDeployments"][1]["healthCheck"].take();
    env.merge("ClusterClass", "mixed", json!({"spec": class["spec"]})).await;
    gone(&env, windows).await;
    assert!(env.get(KIND, small).await.is_some());
    env.stop().await;
}
