//! Observations for tests: an object whose release can be installed, and releases.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_api_ext::addons::annotations::{CLUSTER_SEEN, RELEASE_SUCCESSFULLY_INSTALLED};
use windlass_cluster_cache::{GracePeriods, Outage, Workload};
use windlass_controller_runtime::{Decision, Moment, Seen, Timestamp};
use windlass_helm::{ChartSource, Status, values};

use super::digest::Digest;
use super::facts;
use super::observed::{
    ClusterState, Failure, Following, Latest, Lookup, Made, Observed, Operation, Release, Values, Work,
};
use super::plan::{self, Plan};

/// A moment, in seconds.
pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(super) const NOW: i64 = 1_800_000_000;
/// The uid of the object.
const UID: &str = "uid-web-c1";

/// An object for chart `web` at 1.0.0, with `{a: 1}`.
pub(super) fn seen() -> Observed {
    Observed {
        proxy: proxy(&json!({})),
        cluster: up(Lookup::Watched(Seen::NotFound)),
        cluster_is_leaving: false,
        connection: None,
        source: Ok(ChartSource::default()),
        values: Ok(read("{a: 1}")),
        version: Latest::Pinned("1.0.0".to_owned()),
        following: Following::Nothing,
        unusable: None,
        owner: "fleet.web".to_owned(),
        alone_since: None,
        work: Work::default(),
    }
}

/// A Cluster that answers.
pub(super) fn up(lookup: Lookup) -> ClusterState {
    ClusterState::Initialized {
        has_kubeconfig: true,
        can_try: true,
        release: Workload::Up(lookup),
    }
}

/// A Cluster with a kubeconfig that does not answer.
pub(super) fn down(why: &str) -> ClusterState {
    ClusterState::Initialized {
        has_kubeconfig: true,
        can_try: true,
        release: Workload::Down(Outage {
            since: at(NOW - 60),
            last_success: None,
            why: why.to_owned(),
            grace: GracePeriods::default(),
        }),
    }
}

/// A Cluster without a kubeconfig.
pub(super) fn no_kubeconfig(why: &str) -> ClusterState {
    ClusterState::Initialized {
        has_kubeconfig: false,
        can_try: false,
        release: Workload::NotTried(why.to_owned()),
    }
}

/// The plan, with the question answered: the release is as the watch shows it.
pub(super) fn decided(seen: &Observed, now: &Moment) -> Plan {
    match plan::plan(seen, now) {
        Decision::Plan(plan) => plan,
        Decision::Ask(_) => match plan::plan(&seen.clone().live(), now) {
            Decision::Plan(plan) => plan,
            Decision::Ask(question) => panic!("{question:?} is asked twice"),
        },
    }
}

fn proxy(changes: &Value) -> Arc<HelmReleaseProxy> {
    let mut object = json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmReleaseProxy",
        "metadata": {"name": "web-c1", "namespace": "fleet", "uid": UID, "generation": 3},
        "spec": {
            "clusterRef": {"name": "c1", "namespace": "fleet"}, "chartName": "web", "repoURL": "https://charts.example.com",
            "releaseName": "web", "namespace": "default", "version": "1.0.0", "values": "a: 1",
        },
    });
    merge(&mut object, changes);
    Arc::new(serde_json::from_value(object).unwrap())
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

pub(super) fn read(text: &str) -> Arc<Values> {
    let data = values::parse(text).unwrap();
    let digest = Digest::of_values(&data);
    Arc::new(Values {
        data: Some(data),
        digest,
    })
}

/// The desired release of this object, deployed.
pub(super) fn deployed() -> Release {
    Release {
        revision: 1,
        status: Status::Deployed,
        description: "Install complete".to_owned(),
        owner: Some("fleet.web".to_owned()),
        chart: "web".to_owned(),
        version: "1.0.0".to_owned(),
        values: read("{a: 1}").digest,
        data: None,
        since: Some(at(NOW - 3600)),
        revisions: vec![(1, Status::Deployed)],
    }
}

impl Observed {
    /// The same with changes of the object.
    pub(super) fn with(mut self, changes: &Value) -> Self {
        self.proxy = proxy(changes);
        self
    }

    /// The same object with the annotation that it was installed.
    pub(super) fn installed(self) -> Self {
        let mut object = HelmReleaseProxy::clone(&self.proxy);
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert(RELEASE_SUCCESSFULLY_INSTALLED.to_owned(), "true".to_owned());
        annotations.insert(CLUSTER_SEEN.to_owned(), UID.to_owned());
        Self {
            proxy: Arc::new(object),
            ..self
        }
    }

    /// The same object, being deleted.
    pub(super) fn leaving(self) -> Self {
        let mut object = HelmReleaseProxy::clone(&self.proxy);
        let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(NOW));
        object.metadata.deletion_timestamp = Some(time);
        Self {
            proxy: Arc::new(object),
            ..self
        }
    }

    /// The same with a release.
    pub(super) fn found(self, change: impl FnOnce(&mut Release)) -> Self {
        let mut release = deployed();
        change(&mut release);
        self.with_release(Seen::Found(Arc::new(release)))
    }

    /// The same with this result of looking for the release.
    pub(super) fn with_release(mut self, release: Seen<Arc<Release>>) -> Self {
        self.cluster = up(Lookup::Watched(release));
        self
    }

    /// The same with the release read from the cluster.
    pub(super) fn live(mut self) -> Self {
        if let Some(release) = self.release() {
            self.cluster = up(Lookup::Live(release.clone()));
        }
        self
    }

    /// The same without a name for the release.
    pub(super) fn unnamed(mut self) -> Self {
        self.cluster = up(Lookup::Unnamed(Seen::NotFound));
        self.with(&json!({"spec": {"releaseName": null}}))
    }

    /// The same with something changed.
    pub(super) fn but(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The same after an operation for the desired state failed, this long ago.
    pub(super) fn failed(mut self, operation: Operation, seconds_ago: i64) -> Self {
        self.work.failure = Some(Failure {
            operation,
            desired: facts::desired(&self),
            message: "it does not fit".to_owned(),
            times: 1,
            began: at(NOW - seconds_ago - 10),
            ended: at(NOW - seconds_ago),
            pause: std::time::Duration::from_mins(1),
        });
        self
    }

    /// The same after an operation made a revision for the desired state.
    pub(super) fn made(mut self, revision: u32) -> Self {
        self.work.made = Some(Made {
            desired: facts::desired(&self),
            revision,
        });
        self
    }
}
