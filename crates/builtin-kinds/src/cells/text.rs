//! Formats parts of objects for table cells.

use serde_json::Value;

use windlass_objects::age::human;
use windlass_objects::jsonpath::text_of;
use windlass_objects::metadata::{meta, meta_value, strings, text};

pub(super) fn string<'a>(o: &'a Value, pointer: &str) -> &'a str {
    o.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

pub(super) fn number(o: &Value, pointer: &str) -> i64 {
    o.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn list<'a>(o: &'a Value, pointer: &str) -> &'a [Value] {
    o.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text, or a placeholder if it is empty.
pub(super) fn or(text: &str, nothing: &str) -> Value {
    if text.is_empty() { nothing } else { text }.into()
}

pub(super) fn age(o: &Value, now: jiff::Timestamp) -> Value {
    since(meta(o, "creationTimestamp"), now)
}

/// The age of a time.
pub(super) fn since(time: &str, now: jiff::Timestamp) -> Value {
    match time.parse::<jiff::Timestamp>() {
        Ok(time) => human(now.as_second() - time.as_second()).into(),
        Err(_) => "<unknown>".into(),
    }
}

/// A duration.
pub(super) fn short_duration(seconds: i64) -> String {
    human(seconds)
}

pub(super) fn condition<'a>(o: &'a Value, kind: &str) -> Option<&'a Value> {
    list(o, "/status/conditions").iter().find(|c| text(c, "type") == kind)
}

/// Labels or similar maps, as `a=b,c=d`.
pub(super) fn pairs(value: Option<&Value>) -> String {
    let map = value.and_then(Value::as_object);
    let parts = map.into_iter().flatten().map(|(k, v)| format!("{k}={}", text_of(v)));
    parts.collect::<Vec<_>>().join(",")
}

/// A label selector.
pub(super) fn selector(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "<none>".to_owned();
    };
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, wanted) in value["matchLabels"].as_object().into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", text_of(wanted))));
    }
    for term in list(value, "/matchExpressions") {
        let key = text(term, "key");
        let mut values = strings(term.get("values"));
        values.sort_unstable();
        let values = values.join(",");
        let shown = match text(term, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), shown));
    }
    if parts.is_empty() {
        return "<none>".to_owned();
    }
    parts.sort();
    parts.into_iter().map(|(_, p)| p).collect::<Vec<_>>().join(",")
}

fn of_containers(o: &Value, template: &str, key: &str) -> String {
    let names = list(o, &format!("{template}/spec/containers"));
    names.iter().map(|c| text(c, key)).collect::<Vec<_>>().join(",")
}

pub(super) fn containers(o: &Value, template: &str) -> String {
    of_containers(o, template, "name")
}

pub(super) fn images(o: &Value, template: &str) -> String {
    of_containers(o, template, "image")
}

/// The first three texts, and the number of the others.
pub(super) fn first_few(all: &[&str], separator: &str) -> String {
    const SHOWN: usize = 3;
    let more = all.len().saturating_sub(SHOWN);
    let shown = all[..all.len().min(SHOWN)].join(separator);
    if more > 0 {
        format!("{shown} + {more} more...")
    } else {
        shown
    }
}

pub(super) fn node_status(o: &Value) -> String {
    let mut out = vec![match condition(o, "Ready").map(|c| text(c, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }];
    if o.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        out.push("SchedulingDisabled");
    }
    out.join(",")
}

pub(super) fn node_roles(o: &Value) -> String {
    let labels = meta_value(o, "labels").and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(k, v)| {
            k.strip_prefix("node-role.kubernetes.io/")
                .or_else(|| (k == "kubernetes.io/role").then(|| v.as_str().unwrap_or("")))
        })
        .filter(|r| !r.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    roles.join(",")
}

pub(super) fn address<'a>(o: &'a Value, kind: &str) -> &'a str {
    list(o, "/status/addresses")
        .iter()
        .find(|a| text(a, "type") == kind)
        .map_or("", |a| text(a, "address"))
}

fn balancer_addresses(o: &Value) -> Vec<&str> {
    list(o, "/status/loadBalancer/ingress")
        .iter()
        .map(|i| match text(i, "ip") {
            "" => text(i, "hostname"),
            ip => ip,
        })
        .collect()
}

pub(super) fn ingress_addresses(o: &Value) -> String {
    balancer_addresses(o).join(",")
}

