//! Moves objects and their references to one namespace.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_meta::GroupKind;

use super::{AssembleError, DEFINITIONS};
use crate::args::Arguments;
use crate::customize::flags;
use crate::object::{self, Identity, group, is, kind, text};

/// The source of the CA that cert-manager injects: `namespace/name` of a Certificate or of a Secret.
const INJECT_FROM: [&str; 2] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
];

/// Cluster-scoped kinds, by group.
const CLUSTER_WIDE: [(&str, &[&str]); 16] = [
    ("", &["Namespace", "Node", "PersistentVolume"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    (DEFINITIONS, &["CustomResourceDefinition"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        ],
    ),
    ("apiregistration.k8s.io", &["APIService"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("node.k8s.io", &["RuntimeClass"]),
    (
        "storage.k8s.io",
        &[
            "StorageClass",
            "CSIDriver",
            "CSINode",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ],
    ),
    ("policy", &["PodSecurityPolicy"]),
    (
        "certificates.k8s.io",
        &["CertificateSigningRequest", "ClusterTrustBundle"],
    ),
    ("networking.k8s.io", &["IngressClass", "IPAddress", "ServiceCIDR"]),
    ("gateway.networking.k8s.io", &["GatewayClass"]),
    (
        "flowcontrol.apiserver.k8s.io",
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
    ("resource.k8s.io", &["DeviceClass", "DeviceTaintRule", "ResourceSlice"]),
    ("storagemigration.k8s.io", &["StorageVersionMigration"]),
    ("cert-manager.io", &["ClusterIssuer"]),
];

/// The cluster-scoped kinds that the objects themselves define.
pub(super) fn cluster_wide(objects: &[Value]) -> BTreeSet<GroupKind> {
    objects
        .iter()
        .filter(|object| is(object, DEFINITIONS, "CustomResourceDefinition"))
        .filter(|definition| text(definition, &["spec", "scope"]) == "Cluster")
        .map(|definition| {
            let group = text(definition, &["spec", "group"]);
            GroupKind::new(group, text(definition, &["spec", "names", "kind"]))
        })
        .collect()
}

fn is_namespaced(object: &Value, own: &BTreeSet<GroupKind>) -> bool {
    let known = CLUSTER_WIDE.iter().find(|(known, _)| *known == group(object));
    !known.is_some_and(|(_, kinds)| kinds.contains(&kind(object)))
        && !own.contains(&GroupKind::new(group(object), kind(object)))
}

/// Moves an object and its references to the target namespace. `own` kinds are cluster-scoped; `from` is the namespace in the
/// release.
pub(super) fn put(
    object: &mut Value,
    own: &BTreeSet<GroupKind>,
    from: Option<&str>,
    target: &str,
) -> Result<(), AssembleError> {
    let was = match object["metadata"]["namespace"].as_str() {
        Some(namespace) if !namespace.is_empty() => Some(namespace.to_owned()),
        _ => from.map(str::to_owned),
    };
    let is_namespace = is(object, "", "Namespace");
    let namespaced = is_namespaced(object, own);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        if is_namespace {
            metadata.insert("name".to_owned(), target.into());
        }
        if namespaced {
            metadata.insert("namespace".to_owned(), target.into());
        } else {
            metadata.remove("namespace");
        }
    }
    inject_from(object, target)?;
    match (group(object), kind(object)) {
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => subjects(object, target),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            webhooks(object, target)
        }
        ("apiregistration.k8s.io", "APIService") => {
            service(&mut object["spec"]["service"], target);
            Ok(())
        }
        (DEFINITIONS, "CustomResourceDefinition") => {
            conversion(object, target);
            Ok(())
        }
        ("cert-manager.io", "Certificate") => certificate(object, was.as_deref(), target),
        _ => Ok(()),
    }
}

/// Moves annotations that name a Certificate or Secret of the provider.
fn inject_from(object: &mut Value, target: &str) -> Result<(), AssembleError> {
    for key in INJECT_FROM {
        let value = text(object, &["metadata", "annotations", key]);
        if value.is_empty() {
            continue;
        }
        let Some((_, name)) = value.split_once('/').filter(|(_, name)| !name.contains('/')) else {
            return Err(AssembleError::Field {
                object: Box::new(Identity::of(object)),
                field: format!("metadata.annotations[{key}]"),
                found: format!("{value:?}"),
                expected: "NAMESPACE/NAME",
            });
        };
        object["metadata"]["annotations"][key] = format!("{target}/{name}").into();
    }
    Ok(())
}

/// The list at a field, if it is set; another type is an error.
fn list_mut<'v>(object: &'v mut Value, field: &'static str) -> Result<&'v mut [Value], AssembleError> {
    let found = match &object[field] {
        Value::Null => return Ok(&mut []),
        Value::Array(_) => None,
        other => Some(other.to_string()),
    };
    if let Some(found) = found {
        return Err(AssembleError::Field {
            object: Box::new(Identity::of(object)),
            field: field.to_owned(),
            found,
            expected: "a list",
        });
    }
    Ok(object[field].as_array_mut().map(Vec::as_mut_slice).unwrap_or_default())
}

/// Moves the namespaced subjects of a binding.
fn subjects(binding: &mut Value, target: &str) -> Result<(), AssembleError> {
    for subject in list_mut(binding, "subjects")? {
        if !text(subject, &["namespace"]).is_empty() {
            subject["namespace"] = target.into();
        }
    }
    Ok(())
}

fn webhooks(configuration: &mut Value, target: &str) -> Result<(), AssembleError> {
    for webhook in list_mut(configuration, "webhooks")? {
        if let Some(client) = webhook.get_mut("clientConfig") {
            service(client.get_mut("service").unwrap_or(&mut Value::Null), target);
        }
    }
    Ok(())
}

/// A reference to a Service, if it is one.
fn service(reference: &mut Value, target: &str) {
    if let Some(reference) = reference.as_object_mut() {
        reference.insert("namespace".to_owned(), target.into());
    }
}

/// Moves the conversion webhook, in both forms of definitions.
fn conversion(definition: &mut Value, target: &str) {
    for path in [
        "/spec/conversion/webhook/clientConfig/service",
        "/spec/conversion/webhookClientConfig/service",
    ] {
        if let Some(reference) = definition.pointer_mut(path) {
            service(reference, target);
        }
    }
}

/// Moves the DNS names of a certificate: `service.namespace.svc`, and other names with the namespace after a dot.
fn certificate(certificate: &mut Value, was: Option<&str>, target: &str) -> Result<(), AssembleError> {
    let Some(was) = was else {
        return Ok(());
    };
    let identity = Identity::of(certificate);
    let Some(spec) = certificate.get_mut("spec").filter(|spec| spec.is_object()) else {
        return Ok(());
    };
    if let Some(name) = spec.get_mut("commonName") {
        rename(name, was, target);
    }
    match spec.get_mut("dnsNames") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(names)) => {
            for name in names {
                rename(name, was, target);
            }
            Ok(())
        }
        Some(other) => Err(AssembleError::Field {
            object: Box::new(identity),
            field: "spec.dnsNames".to_owned(),
            found: other.to_string(),
            expected: "a list",
        }),
    }
}

/// Replaces the first label of a DNS name that is the old namespace, except for the very first label, which is the Service.
fn rename(name: &mut Value, was: &str, target: &str) {
    let Some(text) = name.as_str() else {
        return;
    };
    let mut parts: Vec<&str> = text.split('.').collect();
    if let Some(part) = parts.iter_mut().skip(1).find(|part| **part == was) {
        *part = target;
        *name = parts.join(".").into();
    }
}

/// Removes the argument that limits a manager to one namespace. Returns notes about it.
pub(super) fn watch_all(object: &mut Value) -> Vec<String> {
    if !is(object, "apps", "Deployment") {
        return Vec::new();
    }
    let identity = Identity::of(object);
    let mut notes = Vec::new();
    let managers = object::containers_mut(object).filter(|container| text(container, &["name"]) == "manager");
    for manager in managers {
        let Ok(mut arguments) = Arguments::of(manager) else {
            continue;
        };
        let confined = arguments
            .get(flags::NAMESPACE)
            .filter(|namespace| !namespace.is_empty());
        if let Some(namespace) = confined {
            arguments.remove(flags::NAMESPACE);
            arguments.write(manager);
            notes.push(format!(
                "{identity}: the argument --namespace={namespace} is left out, as providers look after all namespaces"
            ));
        }
    }
    notes
}
