//! Ingress, IngressClass, NetworkPolicy.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::field::{Errors, Field, immutable, is_network, items_mut, maybe_one_of, or_set, port, present, subdomain};
use super::selectors;
use windlass_objects::names::subdomain_problems;

pub(crate) fn ingress(object: &Value, _: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    let (rules, backend) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && !backend.is_set() {
        errors.push(FieldError::invalid(
            spec.path.clone(),
            Value::Null,
            "either `defaultBackend` or `rules` must be specified",
        ));
    }
    if backend.is_set() {
        ingress_backend(&backend, errors);
    }
    for rule in rules.items() {
        let host = rule.get("host");
        if !host.is_empty() {
            let name = host.text().strip_prefix("*.").unwrap_or(host.text());
            errors.extend(subdomain_problems(name).into_iter().map(|p| host.invalid(p)));
        }
        let paths = rule.get("http").get("paths");
        if rule.get("http").is_set() && paths.is_empty() {
            errors.push(paths.required(""));
        }
        for path in paths.items() {
            ingress_path(&path, errors);
        }
    }
    for tls in spec.get("tls").items() {
        for host in tls.get("hosts").items() {
            let name = host.text().strip_prefix("*.").unwrap_or(host.text());
            errors.extend(subdomain_problems(name).into_iter().map(|p| host.invalid(p)));
        }
    }
    subdomain(&spec.get("ingressClassName"), errors);
}

fn ingress_path(path: &Field<'_>, errors: &mut Errors) {
    let kind = path.get("pathType");
    if !kind.is_set() {
        errors.push(kind.required("pathType must be specified"));
        return;
    }
    let text = path.get("path");
    match kind.text() {
        "Exact" | "Prefix" => {
            if !text.text().starts_with('/') {
                errors.push(text.invalid("must be an absolute path"));
            }
            for bad in ["//", "/./", "/../", "%2f", "%2F"] {
                if text.text().contains(bad) {
                    errors.push(text.invalid(format!("must not contain '{bad}'")));
                }
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.text().starts_with('/') {
                errors.push(text.invalid("must be an absolute path"));
            }
        }
        _ => errors.push(kind.unsupported(&["Exact", "ImplementationSpecific", "Prefix"])),
    }
    ingress_backend(&path.get("backend"), errors);
}

fn ingress_backend(backend: &Field<'_>, errors: &mut Errors) {
    let (service, resource) = (backend.get("service"), backend.get("resource"));
    match (service.is_set(), resource.is_set()) {
        (true, true) => errors.push(FieldError::invalid(
            backend.path.clone(),
            "".into(),
            "cannot set both resource and service backends",
        )),
        (false, false) => errors.push(FieldError::invalid(
            backend.path.clone(),
            "".into(),
            "resource or service backend is required",
        )),
        (true, false) => {
            present(&service.get("name"), errors);
            let (number, name) = (service.get("port").get("number"), service.get("port").get("name"));
            let numbered = number.int().unwrap_or(0) != 0;
            if numbered && !name.is_empty() {
                errors.push(service.get("port").invalid("cannot set both port name & port number"));
            } else if !name.is_empty() {
                port(&name, errors);
            } else if numbered {
                port(&number, errors);
            } else {
                errors.push(service.required("port name or number is required"));
            }
        }
        (false, true) => {
            for key in ["kind", "name"] {
                present(&resource.get(key), errors);
            }
        }
    }
}

pub(crate) fn default_ingress_class(object: &mut Value) {
    if let Some(parameters) = object.pointer_mut("/spec/parameters") {
        or_set(parameters, "scope", "Cluster");
    }
}

pub(crate) fn ingress_class(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let controller = Field::of(object, "spec").get("controller");
    if let Some(old) = old {
        immutable(object, old, "spec.controller", errors);
        return;
    }
    if controller.is_empty() {
        errors.push(controller.required(""));
        return;
    }
    let fine = controller
        .text()
        .split_once('/')
        .is_some_and(|(domain, path)| subdomain_problems(domain).is_empty() && !path.is_empty());
    if !fine {
        errors.push(controller.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")"));
    }
}

pub(crate) fn default_policy(object: &mut Value) {
    for list in ["/spec/ingress", "/spec/egress"] {
        for rule in items_mut(object, list) {
            for port in items_mut(rule, "/ports") {
                or_set(port, "protocol", "TCP");
            }
        }
    }
    let egress = object
        .pointer("/spec/egress")
        .and_then(Value::as_array)
        .is_some_and(|e| !e.is_empty());
    if let Some(spec) = object.get_mut("spec") {
        let types = if egress {
            json!(["Ingress", "Egress"])
        } else {
            json!(["Ingress"])
        };
        or_set(spec, "policyTypes", types);
    }
}

pub(crate) fn policy(object: &Value, _: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    selectors::check(&spec.get("podSelector"), errors);
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(list).items() {
            for entry in rule.get("ports").items() {
                maybe_one_of(&entry.get("protocol"), &["TCP", "UDP", "SCTP"], errors);
                if entry.get("port").is_set() {
                    port(&entry.get("port"), errors);
                }
            }
            for peer in rule.get(peers).items() {
                policy_peer(&peer, errors);
            }
        }
    }
    let types = spec.get("policyTypes");
    if types.items().count() > 2 {
        errors.push(types.invalid("may not specify more than two policyTypes"));
        return;
    }
    for kind in types.items() {
        if !matches!(kind.text(), "Ingress" | "Egress") {
            errors.push(kind.unsupported(&["Ingress", "Egress"]));
        }
    }
}

fn policy_peer(peer: &Field<'_>, errors: &mut Errors) {
    let (pods, namespaces, block) = (
        peer.get("podSelector"),
        peer.get("namespaceSelector"),
        peer.get("ipBlock"),
    );
    for selector in [&pods, &namespaces] {
        if selector.is_set() {
            selectors::check(selector, errors);
        }
    }
    if block.is_set() {
        let network = block.get("cidr");
        if network.is_empty() {
            errors.push(network.required(""));
        } else if !is_network(network.text()) {
            errors.push(network.invalid("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
        }
    }
    let selects = pods.is_set() || namespaces.is_set();
    if !selects && !block.is_set() {
        errors.push(peer.required("must specify a peer"));
    } else if selects && block.is_set() {
        errors.push(peer.forbidden("may not specify both ipBlock and another peer"));
    }
}
