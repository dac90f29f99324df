//! Infrastructure of a Machine.

use serde::Deserialize;
use serde_json::Value;
use windlass_api::core::MachineAddress;

use crate::ContractVersion;
use crate::path::{bool_at, str_at, value_at};

/// The path of readiness: `status.initialization.provisioned`, or `status.ready` in the older contract.
pub fn provisioned_path(contract: ContractVersion) -> &'static [&'static str] {
    crate::infra_cluster::provisioned_path(contract)
}

/// True once the machine is provisioned.
pub fn provisioned(object: &Value, contract: ContractVersion) -> bool {
    bool_at(object, provisioned_path(contract)).unwrap_or(false)
}

/// Why a machine is not provisioned, beginning with the field; `None` if it is.
pub fn provisioned_lack(object: &Value, contract: ContractVersion) -> Option<String> {
    crate::infra_cluster::provisioned_lack(object, contract)
}

/// `spec.providerID`.
pub fn provider_id(object: &Value) -> Option<&str> {
    str_at(object, &["spec", "providerID"])
}

/// `status.addresses`.
pub fn addresses(object: &Value) -> Vec<MachineAddress> {
    value_at(object, &["status", "addresses"])
        .and_then(|value| Vec::<MachineAddress>::deserialize(value).ok())
        .unwrap_or_default()
}

/// `status.failureDomain`.
pub fn failure_domain(object: &Value) -> Option<&str> {
    str_at(object, &["status", "failureDomain"])
}

/// `spec.failureDomain`: older providers choose the failure domain there.
pub fn chosen_failure_domain(object: &Value) -> Option<&str> {
    str_at(object, &["spec", "failureDomain"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_what_providers_report() {
        let object = json!({
            "spec": {"providerID": "in-memory:///a", "failureDomain": "old"},
            "status": {"initialization": {"provisioned": true}, "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]},
        });
        assert!(provisioned(&object, ContractVersion::V1Beta2));
        assert_eq!(provider_id(&object), Some("in-memory:///a"));
        assert_eq!(failure_domain(&object), None);
        assert_eq!(chosen_failure_domain(&object), Some("old"));
        assert_eq!(addresses(&object)[0].address, "10.0.0.2");
        assert!(addresses(&json!({})).is_empty());
    }
}
