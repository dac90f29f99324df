use serde_json::{Value, json};
use windlass_api_ext::addons::reasons;
use windlass_controller_runtime::{Moment, ReconcileError, Seen};
use windlass_helm::Status;

use super::super::observed::{ClusterState, Latest, Observed, Obstacle, Operation};
use super::super::testing::{NOW, at, decided, down, no_kubeconfig, seen};
use super::{Done, status};

fn after(seen: &Observed, done: &Done, second: i64) -> Option<Value> {
    let plan = decided(seen, &Moment::at(at(second)));
    status(seen, &plan, done, at(second))
}

fn reported(seen: &Observed) -> Value {
    after(seen, &Done::default(), NOW).unwrap()
}

fn condition<'a>(status: &'a Value, type_: &str) -> &'a Value {
    let all = status["conditions"].as_array().unwrap();
    all.iter().find(|condition| condition["type"] == type_).unwrap()
}

/// Status and reason of ClusterAvailable, HelmReleaseReady and Ready.
fn check(seen: &Observed, expect: [(&str, &str); 3]) -> Value {
    let status = reported(seen);
    let types = ["ClusterAvailable", "HelmReleaseReady", "Ready"];
    let found = types.map(|type_| {
        let found = condition(&status, type_);
        assert_eq!(found["observedGeneration"], 3);
        (found["status"].as_str().unwrap(), found["reason"].as_str().unwrap())
    });
    assert_eq!(found, expect, "{status:#}");
    assert_eq!(status["observedGeneration"], 3);
    status
}

const AVAILABLE: (&str, &str) = ("True", reasons::AVAILABLE);

/// About the cluster, of an object that has not installed anything.
fn cluster(seen: &Observed, reason: &str) {
    let preparing = ("False", reasons::PREPARING_TO_HELM_INSTALL);
    check(seen, [("False", reason), preparing, ("False", reason)]);
    // What was installed may or may not be as it was.
    let unknown = ("Unknown", reasons::HELM_RELEASE_GET_FAILED);
    check(
        &seen.clone().installed(),
        [("False", reason), unknown, ("False", reason)],
    );
}

/// About the release.
fn release(seen: &Observed, reason: &str, words: &str) -> Value {
    let status = check(seen, [AVAILABLE, ("False", reason), ("False", reason)]);
    for type_ in ["HelmReleaseReady", "Ready"] {
        let message = condition(&status, type_)["message"].as_str().unwrap();
        assert!(message.contains(words), "{type_}: {message}");
    }
    status
}

// AD-075, AD-143: one case for each reason of ClusterAvailable.
#[test]
fn the_cluster_is_reported_with_a_reason() {
    let state = |state: ClusterState| seen().but(|seen| seen.cluster = state);
    let other = ClusterState::OtherNamespace("x".to_owned());
    cluster(&state(ClusterState::Missing), reasons::GET_CLUSTER_FAILED);
    cluster(&state(other), reasons::GET_CLUSTER_FAILED);
    cluster(&state(no_kubeconfig("")), reasons::GET_KUBECONFIG_FAILED);
    cluster(&state(down("")), reasons::CONNECTION_DOWN);
    cluster(&state(ClusterState::Uninitialized), reasons::NOT_INITIALIZED);
    cluster(&seen().but(|seen| seen.cluster_is_leaving = true), reasons::DELETING);
    for reason in [reasons::GET_CREDENTIALS_FAILED, reasons::GET_CA_CERTIFICATE_FAILED] {
        let message = String::new();
        cluster(
            &seen().but(|seen| seen.source = Err(Obstacle { reason, message })),
            reason,
        );
    }
}

// AD-075, AD-143: one case for each reason of HelmReleaseReady.
#[test]
fn the_release_is_reported_with_a_reason() {
    release(&seen().unnamed(), reasons::PREPARING_TO_HELM_INSTALL, "name");
    let asking = seen().but(|seen| seen.version = Latest::Asking);
    release(&asking, reasons::PREPARING_TO_HELM_INSTALL, "newest");
    release(&seen(), reasons::HELM_RELEASE_PENDING, "helm install");
    release(&seen().found(|_| {}), reasons::HELM_RELEASE_PENDING, "noted");
    let pending = seen().installed().found(|release| {
        release.status = Status::PendingUpgrade;
        release.since = Some(at(NOW));
    });
    let status = release(&pending, reasons::HELM_RELEASE_PENDING, "pending-upgrade");
    assert_eq!(status["status"], "pending-upgrade");
    let differs = seen().installed().found(|release| release.version = "0.9.0".to_owned());
    release(&differs, reasons::HELM_RELEASE_PENDING, "helm upgrade");
    let foreign = seen().found(|release| release.owner = None);
    release(&foreign, reasons::HELM_INSTALL_OR_UPGRADE_FAILED, "the name is in use");
    let unread = seen().with_release(Seen::Failed("forbidden".to_owned()));
    release(&unread, reasons::HELM_RELEASE_GET_FAILED, "forbidden");
    let removal = Operation::Uninstall { keep_history: false };
    let stuck = seen().installed().found(|_| {}).leaving().failed(removal, 1);
    release(&stuck, reasons::HELM_RELEASE_DELETION_FAILED, "it does not fit");
}

