//! The variables that the controller itself provides.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::keys;
use crate::model::{Topology, text};

/// Facts about the whole Cluster; every template sees them.
///
/// `own` are the labels that the Cluster gets from this controller: the first pass sees them as every later one does.
pub fn cluster(cluster: &Value, topology: &Topology, own: &BTreeMap<String, String>) -> Value {
    let mut out = Map::new();
    let namespace = text(cluster, "/metadata/namespace");
    out.insert("name".into(), text(cluster, "/metadata/name").into());
    out.insert("namespace".into(), namespace.into());
    let uid = text(cluster, "/metadata/uid");
    if !uid.is_empty() {
        out.insert("uid".into(), uid.into());
    }
    if let Some(metadata) = metadata_of(cluster, own) {
        out.insert("metadata".into(), metadata);
    }
    let class = &topology.class_ref;
    let class_namespace = class.namespace.as_deref().unwrap_or(namespace);
    out.insert(
        "topology".into(),
        json!({
            "version": crate::version::canonical(&topology.version),
            "class": class.name,
            "classNamespace": class_namespace,
            "classRef": {"name": class.name, "namespace": class_namespace},
        }),
    );
    if let Some(network) = cluster.pointer("/spec/clusterNetwork") {
        out.insert("network".into(), network_of(network));
    }
    json!({"cluster": out})
}

/// Labels and annotations, without those that tools and this controller keep for themselves.
fn metadata_of(object: &Value, own: &BTreeMap<String, String>) -> Option<Value> {
    const KEPT_BACK: [&str; 3] = [keys::LAST_APPLIED, keys::CONVERSION_DATA, keys::UPGRADE_STEP];
    let mut out = Map::new();
    let none = BTreeMap::new();
    for (part, own) in [("labels", own), ("annotations", &none)] {
        let map = object.pointer(&format!("/metadata/{part}")).and_then(Value::as_object);
        let kept: Map<String, Value> = map
            .into_iter()
            .flatten()
            .filter(|(k, _)| !KEPT_BACK.contains(&k.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .chain(own.iter().map(|(k, v)| (k.clone(), v.as_str().into())))
            .collect();
        if !kept.is_empty() {
            out.insert(part.into(), kept.into());
        }
    }
    (!out.is_empty()).then(|| out.into())
}

fn network_of(network: &Value) -> Value {
    let blocks = |part: &str| -> Vec<Value> {
        network
            .pointer(&format!("/{part}/cidrBlocks"))
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (services, pods) = (blocks("services"), blocks("pods"));
    let mut out = Map::new();
    if let Some(domain) = network.get("serviceDomain") {
        out.insert("serviceDomain".into(), domain.clone());
    }
    out.insert("ipFamily".into(), ip_family(&pods, &services).into());
    for (name, list) in [("services", services), ("pods", pods)] {
        if !list.is_empty() {
            out.insert(name.into(), list.into());
        }
    }
    out.into()
}

fn ip_family(pods: &[Value], services: &[Value]) -> &'static str {
    let family = |list: &[Value]| match list {
        [] => None,
        [one] => Some(if is_v6(one) { "IPv6" } else { "IPv4" }),
        [a, b] if is_v6(a) != is_v6(b) => Some("DualStack"),
        _ => Some("Invalid"),
    };
    match (family(pods), family(services)) {
        (None, None) => "IPv4",
        (Some(one), None) | (None, Some(one)) => one,
        (Some("DualStack"), Some(services)) if services != "Invalid" => "DualStack",
        (Some(pods), Some(services)) if pods == services => pods,
        _ => "Invalid",
    }
}

fn is_v6(block: &Value) -> bool {
    block.as_str().is_some_and(|b| b.contains(':'))
}

/// Facts about one part of the topology, seen only by its own templates.
#[derive(Debug, Clone, Default)]
pub struct Part<'a> {
    /// The version that this part is being brought to now.
    pub version: &'a str,
    /// Name of the generated object.
    pub name: &'a str,
    /// Number of Machines, if the topology says one.
    pub replicas: Option<i64>,
    /// Labels that the generated object gets from class and topology.
    pub labels: Option<&'a BTreeMap<String, String>>,
    /// Annotations that the generated object gets from class and topology.
    pub annotations: Option<&'a BTreeMap<String, String>>,
}

impl Part<'_> {
    fn common(&self) -> Map<String, Value> {
        let mut out = Map::new();
        out.insert("version".into(), self.version.into());
        out.insert("name".into(), self.name.into());
        if let Some(replicas) = self.replicas {
            out.insert("replicas".into(), replicas.into());
        }
        let mut metadata = Map::new();
        for (name, map) in [("labels", self.labels), ("annotations", self.annotations)] {
            if let Some(map) = map.filter(|m| !m.is_empty()) {
                metadata.insert(name.into(), json!(map));
            }
        }
        if !metadata.is_empty() {
            out.insert("metadata".into(), metadata.into());
        }
        out
    }
}

