//! How lists of built-in kinds merge: what the published OpenAPI says in extensions that type-only schemas lack.

use serde_json::{Map, Value};

/// Lists that merge by a key in strategic merge patches; an empty key stands for scalars.
const MERGE_KEYS: [(&str, &str); 23] = [
    ("addresses", "type"),
    ("conditions", "type"),
    ("containers", "name"),
    ("env", "name"),
    ("ephemeralContainers", "name"),
    ("finalizers", ""),
    ("hostAliases", "ip"),
    ("hostIPs", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("matchConditions", "name"),
    ("ownerReferences", "uid"),
    ("podCIDRs", ""),
    ("podIPs", "ip"),
    ("resourceClaimStatuses", "name"),
    ("resourceClaims", "name"),
    ("secrets", "name"),
    ("topologySpreadConstraints", "topologyKey"),
    ("validations", "expression"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
    ("webhooks", "name"),
];

/// The merge key of a list by its field name; `Some("")` for lists of scalars that merge. `beside` tells which other
/// fields the object has.
pub(crate) fn merge_key(field: &str, items: &[Value], beside: impl Fn(&str) -> bool) -> Option<&'static str> {
    if field == "ports" {
        let has = |key: &str| items.iter().any(|item| item.get(key).is_some());
        return match (has("containerPort"), has("port")) {
            (true, _) => Some("containerPort"),
            (false, true) => Some("port"),
            _ => None,
        };
    }
    // Those of a ServiceAccount are replaced, those of a pod merge.
    if field == "imagePullSecrets" && !beside("containers") {
        return None;
    }
    MERGE_KEYS.iter().find(|(name, _)| *name == field).map(|(_, key)| *key)
}

/// List and map types for server-side apply: type, field, list type with keys (`map`), or `set`, or an atomic map.
const TYPES: &[(&str, &str, Kind)] = &[
    ("ConfigMapVolumeSource", "items", Kind::Atomic),
    ("Container", "env", Kind::Map(&["name"])),
    ("Container", "ports", Kind::Map(&["containerPort", "protocol"])),
    ("Container", "volumeDevices", Kind::Map(&["devicePath"])),
    ("Container", "volumeMounts", Kind::Map(&["mountPath"])),
    ("ContainerResizePolicy", "", Kind::Atomic),
    ("CronJobStatus", "active", Kind::Atomic),
    ("CustomResourceDefinitionStatus", "conditions", Kind::Map(&["type"])),
    ("DaemonSetStatus", "conditions", Kind::Map(&["type"])),
    ("DeploymentStatus", "conditions", Kind::Map(&["type"])),
    ("EphemeralContainer", "env", Kind::Map(&["name"])),
    ("EphemeralContainer", "ports", Kind::Map(&["containerPort", "protocol"])),
    ("EphemeralContainer", "volumeDevices", Kind::Map(&["devicePath"])),
    ("EphemeralContainer", "volumeMounts", Kind::Map(&["mountPath"])),
    ("JobStatus", "conditions", Kind::Atomic),
    ("LoadBalancerIngress", "ports", Kind::Atomic),
    ("MutatingWebhook", "matchConditions", Kind::Map(&["name"])),
    ("MutatingWebhookConfiguration", "webhooks", Kind::Map(&["name"])),
    ("NamespaceStatus", "conditions", Kind::Map(&["type"])),
    ("NodeSpec", "podCIDRs", Kind::Set),
    ("NodeStatus", "addresses", Kind::Map(&["type"])),
    ("NodeStatus", "conditions", Kind::Map(&["type"])),
    ("ObjectMeta", "finalizers", Kind::Set),
    ("ObjectMeta", "ownerReferences", Kind::Map(&["uid"])),
    ("PersistentVolumeClaimStatus", "conditions", Kind::Map(&["type"])),
    ("PodDisruptionBudgetStatus", "conditions", Kind::Map(&["type"])),
    ("PodSpec", "containers", Kind::Map(&["name"])),
    ("PodSpec", "ephemeralContainers", Kind::Map(&["name"])),
    ("PodSpec", "hostAliases", Kind::Map(&["ip"])),
    ("PodSpec", "imagePullSecrets", Kind::Map(&["name"])),
    ("PodSpec", "initContainers", Kind::Map(&["name"])),
    ("PodSpec", "resourceClaims", Kind::Map(&["name"])),
    ("PodSpec", "schedulingGates", Kind::Map(&["name"])),
    (
        "PodSpec",
        "topologySpreadConstraints",
        Kind::Map(&["topologyKey", "whenUnsatisfiable"]),
    ),
    ("PodSpec", "volumes", Kind::Map(&["name"])),
    ("PodStatus", "conditions", Kind::Map(&["type"])),
    ("PodStatus", "hostIPs", Kind::Atomic),
    ("PodStatus", "podIPs", Kind::Map(&["ip"])),
    ("PodStatus", "resourceClaimStatuses", Kind::Map(&["name"])),
    ("ReplicaSetStatus", "conditions", Kind::Map(&["type"])),
    ("ReplicationControllerStatus", "conditions", Kind::Map(&["type"])),
    ("ResourceRequirements", "claims", Kind::Map(&["name"])),
    ("ServiceAccount", "secrets", Kind::Map(&["name"])),
    ("ServiceSpec", "ports", Kind::Map(&["port", "protocol"])),
    ("ServiceStatus", "conditions", Kind::Map(&["type"])),
    ("StatefulSetStatus", "conditions", Kind::Map(&["type"])),
    ("ValidatingWebhook", "matchConditions", Kind::Map(&["name"])),
    ("ValidatingWebhookConfiguration", "webhooks", Kind::Map(&["name"])),
];

/// Types whose values are replaced as a whole.
const ATOMIC: [&str; 12] = [
    "ConfigMapKeySelector",
    "FieldSelectorRequirement",
    "LabelSelector",
    "LocalObjectReference",
    "NodeSelector",
    "NodeSelectorTerm",
    "ObjectFieldSelector",
    "ObjectReference",
    "OwnerReference",
    "ResourceFieldSelector",
    "SecretKeySelector",
    "TypedLocalObjectReference",
];

#[derive(Clone, Copy)]
enum Kind {
    Atomic,
    Set,
    Map(&'static [&'static str]),
}

