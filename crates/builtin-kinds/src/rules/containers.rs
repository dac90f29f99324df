//! Containers of pods: defaults and validation.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::field::{
    Errors, Field, items_mut, label, maybe_one_of, non_negative, one_of, or_set, port, port_name_problems, present,
    within,
};
use crate::quantity::Quantity;
use windlass_objects::metadata::text;

/// Defaults of containers.
pub(crate) fn default(spec: &mut Value) {
    for list in ["/containers", "/initContainers", "/ephemeralContainers"] {
        for container in items_mut(spec, list) {
            one(container);
        }
    }
}

fn one(container: &mut Value) {
    or_set(container, "imagePullPolicy", pull_policy(text(container, "image")));
    or_set(container, "terminationMessagePath", "/dev/termination-log");
    or_set(container, "terminationMessagePolicy", "File");
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(name).filter(|p| p.is_object()) else {
            continue;
        };
        for (key, number) in [
            ("timeoutSeconds", 1),
            ("periodSeconds", 10),
            ("successThreshold", 1),
            ("failureThreshold", 3),
        ] {
            or_set(probe, key, number);
        }
        handler(probe);
    }
    for name in ["/lifecycle/postStart", "/lifecycle/preStop"] {
        if let Some(hook) = container.pointer_mut(name) {
            handler(hook);
        }
    }
    for variable in items_mut(container, "/env") {
        if let Some(reference) = variable.pointer_mut("/valueFrom/fieldRef") {
            or_set(reference, "apiVersion", "v1");
        }
    }
}

/// `Always` for an image with the tag `latest`, or with neither tag nor digest.
fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or("");
    let latest = !image.contains('@') && last.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    if latest { "Always" } else { "IfNotPresent" }
}

fn handler(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet").filter(|g| g.is_object()) {
        or_set(get, "path", "/");
        or_set(get, "scheme", "HTTP");
    }
}

/// In a pod, limits are the defaults of requests.
pub(crate) fn request_limits(spec: &mut Value) {
    for list in ["/containers", "/initContainers"] {
        for container in items_mut(spec, list) {
            let Some(Value::Object(limits)) = container.pointer("/resources/limits").cloned() else {
                continue;
            };
            let Some(resources) = container.get_mut("resources") else {
                continue;
            };
            or_set(resources, "requests", json!({}));
            if let Some(requests) = resources.get_mut("requests") {
                for (name, amount) in limits {
                    or_set(requests, &name, amount);
                }
            }
        }
    }
}

/// Validates a list of containers.
pub(crate) fn check(list: &Field<'_>, volumes: &BTreeSet<&str>, init: bool, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for container in list.items() {
        common(&container, volumes, errors);
        let name = container.get("name");
        if !name.is_empty() && !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
        let lasts = !init || container.get("restartPolicy").text() == "Always";
        for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
            let field = container.get(kind);
            if field.is_set() && !lasts {
                errors.push(field.forbidden("may not be set for init containers without restartPolicy=Always"));
            } else if field.is_set() {
                probe(&field, kind != "readinessProbe", errors);
            }
        }
        let hooks = container.get("lifecycle");
        if hooks.is_set() && lasts {
            for hook in ["postStart", "preStop"].map(|h| hooks.get(h)) {
                if hook.is_set() {
                    handler_rules(&hook, errors);
                }
            }
        }
    }
}

fn common(container: &Field<'_>, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    let name = container.get("name");
    present(&name, errors);
    label(&name, errors);
    present(&container.get("image"), errors);
    maybe_one_of(
        &container.get("terminationMessagePolicy"),
        &["FallbackToLogsOnError", "File"],
        errors,
    );
    ports(&container.get("ports"), errors);
    env(container, errors);
    mounts(&container.get("volumeMounts"), volumes, errors);
    one_of(
        &container.get("imagePullPolicy"),
        &["Always", "IfNotPresent", "Never"],
        errors,
    );
    resources(&container.get("resources"), errors);
}

fn ports(ports: &Field<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.get("name");
        if !name.is_empty() {
            let problems = port_name_problems(name.text());
            let fine = problems.is_empty();
            errors.extend(problems.into_iter().map(|p| name.invalid(p)));
            if fine && !names.insert(name.text()) {
                errors.push(name.duplicate());
            }
        }
        let number = port.get("containerPort");
        if number.int().unwrap_or(0) == 0 {
            errors.push(number.required(""));
        } else {
            within(&number, 1, 65535, errors);
        }
        if port.get("hostPort").int().unwrap_or(0) != 0 {
            within(&port.get("hostPort"), 1, 65535, errors);
        }
        one_of(&port.get("protocol"), &["SCTP", "TCP", "UDP"], errors);
    }
}

