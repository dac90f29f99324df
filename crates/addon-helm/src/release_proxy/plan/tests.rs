use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use windlass_api_ext::addons::reasons;
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{Decision, Moment, Seen, Timestamp, Until};
use windlass_helm::Status;

use super::super::observed::{ClusterState, Depth, Latest, Lookup, Observed, Obstacle, Operation, ReadLive, Release};
use super::super::testing::{NOW, at, decided as decided_at, down, no_kubeconfig, read, seen, up};
use super::{About, Action, plan};

const INSTALL: Operation = Operation::Install { replace: false };
const AGAIN: Operation = Operation::Install { replace: true };
const REMOVE: Operation = Operation::Uninstall { keep_history: false };

fn decided(seen: &Observed) -> super::Plan {
    decided_at(seen, &Moment::at(at(NOW)))
}

/// The one action of a plan.
fn action(seen: &Observed) -> Action {
    let plan = decided(seen);
    assert_eq!((plan.actions.len(), &plan.blocked), (1, &None), "{plan:?}");
    assert!(!plan.notes.is_empty(), "every action has a reason");
    plan.actions.into_iter().next().unwrap()
}

fn begins(seen: &Observed, expect: Operation) {
    match action(seen) {
        Action::Start(start) => assert_eq!(start.operation, expect),
        other => panic!("expected {expect:?}, not {other:?}"),
    }
}

/// It rests until an event comes.
fn rests(seen: &Observed) -> String {
    let now = Moment::at(at(NOW));
    let plan = decided_at(seen, &now);
    assert_eq!((plan.actions.len(), &plan.blocked), (0, &None), "{plan:?}");
    assert_eq!(now.next_deadline(), None);
    plan.remark
}

/// It is blocked for this reason, with this in its message. The answer is what ends that, a deadline included.
fn waits(seen: &Observed, about: About, reason: &str, words: &str) -> (Until, Option<Timestamp>) {
    let now = Moment::at(at(NOW));
    let plan = decided_at(seen, &now);
    assert_eq!(plan.actions, [], "{plan:?}");
    let blocked = plan.blocked.unwrap_or_else(|| panic!("it is not blocked for {reason}"));
    assert_eq!((plan.about, blocked.reason), (about, reason), "{blocked:?}");
    assert!(blocked.message.contains(words), "{}", blocked.message);
    (blocked.until, now.next_deadline())
}

const EVENT: (Until, Option<Timestamp>) = (Until::Event, None);

/// An event, or a deadline so many seconds from now.
fn deadline(seconds: i64) -> (Until, Option<Timestamp>) {
    (Until::Event, Some(at(NOW + seconds)))
}

fn goes(seen: &Observed) {
    let action = action(seen);
    assert!(matches!(action, Action::RemoveFinalizer(_)), "{action:?}");
}

// The watch may be late: what is not undone easily relies on the release as the cluster answers now.
#[test]
fn operations_and_the_end_rely_on_a_live_release() {
    let now = Moment::at(at(NOW));
    let asks = |seen: &Observed, depth: Depth| {
        assert_eq!(plan(seen, &now), Decision::Ask(ReadLive(depth)));
        assert!(matches!(plan(&seen.clone().live(), &now), Decision::Plan(_)));
    };
    let is_decided = |seen: &Observed| assert!(matches!(plan(seen, &now), Decision::Plan(_)));
    asks(&seen(), Depth::Contents);
    asks(&seen().leaving(), Depth::Contents);
    let keeps = json!({"spec": {"options": {"upgrade": {"reuseValues": true}}}});
    asks(&seen().with(&keeps), Depth::Values);
    is_decided(&seen().found(|_| {}));
    is_decided(&seen().installed().found(|_| {}));
    is_decided(&seen().unnamed());
    is_decided(&seen().unnamed().leaving());
    is_decided(&seen().leaving().but(|seen| seen.cluster = ClusterState::Missing));
    // The answer counts: another process has installed it since.
    let found = seen().installed().found(|_| {}).live();
    assert_eq!(rests(&found), "");
}

