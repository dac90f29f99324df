//! Adapts ports, probes, Services and mounts to the configured addresses of a manager.

use serde_json::{Map, Value, json};

use super::{Note, container_mut, object_name};
use crate::args::Arguments;

/// The default folder of the webhook certificate.
const CERT_DIR: &str = "/tmp/k8s-webhook-server/serving-certs";

/// The serving addresses in a manager's flags.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Endpoints {
    webhook: Option<String>,
    health: Option<String>,
    metrics: Option<String>,
    diagnostics: Option<String>,
    cert_dir: Option<String>,
}

/// The ports of a Pod that have changed.
pub(super) struct Move {
    namespace: Value,
    labels: Map<String, Value>,
    ports: Vec<Shift>,
}

/// A port before and after the change. All ports of a Pod are handled together, since two may be swapped.
struct Shift {
    field: String,
    from: i64,
    to: i64,
}

/// A port that a manager serves.
struct Endpoint<'a> {
    before: &'a Option<String>,
    after: &'a Option<String>,
    /// The names of its container ports.
    names: &'a [&'a str],
    /// The default port.
    usual: i64,
}

impl Endpoints {
    pub(super) fn of(args: &Arguments) -> Self {
        let flag = |field: &str| {
            let flag = super::flags::FLAGS.iter().find(|flag| flag.field == field)?;
            flag.names().find_map(|name| args.get(name))
        };
        Self {
            webhook: flag("webhook.port"),
            health: flag("health.healthProbeBindAddress"),
            metrics: flag("metrics.bindAddress"),
            diagnostics: flag("metrics.diagnosticsAddress"),
            cert_dir: flag("webhook.certDir"),
        }
    }
}

/// The port of `:8443`, `[::]:8443` or `8443`.
fn port(address: &str) -> Option<i64> {
    let port = address.rsplit_once(':').map_or(address, |(_, port)| port);
    port.parse().ok().filter(|port| (1..=65535).contains(port))
}

/// Changes container ports, probes and mounts, and returns the moved ports.
pub(super) fn follow(
    object: &mut Value,
    container: &str,
    before: &Endpoints,
    after: &Endpoints,
    field: &str,
    notes: &mut Vec<Note>,
    moves: &mut Vec<Move>,
) {
    let name = object_name(object);
    let labels = object["spec"]["template"]["metadata"]["labels"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let namespace = object["metadata"]["namespace"].clone();
    // Metrics and diagnostics are the same endpoint in managers that have both flags.
    let metrics: &[&str] = if after.diagnostics.is_some() { &[] } else { &["metrics"] };
    let endpoints = [
        (
            "webhook",
            &before.webhook,
            &after.webhook,
            &["webhook-server", "webhook"][..],
            9443,
        ),
        (
            "health",
            &before.health,
            &after.health,
            &["healthz", "health"][..],
            9440,
        ),
        ("metrics", &before.metrics, &after.metrics, metrics, 8080),
        (
            "metrics",
            &before.diagnostics,
            &after.diagnostics,
            &["diagnostics", "metrics"][..],
            8443,
        ),
    ];
    let container_name = container.to_owned();
    let Some(container) = container_mut(object, container) else {
        return;
    };
    let mut ports = Vec::new();
    for (setting, before, after, names, usual) in endpoints {
        let endpoint = Endpoint {
            before,
            after,
            names,
            usual,
        };
        let Some((from, to)) = endpoint.moved(container) else {
            continue;
        };
        let field = format!("{field}.{setting}");
        ports.push(Shift { field, from, to });
    }
    for shift in renumber(container, &ports) {
        let what = format!("moved port {} of the container to {}", shift.from, shift.to);
        notes.push(Note::done(&shift.field, &name, what).in_container(&container_name));
    }
    let mut note = |setting: &str, what: String| {
        notes.push(Note::done(&format!("{field}.{setting}"), &name, what).in_container(&container_name));
    };
    if before.health != after.health && after.health.as_deref() == Some("0") && drop_probes(container) {
        note(
            "health.healthProbeBindAddress",
            "took the probes away: nothing answers them".to_owned(),
        );
    }
    if before.cert_dir != after.cert_dir
        && let Some(dir) = &after.cert_dir
        && mount(container, before.cert_dir.as_deref().unwrap_or(CERT_DIR), dir)
    {
        note("webhook.certDir", format!("mounted the certificate at {dir}"));
    }
    if !ports.is_empty() {
        moves.push(Move {
            namespace,
            labels,
            ports,
        });
    }
}

impl Endpoint<'_> {
    /// The old and new port of the endpoint, if it moved.
    fn moved(&self, container: &Value) -> Option<(i64, i64)> {
        if self.before == self.after {
            return None;
        }
        let to = port(self.after.as_deref()?)?;
        let named = |name: &&str| {
            let ports = container["ports"].as_array()?;
            ports.iter().find(|port| port["name"] == **name)?["containerPort"].as_i64()
        };
        let told = self.before.as_deref().and_then(port);
        let from = told.or_else(|| self.names.iter().find_map(named)).unwrap_or(self.usual);
        (from != to).then_some((from, to))
    }
}

