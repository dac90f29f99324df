//! What the controllers are doing, from their metrics.

use std::collections::BTreeMap;

/// What the metrics say.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Load {
    /// Keys that wait and keys that are worked on.
    pub(crate) busy: u64,
    /// Reconciles done, by controller; without those that never did one.
    pub(crate) reconciles: BTreeMap<String, u64>,
}

impl Load {
    /// Reads the text format of Prometheus.
    pub(crate) fn read(text: &str) -> Self {
        let mut load = Self::default();
        for line in text.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let value: u64 = value.parse().unwrap_or(0);
            match name {
                "controller_runtime_active_workers" | "workqueue_depth" => load.busy += value,
                "controller_runtime_reconcile_total" if value > 0 => {
                    let controller = labels
                        .split("controller=\"")
                        .nth(1)
                        .and_then(|rest| rest.split('"').next());
                    *load
                        .reconciles
                        .entry(controller.unwrap_or_default().to_owned())
                        .or_default() += value;
                }
                _ => {}
            }
        }
        load
    }
}

/// The sum of a series over everything but the controller; nothing counts as zero.
pub(crate) fn number(text: &str, series: &str, controller: &str) -> f64 {
    let label = format!("controller=\"{controller}\"");
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    let found = lines.filter(|(name, _)| {
        let (name, labels) = name.split_once('{').unwrap_or((name, ""));
        name == series && labels.contains(&label)
    });
    found.filter_map(|(_, value)| value.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_summed_by_controller() {
        let text = "# HELP x\n\
            controller_runtime_active_workers{controller=\"a\"} 1\n\
            workqueue_depth{name=\"a\",controller=\"a\"} 2\n\
            controller_runtime_reconcile_total{controller=\"a\",result=\"success\"} 3\n\
            controller_runtime_reconcile_total{controller=\"a\",result=\"error\"} 4\n\
            controller_runtime_reconcile_total{controller=\"b\",result=\"error\"} 0\n";
        let load = Load {
            busy: 3,
            reconciles: BTreeMap::from([("a".to_owned(), 7)]),
        };
        assert_eq!(Load::read(text), load);
        assert!((number(text, "controller_runtime_reconcile_total", "a") - 7.0).abs() < f64::EPSILON);
        assert!(number(text, "workqueue_adds_total", "a").abs() < f64::EPSILON);
    }
}
