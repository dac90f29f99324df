//! Table cells of the core kinds and of events.

use serde_json::{Map, Value};
use windlass_objects::metadata::{is_deleting, meta, text as field};

use super::text::{
    self, access_modes, age, containers, endpoints, external_addresses, images, involved, last_seen, node_roles,
    node_status, or, pairs, service_ports, string,
};
use super::{NONE, UNKNOWN, UNSET};

/// The cells of a Namespace.
pub(crate) fn namespace(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let s = |p: &str| string(o, p);
    let old = age(o, now);
    vec![s("/status/phase").into(), old]
}

/// The cells of a Secret.
pub(crate) fn secret(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let s = |p: &str| string(o, p);
    let old = age(o, now);
    let size = |p: &str| o.pointer(p).and_then(Value::as_object).map_or(0, Map::len);
    vec![s("/type").into(), size("/data").into(), old]
}

/// The cells of a ConfigMap.
pub(crate) fn config_map(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let size = |p: &str| o.pointer(p).and_then(Value::as_object).map_or(0, Map::len);
    vec![(size("/data") + size("/binaryData")).into(), old]
}

/// The cells of a ServiceAccount.
pub(crate) fn service_account(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    vec![old]
}

/// The cells of a Node.
pub(crate) fn node(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let s = |p: &str| string(o, p);
    let old = age(o, now);
    let info = |key: &str| or(s(&format!("/status/nodeInfo/{key}")), UNKNOWN);
    vec![
        node_status(o).into(),
        or(&node_roles(o), NONE),
        old,
        s("/status/nodeInfo/kubeletVersion").into(),
        or(text::address(o, "InternalIP"), NONE),
        or(text::address(o, "ExternalIP"), NONE),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

/// The cells of a Service.
pub(crate) fn service(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let s = |p: &str| string(o, p);
    let old = age(o, now);
    vec![
        s("/spec/type").into(),
        or(s("/spec/clusterIP"), NONE),
        or(&external_addresses(o), NONE),
        or(&service_ports(o), NONE),
        old,
        or(&pairs(o.pointer("/spec/selector")), NONE),
    ]
}

/// The cells of an Endpoints.
pub(crate) fn endpoints_cells(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    vec![or(&endpoints(o), NONE), old]
}

/// The cells of a PersistentVolume.
pub(crate) fn persistent_volume(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let s = |p: &str| string(o, p);
    let old = age(o, now);
    let claim = o.pointer("/spec/claimRef");
    let claim = claim.map(|c| format!("{}/{}", field(c, "namespace"), field(c, "name")));
    vec![
        s("/spec/capacity/storage").into(),
        access_modes(o, "/spec/accessModes").into(),
        s("/spec/persistentVolumeReclaimPolicy").into(),
        phase(o).into(),
        claim.unwrap_or_default().into(),
        s("/spec/storageClassName").into(),
        or(s("/spec/volumeAttributesClassName"), UNSET),
        s("/status/reason").into(),
        old,
        or(s("/spec/volumeMode"), UNSET),
    ]
}

/// The cells of a PersistentVolumeClaim.
pub(crate) fn persistent_volume_claim(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let s = |p: &str| string(o, p);
    let old = age(o, now);
    let bound = !s("/spec/volumeName").is_empty();
    let modes = if bound {
        access_modes(o, "/status/accessModes")
    } else {
        String::new()
    };
    let capacity = if bound { s("/status/capacity/storage") } else { "" };
    vec![
        phase(o).into(),
        s("/spec/volumeName").into(),
        capacity.into(),
        modes.into(),
        s("/spec/storageClassName").into(),
        or(s("/spec/volumeAttributesClassName"), UNSET),
        old,
        or(s("/spec/volumeMode"), UNSET),
    ]
}

/// The cells of a ReplicationController.
pub(crate) fn replication_controller(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    super::workloads::replicas(o, old, &pairs(o.pointer("/spec/selector")))
}

/// The cells of a PodTemplate.
pub(crate) fn pod_template(o: &Value, _: jiff::Timestamp) -> Vec<Value> {
    vec![
        containers(o, "/template").into(),
        images(o, "/template").into(),
        pairs(o.pointer("/template/metadata/labels")).into(),
    ]
}

/// The cells of a ResourceQuota.
pub(crate) fn resource_quota(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, used) in o
        .pointer("/status/hard")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let have = o.pointer("/status/used").and_then(|u| u[name].as_str()).unwrap_or("0");
        let shown = format!("{name}: {have}/{}", used.as_str().unwrap_or(""));
        let to = if name.starts_with("limits") {
            &mut limits
        } else {
            &mut requests
        };
        to.push(shown);
    }
    vec![requests.join(", ").into(), limits.join(", ").into(), old]
}

pub(crate) fn event(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let at = |keys: &[&str]| {
        keys.iter()
            .find_map(|k| o.get(*k).filter(|v| !v.is_null()))
            .unwrap_or(&Value::Null)
    };
    let words = |keys: &[&str]| at(keys).as_str().unwrap_or("").trim().to_owned();
    let source = at(&["source", "deprecatedSource"]);
    let reporter = words(&["reportingComponent", "reportingController"]);
    let mut from = vec![field(source, "component").to_owned(), field(source, "host").to_owned()];
    if from[0].is_empty() {
        from = vec![reporter, words(&["reportingInstance"])];
    }
    from.retain(|f| !f.is_empty());
    let series = o.pointer("/series/count").and_then(Value::as_i64);
    let count = series
        .or_else(|| at(&["count", "deprecatedCount"]).as_i64())
        .unwrap_or(1);
    let about = at(&["involvedObject", "regarding"]);
    vec![
        last_seen(o, now),
        words(&["type"]).into(),
        words(&["reason"]).into(),
        involved(about).into(),
        field(about, "fieldPath").into(),
        from.join(", ").into(),
        words(&["message", "note"]).into(),
        text::first_seen(o, now),
        count.max(1).into(),
        meta(o, "name").into(),
    ]
}

fn phase(o: &Value) -> &str {
    if is_deleting(o) {
        "Terminating"
    } else {
        string(o, "/status/phase")
    }
}