/// The items of a list; empty without a list.
fn list<'v>(value: &'v mut Value, path: &str) -> impl Iterator<Item = &'v mut Value> {
    let items = value.pointer_mut(path).and_then(Value::as_array_mut);
    items.into_iter().flatten()
}

/// Renumbers container ports, and the probes that refer to them by number. Returns the ones that existed.
fn renumber<'s>(container: &mut Value, shifts: &'s [Shift]) -> Vec<&'s Shift> {
    let mut found = vec![false; shifts.len()];
    let mut change = |number: Option<&mut Value>| {
        let Some(number) = number else { return };
        if let Some(nth) = shifts.iter().position(|shift| *number == json!(shift.from)) {
            *number = json!(shifts[nth].to);
            found[nth] = true;
        }
    };
    for port in list(container, "/ports") {
        change(port.get_mut("containerPort"));
        change(port.get_mut("hostPort"));
    }
    for probe in PROBES {
        for how in ["httpGet", "tcpSocket", "grpc"] {
            change(
                container
                    .get_mut(probe)
                    .and_then(|probe| probe.get_mut(how)?.get_mut("port")),
            );
        }
    }
    shifts
        .iter()
        .zip(found)
        .filter(|(_, found)| *found)
        .map(|(shift, _)| shift)
        .collect()
}

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Removes HTTP probes: without an endpoint, they would always fail.
fn drop_probes(container: &mut Value) -> bool {
    let Some(container) = container.as_object_mut() else {
        return false;
    };
    let http =
        |container: &Map<String, Value>, probe: &str| container.get(probe).is_some_and(|p| p["httpGet"].is_object());
    let found: Vec<&str> = PROBES.into_iter().filter(|probe| http(container, probe)).collect();
    for probe in &found {
        container.remove(*probe);
    }
    !found.is_empty()
}

fn mount(container: &mut Value, from: &str, to: &str) -> bool {
    let same = |path: &Value| path.as_str().map(|path| path.trim_end_matches('/')) == Some(from.trim_end_matches('/'));
    let found = list(container, "/volumeMounts").find(|mount| same(&mount["mountPath"]));
    match found {
        Some(mount) => {
            mount["mountPath"] = json!(to);
            true
        }
        None => false,
    }
}

/// Updates Services that refer to the port by number; references by name need no change.
pub(super) fn services(objects: &mut [Value], moved: &Move, notes: &mut Vec<Note>) {
    for object in objects {
        if object["kind"] != "Service" || object["metadata"]["namespace"] != moved.namespace {
            continue;
        }
        let selects = object["spec"]["selector"].as_object().is_some_and(|selector| {
            !selector.is_empty() && selector.iter().all(|(key, value)| moved.labels.get(key) == Some(value))
        });
        if !selects {
            continue;
        }
        let name = object_name(object);
        for port in list(object, "/spec/ports") {
            // Without a target, the port is its own target.
            let target = port
                .get("targetPort")
                .filter(|target| !target.is_null())
                .unwrap_or(&port["port"]);
            if let Some(shift) = moved.ports.iter().find(|shift| *target == json!(shift.from)) {
                port["targetPort"] = json!(shift.to);
                notes.push(Note::done(
                    &shift.field,
                    &name,
                    format!("leads to port {} now", shift.to),
                ));
            }
        }
    }
}
