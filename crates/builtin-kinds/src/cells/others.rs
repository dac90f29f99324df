//! Table cells of the other groups: storage, networking, policy, and kinds that configure the server.

use serde_json::{Value, json};
use windlass_objects::jsonpath::text_of;
use windlass_objects::metadata::{strings, text as field};
use windlass_objects::names::qualified;

use super::text::{self, age, list, number, or, selector, short_duration, string, subjects};
use super::{NONE, UNSET};

/// The cells of a StorageClass.
pub(crate) fn storage_class(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let flag = |p: &str| (o.pointer(p) == Some(&Value::Bool(true))).into();
    vec![
        string(o, "/provisioner").into(),
        string(o, "/reclaimPolicy").into(),
        string(o, "/volumeBindingMode").into(),
        flag("/allowVolumeExpansion"),
        old,
    ]
}

/// The cells of a VolumeAttachment.
pub(crate) fn volume_attachment(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let flag = |p: &str| (o.pointer(p) == Some(&Value::Bool(true))).into();
    vec![
        string(o, "/spec/attacher").into(),
        string(o, "/spec/source/persistentVolumeName").into(),
        string(o, "/spec/nodeName").into(),
        flag("/status/attached"),
        old,
    ]
}

/// The cells of a CSINode.
pub(crate) fn csinode(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    vec![list(o, "/spec/drivers").len().into(), old]
}

/// The cells of a CSIDriver.
pub(crate) fn csidriver(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let flag = |p: &str| (o.pointer(p) == Some(&Value::Bool(true))).into();
    let join = |p: &str, key: &str| {
        let items = list(o, p).iter().map(|i| i.as_str().unwrap_or_else(|| field(i, key)));
        or(&items.collect::<Vec<_>>().join(","), UNSET)
    };
    vec![
        o.pointer("/spec/attachRequired").cloned().unwrap_or(Value::Bool(true)),
        flag("/spec/podInfoOnMount"),
        flag("/spec/storageCapacity"),
        join("/spec/tokenRequests", "audience"),
        flag("/spec/requiresRepublish"),
        join("/spec/volumeLifecycleModes", ""),
        old,
    ]
}

/// The cells of a VolumeAttributesClass.
pub(crate) fn volume_attributes_class(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    vec![string(o, "/driverName").into(), old]
}

/// The cells of an Ingress.
pub(crate) fn ingress(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let hosts: Vec<&str> = list(o, "/spec/rules")
        .iter()
        .map(|r| field(r, "host"))
        .filter(|h| !h.is_empty())
        .collect();
    let secure = !list(o, "/spec/tls").is_empty();
    vec![
        or(string(o, "/spec/ingressClassName"), NONE),
        or(&text::first_few(&hosts, ","), "*"),
        text::ingress_addresses(o).into(),
        if secure { "80, 443" } else { "80" }.into(),
        old,
    ]
}

/// The cells of an IngressClass.
pub(crate) fn ingress_class(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let parameters = o.pointer("/spec/parameters").map(|p| {
        let kind = qualified(field(p, "apiGroup"), field(p, "kind"));
        format!("{kind}/{}", field(p, "name"))
    });
    vec![
        string(o, "/spec/controller").into(),
        or(&parameters.unwrap_or_default(), NONE),
        old,
    ]
}

/// The cells of a NetworkPolicy.
pub(crate) fn network_policy(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    vec![or(&selector(o.pointer("/spec/podSelector")), NONE), old]
}

/// The cells of an EndpointSlice.
pub(crate) fn endpoint_slice(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let ports: Vec<String> = list(o, "/ports")
        .iter()
        .map(|p| p["port"].as_i64().map_or_else(|| "*".to_owned(), |n| n.to_string()))
        .collect();
    let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
    let addresses: Vec<&str> = list(o, "/endpoints")
        .iter()
        .flat_map(|e| strings(e.get("addresses")))
        .collect();
    vec![
        string(o, "/addressType").into(),
        or(&text::first_few(&ports, ","), UNSET),
        or(&text::first_few(&addresses, ","), UNSET),
        old,
    ]
}

/// The cells of a Lease.
pub(crate) fn lease(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let s = |p: &str| string(o, p);
    vec![s("/spec/holderIdentity").into(), old]
}

/// The cells of a RoleBinding.
pub(crate) fn role_binding(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let s = |p: &str| string(o, p);
    vec![
        format!("{}/{}", s("/roleRef/kind"), s("/roleRef/name")).into(),
        old,
        subjects(o, "User").into(),
        subjects(o, "Group").into(),
        subjects(o, "ServiceAccount").into(),
    ]
}

/// The cells of a PodDisruptionBudget.
pub(crate) fn pod_disruption_budget(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let share = |p: &str| o.pointer(p).map_or_else(|| "N/A".to_owned(), text_of);
    vec![
        share("/spec/minAvailable").into(),
        share("/spec/maxUnavailable").into(),
        number(o, "/status/disruptionsAllowed").into(),
        old,
    ]
}

/// The cells of a PriorityClass.
pub(crate) fn priority_class(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let s = |p: &str| string(o, p);
    vec![
        number(o, "/value").into(),
        (o["globalDefault"] == Value::Bool(true)).into(),
        old,
        s("/preemptionPolicy").into(),
    ]
}

/// The cells of a RuntimeClass.
pub(crate) fn runtime_class(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let s = |p: &str| string(o, p);
    vec![s("/handler").into(), old]
}

/// The cells of a HorizontalPodAutoscaler.
pub(crate) fn horizontal_pod_autoscaler(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let s = |p: &str| string(o, p);
    let least = o.pointer("/spec/minReplicas").map_or_else(|| UNSET.to_owned(), text_of);
    vec![
        format!("{}/{}", s("/spec/scaleTargetRef/kind"), s("/spec/scaleTargetRef/name")).into(),
        text::metrics(o).into(),
        least.into(),
        number(o, "/spec/maxReplicas").into(),
        number(o, "/status/currentReplicas").into(),
        old,
    ]
}

/// The cells of a CertificateSigningRequest.
pub(crate) fn certificate_signing_request(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let s = |p: &str| string(o, p);
    let duration = o.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    vec![
        old,
        or(s("/spec/signerName"), NONE),
        s("/spec/username").into(),
        duration.map_or_else(|| NONE.to_owned(), short_duration).into(),
        text::request_state(o).into(),
    ]
}

/// The cells of an APIService.
pub(crate) fn apiservice(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let service = o.pointer("/spec/service");
    let service = service.map_or_else(
        || "Local".to_owned(),
        |s| format!("{}/{}", field(s, "namespace"), field(s, "name")),
    );
    let available = text::condition(o, "Available").map(|c| match field(c, "status") {
        "True" => "True".to_owned(),
        status => format!("{status} ({})", field(c, "reason")),
    });
    vec![
        service.into(),
        available.unwrap_or_else(|| "Unknown".to_owned()).into(),
        old,
    ]
}

/// The cells of a ValidatingWebhookConfiguration.
pub(crate) fn webhook_configuration(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    vec![json!(list(o, "/webhooks").len()), old]
}

/// The cells of a HorizontalPodAutoscaler of version 1, which are those of version 2.
pub(crate) fn old_horizontal_pod_autoscaler(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let mut new = o.clone();
    crate::autoscaler::to_v2(&mut new);
    horizontal_pod_autoscaler(&new, now)
}
