//! Rules of single kinds: defaults that depend on other fields, and what may not be.

use base64::Engine as _;
use serde_json::{Value, json};
use windlass_schema::{FieldError, Kind};

use crate::object::{meta, meta_mut, text};
use crate::resource::{Resource, Special};
use crate::selector::LabelSelector;

/// Fills in what a kind derives from its other fields.
pub(crate) fn default(resource: &Resource, object: &mut Value) {
    match resource.special {
        Special::Namespace => default_namespace(object),
        Special::Secret => default_secret(object),
        Special::Pod => default_containers(object.get_mut("spec")),
        Special::Workload => {
            default_containers(object.pointer_mut("/spec/template/spec"));
        }
        Special::Service => default_service(object),
        Special::Crd => crate::crd::default(object),
        _ if resource.group == crate::rbac::GROUP => crate::rbac::default(object),
        _ => {}
    }
}

/// Writes what Kubernetes writes also when it is empty.
pub(crate) fn complete(resource: &Resource, object: &mut Value) {
    if resource.group == crate::rbac::GROUP {
        crate::rbac::complete(object);
    }
}

/// What a kind has right after its creation.
pub(crate) fn on_create(resource: &Resource, object: &mut Value) {
    match resource.special {
        Special::Pod => set(object, "status", json!({"phase": "Pending", "qosClass": "BestEffort"})),
        Special::Namespace => {
            or_set(object, "spec", json!({}));
            if let Some(spec) = object.get_mut("spec") {
                or_set(spec, "finalizers", json!([]));
                // Without it a deleted namespace would go before what is in it.
                if let Some(list) = spec.get_mut("finalizers").and_then(Value::as_array_mut)
                    && !list.iter().any(|f| f == "kubernetes")
                {
                    list.push("kubernetes".into());
                }
            }
            set(object, "status", json!({"phase": "Active"}));
        }
        Special::None if resource.kind == "PersistentVolumeClaim" || resource.kind == "PersistentVolume" => {
            set(object, "status", json!({"phase": "Pending"}));
        }
        _ => {}
    }
    if resource.status
        && !resource.is_custom()
        && resource.special != Special::Crd
        && let Some(schema) = resource.schema()
    {
        // The types of Kubernetes have a status from the start, with a zero for each number that must be there.
        or_set(object, "status", json!({}));
        windlass_schema::default(schema, object);
    }
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

fn or_set(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.entry(key).or_insert(value);
    }
}

fn default_namespace(object: &mut Value) {
    let name = meta(object, "name").to_owned();
    if !name.is_empty() {
        let labels = meta_mut(object).entry("labels").or_insert_with(|| json!({}));
        set(labels, "kubernetes.io/metadata.name", name.into());
    }
}

fn default_secret(object: &mut Value) {
    if text(object, "type").is_empty() {
        set(object, "type", "Opaque".into());
    }
    let Some(Value::Object(plain)) = object.as_object_mut().and_then(|o| o.remove("stringData")) else {
        return;
    };
    if plain.is_empty() {
        return;
    }
    or_set(object, "data", json!({}));
    if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) {
        for (key, value) in plain {
            let bytes = value.as_str().unwrap_or("").as_bytes();
            let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
            data.insert(key, encoded.into());
        }
    }
}

fn default_service(object: &mut Value) {
    if let Some(ports) = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut) {
        for port in ports {
            if port.get("targetPort").is_none()
                && let Some(number) = port.get("port").cloned()
            {
                or_set(port, "targetPort", number);
            }
        }
    }
}

fn default_containers(spec: Option<&mut Value>) {
    let Some(spec) = spec else {
        return;
    };
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let image = text(container, "image");
            let last = image.rsplit('/').next().unwrap_or("");
            let latest = !image.contains('@') && last.split_once(':').is_none_or(|(_, t)| t == "latest");
            let policy = if latest { "Always" } else { "IfNotPresent" };
            or_set(container, "imagePullPolicy", policy.into());
        }
    }
}

/// Errors of the kind's own rules.
pub(crate) fn errors(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match resource.special {
        Special::Namespace => crate::namespace::errors(object, old, &mut errors),
        Special::Secret => {
            secret_errors(object, &mut errors);
            if let Some(old) = old {
                immutable_data(object, old, &["data"], &mut errors);
                if old.get("type") != object.get("type") {
                    errors.push(FieldError::invalid(
                        "type",
                        object.get("type").cloned().unwrap_or(Value::Null),
                        "field is immutable",
                    ));
                }
            }
        }
        Special::ConfigMap => {
            config_map_errors(object, &mut errors);
            if let Some(old) = old {
                immutable_data(object, old, &["data", "binaryData"], &mut errors);
            }
        }
        Special::Workload => workload_errors(resource, object, old, &mut errors),
        Special::Pod => container_errors(object.get("spec"), "spec", &mut errors),
        Special::Crd => errors.extend(crate::crd::errors(object, old)),
        Special::Webhooks => errors.extend(crate::webhook::errors(resource, object, old)),
        _ => {}
    }
    if resource.group == crate::rbac::GROUP {
        crate::rbac::errors(&resource.kind, object, old, &mut errors);
    }
    errors
}

fn data_keys(object: &Value, field: &str, errors: &mut Vec<FieldError>) {
    for key in object
        .get(field)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(k, _)| k)
    {
        let fine = !key.is_empty()
            && key.len() <= 253
            && key != "."
            && !key.starts_with("..")
            && key
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !fine {
            errors.push(FieldError::invalid(
                format!("{field}[{key}]"),
                key.as_str().into(),
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            ));
        }
    }
}

