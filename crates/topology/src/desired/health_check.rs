//! MachineHealthChecks.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Scope, put};
use crate::error::Error;
use crate::keys;

/// Default of nodeStartupTimeout.
const DEFAULT_NODE_STARTUP_SECONDS: i64 = 600;

/// The definition that counts: the topology's as a whole if it has one, else the class's; none when disabled.
pub(super) fn definition<'a>(
    class: Option<&'a Map<String, Value>>,
    topology: Option<&'a Map<String, Value>>,
    field: &str,
    scope: &Scope<'_>,
) -> Result<Option<&'a Map<String, Value>>, Error> {
    let defined = |map: &&Map<String, Value>| map.keys().any(|k| k != "enabled");
    let enabled = topology.and_then(|t| t.get("enabled")).and_then(Value::as_bool);
    let found = topology.filter(defined).or(class.filter(defined));
    if enabled == Some(true) && found.is_none() {
        let message = "cannot be true: neither the Cluster nor its ClusterClass defines a health check here";
        return Err(Error::new(&scope.object, format!("{field}.enabled"), message));
    }
    Ok(found.filter(|_| enabled != Some(false)))
}

/// The MachineHealthCheck for the Machines that `selector` finds.
pub(super) fn build(
    scope: &Scope<'_>,
    name: &Value,
    definition: &Map<String, Value>,
    selector: &BTreeMap<&str, &str>,
) -> Value {
    let mut checks = definition.get("checks").cloned().unwrap_or_else(|| json!({}));
    if let Some(checks) = checks.as_object_mut() {
        checks
            .entry("nodeStartupTimeoutSeconds")
            .or_insert_with(|| DEFAULT_NODE_STARTUP_SECONDS.into());
    }
    let mut out = json!({
        "apiVersion": keys::CORE_API_VERSION,
        "kind": "MachineHealthCheck",
        "metadata": {
            "name": name,
            "namespace": scope.namespace,
            "labels": scope.labels(None),
            "ownerReferences": [scope.owner(false)],
        },
        "spec": {
            "clusterName": scope.cluster,
            "selector": {"matchLabels": selector},
            "checks": checks,
        },
    });
    for part in ["triggerIf", "templateRef"] {
        let value = definition.get("remediation").and_then(|r| r.get(part)).cloned();
        put(&mut out, &["spec", "remediation", part], value);
    }
    out
}
