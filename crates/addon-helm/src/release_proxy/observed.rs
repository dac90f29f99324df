//! What is seen of a HelmReleaseProxy, as data: everything that is decided is decided from this.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_helm::{ChartSource, Kind, Status};
use windlass_kit::{Seen, Timestamp};

use super::digest::Digest;

/// What was read.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// The object.
    pub(super) proxy: Arc<HelmReleaseProxy>,
    /// The way to its cluster.
    pub(super) way: Way,
    /// Whether the Cluster is being deleted.
    pub(super) cluster_is_leaving: bool,
    /// Where the chart comes from, with what it takes to read it; else what is in the way.
    pub(super) source: Result<ChartSource, Obstacle>,
    /// The values that are wished for; else what is wrong with them.
    pub(super) values: Result<Arc<Values>, String>,
    /// The version that is wished for.
    pub(super) version: Latest,
    /// Why Helm cannot be used.
    pub(super) unusable: Option<String>,
    /// The release; looked for only where there is a way to the cluster and a name.
    pub(super) release: Seen<Arc<Release>>,
    /// How a release is marked that is this object's.
    pub(super) owner: String,
    /// What this process does, or has done, for the object.
    pub(super) work: Work,
    /// What stands in a name that is made up now: a second that no other release on the cluster was named after.
    pub(super) second: i64,
}

/// The way to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// There is a connection.
    Open,
    /// There is no such Cluster.
    Gone,
    /// The Cluster is said to be in another namespace.
    Elsewhere(String),
    /// The control plane of the Cluster is not initialized.
    Uninitialized,
    /// There is no kubeconfig.
    Unknown(String),
    /// There is no connection.
    Closed(String),
}

/// Something that an installation needs is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Obstacle {
    /// A reason of the condition ClusterAvailable.
    pub(super) reason: &'static str,
    /// What is missing.
    pub(super) message: String,
}

/// Values, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Values {
    /// As data, where they may be laid over others.
    pub(super) data: Option<Map<String, Value>>,
    /// What tells them from others.
    pub(super) digest: Digest,
}

/// Which version of a chart is wished for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Latest {
    /// This one, as it was written.
    Pinned(String),
    /// The newest that fits, as the repository said.
    Found(String),
    /// The repository is being asked.
    Asking,
    /// The repository could not say.
    Failed(String),
}

/// A release as it is on the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Release {
    /// Its newest revision.
    pub(super) revision: u32,
    /// The status of that.
    pub(super) status: Status,
    /// Helm's words about it.
    pub(super) description: String,
    /// Whose it is, as it is marked.
    pub(super) owner: Option<String>,
    /// Its chart.
    pub(super) chart: String,
    /// The version of that.
    pub(super) version: String,
    /// What tells its values from others.
    pub(super) values: Digest,
    /// Its values, where somebody wants to know more of them.
    pub(super) data: Option<Arc<Map<String, Value>>>,
    /// When the newest revision began.
    pub(super) since: Option<Timestamp>,
    /// All revisions that there are, the newest last.
    pub(super) revisions: Vec<(u32, Status)>,
}

/// What this process does, or has done, for an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// What goes on.
    pub(super) running: Option<Operation>,
    /// What another object has going on for a release of the same name.
    pub(super) is_taken: bool,
    /// What failed last, unless something succeeded since.
    pub(super) failure: Option<Failure>,
    /// What was made last.
    pub(super) made: Option<Made>,
}

/// Something that Helm is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Install a release that is not there; `replace` where its history still has the name.
    Install {
        /// Whether the history has the name.
        replace: bool,
    },
    /// Upgrade a release that is there.
    Upgrade,
    /// Make a revision the newest again.
    Rollback {
        /// Which.
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
    /// What was tried.
    pub(super) operation: Operation,
    /// What was wished for then: something else need not wait.
    pub(super) wish: Digest,
    /// What there is to do about it.
    pub(super) kind: Kind,
    /// Helm's words.
    pub(super) message: String,
    /// How often in a row.
    pub(super) times: u32,
    /// When it began.
    pub(super) began: Timestamp,
    /// When it ended.
    pub(super) ended: Timestamp,
    /// How long to wait after that.
    pub(super) pause: Duration,
}

impl Failure {
    /// How long to wait from now on.
    pub(super) fn remaining(&self, now: Timestamp) -> Option<Duration> {
        let elapsed = Duration::try_from(now.duration_since(self.ended)).unwrap_or_default();
        self.pause.checked_sub(elapsed).filter(|left| !left.is_zero())
    }
}

/// What an installation or upgrade led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// What was wished for.
    pub(super) wish: Digest,
    /// The revision that it led to.
    pub(super) revision: u32,
}
