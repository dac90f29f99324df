//! Compares what a plan says with what has happened.

use std::collections::{BTreeMap, BTreeSet};

use kube::api::ListParams;
use serde_json::Value;
use windlass_manager::registry::kinds::KINDS;
use windlass_preview::model::{FieldChange, ObjectChange, Report, Verb};
use windlass_testkit::Env;

/// Kinds of objects that belong to one Machine, or make Machines: they are compared as Machines.
const OF_MACHINES: [&str; 4] = ["Machine", "MachineSet", "DevMachine", "KubeadmConfig"];

/// All objects of our kinds.
pub(super) struct State(BTreeMap<(String, String), Value>);

impl State {
    pub(super) async fn of(env: &Env) -> Self {
        let mut all = BTreeMap::new();
        for entry in KINDS.iter().filter(|entry| entry.group.ends_with("cluster.x-k8s.io")) {
            let list = env.dynamic(&entry.full_name()).list(&ListParams::default()).await;
            for object in list.unwrap() {
                let name = object.metadata.name.clone().unwrap();
                let mut object = serde_json::to_value(object).unwrap();
                object["kind"] = entry.kind.into();
                all.insert((entry.kind.to_owned(), name), object);
            }
        }
        Self(all)
    }

    /// The objects that are not what they were, with the field managers of both sides.
    pub(super) fn changed_since(&self, later: &Self) -> Vec<String> {
        let version = |state: &Self, key: &(String, String)| {
            let object = state.0.get(key)?;
            Some(object["metadata"]["resourceVersion"].clone())
        };
        let all: BTreeSet<_> = self.0.keys().chain(later.0.keys()).collect();
        let changed = all.into_iter().filter(|key| version(self, key) != version(later, key));
        changed
            .map(|key| format!("{key:?}: {:?} {:?}", self.0.get(key), later.0.get(key)))
            .collect()
    }

    fn compared(&self) -> impl Iterator<Item = (&(String, String), &Value)> {
        self.0
            .iter()
            .filter(|((kind, _), object)| !OF_MACHINES.contains(&kind.as_str()) || is_of_pool(object))
    }

    fn machines(&self) -> BTreeSet<&str> {
        let machines = self.0.keys().filter(|(kind, _)| kind == "Machine");
        machines.map(|(_, name)| name.as_str()).collect()
    }
}

/// Whether a topology has made an object for a pool itself, and not for one of its machines.
fn is_of_pool(object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    labels.get("topology.cluster.x-k8s.io/pool-name").is_some() && object["kind"] == "KubeadmConfig"
}

fn uid(object: &Value) -> &Value {
    &object["metadata"]["uid"]
}

type Fields = BTreeMap<String, (Option<Value>, Option<Value>)>;

/// What users and topologies ask for; other controllers have annotations of their own.
fn counted(fields: &[FieldChange], into: &mut Fields) {
    for field in fields {
        let is_asked_for = field.path.starts_with("spec") || field.path.starts_with("metadata.labels");
        // Providers list their machines there.
        if !is_asked_for || field.path.starts_with("spec.providerIDList") {
            continue;
        }
        let entry = into
            .entry(field.path.clone())
            .or_insert_with(|| (field.from.clone(), None));
        entry.1.clone_from(&field.to);
        if entry.0 == entry.1 {
            into.remove(&field.path);
        }
    }
}

/// Objects by kind and name.
#[derive(Debug, Default, PartialEq)]
struct Objects {
    created: BTreeSet<(String, String)>,
    deleted: BTreeSet<(String, String)>,
    changed: BTreeMap<(String, String), Fields>,
}

impl Objects {
    fn planned(report: &Report) -> Self {
        let mut out = Self::default();
        let phases = report.groups.iter().flat_map(|group| &group.plan.phases);
        let changes = report
            .changes
            .iter()
            .chain(phases.clone().flat_map(|phase| &phase.objects));
        for ObjectChange {
            verb, object, fields, ..
        } in changes
        {
            let key = (object.kind.clone(), object.name.clone());
            match verb {
                Verb::Created => drop(out.created.insert(key)),
                Verb::Deleted => drop(out.deleted.insert(key)),
                Verb::Changed => counted(fields, out.changed.entry(key).or_default()),
            }
        }
        for one in phases.flat_map(|phase| &phase.rotated) {
            out.created.insert((one.kind.clone(), one.to.clone()));
            out.deleted.insert((one.kind.clone(), one.from.clone()));
        }
        // A template that one phase makes and another replaces.
        let passing: Vec<_> = out.created.intersection(&out.deleted).cloned().collect();
        out.created.retain(|key| !passing.contains(key));
        out.deleted.retain(|key| !passing.contains(key));
        let (created, deleted) = (out.created.clone(), out.deleted.clone());
        out.changed
            .retain(|key, fields| !fields.is_empty() && !created.contains(key) && !deleted.contains(key));
        out
    }

    fn happened(before: &State, after: &State) -> Self {
        let mut out = Self::default();
        for (key, old) in before.compared() {
            match after.0.get(key) {
                Some(new) if uid(new) == uid(old) => {
                    let mut fields = Fields::new();
                    counted(&windlass_preview::changes(old, new), &mut fields);
                    if !fields.is_empty() {
                        out.changed.insert(key.clone(), fields);
                    }
                }
                Some(_) => {
                    out.deleted.insert(key.clone());
                    out.created.insert(key.clone());
                }
                None => {
                    out.deleted.insert(key.clone());
                }
            }
        }
        let fresh = after.compared().filter(|(key, _)| !before.0.contains_key(*key));
        out.created.extend(fresh.map(|(key, _)| key.clone()));
        out
    }
}

/// Asserts that the objects in the plan, without those of Machines, and those that have changed are the same.
pub(super) fn compare_objects(report: &Report, before: &State, after: &State, shown: &str) {
    assert_eq!(
        Objects::planned(report),
        Objects::happened(before, after),
        "planned, happened: {shown}"
    );
}

/// Asserts that the plan and what has happened are the same.
pub(super) fn compare(report: &Report, before: &State, after: &State, shown: &str) {
    compare_objects(report, before, after, shown);
    let phases = report.groups.iter().flat_map(|group| &group.plan.phases);
    let machines: Vec<_> = phases.flat_map(|phase| &phase.machines).collect();
    let (had, have) = (before.machines(), after.machines());
    let mut gone: BTreeSet<&str> = BTreeSet::new();
    // Of control planes, it depends on the health of their members which Machines go.
    let mut unnamed = 0;
    let mut added = 0;
    for change in machines {
        let replaced: BTreeSet<&str> = change.replaced.iter().map(|one| one.name.as_str()).collect();
        gone.extend(
            replaced
                .iter()
                .chain(&change.removed.iter().map(String::as_str).collect::<BTreeSet<_>>()),
        );
        unnamed += change.surplus;
        added += change.added;
        added -= i32::try_from(change.removed.len()).unwrap() + change.surplus;
    }
    let lost: BTreeSet<&str> = had.difference(&have).copied().collect();
    if unnamed == 0 {
        assert_eq!(gone, lost, "Machines that are planned to go, and that went: {shown}");
    } else {
        assert!(lost.is_superset(&gone), "{lost:?} {gone:?}: {shown}");
    }
    let number = |machines: &BTreeSet<&str>| i32::try_from(machines.len()).unwrap();
    assert_eq!(number(&had) + added, number(&have), "the number of Machines: {shown}");
}
