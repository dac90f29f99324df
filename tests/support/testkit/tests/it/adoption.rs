//! What the controllers would change in a management cluster that other managers ran.

use serde_json::json;
use windlass_api::core::Machine;
use windlass_infra_dev::Cloud;
use windlass_manager::FeatureGates;
use windlass_preview::adopt::model::Adoption;
use windlass_preview::adopt::{Trial, adopt};
use windlass_preview::model::{Verb, Verdict};
use windlass_preview::render::adoption::text;
use windlass_testkit::rest::differences;
use windlass_testkit::wait::TIMEOUT;
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

/// Tries a take-over, and asserts that nothing is written.
async fn tried(env: &Env) -> Adoption {
    let trial = Trial {
        controllers: Vec::new(),
        gates: FeatureGates::default(),
        timeout: TIMEOUT,
    };
    let before = env.all().await;
    let report = adopt(env.client().clone(), &trial).await.unwrap();
    let written = differences(&before, &env.all().await, &[]);
    assert!(written.is_empty(), "{}", written.join("\n"));
    report
}

#[tokio::test]
async fn a_trial_of_a_take_over_says_what_would_change_and_writes_nothing() {
    let mut env = Env::builder().cloud(&Cloud::new()).start().await;
    env.apply_yaml(CLASS).await;
    let of = ClusterOf::new("taken-over", 1, 2);
    of.apply(&env).await;
    of.wait_running(&env).await;
    env.rest().await;
    env.stop_controllers().await;

    let report = tried(&env).await;
    assert_eq!(report.verdict(), Verdict::Same, "{}", text(&report));
    assert!(report.texts.is_empty(), "{:?}", report.texts);
    assert_eq!(report.clusters, 1);

    // Work that the managers have left.
    let machines = env.list::<Machine>().await;
    let machine = of.machines(&machines, false)[0].metadata.name.clone().unwrap();
    let label = json!({"metadata": {"labels": {"node.cluster.x-k8s.io/zone": "a"}}});
    env.merge("Machine", &machine, &label).await;
    of.clone().workers(3).apply(&env).await;
    let report = tried(&env).await;
    let shown = text(&report);
    assert_eq!(report.verdict(), Verdict::Changes, "{shown}");
    for kind in ["Machine", "KubeadmConfig", "DevMachine"] {
        let made = report
            .changes
            .iter()
            .filter(|change| change.verb == Verb::Created && change.object.kind == kind);
        assert_eq!(made.count(), 1, "{kind}: {shown}");
    }
    assert!(shown.contains("spec.replicas: 2 -> 3"), "{shown}");
    assert!(
        report.changes.iter().all(|change| change.verb != Verb::Deleted),
        "{shown}"
    );
    let written: Vec<&str> = report.workload_writes.iter().map(|write| write.what.as_str()).collect();
    let token = "POST /api/v1/namespaces/kube-system/secrets".to_owned();
    assert_eq!(written, [format!("PATCH /api/v1/nodes/{machine}"), token], "{shown}");

    // What cannot be known is no reason to go on.
    of.apply(&env).await;
    env.merge(
        "Machine",
        &machine,
        &json!({"metadata": {"labels": {"node.cluster.x-k8s.io/zone": null}}}),
    )
    .await;
    let secret = format!("{}-kubeconfig", of.name);
    let broken = json!({"data": {"value": "e30="}});
    let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> = kube::Api::namespaced(env.client().clone(), NAMESPACE);
    let patch = kube::api::Patch::Merge(&broken);
    secrets
        .patch(&secret, &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap();
    let report = tried(&env).await;
    let shown = text(&report);
    assert_ne!(report.verdict(), Verdict::Same, "{shown}");
    assert!(
        shown.contains("workload cluster default/taken-over is not reached"),
        "{shown}"
    );
    env.stop().await;
}
