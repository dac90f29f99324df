//! The rows of requests by host. They are removed when the host is no longer used: clusters come and go.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use super::{HostLabel, Metrics, RequestLabels};

/// The hosts in use.
#[derive(Default)]
pub(super) struct Hosts(Mutex<HashMap<String, Host>>);

#[derive(Default)]
struct Host {
    users: usize,
    rows: HashSet<RequestLabels>,
}

/// A host whose requests are counted. Its rows exist as long as one of these does.
pub struct CountedHost {
    metrics: Metrics,
    name: String,
}

impl std::fmt::Debug for CountedHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CountedHost")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl CountedHost {
    pub(super) fn new(metrics: Metrics, name: String) -> Self {
        let mut hosts = metrics.0.hosts.0.lock();
        hosts.entry(name.clone()).or_default().users += 1;
        drop(hosts);
        Self { metrics, name }
    }

    /// Counts an answered request.
    pub(crate) fn request(&self, code: &str, method: &str) {
        let labels = RequestLabels {
            code: code.to_owned(),
            method: method.to_owned(),
            host: self.name.clone(),
        };
        self.metrics.0.requests.get_or_create(&labels).inc();
        let mut hosts = self.metrics.0.hosts.0.lock();
        if let Some(host) = hosts.get_mut(&self.name)
            && !host.rows.contains(&labels)
        {
            host.rows.insert(labels);
        }
    }

    /// Counts a watch that the host has begun to answer. Its request is counted separately.
    pub(crate) fn watch(&self) {
        self.metrics.0.watches.get_or_create(&self.label()).inc();
    }

    fn label(&self) -> HostLabel {
        HostLabel {
            host: self.name.clone(),
        }
    }
}

impl Drop for CountedHost {
    fn drop(&mut self) {
        let inner = &self.metrics.0;
        let mut hosts = inner.hosts.0.lock();
        let Some(host) = hosts.get_mut(&self.name) else { return };
        host.users -= 1;
        if host.users > 0 {
            return;
        }
        let rows = std::mem::take(&mut host.rows);
        hosts.remove(&self.name);
        // Still locked, so that a new user of the host starts after the removal.
        for row in rows {
            inner.requests.remove(&row);
        }
        inner.watches.remove(&self.label());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_host_go_with_its_last_user() {
        let metrics = Metrics::new();
        let (one, two, other) = (metrics.host("a:1"), metrics.host("a:1"), metrics.host("b:1"));
        one.request("200", "GET");
        two.request("<error>", "GET");
        two.watch();
        other.request("200", "GET");
        drop(two);
        let lines = |host: &str| metrics.encode().matches(&format!("host=\"{host}\"")).count();
        assert_eq!((lines("a:1"), lines("b:1")), (3, 1));
        drop(one);
        assert_eq!((lines("a:1"), lines("b:1")), (0, 1));
        assert_eq!(metrics.requests("200", "GET", "b:1"), 1);
    }
}
