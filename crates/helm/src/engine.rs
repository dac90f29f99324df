//! The interface of controllers to Helm.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{Chart, ChartSource, HelmError, Options, Release, Secret, Status};

/// The result of an [`Engine`] call.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The label with the owner of a release, on the release's Secrets, where Helm's own labels are.
pub const MARK: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/owner";

/// Helm's operations. Dropping a call cancels it: Helm is asked to stop, and the call's files are removed. Helm may go on for a while
/// after that. A caller that has to know the end uses [`Target::stop`] instead.
pub trait Engine: Send + Sync + 'static {
    /// Why Helm is unusable here (not installed, too old), as a condition message with the remedy; `None` if no problem is known.
    fn unusable(&self) -> Option<String>;

    /// Resolves the version of a chart by Helm's rules, and fetches it once for all concurrent callers.
    ///
    /// `fresh` is the required age of the list of versions; it has no effect on a source with an exact version.
    fn chart<'a>(&'a self, source: &'a ChartSource, fresh: Freshness) -> BoxFuture<'a, Result<Chart, HelmError>>;

    /// Installs a new release. `values` is YAML; an empty text means the chart's defaults.
    ///
    /// The name of an uninstalled release with history is available only with [`crate::Install::replace`].
    fn install<'a>(
        &'a self,
        target: &'a Target,
        chart: &'a Chart,
        values: &'a str,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Summary, HelmError>>;

    /// Upgrades an existing release, deployed or failed, also to an older chart. Helm refuses it if the newest revision is
    /// pending ([`Kind::Locked`](crate::Kind::Locked)): see [`rollback`](Self::rollback).
    fn upgrade<'a>(
        &'a self,
        target: &'a Target,
        chart: &'a Chart,
        values: &'a str,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Summary, HelmError>>;

    /// Restores an earlier revision as a new revision.
    ///
    /// Helm allows no other operation on a release whose newest revision is pending. A rollback to the pending revision itself
    /// completes that revision.
    fn rollback<'a>(
        &'a self,
        target: &'a Target,
        to_revision: u32,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<(), HelmError>>;

    /// Uninstalls a release; a missing release is a success.
    fn uninstall<'a>(&'a self, target: &'a Target, options: &'a Options) -> BoxFuture<'a, Result<(), HelmError>>;
}

/// Maximum age of the list of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// Any age.
    Any,
    /// Read no longer ago than this.
    Within(Duration),
    /// Read after the call began.
    Now,
}

/// A release in a cluster.
#[derive(Clone, Debug)]
pub struct Target {
    /// The text of a self-contained kubeconfig: one that refers to files or programs is refused.
    pub kubeconfig: Secret,
    /// The release's namespace.
    pub namespace: String,
    /// The release's name.
    pub release: String,
    /// The ownership label of a release.
    pub marker: Marker,
    /// Ends the calls for this target.
    pub stop: Stop,
}

/// Ends calls that are going on. Clones are handles to the same calls.
///
/// A call that is ended returns an error of kind [`Kind::Cancelled`](crate::Kind::Cancelled) after its process has ended, which may
/// take as long as Helm needs to record the failure and to undo what it has done.
#[derive(Clone, Debug, Default)]
pub struct Stop(CancellationToken);

impl Stop {
    /// Ends the calls.
    pub fn end(&self) {
        self.0.cancel();
    }

    /// Resolves when the calls have to end.
    pub async fn requested(&self) {
        self.0.cancelled().await;
    }
}

/// Labels of a release that identify its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marker {
    /// Labels; values as Kubernetes allows them.
    pub labels: BTreeMap<String, String>,
}

impl Marker {
    /// A marker with an owner, whose name must be a valid label value.
    pub fn owner(value: &str) -> Self {
        Self {
            labels: BTreeMap::from([(MARK.to_owned(), value.to_owned())]),
        }
    }

    /// Whether a release has all labels of the marker. No release has an empty marker.
    pub fn is_on(&self, release: &Release) -> bool {
        let has = |(key, value): (&String, &String)| release.labels.get(key) == Some(value);
        !self.labels.is_empty() && self.labels.iter().all(has)
    }
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The release's revision now.
    pub revision: u32,
    /// Its status.
    pub status: Status,
    /// Helm's description of it.
    pub description: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    // AD-134
    #[test]
    fn a_release_is_ours_only_with_all_that_we_mark_it_with() {
        let mut release = Release::default();
        let ours = Marker::owner("default.web");
        assert!(!ours.is_on(&release));
        release.labels.insert(MARK.to_owned(), "default.other".to_owned());
        assert!(!ours.is_on(&release));
        release.labels.insert(MARK.to_owned(), "default.web".to_owned());
        assert!(ours.is_on(&release));
        let mut more = ours.clone();
        more.labels.insert("example.com/fleet".to_owned(), "west".to_owned());
        assert!(!more.is_on(&release));
        assert!(!Marker::default().is_on(&release));
    }
}
