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
pub struct Counters(Mutex<BTreeMap<RequestKey, u64>>);

impl Counters {
    pub(crate) fn add(&self, mut key: RequestKey) {
        const MAX_KINDS: usize = 10_000;
        const MAX_TEXT: usize = 128;
        for text in [&mut key.group, &mut key.resource, &mut key.agent] {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            // Keys are kept, so unused capacity is freed.
            text.shrink_to_fit();
        }
        let mut map = self.0.lock();
        if map.len() < MAX_KINDS || map.contains_key(&key) {
            *map.entry(key).or_default() += 1;
        }
    }

    /// All counters.
    pub fn snapshot(&self) -> BTreeMap<RequestKey, u64> {
        self.0.lock().clone()
    }

    /// The number of write requests: everything but get, list and watch.
    pub fn writes(&self) -> u64 {
        self.0
            .lock()
            .iter()
            .filter(|(k, _)| !matches!(k.verb.as_str(), "get" | "list" | "watch"))
            .map(|(_, n)| n)
            .sum()
    }

    /// Resets all counters.
    pub(crate) fn reset(&self) {
        self.0.lock().clear();
    }

    /// The counters in the text format of Prometheus.
    pub(crate) fn render(&self) -> String {
        let mut out = String::from(
            "# HELP apiserver_request_total Counter of apiserver requests broken out for each verb, group, resource, client and code.\n# TYPE apiserver_request_total counter\n",
        );
        for (key, count) in self.0.lock().iter() {
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
