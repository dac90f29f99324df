//! Objects as rows of a table, as `kubectl get` shows them.

use serde_json::{Map, Value, json};

use crate::jsonpath::{JsonPath, text_of};
use crate::object::{meta, meta_value, strings, text};
use crate::resource::{Column, Resource};

/// What of the object goes along with its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Include {
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
    /// Nothing.
    None,
}

impl Include {
    /// Reads the parameter; `None` when it is none of what there is.
    pub(crate) fn parse(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("Metadata") => Some(Self::Metadata),
            Some("Object") => Some(Self::Object),
            Some("None") => Some(Self::None),
            Some(_) => None,
        }
    }
}

/// A table of rows.
pub(crate) fn table(resource: &Resource, rows: &[Value], metadata: &Value) -> Value {
    let columns: Vec<Value> = resource.columns.iter().map(definition).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata, "columnDefinitions": columns, "rows": rows,
    })
}

fn definition(column: &Column) -> Value {
    let description = match column.description.as_str() {
        "" if column.name == "Name" => {
            "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated."
        }
        "" => "",
        text => text,
    };
    json!({
        "name": column.name,
        "type": if column.kind == "date" { "date" } else { column.kind.as_str() },
        "format": column.format, "description": description, "priority": column.priority,
    })
}

/// One row.
pub(crate) fn row(resource: &Resource, object: &Value, now: jiff::Timestamp, include: Include) -> Value {
    let cells: Vec<Value> = resource
        .columns
        .iter()
        .map(|c| cell(resource, c, object, now))
        .collect();
    let mut out = Map::new();
    out.insert("cells".into(), cells.into());
    match include {
        Include::Metadata => {
            out.insert("object".into(), crate::read::metadata_only(object));
        }
        Include::Object => {
            out.insert("object".into(), object.clone());
        }
        Include::None => {
            out.insert("object".into(), Value::Null);
        }
    }
    Value::Object(out)
}

fn cell(resource: &Resource, column: &Column, object: &Value, now: jiff::Timestamp) -> Value {
    if let Some(name) = column.path.strip_prefix('@') {
        return computed(name, object, now);
    }
    if let Some(path) = column.path.strip_prefix('#') {
        return number(object, path).into();
    }
    let Ok(path) = JsonPath::parse(&column.path) else {
        return Value::Null;
    };
    let found = path.find(object);
    let Some(first) = found.first() else {
        // Built-in columns show that there is nothing; those of custom resources stay empty.
        return if resource.is_custom() {
            Value::Null
        } else {
            "<none>".into()
        };
    };
    match column.kind.as_str() {
        "integer" => first.as_i64().map_or(Value::Null, Into::into),
        "number" => first.as_f64().map_or(Value::Null, Into::into),
        "boolean" => first.as_bool().map_or(Value::Null, Into::into),
        "date" => date(first.as_str(), now),
        _ if found.len() == 1 => text_of(first).into(),
        _ => found.into_iter().map(text_of).collect::<Vec<_>>().join(",").into(),
    }
}

fn date(time: Option<&str>, now: jiff::Timestamp) -> Value {
    let Some(time) = time.and_then(|t| t.parse::<jiff::Timestamp>().ok()) else {
        return "<unknown>".into();
    };
    human(now.as_second() - time.as_second()).into()
}

/// A duration in the short form that kubectl uses.
pub(crate) fn human(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let s = seconds.max(0);
    let two = |big: i64, big_unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{big}{big_unit}")
        } else {
            format!("{big}{big_unit}{small}{small_unit}")
        }
    };
    if s < 2 * MINUTE {
        format!("{s}s")
    } else if s < 10 * MINUTE {
        two(s / MINUTE, "m", s % MINUTE, "s")
    } else if s < 3 * HOUR {
        format!("{}m", s / MINUTE)
    } else if s < 8 * HOUR {
        two(s / HOUR, "h", s / MINUTE % 60, "m")
    } else if s < 2 * DAY {
        format!("{}h", s / HOUR)
    } else if s < 8 * DAY {
        two(s / DAY, "d", s / HOUR % 24, "h")
    } else if s < 2 * YEAR {
        format!("{}d", s / DAY)
    } else if s < 8 * YEAR {
        two(s / YEAR, "y", s / DAY % 365, "d")
    } else {
        format!("{}y", s / YEAR)
    }
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn string<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn or_none(text: String) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text }
}

