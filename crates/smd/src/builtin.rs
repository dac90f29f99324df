//! Merge rules of lists of built-in kinds without a schema.

use serde_json::Value;

/// Lists that merge by a key in strategic merge patches; an empty key means scalars.
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

/// The merge key of a list by its field name; `Some("")` for lists of scalars that merge. `beside` returns whether the object has
/// another field.
pub(crate) fn merge_key(field: &str, items: &[Value], beside: impl Fn(&str) -> bool) -> Option<&'static str> {
    if field == "ports" {
        let has = |key: &str| items.iter().any(|item| item.get(key).is_some());
        return match (has("containerPort"), has("port")) {
            (true, _) => Some("containerPort"),
            (false, true) => Some("port"),
            _ => None,
        };
    }
    // Those of a ServiceAccount are replaced, and those of a pod merge.
    if field == "imagePullSecrets" && !beside("containers") {
        return None;
    }
    MERGE_KEYS.iter().find(|(name, _)| *name == field).map(|(_, key)| *key)
}