// AD-055, AD-114: a user may write a HelmReleaseProxy without HelmChartProxy, and no webhook checks it. What a HelmChartProxy could not
// declare is not brought to Helm, and what is installed stays until it is uninstalled.
#[test]
fn nothing_begins_with_what_no_chart_could_say() {
    let spec = |spec: serde_json::Value| json!({ "spec": spec });
    for (change, words) in [
        (json!({"repoURL": "file:///charts"}), "spec.repoURL: Invalid value"),
        (
            json!({"repoURL": "http://charts.example.com"}),
            "plain http is only used where",
        ),
        (
            json!({"repoURL": "ftp://me:secret@charts.example.com"}),
            "ftp://***@charts.example.com",
        ),
        (
            json!({"chartName": "--post-renderer=x"}),
            "spec.chartName: Invalid value",
        ),
        (json!({"version": "newest"}), "spec.version: Invalid value"),
        (json!({"releaseName": "-x"}), "spec.releaseName: Invalid value"),
        (json!({"namespace": "Kube"}), "spec.namespace: Invalid value"),
        (
            json!({"options": {"timeout": "soon"}}),
            "spec.options.timeout: Invalid value",
        ),
    ] {
        let bad = seen().with(&spec(change));
        let failed = reasons::HELM_INSTALL_OR_UPGRADE_FAILED;
        assert_eq!(waits(&bad, About::Release, failed, words), EVENT);
        let installed = bad.installed().found(|release| release.values = read("{a: 2}").digest);
        waits(&installed, About::Release, failed, words);
        begins(&installed.leaving(), REMOVE);
    }
    let plain = json!({"repoURL": "http://charts.example.com", "tlsConfig": {"insecureSkipTLSVerify": true}});
    begins(&seen().with(&spec(plain)), INSTALL);
}

// T2, AD-034, AD-035: nothing is begun before the control plane is initialized, and nodes are not asked for.
#[test]
fn nothing_begins_before_the_cluster_can_be_reached() {
    let state = |state: ClusterState| seen().but(|seen| seen.cluster = state);
    let cluster = |seen: &Observed, reason, words| assert_eq!(waits(seen, About::Cluster, reason, words), EVENT);
    cluster(
        &state(ClusterState::Missing),
        reasons::GET_CLUSTER_FAILED,
        "there is no Cluster fleet/c1",
    );
    cluster(
        &state(ClusterState::OtherNamespace("other".to_owned())),
        reasons::GET_CLUSTER_FAILED,
        "set it to fleet",
    );
    cluster(
        &state(ClusterState::Uninitialized),
        reasons::NOT_INITIALIZED,
        "control plane of Cluster c1",
    );
    cluster(
        &state(no_kubeconfig("no Secret")),
        reasons::GET_KUBECONFIG_FAILED,
        "no Secret",
    );
    cluster(&state(down("refused")), reasons::CONNECTION_DOWN, "refused");
    // AD-045
    let leaving = seen().but(|seen| seen.cluster_is_leaving = true);
    cluster(&leaving, reasons::DELETING, "is being deleted");
}

// AD-143: what is missing to fetch a chart.
#[test]
fn nothing_begins_without_what_it_takes_to_fetch_the_chart() {
    for reason in [reasons::GET_CREDENTIALS_FAILED, reasons::GET_CA_CERTIFICATE_FAILED] {
        let message = "there is no Secret".to_owned();
        let seen = seen().but(|seen| seen.source = Err(Obstacle { reason, message }));
        waits(&seen, About::Cluster, reason, "there is no Secret");
    }
    let failed = reasons::HELM_INSTALL_OR_UPGRADE_FAILED;
    let values = seen().but(|seen| seen.values = Err("not a mapping".to_owned()));
    waits(
        &values,
        About::Release,
        failed,
        "spec.values cannot be used: not a mapping",
    );
    let asking = seen().but(|seen| seen.version = Latest::Asking);
    waits(&asking, About::Release, reasons::PREPARING_TO_HELM_INSTALL, "newest");
    let unknown = seen().but(|seen| seen.version = Latest::Failed("no chart web".to_owned()));
    waits(&unknown, About::Release, failed, "no chart web");
}

// T3, AD-095, AD-099
#[test]
fn what_is_not_there_is_installed_and_then_left_alone() {
    begins(&seen(), INSTALL);
    assert_eq!(action(&seen().found(|_| {})), Action::RecordInstallation);
    rests(&seen().installed().found(|_| {}));
    begins(
        &seen().installed().found(|release| release.status = Status::Uninstalled),
        AGAIN,
    );
    // A user uninstalled it.
    begins(&seen().installed(), INSTALL);
}

