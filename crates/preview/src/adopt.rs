//! Taking over a management cluster from the Go implementation: what would this program's controllers change?
//!
//! All objects of the management cluster are copied into memory, with the Secrets that controllers read there. The controllers themselves run on
//! the copy until they have nothing left to do, with connections to the workload clusters on which nothing is written and hooks of extensions that
//! only ask. What is different afterwards is what they would change. Nothing is written outside of the copy.

mod compare;
pub mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::Value;
use windlass_controller_runtime::{Metrics, ObjectKey, Runtime};
use windlass_manager::registry::controllers::{CONTROLLERS, Ports};
use windlass_manager::{FeatureGates, ReadOnly, Running, Selection, controllers};
use windlass_pki::{KeyAlgorithm, KeyPool};

use crate::error::PreviewError;
use crate::names::{Id, cluster_of, text};
use crate::shadow::{Refused, Shadow};
use crate::state::State;
use crate::upstream::Upstream;
use model::{Adoption, Unreached, WorkloadWrite};

/// The providers whose controllers take over if none are named: the infrastructure and add-ons go on with their own managers.
const PROVIDERS: [&str; 3] = ["cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm"];
/// It is about definitions, which the copy has in one version.
const MIGRATOR: &str = "crdmigrator";
/// Controllers hold back what changes often for no longer than this, so they are at rest after it.
const SETTLED: Duration = Duration::from_secs(6);
/// Time between two looks at what the controllers do.
const LOOK: Duration = Duration::from_millis(100);
/// How many of the controllers that are still at work are named.
const NAMED: usize = 5;

/// What is tried.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The controllers by name; none for those of the core and of kubeadm.
    pub controllers: Vec<String>,
    /// The feature gates of the controllers.
    pub gates: FeatureGates,
    /// How long the controllers may take to come to rest.
    pub timeout: Duration,
}

impl Trial {
    /// The controllers that run on the copy.
    fn selection(&self) -> Result<Selection, PreviewError> {
        let default: Vec<&str> = CONTROLLERS
            .iter()
            .filter(|info| PROVIDERS.contains(&info.provider))
            .map(|info| info.name)
            .collect();
        let named: Vec<&str> = self.controllers.iter().map(String::as_str).collect();
        let names = if named.is_empty() { default } else { named };
        let names: Vec<&str> = names.into_iter().filter(|name| *name != MIGRATOR).collect();
        Selection::of(&names).map_err(|error| PreviewError::Change(error.to_string()))
    }
}

/// Tries a take-over.
pub async fn adopt(client: kube::Client, trial: &Trial) -> Result<Adoption, PreviewError> {
    let selection = trial.selection()?;
    let upstream = Upstream::new(client);
    let groups = selection.kinds().iter().map(|kind| kind.group).collect();
    let mut state = State::of_server(&upstream, &groups).await?;
    state.add_inputs(&upstream).await?;
    let before: BTreeMap<Id, Value> = state
        .objects
        .iter()
        .map(|object| (Id::of(object), object.clone()))
        .collect();
    let shadow = Shadow::start(state, None).await?;
    let tried = run(&shadow, &selection, trial, &before).await;
    let after = afterwards(&shadow, &before).await;
    shadow.stop().await;
    let mut report = tried?;
    for (id, after) in after {
        compare::compare(&id, before.get(&id), after.as_ref(), &mut report);
    }
    report.objects = before.keys().filter(|id| id.kind != "Namespace").count();
    report.sort();
    Ok(report)
}

