//! A values template and a Cluster, separated by a zero byte: parsed, checked for references, and rendered twice.

use serde_json::{Value, json};
use windlass_addon_values::{Objects, Template};

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let mut parts = data.splitn(2, |b| *b == 0);
    let Some(Ok(text)) = parts.next().map(std::str::from_utf8) else {
        return;
    };
    let cluster = parts
        .next()
        .and_then(|text| serde_json::from_slice::<Value>(text).ok())
        .unwrap_or(json!({
            "metadata": {"name": "c", "labels": {"a": "b"}},
            "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/16", "fd00::/48"]}}, "paused": false},
        }));
    let Ok(template) = Template::parse(text) else {
        return;
    };
    let _ = template.refers_to();
    let objects = Objects {
        cluster: &cluster,
        control_plane: Some(&cluster),
        infra_cluster: None,
    };
    assert_eq!(template.render(&objects), template.render(&objects));
}