// AD-076, AD-077, AD-141, T3
#[test]
fn a_deployed_release_is_ready_with_its_status_and_revision() {
    let ready = ("True", reasons::READY);
    let status = check(
        &seen().installed().found(|release| release.revision = 4),
        [AVAILABLE, ready, ready],
    );
    assert_eq!(
        (&status["status"], &status["revision"]),
        (&json!("deployed"), &json!(4))
    );
    assert_eq!(condition(&status, "Ready")["message"], "");
}

// AD-145
#[test]
fn a_failed_operation_is_reported_in_helms_words() {
    let failed = seen().installed().found(|release| {
        release.status = Status::Failed;
        release.revision = 2;
    });
    let status = release(
        &failed.failed(Operation::Upgrade, 1),
        reasons::HELM_INSTALL_OR_UPGRADE_FAILED,
        "helm upgrade failed: it does not fit",
    );
    assert_eq!((&status["status"], &status["revision"]), (&json!("failed"), &json!(2)));
    let install = Operation::Install { replace: false };
    let status = release(
        &seen().failed(install, 1),
        reasons::HELM_INSTALL_OR_UPGRADE_FAILED,
        "helm install failed",
    );
    assert_eq!(
        (&status["status"], &status["revision"]),
        (&json!("failed"), &Value::Null)
    );
}

// AD-140: the last known status is kept while the cluster cannot be reached.
#[test]
fn what_was_known_stays_while_the_cluster_cannot_be_reached() {
    let known = json!({"status": {"status": "deployed", "revision": 7}});
    let status = reported(&seen().with(&known).but(|seen| seen.cluster = down("refused")));
    assert_eq!(
        (&status["status"], &status["revision"]),
        (&json!("deployed"), &json!(7))
    );
    let status = reported(&seen().with(&known));
    assert_eq!((&status["status"], &status["revision"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_release_that_is_left_alone_is_reported_as_it_is() {
    let once = json!({"spec": {"reconcileStrategy": "InstallOnce"}});
    let with = |change: fn(&mut super::Release)| reported(&seen().with(&once).installed().found(change));
    assert_eq!(
        condition(&with(|release| release.version = "9.9.9".to_owned()), "Ready")["status"],
        "True"
    );
    assert_eq!(
        condition(&with(|release| release.status = Status::Failed), "Ready")["status"],
        "False"
    );
    let gone = reported(&seen().with(&once).installed());
    assert_eq!(
        condition(&gone, "HelmReleaseReady")["reason"],
        reasons::HELM_RELEASE_DELETED
    );
}

#[test]
fn times_move_only_with_the_status() {
    let ready = seen().installed().found(|_| {});
    let first = reported(&ready);
    let later = ready.with(&json!({"status": first})).installed();
    let second = after(&later, &Done::default(), NOW + 9).unwrap();
    assert_eq!(first, second);
}

#[test]
fn an_object_without_finalizer_has_no_status() {
    assert_eq!(after(&seen().leaving(), &Done::default(), NOW), None);
    let failed = Done {
        failed: Some(ReconcileError::new("Conflict", "the object has changed")),
    };
    let status = after(&seen().leaving(), &failed, NOW).unwrap();
    for type_ in ["HelmReleaseReady", "Ready"] {
        let found = condition(&status, type_);
        assert_eq!(
            (&found["status"], &found["reason"]),
            (&json!("False"), &json!(reasons::HELM_RELEASE_DELETED))
        );
        assert!(found["message"].as_str().unwrap().contains("gone"), "{found}");
    }
    assert_eq!(condition(&status, "ClusterAvailable")["status"], "True");
}

#[test]
fn long_messages_are_cut() {
    let long = seen().with_release(Seen::Failed("ü".repeat(40_000)));
    let message = condition(&reported(&long), "Ready")["message"].as_str().unwrap().len();
    assert!(message < 32_768, "{message}");
}
