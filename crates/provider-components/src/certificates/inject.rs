//! Replaces cert-manager's objects with certificates.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::plan::{INJECT_FROM, INJECT_FROM_SECRET, Plan, Request, is_of_cert_manager};
use super::{BUNDLE, CERTIFICATE, CertificateError, FIELD, KEY};
use crate::customize::{Note, object_name};
use crate::object;

/// An issued certificate, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// The CA bundle; the issuer of the certificate comes first.
    pub bundle: String,
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

/// Carries out a plan for these objects: Secrets, by their names in the plan, replace cert-manager's objects, and bundles are
/// injected where requested. After an error nothing has changed.
pub fn put(
    objects: &mut Vec<Value>,
    plan: &Plan,
    issued: &BTreeMap<String, Issued>,
) -> Result<Vec<Note>, CertificateError> {
    let find = |secret: &String| {
        issued
            .get(secret)
            .ok_or_else(|| CertificateError::Missing(secret.clone()))
    };
    let secrets = plan
        .requests
        .iter()
        .map(|request| Ok(secret(request, find(&request.secret)?)))
        .collect::<Result<Vec<_>, _>>()?;
    let bundles = plan
        .injections
        .iter()
        .map(|injection| Ok((injection.at, STANDARD.encode(&find(&injection.secret)?.bundle))))
        .collect::<Result<Vec<_>, _>>()?;
    let mut notes = Vec::new();
    for (at, bundle) in bundles {
        let Some(one) = objects.get_mut(at) else { continue };
        if inject(one, &bundle) {
            notes.push(Note::done(FIELD, &object_name(one), "put whom to trust into it"));
        }
        forget(one);
    }
    objects.retain(|one| !is_of_cert_manager(one));
    for secret in secrets {
        replace(objects, secret);
    }
    Ok(notes)
}

/// Adds an object, or replaces the existing one.
pub(super) fn replace(objects: &mut Vec<Value>, object: Value) {
    let identity = object::Identity::of(&object);
    match objects.iter_mut().find(|one| object::Identity::of(one) == identity) {
        Some(there) => *there = object,
        None => objects.push(object),
    }
}

fn secret(request: &Request, issued: &Issued) -> Value {
    let data = [
        (CERTIFICATE, &issued.certificate),
        (KEY, &issued.key),
        (BUNDLE, &issued.bundle),
    ];
    let mut out = tls_secret(&request.certificate.namespace, &request.secret, &data);
    for (field, map) in [("labels", &request.labels), ("annotations", &request.annotations)] {
        if !map.is_empty() {
            out["metadata"][field] = json!(map);
        }
    }
    out
}

/// A Secret with a certificate.
pub(super) fn tls_secret(namespace: &str, name: &str, data: &[(&str, &String)]) -> Value {
    let data: BTreeMap<&str, String> = data.iter().map(|(key, text)| (*key, STANDARD.encode(text))).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": namespace, "name": name},
        "type": "kubernetes.io/tls",
        "data": data,
    })
}

/// Injects the CA bundle into an object. CRDs without a conversion webhook need none.
fn inject(one: &mut Value, bundle: &str) -> bool {
    let set = |config: Option<&mut Value>| {
        let config = config.and_then(Value::as_object_mut);
        config
            .map(|config| config.insert("caBundle".to_owned(), json!(bundle)))
            .is_some()
    };
    match (object::group(one), object::kind(one)) {
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            let hooks = one.get_mut("webhooks").and_then(Value::as_array_mut);
            let mut any = false;
            for hook in hooks.into_iter().flatten() {
                any |= set(hook.get_mut("clientConfig"));
            }
            any
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            set(one.pointer_mut("/spec/conversion/webhook/clientConfig"))
        }
        ("apiregistration.k8s.io", "APIService") => set(one.get_mut("spec")),
        _ => false,
    }
}

/// Removes the annotations: if cert-manager is installed later, it must not look for a missing Certificate.
fn forget(one: &mut Value) {
    let Some(metadata) = one.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.remove(INJECT_FROM);
    annotations.remove(INJECT_FROM_SECRET);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}