/// Adds list and map types to the definitions of built-in kinds (an object from name, such as
/// `io.k8s.api.core.v1.PodSpec`, to schema), where they lack them.
pub fn annotate(definitions: &mut Value) {
    let Some(definitions) = definitions.as_object_mut() else {
        return;
    };
    for (name, schema) in definitions.iter_mut() {
        let short = name.rsplit('.').next().unwrap_or(name);
        if ATOMIC.contains(&short)
            && let Value::Object(map) = schema
        {
            map.entry("x-kubernetes-map-type").or_insert_with(|| "atomic".into());
        }
        let Some(Value::Object(properties)) = schema.get_mut("properties") else {
            continue;
        };
        for (_, field, kind) in TYPES.iter().filter(|(owner, _, _)| *owner == short) {
            if let Some(Value::Object(property)) = properties.get_mut(*field) {
                hint(property, *kind);
            }
        }
        if matches!(short, "ServicePort" | "ContainerPort")
            && let Some(Value::Object(property)) = properties.get_mut("protocol")
        {
            property.entry("default").or_insert_with(|| "TCP".into());
        }
    }
}

fn hint(property: &mut Map<String, Value>, kind: Kind) {
    if property.contains_key("x-kubernetes-list-type") {
        return;
    }
    match kind {
        Kind::Atomic => {
            property.insert("x-kubernetes-list-type".to_owned(), "atomic".into());
        }
        Kind::Set => {
            property.insert("x-kubernetes-list-type".to_owned(), "set".into());
        }
        Kind::Map(keys) => {
            property.insert("x-kubernetes-list-type".to_owned(), "map".into());
            property.insert(
                "x-kubernetes-list-map-keys".to_owned(),
                keys.iter().map(|key| Value::from(*key)).collect(),
            );
        }
    }
}
