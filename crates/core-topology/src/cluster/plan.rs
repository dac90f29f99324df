//! Decides what to do about a topology.

use windlass_api::core::ClusterClass;
use windlass_api::kind::Conditioned as _;
use windlass_api::{conditions, reasons};
use windlass_conditions::Draft;
use windlass_kit::Seen;
use windlass_topology::blueprint::Blueprint;
use windlass_topology::desired::Input;
use windlass_topology::plan::Plan as Steps;
use windlass_topology::status;
use windlass_topology::{Error, plan as topology_plan};

use super::observe::{Managed, Observed};

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Plan {
    /// The Cluster is not this controller's.
    Nothing,
    /// Nothing can or need be done; this says why.
    Report(Draft),
    /// Something could not be read: again later.
    Unreadable(String),
    /// Steps to take.
    Steps(Box<Steps>),
}

pub(super) fn plan(seen: &Observed) -> Plan {
    match seen {
        Observed::Unmanaged => Plan::Nothing,
        Observed::Deleting(_) => Plan::Report(status::deleting()),
        Observed::Managed(seen) => managed(seen),
    }
}

fn managed(seen: &Managed) -> Plan {
    let Some(class) = seen.class.as_deref() else {
        let message = format!("ClusterClass {} does not exist", seen.class_key);
        let cluster = windlass_topology::model::name_of(&seen.value);
        return Plan::Report(status::failed(&Error::new(cluster, "spec.topology.classRef", message)));
    };
    if let Some(report) = class_not_ready(class) {
        return Plan::Report(report);
    }
    for template in seen.templates.values() {
        if let Some(why) = template.failure() {
            return Plan::Unreadable(why.to_owned());
        }
    }
    // Making them renders every patch: once is enough.
    match seen.steps.clone().map_or_else(|| steps(seen), Ok) {
        Ok(steps) => Plan::Steps(Box::new(steps)),
        Err(Failure::Refused(error)) => Plan::Report(status::failed(&error)),
        Err(Failure::Unreadable(why)) => Plan::Unreadable(why),
    }
}

/// The class's own controller has to have seen the class as it is now, and found its variables good.
fn class_not_ready(class: &ClusterClass) -> Option<Draft> {
    let generation = class.metadata.generation.unwrap_or_default();
    let observed = class
        .status
        .as_ref()
        .and_then(|s| s.observed_generation)
        .unwrap_or_default();
    let has_problem = |type_: &str, reason: &str| {
        let found = windlass_conditions::get(class.conditions(), type_)?;
        (found.status != "True" && found.reason != reason && found.observed_generation == Some(generation))
            .then(|| found.message.clone())
    };
    if let Some(message) = has_problem(conditions::VARIABLES_READY, reasons::VARIABLES_READY) {
        let message = format!("ClusterClass is not successfully reconciled: {message}");
        return Some(Draft::no(status::FAILED, message));
    }
    if observed == generation {
        return None;
    }
    let mut report = status::class_not_reconciled(generation, observed);
    // A class that merely names older versions of kinds is no problem; one whose templates are missing is.
    let why = has_problem(
        conditions::REF_VERSIONS_UP_TO_DATE,
        reasons::REF_VERSIONS_NOT_UP_TO_DATE,
    );
    if let Some(why) = why.filter(|w| !w.is_empty()) {
        report.message = format!("{}: {why}", report.message);
    }
    Some(report)
}

enum Failure {
    Refused(Error),
    Unreadable(String),
}

fn steps(seen: &Managed) -> Result<Steps, Failure> {
    let current = seen.current.as_ref().map_err(|why| Failure::Unreadable(why.clone()))?;
    let blueprint = blueprint(seen).map_err(Failure::Refused)?;
    let input = Input {
        cluster: &seen.value,
        blueprint: &blueprint,
        current,
    };
    topology_plan::plan(input).map_err(Failure::Refused)
}

fn blueprint(seen: &Managed) -> Result<Blueprint, Error> {
    Blueprint::new(&seen.class_value(), seen.contract, |reference| {
        let place = format!("{} {}/{}", reference.kind, seen.class_key.namespace, reference.name);
        match seen.templates.get(reference) {
            Some(Seen::Found(template)) => Ok(template.clone()),
            Some(Seen::Failed(why)) => Err(format!("{place} cannot be read: {why}")),
            Some(Seen::NotFound) | None => Err(format!("{place} does not exist")),
        }
    })
}

/// The steps as far as they are known before the fields set before are: none where none can be made.
pub(super) fn first_steps(seen: &Managed) -> Option<Steps> {
    steps(seen).ok()
}

impl windlass_kit::Plan for Plan {
    fn blocked(&self) -> Option<windlass_kit::Blocked> {
        match self {
            Self::Unreadable(why) => Some(windlass_kit::Blocked::failed("Unreadable", why.as_str())),
            // What is wrong with Cluster, class or templates is repaired there, and that wakes this controller.
            _ => None,
        }
    }
}
