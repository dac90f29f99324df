//! Plans from files: manifests as users write them, without a management cluster.

use serde_json::{Value, json};
use windlass_gocompat::yaml::File;
use windlass_preview::model::{Report, Verdict};
use windlass_preview::render::{markdown, text};
use windlass_preview::{Change, PreviewError, Source, preview};
use windlass_testkit::{CLASS, ClusterOf, NAMESPACE};

/// The objects of files.
fn objects(texts: &[&str]) -> Result<Vec<Value>, PreviewError> {
    let file = |text: &&str| File {
        name: "file".to_owned(),
        text: (*text).to_owned(),
    };
    windlass_preview::objects(&texts.iter().map(file).collect::<Vec<_>>())
}

/// Plans what `after` changes in a fleet of these Clusters.
async fn plan(clusters: &[ClusterOf], after: &[ClusterOf], change: Change) -> Report {
    let mut state = objects(&[CLASS]).unwrap();
    state.extend(clusters.iter().map(ClusterOf::object));
    let change = Change {
        objects: after.iter().map(ClusterOf::object).collect(),
        namespace: NAMESPACE.to_owned(),
        field_manager: "kubectl".to_owned(),
        ..change
    };
    preview(Source::Files(state), &change).await.unwrap()
}

#[tokio::test]
async fn manifests_are_enough_for_a_plan() {
    let before = ClusterOf::new("a", 3, 2);
    let report = plan(
        std::slice::from_ref(&before),
        &[before.clone().version("v1.36.0")],
        Change::default(),
    )
    .await;
    assert_eq!(report.verdict(), Verdict::Changes, "{}", text::text(&report));
    assert_eq!((report.summary.machines_replaced, report.summary.changed), (5, 2));
    let phases = &report.groups[0].plan.phases;
    let owners: Vec<_> = phases
        .iter()
        .map(|phase| phase.machines[0].owner.kind.as_str())
        .collect();
    assert_eq!(owners, ["KubeadmControlPlane", "MachineDeployment"]);
    assert!(markdown::markdown(&report).contains("5 replaced"));
    let report = plan(
        std::slice::from_ref(&before),
        std::slice::from_ref(&before),
        Change::default(),
    )
    .await;
    assert_eq!(report.verdict(), Verdict::Same, "{}", text::text(&report));
}

#[tokio::test]
async fn objects_of_older_versions_are_read() {
    let rule = "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineDrainRule\nmetadata: {name: a}\nspec: {drain: {behavior: Skip}}\n";
    let mut state = objects(&[CLASS, rule]).unwrap();
    let cluster = ClusterOf::new("a", 1, 1);
    state.push(cluster.object());
    let change = Change {
        objects: vec![cluster.object()],
        namespace: NAMESPACE.to_owned(),
        field_manager: "kubectl".to_owned(),
        ..Change::default()
    };
    let report = preview(Source::Files(state), &change).await.unwrap();
    assert_eq!(report.verdict(), Verdict::Same, "{}", text::text(&report));
    let bad = rule.replace("behavior: Skip", "order: x");
    let refused = preview(Source::Files(objects(&[&bad]).unwrap()), &change).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("MachineDrainRule a cannot be converted"), "{refused}");
}

