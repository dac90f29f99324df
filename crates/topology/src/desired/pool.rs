//! One MachinePool, its bootstrap object and its infrastructure.
//!
//! Both are objects, not templates: they keep their names, and their providers bring their machines up to date.

use serde_json::{Value, json};

use super::worker::{BOOTSTRAP_FIELD, INFRASTRUCTURE_FIELD};
use super::{Member, Pool, Scope, merged_metadata, metadata_json, overlaid, put, template};
use crate::blueprint::WorkerTemplates;
use crate::error::Error;
use crate::model::{MachinePoolClass, MachinePoolTopology, Metadata, text};
use crate::patches::{Item, Place};
use crate::upgrade::WorkerStep;
use crate::variables::check::Effective;
use crate::variables::{BUILTIN, builtin};
use crate::{keys, names};

/// What naming templates and builtin variables call it.
const KIND: &str = "machinePool";

/// Names, decided before patches run because patches may use them.
pub(super) struct Names<'a> {
    entry: &'a MachinePoolTopology,
    class: &'a MachinePoolClass,
    templates: &'a WorkerTemplates,
    object: String,
    bootstrap: String,
    infrastructure: String,
    metadata: Metadata,
    step: WorkerStep,
}

impl<'a> Names<'a> {
    pub(super) fn of(scope: &Scope<'a>, entry: &'a MachinePoolTopology, step: WorkerStep) -> Result<Self, Error> {
        let blueprint = scope.input.blueprint;
        let mut classes = blueprint.class.spec.workers.machine_pools.iter().enumerate();
        let found = classes.find(|(_, class)| class.class == entry.class);
        let found = found.and_then(|(index, class)| Some((index, class, blueprint.machine_pools.get(&class.class)?)));
        let Some((class_index, class, templates)) = found else {
            let entries = &scope.topology.workers.machine_pools;
            let index = entries.iter().position(|e| e.name == entry.name).unwrap_or_default();
            let field = format!("spec.topology.workers.machinePools[{index}].class");
            let message = format!(
                "MachinePool class {:?} does not exist in {}",
                entry.class, blueprint.class.name
            );
            return Err(Error::new(&scope.object, field, message));
        };
        let current = scope.input.current.machine_pools.get(&entry.name);
        let named = |pointer: &str| current.map_or("", |set| text(&set.object, pointer));
        let object = match named("/metadata/name") {
            "" => names::Naming {
                cluster: scope.cluster,
                topology: Some((KIND, &entry.name)),
                template: class.naming.template.as_deref(),
                at: (
                    &blueprint.class.name,
                    &format!("spec.workers.machinePools[{class_index}].naming.template"),
                ),
            }
            .name(&[&scope.seed, "machine-pool", &entry.name])?,
            name => name.to_owned(),
        };
        let name = |place: &str, pointer: &str| match named(pointer) {
            "" => names::simple(
                &format!("{}-{}-", scope.cluster, entry.name),
                &[&scope.seed, place, &entry.name],
            ),
            name => name.to_owned(),
        };
        Ok(Self {
            object,
            bootstrap: name("pool-bootstrap", "/spec/template/spec/bootstrap/configRef/name"),
            infrastructure: name("pool-machines", "/spec/template/spec/infrastructureRef/name"),
            metadata: merged_metadata(&class.metadata, &entry.metadata),
            entry,
            class,
            templates,
            step,
        })
    }

    fn member(&self) -> Member<'a> {
        Member::of_pool(&self.entry.name)
    }

    pub(super) fn push_items(&self, scope: &Scope<'_>, values: &Effective, items: &mut Vec<Item>) {
        let mut labels = self.metadata.labels.clone();
        labels.extend(scope.labels(Some(self.member())));
        let part = builtin::Part {
            version: &self.step.version,
            name: &self.object,
            replicas: self.entry.replicas,
            labels: Some(&labels),
            annotations: Some(&self.metadata.annotations),
        };
        let mut variables = values.pool(&self.entry.name).clone();
        let (class, name) = (&self.entry.class, &self.entry.name);
        let facts = builtin::worker(KIND, &part, class, name, &self.bootstrap, &self.infrastructure);
        variables.insert(BUILTIN.to_owned(), facts);
        let sources = [
            (&self.class.bootstrap, &self.templates.bootstrap, BOOTSTRAP_FIELD),
            (
                &self.class.infrastructure,
                &self.templates.infrastructure,
                INFRASTRUCTURE_FIELD,
            ),
        ];
        for (source, template, field) in sources {
            let added = Metadata::default();
            let mut metadata = template::metadata_of_object(scope, template, &added, Some(self.member()));
            items.push(Item {
                place: Place::MachinePool { class: class.clone() },
                holder: scope.holder((keys::CORE_API_VERSION, "MachinePool"), &self.object, field),
                api_version: source.template_ref.api_version.clone(),
                template: template::to_patch(template, &mut metadata, template::OF_OBJECT),
                variables: variables.clone(),
            });
        }
    }

    pub(super) fn build(self, scope: &Scope<'_>, next: &mut impl FnMut() -> Value) -> Pool {
        let mut made = |name: &str| {
            let member = Some(self.member());
            let mut object = template::object_from(scope, next(), name, member);
            // Until the MachinePool owns it. Without one it goes with the Cluster.
            object["metadata"]["ownerReferences"] = json!([scope.owner(false)]);
            object
        };
        let bootstrap = made(&self.bootstrap);
        let infrastructure = made(&self.infrastructure);
        Pool {
            name: self.entry.name.clone(),
            object: self.object(scope, &bootstrap, &infrastructure),
            bootstrap,
            infrastructure,
            step: self.step,
        }
    }

    fn object(&self, scope: &Scope<'_>, bootstrap: &Value, infrastructure: &Value) -> Value {
        let (class, entry) = (&self.class.common, &self.entry.common);
        let mut labels = self.metadata.labels.clone();
        labels.extend(scope.labels(Some(self.member())));
        let metadata = metadata_json(&labels, &self.metadata.annotations);
        let mut own = metadata.clone();
        own["name"] = self.object.as_str().into();
        own["namespace"] = scope.namespace.into();
        own["ownerReferences"] = json!([scope.owner(false)]);
        let mut object = json!({
            "apiVersion": keys::CORE_API_VERSION,
            "kind": "MachinePool",
            "metadata": own,
            "spec": {
                "clusterName": scope.cluster,
                "template": {
                    "metadata": metadata,
                    "spec": {
                        "clusterName": scope.cluster,
                        "version": self.step.version,
                        "bootstrap": {"configRef": template::reference(bootstrap)},
                        "infrastructureRef": template::reference(infrastructure),
                    },
                },
            },
        });
        let machine = ["spec", "template", "spec"];
        let mut set = |above: &[&str], field: &str, value: Option<Value>| {
            put(&mut object, &[above, &[field]].concat(), value);
        };
        set(&["spec"], "replicas", self.entry.replicas.map(Value::from));
        let domains = entry.failure_domains.as_ref().or(class.failure_domains.as_ref());
        set(&["spec"], "failureDomains", domains.cloned());
        let deletion = overlaid(&class.deletion, &entry.deletion);
        set(&machine, "deletion", Some(deletion.into()));
        let seconds = entry.min_ready_seconds.or(class.min_ready_seconds);
        set(&machine, "minReadySeconds", seconds.map(Value::from));
        let taints = entry.taints.as_ref().or(class.taints.as_ref());
        set(&machine, "taints", taints.cloned());
        object
    }
}
