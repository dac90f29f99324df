//! The conditions that the Machine controller owns. What other controllers report (health checks, control plane components) is
//! read from the live object where it counts for Ready, and never written here.

use jiff::{SignedDuration, Timestamp};
use windlass_api::core::MachineStatus;
use windlass_api::{Condition, conditions as types, owner, reasons};
use windlass_conditions::{self as conditions, Draft, Priority, Reasons, Status, Summary, condition, default_priority};
use windlass_contract::{bootstrap, infra_machine};
use windlass_controller_runtime::{Moment, Seen};

use super::node;
use crate::machine::observe::Observed;
use crate::machine::plan::Plan;
use crate::shared::in_place;
use crate::shared::mirrored::mirrored;
use crate::shared::templates;

/// The condition types of this controller; all others on a Machine belong to other controllers.
const OWNED: [&str; 9] = [
    types::AVAILABLE,
    types::READY,
    types::UP_TO_DATE,
    types::BOOTSTRAP_CONFIG_READY,
    types::INFRASTRUCTURE_READY,
    types::NODE_HEALTHY,
    types::NODE_READY,
    types::UPDATING,
    types::DELETING,
];

/// A deletion that takes this long is pointed out in the summary.
const SLOW_DELETION: SignedDuration = SignedDuration::from_mins(15);

/// Computes them all, in an order in which each finds what it needs.
pub(super) fn conditions(seen: &Observed, plan: &Plan, status: &MachineStatus, moment: &Moment) -> Vec<Condition> {
    let now = moment.now();
    let machine = &seen.machine;
    let generation = machine.metadata.generation;
    let mut all: Vec<Condition> = machine
        .status
        .as_ref()
        .map(|status| status.conditions.clone())
        .unwrap_or_default();
    let mut set = |new: Condition| conditions::set(&mut all, new);

    set(bootstrap(seen, status, now));
    set(infrastructure(seen, status, now));
    if let Some((ready, healthy)) = node::verdicts(seen, moment) {
        for (type_, verdict) in [(types::NODE_READY, ready), (types::NODE_HEALTHY, healthy)] {
            set(condition(
                type_,
                verdict.status,
                &verdict.reason,
                verdict.message,
                now,
                generation,
            ));
        }
    }
    set(updating(seen, plan, now));
    set(match &plan.deleting {
        Some(deleting) => condition(
            types::DELETING,
            Status::True,
            deleting.reason,
            deleting.message.clone(),
            now,
            generation,
        ),
        None => condition(
            types::DELETING,
            Status::False,
            reasons::NOT_DELETING,
            "",
            now,
            generation,
        ),
    });
    let up_to_date = up_to_date(seen, plan, status, moment);
    let judged = up_to_date.is_some();
    if let Some(up_to_date) = up_to_date {
        set(up_to_date);
    }
    let ready = ready(seen, plan, &all, moment);
    conditions::set(&mut all, ready);
    let available = available(seen, &all, moment);
    conditions::set(&mut all, available);
    all.retain(|condition| {
        let type_ = condition.type_.as_str();
        OWNED.contains(&type_) && (judged || type_ != types::UP_TO_DATE)
    });
    all
}

fn bootstrap(seen: &Observed, status: &MachineStatus, now: Timestamp) -> Condition {
    let generation = seen.machine.metadata.generation;
    let type_ = types::BOOTSTRAP_CONFIG_READY;
    let done = status
        .initialization
        .as_ref()
        .and_then(|done| done.bootstrap_data_secret_created)
        == Some(true);
    let Some(object) = &seen.bootstrap else {
        return condition(type_, Status::True, reasons::DATA_SECRET_PROVIDED, "", now, generation);
    };
    let kind = seen
        .machine
        .spec
        .bootstrap
        .config_ref
        .as_ref()
        .map_or("", |reference| reference.kind.as_str());
    match object {
        Seen::Found(found) => {
            let lack = bootstrap::data_secret_created_lack(found.value(), found.contract).filter(|_| !done);
            stamped(mirrored(found, lack), type_, now, generation)
        }
        Seen::Failed(why) => condition(type_, Status::Unknown, reasons::INTERNAL_ERROR, why, now, generation),
        Seen::NotFound => {
            // Gone before the Machine: expected while that is being deleted.
            let (reason, what) = if done && seen.deleting() {
                (reasons::OBJECT_DELETED, "has been deleted")
            } else {
                (reasons::OBJECT_DOES_NOT_EXIST, "does not exist")
            };
            condition(type_, Status::False, reason, format!("{kind} {what}"), now, generation)
        }
    }
}