fn config_map_errors(object: &Value, errors: &mut Vec<FieldError>) {
    data_keys(object, "data", errors);
    data_keys(object, "binaryData", errors);
    let (data, binary) = (object.get("data"), object.get("binaryData"));
    for (key, _) in data.and_then(Value::as_object).into_iter().flatten() {
        if binary.is_some_and(|b| b.get(key).is_some()) {
            errors.push(FieldError::invalid(
                format!("data[{key}]"),
                key.as_str().into(),
                "duplicate of key present in binaryData",
            ));
        }
    }
    let size = texts(data).map(str::len).chain(texts(binary).map(decoded_len)).sum();
    size_errors("", size, errors);
}

/// The texts of a map.
fn texts(map: Option<&Value>) -> impl Iterator<Item = &str> {
    map.and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(_, v)| v.as_str().unwrap_or(""))
}

/// How many bytes a base64 text stands for.
fn decoded_len(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|b| *b == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

fn size_errors(field: &str, size: usize, errors: &mut Vec<FieldError>) {
    const MAX: usize = 1 << 20;
    if size > MAX {
        errors.push(FieldError::new(
            field,
            Kind::TooLong,
            None,
            format!("may not be more than {MAX} bytes"),
        ));
    }
}

fn secret_errors(object: &Value, errors: &mut Vec<FieldError>) {
    data_keys(object, "data", errors);
    let data = object.get("data");
    size_errors("data", texts(data).map(decoded_len).sum(), errors);
    let mut require = |keys: &[&str]| {
        for key in keys {
            if data.and_then(|d| d.get(key)).is_none() {
                errors.push(FieldError::required(format!("data[{key}]"), ""));
            }
        }
    };
    match text(object, "type") {
        "kubernetes.io/tls" => require(&["tls.crt", "tls.key"]),
        "kubernetes.io/dockerconfigjson" => require(&[".dockerconfigjson"]),
        "kubernetes.io/dockercfg" => require(&[".dockercfg"]),
        "kubernetes.io/ssh-auth" => require(&["ssh-privatekey"]),
        "kubernetes.io/basic-auth" => {
            let has = |key| data.and_then(|d| d.get(key)).is_some();
            if !has("username") && !has("password") {
                require(&["username", "password"]);
            }
        }
        "kubernetes.io/service-account-token" => {
            let name = object
                .pointer("/metadata/annotations/kubernetes.io~1service-account.name")
                .and_then(Value::as_str)
                .unwrap_or("");
            if name.is_empty() {
                errors.push(FieldError::required(
                    "metadata.annotations[kubernetes.io/service-account.name]",
                    "",
                ));
            }
        }
        _ => {}
    }
}

fn immutable_data(object: &Value, old: &Value, fields: &[&str], errors: &mut Vec<FieldError>) {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    if object.get("immutable") != Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden(
            "immutable",
            "field is immutable when `immutable` is set",
        ));
    }
    for field in fields {
        if old.get(field) != object.get(field) {
            errors.push(FieldError::forbidden(
                *field,
                "field is immutable when `immutable` is set",
            ));
        }
    }
}

fn workload_errors(resource: &Resource, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let selector = object.pointer("/spec/selector");
    if resource.kind == "Job" {
        container_errors(object.pointer("/spec/template/spec"), "spec.template.spec", errors);
        return;
    }
    match selector {
        None => errors.push(FieldError::required("spec.selector", "")),
        Some(selector) => {
            let parsed = LabelSelector::from_object(selector);
            let labels = object.pointer("/spec/template/metadata/labels");
            if parsed.is_empty() {
                errors.push(FieldError::invalid(
                    "spec.selector",
                    selector.clone(),
                    "empty selector is invalid for deployment",
                ));
            } else if !parsed.matches_map(labels) {
                errors.push(FieldError::invalid(
                    "spec.template.metadata.labels",
                    labels.cloned().unwrap_or(Value::Null),
                    "`selector` does not match template `labels`",
                ));
            }
        }
    }
    if let Some(old) = old
        && old.pointer("/spec/selector") != selector
    {
        errors.push(FieldError::invalid(
            "spec.selector",
            selector.cloned().unwrap_or(Value::Null),
            "field is immutable",
        ));
    }
    if object
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .is_some_and(|n| n < 0)
    {
        errors.push(FieldError::invalid(
            "spec.replicas",
            object.pointer("/spec/replicas").cloned().unwrap_or(Value::Null),
            "must be greater than or equal to 0",
        ));
    }
    container_errors(object.pointer("/spec/template/spec"), "spec.template.spec", errors);
}

fn container_errors(spec: Option<&Value>, at: &str, errors: &mut Vec<FieldError>) {
    let containers = spec.and_then(|s| s.get("containers")).and_then(Value::as_array);
    let containers = containers.map_or(&[][..], Vec::as_slice);
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{at}.containers"), ""));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (i, container) in containers.iter().enumerate() {
        let name = text(container, "name");
        let here = format!("{at}.containers[{i}]");
        if name.is_empty() {
            errors.push(FieldError::required(format!("{here}.name"), ""));
        } else {
            for problem in crate::names::label_problems(name) {
                errors.push(FieldError::invalid(format!("{here}.name"), name.into(), problem));
            }
            if seen.contains(&name) {
                errors.push(FieldError::duplicate(format!("{here}.name"), name.into()));
            }
            seen.push(name);
        }
        if text(container, "image").is_empty() && at == "spec" {
            errors.push(FieldError::required(format!("{here}.image"), ""));
        }
    }
}