fn size(object: &Value, pointer: &str) -> usize {
    object.pointer(pointer).and_then(Value::as_object).map_or(0, Map::len)
}

/// Columns that no path can name.
fn computed(name: &str, object: &Value, now: jiff::Timestamp) -> Value {
    match name {
        "name" => return meta(object, "name").into(),
        "age" => return date(Some(meta(object, "creationTimestamp")), now),
        "data" => return (size(object, "/data") + size(object, "/binaryData")).into(),
        "secrets" => return list(object, "/secrets").len().into(),
        "webhooks" => return list(object, "/webhooks").len().into(),
        "lastseen" => return last_seen(object, now),
        _ => {}
    }
    or_none(computed_text(name, object)).into()
}

fn computed_text(name: &str, object: &Value) -> String {
    match name {
        "ready" => format!(
            "{}/{}",
            number(object, "/status/readyReplicas"),
            number(object, "/spec/replicas")
        ),
        "completions" => format!(
            "{}/{}",
            number(object, "/status/succeeded"),
            number(object, "/spec/completions")
        ),
        "jobstatus" => job_status(object),
        "involved" => reference(object.get("involvedObject")),
        "regarding" => reference(object.get("regarding")),
        "nodestatus" => node_status(object),
        "noderoles" => node_roles(object),
        "internalip" => address(object, "InternalIP"),
        "externalip" => address(object, "ExternalIP"),
        "podready" => pod_ready(object),
        "podstatus" => pod_status(object),
        "podrestarts" => list(object, "/status/containerStatuses")
            .iter()
            .map(|c| number(c, "/restartCount"))
            .sum::<i64>()
            .to_string(),
        "svcexternal" => addresses(object),
        "svcports" => ports(object),
        "svcselector" => pairs(object.pointer("/spec/selector")),
        "nodeselector" => pairs(object.pointer("/spec/template/spec/nodeSelector")),
        "selector" => pairs(object.pointer("/spec/selector/matchLabels")),
        "containers" => fields_of(object, "/spec/template/spec/containers", "name"),
        "images" => fields_of(object, "/spec/template/spec/containers", "image"),
        "endpoints" => endpoints(object),
        "accessmodes" => access_modes(object),
        "claim" => {
            let claim = object.pointer("/spec/claimRef");
            claim
                .map(|c| format!("{}/{}", text(c, "namespace"), text(c, "name")))
                .unwrap_or_default()
        }
        "roleref" => format!(
            "{}/{}",
            string(object, "/roleRef/kind"),
            string(object, "/roleRef/name")
        ),
        "expansion" => (object.get("allowVolumeExpansion") == Some(&Value::Bool(true))).to_string(),
        "apiservice" => {
            let service = object.pointer("/spec/service");
            service.map_or_else(
                || "Local".to_owned(),
                |s| format!("{}/{}", text(s, "namespace"), text(s, "name")),
            )
        }
        "apiavailable" => condition(object, "Available")
            .map(|c| text(c, "status").to_owned())
            .unwrap_or_default(),
        _ => String::new(),
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, "/status/conditions")
        .iter()
        .find(|c| text(c, "type") == kind)
}

fn last_seen(object: &Value, now: jiff::Timestamp) -> Value {
    for pointer in [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/deprecatedLastTimestamp",
        "/eventTime",
        "/firstTimestamp",
        "/deprecatedFirstTimestamp",
        "/metadata/creationTimestamp",
    ] {
        if let Some(time) = object.pointer(pointer).and_then(Value::as_str) {
            return date(Some(time), now);
        }
    }
    "<unknown>".into()
}

fn reference(value: Option<&Value>) -> String {
    value
        .map(|r| format!("{}/{}", text(r, "kind").to_lowercase(), text(r, "name")))
        .unwrap_or_default()
}

fn job_status(object: &Value) -> String {
    let is = |kind: &str| condition(object, kind).is_some_and(|c| text(c, "status") == "True");
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if is("Suspended") {
        "Suspended"
    } else {
        "Running"
    }
    .to_owned()
}

