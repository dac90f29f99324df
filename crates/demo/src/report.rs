//! The report of the demo, as text and as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use windlass_apiserver::RequestKey;

use crate::terminal::{BOLD, DIM, GOOD, styled};

/// Requests by verb and resource.
pub(crate) type Requests = BTreeMap<String, BTreeMap<String, u64>>;

/// A finished step.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    /// `create`, `provide`, `settle`, `idle`, `scale`, `upgrade`, `refuse` or `delete`.
    pub(crate) name: &'static str,
    /// A description.
    pub(crate) what: String,
    /// Its duration.
    pub(crate) seconds: f64,
    /// The processor time of the process during the step.
    pub(crate) cpu_seconds: Option<f64>,
    /// Writes of the controllers to the API server by verb and resource.
    pub(crate) writes: Requests,
    /// Their sum, without events.
    pub(crate) writes_total: u64,
    /// The sum of the events.
    pub(crate) events_total: u64,
    /// The most memory the process had until the end of the step.
    pub(crate) peak_memory_bytes: Option<u64>,
}

/// The result of a demo with externally managed infrastructure.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct External {
    /// The system that manages it.
    pub(crate) system: String,
    /// The messages of the first Cluster's conditions while it waited.
    pub(crate) waited_for: Vec<String>,
    /// Why the infrastructure cannot be handed over to the provider.
    pub(crate) refusal: Option<String>,
    /// The number of infrastructure objects.
    pub(crate) objects: u64,
    /// The number of writes by the provider.
    pub(crate) provider_writes: u64,
    /// All field managers of these objects.
    pub(crate) managers: Vec<String>,
}

/// The whole report.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) clusters: u32,
    pub(crate) control_plane_replicas: u32,
    pub(crate) workers: u32,
    pub(crate) kubernetes_version: String,
    pub(crate) steps: Vec<Step>,
    /// From the start of the program to the end of the last step.
    pub(crate) seconds: f64,
    /// From the start of the program to the first answered request.
    pub(crate) start_seconds: f64,
    /// Writes while creating, without events, by the number of Machines.
    pub(crate) writes_per_machine: f64,
    /// Events written while creating, by the number of Machines.
    pub(crate) events_per_machine: f64,
    /// The peak of the process's memory.
    pub(crate) peak_memory_bytes: Option<u64>,
    /// With `--externally-managed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) externally_managed: Option<External>,
}

/// Seconds with three digits.
pub(crate) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

/// The writes of a user agent between two snapshots.
pub(crate) fn writes(before: &BTreeMap<RequestKey, u64>, after: &BTreeMap<RequestKey, u64>, agent: &str) -> Requests {
    let mut requests = Requests::new();
    for (key, count) in after {
        let new = count - before.get(key).unwrap_or(&0);
        if new == 0 || key.agent != agent || matches!(key.verb.as_str(), "get" | "list" | "watch") {
            continue;
        }
        let resource = if key.code < 300 {
            key.resource.clone()
        } else {
            format!("{} ({})", key.resource, key.code)
        };
        *requests
            .entry(key.verb.clone())
            .or_default()
            .entry(resource)
            .or_default() += new;
    }
    requests
}

fn is_event(resource: &str) -> bool {
    resource == "events" || resource.starts_with("events ")
}

/// The sum of requests; events or all others.
pub(crate) fn sum(requests: &Requests, events: bool) -> u64 {
    let all = requests.values().flatten();
    all.filter(|(resource, _)| is_event(resource) == events)
        .map(|(_, count)| count)
        .sum()
}

/// A ratio with one digit.
#[expect(clippy::cast_precision_loss, reason = "counts of a demo are far below 2^52")]
pub(crate) fn per(count: u64, machines: u32) -> f64 {
    if machines == 0 {
        return 0.0;
    }
    (count as f64 / f64::from(machines) * 10.0).round() / 10.0
}

