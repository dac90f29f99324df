//! Whatever is seen, plans have these properties.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_helm::Status;
use windlass_kit::Seen;

use super::super::observed::{Latest, Observed, Operation, Release};
use super::super::testing::{NOW, at, deployed, read, seen};
use super::{Step, plan};

fn decided(seen: &Observed) -> super::Plan {
    plan(seen, at(NOW))
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
        let mut seen = seen().with(&changes);
        if installed {
            seen = seen.installed();
        }
        seen.version = version;
        if named {
            seen.release = release.map(Arc::new).into();
        }
        seen
    })
}

/// What a step does to a world in which Helm does what it is asked.
fn done(mut seen: Observed, step: &Step) -> Observed {
    match step {
        Step::Name(name) => {
            let mut proxy = HelmReleaseProxy::clone(&seen.proxy);
            proxy.spec.release_name = Some(name.clone());
            seen.proxy = Arc::new(proxy);
        }
        Step::Remember => seen = seen.installed(),
        Step::Start(Operation::Uninstall { keep_history: true }, _) => {
            let mut release = Release::clone(seen.release.found().unwrap());
            release.status = Status::Uninstalled;
            seen.release = Seen::Found(Arc::new(release));
        }
        Step::Start(Operation::Uninstall { keep_history: false }, _) => seen.release = Seen::NotFound,
        Step::Start(operation, _) => {
            let before = seen.release.found().map(|release| Release::clone(release));
            let mut release = before.clone().unwrap_or_default();
            release.revision += 1;
            release.status = Status::Deployed;
            if !matches!(operation, Operation::Rollback { .. }) {
                release = Release {
                    revision: release.revision,
                    ..deployed()
                };
            }
            release.owner = Some(seen.owner.clone());
            release.revisions = vec![(release.revision, Status::Deployed)];
            seen.release = Seen::Found(Arc::new(release));
        }
        Step::Rest(_) | Step::Wait(_) | Step::Stop | Step::LetGo(_) => {}
    }
    seen
}

proptest! {
    // Planning after applying plans nothing: a few steps lead to rest, and rest stays.
    #[test]
    fn a_few_steps_lead_to_rest(mut seen in worlds(), leaving in any::<bool>()) {
        if leaving {
            seen = seen.leaving();
        }
        for _ in 0..6 {
            let step = decided(&seen).step;
            if matches!(step, Step::Rest(_) | Step::Wait(_) | Step::LetGo(_)) {
                prop_assert_eq!(&decided(&seen).step, &step);
                return Ok(());
            }
            seen = done(seen, &step);
        }
        prop_assert!(false, "it does not come to rest: {:?}", decided(&seen));
    }

    // AD-134: whatever is seen, a release of somebody else is never written.
    #[test]
    fn a_release_of_somebody_else_is_never_written(seen in worlds(), leaving in any::<bool>()) {
        let seen = if leaving { seen.leaving() } else { seen };
        let is_foreign = seen.release.found().is_some_and(|release| !super::is_ours(&seen, release));
        if is_foreign {
            let step = decided(&seen).step;
            prop_assert!(!matches!(step, Step::Start(..) | Step::Remember), "{:?}", step);
        }
    }

    // AD-097: an object is not let go while a release of its own is there, unless it is to stay.
    #[test]
    fn nothing_is_left_behind(seen in worlds()) {
        let seen = seen.leaving();
        let Step::LetGo(_) = decided(&seen).step else { return Ok(()) };
        let stays = seen.proxy.spec.is_install_once() && seen.proxy.was_installed();
        let is_left = seen.release.found().is_some_and(|release| {
            super::is_ours(&seen, release) && release.status != Status::Uninstalled
        });
        prop_assert!(stays || !is_left);
    }
}
