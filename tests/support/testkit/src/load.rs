//! The load of the controllers, from their metrics.

use std::collections::{BTreeMap, BTreeSet};

/// The load of the controllers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// The controllers with running reconciles or a non-empty queue.
    pub busy: BTreeSet<String>,
    /// The number of reconciles by controller; without those that never ran one.
    pub reconciles: BTreeMap<String, u64>,
}

impl Load {
    /// Parses the text format of Prometheus.
    pub(crate) fn read(text: &str) -> Self {
        let mut load = Self::default();
        for line in text.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let value: u64 = value.parse().unwrap_or(0);
            if value == 0 {
                continue;
            }
            let controller = || {
                let rest = labels.split("controller=\"").nth(1);
                let name = rest.and_then(|rest| rest.split('"').next());
                name.unwrap_or_default().to_owned()
            };
            match name {
                "controller_runtime_active_workers" | "workqueue_depth" => drop(load.busy.insert(controller())),
                "controller_runtime_reconcile_total" => *load.reconciles.entry(controller()).or_default() += value,
                _ => {}
            }
        }
        load
    }
}

/// The sum of a series over all labels but the controller. Fails if there is no such series or controller: with a wrong name, the
/// sum would always be zero.
pub(crate) fn number(text: &str, series: &str, controller: &str) -> Option<f64> {
    let label = format!("controller=\"{controller}\"");
    let header = format!("# TYPE {} ", series.strip_suffix("_total").unwrap_or(series));
    let is_series = text.lines().any(|line| line.starts_with(&header));
    let is_controller = text
        .lines()
        .any(|line| line.starts_with("controller_runtime_max_concurrent_reconciles{") && line.contains(&label));
    if !is_series || !is_controller {
        return None;
    }
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    let found = lines.filter(|(name, _)| {
        let (name, labels) = name.split_once('{').unwrap_or((name, ""));
        name == series && labels.contains(&label)
    });
    Some(found.filter_map(|(_, value)| value.parse::<f64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_summed_by_controller() {
        let text = "# HELP x\n\
            # TYPE controller_runtime_reconcile counter\n\
            # TYPE workqueue_adds counter\n\
            controller_runtime_max_concurrent_reconciles{controller=\"a\"} 10\n\
            controller_runtime_active_workers{controller=\"a\"} 1\n\
            workqueue_depth{name=\"a\",controller=\"a\"} 2\n\
            workqueue_depth{name=\"b\",controller=\"b\"} 0\n\
            controller_runtime_reconcile_total{controller=\"a\",result=\"success\"} 3\n\
            controller_runtime_reconcile_total{controller=\"a\",result=\"error\"} 4\n\
            controller_runtime_reconcile_total{controller=\"b\",result=\"error\"} 0\n";
        let load = Load {
            busy: BTreeSet::from(["a".to_owned()]),
            reconciles: BTreeMap::from([("a".to_owned(), 7)]),
        };
        assert_eq!(Load::read(text), load);
        assert_eq!(number(text, "controller_runtime_reconcile_total", "a"), Some(7.0));
        assert_eq!(number(text, "workqueue_adds_total", "a"), Some(0.0));
        assert_eq!(number(text, "workqueue_added_total", "a"), None, "no such series");
        assert_eq!(number(text, "workqueue_adds_total", "c"), None, "no such controller");
    }
}