#[tokio::test]
async fn clusters_with_the_same_result_are_shown_once() {
    let clusters: Vec<ClusterOf> = ["a", "b", "c", "d"].map(|name| ClusterOf::new(name, 1, 1)).into();
    let mut other = clusters.clone();
    other.push(ClusterOf::new("e", 1, 3));
    let change = Change {
        class: Some("quick-start".to_owned()),
        set: vec!["spec.patches[name=node-label].enabledIf=\"true\"".to_owned()],
        ..Change::default()
    };
    let report = plan(&other, &[], change).await;
    let shown = text::text(&report);
    let sizes: Vec<usize> = report.groups.iter().map(|group| group.clusters.len()).collect();
    assert_eq!(sizes, [4, 1], "{shown}");
    assert_eq!(
        (report.summary.rotated, report.summary.machines_replaced),
        (5, 7),
        "{shown}"
    );
    assert!(
        shown.contains("the same for 3 other Clusters: default/b, default/c, default/d"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_new_cluster_is_planned_whole() {
    let report = plan(&[], &[ClusterOf::new("new", 3, 2)], Change::default()).await;
    let shown = text::text(&report);
    assert_eq!(report.groups[0].plan.phases.len(), 1, "{shown}");
    assert_eq!(
        (report.summary.machines_added, report.summary.deleted),
        (5, 0),
        "{shown}"
    );
    assert!(shown.contains("+ KubeadmControlPlane new-"), "{shown}");
}

/// Plans the documents of a change against files.
async fn plan_documents(state: &[&str], change: &str) -> Result<Report, PreviewError> {
    let mut kept = objects(&[CLASS]).unwrap();
    kept.extend(objects(state)?);
    let change = Change {
        objects: objects(&[change])?,
        namespace: NAMESPACE.to_owned(),
        field_manager: "kubectl".to_owned(),
        ..Change::default()
    };
    preview(Source::Files(kept), &change).await
}

#[tokio::test]
async fn nothing_is_planned_for_a_cluster_that_is_paused() {
    let cluster = ClusterOf::new("a", 1, 1);
    let state = cluster.object().to_string();
    let mut paused = [
        cluster.clone().version("v1.36.0").object(),
        cluster.version("v1.36.0").object(),
    ];
    paused[0]["spec"]["paused"] = true.into();
    paused[1]["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
    for changed in paused {
        let report = plan_documents(&[&state], &changed.to_string()).await.unwrap();
        let shown = text::text(&report);
        assert_eq!(
            (report.summary.machines_replaced, report.groups[0].plan.phases.len()),
            (0, 0),
            "{shown}"
        );
        assert!(shown.contains("the Cluster is paused"), "{shown}");
    }
}

#[tokio::test]
async fn what_cannot_be_planned_is_refused_and_a_new_namespace_is_none_of_it() {
    let old = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "a"}, "spec": {"topology": {"class": "x"}},
    });
    let unknown = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "RockMachineTemplate", "metadata": {"name": "a"}});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let report = plan_documents(&[], &format!("{old}\n---\n{unknown}\n---\n{map}"))
        .await
        .unwrap();
    let refused: Vec<&str> = report.refused.iter().map(|one| one.message.as_str()).collect();
    assert!(
        refused
            .iter()
            .any(|one| one.contains("write it in cluster.x-k8s.io/v1beta2")),
        "{refused:?}"
    );
    assert!(
        refused.iter().any(|one| one.contains("v1 is not served")),
        "{refused:?}"
    );
    assert_eq!(
        (refused.len(), report.ignored.len(), report.verdict()),
        (2, 1, Verdict::Problems)
    );
    assert!(markdown::markdown(&report).contains("Not planned"));

    let mut cluster = ClusterOf::new("far", 1, 1).object();
    cluster["metadata"]["namespace"] = "fresh".into();
    cluster["spec"]["topology"]["classRef"] = json!({"name": "quick-start", "namespace": NAMESPACE});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fresh"}});
    let report = plan_documents(&[], &format!("{cluster}\n---\n{namespace}"))
        .await
        .unwrap();
    assert_eq!(report.summary.machines_added, 2, "{}", text::text(&report));
}

/// Files of others must not make this program send requests to addresses in them, or fail on its shapes.
#[tokio::test]
async fn files_of_others_are_read_with_care() {
    let extension = json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
        "metadata": {"name": "x", "uid": "x"}, "spec": {"clientConfig": {"url": "https://127.0.0.1:1"}},
        "status": {"handlers": [{"name": "create.x", "timeoutSeconds": 1, "failurePolicy": "Fail", "requestHook":
            {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterCreate"}}]},
    });
    let pod = json!({"apiVersion": "x.example.com/v1", "kind": "Other", "metadata": {"name": "p", "namespace": "default", "uid": "p"}});
    let state = [extension.to_string(), pod.to_string()];
    let cluster = ClusterOf::new("new", 1, 1).object().to_string();
    let report = plan_documents(&[&state[0], &state[1]], &cluster).await.unwrap();
    assert!(report.groups[0].plan.phases[0].hooks.is_empty());
    assert_eq!(report.summary.machines_added, 2);
    let odd = r#"{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "m", "uid": "m"}, "status": "x"}"#;
    let error = plan_documents(&[odd], &cluster).await.unwrap_err();
    assert!(error.to_string().contains("status must be an object"), "{error}");
}