// T4, T5, T6, T7, AD-096, AD-104: what is really there is compared, as data.
#[test]
fn a_release_that_differs_is_upgraded() {
    let with = |change: fn(&mut Release)| seen().installed().found(change);
    rests(&with(|_| {}));
    begins(
        &with(|release| release.version = "1.1.0".to_owned()),
        Operation::Upgrade,
    );
    begins(&with(|release| release.chart = "other".to_owned()), Operation::Upgrade);
    begins(
        &with(|release| release.values = read("{a: 2}").digest),
        Operation::Upgrade,
    );
    begins(&with(|release| release.values = read("{}").digest), Operation::Upgrade);
    rests(&with(|release| release.values = read("{a: 1.0}").digest));
    rests(&with(|release| release.version = "v1.0.0".to_owned()));
}

// AD-103: the newest version, where it is known; a repository that does not answer spoils nothing.
#[test]
fn the_newest_version_is_followed() {
    let newest = |version: Latest| seen().installed().found(|_| {}).but(|seen| seen.version = version);
    begins(&newest(Latest::Found("1.1.0".to_owned())), Operation::Upgrade);
    begins(&newest(Latest::Found("0.9.0".to_owned())), Operation::Upgrade);
    rests(&newest(Latest::Found("1.0.0".to_owned())));
    rests(&newest(Latest::Asking));
    let remark = rests(&newest(Latest::Failed("no answer".to_owned())));
    assert!(remark.contains("no answer"), "{remark}");
}

// AD-089, AD-096: what Helm made of the desired state is not made again, however the release describes it.
#[test]
fn what_was_made_of_the_desired_state_is_not_made_again() {
    let odd = |release: &mut Release| {
        release.chart = "alias".to_owned();
        release.values = read("{a: yes}").digest;
    };
    rests(&seen().installed().found(odd).made(1));
    begins(&seen().installed().found(odd).made(2), Operation::Upgrade);
    let changed = seen()
        .installed()
        .found(odd)
        .made(1)
        .with(&json!({"spec": {"values": "a: 3"}}))
        .installed();
    begins(&changed, Operation::Upgrade);
}

// Values that are merged into those of the release.
#[test]
fn merged_values_are_compared_by_their_keys() {
    let keeps = json!({"spec": {"options": {"upgrade": {"reuseValues": true}}}});
    let more = |text: &str| {
        let values = read(text);
        seen().with(&keeps).installed().found(|release| {
            release.values = values.digest;
            release.data = values.data.clone().map(Arc::new);
        })
    };
    rests(&more("{a: 1, b: 2}"));
    begins(&more("{a: 2, b: 2}"), Operation::Upgrade);
}

// T13, AD-107, AD-134: a release of another owner is not written, and the condition says what to do.
#[test]
fn a_release_of_another_owner_is_left_alone() {
    let failed = reasons::HELM_INSTALL_OR_UPGRADE_FAILED;
    for status in Status::ALL {
        let foreign = seen().found(|release| {
            release.owner = None;
            release.status = status;
            release.values = read("{}").digest;
        });
        assert_eq!(waits(&foreign, About::Release, failed, "the name is in use"), EVENT);
        waits(&foreign, About::Release, failed, "release-successfully-installed=true");
        goes(&foreign.leaving());
        let others = seen().found(|release| {
            release.owner = Some("fleet.other".to_owned());
            release.status = status;
        });
        waits(&others, About::Release, failed, "belongs to HelmChartProxy fleet/other");
        // What says that we installed it does not count against a mark.
        waits(&others.clone().installed(), About::Release, failed, "belongs to");
        goes(&others.leaving());
    }
}

// AD-134: a release without a mark is ours when the object says so: it was installed by another implementation, or handed over.
#[test]
fn a_release_without_a_mark_is_ours_when_the_object_says_so() {
    let taken_over = seen().installed().found(|release| release.owner = None);
    rests(&taken_over);
    let differs = seen().installed().found(|release| {
        release.owner = None;
        release.version = "0.9.0".to_owned();
    });
    begins(&differs, Operation::Upgrade);
    begins(&taken_over.leaving(), REMOVE);
}

