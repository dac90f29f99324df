//! Decides which templates are deleted with a MachineDeployment or MachineSet of a topology.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::core::MachineSpec;
use windlass_api::labels::TOPOLOGY_OWNED;
use windlass_controller_runtime::{Blocked, Dynamic, Note, Seen};

use super::FAILED;
use super::facts::{TemplateId, templates};
use super::observe::Deletion;

/// One write.
#[derive(Debug)]
pub(super) enum Action {
    /// Add the finalizer.
    AddFinalizer,
    /// Delete a template.
    DeleteTemplate(Arc<Dynamic>),
    /// Remove the finalizer: all templates are deleted.
    RemoveFinalizer,
}

/// The writes about one object.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(super) actions: Vec<Action>,
    /// Why templates are deleted.
    pub(super) notes: Vec<Note>,
    /// Which template cannot be read.
    pub(super) blocked: Option<Blocked>,
}

/// Decides about an object with this metadata, whose Machines are made of `going`.
pub(super) fn plan(meta: &ObjectMeta, finalizer: &str, going: &MachineSpec, deletion: &Deletion) -> Plan {
    let owned = meta.labels.as_ref().is_some_and(|l| l.contains_key(TOPOLOGY_OWNED));
    let has = meta.finalizers.iter().flatten().any(|f| f == finalizer);
    let mut plan = Plan::default();
    match (meta.deletion_timestamp.is_some(), has) {
        (false, false) if owned => plan.actions.push(Action::AddFinalizer),
        (true, true) => plan.clean_up(going, deletion),
        _ => {}
    }
    plan
}

impl Plan {
    fn clean_up(&mut self, going: &MachineSpec, deletion: &Deletion) {
        for id in unused(going, &deletion.staying) {
            match deletion.templates.get(&id) {
                // A template without the label was made by a user and stays.
                Some(Seen::Found(template)) if template.label(TOPOLOGY_OWNED).is_some() => {
                    let (kind, name) = id;
                    let message = format!(
                        "deletes {} {name}: no other MachineDeployment or MachineSet of the Cluster uses it",
                        kind.kind
                    );
                    self.notes.push(Note::new(message));
                    self.actions.push(Action::DeleteTemplate(template.clone()));
                }
                Some(Seen::Failed(why)) => self.blocked = Some(Blocked::failed(FAILED, why.as_str())),
                Some(Seen::Found(_) | Seen::NotFound) | None => {}
            }
        }
        if self.blocked.is_none() {
            self.actions.push(Action::RemoveFinalizer);
        }
    }
}

/// The templates of `going` that nothing in `staying` uses.
fn unused<'a>(going: &MachineSpec, staying: impl IntoIterator<Item = &'a MachineSpec>) -> Vec<TemplateId> {
    let used: BTreeSet<TemplateId> = staying.into_iter().flat_map(templates).collect();
    templates(going).difference(&used).cloned().collect()
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;
    use windlass_api::core::ContractVersionedObjectReference as Reference;
    use windlass_controller_runtime::Plan as _;

    use super::*;

    fn spec(bootstrap: &str, infrastructure: &str) -> MachineSpec {
        let reference = |kind: &str, name: &str| Reference {
            api_group: "g".to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        let mut spec = MachineSpec {
            infrastructure_ref: reference("DevMachineTemplate", infrastructure),
            ..MachineSpec::default()
        };
        spec.bootstrap.config_ref = Some(reference("KubeadmConfigTemplate", bootstrap));
        spec
    }

    fn template((kind, name): &TemplateId, owned: bool) -> Seen<Arc<Dynamic>> {
        let labels = if owned { json!({TOPOLOGY_OWNED: ""}) } else { json!({}) };
        let object = json!({
            "apiVersion": "g/v1", "kind": kind.kind, "metadata": {"name": name, "namespace": "n", "labels": labels},
        });
        Seen::Found(Arc::new(Dynamic::new(object).unwrap()))
    }

    /// What happens to an object with templates b1 and i1 beside one with these.
    fn deleted(staying: &[MachineSpec], change: impl Fn(&TemplateId) -> Seen<Arc<Dynamic>>) -> Plan {
        let meta = ObjectMeta {
            deletion_timestamp: Some(Time(Timestamp::UNIX_EPOCH)),
            finalizers: Some(vec!["f".to_owned()]),
            ..ObjectMeta::default()
        };
        let going = spec("b1", "i1");
        let found = templates(&going).into_iter().map(|id| {
            let template = change(&id);
            (id, template)
        });
        let deletion = Deletion {
            staying: staying.to_vec(),
            templates: found.collect(),
        };
        plan(&meta, "f", &going, &deletion)
    }

    fn words(plan: &Plan) -> Vec<&str> {
        let word = |action| match action {
            &Action::AddFinalizer => "add",
            Action::DeleteTemplate(template) => template.name(),
            &Action::RemoveFinalizer => "remove",
        };
        plan.actions.iter().map(word).collect()
    }

    // TO-300, TO-315
    #[test]
    fn templates_go_with_the_last_object_that_uses_them() {
        let ours = |id: &TemplateId| template(id, true);
        assert_eq!(words(&deleted(&[], ours)), ["i1", "b1", "remove"]);
        assert_eq!(words(&deleted(&[spec("b1", "i2")], ours)), ["i1", "remove"]);
        assert_eq!(words(&deleted(&[spec("b1", "i1")], ours)), ["remove"]);
    }

    #[test]
    fn templates_of_users_stay_and_those_that_are_gone_do_not_matter() {
        assert_eq!(words(&deleted(&[], |id| template(id, false))), ["remove"]);
        assert_eq!(words(&deleted(&[], |_| Seen::NotFound)), ["remove"]);
    }

    #[test]
    fn the_finalizer_stays_while_a_template_cannot_be_read() {
        let plan = deleted(&[], |id| match id.1.as_str() {
            "b1" => Seen::Failed("informer not synced".to_owned()),
            _ => template(id, true),
        });
        assert_eq!(words(&plan), ["i1"]);
        assert_eq!(plan.blocked(), Some(Blocked::failed("Cleanup", "informer not synced")));
    }

    #[test]
    fn only_objects_of_a_topology_get_the_finalizer() {
        let mut meta = ObjectMeta::default();
        let plan = |meta: &ObjectMeta| plan(meta, "f", &spec("b", "i"), &Deletion::default());
        assert!(words(&plan(&meta)).is_empty());
        meta.labels = Some([(TOPOLOGY_OWNED.to_owned(), String::new())].into());
        assert_eq!(words(&plan(&meta)), ["add"]);
    }
}
