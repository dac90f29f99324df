//! A rollout of workers that was going on when a management cluster was recorded: it goes on, and nothing else does. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use super::recording::named;
use crate::recorded::flat::Flat;
use crate::recorded::normal::Role;

/// The annotation with the revision of a MachineSet.
const REVISION: &str = "machinedeployment.clusters.x-k8s.io/revision";
/// The label of a Machine with its MachineSet.
const SET: &str = "cluster.x-k8s.io/set-name";

/// The views without what takes part in the rollout: the objects below the MachineDeployment, and the status of those that count them.
pub(super) fn without(deployment: &str, views: BTreeMap<Role, Flat>) -> BTreeMap<Role, Flat> {
    let mut views = views;
    views.retain(|(kind, name), _| !name.starts_with(deployment) && kind != "workload Secret");
    for ((kind, _), view) in &mut views {
        if kind == "Cluster" {
            view.retain(|path, _| !path.starts_with("status.") && !path.starts_with("owner of status."));
        }
    }
    views
}

/// Fails unless the rollout went on to its end with what was there: with the newest MachineSet alone, with each of its Machines that had been
/// made, and with an unchanged MachineDeployment. Returns the number of Machines that were made meanwhile.
pub(super) fn finished(deployment: &str, before: &[Value], after: &[Value]) -> Result<usize, String> {
    let of_kind = |objects: &[Value], kind: &str| -> Vec<Value> {
        let is_its_own = |object: &&Value| object["kind"] == kind && named(object).1.starts_with(deployment);
        objects.iter().filter(is_its_own).cloned().collect()
    };
    let only = |objects: &[Value]| match of_kind(objects, "MachineDeployment").as_slice() {
        [one] => Ok(one.clone()),
        all => Err(format!("{} MachineDeployments {deployment}, expected one", all.len())),
    };
    let (was, is) = (only(before)?, only(after)?);
    if was["spec"] != is["spec"] || was["metadata"]["uid"] != is["metadata"]["uid"] {
        return Err(format!(
            "the spec of MachineDeployment {deployment} was {}, is {}",
            was["spec"], is["spec"]
        ));
    }
    let revision = |set: &Value| -> Option<u32> { set["metadata"]["annotations"][REVISION].as_str()?.parse().ok() };
    let newest = of_kind(before, "MachineSet")
        .into_iter()
        .max_by_key(revision)
        .ok_or("no MachineSet is recorded")?;
    let sets = of_kind(after, "MachineSet");
    let [set] = sets.as_slice() else {
        let names: Vec<String> = sets.iter().map(|set| named(set).1).collect();
        return Err(format!(
            "the MachineSets are {}, expected {} alone",
            names.join(", "),
            named(&newest).1
        ));
    };
    if set["metadata"]["uid"] != newest["metadata"]["uid"] || set["spec"]["replicas"] != is["spec"]["replicas"] {
        return Err(format!(
            "the MachineSet is {set}, expected {} with all replicas",
            named(&newest).1
        ));
    }
    let machines = of_kind(after, "Machine");
    let is_its_own = |machine: &&Value| machine["metadata"]["labels"][SET] == newest["metadata"]["name"];
    let (own, old): (Vec<&Value>, Vec<&Value>) = machines.iter().partition(is_its_own);
    let wanted = is["spec"]["replicas"].as_u64();
    let runs = own.iter().all(|machine| machine["status"]["phase"] == "Running");
    if !old.is_empty() || !runs || u64::try_from(own.len()).ok() != wanted {
        let states = machines
            .iter()
            .map(|machine| format!("{} {}", named(machine).1, machine["status"]["phase"]));
        return Err(format!("the Machines are {}", states.collect::<Vec<_>>().join(", ")));
    }
    let before = of_kind(before, "Machine");
    let kept: Vec<&Value> = before.iter().filter(is_its_own).collect();
    for machine in &kept {
        if !own
            .iter()
            .any(|own| own["metadata"]["uid"] == machine["metadata"]["uid"])
        {
            return Err(format!(
                "Machine {} was replaced, although it was new",
                named(machine).1
            ));
        }
    }
    Ok(own.len() - kept.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(name: &str, revision: &str, replicas: u32) -> Value {
        let metadata = json!({"name": name, "uid": name, "annotations": {REVISION: revision}});
        json!({"kind": "MachineSet", "metadata": metadata, "spec": {"replicas": replicas}})
    }

    fn machine(name: &str, set: &str, phase: &str) -> Value {
        let metadata = json!({"name": name, "uid": name, "labels": {SET: set}});
        json!({"kind": "Machine", "metadata": metadata, "status": {"phase": phase}})
    }

    #[test]
    fn a_rollout_ends_with_what_was_there() {
        let deployment =
            json!({"kind": "MachineDeployment", "metadata": {"name": "md", "uid": "md"}, "spec": {"replicas": 2}});
        let before = [
            deployment.clone(),
            set("md-old", "1", 2),
            set("md-new", "2", 1),
            machine("md-old-a", "md-old", "Running"),
            machine("md-new-a", "md-new", "Provisioning"),
        ];
        let after = |objects: &[Value]| [std::slice::from_ref(&deployment), objects].concat();
        let (first, second) = (
            machine("md-new-a", "md-new", "Running"),
            machine("md-new-b", "md-new", "Running"),
        );
        let new = set("md-new", "2", 2);
        let good = after(&[new.clone(), first.clone(), second.clone()]);
        assert_eq!(finished("md", &before, &good), Ok(1));
        let bad = [
            (
                after(&[new.clone(), set("md-old", "1", 0), first.clone(), second.clone()]),
                "the MachineSets are",
            ),
            (
                after(&[set("md-third", "3", 2), first.clone(), second.clone()]),
                "the MachineSet is",
            ),
            (
                after(&[new.clone(), machine("md-new-c", "md-new", "Running"), second.clone()]),
                "Machine md-new-a was replaced",
            ),
            (
                after(&[new.clone(), first.clone(), machine("md-old-a", "md-old", "Running")]),
                "the Machines are",
            ),
            (
                after(&[new.clone(), first.clone(), machine("md-new-b", "md-new", "Pending")]),
                "the Machines are",
            ),
            (vec![new, first, second], "0 MachineDeployments"),
        ];
        for (objects, expect) in bad {
            let error = finished("md", &before, &objects).unwrap_err();
            assert!(error.starts_with(expect), "{expect}: {error}");
        }
    }
}
