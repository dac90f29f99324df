//! Previews: what the management cluster would do after a change. Nothing is written.
//!
//! - `state` reads the management cluster by one list a kind, or files.
//! - `shadow` is a copy in memory, on which the controllers' own code runs. First writes are asked of the original as dry runs.
//! - `overlay` applies the change to the copy, `simulate` reconciles topologies there, round by round, and `settle` brings the copy to
//!   what finished rollouts leave.
//! - `waves` says in which order Clusters get a change of their class, if it is rolled out in waves.
//! - `machines` asks the rules of rollouts what becomes of each Machine.
//! - [`adopt`] runs all controllers on the copy, for users who take over a management cluster.
//! - [`model`] is the result, and [`render`] makes text, YAML, JSON and Markdown of it.

pub mod adopt;
mod concerned;
mod documents;
mod error;
mod fields;
mod group;
mod machines;
pub mod model;
mod names;
mod overlay;
mod phase;
pub mod render;
mod settle;
mod shadow;
mod simulate;
mod state;
mod upstream;
mod waves;

use std::collections::BTreeSet;

pub use documents::{cluster_objects, objects};
pub use error::PreviewError;
pub use fields::changes;
pub use names::Id;
pub use overlay::Change;

use model::Report;
use serde_json::Value;
use shadow::Shadow;
use simulate::Simulation;
use state::State;
use upstream::Upstream;

/// What a preview is about.
#[derive(Clone)]
pub enum Source {
    /// A management cluster.
    Server(kube::Client),
    /// Its objects, and the definitions of kinds that are not ours, from files.
    Files(Vec<Value>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(_) => f.write_str("Server"),
            Self::Files(objects) => f.debug_tuple("Files").field(&objects.len()).finish(),
        }
    }
}

/// Previews a change.
pub async fn preview(source: Source, change: &Change) -> Result<Report, PreviewError> {
    let (state, upstream) = match source {
        Source::Server(client) => {
            let upstream = Upstream::new(client);
            (State::of_server(&upstream, &BTreeSet::new()).await?, Some(upstream))
        }
        Source::Files(objects) => (State::of_files(objects)?, None),
    };
    let shadow = Shadow::start(state, upstream).await?;
    let report = on(&shadow, change).await;
    shadow.stop().await;
    report
}

async fn on(shadow: &Shadow, change: &Change) -> Result<Report, PreviewError> {
    let simulation = Simulation::new(shadow).await?;
    if !shadow.has_original() {
        simulation.complete().await?;
    }
    let (overlaid, written) = overlay::apply(shadow, change).await?;
    let concerned = concerned::concerned(shadow.cx(), &overlaid.objects);
    let rollouts = waves::rollouts(shadow, &concerned.classes).await?;
    simulation.classes(&concerned.classes).await?;
    let clusters: BTreeSet<_> = concerned.clusters;
    let plans = simulation.clusters(&clusters, &written).await?;
    let mut report = Report {
        changes: overlaid.changes,
        refused: overlaid.refused,
        ignored: overlaid.ignored,
        waves: rollouts.waves(&plans, &simulation).await,
        groups: group::group(plans),
        ..Report::default()
    };
    report.summary = group::summary(&report, clusters.len());
    Ok(report)
}
