//! Service, Endpoints, EndpointSlice.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::IpAddr;

use serde_json::{Value, json};
use windlass_schema::{FieldError, Kind};

use super::field::{
    Errors, Field, immutable, ip, items_mut, label, maybe_one_of, must_be_named, one_of, or_set, port, present, set,
    within,
};
use windlass_objects::metadata::text;
use windlass_objects::names::{check_labels, label_problems, subdomain_problems};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(crate) fn default_service(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|s| s.is_object()) else {
        return;
    };
    or_set(spec, "sessionAffinity", "None");
    or_set(spec, "type", "ClusterIP");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.as_object_mut().map(|s| s.remove("sessionAffinityConfig"));
        }
        "ClientIP" if spec.pointer("/sessionAffinityConfig/clientIP/timeoutSeconds").is_none() => {
            set(
                spec,
                "sessionAffinityConfig",
                json!({"clientIP": {"timeoutSeconds": 10800}}),
            );
        }
        _ => {}
    }
    for port in items_mut(spec, "/ports") {
        or_set(port, "protocol", "TCP");
        let unset = match &port["targetPort"] {
            Value::String(text) => text.is_empty(),
            Value::Number(n) => n.as_i64() == Some(0),
            _ => true,
        };
        if unset && let Some(number) = port.get("port").cloned() {
            set(port, "targetPort", number);
        }
        if port["nodePort"].as_i64() == Some(0) {
            port.as_object_mut().map(|p| p.remove("nodePort"));
        }
    }
    let kind = text(spec, "type").to_owned();
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        or_set(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        or_set(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        or_set(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// Fields that a changed service keeps, and those that it loses with its type.
pub(crate) fn on_update(old: &Value, new: &mut Value) {
    let (was, is) = (
        text(&old["spec"], "type").to_owned(),
        text(&new["spec"], "type").to_owned(),
    );
    let old_ports = old["spec"]["ports"].as_array().cloned().unwrap_or_default();
    let Some(spec) = new.get_mut("spec").filter(|s| s.is_object()) else {
        return;
    };
    let addressed = |kind: &str| kind != "ExternalName";
    if addressed(&was) && addressed(&is) {
        // An update without addresses keeps them.
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if (spec[key].is_null() || spec[key] == "")
                && let Some(value) = old["spec"].get(key)
            {
                set(spec, key, value.clone());
            }
        }
        if spec["clusterIP"] != old["spec"]["clusterIP"] && spec["clusterIPs"] == old["spec"]["clusterIPs"] {
            let first = spec["clusterIP"].clone();
            set(spec, "clusterIPs", json!([first]));
        }
    }
    if addressed(&was) && !addressed(&is) {
        let same = spec["clusterIP"] == old["spec"]["clusterIP"];
        if let Some(map) = spec.as_object_mut().filter(|_| same) {
            for key in [
                "clusterIP",
                "clusterIPs",
                "ipFamilies",
                "ipFamilyPolicy",
                "internalTrafficPolicy",
            ] {
                map.remove(key);
            }
        }
    }
    let ported = |kind: &str| matches!(kind, "NodePort" | "LoadBalancer");
    if ported(&was) && !ported(&is) {
        if let Some(map) = spec.as_object_mut() {
            map.remove("externalTrafficPolicy");
            map.remove("allocateLoadBalancerNodePorts");
            map.remove("healthCheckNodePort");
        }
        for (i, port) in items_mut(spec, "/ports").enumerate() {
            if old_ports.get(i).is_some_and(|o| o["nodePort"] == port["nodePort"]) {
                port.as_object_mut().map(|p| p.remove("nodePort"));
            }
        }
    }
    if ported(&was) && ported(&is) {
        let mut numbers: HashMap<(&Value, &Value), Option<&Value>> = HashMap::new();
        for old in &old_ports {
            let key = (&old["port"], &old["protocol"]);
            numbers.entry(key).or_insert_with(|| old.get("nodePort"));
        }
        for port in items_mut(spec, "/ports") {
            let number = numbers.get(&(&port["port"], &port["protocol"])).copied().flatten();
            if let Some(number) = number.cloned() {
                or_set(port, "nodePort", number);
            }
        }
    }
}

pub(crate) fn service(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    let kind = spec.get("type").text();
    let headless = spec.get("clusterIP").text() == "None";
    if let Some(old) = old {
        fixed_address(&spec, &old["spec"], errors);
    }
    let ports = spec.get("ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(ports.required(""));
    }
    match kind {
        "LoadBalancer" if headless => errors.push(
            spec.get("clusterIPs")
                .forbidden("may not be set to 'None' for LoadBalancer services"),
        ),
        "NodePort" if headless => {
            let ips = spec.get("clusterIPs");
            errors.push(FieldError::invalid(
                format!("{}[0]", ips.path),
                "None".into(),
                "may not be set to 'None' for NodePort services",
            ));
        }
        "ExternalName" => {
            if spec.get("clusterIP").is_set() && !spec.get("clusterIP").is_empty() {
                errors.push(
                    spec.get("clusterIPs")
                        .forbidden("may not be set when type is 'ExternalName'"),
                );
            }
            let name = spec.get("externalName");
            present(&name, errors);
            let trimmed = name.text().trim_end_matches('.');
            if !trimmed.is_empty() {
                errors.extend(subdomain_problems(trimmed).into_iter().map(|p| name.invalid(p)));
            }
        }
        _ => {}
    }
    let mut names = BTreeSet::new();
    let several = ports.items().count() > 1;
    for port in ports.items() {
        service_port(&port, several, &mut names, errors);
    }
    check_labels(spec.get("selector").value, &spec.get("selector").path, errors);
    one_of(&spec.get("sessionAffinity"), &["ClientIP", "None"], errors);
    for address in spec.get("externalIPs").items() {
        ip(&address, errors);
    }
    if kind.is_empty() {
        errors.push(spec.get("type").required(""));
    } else {
        one_of(
            &spec.get("type"),
            &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
            errors,
        );
    }
    duplicates(&ports, errors);
    let external = spec.get("externalTrafficPolicy");
    if external.is_set() && !matches!(kind, "NodePort" | "LoadBalancer") && spec.get("externalIPs").is_empty() {
        errors.push(external.invalid("may only be set for externally-accessible services"));
    } else {
        maybe_one_of(&external, &["Cluster", "Local"], errors);
    }
    maybe_one_of(&spec.get("internalTrafficPolicy"), &["Cluster", "Local"], errors);
}

fn fixed_address(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    let ips = spec.get("clusterIPs");
    let addressed = |kind: &str| kind != "ExternalName";
    let both = addressed(text(old, "type")) && addressed(spec.get("type").text());
    let was = &old["clusterIPs"][0];
    if both && was.is_string() && ips.value[0] != *was {
        errors.push(FieldError::invalid(
            format!("{}[0]", ips.path),
            ips.value.clone(),
            "may not change once set",
        ));
    }
}

fn service_port<'a>(field: &Field<'a>, several: bool, names: &mut BTreeSet<&'a str>, errors: &mut Errors) {
    let name = field.get("name");
    if several && name.is_empty() {
        errors.push(name.required(""));
    } else if !name.is_empty() {
        label(&name, errors);
        if !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
    within(&field.get("port"), 1, 65535, errors);
    one_of(&field.get("protocol"), &PROTOCOLS, errors);
    port(&field.get("targetPort"), errors);
}

/// Reports duplicate ports.
fn duplicates(ports: &Field<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for port in ports.items() {
        let key = (port.get("protocol").value, port.get("port").value);
        if !seen.insert(key) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                key.0, key.1
            );
            errors.push(FieldError::new(port.path.clone(), Kind::Duplicate, None, shown));
        }
    }
}