// AD-078: the name is stored first; the crash between that and the installation, and between that and the note, is mended.
#[test]
fn a_name_is_made_up_and_stored_before_anything_is_installed() {
    assert_eq!(action(&seen().unnamed()), Action::StoreName("web".to_owned()));
    let unnamed = |release| seen().unnamed().but(|seen| seen.cluster = up(Lookup::Unnamed(release)));
    let lost = unnamed(Seen::Found("web-1".to_owned()));
    assert_eq!(action(&lost), Action::TakeName("web-1".to_owned()));
    waits(
        &unnamed(Seen::Failed("no answer".to_owned())),
        About::Release,
        reasons::HELM_RELEASE_GET_FAILED,
        "no answer",
    );
    begins(&seen(), INSTALL);
    assert_eq!(action(&seen().found(|_| {})), Action::RecordInstallation);
    goes(&seen().unnamed().leaving());
}

// AD-102: what was broken off is brought back; what may still be going on is not disturbed.
#[test]
fn what_was_broken_off_is_brought_back() {
    let broken = |status: Status, revisions: &[(u32, Status)]| {
        let revisions = revisions.to_vec();
        seen().installed().found(|release| {
            release.status = status;
            release.revision = revisions.last().map_or(1, |(revision, _)| *revision);
            release.revisions = revisions;
        })
    };
    let (installing, upgrading) = (Status::PendingInstall, Status::PendingUpgrade);
    begins(&broken(installing, &[(1, installing)]), REMOVE);
    begins(
        &broken(upgrading, &[(1, Status::Deployed), (2, upgrading)]),
        Operation::Rollback { to: 1 },
    );
    begins(
        &broken(
            upgrading,
            &[
                (3, Status::Superseded),
                (4, Status::Deployed),
                (5, Status::Failed),
                (6, upgrading),
            ],
        ),
        Operation::Rollback { to: 4 },
    );
    // Nothing is deployed: the revision itself gets what it wanted.
    begins(
        &broken(upgrading, &[(1, Status::Failed), (2, upgrading)]),
        Operation::Rollback { to: 2 },
    );
    let rolling = Status::PendingRollback;
    begins(
        &broken(rolling, &[(1, Status::Superseded), (2, Status::Deployed), (3, rolling)]),
        Operation::Rollback { to: 2 },
    );
    begins(&broken(Status::Uninstalling, &[(1, Status::Uninstalling)]), REMOVE);
    begins(&broken(Status::Failed, &[(1, Status::Failed)]), Operation::Upgrade);
    begins(
        &broken(Status::Superseded, &[(1, Status::Superseded)]),
        Operation::Upgrade,
    );
    begins(
        &broken(Status::Unknown, &[(1, Status::Deployed), (2, Status::Unknown)]),
        Operation::Upgrade,
    );
    begins(&broken(Status::Unknown, &[(1, Status::Unknown)]), REMOVE);
}

#[test]
fn what_may_still_be_going_on_is_not_disturbed() {
    let busy = |status: Status, since: i64| {
        seen().installed().found(|release| {
            release.status = status;
            release.since = Some(at(since));
        })
    };
    let pending = [
        Status::PendingInstall,
        Status::PendingUpgrade,
        Status::PendingRollback,
        Status::Uninstalling,
    ];
    for status in pending {
        let young = busy(status, NOW - 60);
        for seen in [&young, &young.clone().leaving()] {
            let again = waits(seen, About::Release, reasons::HELM_RELEASE_PENDING, status.as_str());
            assert_eq!(again, deadline(9 * 60));
        }
        // An operation of this process that has ended is not at it any more.
        let ours = young.clone().failed(Operation::Upgrade, 55);
        let action = self::action(&ours.but(|seen| seen.work.failure.as_mut().unwrap().pause = Duration::ZERO));
        assert!(matches!(action, Action::Start(_)), "{action:?}");
        // A process that was elected after it began is the only one that is at work.
        let elected = |since: i64| young.clone().but(|seen| seen.alone_since = Some(at(since)));
        let action = self::action(&elected(NOW - 59));
        assert!(matches!(action, Action::Start(_)), "{action:?}");
        begins(&elected(NOW - 59).leaving(), REMOVE);
        waits(&elected(NOW - 60), About::Release, reasons::HELM_RELEASE_PENDING, "");
        // A clock ahead of ours.
        let again = waits(
            &busy(status, NOW + 9999),
            About::Release,
            reasons::HELM_RELEASE_PENDING,
            "",
        );
        assert_eq!(again, deadline(9999 + 600));
        let old = busy(status, NOW - 600);
        assert!(matches!(self::action(&old), Action::Start(_)), "{status}");
        begins(&old.leaving(), REMOVE);
    }
    let short = busy(Status::PendingUpgrade, NOW - 60).with(&json!({"spec": {"options": {"timeout": "30s"}}}));
    begins(&short.installed(), Operation::Rollback { to: 1 });
}

