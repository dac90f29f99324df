//! The end of a HelmReleaseProxy: its release goes first, wherever there is one and it is ours.

use windlass_api_ext::addons::reasons;
use windlass_helm::Status;
use windlass_kit::{Seen, Timestamp};

use super::recovery::{self, in_flight};
use super::{About, Again, Plan, Step, closed, is_ours, start, started, taken, unread};
use crate::release_proxy::observed::{Observed, Operation, Release, Way};

pub(super) fn plan(seen: &Observed, now: Timestamp) -> Plan {
    let spec = &seen.proxy.spec;
    match seen.work.running {
        Some(operation @ Operation::Uninstall { .. }) => return Plan::of(Step::Wait(started(seen, operation))),
        // Whatever it would lead to is to go.
        Some(_) => return Plan::of(Step::Stop),
        None => {}
    }
    let was_installed = seen.proxy.was_installed();
    match &seen.way {
        Way::Gone => return let_go("its Cluster is gone"),
        Way::Elsewhere(_) => return let_go("nothing was ever installed in another namespace"),
        Way::Uninitialized if !was_installed => return let_go("nothing was installed yet"),
        Way::Unknown(_) | Way::Closed(_) | Way::Uninitialized if seen.cluster_is_leaving => {
            return let_go("its Cluster is being deleted, and cannot be reached any more");
        }
        _ => {}
    }
    if spec.release_name().is_none() {
        return let_go("nothing was installed yet");
    }
    if spec.is_install_once() && was_installed {
        return let_go("its release was installed once, and stays, as reconcileStrategy says");
    }
    if let Some(blocked) = closed(seen) {
        return Plan::of(Step::Wait(blocked));
    }
    if seen.work.is_taken {
        return Plan::of(Step::Wait(taken()));
    }
    match &seen.release {
        Seen::Failed(why) => unread(why),
        Seen::NotFound => let_go("its release is gone"),
        Seen::Found(release) => uninstall(seen, release, now),
    }
}

fn let_go(why: &str) -> Plan {
    Plan::of(Step::LetGo(why.to_owned()))
}

fn uninstall(seen: &Observed, release: &Release, now: Timestamp) -> Plan {
    if !is_ours(seen, release) {
        return let_go("the release of its name is somebody else's, and stays");
    }
    let options = seen.proxy.spec.options.as_ref();
    let keep_history = options
        .and_then(|options| options.uninstall.as_ref()?.keep_history)
        .unwrap_or(false);
    if release.status == Status::Uninstalled && keep_history {
        return let_go("its release is uninstalled");
    }
    if let Some(left) = in_flight(seen, release, now) {
        return Plan::wait(About::Release, reasons::HELM_RELEASE_PENDING, recovery::told(release))
            .again(Again::After(left));
    }
    start(
        seen,
        now,
        Operation::Uninstall { keep_history },
        "its HelmReleaseProxy is being deleted",
    )
}