fn infrastructure(seen: &Observed, status: &MachineStatus, now: Timestamp) -> Condition {
    let generation = seen.machine.metadata.generation;
    let type_ = types::INFRASTRUCTURE_READY;
    let kind = &seen.machine.spec.infrastructure_ref.kind;
    let done = status
        .initialization
        .as_ref()
        .and_then(|done| done.infrastructure_provisioned)
        == Some(true);
    match &seen.infrastructure {
        Seen::Found(found) => {
            let lack = infra_machine::provisioned_lack(found.value(), found.contract);
            stamped(mirrored(found, lack), type_, now, generation)
        }
        Seen::Failed(why) => condition(type_, Status::Unknown, reasons::INTERNAL_ERROR, why, now, generation),
        Seen::NotFound if seen.deleting() && done => {
            let message = format!("{kind} has been deleted");
            condition(type_, Status::False, reasons::OBJECT_DELETED, message, now, generation)
        }
        Seen::NotFound if done => {
            let message = format!("{kind} has been deleted while the Machine still exists");
            condition(type_, Status::False, reasons::OBJECT_DELETED, message, now, generation)
        }
        Seen::NotFound => {
            let message = format!("{kind} does not exist");
            condition(
                type_,
                Status::False,
                reasons::OBJECT_DOES_NOT_EXIST,
                message,
                now,
                generation,
            )
        }
    }
}

fn stamped(draft: Draft, type_: &'static str, now: Timestamp, generation: Option<i64>) -> Condition {
    condition(type_, draft.status, &draft.reason, draft.message, now, generation)
}

/// Whether a worker Machine matches its MachineDeployment. Control plane Machines get this from their provider, and
/// Machines that stand alone do not have it. A Machine of a MachinePool is what its infrastructure runs, until it is deleted.
fn up_to_date(seen: &Observed, plan: &Plan, status: &MachineStatus, now: &Moment) -> Option<Condition> {
    let metadata = &seen.machine.metadata;
    if owner::controller_of(metadata).is_some_and(|owner| owner.kind == "MachinePool") {
        let draft = if seen.deleting() {
            Draft::no(reasons::NOT_UP_TO_DATE, "Machine is being deleted")
        } else {
            Draft::yes(reasons::UP_TO_DATE, "")
        };
        return Some(stamped(draft, types::UP_TO_DATE, now.now(), metadata.generation));
    }
    let (set, deployment) = (seen.machine_set.as_ref()?, seen.machine_deployment.as_ref()?);
    let generation = seen.machine.metadata.generation;
    let mut differences = templates::differences(&set.spec.template, &deployment.spec.template);
    let after = deployment
        .spec
        .rollout
        .as_ref()
        .and_then(|rollout| rollout.after.as_ref())
        .map(|time| time.0);
    let created = set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let is_older = |after| created.is_some_and(|created| created < after);
    if after.is_some_and(|after| is_older(after) && now.reached(after)) {
        differences.push("MachineDeployment spec.rolloutAfter expired".to_owned());
    }
    let state = |status, reason, message: String| {
        let type_ = types::UP_TO_DATE;
        Some(condition(type_, status, reason, message, now.now(), generation))
    };
    if !differences.is_empty() {
        let lines: Vec<String> = differences.iter().map(|line| format!("* {line}")).collect();
        return state(Status::False, reasons::NOT_UP_TO_DATE, lines.join("\n"));
    }
    let updating = updating(seen, plan, now.now());
    if updating.status == "True" {
        return state(Status::False, reasons::UPDATING, format!("* {}", updating.message));
    }
    let kubelet = status
        .node_info
        .as_ref()
        .map_or("", |info| info.kubelet_version.as_str());
    let want = seen.machine.spec.version.as_deref().unwrap_or_default();
    if !kubelet.is_empty() && !want.is_empty() && kubelet != want {
        let message = format!("* Node.status.nodeInfo.kubeletVersion {kubelet}, {want} required");
        return state(Status::False, reasons::UPDATING, message);
    }
    state(Status::True, reasons::UP_TO_DATE, String::new())
}

/// Whether an update in place is under way.
fn updating(seen: &Observed, plan: &Plan, now: Timestamp) -> Condition {
    let generation = seen.machine.metadata.generation;
    let of = |status, reason, message: &str| condition(types::UPDATING, status, reason, message, now, generation);
    match &plan.updating {
        _ if !in_place::is_under_way(&seen.machine) => of(Status::False, reasons::NOT_UPDATING, ""),
        Some(updating) => of(Status::True, updating.reason, &updating.message),
        None => of(Status::True, reasons::IN_PLACE_UPDATING, "In-place update in progress"),
    }
}

