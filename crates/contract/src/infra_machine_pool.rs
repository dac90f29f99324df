//! Infrastructure of a MachinePool.

use serde::Deserialize as _;
use serde_json::Value;

use crate::ContractVersion;
use crate::path::{bool_at, flag_lack, str_at, value_at};

/// The path of readiness in the older contract. Cluster API v1.14 reads it in both.
const READY: &[&str] = &["status", "ready"];

fn provisioned_path(object: &Value, contract: ContractVersion) -> &'static [&'static str] {
    let path = crate::infra_cluster::provisioned_path(contract);
    if bool_at(object, path).is_some() { path } else { READY }
}

/// True once the pool is provisioned: `status.initialization.provisioned`, and where an object does not have it `status.ready`.
pub fn provisioned(object: &Value, contract: ContractVersion) -> bool {
    bool_at(object, provisioned_path(object, contract)).unwrap_or(false)
}

/// Why a pool is not provisioned, beginning with the field; `None` if it is.
pub fn provisioned_lack(object: &Value, contract: ContractVersion) -> Option<String> {
    flag_lack(object, provisioned_path(object, contract))
}

/// `spec.providerIDList`, without entries that have no text; `None` when it is no list of texts. One that is missing is empty.
pub fn provider_ids(object: &Value) -> Option<Vec<String>> {
    let Some(list) = value_at(object, &["spec", "providerIDList"]).filter(|list| !list.is_null()) else {
        return Some(Vec::new());
    };
    let mut all = Vec::<String>::deserialize(list).ok()?;
    all.retain(|id| !id.is_empty());
    Some(all)
}

/// `status.replicas`.
pub fn replicas(object: &Value) -> Option<i32> {
    value_at(object, &["status", "replicas"])?.as_i64()?.try_into().ok()
}

/// `status.infrastructureMachineKind`: the kind of an object for each machine, if the provider has them.
pub fn machine_kind(object: &Value) -> Option<&str> {
    str_at(object, &["status", "infrastructureMachineKind"]).filter(|kind| !kind.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_ready_is_provisioned_by_either_contract() {
        let check = |status: Value, contract, expect| {
            assert_eq!(
                provisioned(&json!({"status": status.clone()}), contract),
                expect,
                "{status}"
            );
        };
        check(json!({"ready": true}), ContractVersion::V1Beta1, true);
        check(json!({"ready": true}), ContractVersion::V1Beta2, true);
        check(
            json!({"initialization": {"provisioned": true}}),
            ContractVersion::V1Beta2,
            true,
        );
        let undone = json!({"initialization": {"provisioned": false}, "ready": true});
        check(undone, ContractVersion::V1Beta2, false);
        check(json!({}), ContractVersion::V1Beta2, false);
    }

    #[test]
    fn machines_are_read() {
        let object = json!({
            "spec": {"providerIDList": ["a", "", "b"]},
            "status": {"replicas": 2, "infrastructureMachineKind": "DevMachine"},
        });
        assert_eq!(provider_ids(&object).unwrap(), ["a", "b"]);
        assert_eq!(
            (replicas(&object), machine_kind(&object)),
            (Some(2), Some("DevMachine"))
        );
        assert_eq!(
            (provider_ids(&json!({})), machine_kind(&json!({}))),
            (Some(Vec::new()), None)
        );
        let odd = json!({"spec": {"providerIDList": ["a", null]}});
        assert_eq!(provider_ids(&odd), None);
    }
}
