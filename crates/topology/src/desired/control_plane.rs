//! The control plane, its machine template and its health check.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_gocompat::duration;

use super::{ControlPlane, Scope, health_check, merged_metadata, metadata_json, overlaid, put, string_map, template};
use crate::blueprint::Contract;
use crate::error::Error;
use crate::model::{Metadata, text};
use crate::patches::{Item, Place, set_or_remove};
use crate::upgrade::ControlPlaneStep;
use crate::variables::check::Effective;
use crate::variables::{BUILTIN, builtin};
use crate::{keys, names};

/// Where a control plane names its machine template.
pub(crate) fn machine_reference_path(contract: Contract) -> &'static [&'static str] {
    match contract {
        Contract::V1Beta1 => &["spec", "machineTemplate", "infrastructureRef"],
        Contract::V1Beta2 => &["spec", "machineTemplate", "spec", "infrastructureRef"],
    }
}

/// The name that a Cluster gives to its control plane.
pub(super) fn own_name(scope: &Scope<'_>) -> Result<String, Error> {
    let blueprint = scope.input.blueprint;
    names::Naming {
        cluster: scope.cluster,
        topology: None,
        template: blueprint.class.spec.control_plane.naming.template.as_deref(),
        at: (&blueprint.class.name, "spec.controlPlane.naming.template"),
    }
    .name(&[&scope.seed, "control-plane"])
}

/// Names, decided before patches run because patches may use them.
pub(super) struct Names {
    object: String,
    machines: Option<String>,
    metadata: Metadata,
}

impl Names {
    pub(super) fn of(scope: &Scope<'_>, values: &Effective) -> Result<Self, Error> {
        let blueprint = scope.input.blueprint;
        let class = &blueprint.class.spec.control_plane;
        let referenced = text(scope.input.cluster, "/spec/controlPlaneRef/name");
        let object = if referenced.is_empty() {
            own_name(scope)?
        } else {
            referenced.to_owned()
        };
        let pointer = format!("/{}/name", machine_reference_path(blueprint.contract).join("/"));
        let machines = blueprint.control_plane_machines.as_deref().map(|template| {
            let current = scope.input.current.control_plane.as_deref();
            let named = current.map_or("", |c| text(c, &pointer));
            if named.is_empty() {
                let what = scope.inputs(template, values, &values.control_plane);
                names::simple(
                    &format!("{}-", scope.cluster),
                    &[&scope.seed, "control-plane-machines", &what],
                )
            } else {
                named.to_owned()
            }
        });
        let metadata = merged_metadata(&class.metadata, &scope.topology.control_plane.metadata);
        Ok(Self {
            object,
            machines,
            metadata,
        })
    }

    pub(super) fn push_items(
        &self,
        scope: &Scope<'_>,
        values: &Effective,
        step: &ControlPlaneStep,
        items: &mut Vec<Item>,
    ) {
        let blueprint = scope.input.blueprint;
        let class = &blueprint.class.spec.control_plane;
        let mut variables = values.control_plane.clone();
        let mut made = template::metadata_of_object(scope, &blueprint.control_plane, &self.metadata, None);
        let labels = string_map(&made, "/labels");
        let annotations = string_map(&made, "/annotations");
        let part = builtin::Part {
            version: &step.version,
            name: &self.object,
            replicas: scope.topology.control_plane.replicas,
            labels: Some(&labels),
            annotations: Some(&annotations),
        };
        variables.insert(
            BUILTIN.to_owned(),
            builtin::control_plane(&part, self.machines.as_deref()),
        );
        items.push(Item {
            place: Place::ControlPlane,
            holder: scope.held_by_cluster("spec.controlPlaneRef"),
            api_version: class.template_ref.api_version.clone(),
            template: template::to_patch(&blueprint.control_plane, &mut made, template::OF_OBJECT),
            variables: variables.clone(),
        });
        if let (Some(machines), Some(template)) = (&class.machine_infrastructure, &blueprint.control_plane_machines) {
            let mut metadata = template::metadata_of_copy(scope, template, None);
            items.push(Item {
                place: Place::ControlPlane,
                holder: scope.holder(
                    (
                        text(&blueprint.control_plane, "/apiVersion"),
                        template::kind_of_object(&blueprint.control_plane),
                    ),
                    &self.object,
                    &machine_reference_path(blueprint.contract).join("."),
                ),
                api_version: machines.template_ref.api_version.clone(),
                template: template::to_patch(template, &mut metadata, template::OF_COPY),
                variables,
            });
        }
    }

    pub(super) fn build(
        self,
        scope: &Scope<'_>,
        step: ControlPlaneStep,
        next: &mut impl FnMut() -> Value,
    ) -> Result<ControlPlane, Error> {
        let patched = next();
        let machines = self
            .machines
            .as_deref()
            .map(|name| template::copy_of(scope, next(), name, None));
        let object = self.object(scope, patched, machines.as_ref(), &step);
        let class = &scope.input.blueprint.class.spec.control_plane;
        let field = "spec.topology.controlPlane.healthCheck";
        let health_check = health_check::definition(
            class.health_check.as_ref(),
            scope.topology.control_plane.health_check.as_ref(),
            field,
            scope,
        )?;
        if health_check.is_some() && machines.is_none() {
            let message = "needs a control plane made of Machines: the ClusterClass sets no \
                           spec.controlPlane.machineInfrastructure";
            return Err(Error::new(&scope.object, field, message));
        }
        let selector = BTreeMap::from([(keys::OWNED, ""), (keys::CONTROL_PLANE, "")]);
        let health_check = health_check.map(|d| health_check::build(scope, &object["metadata"]["name"], d, &selector));
        Ok(ControlPlane {
            object,
            machines,
            health_check,
            step,
        })
    }

