//! Objects for tests.

#![allow(clippy::needless_pass_by_value, reason = "objects are made where they are passed")]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};

use super::observed::{Observed, Values, choose, is_served};
use super::plan::{Action, Plan, plan};
use crate::desired;

/// A JSON merge patch.
pub(super) fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key], value);
        }
    }
}

/// What there is, and what the template gives.
pub(super) struct World {
    pub(super) proxy: Value,
    pub(super) clusters: BTreeMap<String, Value>,
    pub(super) values: BTreeMap<String, Values>,
    pub(super) template: Option<String>,
    pub(super) releases: BTreeMap<String, Value>,
}

impl World {
    /// A HelmChartProxy for all Clusters with the label `cni=calico`, and as many of these.
    pub(super) fn new(n_clusters: usize) -> Self {
        let mut world = Self {
            proxy: json!({
                "metadata": {"name": "calico", "namespace": "ns", "uid": "proxy", "generation": 1},
                "spec": {
                    "clusterSelector": {"matchLabels": {"cni": "calico"}},
                    "chartName": "tigera-operator",
                    "repoURL": "https://charts.example",
                },
            }),
            clusters: BTreeMap::new(),
            values: BTreeMap::new(),
            template: None,
            releases: BTreeMap::new(),
        };
        for idx in 0..n_clusters {
            world.cluster(&format!("c{idx}"), json!({}));
        }
        world
    }

    /// Adds a Cluster, or changes it.
    pub(super) fn cluster(&mut self, name: &str, change: Value) {
        let cluster = self.clusters.entry(name.to_owned()).or_insert_with(|| {
            json!({
                "metadata": {"name": name, "namespace": "ns", "labels": {"cni": "calico"}},
                "spec": {},
                "status": {"initialization": {"controlPlaneInitialized": true}},
            })
        });
        merge(cluster, &change);
    }

    pub(super) fn proxy(&mut self, change: Value) {
        merge(&mut self.proxy, &change);
    }

    /// Changes all HelmReleaseProxies of a Cluster.
    pub(super) fn releases_of(&mut self, cluster: &str, change: Value) {
        let of = |release: &&mut Value| release["spec"]["clusterRef"]["name"] == cluster;
        self.releases
            .values_mut()
            .filter(of)
            .for_each(|release| merge(release, &change));
    }

    pub(super) fn fail(&mut self, cluster: &str, why: &str, may_pass: bool) {
        let why = why.to_owned();
        self.values.insert(cluster.to_owned(), Values::Failed { why, may_pass });
    }

    pub(super) fn values(&mut self, cluster: &str, values: &str) {
        self.values.insert(cluster.to_owned(), Values::Rendered(values.into()));
    }

    pub(super) fn seen(&self) -> Observed {
        let proxy: HelmChartProxy = serde_json::from_value(self.proxy.clone()).unwrap();
        let clusters: BTreeMap<String, Arc<Cluster>> = self
            .clusters
            .iter()
            .map(|(name, cluster)| (name.clone(), Arc::new(serde_json::from_value(cluster.clone()).unwrap())))
            .collect();
        let chosen = choose(&proxy, &clusters);
        let values = |name: String| {
            let values = match self.values.get(&name) {
                _ if !is_served(&clusters[&name]) || self.template.is_some() => Values::NotNeeded,
                Some(values) => values.clone(),
                None => Values::Rendered("a: 1\n".into()),
            };
            (name, values)
        };
        let chosen = chosen.map(|names| names.into_iter().map(values).collect());
        let releases = self.releases.values();
        Observed {
            proxy: Arc::new(proxy),
            clusters,
            chosen,
            template: self.template.clone(),
            releases: releases
                .map(|release| Arc::new(serde_json::from_value(release.clone()).unwrap()))
                .collect(),
            available: Some(Ok(())),
        }
    }

    pub(super) fn plan(&self) -> Plan {
        plan(&self.seen())
    }

    /// What a server makes of a plan. Nothing that is deleted is gone, as releases are uninstalled first.
    pub(super) fn apply(&mut self, plan: &Plan) {
        for action in &plan.actions {
            match action {
                Action::Create(release) => {
                    let mut object = serde_json::to_value(release).unwrap();
                    merge(
                        &mut object,
                        &json!({"metadata": {"generation": 1, "uid": release.key().name, "resourceVersion": "1"}}),
                    );
                    assert!(
                        self.releases.insert(release.key().name, object).is_none(),
                        "{release:?} is there already"
                    );
                }
                Action::Patch { name, patch, .. } => {
                    let release = self.releases.get_mut(name).unwrap();
                    merge(release, patch);
                    let generation = release["metadata"]["generation"].as_i64().unwrap();
                    if patch.get("spec").is_some() {
                        release["metadata"]["generation"] = json!(generation + 1);
                    }
                }
                Action::Delete { release, .. } => {
                    let release = self.releases.get_mut(&release.key().name).unwrap();
                    release["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                }
                Action::RemoveFinalizer => {}
            }
        }
    }

    /// Releases that are deleted are uninstalled, and all others installed.
    pub(super) fn settle(&mut self) {
        self.releases
            .retain(|_, release| release["metadata"].get("deletionTimestamp").is_none());
        for release in self.releases.values_mut() {
            make_ready(release);
        }
    }

    /// The Clusters with a HelmReleaseProxy that stays.
    pub(super) fn served(&self) -> Vec<String> {
        let living = self
            .releases
            .values()
            .filter(|release| release["metadata"].get("deletionTimestamp").is_none());
        let mut names: Vec<String> = living
            .map(|release| release["spec"]["clusterRef"]["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    /// Another HelmReleaseProxy for a Cluster, by another name.
    pub(super) fn double(&mut self, cluster: &str, name: &str) {
        let proxy: HelmChartProxy = serde_json::from_value(self.proxy.clone()).unwrap();
        let mut release: HelmReleaseProxy = desired::release_proxy(&proxy, cluster, "a: 1\n");
        release.metadata.name = Some(name.to_owned());
        release.metadata.generation = Some(1);
        self.releases
            .insert(name.to_owned(), serde_json::to_value(release).unwrap());
    }
}

pub(super) fn make_ready(release: &mut Value) {
    let generation = release["metadata"]["generation"].clone();
    let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let conditions = ["ClusterAvailable", "HelmReleaseReady", "Ready"].map(condition);
    release["status"] = json!({
        "observedGeneration": generation,
        "conditions": conditions,
    });
}