fn env(container: &Field<'_>, errors: &mut Errors) {
    for variable in container.get("env").items() {
        let name = variable.get("name");
        if name.is_empty() {
            errors.push(name.required(""));
        } else if name.text().contains('=') || name.text().chars().any(|c| !c.is_ascii_graphic() && c != ' ') {
            errors.push(name.invalid(
                "a valid environment variable name must consist only of printable ASCII characters other than '='",
            ));
        }
        let from = variable.get("valueFrom");
        if !from.is_set() {
            continue;
        }
        if !variable.get("value").is_empty() {
            errors.push(windlass_schema::FieldError::invalid(
                from.path.clone(),
                "".into(),
                "may not be specified when `value` is not empty",
            ));
        }
        let sources = [
            "fieldRef",
            "resourceFieldRef",
            "configMapKeyRef",
            "secretKeyRef",
            "fileKeyRef",
        ];
        match sources.iter().filter(|s| from.get(s).is_set()).count() {
            0 => errors.push(windlass_schema::FieldError::invalid(
                from.path.clone(),
                "".into(),
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            )),
            1 => {}
            _ => errors.push(windlass_schema::FieldError::invalid(
                from.path.clone(),
                "".into(),
                "may not have more than one field specified at a time",
            )),
        }
        for source in ["configMapKeyRef", "secretKeyRef"].map(|s| from.get(s)) {
            if source.is_set() {
                present(&source.get("name"), errors);
                present(&source.get("key"), errors);
            }
        }
        if from.get("fieldRef").is_set() {
            present(&from.get("fieldRef").get("fieldPath"), errors);
        }
    }
}

fn mounts(mounts: &Field<'_>, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    let mut paths = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        if name.is_empty() {
            errors.push(name.required(""));
        }
        if !volumes.contains(name.text()) {
            errors.push(name.not_found());
        }
        if path.is_empty() {
            errors.push(path.required(""));
        } else if !paths.insert(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        for key in ["subPath", "subPathExpr"] {
            // Kubernetes omits the index of the mount.
            let sub = Field {
                path: format!("{}.{key}", mounts.path),
                value: mount.get(key).value,
            };
            if sub.text().starts_with('/') {
                errors.push(sub.invalid("must be a relative path"));
            } else if sub.text().split('/').any(|part| part == "..") {
                errors.push(sub.invalid("must not contain '..'"));
            }
        }
    }
}

/// Validates requests and limits: not negative, and no request above its limit.
pub(crate) fn resources(resources: &Field<'_>, errors: &mut Errors) {
    let amount = |field: &Field<'_>| Quantity::parse(field.text());
    let limits = resources.get("limits");
    for (name, limit) in limits.entries() {
        amounts(name, &limit, errors);
    }
    let requests = resources.get("requests");
    for (name, request) in requests.entries() {
        amounts(name, &request, errors);
        let limit = Field {
            path: String::new(),
            value: &limits.value[name],
        };
        if !limit.is_set() {
            continue;
        }
        if let (Some(want), Some(most)) = (amount(&request), amount(&limit))
            && want.compare(most) == Ordering::Greater
        {
            errors.push(windlass_schema::FieldError::invalid(
                requests.path.clone(),
                request.value.clone(),
                format!("must be less than or equal to {name} limit of {}", limit.text()),
            ));
        }
    }
}

fn amounts(name: &str, amount: &Field<'_>, errors: &mut Errors) {
    let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !standard && !name.contains('/') {
        let named = windlass_schema::FieldError::invalid(
            amount.path.clone(),
            name.into(),
            "must be a standard resource type or fully qualified",
        );
        errors.push(named);
        errors.push(windlass_schema::FieldError::invalid(
            amount.path.clone(),
            name.into(),
            "must be a standard resource for containers",
        ));
    }
    if let Some(parsed) = Quantity::parse(amount.text()) {
        if parsed.sign() == Ordering::Less {
            errors.push(amount.invalid("must be greater than or equal to 0"));
        }
        if name.contains('/') && !parsed.is_whole() {
            errors.push(amount.invalid("must be an integer"));
        }
    }
}

fn probe(probe: &Field<'_>, only_once: bool, errors: &mut Errors) {
    handler_rules(probe, errors);
    for key in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        non_negative(&probe.get(key), errors);
    }
    if only_once && probe.get("successThreshold").int().is_some_and(|n| n != 1) {
        errors.push(probe.get("successThreshold").invalid("must be 1"));
    }
}

fn handler_rules(handler: &Field<'_>, errors: &mut Errors) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let mut found = 0;
    for kind in kinds.map(|k| handler.get(k)).iter().filter(|k| k.is_set()) {
        found += 1;
        if found > 1 {
            errors.push(kind.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        match kind.path.rsplit('.').next() {
            Some("exec") => present(&kind.get("command"), errors),
            Some("httpGet") => {
                present(&kind.get("path"), errors);
                port(&kind.get("port"), errors);
                maybe_one_of(&kind.get("scheme"), &["HTTP", "HTTPS"], errors);
                for header in kind.get("httpHeaders").items() {
                    present(&header.get("name"), errors);
                }
            }
            Some("tcpSocket") => port(&kind.get("port"), errors),
            Some("grpc") => within(&kind.get("port"), 1, 65535, errors),
            _ => {}
        }
    }
    if found == 0 {
        errors.push(handler.required("must specify a handler type"));
    }
}