fn ready(seen: &Observed, plan: &Plan, all: &[Condition], moment: &Moment) -> Condition {
    let now = moment.now();
    let gates = &seen.machine.spec.readiness_gates;
    let mut for_types = vec![
        types::DELETING,
        types::UPDATING,
        types::BOOTSTRAP_CONFIG_READY,
        types::INFRASTRUCTURE_READY,
        types::NODE_HEALTHY,
        types::HEALTH_CHECK_SUCCEEDED,
    ];
    for_types.extend(gates.iter().map(|gate| gate.condition_type.as_str()));
    let mut negative = vec![types::DELETING, types::UPDATING];
    let against = gates.iter().filter(|gate| gate.polarity.as_deref() == Some("Negative"));
    negative.extend(against.map(|gate| gate.condition_type.as_str()));
    let overrides = plan.deleting.as_ref().map(|deleting| {
        let since = seen
            .machine
            .metadata
            .deletion_timestamp
            .as_ref()
            .map_or(now, |time| time.0);
        let slow = moment.elapsed(since, SLOW_DELETION);
        let long = if slow { " since more than 15m" } else { "" };
        let mut message = format!("Machine deletion in progress{long}, stage: {}", deleting.reason);
        if slow && deleting.reason == reasons::DRAINING_NODE {
            message.push_str(&conditions::causes_of_delay(&[&deleting.message]));
        }
        condition(types::DELETING, Status::True, reasons::DELETING, &message, now, None)
    });
    let deleting = seen.deleting();
    let priority = |condition: &Condition| {
        if deleting && is_expected_to_be_gone(condition) {
            Priority::Info
        } else {
            default_priority(condition, &negative)
        }
    };
    let rule = Summary {
        negative: &negative,
        ignore_if_missing: &[types::HEALTH_CHECK_SUCCEEDED],
        overrides: overrides.as_slice(),
        priority: Some(&priority),
        transform: Some(&collapse_components),
        reasons: Reasons {
            issue: reasons::NOT_READY,
            unknown: reasons::READY_UNKNOWN,
            info: reasons::READY,
        },
        ..Summary::new(types::READY, &for_types)
    };
    conditions::summary(all, &rule, now, seen.machine.metadata.generation)
}

/// What a Machine that is being deleted loses on the way is no trouble.
fn is_expected_to_be_gone(condition: &Condition) -> bool {
    let reason = condition.reason.as_str();
    match condition.type_.as_str() {
        types::BOOTSTRAP_CONFIG_READY | types::INFRASTRUCTURE_READY => {
            reason == reasons::OBJECT_DELETED || reason == reasons::OBJECT_DOES_NOT_EXIST
        }
        types::NODE_HEALTHY => reason == reasons::NODE_DELETED || reason == reasons::NODE_DOES_NOT_EXIST,
        _ => false,
    }
}

/// Lines of control plane components that all say the same become one line.
fn collapse_components(lines: Vec<String>) -> Vec<String> {
    let is_component = |line: &str| {
        let name = line.split(':').next().unwrap_or_default();
        ["* APIServer", "* ControllerManager", "* Scheduler"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || name == "* EtcdPodHealthy"
    };
    let said = |line: &str| line.split_once(':').map(|(_, text)| text.to_owned());
    let components: Vec<Option<String>> = lines
        .iter()
        .filter(|line| is_component(line))
        .map(|line| said(line))
        .collect();
    let Some(Some(first)) = components.first().filter(|_| components.len() > 1) else {
        return lines;
    };
    if components.iter().any(|text| text.as_ref() != Some(first)) {
        return lines;
    }
    let mut collapsed = Vec::with_capacity(lines.len());
    let mut written = false;
    for line in &lines {
        if !is_component(line) {
            collapsed.push(line.clone());
        } else if !written {
            written = true;
            collapsed.push(format!("* Control plane components:{first}"));
        }
    }
    collapsed
}

fn available(seen: &Observed, all: &[Condition], now: &Moment) -> Condition {
    let generation = seen.machine.metadata.generation;
    let state = |status, reason| condition(types::AVAILABLE, status, reason, "", now.now(), generation);
    let Some(ready) = conditions::get(all, types::READY).filter(|ready| ready.status == "True") else {
        return state(Status::False, reasons::NOT_READY);
    };
    let wait = SignedDuration::from_secs(i64::from(seen.machine.spec.min_ready_seconds.unwrap_or_default()));
    if now.elapsed(ready.last_transition_time.0, wait) {
        state(Status::True, reasons::AVAILABLE)
    } else {
        state(Status::False, reasons::WAITING_FOR_MIN_READY_SECONDS)
    }
}
