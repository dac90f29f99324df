//! What a trial of a take-over says, as data.

use serde::Serialize;

use crate::model::{ObjectChange, Verdict};

/// What this program's controllers would do to a management cluster that another program ran.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Adoption {
    /// Clusters that were looked at.
    pub clusters: usize,
    /// Objects that were copied.
    pub objects: usize,
    /// What would be created, deleted, or changed in metadata, spec or status.
    pub changes: Vec<ObjectChange>,
    /// Objects of which only messages, reasons, times and observed generations in the status would be others. They are no reason against a take-over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<ObjectChange>,
    /// What would be written to workload clusters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workload_writes: Vec<WorkloadWrite>,
    /// Workload clusters that could not be reached. What depends on their Nodes is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreached: Vec<Unreached>,
    /// Writes that admission refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The controllers that were still at work when the time was over; none if they came to rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<Vec<String>>,
}

/// A write to a workload cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadWrite {
    /// The Cluster, by namespace and name.
    pub cluster: String,
    /// Method and path of the request, or the call to etcd.
    pub what: String,
}

/// A workload cluster that could not be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unreached {
    /// The Cluster, by namespace and name.
    pub cluster: String,
    /// Why.
    pub why: String,
}

impl Adoption {
    /// The result: only with nothing to change, and everything looked at, nothing changes.
    pub fn verdict(&self) -> Verdict {
        let is_known = self.unreached.is_empty() && self.refused.is_empty() && self.unsettled.is_none();
        match (self.changes.is_empty() && self.workload_writes.is_empty(), is_known) {
            (false, _) => Verdict::Changes,
            (true, true) => Verdict::Same,
            (true, false) => Verdict::Problems,
        }
    }

    /// Orders everything by object.
    pub(crate) fn sort(&mut self) {
        for changes in [&mut self.changes, &mut self.texts] {
            changes.sort_by(|a, b| (&a.object.namespace, &a.object).cmp(&(&b.object.namespace, &b.object)));
        }
    }
}
