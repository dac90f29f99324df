//! A new process finds things as they were left, and leaves them so.

use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;

use crate::asked::Asked;
use crate::env::{Env, NAMESPACE, V1ALPHA2, declaration};

const INFRA: (&str, &str, &str) = (V1ALPHA2, "InfrastructureProvider", "rig");
const CONTROLLERS: [&str; 2] = ["operator/coreprovider", "operator/infrastructureprovider"];

// OP-123
#[tokio::test(flavor = "multi_thread")]
async fn a_new_process_writes_only_what_was_changed_meanwhile() {
    let asked = Asked::default();
    let mut env = asked.env().await;
    env.with_core(V1ALPHA2).await;
    let infra = LookAlike::infrastructure("rig");
    env.shelve(&infra).await;
    env.variables("variables", &infra).await;
    let spec = json!({"version": "v1.0.0", "configSecret": {"name": "variables"}});
    env.apply(declaration(V1ALPHA2, INFRA.1, INFRA.2, spec)).await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
    asked.nothing().await;
    let before = statuses(&env).await;
    env.stop_operating().await;
    asked.clear();
    env.operate(&asked.faults(|_| None));
    env.wait_reconciled(&CONTROLLERS).await;
    asked.nothing().await;
    let writes = asked.writes();
    let now = statuses(&env).await;
    assert_eq!(writes, [""; 0], "{before:#} became {now:#}");
    env.stop_operating().await;
    let account = ("v1", "ServiceAccount", "infrastructure-rig-manager");
    env.delete(account).await;
    // What others put beside is theirs.
    let other = json!({"metadata": {"labels": {"another": "manager"}}});
    env.merge(("v1", "ServiceAccount", "cluster-api-manager"), other).await;
    asked.clear();
    env.operate(&asked.faults(|_| None));
    env.wait(account, "to be there again", |a| a["metadata"]["uid"].is_string())
        .await;
    asked.nothing().await;
    let writes = asked.writes();
    let path = format!("PATCH /api/v1/namespaces/{NAMESPACE}/serviceaccounts/infrastructure-rig-manager?");
    let after = statuses(&env).await;
    assert!(
        writes.len() == 1 && writes[0].starts_with(&path),
        "{writes:#?}: {now:#} became {after:#}"
    );
}

/// What the declarations say, for the message of a failure.
async fn statuses(env: &Env) -> Value {
    let mut all = Vec::new();
    for of in [INFRA, (V1ALPHA2, "CoreProvider", "cluster-api")] {
        let object = env.wait(of, "to be there", Value::is_object).await;
        all.push(object["status"].clone());
    }
    all.into()
}