fn node_status(object: &Value) -> String {
    let ready = match condition(object, "Ready").map(|c| text(c, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if object.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        format!("{ready},SchedulingDisabled")
    } else {
        ready.to_owned()
    }
}

fn node_roles(object: &Value) -> String {
    let labels = meta_value(object, "labels").and_then(Value::as_object);
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
    roles.join(",")
}

fn address(object: &Value, kind: &str) -> String {
    list(object, "/status/addresses")
        .iter()
        .find(|a| text(a, "type") == kind)
        .map(|a| text(a, "address").to_owned())
        .unwrap_or_default()
}

fn pod_ready(object: &Value) -> String {
    let ready = list(object, "/status/containerStatuses")
        .iter()
        .filter(|c| c.get("ready") == Some(&Value::Bool(true)))
        .count();
    format!("{ready}/{}", list(object, "/spec/containers").len())
}

fn pod_status(object: &Value) -> String {
    if crate::object::is_deleting(object) {
        return "Terminating".to_owned();
    }
    let reason = string(object, "/status/reason");
    let mut out = if reason.is_empty() {
        string(object, "/status/phase")
    } else {
        reason
    }
    .to_owned();
    for container in list(object, "/status/containerStatuses") {
        for state in ["/state/waiting/reason", "/state/terminated/reason"] {
            let reason = string(container, state);
            if !reason.is_empty() {
                reason.clone_into(&mut out);
            }
        }
    }
    out
}

fn addresses(object: &Value) -> String {
    let ingress: Vec<&str> = list(object, "/status/loadBalancer/ingress")
        .iter()
        .map(|i| {
            if text(i, "ip").is_empty() {
                text(i, "hostname")
            } else {
                text(i, "ip")
            }
        })
        .collect();
    let mut all = strings(object.pointer("/spec/externalIPs"));
    match string(object, "/spec/type") {
        "LoadBalancer" if ingress.is_empty() && all.is_empty() => return "<pending>".to_owned(),
        "ExternalName" => return string(object, "/spec/externalName").to_owned(),
        _ => {}
    }
    all.extend(ingress);
    all.join(",")
}

fn ports(object: &Value) -> String {
    let ports = list(object, "/spec/ports").iter().map(|p| {
        let node = number(p, "/nodePort");
        let node = if node == 0 { String::new() } else { format!(":{node}") };
        format!("{}{node}/{}", number(p, "/port"), text(p, "protocol"))
    });
    ports.collect::<Vec<_>>().join(",")
}

fn pairs(value: Option<&Value>) -> String {
    let map = value.and_then(Value::as_object);
    let parts = map.into_iter().flatten().map(|(k, v)| format!("{k}={}", text_of(v)));
    parts.collect::<Vec<_>>().join(",")
}

fn fields_of(object: &Value, pointer: &str, key: &str) -> String {
    list(object, pointer)
        .iter()
        .map(|c| text(c, key))
        .collect::<Vec<_>>()
        .join(",")
}

fn endpoints(object: &Value) -> String {
    let mut out = Vec::new();
    for subset in list(object, "/subsets") {
        for address in list(subset, "/addresses") {
            let ip = text(address, "ip");
            if list(subset, "/ports").is_empty() {
                out.push(ip.to_owned());
            }
            for port in list(subset, "/ports") {
                out.push(format!("{ip}:{}", number(port, "/port")));
            }
        }
    }
    let more = out.len().saturating_sub(3);
    out.truncate(3);
    let text = out.join(",");
    if more > 0 {
        format!("{text} + {more} more...")
    } else {
        text
    }
}

fn access_modes(object: &Value) -> String {
    let modes = strings(object.pointer("/spec/accessModes"));
    let short = modes.into_iter().map(|m| match m {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    });
    short.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        for (seconds, want) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (195, "3m15s"),
            (3600, "60m"),
            (10800, "3h"),
            (11100, "3h5m"),
            (90_000, "25h"),
            (200_000, "2d7h"),
            (864_000, "10d"),
            (-5, "<invalid>"),
        ] {
            assert_eq!(human(seconds), want);
        }
    }
}