// AD-145: with back-off, and at once for another desired state.
#[test]
fn what_failed_is_tried_again_after_a_while() {
    let failed = |seconds_ago| {
        let seen = seen().installed().found(|release| release.status = Status::Failed);
        seen.failed(Operation::Upgrade, seconds_ago)
    };
    let reason = reasons::HELM_INSTALL_OR_UPGRADE_FAILED;
    let again = waits(
        &failed(20),
        About::Release,
        reason,
        "helm upgrade failed: it does not fit",
    );
    assert_eq!(again, deadline(40));
    begins(&failed(60), Operation::Upgrade);
    let changed = json!({"spec": {"values": "a: 2"}});
    begins(&failed(20).with(&changed).installed(), Operation::Upgrade);
    // While it is tried again, what was wrong stays to be seen.
    let retrying = failed(61).but(|seen| seen.work.running = Some(Operation::Upgrade));
    waits(&retrying, About::Release, reason, "it does not fit");
}

#[test]
fn one_operation_goes_on_at_a_time() {
    let pending = reasons::HELM_RELEASE_PENDING;
    let running = seen().but(|seen| seen.work.running = Some(INSTALL));
    waits(
        &running,
        About::Release,
        pending,
        "helm install of release web is going on",
    );
    let taken = seen().but(|seen| seen.work.is_taken = true);
    waits(&taken, About::Release, pending, "another HelmReleaseProxy");
    waits(&taken.leaving(), About::Release, pending, "another HelmReleaseProxy");
    // What is installed for an object that goes is not waited for.
    assert_eq!(action(&running.leaving()), Action::Stop);
    let removing = seen().leaving().but(|seen| seen.work.running = Some(REMOVE));
    waits(&removing, About::Release, pending, "helm uninstall");
}

#[test]
fn a_missing_helm_is_reported_and_looked_for() {
    let missing = |seen: Observed| seen.but(|seen| seen.unusable = Some("helm is not installed: get it".to_owned()));
    let failed = reasons::HELM_INSTALL_OR_UPGRADE_FAILED;
    let again = waits(&missing(seen()), About::Release, failed, "get it");
    assert_eq!(again, (Until::After(super::CHECK_FOR_HELM), None));
    rests(&missing(seen().installed().found(|_| {})));
    let leaving = missing(seen().installed().found(|_| {}).leaving());
    waits(
        &leaving,
        About::Release,
        reasons::HELM_RELEASE_DELETION_FAILED,
        "get it",
    );
}

#[test]
fn a_release_that_cannot_be_read_is_not_touched() {
    let unread = seen().with_release(Seen::Failed("forbidden".to_owned()));
    for seen in [&unread, &unread.clone().leaving()] {
        let again = waits(seen, About::Release, reasons::HELM_RELEASE_GET_FAILED, "forbidden");
        assert_eq!(again, (Until::Backoff, None));
    }
}

// Feature 470: installed once, and left alone since.
#[test]
fn what_is_installed_once_is_left_alone_since() {
    let once = json!({"spec": {"reconcileStrategy": "InstallOnce"}});
    begins(&seen().with(&once), INSTALL);
    begins(
        &seen().with(&once).found(|release| release.status = Status::Failed),
        Operation::Upgrade,
    );
    assert_eq!(action(&seen().with(&once).found(|_| {})), Action::RecordInstallation);
    let done = seen().with(&once).installed();
    rests(&done);
    rests(&done.clone().found(|release| release.version = "0.1.0".to_owned()));
    goes(&done.found(|_| {}).leaving());
    begins(&seen().with(&once).found(|_| {}).leaving(), REMOVE);
}