/// Facts about the control plane.
pub fn control_plane(part: &Part<'_>, machine_template: Option<&str>) -> Value {
    let mut out = part.common();
    if let Some(name) = machine_template {
        out.insert("machineTemplate".into(), json!({"infrastructureRef": {"name": name}}));
    }
    json!({"controlPlane": out})
}

/// Facts about one worker set: `kind` is `machineDeployment` or `machinePool`.
pub fn worker(
    kind: &str,
    part: &Part<'_>,
    class: &str,
    topology_name: &str,
    bootstrap: &str,
    infrastructure: &str,
) -> Value {
    let mut out = part.common();
    out.insert("class".into(), class.into());
    out.insert("topologyName".into(), topology_name.into());
    out.insert("bootstrap".into(), json!({"configRef": {"name": bootstrap}}));
    out.insert("infrastructureRef".into(), json!({"name": infrastructure}));
    json!({kind: out})
}

#[cfg(test)]
mod tests {
    use super::*;

    // TO-154
    #[test]
    fn ip_families() {
        let check = |pods: &[&str], services: &[&str], expect: &str| {
            let list = |l: &[&str]| l.iter().map(|s| Value::from(*s)).collect::<Vec<_>>();
            assert_eq!(ip_family(&list(pods), &list(services)), expect, "{pods:?} {services:?}");
        };
        check(&[], &[], "IPv4");
        check(&["10.0.0.0/8"], &["10.1.0.0/16"], "IPv4");
        check(&["fd00::/8"], &["fd01::/8"], "IPv6");
        check(&["10.0.0.0/8", "fd00::/8"], &["10.1.0.0/16"], "DualStack");
        check(&["10.0.0.0/8"], &["fd00::/8"], "Invalid");
        check(&["10.0.0.0/8", "fd00::/8", "fd01::/8"], &[], "Invalid");
    }

    // TO-151, TO-152, TO-153, TO-162
    #[test]
    fn cluster_facts() {
        let cluster_object = json!({
            "metadata": {"name": "foo", "namespace": "bar", "uid": "u", "labels": {"a": "b"}},
            "spec": {"clusterNetwork": {"serviceDomain": "d", "pods": {"cidrBlocks": ["10.0.0.0/8"]}}},
        });
        let topology: Topology =
            serde_json::from_value(json!({"classRef": {"name": "c"}, "version": "1.31.0"})).unwrap();
        assert_eq!(
            cluster(
                &cluster_object,
                &topology,
                &BTreeMap::from([("own".to_owned(), "x".to_owned())])
            ),
            json!({"cluster": {
                "name": "foo", "namespace": "bar", "uid": "u", "metadata": {"labels": {"a": "b", "own": "x"}},
                "topology": {
                    "version": "v1.31.0", "class": "c", "classNamespace": "bar",
                    "classRef": {"name": "c", "namespace": "bar"},
                },
                "network": {"serviceDomain": "d", "ipFamily": "IPv4", "pods": ["10.0.0.0/8"]},
            }})
        );
    }

    // TO-155, TO-156, TO-157, TO-158
    #[test]
    fn part_facts() {
        let part = Part {
            version: "v1",
            name: "foo-x",
            replicas: Some(3),
            ..Part::default()
        };
        assert_eq!(
            control_plane(&part, Some("t")),
            json!({"controlPlane": {
                "version": "v1", "name": "foo-x", "replicas": 3,
                "machineTemplate": {"infrastructureRef": {"name": "t"}},
            }})
        );
        let part = Part {
            version: "v1",
            name: "foo-md",
            ..Part::default()
        };
        assert_eq!(
            worker("machineDeployment", &part, "c", "md", "b", "i"),
            json!({"machineDeployment": {
                "version": "v1", "name": "foo-md", "class": "c", "topologyName": "md",
                "bootstrap": {"configRef": {"name": "b"}}, "infrastructureRef": {"name": "i"},
            }})
        );
    }
}
