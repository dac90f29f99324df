//! Plans from files: manifests as users write them, without a management cluster.

use std::path::PathBuf;

use windlass_preview::model::{Report, Verdict};
use windlass_preview::render::{markdown, text};
use windlass_preview::{Change, Source, preview};
use windlass_testkit::{CLASS, ClusterOf, NAMESPACE};

/// Plans what `after` changes in a fleet of these Clusters.
async fn plan(clusters: &[ClusterOf], after: &[ClusterOf], change: Change) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let write = |path: &PathBuf, all: &[ClusterOf]| {
        let documents: Vec<String> = all.iter().map(|one| one.object().to_string()).collect();
        std::fs::write(path, documents.join("\n---\n")).unwrap();
    };
    let (state, changed) = (file("state"), file("changed.yaml"));
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("class.yaml"), CLASS).unwrap();
    write(&state.join("clusters.yaml"), clusters);
    write(&changed, after);
    let change = Change {
        files: if after.is_empty() { Vec::new() } else { vec![changed] },
        namespace: NAMESPACE.to_owned(),
        field_manager: "kubectl".to_owned(),
        ..change
    };
    preview(Source::Files(vec![state]), &change).await.unwrap()
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
