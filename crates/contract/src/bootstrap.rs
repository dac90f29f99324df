//! Bootstrap data of a Machine.

use serde_json::Value;

use crate::ContractVersion;
use crate::path::{bool_at, flag_lack, str_at};

/// The path of readiness: `status.initialization.dataSecretCreated`, or `status.ready` in the older contract.
pub fn data_secret_created_path(contract: ContractVersion) -> &'static [&'static str] {
    match contract {
        ContractVersion::V1Beta2 => &["status", "initialization", "dataSecretCreated"],
        ContractVersion::V1Beta1 => &["status", "ready"],
    }
}

/// True once the Secret with the data exists.
pub fn data_secret_created(object: &Value, contract: ContractVersion) -> bool {
    bool_at(object, data_secret_created_path(contract)).unwrap_or(false)
}

/// Why the data is not ready, beginning with the field; `None` if it is.
pub fn data_secret_created_lack(object: &Value, contract: ContractVersion) -> Option<String> {
    flag_lack(object, data_secret_created_path(contract))
}

/// `status.dataSecretName`.
pub fn data_secret_name(object: &Value) -> Option<&str> {
    str_at(object, &["status", "dataSecretName"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_contracts_are_read() {
        let new = json!({"status": {"initialization": {"dataSecretCreated": true}, "dataSecretName": "x"}});
        assert!(data_secret_created(&new, ContractVersion::V1Beta2));
        assert_eq!(data_secret_name(&new), Some("x"));
        assert!(data_secret_created(
            &json!({"status": {"ready": true}}),
            ContractVersion::V1Beta1
        ));
    }
}
