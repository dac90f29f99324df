//! A change of a class that replaces Machines comes to one Cluster after the other, as its plan says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_api_ext::rollouts::{ClusterClassRollout, ClusterClassRolloutStatus};
use windlass_api_kubeadm::bootstrap::KubeadmConfigTemplate;
use windlass_meta::ObjectKey;
use windlass_preview::model::Report;
use windlass_preview::render::{markdown, text};
use windlass_preview::{Change, Source, preview};
use windlass_testkit::wait::looks;
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

const CLASS_NAME: &str = "quick-start";

/// The example class, changed so that all workers are replaced. Nothing of the control planes changes.
fn changed() -> Value {
    let documents: Vec<Value> = serde_saphyr::from_multiple(CLASS).unwrap();
    let mut class = documents.into_iter().find(|one| one["kind"] == "ClusterClass").unwrap();
    class["metadata"]["namespace"] = NAMESPACE.into();
    class["spec"]["patches"].as_array_mut().unwrap().push(json!({
        "name": "verbosity",
        "definitions": [{
            "selector": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate",
                "matchResources": {"machineDeploymentClass": {"names": ["default-worker"]}},
            },
            "jsonPatches": [{"op": "add", "path": "/spec/template/spec/verbosity", "value": 5}],
        }],
    }));
    class
}

/// Waits for a status of the rollout.
async fn rollout_is(env: &Env, what: &str, is_so: impl Fn(&ClusterClassRolloutStatus) -> bool) {
    let key = ObjectKey::new(NAMESPACE, CLASS_NAME);
    let is_so = |rollout: &ClusterClassRollout| rollout.status.as_ref().is_some_and(&is_so);
    env.wait_for(&key, what, is_so).await;
}

/// Whether so many Clusters have the newest revision, and all of them are healthy.
fn is_complete(status: &ClusterClassRolloutStatus) -> bool {
    let mut conditions = status.conditions.iter();
    let is_up_to_date = conditions.any(|condition| condition.type_ == "UpToDate" && condition.status == "True");
    is_up_to_date && status.healthy_clusters == Some(3)
}

async fn plan(env: &Env, object: &Value) -> Report {
    let change = Change {
        objects: vec![object.clone()],
        namespace: NAMESPACE.to_owned(),
        field_manager: windlass_testkit::MANAGER.to_owned(),
        ..Change::default()
    };
    preview(Source::Server(env.client().clone()), &change).await.unwrap()
}

/// The stage and the Clusters of each wave.
fn waves(report: &Report) -> Vec<(&str, Vec<String>)> {
    let waves = report.waves.iter().flat_map(|class| &class.waves);
    waves.map(|wave| (wave.stage.as_str(), wave.clusters.clone())).collect()
}

/// The uids of workers by Cluster.
async fn workers(env: &Env) -> BTreeMap<String, BTreeSet<String>> {
    let mut out: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let is_worker = |machine: &Machine| {
        let labels = machine.metadata.labels.iter().flatten();
        labels
            .map(|(key, _)| key)
            .all(|key| key != "cluster.x-k8s.io/control-plane")
    };
    for machine in env.list::<Machine>().await.into_iter().filter(is_worker) {
        let of_cluster = out.entry(machine.spec.cluster_name.clone()).or_default();
        of_cluster.insert(machine.metadata.uid.unwrap());
    }
    out
}

/// The Clusters whose workers are to be made as the changed class says.
async fn newer(env: &Env) -> BTreeSet<String> {
    let templates = env.list::<KubeadmConfigTemplate>().await;
    let newer = templates.iter().filter(|one| {
        let config = one.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        config.is_some_and(|config| config.verbosity == Some(5))
    });
    let labels = newer.filter_map(|one| one.metadata.labels.as_ref());
    labels
        .filter_map(|labels| labels.get("cluster.x-k8s.io/cluster-name").cloned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_are_replaced_in_one_cluster_after_the_other_as_planned() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let clusters = ["a", "b", "c"].map(|name| ClusterOf::new(name, 1, 2));
    for cluster in &clusters {
        let mut object = cluster.object();
        let tier = if cluster.name == "c" { "canary" } else { "prod" };
        object["metadata"]["labels"] = json!({"tier": tier});
        env.apply(&object).await;
    }
    for cluster in &clusters {
        cluster.wait_running(&env).await;
    }
    let rollout = |soak: u32| {
        json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "ClusterClassRollout",
            "metadata": {"name": CLASS_NAME, "namespace": NAMESPACE},
            "spec": {"stages": [{"name": "canary", "selector": {"matchLabels": {"tier": "canary"}}, "soakSeconds": soak}]},
        })
    };
    env.apply(&rollout(3600)).await;
    rollout_is(&env, "up to date", is_complete).await;
    let report = plan(&env, &changed()).await;
    let of = |name: &str| vec![format!("{NAMESPACE}/{name}")];
    assert_eq!(
        waves(&report),
        [("canary", of("c")), ("others", of("a")), ("others", of("b"))]
    );
    let shown = text::text(&report);
    assert!(
        shown.contains("ClusterClass default/quick-start is rolled out in waves"),
        "{shown}"
    );
    for line in [
        "wave 1, stage canary: 1 Cluster: default/c",
        "waves 2 to 3, stage others: 1 Cluster each: default/a, default/b",
    ] {
        assert!(
            shown.contains(line) && markdown::markdown(&report).contains(line),
            "{shown}"
        );
    }
    assert_eq!(
        (report.summary.changed_clusters, report.summary.machines_replaced),
        (3, 6),
        "{shown}"
    );
    let before = workers(&env).await;
    env.apply(&changed()).await;
    // A Cluster that has it already is in no wave.
    rollout_is(&env, "soaking", |status| {
        let mut conditions = status.conditions.iter();
        conditions.any(|condition| condition.reason == "Soaking")
    })
    .await;
    let report = plan(&env, &changed()).await;
    assert_eq!(waves(&report), [("others", of("a")), ("others", of("b"))]);
    assert!(report.waves[0].left_out.is_empty(), "{}", text::text(&report));
    let mut order: Vec<String> = newer(&env).await.into_iter().collect();
    assert_eq!(order, ["c"]);
    env.apply(&rollout(0)).await;
    let mut looks = looks();
    while order.len() < 3 {
        looks.tick().await;
        let changed = newer(&env).await;
        let new: Vec<String> = changed.iter().filter(|name| !order.contains(name)).cloned().collect();
        if new.is_empty() {
            continue;
        }
        assert_eq!(new.len(), 1, "{new:?} after {order:?}");
        // Those before it were replaced whole.
        let now = workers(&env).await;
        for name in &order {
            assert!(
                now[name].is_disjoint(&before[name]),
                "{name} is not done, and {new:?} begins"
            );
        }
        order.extend(new);
    }
    assert_eq!(order, ["c", "a", "b"]);
    rollout_is(&env, "up to date", is_complete).await;
    let after = workers(&env).await;
    for (name, machines) in &after {
        assert!(machines.len() == 2 && machines.is_disjoint(&before[name]), "{name}");
    }
    let report = plan(&env, &changed()).await;
    assert!(report.waves.is_empty(), "{}", text::text(&report));
    env.stop().await;
}
