//! Places of templates of Machines: what their content comes from, and the names of replacements.

use serde_json::{Value, json};

use crate::desired::Input;
use crate::model::text;
use crate::names;

/// The place of a template of Machines in a topology, and what its content comes from.
pub(super) struct Spot<'a> {
    pub(super) input: Input<'a>,
    pub(super) place: String,
    /// The object that refers to the template.
    pub(super) user: String,
    /// The worker set in the topology; empty for the control plane.
    pub(super) worker: &'a str,
    /// The version that the place gets now.
    pub(super) version: &'a str,
    /// The template of the class.
    pub(super) source: Option<&'a Value>,
}

impl Spot<'_> {
    /// Stands for everything that decides about the content of the template.
    pub(super) fn inputs(&self) -> String {
        let Input {
            cluster,
            blueprint,
            current,
            ..
        } = self.input;
        names::fingerprint(&json!([
            cluster.pointer("/spec/topology"),
            cluster.pointer("/spec/clusterNetwork"),
            cluster.pointer("/metadata/labels"),
            cluster.pointer("/metadata/annotations"),
            blueprint.class.fingerprint,
            self.source,
            self.version,
            current.extensions,
        ]))
    }

    pub(super) fn fresh_name(&self, old: &str, want: &Value) -> String {
        let cluster = self.input.cluster;
        let (name, uid) = (text(cluster, "/metadata/name"), text(cluster, "/metadata/uid"));
        let base = if self.worker.is_empty() {
            format!("{name}-")
        } else {
            format!("{name}-{}-", self.worker)
        };
        let content = names::fingerprint(&want["spec"]);
        names::simple(&base, &[uid, old, &content, &self.place])
    }
}
