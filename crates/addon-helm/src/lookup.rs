//! The question whether a chart can be fetched, which the HelmChartProxy controller asks before a release goes for another one. It knows
//! neither what answers nor how: the program that starts both controllers connects them.

use futures::future::BoxFuture;
use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_controller_runtime::Cx;

/// Looks for charts.
pub trait ChartLookup: Send + Sync + 'static {
    /// Whether the chart of an object can be fetched, or why not. The object need not exist.
    fn look<'a>(&'a self, cx: &'a Cx, proxy: &'a HelmReleaseProxy) -> BoxFuture<'a, Result<(), String>>;
}
