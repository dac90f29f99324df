//! How urgent a change of a Machine is for those who own it.
//!
//! Machines change often, mostly in what people read: messages of conditions, addresses, phases. An owner that answered each such change
//! with a write of its own status would write more than the Machine itself.

use std::time::Duration;

use windlass_api::core::{Machine, MachineSet};

use crate::shared::keys::conditions;
use crate::shared::machine_conditions::obstacles;
use crate::shared::machines::{condition, is, is_true, legacy_conditions};

/// How long a change that only people read may wait.
pub(crate) const MOMENT: Duration = Duration::from_millis(700);

/// What a change means for an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// Nothing.
    Never,
    /// Its status says something else.
    Later,
    /// There may be something to do.
    Now,
}

/// What a change of a Machine means.
pub(crate) fn of_machine(old: Option<&Machine>, new: Option<&Machine>) -> Urgency {
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        // Who owns it made it: there is nothing to do about it yet.
        (None, _) => return Urgency::Later,
        (Some(_), None) => return Urgency::Now,
    };
    if acts(old) != acts(new) || old.spec != new.spec || metadata(old) != metadata(new) {
        Urgency::Now
    } else if reads(old) != reads(new) {
        Urgency::Later
    } else {
        Urgency::Never
    }
}

fn metadata(machine: &Machine) -> impl PartialEq + '_ {
    let meta = &machine.metadata;
    (
        &meta.labels,
        &meta.annotations,
        &meta.owner_references,
        &meta.deletion_timestamp,
    )
}

/// What owners act upon.
fn acts(machine: &Machine) -> impl PartialEq + '_ {
    let status = machine.status.as_ref();
    let asked = condition(machine, conditions::OWNER_REMEDIATED);
    (
        [conditions::READY, conditions::AVAILABLE, conditions::NODE_READY].map(|type_| is_true(machine, type_)),
        [
            conditions::UP_TO_DATE,
            conditions::HEALTH_CHECK_SUCCEEDED,
            conditions::NODE_HEALTHY,
        ]
        .map(|type_| is(machine, type_, "False")),
        asked.map(|asked| (&asked.status, &asked.reason)),
        status.map(|status| status.node_ref.is_some()),
    )
}

/// What owners repeat in their own status.
fn reads(machine: &Machine) -> impl PartialEq + '_ {
    let told = [
        conditions::READY,
        conditions::UP_TO_DATE,
        conditions::AVAILABLE,
        conditions::HEALTH_CHECK_SUCCEEDED,
        conditions::OWNER_REMEDIATED,
        conditions::DELETING,
    ];
    let said = told.map(|type_| condition(machine, type_).map(|have| (&have.status, &have.reason, &have.message)));
    let old = legacy_conditions(machine).iter().find(|old| old.type_ == "Ready");
    (
        said,
        old.map(|old| (&old.status, &old.reason, &old.severity, &old.message)),
    )
}

/// What a change of a MachineSet means for its MachineDeployment, which looks at Machines itself.
pub(crate) fn of_set(old: Option<&MachineSet>, new: Option<&MachineSet>) -> Urgency {
    let (Some(old), Some(new)) = (old, new) else {
        return Urgency::Now;
    };
    let acts = |set: &MachineSet| {
        let meta = &set.metadata;
        (
            set.spec.clone(),
            meta.labels.clone(),
            meta.annotations.clone(),
            meta.owner_references.clone(),
            meta.deletion_timestamp.clone(),
            set.status.as_ref().and_then(|status| status.replicas),
        )
    };
    let reads = |set: &MachineSet| {
        let deprecated = set.status.as_ref().and_then(|status| status.deprecated.clone());
        let old = deprecated.and_then(|deprecated| deprecated.v1beta1);
        (old.map(|old| old.conditions), obstacles(set))
    };
    if acts(old) != acts(new) {
        Urgency::Now
    } else if reads(old) != reads(new) {
        Urgency::Later
    } else {
        Urgency::Never
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::testing::{self, annotate, set};

    fn check(change: impl Fn(&mut Machine), want: Urgency) {
        let old = testing::machine(&set("s", 1, "v1.35.0"), "m");
        let mut new = old.clone();
        change(&mut new);
        assert_eq!(of_machine(Some(&old), Some(&new)), want);
    }

    #[test]
    fn what_is_acted_upon_wakes_at_once() {
        check(
            |machine| testing::condition(machine, "Available", "False", "NotAvailable", ""),
            Urgency::Now,
        );
        check(|machine| annotate(&mut machine.metadata, "x", "y"), Urgency::Now);
        check(testing::deleting, Urgency::Now);
        assert_eq!(of_machine(Some(&Machine::default()), None), Urgency::Now);
    }

    #[test]
    fn what_is_only_reported_can_wait() {
        check(
            |machine| testing::condition(machine, "Ready", "True", "Ready", "more words"),
            Urgency::Later,
        );
        assert_eq!(of_machine(None, Some(&Machine::default())), Urgency::Later);
    }

    #[test]
    fn the_rest_wakes_no_owner() {
        check(
            |machine| machine.status.as_mut().unwrap().phase = Some("Running".to_owned()),
            Urgency::Never,
        );
    }
}