// T9, T10, T11, T12, AD-045, AD-097, AD-098
#[test]
fn the_release_goes_before_its_object() {
    let leaving = || seen().installed().leaving();
    begins(&leaving().found(|_| {}), REMOVE);
    for status in [Status::Failed, Status::Superseded, Status::Unknown, Status::Uninstalled] {
        begins(&leaving().found(|release| release.status = status), REMOVE);
    }
    goes(&leaving());
    let state = |state: ClusterState| leaving().but(|seen| seen.cluster = state);
    goes(&state(ClusterState::Missing));
    goes(&state(ClusterState::OtherNamespace("other".to_owned())));
    waits(
        &state(down("refused")),
        About::Cluster,
        reasons::CONNECTION_DOWN,
        "refused",
    );
    waits(
        &state(no_kubeconfig("no Secret")),
        About::Cluster,
        reasons::GET_KUBECONFIG_FAILED,
        "no Secret",
    );
    waits(
        &state(ClusterState::Uninitialized),
        About::Cluster,
        reasons::NOT_INITIALIZED,
        "",
    );
    goes(&seen().leaving().but(|seen| seen.cluster = ClusterState::Uninitialized));
    // The Cluster goes, too, and may never answer again.
    for closed in [down("refused"), no_kubeconfig("no Secret"), ClusterState::Uninitialized] {
        goes(&state(closed).but(|seen| seen.cluster_is_leaving = true));
    }
    begins(
        &leaving().found(|_| {}).but(|seen| seen.cluster_is_leaving = true),
        REMOVE,
    );
    // Neither credentials nor values are needed.
    let message = "no Secret".to_owned();
    let bare = leaving().found(|_| {}).but(|seen| {
        seen.source = Err(Obstacle {
            reason: reasons::GET_CREDENTIALS_FAILED,
            message,
        });
        seen.values = Err("bad".to_owned());
    });
    begins(&bare, REMOVE);
    let again = waits(
        &leaving().found(|_| {}).failed(REMOVE, 20),
        About::Release,
        reasons::HELM_RELEASE_DELETION_FAILED,
        "helm uninstall failed: it does not fit",
    );
    assert_eq!(again, deadline(40));
}

// AD-045, AD-098: a process that has just started has not tried to connect. That does not say that the cluster cannot be reached.
#[test]
fn a_connection_that_was_not_tried_is_waited_for_although_the_cluster_goes() {
    let not_tried = |can_try: bool, why: &str| {
        let cluster = ClusterState::Initialized {
            has_kubeconfig: true,
            can_try,
            release: Workload::NotTried(why.to_owned()),
        };
        seen().installed().leaving().but(|seen| {
            seen.cluster_is_leaving = true;
            seen.cluster = cluster;
        })
    };
    let starting = not_tried(true, "no attempt was made yet");
    let reason = reasons::CONNECTION_DOWN;
    assert_eq!(waits(&starting, About::Cluster, reason, "no attempt"), EVENT);
    // Without a kubeconfig there is nothing to try.
    goes(&starting.but(|seen| seen.cluster = no_kubeconfig("no Secret")));
    // Nor with a Secret that has no kubeconfig, or before the infrastructure is provisioned.
    let impossible = not_tried(false, "its infrastructure is not provisioned yet");
    goes(&impossible);
    // While the Cluster stays, that may come.
    let stays = impossible.but(|seen| seen.cluster_is_leaving = false);
    assert_eq!(waits(&stays, About::Cluster, reason, "not provisioned"), EVENT);
}

#[test]
fn a_history_that_is_kept_ends_a_deletion() {
    let keeps = json!({"spec": {"options": {"uninstall": {"keepHistory": true}}}});
    begins(
        &seen().with(&keeps).found(|_| {}).leaving(),
        Operation::Uninstall { keep_history: true },
    );
    goes(
        &seen()
            .with(&keeps)
            .found(|release| release.status = Status::Uninstalled)
            .leaving(),
    );
    // Before another installation, nothing is kept.
    let broken = seen()
        .with(&keeps)
        .found(|release| release.status = Status::PendingInstall);
    begins(&broken, REMOVE);
}
