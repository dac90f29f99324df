//! Whether a Machine is what the control plane asks for; no hash is stored anywhere, the objects are compared.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use windlass_controller_runtime::Moment;

use crate::desired;
use crate::facts::{CpMachine, Facts};
use crate::finding::Finding;
use crate::names::{CLONED_FROM_GROUP_KIND, CLONED_FROM_NAME, machine};
use windlass_api::conditions::UPDATING;

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// How a Machine differs from what is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpToDate {
    /// One sentence a difference; none means it is up to date.
    pub differences: Vec<String>,
    /// An update in place may end the differences: they are not those of its age.
    pub in_place: bool,
}

impl UpToDate {
    /// True when nothing differs.
    pub fn holds(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Compares a Machine, its KubeadmConfig and its infrastructure machine with what is asked for.
pub fn judge(facts: &Facts, machine: &CpMachine, now: &Moment) -> UpToDate {
    let control_plane = &facts.control_plane;
    let mut differences = Vec::new();
    let mut in_place = true;
    if let (Some(days), Some(expiry)) = (control_plane.rollout_before_days, machine.certificates_expiry) {
        let notice = SignedDuration::from_secs(i64::from(days) * DAY_SECONDS);
        if now.reached(expiry.saturating_sub(notice).unwrap_or(Timestamp::MIN)) {
            differences.push("Certificates will expire soon".to_owned());
            in_place = false;
        }
    }
    if let Some(after) = control_plane.rollout_after
        && machine.created < after
        && now.reached(after)
    {
        differences.push("KubeadmControlPlane spec.rolloutAfter expired".to_owned());
        in_place = false;
    }
    if facts
        .rotation
        .as_ref()
        .is_some_and(|rotation| rotation.is_outdated(machine))
    {
        differences.push("Authorities of the cluster are rotated".to_owned());
        in_place = false;
    }
    if machine.version != control_plane.version {
        differences.push(format!(
            "Version {}, {} required",
            machine.version, control_plane.version
        ));
    }
    if !config_matches(facts, machine) {
        differences.push("KubeadmConfig is not up-to-date".to_owned());
    }
    if !infra_matches(facts, machine) {
        differences.push(format!("{} is not up-to-date", machine.infra_kind()));
    }
    UpToDate { differences, in_place }
}

/// The condition that says so.
pub fn finding(machine: &CpMachine, judged: &UpToDate) -> Finding {
    const KIND: &str = machine::UP_TO_DATE;
    if !judged.holds() {
        let lines: Vec<String> = judged.differences.iter().map(|d| format!("* {d}")).collect();
        return Finding::no(KIND, "NotUpToDate", lines.join("\n"));
    }
    if machine.is_updating() {
        let updating = machine
            .condition(UPDATING)
            .filter(|condition| condition.status == "True");
        let said = updating
            .map(|condition| condition.message.as_str())
            .filter(|said| !said.is_empty());
        let said = said.unwrap_or("In-place update in progress");
        return Finding::no(KIND, "Updating", format!("* {said}"));
    }
    match &machine.kubelet_version {
        Some(kubelet) if !kubelet.is_empty() && *kubelet != machine.version => Finding::no(
            KIND,
            "Updating",
            format!(
                "* Node.status.nodeInfo.kubeletVersion {kubelet}, {} required",
                machine.version
            ),
        ),
        _ => Finding::yes(KIND, "UpToDate"),
    }
}

fn infra_matches(facts: &Facts, machine: &CpMachine) -> bool {
    let Some(infra) = machine.infra.found() else {
        return true;
    };
    let annotations = &infra["metadata"]["annotations"];
    let (Some(name), Some(group_kind)) = (
        annotations[CLONED_FROM_NAME].as_str(),
        annotations[CLONED_FROM_GROUP_KIND].as_str(),
    ) else {
        // Not made from a template: there is nothing to compare with.
        return true;
    };
    let template = &facts.control_plane.template;
    name == template.name && group_kind == template.group_kind()
}

fn config_matches(facts: &Facts, machine: &CpMachine) -> bool {
    let Some(config) = machine.config.found() else {
        return true;
    };
    let current = &config["spec"];
    let matches = |join: bool| {
        let desired = desired::kubeadm_spec(&facts.control_plane, join);
        let (current, desired) = comparable(current, desired, join);
        current == desired
    };
    matches(true) || (!is_join(current) && matches(false))
}

/// The specification of a Machine's KubeadmConfig as it is and as it is to be, as one that joins, without what may differ.
pub fn joining(facts: &Facts, current: &Value) -> (Value, Value) {
    let desired = desired::kubeadm_spec(&facts.control_plane, true);
    comparable(current, desired, true)
}

fn is_join(spec: &Value) -> bool {
    spec["joinConfiguration"]["controlPlane"].is_object()
}

/// Both sides without what may differ.
fn comparable(current: &Value, desired: Value, as_join: bool) -> (Value, Value) {
    let mut current = current.clone();
    let mut desired = desired;
    if as_join && !is_join(&current) {
        init_to_join(&mut current, &desired);
    }
    for side in [&mut current, &mut desired] {
        // Set by the bootstrap controller, or changed in the running cluster instead of in Machines.
        remove(side, &["clusterConfiguration", "controlPlaneEndpoint"]);
        remove(side, &["clusterConfiguration", "dns"]);
        remove(side, &["joinConfiguration", "discovery"]);
        for section in ["initConfiguration", "joinConfiguration"] {
            let timeout = "controlPlaneComponentHealthCheckSeconds";
            remove(side, &[section, "timeouts", timeout]);
            drop_default(side, section);
        }
        if side["format"] == "cloud-config" {
            remove(side, &["format"]);
        }
        // Told apart by what was compared as what; as an empty object it would be dropped below.
        let endpoint = side["joinConfiguration"]["controlPlane"].take();
        prune(side);
        if endpoint.is_object() {
            side["joinConfiguration"]["controlPlane"] = endpoint;
        }
    }
    (current, desired)
}

/// What the first Machine's configuration would be, had it joined.
fn init_to_join(current: &mut Value, desired: &Value) {
    let init = current["initConfiguration"].take();
    let mut join = Map::new();
    for key in ["timeouts", "patches", "skipPhases", "nodeRegistration"] {
        if !init[key].is_null() {
            join.insert(key.to_owned(), init[key].clone());
        }
    }
    let mut control_plane = Map::new();
    if !init["localAPIEndpoint"].is_null() {
        control_plane.insert("localAPIEndpoint".to_owned(), init["localAPIEndpoint"].clone());
    }
    join.insert("controlPlane".to_owned(), Value::Object(control_plane));
    let ca = &desired["joinConfiguration"]["caCertPath"];
    if !ca.is_null() {
        join.insert("caCertPath".to_owned(), ca.clone());
    }
    current["joinConfiguration"] = Value::Object(join);
}

/// Drops a pull policy that older versions set as a default: it is no difference.
fn drop_default(side: &mut Value, section: &str) {
    if side[section]["nodeRegistration"]["imagePullPolicy"] == "IfNotPresent" {
        remove(side, &[section, "nodeRegistration", "imagePullPolicy"]);
    }
}

fn remove(value: &mut Value, path: &[&str]) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut at = value;
    for key in parents {
        match at.get_mut(*key) {
            Some(next) => at = next,
            None => return,
        }
    }
    if let Some(object) = at.as_object_mut() {
        object.remove(*last);
    }
}

/// Drops what is empty: kubeadm does not distinguish it from what is absent. An empty list of taints is another matter: it takes the
/// default taint away.
fn prune(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.values_mut().for_each(prune);
            object.retain(|key, v| !is_empty(v) || key == "taints" && v.is_array());
        }
        Value::Array(list) => list.iter_mut().for_each(prune),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(object) => object.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}
