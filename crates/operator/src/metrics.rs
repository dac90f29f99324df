//! What a dashboard shows of providers: which are installed, which work, and how often they had to be repaired.

use windlass_controller_runtime::{Metrics, Row, Table};

use crate::ports::Operator;
use crate::tracker::Whose;

const WHICH: &[&str] = &["kind", "namespace", "name"];
const INFO: Table = Table {
    name: "windlass_provider_info",
    help: "Installed providers",
    counts: false,
    labels: &["kind", "namespace", "name", "version", "contract"],
};
const READY: Table = Table {
    name: "windlass_provider_ready",
    help: "Whether the Deployments of an installed provider are available",
    counts: false,
    labels: WHICH,
};
const REPAIRS: Table = Table {
    name: "windlass_provider_repairs",
    help: "Repairs of drift in the objects of a provider",
    counts: true,
    labels: WHICH,
};

/// The metrics of this crate.
pub static METRICS: &[Table] = &[INFO, READY, REPAIRS];

/// What metrics report of an installed provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) version: String,
    pub(crate) contract: String,
    pub(crate) ready: bool,
}

impl Operator {
    /// Adds the metrics of all providers, once.
    pub(crate) fn measure(&self, metrics: &Metrics) {
        self.0.measured.call_once(|| {
            let of = self.clone();
            metrics.table(INFO, move || {
                of.rows(|told| (vec![told.version.clone(), told.contract.clone()], 1))
            });
            let of = self.clone();
            metrics.table(READY, move || of.rows(|told| (Vec::new(), u64::from(told.ready))));
            let of = self.clone();
            metrics.table(REPAIRS, move || {
                let totals = of.0.tracker.totals();
                totals.iter().map(|(whose, count)| (which(whose), *count)).collect()
            });
        });
    }

    fn rows(&self, row: impl Fn(&Told) -> Row) -> Vec<Row> {
        let told = self.0.told.lock();
        let rows = told.iter().map(|(whose, told)| {
            let (labels, number) = row(told);
            (which(whose).into_iter().chain(labels).collect(), number)
        });
        rows.collect()
    }

    /// What is installed for a declaration by now.
    pub(crate) fn tell(&self, whose: &Whose, told: Option<Told>) {
        let mut all = self.0.told.lock();
        match told {
            Some(told) => all.insert(whose.clone(), told),
            None => all.remove(whose),
        };
    }
}

fn which(whose: &Whose) -> Vec<String> {
    let key = &whose.key;
    vec![
        whose.type_.inventory().to_owned(),
        key.namespace.clone(),
        key.name.clone(),
    ]
}
