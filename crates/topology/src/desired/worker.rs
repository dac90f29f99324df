//! One MachineDeployment, its templates and its health check.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Member, Scope, Worker, health_check, merged_metadata, metadata_json, overlaid, put, template};
use crate::blueprint::WorkerTemplates;
use crate::error::Error;
use crate::model::{MachineDeploymentClass, MachineDeploymentTopology, Metadata, text};
use crate::patches::{Item, Place};
use crate::upgrade::WorkerStep;
use crate::variables::check::Effective;
use crate::variables::{BUILTIN, Values, builtin};
use crate::{keys, names};

/// Where MachineDeployments and MachinePools refer to what is made from templates.
pub(super) const BOOTSTRAP_FIELD: &str = "spec.template.spec.bootstrap.configRef";
pub(super) const INFRASTRUCTURE_FIELD: &str = "spec.template.spec.infrastructureRef";

/// Names, decided before patches run because patches may use them.
pub(super) struct Names<'a> {
    entry: &'a MachineDeploymentTopology,
    class: &'a MachineDeploymentClass,
    templates: &'a WorkerTemplates,
    object: String,
    bootstrap: String,
    infrastructure: String,
    metadata: Metadata,
    step: WorkerStep,
    at: String,
}

impl<'a> Names<'a> {
    pub(super) fn of(
        scope: &Scope<'a>,
        entry: &'a MachineDeploymentTopology,
        step: WorkerStep,
        values: &Effective,
    ) -> Result<Self, Error> {
        let blueprint = scope.input.blueprint;
        let entries = &scope.topology.workers.machine_deployments;
        let index = entries.iter().position(|e| e.name == entry.name).unwrap_or_default();
        let at = format!("spec.topology.workers.machineDeployments[{index}]");
        let classes = &blueprint.class.spec.workers.machine_deployments;
        let class_index = classes.iter().position(|c| c.class == entry.class);
        let found = class_index.and_then(|index| {
            let class = &classes[index];
            blueprint
                .machine_deployments
                .get(&class.class)
                .map(|t| (index, class, t))
        });
        let Some((class_index, class, templates)) = found else {
            let message = format!(
                "MachineDeployment class {:?} does not exist in {}",
                entry.class, blueprint.class.name
            );
            return Err(Error::new(&scope.object, format!("{at}.class"), message));
        };
        let current = scope.input.current.machine_deployments.get(&entry.name);
        let object = match current {
            Some(set) => text(&set.object, "/metadata/name").to_owned(),
            None => names::Naming {
                cluster: scope.cluster,
                topology: Some(("machineDeployment", &entry.name)),
                template: class.naming.template.as_deref(),
                at: (
                    &blueprint.class.name,
                    &format!("spec.workers.machineDeployments[{class_index}].naming.template"),
                ),
            }
            .name(&[&scope.seed, "machine-deployment", &entry.name])?,
        };
        let overrides = values.worker(&entry.name);
        let name = |place: &str, pointer: &str, template: &Value| {
            let named = current.map_or("", |set| text(&set.object, pointer));
            if !named.is_empty() {
                return named.to_owned();
            }
            let what = scope.inputs(template, values, overrides);
            let base = format!("{}-{}-", scope.cluster, entry.name);
            names::simple(&base, &[&scope.seed, place, &entry.name, &what])
        };
        let bootstrap = "/spec/template/spec/bootstrap/configRef/name";
        let machines = "/spec/template/spec/infrastructureRef/name";
        Ok(Self {
            object,
            bootstrap: name("bootstrap", bootstrap, &templates.bootstrap),
            infrastructure: name("machines", machines, &templates.infrastructure),
            metadata: merged_metadata(&class.metadata, &entry.metadata),
            entry,
            class,
            templates,
            step,
            at,
        })
    }