/// Runs the controllers until they are at rest, or the time is over.
async fn run(
    shadow: &Shadow,
    selection: &Selection,
    trial: &Trial,
    before: &BTreeMap<Id, Value>,
) -> Result<Adoption, PreviewError> {
    let read_only = ReadOnly::default();
    let kit = Runtime::builder(shadow.client()).metrics(Metrics::new()).build();
    let running = controllers::start_with(kit, selection, |cx| {
        // Keys of new certificates are never used.
        let keys = KeyPool::new(1, KeyAlgorithm::EcdsaP256, 1);
        Ports::new(cx, keys).gated(trial.gates.clone()).reading_only(&read_only)
    });
    let clusters: Vec<ObjectKey> = before
        .iter()
        .filter(|(id, _)| id.kind == "Cluster" && id.group == "cluster.x-k8s.io")
        .map(|(id, _)| id.key())
        .collect();
    let ended = tokio::time::timeout(trial.timeout, at_rest(shadow, &running, &clusters)).await;
    // Controllers that run beside each other meet conflicts, and look again.
    let is_final = |refused: &Refused| !matches!(refused.status, StatusCode::CONFLICT | StatusCode::NOT_FOUND);
    let refused = shadow.take_refused().into_iter().filter(is_final);
    let mut report = Adoption {
        clusters: clusters.len(),
        refused: refused.map(|refused| refused.why).collect(),
        ..Adoption::default()
    };
    report.refused.sort();
    report.refused.dedup();
    if ended.is_err() {
        let loads = running.kit().metrics().loads();
        let busy = loads.iter().filter(|load| load.is_busy).map(|load| load.controller);
        report.unsettled = Some(busy.take(NAMED).map(str::to_owned).collect());
    }
    let connections = running.ports().clusters();
    for cluster in clusters.into_iter().filter(|cluster| connections.can_try(cluster)) {
        if let Err(error) = connections.get(&cluster) {
            let (cluster, why) = (cluster.to_string(), error.why);
            report.unreached.push(Unreached { cluster, why });
        }
    }
    running.shutdown().await;
    report.workload_writes = read_only
        .refused()
        .into_iter()
        .map(|write| WorkloadWrite {
            cluster: write.cluster.to_string(),
            what: write.what,
        })
        .collect();
    Ok(report)
}

/// Waits until no controller has anything to do, all workload clusters were tried, and nothing was written for a while.
async fn at_rest(shadow: &Shadow, running: &Running, clusters: &[ObjectKey]) {
    let connections = running.ports().clusters();
    let (mut writes, mut quiet) = (0, Instant::now());
    let mut looks = tokio::time::interval(LOOK);
    loop {
        looks.tick().await;
        let now = shadow.writes();
        let is_busy = running.kit().metrics().loads().iter().any(|load| load.is_busy);
        let is_untried =
            |cluster: &ObjectKey| connections.can_try(cluster) && connections.with_nodes(cluster).is_untried();
        let is_starting = running.kit().ready().is_err();
        if now != writes || is_busy || is_starting || clusters.iter().any(is_untried) {
            (writes, quiet) = (now, Instant::now());
        } else if quiet.elapsed() > SETTLED {
            return;
        }
    }
}

/// The objects that were written, as the copy has them now, in the version in which they were read; none if they are gone or about to go.
async fn afterwards(shadow: &Shadow, before: &BTreeMap<Id, Value>) -> BTreeMap<Id, Option<Value>> {
    let log = shadow.take_log().into_iter();
    let written: BTreeMap<Id, Value> = log
        .filter_map(|written| Some((written.id, written.after.or(written.before)?)))
        .collect();
    let mut all = BTreeMap::new();
    for (id, written) in written {
        let known = before.get(&id);
        let now = match shadow.url_of(known.unwrap_or(&written)).await {
            Some(url) => shadow.at(&url).await,
            None => None,
        };
        let was_going = known.is_some_and(is_going);
        let now = now.filter(|now| was_going || !is_going(now));
        if now.is_some() || known.is_some() {
            all.insert(id, now);
        }
    }
    all
}

fn is_going(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// The namespaces of Clusters.
pub(crate) fn namespaces(objects: &[Value]) -> BTreeSet<String> {
    let clusters = objects.iter().filter_map(cluster_of);
    clusters.map(|cluster| cluster.namespace).collect()
}
