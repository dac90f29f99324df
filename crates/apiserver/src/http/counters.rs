//! Counters of requests.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use parking_lot::Mutex;

/// The labels of a request counter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `apply`, `delete`, `deletecollection`.
    pub verb: String,
    /// Group of the resource.
    pub group: String,
    /// Resource, with its subresource: `pods/status`.
    pub resource: String,
    /// User agent, up to the first space.
    pub agent: String,
    /// HTTP status code.
    pub code: u16,
}

/// Requests, counted since the start.
#[derive(Debug, Default)]
pub struct Counters(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    map: BTreeMap<RequestKey, u64>,
    /// How many of the keys are of requests that failed.
    failed: usize,
}

/// Keys that are kept. Clients choose paths and agents.
const MAX_KEYS: usize = 10_000;
/// Of these, keys of requests that failed: every client can send those.
const MAX_FAILED: usize = 5_000;
/// Stands for all names beyond the limits.
const OTHER: &str = "other";

impl Counters {
    pub(crate) fn add(&self, mut key: RequestKey) {
        const MAX_TEXT: usize = 128;
        for text in [&mut key.group, &mut key.resource, &mut key.agent] {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            // Keys are kept, so unused capacity is freed.
            text.shrink_to_fit();
        }
        let is_failed = key.code >= 400;
        let mut counts = self.0.lock();
        if !counts.map.contains_key(&key) {
            if counts.map.len() >= MAX_KEYS || is_failed && counts.failed >= MAX_FAILED {
                for text in [&mut key.group, &mut key.resource, &mut key.agent] {
                    OTHER.clone_into(text);
                }
            } else {
                counts.failed += usize::from(is_failed);
            }
        }
        *counts.map.entry(key).or_default() += 1;
    }

    /// All counters.
    pub fn snapshot(&self) -> BTreeMap<RequestKey, u64> {
        self.0.lock().map.clone()
    }

    /// The number of write requests: everything but get, list and watch.
    pub fn writes(&self) -> u64 {
        self.0
            .lock()
            .map
            .iter()
            .filter(|(k, _)| !matches!(k.verb.as_str(), "get" | "list" | "watch"))
            .map(|(_, n)| n)
            .sum()
    }

    /// Resets all counters.
    pub(crate) fn reset(&self) {
        *self.0.lock() = Counts::default();
    }

    /// The counters in the text format of Prometheus.
    pub(crate) fn render(&self) -> String {
        let mut out = String::from(
            "# HELP apiserver_request_total Counter of apiserver requests broken out for each verb, group, resource, client and code.\n# TYPE apiserver_request_total counter\n",
        );
        for (key, count) in &self.0.lock().map {
            let escape = |s: &str| s.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(
                out,
                "apiserver_request_total{{verb=\"{}\",group=\"{}\",resource=\"{}\",client=\"{}\",code=\"{}\"}} {count}",
                key.verb.to_uppercase(),
                escape(&key.group),
                escape(&key.resource),
                escape(&key.agent),
                key.code,
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_fail_leave_room_for_others() {
        let counters = Counters::default();
        let add = |resource: String, code: u16| {
            let (group, agent) = (String::new(), String::new());
            counters.add(RequestKey {
                verb: "get".to_owned(),
                group,
                resource,
                agent,
                code,
            });
        };
        for number in 0..MAX_FAILED + 100 {
            add(format!("r{number}"), 403);
        }
        add("pods".to_owned(), 200);
        let counted = counters.snapshot();
        assert_eq!(counted.len(), MAX_FAILED + 2);
        let of = |name: &str| {
            counted
                .iter()
                .find(|(key, _)| key.resource == name)
                .map(|(_, count)| *count)
        };
        assert_eq!((of(OTHER), of("pods")), (Some(100), Some(1)));
    }

    #[test]
    fn long_names_are_cut() {
        let counters = Counters::default();
        counters.add(RequestKey {
            verb: "get".to_owned(),
            group: String::new(),
            resource: "ü".repeat(10_000),
            agent: "a".repeat(10_000),
            code: 404,
        });
        let (key, _) = counters.snapshot().pop_first().unwrap();
        assert_eq!((key.resource.len(), key.agent.len()), (128, 128));
    }
}
