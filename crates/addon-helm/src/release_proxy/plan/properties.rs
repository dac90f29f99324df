//! Properties of the plans for all observations.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_controller_runtime::{Moment, Seen};
use windlass_helm::Status;

use super::super::facts::generated_name;
use super::super::observed::{Latest, Observed, Operation, Release};
use super::super::testing::{self, NOW, at, deployed, read, seen};
use super::{Action, Plan};

fn decided(seen: &Observed) -> Plan {
    testing::decided(seen, &Moment::at(at(NOW)))
}

fn statuses() -> impl Strategy<Value = Status> {
    prop::sample::select(Status::ALL.to_vec())
}

/// A release in any state, with any history.
fn releases() -> impl Strategy<Value = Release> {
    let before = prop::collection::vec(statuses(), 0..4);
    let parts = (statuses(), before, 0..3_u8, any::<bool>(), any::<bool>(), -700_i64..100);
    parts.prop_map(|(status, before, owner, same_version, same_values, since)| {
        let mut revisions: Vec<_> = (1..).zip(before).collect();
        let revision = u32::try_from(revisions.len()).unwrap() + 1;
        revisions.push((revision, status));
        Release {
            revision,
            status,
            owner: match owner {
                0 => None,
                1 => Some("fleet.web".to_owned()),
                _ => Some("fleet.other".to_owned()),
            },
            version: if same_version { "1.0.0" } else { "0.9.0" }.to_owned(),
            values: read(if same_values { "{a: 1}" } else { "{b: 1}" }).digest,
            since: Some(at(NOW + since)),
            revisions,
            ..deployed()
        }
    })
}

fn worlds() -> impl Strategy<Value = Observed> {
    let version = prop::sample::select(vec![
        Latest::Pinned("1.0.0".to_owned()),
        Latest::Found("1.0.0".to_owned()),
        Latest::Asking,
        Latest::Failed("no".to_owned()),
    ]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (prop::option::of(releases()), version, flags).prop_map(|(release, version, (installed, once, keeps, named))| {
        let mut changes = json!({"spec": {"options": {"uninstall": {"keepHistory": keeps}}}});
        if once {
            changes["spec"]["reconcileStrategy"] = json!("InstallOnce");
        }
        if !named {
            changes["spec"]["releaseName"] = serde_json::Value::Null;
        }
        let release = release.map(Arc::new).into();
        let seen = if named {
            seen().with_release(release)
        } else {
            seen().unnamed()
        };
        let mut seen = seen.with(&changes);
        if installed {
            seen = seen.installed();
        }
        seen.version = version;
        seen
    })
}

fn found(seen: &Observed) -> Option<&Arc<Release>> {
    seen.release().and_then(Seen::found)
}

/// The world after an action, when Helm succeeds.
fn done(mut seen: Observed, action: &Action) -> Observed {
    match action {
        Action::StoreName(_) | Action::TakeName(_) => {
            let name = match action {
                Action::TakeName(name) => name.clone(),
                _ => generated_name("web", NOW),
            };
            let mut proxy = HelmReleaseProxy::clone(&seen.proxy);
            proxy.spec.release_name = Some(name);
            seen.proxy = Arc::new(proxy);
            seen = seen.with_release(Seen::NotFound);
        }
        Action::RecordInstallation => seen = seen.installed(),
        Action::Start(start) => {
            let before = found(&seen).map(|release| Release::clone(release));
            let after = after(start.operation, before.unwrap_or_default(), &seen.owner);
            seen = seen.with_release(after.map(Arc::new).into());
        }
        Action::Stop | Action::RemoveFinalizer(_) | Action::Follow(_) | Action::Unfollow | Action::RecordCluster => {}
    }
    seen
}

/// The release after an operation.
fn after(operation: Operation, mut release: Release, owner: &str) -> Option<Release> {
    match operation {
        Operation::Uninstall { keep_history: false } => return None,
        Operation::Uninstall { keep_history: true } => release.status = Status::Uninstalled,
        Operation::Install { .. } | Operation::Upgrade | Operation::Rollback { .. } => {
            let revision = release.revision + 1;
            if !matches!(operation, Operation::Rollback { .. }) {
                release = deployed();
            }
            release.revision = revision;
            release.status = Status::Deployed;
            release.owner = Some(owner.to_owned());
            release.revisions = vec![(revision, Status::Deployed)];
        }
    }
    Some(release)
}

proptest! {
    // Planning after applying plans nothing: a few steps lead to rest, and rest stays.
    #[test]
    fn a_few_steps_lead_to_rest(mut seen in worlds(), leaving in any::<bool>()) {
        if leaving {
            seen = seen.leaving();
        }
        for _ in 0..6 {
            let plan = decided(&seen);
            prop_assert!(plan.actions.len() <= 1);
            match plan.actions.first() {
                None | Some(Action::RemoveFinalizer(_)) => {
                    prop_assert_eq!(&decided(&seen), &plan);
                    return Ok(());
                }
                Some(action) => seen = done(seen, action),
            }
        }
        prop_assert!(false, "it does not come to rest: {:?}", decided(&seen));
    }

    // AD-134
    #[test]
    fn a_release_of_another_owner_is_never_written(seen in worlds(), leaving in any::<bool>()) {
        let seen = if leaving { seen.leaving() } else { seen };
        let is_foreign = found(&seen).is_some_and(|release| !super::is_ours(&seen, release));
        if is_foreign {
            let actions = decided(&seen).actions;
            let writes = |action: &Action| matches!(action, Action::Start(_) | Action::RecordInstallation);
            prop_assert!(!actions.iter().any(writes), "{:?}", actions);
        }
    }

    // AD-097: an object keeps its finalizer while a release of its own is there, unless the release is to stay.
    #[test]
    fn nothing_is_left_behind(seen in worlds()) {
        let seen = seen.leaving();
        if !decided(&seen).removes_finalizer() {
            return Ok(());
        }
        let stays = seen.proxy.spec.is_install_once() && seen.proxy.was_installed();
        let is_left = found(&seen).is_some_and(|release| {
            super::is_ours(&seen, release) && release.status != Status::Uninstalled
        });
        prop_assert!(stays || !is_left);
    }
}
