//! The hook BeforeClusterDelete.

use std::time::Duration;

use super::super::hook::{BeforeDelete, Question};
use super::*;

fn going(topology: bool, answer: Option<BeforeDelete>) -> Observed {
    let mut seen = referencing();
    let cluster = Arc::make_mut(&mut seen.cluster);
    if topology {
        cluster.spec.topology = from(json!({"classRef": {"name": "class"}, "version": "v1.35.0"}));
    }
    cluster.metadata.deletion_timestamp = from(json!("2026-03-01T09:59:00Z"));
    seen.infrastructure = object("DevCluster", json!({}), json!({}));
    seen.control_plane = object("KubeadmControlPlane", json!({}), json!({}));
    seen.deployments = vec![deployment(1)];
    seen.before_delete = answer;
    seen
}

#[test]
fn a_topology_is_deleted_after_extensions_were_asked() {
    assert_eq!(plan(&going(true, None)), Decision::Ask(Question::BeforeDelete));
    let (plan, status) = reported(&going(false, None));
    assert!(!plan.actions.is_empty(), "a Cluster without a topology has no hooks");
    check(
        &status,
        "Deleting",
        ("True", "WaitingForWorkersDeletion", "* MachineDeployments: c-md"),
    );
    let plan = planned(&going(true, Some(BeforeDelete::Unserved)));
    assert_eq!(
        plan,
        planned(&going(false, None)),
        "nothing is written without an extension"
    );
    let plan = planned(&going(true, Some(BeforeDelete::Agreed)));
    assert_eq!(plan.actions[0], Action::MarkOkToDelete);
    assert!(plan.actions.len() > 1, "what comes next follows at once");
    let mut agreed = going(true, None);
    let annotations = from(json!({"runtime.cluster.x-k8s.io/ok-to-delete": ""}));
    Arc::make_mut(&mut agreed.cluster).metadata.annotations = annotations;
    assert_eq!(planned(&agreed), planned(&going(false, None)), "it is asked once");
}

#[test]
fn a_deletion_that_has_begun_is_not_stopped() {
    let deleting = |reason: &str| {
        let mut seen = going(true, None);
        Arc::make_mut(&mut seen.cluster).status = from(json!({"conditions": [{
            "type": "Deleting", "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": "2026-03-01T09:59:00Z",
        }]}));
        plan(&seen)
    };
    let ask = Decision::Ask(Question::BeforeDelete);
    assert_eq!(deleting("NotDeleting"), ask);
    assert_eq!(deleting("WaitingForBeforeDeleteHook"), ask);
    assert_ne!(deleting("WaitingForWorkersDeletion"), ask);
}

#[test]
fn nothing_goes_while_an_extension_blocks_or_fails() {
    let (plan, status) = reported(&going(true, Some(BeforeDelete::Blocked(7, "a backup runs".to_owned()))));
    assert!(plan.actions.is_empty());
    assert_eq!((plan.requeue(), plan.blocked()), (Some(Duration::from_secs(7)), None));
    let message = "Waiting for BeforeClusterDelete hook: a backup runs";
    check(&status, "Deleting", ("True", "WaitingForBeforeDeleteHook", message));
    let (plan, status) = reported(&going(true, Some(BeforeDelete::Failed("no answer".to_owned()))));
    assert!(plan.actions.is_empty());
    assert!(plan.blocked().is_some(), "it is tried again");
    let message = "Waiting for BeforeClusterDelete hook: no answer";
    check(&status, "Deleting", ("True", "WaitingForBeforeDeleteHook", message));
    let (_, status) = reported(&going(true, Some(BeforeDelete::Blocked(7, String::new()))));
    check(
        &status,
        "Deleting",
        (
            "True",
            "WaitingForBeforeDeleteHook",
            "Waiting for BeforeClusterDelete hook",
        ),
    );
}
