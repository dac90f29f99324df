//! The observation of a HelmReleaseProxy. The plan and the status are computed from it alone.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Map, Value};
use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_cluster_cache::{RemoteCluster, Workload};
use windlass_controller_runtime::{Seen, Timestamp};
use windlass_helm::{ChartSource, Status};

use super::digest::Digest;

/// Everything that was read.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// The object.
    pub(super) proxy: Arc<HelmReleaseProxy>,
    /// Its Cluster, and the release there.
    pub(super) cluster: ClusterState,
    /// Whether the Cluster is being deleted.
    pub(super) cluster_is_leaving: bool,
    /// The connection to the workload cluster, for answers and operations.
    pub(super) connection: Option<Arc<RemoteCluster>>,
    /// Where the chart comes from, with the credentials to read it; or what is missing.
    pub(super) source: Result<ChartSource, Obstacle>,
    /// The desired values; or what is wrong with them.
    pub(super) values: Result<Arc<Values>, String>,
    /// The desired version.
    pub(super) version: Latest,
    /// The poll of a repository for that version.
    pub(super) following: Following,
    /// Why Helm cannot be used.
    pub(super) unusable: Option<String>,
    /// The value of the label that marks a release as this object's.
    pub(super) owner: String,
    /// Since when other processes of this program do nothing more; none where that is not known.
    pub(super) alone_since: Option<Timestamp>,
    /// What this process does, or has done, for the object.
    pub(super) work: Work,
}

impl Observed {
    /// The release. `None` when it was not looked for: the cluster does not answer, or the release has no name.
    pub(super) fn release(&self) -> Option<&Seen<Arc<Release>>> {
        match &self.cluster {
            ClusterState::Initialized { release, .. } => release.up()?.release(),
            ClusterState::Missing | ClusterState::OtherNamespace(_) | ClusterState::Uninitialized => None,
        }
    }
}

/// The Cluster of a HelmReleaseProxy.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ClusterState {
    /// There is no such Cluster.
    Missing,
    /// The spec names this other namespace.
    OtherNamespace(String),
    /// The control plane of the Cluster is not initialized.
    Uninitialized,
    /// The control plane of the Cluster is initialized.
    Initialized {
        /// Whether the Secret with the kubeconfig exists.
        has_kubeconfig: bool,
        /// Whether an attempt to connect can be made. A Secret alone is not enough.
        can_try: bool,
        /// The release on the cluster.
        release: Workload<Lookup>,
    },
}

/// The release on a cluster that answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Lookup {
    /// The release has no name yet. Found is the name of a release on the cluster that belongs to the owner of this object.
    Unnamed(Seen<String>),
    /// As the watch of the cluster shows it.
    Watched(Seen<Arc<Release>>),
    /// As it was read from the cluster during this reconcile.
    Live(Seen<Arc<Release>>),
}

impl Lookup {
    /// The release, when it was looked for.
    pub(super) fn release(&self) -> Option<&Seen<Arc<Release>>> {
        match self {
            Self::Unnamed(_) => None,
            Self::Watched(release) | Self::Live(release) => Some(release),
        }
    }
}

/// A question of the plan: the release as it is on the cluster at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadLive(pub(super) Depth);

/// How much of a release is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// The labels of its Secrets.
    Labels,
    /// Its newest revision: chart, version, status, and a digest of its values.
    Contents,
    /// The same with the values.
    Values,
}

/// Something that an installation needs is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Obstacle {
    /// A reason of the condition ClusterAvailable.
    pub(super) reason: &'static str,
    /// What is missing.
    pub(super) message: String,
}

/// Parsed values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Values {
    /// The values, where they are merged into those of the release.
    pub(super) data: Option<Map<String, Value>>,
    /// Their digest.
    pub(super) digest: Digest,
}

/// The desired version of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Latest {
    /// The version of the spec.
    Pinned(String),
    /// The newest version in the repository that fits the spec.
    Found(String),
    /// The repository has not answered yet.
    Asking,
    /// The repository cannot be read.
    Failed(String),
}

/// The poll of a repository for the newest version of a chart, as far as this object has joined it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Following {
    /// The object follows no chart.
    Nothing,
    /// The object follows a chart that it no longer needs.
    Other,
    /// The object follows its chart.
    Current,
    /// The object follows its chart, and the last poll failed because there was no Helm.
    WithoutHelm,
}

/// A release as it is on the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Release {
    /// Its newest revision.
    pub(super) revision: u32,
    /// The status of that.
    pub(super) status: Status,
    /// Helm's description of it.
    pub(super) description: String,
    /// The owner that its label names.
    pub(super) owner: Option<String>,
    /// Its chart.
    pub(super) chart: String,
    /// The version of that.
    pub(super) version: String,
    /// The digest of its values.
    pub(super) values: Digest,
    /// Its values, when they were read ([`Depth::Values`]).
    pub(super) data: Option<Arc<Map<String, Value>>>,
    /// When the newest revision began.
    pub(super) since: Option<Timestamp>,
    /// All revisions that there are, the newest last.
    pub(super) revisions: Vec<(u32, Status)>,
}

/// What this process does, or has done, for an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// The operation that is running.
    pub(super) running: Option<Operation>,
    /// Whether an operation of another object is running for a release of the same name.
    pub(super) is_taken: bool,
    /// The last failure, unless an installation or upgrade succeeded since.
    pub(super) failure: Option<Failure>,
    /// The last success.
    pub(super) made: Option<Made>,
}

/// An operation of Helm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Install a release that does not exist.
    Install {
        /// Whether the name is still in use by the history of an uninstalled release.
        replace: bool,
    },
    /// Upgrade a release that exists.
    Upgrade,
    /// Make a revision the newest again.
    Rollback {
        /// The revision.
        to: u32,
    },
    /// Uninstall a release.
    Uninstall {
        /// Whether its history stays.
        keep_history: bool,
    },
}

impl Operation {
    /// A name for metrics and logs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Install { .. } => "install",
            Self::Upgrade => "upgrade",
            Self::Rollback { .. } => "rollback",
            Self::Uninstall { .. } => "uninstall",
        }
    }
}

/// An operation that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The operation.
    pub(super) operation: Operation,
    /// The desired state that it was for. An operation for another one need not wait.
    pub(super) desired: Digest,
    /// Helm's message.
    pub(super) message: String,
    /// The number of failures in a row.
    pub(super) times: u32,
    /// When it began.
    pub(super) began: Timestamp,
    /// When it ended.
    pub(super) ended: Timestamp,
    /// The delay after that before the next attempt.
    pub(super) pause: Duration,
}

impl Failure {
    /// When the next attempt may begin.
    pub(super) fn retry_at(&self) -> Timestamp {
        let pause = SignedDuration::try_from(self.pause).unwrap_or(SignedDuration::MAX);
        self.ended.saturating_add(pause).unwrap_or(Timestamp::MAX)
    }
}

/// The result of an installation or upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// The desired state that it was for.
    pub(super) desired: Digest,
    /// The new revision.
    pub(super) revision: u32,
}