pub(super) fn external_addresses(o: &Value) -> String {
    let ingress = balancer_addresses(o);
    let mut all = strings(o.pointer("/spec/externalIPs"));
    match string(o, "/spec/type") {
        "LoadBalancer" if ingress.is_empty() && all.is_empty() => return "<pending>".to_owned(),
        "LoadBalancer" => all.splice(0..0, ingress).for_each(drop),
        "ExternalName" => return string(o, "/spec/externalName").to_owned(),
        _ => {}
    }
    all.join(",")
}

pub(super) fn service_ports(o: &Value) -> String {
    let ports = list(o, "/spec/ports").iter().map(|p| {
        let node = match number(p, "/nodePort") {
            0 => String::new(),
            node => format!(":{node}"),
        };
        format!("{}{node}/{}", number(p, "/port"), text(p, "protocol"))
    });
    ports.collect::<Vec<_>>().join(",")
}

pub(super) fn endpoints(o: &Value) -> String {
    let mut out = Vec::new();
    for subset in list(o, "/subsets") {
        let ports = list(subset, "/ports");
        for address in list(subset, "/addresses") {
            let ip = text(address, "ip");
            if ports.is_empty() {
                out.push(ip.to_owned());
            }
            out.extend(ports.iter().map(|port| format!("{ip}:{}", number(port, "/port"))));
        }
    }
    let out: Vec<&str> = out.iter().map(String::as_str).collect();
    first_few(&out, ",")
}

pub(super) fn access_modes(o: &Value, pointer: &str) -> String {
    let modes = strings(o.pointer(pointer));
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let known = short.iter().filter(|(long, _)| modes.contains(long)).map(|(_, s)| *s);
    known.collect::<Vec<_>>().join(",")
}

pub(super) fn involved(reference: &Value) -> String {
    format!("{}/{}", text(reference, "kind").to_lowercase(), text(reference, "name"))
}

fn first_time(o: &Value, pointers: &[&str], now: jiff::Timestamp) -> Value {
    let time = pointers.iter().find_map(|p| o.pointer(p).and_then(Value::as_str));
    time.map_or_else(|| "<unknown>".into(), |time| since(time, now))
}

pub(super) fn last_seen(o: &Value, now: jiff::Timestamp) -> Value {
    let pointers = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/deprecatedLastTimestamp",
        "/firstTimestamp",
        "/deprecatedFirstTimestamp",
        "/eventTime",
    ];
    first_time(o, &pointers, now)
}

pub(super) fn first_seen(o: &Value, now: jiff::Timestamp) -> Value {
    first_time(o, &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"], now)
}

pub(super) fn job_status(o: &Value) -> &'static str {
    let is = |kind: &str| condition(o, kind).is_some_and(|c| text(c, "status") == "True");
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if windlass_objects::metadata::is_deleting(o) {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

/// The names of a binding's subjects of one kind.
pub(super) fn subjects(o: &Value, kind: &str) -> String {
    let names = list(o, "/subjects").iter().filter(|s| text(s, "kind") == kind);
    let names = names.map(|s| match (kind, text(s, "namespace")) {
        ("ServiceAccount", namespace) => format!("{namespace}/{}", text(s, "name")),
        _ => text(s, "name").to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// The metrics of an autoscaler: current and target values.
pub(super) fn metrics(o: &Value) -> String {
    let specs = list(o, "/spec/metrics");
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let shown = specs.iter().enumerate().map(|(i, spec)| {
        let current = list(o, "/status/currentMetrics").get(i);
        let resource = spec.get("resource").or_else(|| spec.get("containerResource"));
        match resource {
            Some(resource) => {
                let (unit, wanted) = match resource.pointer("/target/averageUtilization") {
                    Some(share) => ("averageUtilization", format!("{share}%")),
                    None => ("averageValue", string(resource, "/target/averageValue").to_owned()),
                };
                let now = current.and_then(|c| c.pointer(&format!("/resource/current/{unit}")));
                let now = now.map_or_else(
                    || "<unknown>".to_owned(),
                    |n| n.as_i64().map_or_else(|| text_of(n), |n| format!("{n}%")),
                );
                format!("{}: {now}/{wanted}", text(resource, "name"))
            }
            None => "<unknown type>".to_owned(),
        }
    });
    let shown: Vec<String> = shown.take(2).collect();
    let more = specs.len().saturating_sub(2);
    let mut out = shown.join(", ");
    if more > 0 {
        out = format!("{out} + {more} more...");
    }
    out
}

/// The state of a certificate signing request.
pub(super) fn request_state(o: &Value) -> String {
    let has = |kind: &str| condition(o, kind).is_some();
    let mut out = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else if has("Failed") {
        "Failed"
    } else {
        "Pending"
    }
    .to_owned();
    if !string(o, "/status/certificate").is_empty() {
        out.push_str(",Issued");
    }
    out
}
