//! The objects that the control plane asks for.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_api::kind::ApiKind as _;
use windlass_api::labels::CLUSTER_NAME;
use windlass_api::owner;
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlane;
use windlass_controller_runtime::{KeptMetadata, Seen};
use windlass_gotemplate as gotemplate;
use windlass_meta::KubernetesVersion;
use windlass_pki::rotation::SIGNING_CERTIFICATE;

use crate::facts::{ControlPlane, CpMachine, Facts};
use crate::names::{
    CLONED_FROM_GROUP_KIND, CLONED_FROM_NAME, CONTROL_PLANE_LABEL, CONTROL_PLANE_NAME_LABEL, MACHINE_FINALIZER,
    PRE_TERMINATE_HOOK, REMEDIATION_FOR, readiness_gates,
};

/// kubeadm's gate that is switched on by default for as long as kubeadm knows it.
const LOCAL_MODE: &str = "ControlPlaneKubeletLocalMode";
const DEFAULT_NAMING: &str = "{{ .kubeadmControlPlane.name }}-{{ .random }}";

/// Labels of Machines and of what belongs to them.
pub fn labels(facts: &Facts) -> BTreeMap<String, String> {
    let control_plane = &facts.control_plane;
    let mut labels = control_plane.machine_labels.clone();
    labels.insert(CLUSTER_NAME.to_owned(), facts.cluster.name.clone());
    labels.insert(CONTROL_PLANE_LABEL.to_owned(), String::new());
    labels.insert(
        CONTROL_PLANE_NAME_LABEL.to_owned(),
        windlass_meta::label_or_hash(&control_plane.name),
    );
    labels
}

/// An owner reference that makes the control plane the controller.
pub fn owner(control_plane: &ControlPlane) -> OwnerReference {
    owner::controller(
        KubeadmControlPlane::API_VERSION,
        KubeadmControlPlane::KIND,
        &control_plane.name,
        &control_plane.uid,
    )
}

/// The change that makes the control plane the controller of an object, in place of a controller that it has: references to earlier
/// control planes of the name go, other owners stay. It is refused when the object has changed meanwhile.
pub fn owned(control_plane: &ControlPlane, uid: &str, resource_version: &str, owners: &[OwnerReference]) -> Value {
    let ours = self::owner(control_plane);
    let stays = |old: &&OwnerReference| old.controller != Some(true) && !owner::is_same(old, &ours);
    let mut owners: Vec<&OwnerReference> = owners.iter().filter(stays).collect();
    owners.push(&ours);
    json!({ "metadata": { "uid": uid, "resourceVersion": resource_version, "ownerReferences": owners } })
}

/// The name of the next Machine.
pub fn machine_name(facts: &Facts) -> Result<String, String> {
    const LONGEST: usize = 63;
    let control_plane = &facts.control_plane;
    let template = control_plane.naming_template.as_deref().unwrap_or(DEFAULT_NAMING);
    let field = "spec.machineNaming.template";
    if !template.contains("{{ .random }}") {
        return Err(format!(
            "KubeadmControlPlane {}: {field} must contain {{{{ .random }}}}",
            control_plane.name
        ));
    }
    let data = json!({
        "cluster": { "name": facts.cluster.name },
        "kubeadmControlPlane": { "name": control_plane.name },
        "random": facts.suffix,
    });
    let mut name = gotemplate::render_strict(template, &data)
        .map_err(|e| format!("KubeadmControlPlane {}: {field}: {e}", control_plane.name))?;
    if name.len() > LONGEST {
        let kept = LONGEST - facts.suffix.len();
        let cut = (0..=kept).rev().find(|at| name.is_char_boundary(*at));
        name.truncate(cut.unwrap_or_default());
        name.push_str(&facts.suffix);
    }
    Ok(name)
}

/// The Machine as this controller applies it: a new one, or an existing one changed in place.
pub fn machine(facts: &Facts, name: &str, existing: Option<&CpMachine>, domain: Option<&str>) -> Value {
    let control_plane = &facts.control_plane;
    let mut annotations = control_plane.machine_annotations.clone();
    annotations.insert(PRE_TERMINATE_HOOK.to_owned(), String::new());
    let remediation = match existing {
        Some(machine) => machine.annotations.get(REMEDIATION_FOR),
        None => facts.remediation(),
    };
    if let Some(data) = remediation {
        annotations.insert(REMEDIATION_FOR.to_owned(), data.clone());
    }
    let mut metadata = json!({
        "name": name,
        "namespace": control_plane.namespace,
        "labels": labels(facts),
        "annotations": annotations,
        "ownerReferences": [owner(control_plane)],
    });
    // A new Machine starts with its finalizer, which saves its own controller a write. Later it is applied only while
    // it is there: its owner takes it off.
    if existing.is_none_or(|m| m.has_finalizer) {
        metadata["finalizers"] = json!([MACHINE_FINALIZER]);
    }
    if let Some(machine) = existing {
        metadata["uid"] = json!(machine.uid);
    }
    let gates = readiness_gates(control_plane.managed_etcd);
    let mut readiness: Vec<Value> = gates.iter().map(|g| json!({ "conditionType": g })).collect();
    for gate in &control_plane.readiness_gates {
        if !readiness
            .iter()
            .any(|known| known["conditionType"] == gate["conditionType"])
        {
            readiness.push(gate.clone());
        }
    }
    let mut spec = json!({
        "clusterName": facts.cluster.name,
        "version": existing.map_or(&control_plane.version, |m| &m.version),
        "readinessGates": readiness,
        "bootstrap": { "configRef": config_ref(name) },
        "infrastructureRef": infra_ref(control_plane, name),
    });
    if let Some(machine) = existing {
        spec["bootstrap"]["configRef"] = machine.config_ref.clone();
        spec["infrastructureRef"] = machine.infra_ref.clone();
    }
    if let Some(domain) = existing.map_or(domain, |m| m.failure_domain.as_deref()) {
        spec["failureDomain"] = json!(domain);
    }
    let deletion = &control_plane.deletion;
    if deletion.as_object().is_some_and(|d| !d.is_empty()) {
        spec["deletion"] = deletion.clone();
    }
    if control_plane.taints.as_array().is_some_and(|t| !t.is_empty()) {
        spec["taints"] = control_plane.taints.clone();
    }
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": metadata,
        "spec": spec,
    })
}