/// The peak of resident memory, from the text of `/proc/self/status`.
pub(crate) fn peak_memory(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The processor time of a process, from the text of `/proc/self/stat`.
#[expect(clippy::cast_precision_loss, reason = "a process does not run for 2^52 ticks")]
pub(crate) fn cpu_seconds(stat: &str) -> Option<f64> {
    // The name of the program, in parentheses, may contain anything. User and system time are the 14th and the 15th field, in
    // hundredths of a second on every architecture.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) as f64 / 100.0)
}

impl Report {
    /// The report as text lines, with what it cost on request.
    pub(crate) fn lines(&self, costs: bool) -> Vec<String> {
        let mut lines = vec![styled(BOLD, "STEP      SECONDS  WRITES  WHAT")];
        for step in &self.steps {
            lines.push(format!(
                "{:<9} {:>7.2} {:>7}  {}",
                step.name, step.seconds, step.writes_total, step.what
            ));
        }
        lines.push(format!("{:<9} {:>7.2}", "all", self.seconds));
        if costs {
            lines.push(String::new());
            lines.extend(self.writes());
        }
        if let Some(external) = &self.externally_managed {
            let objects = match external.objects {
                1 => "the DevCluster".to_owned(),
                many => format!("the {many} DevClusters"),
            };
            let figure = format!("the provider wrote {} times to {objects}", external.provider_writes);
            lines.push(format!(
                "{}; others did: {}",
                styled(GOOD, &figure),
                external.managers.join(", ")
            ));
        }
        if let Some(bytes) = self.peak_memory_bytes.filter(|_| costs) {
            lines.push(format!("peak memory {} MiB", bytes >> 20));
        }
        lines
    }

    /// What the controllers wrote while clusters were created.
    fn writes(&self) -> Vec<String> {
        let mut lines = Vec::new();
        // Externally managed infrastructure splits the creation into two steps.
        let creation = self
            .steps
            .iter()
            .filter(|step| ["create", "provide"].contains(&step.name));
        let mut creating = Requests::new();
        for (verb, resources) in creation.flat_map(|step| &step.writes) {
            let all = creating.entry(verb.clone()).or_default();
            for (name, count) in resources {
                *all.entry(name.clone()).or_default() += count;
            }
        }
        if !self.steps.is_empty() {
            lines.push(styled(BOLD, "API writes while creating"));
            for (verb, resources) in &creating {
                let mut kinds: Vec<(&String, &u64)> = resources.iter().collect();
                kinds.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
                let kinds: Vec<String> = kinds.iter().map(|(name, count)| format!("{name} {count}")).collect();
                lines.push(format!("  {verb:<7} {}", styled(DIM, &kinds.join(", "))));
            }
            let figure = format!("{} writes per Machine", self.writes_per_machine);
            lines.push(format!(
                "  {}, and {} events",
                styled(GOOD, &figure),
                self.events_per_machine
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(verb: &str, resource: &str, agent: &str, code: u16) -> RequestKey {
        RequestKey {
            verb: verb.to_owned(),
            group: String::new(),
            resource: resource.to_owned(),
            agent: agent.to_owned(),
            code,
        }
    }

    #[test]
    fn only_the_controllers_new_writes_count() {
        let before = BTreeMap::from([(key("apply", "machines", "us", 200), 2)]);
        let after = BTreeMap::from([
            (key("apply", "machines", "us", 200), 5),
            (key("apply", "machines", "us", 409), 1),
            (key("apply", "machines", "them", 200), 9),
            (key("watch", "machines", "us", 200), 9),
            (key("create", "events", "us", 201), 4),
        ]);
        let found = writes(&before, &after, "us");
        assert_eq!(
            found["apply"],
            BTreeMap::from([("machines".to_owned(), 3), ("machines (409)".to_owned(), 1)])
        );
        assert_eq!((sum(&found, false), sum(&found, true)), (4, 4));
        assert_eq!(format!("{:.1}", per(4, 3)), "1.3");
        assert_eq!(format!("{:.1}", per(4, 0)), "0.0");
    }

    #[test]
    fn what_is_provided_from_outside_belongs_to_the_creation() {
        let step = |name, count| Step {
            name,
            what: String::new(),
            seconds: 1.0,
            cpu_seconds: None,
            writes: Requests::from([("apply".to_owned(), BTreeMap::from([("machines".to_owned(), count)]))]),
            writes_total: count,
            events_total: 0,
            peak_memory_bytes: None,
        };
        let mut report = Report {
            steps: vec![step("create", 2), step("provide", 3), step("scale", 9)],
            ..Report::default()
        };
        let lines = |report: &Report, costs| anstream::adapter::strip_str(&report.lines(costs).join("\n")).to_string();
        let costs = lines(&report, true);
        assert!(costs.contains("  apply   machines 5\n"), "{costs}");
        let told = |report: &Report| lines(report, false);
        assert!(!told(&report).contains("machines 5"), "{}", told(&report));
        assert!(!told(&report).contains("the provider wrote"));
        report.externally_managed = Some(External {
            objects: 2,
            managers: vec!["capi-manager".to_owned(), "terraform".to_owned()],
            ..External::default()
        });
        let line = "the provider wrote 0 times to the 2 DevClusters; others did: capi-manager, terraform";
        assert!(told(&report).contains(line), "{}", told(&report));
    }

    #[test]
    fn processor_time_is_user_and_system_time() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("7 (a) S 1"), None);
    }

    #[test]
    fn peak_memory_is_read_from_the_kernels_text() {
        assert_eq!(peak_memory("VmPeak:\t 9 kB\nVmHWM:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(peak_memory("nothing"), None);
    }
}
