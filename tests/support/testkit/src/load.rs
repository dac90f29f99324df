//! The load of the controllers, from their metrics.

use std::collections::{BTreeMap, BTreeSet};

use windlass_controller_runtime::ControllerLoad;

/// The load of the controllers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// The controllers with running reconciles or a non-empty queue.
    pub busy: BTreeSet<String>,
    /// The number of reconciles by controller; without those that never ran one.
    pub reconciles: BTreeMap<String, u64>,
}

impl From<Vec<ControllerLoad>> for Load {
    fn from(all: Vec<ControllerLoad>) -> Self {
        let mut load = Self::default();
        for one in all {
            if one.is_busy {
                load.busy.insert(one.controller.to_owned());
            }
            if one.reconciles > 0 {
                load.reconciles.insert(one.controller.to_owned(), one.reconciles);
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
            controller_runtime_reconcile_total{controller=\"a\",result=\"success\"} 3\n\
            controller_runtime_reconcile_total{controller=\"a\",result=\"error\"} 4\n\
            controller_runtime_reconcile_total{controller=\"b\",result=\"error\"} 0\n";
        assert_eq!(number(text, "controller_runtime_reconcile_total", "a"), Some(7.0));
        assert_eq!(number(text, "workqueue_adds_total", "a"), Some(0.0));
        assert_eq!(number(text, "workqueue_added_total", "a"), None, "no such series");
        assert_eq!(number(text, "workqueue_adds_total", "c"), None, "no such controller");
    }
}
