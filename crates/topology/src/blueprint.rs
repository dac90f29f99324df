//! A ClusterClass together with the templates it names.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::error::{Error, describe};
use crate::model::{ClassSpec, TemplateRef, Templated, VariableStatus, name_of, read, text};
use crate::variables::known::{Compiled, known};

/// Which contract a control plane provider follows; decides where its machine fields stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Contract {
    /// Machine fields directly under `spec.machineTemplate`.
    V1Beta1,
    /// Machine fields under `spec.machineTemplate.spec`.
    #[default]
    V1Beta2,
}

/// One use of a template by a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference<'a> {
    /// The field of the class that holds it.
    pub field: String,
    /// The template.
    pub template: &'a TemplateRef,
}

/// All template references of a class, in the order of its fields.
pub fn references(class: &ClassSpec) -> Vec<Reference<'_>> {
    let mut out = vec![
        Reference {
            field: "spec.infrastructure.templateRef".into(),
            template: &class.infrastructure.template_ref,
        },
        Reference {
            field: "spec.controlPlane.templateRef".into(),
            template: &class.control_plane.template_ref,
        },
    ];
    if let Some(machines) = &class.control_plane.machine_infrastructure {
        out.push(Reference {
            field: "spec.controlPlane.machineInfrastructure.templateRef".into(),
            template: &machines.template_ref,
        });
    }
    for (index, worker) in class.workers.machine_deployments.iter().enumerate() {
        let at = format!("spec.workers.machineDeployments[{index}]");
        push_worker(
            &mut out,
            &at,
            &worker.bootstrap.template_ref,
            &worker.infrastructure.template_ref,
        );
    }
    for (index, pool) in class.workers.machine_pools.iter().enumerate() {
        let at = format!("spec.workers.machinePools[{index}]");
        push_worker(
            &mut out,
            &at,
            &pool.bootstrap.template_ref,
            &pool.infrastructure.template_ref,
        );
    }
    out
}

fn push_worker<'a>(
    out: &mut Vec<Reference<'a>>,
    at: &str,
    bootstrap: &'a TemplateRef,
    infrastructure: &'a TemplateRef,
) {
    let field = format!("{at}.bootstrap.templateRef");
    out.push(Reference {
        field,
        template: bootstrap,
    });
    let field = format!("{at}.infrastructure.templateRef");
    out.push(Reference {
        field,
        template: infrastructure,
    });
}

/// The templates of one worker class.
#[derive(Debug, Clone)]
pub struct WorkerTemplates {
    /// Bootstrap template.
    pub bootstrap: Arc<Value>,
    /// Template of Machines, or of the machine pool.
    pub infrastructure: Arc<Value>,
}

/// A class as all its Clusters use it: read once, with its variables ready to check values.
#[derive(Debug)]
pub struct Class {
    /// `ClusterClass namespace/name`, for errors.
    pub name: String,
    /// Its specification.
    pub spec: ClassSpec,
    /// The variables it defines, as its controller found them.
    pub variables: Vec<VariableStatus>,
    /// Their schemas, compiled; or what is wrong with them.
    pub definitions: Compiled,
    /// Stands for the patches, in names.
    pub(crate) patches_fingerprint: String,
    /// Stands for the class and the definitions of its variables.
    pub(crate) fingerprint: String,
}

impl Class {
    /// Whether another reading is of the same contents.
    pub fn is_like(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }

    /// Reads a class. The error says which part cannot be read.
    pub fn read(class: &Value) -> Result<Self, Error> {
        let name = name_of(class);
        let spec: ClassSpec = read(class, "/spec")?;
        let variables: Vec<VariableStatus> = read(class, "/status/variables")?;
        let parts = [class.get("spec"), class.pointer("/status/variables")];
        let patches = class.pointer("/spec/patches").unwrap_or(&Value::Null);
        Ok(Self {
            definitions: known(&variables),
            patches_fingerprint: crate::names::fingerprint(patches),
            fingerprint: crate::names::fingerprint(&serde_json::json!(parts)),
            name,
            spec,
            variables,
        })
    }
}

/// Everything a topology is generated from, besides the Cluster itself.
#[derive(Debug, Clone)]
pub struct Blueprint {
    /// The class.
    pub class: Arc<Class>,
    /// The infrastructure cluster template.
    pub infrastructure_cluster: Arc<Value>,
    /// The control plane template.
    pub control_plane: Arc<Value>,
    /// The control plane's machine template.
    pub control_plane_machines: Option<Arc<Value>>,
    /// Templates by MachineDeployment class.
    pub machine_deployments: BTreeMap<String, WorkerTemplates>,
    /// Templates by MachinePool class.
    pub machine_pools: BTreeMap<String, WorkerTemplates>,
    /// The contract of the control plane provider.
    pub contract: Contract,
}

impl Blueprint {
    /// Puts a class and its templates together; `template` answers with the object, or with why it cannot be had.
    pub fn new(
        class: &Arc<Class>,
        contract: Contract,
        template: impl Fn(&TemplateRef) -> Result<Arc<Value>, String>,
    ) -> Result<Self, Error> {
        let (class_name, spec) = (&class.name, &class.spec);
        let get = |field: &str, reference: &TemplateRef| {
            let kind = reference.kind.strip_suffix("Template").unwrap_or_default();
            if kind.is_empty() {
                let message = format!("kind must be of the form <Name>Template, not {:?}", reference.kind);
                return Err(Error::new(class_name, field, message));
            }
            let found = template(reference).map_err(|why| Error::new(class_name, field, why))?;
            if found.pointer("/spec/template").is_none_or(|t| !t.is_object()) {
                let namespace = text(&found, "/metadata/namespace");
                let object = describe(&reference.kind, namespace, &reference.name);
                return Err(Error::new(
                    object,
                    "spec.template",
                    "is missing; a template must have one",
                ));
            }
            Ok(found)
        };
        let infrastructure_cluster = get("spec.infrastructure.templateRef", &spec.infrastructure.template_ref)?;
        let control_plane = get("spec.controlPlane.templateRef", &spec.control_plane.template_ref)?;
        let control_plane_machines = spec
            .control_plane
            .machine_infrastructure
            .as_ref()
            .map(|m| get("spec.controlPlane.machineInfrastructure.templateRef", &m.template_ref))
            .transpose()?;
        let templates = |at: &str, bootstrap: &Templated, infrastructure: &Templated| {
            Ok::<_, Error>(WorkerTemplates {
                bootstrap: get(&format!("{at}.bootstrap.templateRef"), &bootstrap.template_ref)?,
                infrastructure: get(
                    &format!("{at}.infrastructure.templateRef"),
                    &infrastructure.template_ref,
                )?,
            })
        };
        let mut machine_deployments = BTreeMap::new();
        for (index, worker) in spec.workers.machine_deployments.iter().enumerate() {
            let at = format!("spec.workers.machineDeployments[{index}]");
            let found = templates(&at, &worker.bootstrap, &worker.infrastructure)?;
            machine_deployments.insert(worker.class.clone(), found);
        }
        let mut machine_pools = BTreeMap::new();
        for (index, pool) in spec.workers.machine_pools.iter().enumerate() {
            let at = format!("spec.workers.machinePools[{index}]");
            let found = templates(&at, &pool.bootstrap, &pool.infrastructure)?;
            machine_pools.insert(pool.class.clone(), found);
        }
        Ok(Self {
            class: class.clone(),
            infrastructure_cluster,
            control_plane,
            control_plane_machines,
            machine_deployments,
            machine_pools,
            contract,
        })
    }
}