/// An existing Machine with everything that an update in place changes.
pub fn updated_machine(facts: &Facts, existing: &CpMachine) -> Value {
    let mut updated = machine(facts, &existing.name, Some(existing), None);
    updated["spec"]["version"] = json!(facts.control_plane.version);
    updated
}

/// Timeouts of deletion, with the default that admission sets.
fn completed(deletion: &Value) -> Value {
    const DEFAULT_NODE_DELETION_SECONDS: i32 = 10;
    let mut deletion = deletion.as_object().cloned().unwrap_or_default();
    deletion
        .entry("nodeDeletionTimeoutSeconds")
        .or_insert(json!(DEFAULT_NODE_DELETION_SECONDS));
    Value::Object(deletion)
}

fn config_ref(name: &str) -> Value {
    json!({ "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name })
}

fn infra_ref(control_plane: &ControlPlane, name: &str) -> Value {
    let template = &control_plane.template;
    let kind = template.kind.strip_suffix("Template");
    json!({
        "apiGroup": template.group,
        "kind": kind.unwrap_or(&template.kind),
        "name": name,
    })
}

/// The timeouts that a deleting Machine still has to learn of; none when it knows them.
pub fn late_changes(control_plane: &ControlPlane, machine: &CpMachine) -> Option<Value> {
    let deletion = completed(&control_plane.deletion);
    let taints = &control_plane.taints;
    let same = deletion == completed(&machine.deletion) && list(taints) == list(&machine.taints);
    (!same).then(|| {
        // A merge patch takes away what is `null`, and leaves what it does not name.
        let limit = |field: &str| deletion[field].clone();
        let limits = json!({
            "nodeDrainTimeoutSeconds": limit("nodeDrainTimeoutSeconds"),
            "nodeVolumeDetachTimeoutSeconds": limit("nodeVolumeDetachTimeoutSeconds"),
            "nodeDeletionTimeoutSeconds": limit("nodeDeletionTimeoutSeconds"),
        });
        json!({ "spec": { "deletion": limits, "taints": taints } })
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The specification of the KubeadmConfig of a Machine that joins, or of the first one.
pub fn kubeadm_spec(control_plane: &ControlPlane, join: bool) -> Value {
    let mut spec = match &control_plane.kubeadm {
        Value::Object(spec) => spec.clone(),
        _ => Map::new(),
    };
    if join {
        spec.remove("initConfiguration");
        let joining = spec.entry("joinConfiguration").or_insert(json!({}));
        if !joining["controlPlane"].is_object() {
            joining["controlPlane"] = json!({});
        }
    } else {
        spec.remove("joinConfiguration");
    }
    if has_local_mode(&control_plane.version) {
        let cluster = spec.entry("clusterConfiguration").or_insert(json!({}));
        if !cluster["featureGates"].is_object() {
            cluster["featureGates"] = json!({});
        }
        if cluster["featureGates"][LOCAL_MODE].is_null() {
            cluster["featureGates"][LOCAL_MODE] = json!(true);
        }
    }
    Value::Object(spec)
}

/// Has controller managers sign with the file of the signing certificate alone: they read no bundle there.
pub fn sign_alone(configuration: &mut Value) {
    const ARGUMENT: &str = "cluster-signing-cert-file";
    if !configuration.is_object() {
        *configuration = json!({});
    }
    let folder = configuration["certificatesDir"]
        .as_str()
        .filter(|folder| !folder.is_empty());
    let folder = folder.unwrap_or("/etc/kubernetes/pki").trim_end_matches('/');
    let bundle = format!("{folder}/ca.crt");
    let argument = json!({ "name": ARGUMENT, "value": format!("{folder}/{SIGNING_CERTIFICATE}") });
    if !configuration["controllerManager"].is_object() {
        configuration["controllerManager"] = json!({});
    }
    match &mut configuration["controllerManager"]["extraArgs"] {
        Value::Array(all) => {
            // The bundle is no file to sign with. A user may have controller managers sign with another authority.
            all.retain(|known| known["name"] != ARGUMENT || known["value"] != bundle);
            if all.iter().all(|known| known["name"] != ARGUMENT) {
                all.push(argument);
            }
        }
        absent => *absent = json!([argument]),
    }
}

/// Whether kubelets of control plane machines talk to the API server of their own machine alone.
pub fn has_local_kubelets(control_plane: &ControlPlane) -> bool {
    let gate = &control_plane.kubeadm["clusterConfiguration"]["featureGates"][LOCAL_MODE];
    let version = KubernetesVersion::parse_tolerant(&control_plane.version);
    version.is_ok_and(|version| {
        version.at_least_minor(1, 36) || has_local_mode(&control_plane.version) && *gate != Value::Bool(false)
    })
}

fn has_local_mode(version: &str) -> bool {
    KubernetesVersion::parse_tolerant(version).is_ok_and(|v| v.at_least_minor(1, 31) && !v.at_least_minor(1, 36))
}

/// The owner reference of what belongs to a Machine.
pub fn machine_owner(name: &str, uid: &str) -> OwnerReference {
    owner::controller(Machine::API_VERSION, Machine::KIND, name, uid)
}

/// A KubeadmConfig without its owner, a Machine that may not exist yet.
pub fn kubeadm_config(facts: &Facts, name: &str, join: bool) -> Value {
    let kept = kept(facts);
    let mut metadata = json!({
        "name": name,
        "namespace": facts.control_plane.namespace,
        "labels": kept.labels,
    });
    if !kept.annotations.is_empty() {
        metadata["annotations"] = json!(kept.annotations);
    }
    let mut config = json!({
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmConfig",
        "metadata": metadata,
    });
    let spec = kubeadm_spec(&facts.control_plane, join);
    // The schema refuses an empty spec; none means the same.
    if spec.as_object().is_some_and(|spec| !spec.is_empty()) {
        config["spec"] = spec;
    }
    config
}

/// An infrastructure machine made from the template, without its owner.
pub fn infra_machine(facts: &Facts, name: &str) -> Result<Value, String> {
    let reference = &facts.control_plane.template;
    let what = format!(
        "{} {}/{}",
        reference.kind, facts.control_plane.namespace, reference.name
    );
    let template = match &facts.template {
        Seen::Found(template) => template,
        Seen::NotFound => return Err(format!("{what} does not exist")),
        Seen::Failed(error) => return Err(format!("{what} cannot be read: {error}")),
    };
    let inner = &template["spec"]["template"];
    if !inner["spec"].is_object() {
        return Err(format!("{what} has no spec.template.spec"));
    }
    let kind = reference.kind.strip_suffix("Template");
    let mut metadata = template_metadata(facts, template);
    metadata["name"] = json!(name);
    metadata["namespace"] = json!(facts.control_plane.namespace);
    Ok(json!({
        "apiVersion": template["apiVersion"],
        "kind": kind.unwrap_or(&reference.kind),
        "metadata": metadata,
        "spec": inner["spec"],
    }))
}

/// The infrastructure template with the Cluster as an owner. The template is no dependent that could hold up the Cluster's deletion.
pub fn owned_template(facts: &Facts, template: &Value) -> Value {
    let metadata = &template["metadata"];
    let (kind, name) = (Cluster::KIND, facts.cluster.name.as_str());
    // Several control planes may use one template with the same field manager: the apply repeats the other Clusters.
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let others = owners.filter(|owner| owner["kind"] == kind && owner["name"] != name);
    let own = json!(owner::reference(Cluster::API_VERSION, kind, name, &facts.cluster.uid));
    let clusters: Vec<Value> = others.cloned().chain([own]).collect();
    json!({
        "apiVersion": template["apiVersion"],
        "kind": template["kind"],
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "ownerReferences": clusters,
        },
    })
}

/// Labels and annotations of KubeadmConfigs and infrastructure machines.
pub fn kept(facts: &Facts) -> KeptMetadata {
    KeptMetadata {
        labels: labels(facts),
        annotations: facts.control_plane.machine_annotations.clone(),
    }
}

/// Labels and annotations of a new infrastructure machine: of its template, and ours over them.
fn template_metadata(facts: &Facts, template: &Value) -> Value {
    let of_template = &template["spec"]["template"]["metadata"];
    let merged = |field: &str, ours: BTreeMap<String, String>| {
        let mut all = match &of_template[field] {
            Value::Object(all) => all.clone(),
            _ => Map::new(),
        };
        all.extend(ours.into_iter().map(|(key, value)| (key, json!(value))));
        all
    };
    let kept = kept(facts);
    let reference = &facts.control_plane.template;
    let mut annotations = merged("annotations", kept.annotations);
    annotations.insert(CLONED_FROM_NAME.to_owned(), json!(reference.name));
    annotations.insert(CLONED_FROM_GROUP_KIND.to_owned(), json!(reference.group_kind()));
    json!({ "labels": merged("labels", kept.labels), "annotations": annotations })
}
