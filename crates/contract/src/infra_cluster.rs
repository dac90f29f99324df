//! Infrastructure of a cluster.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use windlass_api::core::{APIEndpoint, FailureDomain};

use crate::ContractVersion;
use crate::path::{bool_at, value_at};

/// Where readiness is: `status.initialization.provisioned`, or `status.ready` by the older contract.
pub fn provisioned_path(contract: ContractVersion) -> &'static [&'static str] {
    match contract {
        ContractVersion::V1Beta2 => &["status", "initialization", "provisioned"],
        ContractVersion::V1Beta1 => &["status", "ready"],
    }
}

/// True once the infrastructure is there.
pub fn provisioned(object: &Value, contract: ContractVersion) -> bool {
    bool_at(object, provisioned_path(contract)).unwrap_or(false)
}

/// `spec.controlPlaneEndpoint`, once host and port are known.
pub fn endpoint(object: &Value) -> Option<APIEndpoint> {
    let endpoint = APIEndpoint::deserialize(value_at(object, &["spec", "controlPlaneEndpoint"])?).ok()?;
    let known = endpoint.host.as_ref().is_some_and(|h| !h.is_empty()) && endpoint.port.is_some_and(|p| p != 0);
    known.then_some(endpoint)
}

/// `status.failureDomains`, by name. A list now, a map by the older contract.
pub fn failure_domains(object: &Value, contract: ContractVersion) -> Vec<FailureDomain> {
    let Some(value) = value_at(object, &["status", "failureDomains"]) else {
        return Vec::new();
    };
    let mut domains = match contract {
        ContractVersion::V1Beta2 => Vec::<FailureDomain>::deserialize(value).unwrap_or_default(),
        ContractVersion::V1Beta1 => BTreeMap::<String, Unnamed>::deserialize(value)
            .unwrap_or_default()
            .into_iter()
            .map(|(name, domain)| FailureDomain {
                name,
                control_plane: Some(domain.control_plane),
                attributes: domain.attributes,
            })
            .collect(),
    };
    for domain in &mut domains {
        domain.control_plane.get_or_insert(false);
    }
    domains.sort_by(|a, b| a.name.cmp(&b.name));
    domains
}

/// A failure domain under its name.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Unnamed {
    control_plane: bool,
    attributes: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_contracts_are_read() {
        let new = json!({
            "spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}},
            "status": {"initialization": {"provisioned": true}, "failureDomains": [{"name": "b"}, {"name": "a", "controlPlane": true}]},
        });
        assert!(provisioned(&new, ContractVersion::V1Beta2));
        assert!(!provisioned(&new, ContractVersion::V1Beta1));
        assert_eq!(endpoint(&new).unwrap().host.as_deref(), Some("10.0.0.1"));
        let domains = failure_domains(&new, ContractVersion::V1Beta2);
        assert_eq!((domains[0].name.as_str(), domains[0].control_plane), ("a", Some(true)));
        assert_eq!((domains[1].name.as_str(), domains[1].control_plane), ("b", Some(false)));

        let old = json!({"status": {"ready": true, "failureDomains": {"z": {"controlPlane": true, "attributes": {"k": "v"}}}}});
        assert!(provisioned(&old, ContractVersion::V1Beta1));
        let domains = failure_domains(&old, ContractVersion::V1Beta1);
        assert_eq!(
            (domains[0].name.as_str(), domains[0].attributes["k"].as_str()),
            ("z", "v")
        );
    }

    #[test]
    fn half_an_endpoint_is_none() {
        assert!(endpoint(&json!({"spec": {"controlPlaneEndpoint": {"host": "a", "port": 0}}})).is_none());
        assert!(endpoint(&json!({"spec": {"controlPlaneEndpoint": {"host": "", "port": 6443}}})).is_none());
        assert!(endpoint(&json!({})).is_none());
    }
}