    fn member(&self) -> Member<'a> {
        Member::of_deployment(&self.entry.name)
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
        let mut variables = values.worker(&self.entry.name).clone();
        let facts = builtin::worker(
            "machineDeployment",
            &part,
            &self.entry.class,
            &self.entry.name,
            &self.bootstrap,
            &self.infrastructure,
        );
        variables.insert(BUILTIN.to_owned(), facts);
        let mut push = |reference: &str, template: &Value, field: &str| {
            let mut metadata = template::metadata_of_copy(scope, template, Some(self.member()));
            items.push(Item {
                place: Place::MachineDeployment {
                    class: self.entry.class.clone(),
                },
                holder: scope.holder((keys::CORE_API_VERSION, "MachineDeployment"), &self.object, field),
                api_version: reference.to_owned(),
                template: template::to_patch(template, &mut metadata, template::OF_COPY),
                variables: variables.clone(),
            });
        };
        push(
            &self.class.bootstrap.template_ref.api_version,
            &self.templates.bootstrap,
            BOOTSTRAP_FIELD,
        );
        push(
            &self.class.infrastructure.template_ref.api_version,
            &self.templates.infrastructure,
            INFRASTRUCTURE_FIELD,
        );
    }

    pub(super) fn build(self, scope: &Scope<'_>, next: &mut impl FnMut() -> Value) -> Result<Worker, Error> {
        let member = Some(self.member());
        let bootstrap = template::copy_of(scope, next(), &self.bootstrap, member);
        let infrastructure = template::copy_of(scope, next(), &self.infrastructure, member);
        let field = format!("{}.healthCheck", self.at);
        let definition = health_check::definition(
            self.class.health_check.as_ref(),
            self.entry.health_check.as_ref(),
            &field,
            scope,
        )?;
        // Remediation by the MachineDeployment does not depend on a health check of this Cluster.
        let max_in_flight = [&self.entry.health_check, &self.class.health_check]
            .into_iter()
            .flatten()
            .find_map(|check| check.get("remediation")?.get("maxInFlight"));
        let object = self.object(scope, &bootstrap, &infrastructure, max_in_flight);
        let selector = BTreeMap::from([(keys::OWNED, ""), (keys::DEPLOYMENT_NAME, self.entry.name.as_str())]);
        let health_check = definition.map(|d| health_check::build(scope, &object["metadata"]["name"], d, &selector));
        Ok(Worker {
            name: self.entry.name.clone(),
            class: self.entry.class.clone(),
            object,
            bootstrap,
            infrastructure,
            health_check,
            step: self.step,
        })
    }

    /// A new one starts with the finalizers that its controllers would add, which saves them a write each. Later they are
    /// applied only while they are there: their controllers take them off.
    fn finalizers(&self, scope: &Scope<'_>) -> Vec<&'static str> {
        let current = scope.input.current.machine_deployments.get(&self.entry.name);
        let present = |finalizer: &str| {
            current.is_none_or(|set| {
                let all = set.object["metadata"]["finalizers"].as_array();
                all.is_some_and(|all| all.iter().any(|f| f == finalizer))
            })
        };
        keys::MACHINE_DEPLOYMENT_FINALIZERS
            .into_iter()
            .filter(|finalizer| present(finalizer))
            .collect()
    }

    fn object(
        &self,
        scope: &Scope<'_>,
        bootstrap: &Value,
        infrastructure: &Value,
        max_in_flight: Option<&Value>,
    ) -> Value {
        let (class, entry) = (&self.class.common, &self.entry.common);
        let system = scope.labels(Some(self.member()));
        let mut labels = self.metadata.labels.clone();
        labels.extend(system.clone());
        let metadata = metadata_json(&labels, &self.metadata.annotations);
        let mut own = metadata.clone();
        own["name"] = self.object.as_str().into();
        own["namespace"] = scope.namespace.into();
        own["ownerReferences"] = json!([scope.owner(false)]);
        let finalizers = self.finalizers(scope);
        if !finalizers.is_empty() {
            own["finalizers"] = json!(finalizers);
        }
        let mut object = json!({
            "apiVersion": keys::CORE_API_VERSION,
            "kind": "MachineDeployment",
            "metadata": own,
            "spec": {
                "clusterName": scope.cluster,
                "selector": {"matchLabels": system},
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
        let mut deletion = overlaid(&class.deletion, &entry.deletion);
        let order = deletion.remove("order");
        let machine = ["spec", "template", "spec"];
        let mut set = |above: &[&str], field: &str, value: Option<Value>| {
            let mut path = above.to_vec();
            path.push(field);
            put(&mut object, &path, value);
        };
        set(&["spec"], "replicas", self.entry.replicas.map(Value::from));
        set(
            &["spec"],
            "rollout",
            Some(overlaid(&class.rollout, &entry.rollout).into()),
        );
        set(&["spec", "deletion"], "order", order);
        set(&["spec", "remediation"], "maxInFlight", max_in_flight.cloned());
        let domain = entry.failure_domain.as_ref().or(class.failure_domain.as_ref());
        set(&machine, "failureDomain", domain.cloned().map(Value::from));
        set(&machine, "deletion", Some(deletion.into()));
        set(
            &machine,
            "minReadySeconds",
            entry.min_ready_seconds.or(class.min_ready_seconds).map(Value::from),
        );
        let gates = entry.readiness_gates.as_ref().or(class.readiness_gates.as_ref());
        set(&machine, "readinessGates", gates.cloned());
        set(
            &machine,
            "taints",
            entry.taints.as_ref().or(class.taints.as_ref()).cloned(),
        );
        object
    }
}

impl Scope<'_> {
    /// Stands for everything that decides what a new copy of a template holds.
    pub(super) fn inputs(&self, template: &Value, values: &Effective, overrides: &Values) -> String {
        names::fingerprint(&json!([
            template["metadata"]["name"],
            template["spec"],
            values.global,
            overrides,
            self.input.blueprint.class.patches_fingerprint,
        ]))
    }
}
