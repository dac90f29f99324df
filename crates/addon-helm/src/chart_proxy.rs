//! The HelmChartProxy controller: keeps one HelmReleaseProxy for every Cluster that the selector chooses, with the values that the
//! template gives for it.
//!
//! Watches HelmChartProxies, their HelmReleaseProxies, Clusters, and what Clusters refer to. Writes HelmReleaseProxies (all of their
//! spec but a generated release name, their labels and their owner) and its own status. Knows nothing of Helm.
//!
//! - A failure of one Cluster does not keep others waiting.
//! - A selector that cannot be read changes nothing: a typing error uninstalls nothing.
//! - A declaration that breaks the rules is reported, and has no effect, also without a webhook that refuses it.
//! - A release is never on a Cluster twice: another chart, name or namespace means that the old one goes first.
//! - No release goes for another one whose chart cannot be fetched.

mod apply;
mod observe;
mod observed;
mod plan;
mod status;
#[cfg(test)]
mod testing;
mod values;
mod watches;

use std::sync::Arc;

use serde_json::Value;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy, finalizers};
use windlass_controller_runtime::{Controller, ControllerEntry, Cx, Decision, Moment, ObjectKey, Part as _, Watch};

pub use observed::{Observed, Values};
pub use plan::{Action, Failure, Plan};
pub use status::Done;

use crate::lookup::ChartLookup;
use crate::names::managers;
use values::Memo;

/// The HelmChartProxy controller.
pub struct ChartProxyController {
    memo: Memo,
    charts: Arc<dyn ChartLookup>,
}

impl std::fmt::Debug for ChartProxyController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChartProxyController").finish_non_exhaustive()
    }
}

/// The controller, ready to be run. `charts` is asked before a release goes for one of another chart.
pub fn entry(charts: Arc<dyn ChartLookup>) -> ControllerEntry {
    ControllerEntry::of(ChartProxyController {
        memo: Memo::default(),
        charts,
    })
}

/// A question of the plan: whether the chart of this HelmReleaseProxy can be fetched.
#[derive(Clone, Debug, PartialEq)]
pub struct IsAvailable(Box<HelmReleaseProxy>);

impl Controller for ChartProxyController {
    type Kind = HelmChartProxy;
    type Observed = Observed;
    type Question = IsAvailable;
    type Plan = Plan;
    type Done = Done;

    const NAME: &'static str = "helmchartproxy";
    const MANAGER: &'static str = managers::CHART_PROXY;
    const STATUS_MANAGER: &'static str = managers::CHART_PROXY_STATUS;
    const FINALIZER: Option<&'static str> = Some(finalizers::HELM_CHART_PROXY);
    const FOLLOWS_CLUSTERS: bool = false;
    const OBSERVED_BY_SUCCESS: bool = false;

    fn cluster_of(_: &HelmChartProxy) -> Option<ObjectKey> {
        None
    }

    fn watches(&self) -> Vec<Watch> {
        watches::watches()
    }

    async fn observe(&self, cx: &Cx, object: Arc<HelmChartProxy>) -> Observed {
        observe::observe(cx, &self.memo, object).await
    }

    async fn answer(&self, cx: &Cx, mut seen: Observed, IsAvailable(wanted): IsAvailable) -> Observed {
        seen.available = Some(self.charts.look(cx, &wanted).await);
        seen
    }

    fn plan(&self, seen: &Observed, _: &Moment) -> Decision<Plan, IsAvailable> {
        plan::decide(seen)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        let released = plan.actions.contains(&Action::RemoveFinalizer) && done.failures.is_empty();
        if released {
            return None;
        }
        Some(status::status(seen, plan, done, now.now()).to_json())
    }
}
