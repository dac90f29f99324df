//! The interface to Helm for controllers.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use crate::{Chart, ChartSource, HelmError, Options, Release, Secret, Status};

/// The result of an [`Engine`] call.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The label by which a release says whose it is; on the release's Secrets, as Helm's own labels are.
pub const MARK: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/owner";

/// Helm's operations. A call that is dropped is cancelled: Helm is asked to stop, and no file of the call stays.
pub trait Engine: Send + Sync + 'static {
    /// Why Helm cannot be used here (not installed, too old), in words for a condition that say how to get it; `None` when it can, as
    /// far as is known.
    fn unusable(&self) -> Option<String>;

    /// Finds the version of a chart by Helm's own rules, and fetches it once for all who ask.
    ///
    /// `fresh` says whether a list of versions that was read a while ago will do; it does not concern a source with an exact version.
    fn chart<'a>(&'a self, source: &'a ChartSource, fresh: Freshness) -> BoxFuture<'a, Result<Chart, HelmError>>;

    /// Installs a release that is not there. `values` is YAML; an empty text stands for the chart's defaults.
    ///
    /// Where an uninstalled release kept its history, its name is free again only with [`crate::Install::replace`].
    fn install<'a>(
        &'a self,
        target: &'a Target,
        chart: &'a Chart,
        values: &'a str,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Summary, HelmError>>;

    /// Upgrades a release that is there, deployed or failed, also to an older chart. Helm refuses one whose newest revision is pending
    /// ([`Kind::Locked`](crate::Kind::Locked)): see [`rollback`](Self::rollback).
    fn upgrade<'a>(
        &'a self,
        target: &'a Target,
        chart: &'a Chart,
        values: &'a str,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Summary, HelmError>>;

    /// Makes a revision the newest again, as a new revision.
    ///
    /// It is the one operation that Helm allows on a release whose newest revision is pending. Rolled "back" to the pending revision
    /// itself, the release gets what that revision wanted and is deployed.
    fn rollback<'a>(
        &'a self,
        target: &'a Target,
        to_revision: u32,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<(), HelmError>>;

    /// Uninstalls a release; that it is not there is success.
    fn uninstall<'a>(&'a self, target: &'a Target, options: &'a Options) -> BoxFuture<'a, Result<(), HelmError>>;
}

/// Maximum age of the list of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// Whatever was read last.
    Any,
    /// Read no longer ago than this.
    Within(Duration),
    /// Read after the call began.
    Now,
}

/// A release in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The text of a kubeconfig that holds all it needs: one that names files or programs is refused.
    pub kubeconfig: Secret,
    /// The release's namespace.
    pub namespace: String,
    /// The release's name.
    pub release: String,
    /// The ownership label of a release.
    pub marker: Marker,
}

/// Labels of a release that identify its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marker {
    /// Labels; values as Kubernetes allows them.
    pub labels: BTreeMap<String, String>,
}

impl Marker {
    /// One that names an owner, whose name must be a legal value of a label.
    pub fn owner(value: &str) -> Self {
        Self {
            labels: BTreeMap::from([(MARK.to_owned(), value.to_owned())]),
        }
    }

    /// Whether a release bears it. Nothing bears an empty one.
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
    /// Helm's words about it.
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