pub(crate) fn default_endpoints(object: &mut Value) {
    for subset in items_mut(object, "/subsets") {
        for port in items_mut(subset, "/ports") {
            or_set(port, "protocol", "TCP");
        }
    }
}

pub(crate) fn endpoints(object: &Value, _: Option<&Value>, errors: &mut Errors) {
    for subset in Field::of(object, "subsets").items() {
        let (ready, not_ready) = (subset.get("addresses"), subset.get("notReadyAddresses"));
        if ready.is_empty() && not_ready.is_empty() {
            errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for address in ready.items().chain(not_ready.items()) {
            let field = address.get("ip");
            match ip(&field, errors) {
                None => errors.push(field.invalid("must be a valid IP address")),
                Some(parsed) => special_address(&field, parsed, errors),
            }
        }
        let ports = subset.get("ports");
        let several = ports.items().count() > 1;
        for port in ports.items() {
            let name = port.get("name");
            if several && name.is_empty() {
                errors.push(name.required(""));
            }
            label(&name, errors);
            within(&port.get("port"), 1, 65535, errors);
            one_of(&port.get("protocol"), &PROTOCOLS, errors);
        }
    }
}

/// Reports addresses that are not routable, such as loopback addresses.
fn special_address(field: &Field<'_>, address: IpAddr, errors: &mut Errors) {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    if address.is_unspecified() {
        errors.push(field.invalid(format!("may not be unspecified ({address})")));
    }
    if address.is_loopback() {
        errors.push(field.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    if link_local {
        errors.push(field.invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
    }
}

pub(crate) fn default_slice(object: &mut Value) {
    for port in items_mut(object, "/ports") {
        or_set(port, "name", "");
        or_set(port, "protocol", "TCP");
    }
}

pub(crate) fn slice(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let kind = Field::of(object, "addressType");
    one_of(&kind, &["FQDN", "IPv4", "IPv6"], errors);
    let mut names = BTreeSet::new();
    for port in Field::of(object, "ports").items() {
        let name = port.get("name");
        if name.is_empty() || label_problems(name.text()).is_empty() {
            if !names.insert(name.text()) {
                errors.push(name.duplicate());
            }
        } else {
            label(&name, errors);
        }
        one_of(&port.get("protocol"), &PROTOCOLS, errors);
    }
    for endpoint in Field::of(object, "endpoints").items() {
        let addresses = endpoint.get("addresses");
        if addresses.is_empty() {
            errors.push(addresses.required("must contain at least 1 address"));
        }
        for address in addresses.items() {
            match kind.text() {
                "IPv4" | "IPv6" => {
                    if let Some(parsed) = ip(&address, errors) {
                        if parsed.is_ipv4() != (kind.text() == "IPv4") {
                            errors.push(address.invalid(format!("must be an {} address", kind.text())));
                        }
                        special_address(&address, parsed, errors);
                    }
                }
                "FQDN" => must_be_named(&address, subdomain_problems, errors),
                _ => {}
            }
        }
    }
    if let Some(old) = old {
        immutable(object, old, "addressType", errors);
    }
}