    fn object(&self, scope: &Scope<'_>, patched: Value, machines: Option<&Value>, step: &ControlPlaneStep) -> Value {
        let topology = &scope.topology.control_plane;
        let contract = scope.input.blueprint.contract;
        // Patches have seen the metadata of class and topology, and may have changed it.
        let mut object = template::object_from(scope, patched, &self.object, None);
        keep_unpatched(&scope.input.blueprint.control_plane, contract, &mut object);
        object["metadata"]["ownerReferences"] = json!([scope.owner(true)]);
        template::leave_endpoint(&mut object);
        // These are this controller's; what a template or a patch says about them does not count.
        for field in ["replicas", "version"] {
            set_or_remove(&mut object, &["spec", field], None);
        }
        put(&mut object, &["spec", "version"], Some(step.version.clone().into()));
        put(&mut object, &["spec", "replicas"], topology.replicas.map(Value::from));
        let after: &[&str] = match contract {
            Contract::V1Beta1 => &["spec", "rolloutAfter"],
            Contract::V1Beta2 => &["spec", "rollout", "after"],
        };
        put(&mut object, after, topology.rollout.get("after").cloned());
        machine_fields(scope, &mut object);
        let Some(machines) = machines else { return object };

        let at = "/spec/template/spec/machineTemplate/metadata";
        let template = &scope.input.blueprint.control_plane;
        let mut labels = string_map(template, &format!("{at}/labels"));
        labels.extend(self.metadata.labels.clone());
        labels.extend(scope.labels(None));
        let mut annotations = string_map(template, &format!("{at}/annotations"));
        annotations.extend(self.metadata.annotations.clone());
        let metadata = metadata_json(&labels, &annotations);
        set_or_remove(&mut object, &["spec", "machineTemplate", "metadata"], Some(metadata));

        let reference = match contract {
            Contract::V1Beta1 => json!({
                "apiVersion": reference_version(scope.input.current.control_plane.as_deref(), machines),
                "kind": machines["kind"],
                "name": machines["metadata"]["name"],
                "namespace": scope.namespace,
            }),
            Contract::V1Beta2 => template::reference(machines),
        };
        set_or_remove(&mut object, machine_reference_path(contract), Some(reference));
        object
    }
}

/// The apiVersion of the reference to the machine template. That of a reference to the same kind stays: the provider's controllers, or a
/// conversion, may have brought it to a newer version than the class has.
fn reference_version(current: Option<&Value>, machines: &Value) -> Value {
    let group = |api_version: &str| api_version.split_once('/').map(|(group, _)| group.to_owned());
    let wanted = &machines["apiVersion"];
    let pointer = format!("/{}", machine_reference_path(Contract::V1Beta1).join("/"));
    let referenced = current.and_then(|object| object.pointer(&pointer));
    let same = referenced.filter(|reference| {
        reference["kind"] == machines["kind"]
            && group(text(reference, "/apiVersion")) == group(wanted.as_str().unwrap_or_default())
    });
    same.map_or_else(|| wanted.clone(), |reference| reference["apiVersion"].clone())
}

/// Takes back what patches have made of fields that belong to this controller: the template's own values stay.
fn keep_unpatched(template: &Value, contract: Contract, object: &mut Value) {
    const MACHINES: [&str; 2] = ["spec", "machineTemplate"];
    let newer: &[&[&str]] = &[
        &["metadata"],
        &["spec", "readinessGates"],
        &["spec", "taints"],
        &["spec", "deletion", "nodeDrainTimeoutSeconds"],
        &["spec", "deletion", "nodeVolumeDetachTimeoutSeconds"],
        &["spec", "deletion", "nodeDeletionTimeoutSeconds"],
    ];
    let older: &[&[&str]] = &[
        &["metadata"],
        &["readinessGates"],
        &["taints"],
        &["nodeDrainTimeout"],
        &["nodeVolumeDetachTimeout"],
        &["nodeDeletionTimeout"],
    ];
    let fields = match contract {
        Contract::V1Beta1 => older,
        Contract::V1Beta2 => newer,
    };
    for field in fields {
        let path = [&MACHINES[..], field].concat();
        if let Some(own) = template.pointer(&format!("/spec/template/{}", path.join("/"))) {
            set_or_remove(object, &path, Some(own.clone()));
        }
    }
}

/// The fields of Machines that class and topology set. The control plane template keeps its own where both say nothing.
fn machine_fields(scope: &Scope<'_>, object: &mut Value) {
    let class = &scope.input.blueprint.class.spec.control_plane;
    let topology = &scope.topology.control_plane;
    let contract = scope.input.blueprint.contract;
    let above: &[&str] = match contract {
        Contract::V1Beta1 => &["spec", "machineTemplate"],
        Contract::V1Beta2 => &["spec", "machineTemplate", "spec"],
    };
    let mut set = |field: &[&str], value: Option<&Value>| {
        put(object, &[above, field].concat(), value.cloned());
    };
    set(
        &["readinessGates"],
        topology.readiness_gates.as_ref().or(class.readiness_gates.as_ref()),
    );
    set(&["taints"], topology.taints.as_ref().or(class.taints.as_ref()));
    let deletion = overlaid(&class.deletion, &topology.deletion);
    for timeout in ["nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout"] {
        let field = format!("{timeout}Seconds");
        let seconds = deletion.get(&field);
        match contract {
            Contract::V1Beta2 => set(&["deletion", &field], seconds),
            Contract::V1Beta1 => {
                let nanos = seconds.and_then(Value::as_i64).map(|s| s.saturating_mul(1_000_000_000));
                let text = nanos.map(|nanos| Value::from(duration::format(nanos)));
                set(&[timeout], text.as_ref());
            }
        }
    }
}
