//! Table cells of pods, which summarize the state of their containers.

use serde_json::Value;

use super::NONE;
use super::text::{age, condition, list, number, or, since, string};
use windlass_objects::metadata::{is_deleting, text};

/// All cells except the name.
pub(crate) fn cells(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let seen = look(o);
    let restarts = match seen.last_restart {
        Some(time) if seen.restarts > 0 => {
            let ago = since(&time.to_string(), now);
            format!("{} ({} ago)", seen.restarts, ago.as_str().unwrap_or(""))
        }
        _ => seen.restarts.to_string(),
    };
    let ip = match list(o, "/status/podIPs").first() {
        Some(first) => text(first, "ip"),
        None => string(o, "/status/podIP"),
    };
    let gates = list(o, "/spec/readinessGates");
    let open = gates.iter().filter(|g| is_true(o, text(g, "conditionType"))).count();
    vec![
        format!("{}/{}", seen.ready, seen.total).into(),
        seen.reason.into(),
        restarts.into(),
        age(o, now),
        or(ip, NONE),
        or(string(o, "/spec/nodeName"), NONE),
        or(string(o, "/status/nominatedNodeName"), NONE),
        if gates.is_empty() {
            NONE.into()
        } else {
            format!("{open}/{}", gates.len()).into()
        },
    ]
}

fn is_true(o: &Value, kind: &str) -> bool {
    condition(o, kind).is_some_and(|c| text(c, "status") == "True")
}

struct Seen {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<jiff::Timestamp>,
}

impl Seen {
    fn restarted(&mut self, status: &Value) {
        self.restarts += number(status, "/restartCount");
        let time = string(status, "/lastState/terminated/finishedAt").parse().ok();
        self.last_restart = self.last_restart.max(time);
    }
}

/// Whether an init container is a sidecar, which runs beside the others.
fn stays(o: &Value, name: &str) -> bool {
    list(o, "/spec/initContainers")
        .iter()
        .any(|c| text(c, "name") == name && text(c, "restartPolicy") == "Always")
}

fn look(o: &Value) -> Seen {
    let lasting = list(o, "/spec/initContainers")
        .iter()
        .filter(|c| text(c, "restartPolicy") == "Always")
        .count();
    let mut seen = Seen {
        reason: string(o, "/status/phase").to_owned(),
        ready: 0,
        total: list(o, "/spec/containers").len() + lasting,
        restarts: 0,
        last_restart: None,
    };
    let reason = string(o, "/status/reason");
    if !reason.is_empty() {
        reason.clone_into(&mut seen.reason);
    }
    if condition(o, "PodScheduled").is_some_and(|c| text(c, "reason") == "SchedulingGated") {
        "SchedulingGated".clone_into(&mut seen.reason);
    }
    let initializing = init_containers(o, &mut seen);
    if !initializing || is_true(o, "Initialized") {
        main_containers(o, &mut seen);
    }
    if is_deleting(o) {
        if reason == "NodeLost" {
            "Unknown".clone_into(&mut seen.reason);
        } else if !matches!(string(o, "/status/phase"), "Failed" | "Succeeded") {
            "Terminating".clone_into(&mut seen.reason);
        }
    }
    seen
}

fn init_containers(o: &Value, seen: &mut Seen) -> bool {
    let all = list(o, "/spec/initContainers").len();
    for (i, status) in list(o, "/status/initContainerStatuses").iter().enumerate() {
        seen.restarted(status);
        let lasting = stays(o, text(status, "name"));
        let ended = status.pointer("/state/terminated");
        if ended.is_some_and(|t| t["exitCode"] == 0) {
            continue;
        }
        if lasting && status["started"] == Value::Bool(true) {
            seen.ready += usize::from(status["ready"] == Value::Bool(true));
            continue;
        }
        let waiting = string(status, "/state/waiting/reason");
        seen.reason = match ended {
            Some(ended) => format!("Init:{}", why_ended(ended)),
            None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
            None => format!("Init:{i}/{all}"),
        };
        return true;
    }
    false
}

fn why_ended(ended: &Value) -> String {
    let reason = text(ended, "reason");
    if !reason.is_empty() {
        reason.to_owned()
    } else if number(ended, "/signal") != 0 {
        format!("Signal:{}", number(ended, "/signal"))
    } else {
        format!("ExitCode:{}", number(ended, "/exitCode"))
    }
}

fn main_containers(o: &Value, seen: &mut Seen) {
    let mut running = false;
    for status in list(o, "/status/containerStatuses").iter().rev() {
        seen.restarted(status);
        let waiting = string(status, "/state/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut seen.reason);
        } else if let Some(ended) = status.pointer("/state/terminated") {
            seen.reason = why_ended(ended);
        } else if status["ready"] == Value::Bool(true) && status.pointer("/state/running").is_some() {
            running = true;
            seen.ready += 1;
        }
    }
    if seen.reason == "Completed" && running {
        let ready = is_true(o, "Ready");
        if ready { "Running" } else { "NotReady" }.clone_into(&mut seen.reason);
    }
}
