//! The deletion of a HelmReleaseProxy: its release is uninstalled first, when there is one that belongs to it.

use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{Moment, Note, Seen};
use windlass_helm::Status;

use super::recovery::{in_flight, is_in_flight};
use super::{About, Action, Plan, is_ours, start, taken, unread};
use crate::release_proxy::facts;
use crate::release_proxy::observed::{ClusterState, Lookup, Observed, Operation, Release};

const NOT_INSTALLED: &str = "nothing was installed yet";

pub(super) fn plan(seen: &Observed, now: &Moment) -> Plan {
    let spec = &seen.proxy.spec;
    match seen.work.running {
        Some(operation @ Operation::Uninstall { .. }) => {
            return Plan::blocked(About::Release, facts::progress(seen, operation));
        }
        // Its result would have to be uninstalled again.
        Some(operation) => {
            let release = spec.release_name().unwrap_or_default();
            let note = format!(
                "helm {} of release {release} is ended, as its HelmReleaseProxy is being deleted",
                operation.name()
            );
            return Plan::act(Action::Stop, Note::new(note));
        }
        None => {}
    }
    let was_installed = seen.proxy.was_installed();
    if let Some(why) = unreachable_for_good(seen, was_installed) {
        return remove_finalizer(why);
    }
    if spec.release_name().is_none() {
        return remove_finalizer(NOT_INSTALLED);
    }
    if spec.is_install_once() && was_installed {
        return remove_finalizer("its release was installed once, and stays, as reconcileStrategy says");
    }
    let lookup = match facts::reachable(seen) {
        Ok(lookup) => lookup,
        Err(blocked) => return Plan::blocked(About::Cluster, blocked),
    };
    if seen.work.is_taken {
        return taken();
    }
    match lookup {
        Lookup::Unnamed(_) => remove_finalizer(NOT_INSTALLED),
        Lookup::Watched(release) | Lookup::Live(release) => match release {
            Seen::Failed(why) => unread(why),
            Seen::NotFound => remove_finalizer("its release is gone"),
            Seen::Found(release) => uninstall(seen, release, now),
        },
    }
}

/// Why no release has to be uninstalled, or none can be, in the state of the Cluster.
fn unreachable_for_good(seen: &Observed, was_installed: bool) -> Option<&'static str> {
    let is_lost = match &seen.cluster {
        ClusterState::Missing => return Some("its Cluster is gone"),
        ClusterState::OtherNamespace(_) => return Some("nothing was ever installed in another namespace"),
        ClusterState::Uninitialized if !was_installed => return Some(NOT_INSTALLED),
        ClusterState::Uninitialized => true,
        ClusterState::Initialized { can_try, release, .. } => match release {
            Workload::Up(_) => false,
            Workload::Down(_) => true,
            // A process that has just started makes the first attempt in a moment, if it can.
            Workload::NotTried(_) => !can_try,
        },
    };
    (is_lost && seen.cluster_is_leaving).then_some("its Cluster is being deleted, and cannot be reached any more")
}

fn remove_finalizer(why: &str) -> Plan {
    let note = Note::new(format!("the finalizer is removed: {why}"));
    Plan::act(Action::RemoveFinalizer(why.to_owned()), note)
}

fn uninstall(seen: &Observed, release: &Release, now: &Moment) -> Plan {
    if !is_ours(seen, release) {
        return remove_finalizer("the release of its name belongs to another owner, and stays");
    }
    let options = seen.proxy.spec.options.as_ref();
    let keep_history = options
        .and_then(|options| options.uninstall.as_ref()?.keep_history)
        .unwrap_or(false);
    if release.status == Status::Uninstalled && keep_history {
        return remove_finalizer("its release is uninstalled");
    }
    if is_in_flight(seen, release, now) {
        return in_flight(release);
    }
    start(
        seen,
        now,
        Operation::Uninstall { keep_history },
        "its HelmReleaseProxy is being deleted",
    )
}
