//! Control planes.

use serde::Deserialize;
use serde_json::Value;
use windlass_api::core::{APIEndpoint, ContractVersionedObjectReference, StatusVersion};
use windlass_meta::KubernetesVersion;

use crate::ContractVersion;
use crate::path::{bool_at, flag_lack, int_at, str_at, value_at};

/// The path of initialization: `status.initialization.controlPlaneInitialized`, or `status.initialized` in the older contract.
pub fn initialized_path(contract: ContractVersion) -> &'static [&'static str] {
    match contract {
        ContractVersion::V1Beta2 => &["status", "initialization", "controlPlaneInitialized"],
        ContractVersion::V1Beta1 => &["status", "initialized"],
    }
}

/// True once the API server of the new control plane accepts requests.
pub fn initialized(object: &Value, contract: ContractVersion) -> bool {
    bool_at(object, initialized_path(contract)).unwrap_or(false)
}

/// Why a control plane is not initialized, beginning with the field; `None` if it is.
pub fn initialized_lack(object: &Value, contract: ContractVersion) -> Option<String> {
    flag_lack(object, initialized_path(contract))
}

/// `spec.controlPlaneEndpoint`, if host and port are set.
pub fn endpoint(object: &Value) -> Option<APIEndpoint> {
    crate::infra_cluster::endpoint(object)
}

/// `spec.version`.
pub fn version(object: &Value) -> Option<&str> {
    str_at(object, &["spec", "version"])
}

/// The lowest running version: the first of `status.versions`, else `status.version`.
pub fn status_version(object: &Value) -> Option<&str> {
    let first = value_at(object, &["status", "versions"])
        .and_then(Value::as_array)
        .and_then(|list| list.first())
        .and_then(|item| str_at(item, &["version"]));
    first.or_else(|| str_at(object, &["status", "version"]))
}

/// `status.versions`.
pub fn status_versions(object: &Value) -> Vec<StatusVersion> {
    value_at(object, &["status", "versions"])
        .and_then(|value| Vec::<StatusVersion>::deserialize(value).ok())
        .unwrap_or_default()
}

/// `spec.replicas`; absent for control planes without replicas.
pub fn replicas(object: &Value) -> Option<i32> {
    int_at(object, &["spec", "replicas"])
}

/// `status.replicas`.
pub fn status_replicas(object: &Value) -> Option<i32> {
    int_at(object, &["status", "replicas"])
}

/// `status.readyReplicas`.
pub fn ready_replicas(object: &Value) -> Option<i32> {
    int_at(object, &["status", "readyReplicas"])
}

/// `status.availableReplicas`; in the older contract, the replicas not in `status.unavailableReplicas`, once that is reported.
pub fn available_replicas(object: &Value, contract: ContractVersion) -> Option<i32> {
    match contract {
        ContractVersion::V1Beta2 => int_at(object, &["status", "availableReplicas"]),
        ContractVersion::V1Beta1 => {
            let unavailable = int_at(object, &["status", "unavailableReplicas"])?;
            Some((replicas(object)? - unavailable).max(0))
        }
    }
}

/// `status.upToDateReplicas`, or `status.updatedReplicas` in the older contract.
pub fn up_to_date_replicas(object: &Value, contract: ContractVersion) -> Option<i32> {
    let field = match contract {
        ContractVersion::V1Beta2 => "upToDateReplicas",
        ContractVersion::V1Beta1 => "updatedReplicas",
    };
    int_at(object, &["status", field])
}

/// `status.selector`.
pub fn selector(object: &Value) -> Option<&str> {
    str_at(object, &["status", "selector"])
}

/// True when the control plane runs outside the cluster's Machines.
pub fn external_managed(object: &Value) -> bool {
    bool_at(object, &["status", "externalManagedControlPlane"]).unwrap_or(false)
}

/// The template of the control plane's machines, in either contract.
pub fn machine_template(object: &Value) -> Option<ContractVersionedObjectReference> {
    if let Some(value) = value_at(object, &["spec", "machineTemplate", "spec", "infrastructureRef"]) {
        return ContractVersionedObjectReference::deserialize(value).ok();
    }
    let old = value_at(object, &["spec", "machineTemplate", "infrastructureRef"])?;
    let api_version = str_at(old, &["apiVersion"]).unwrap_or_default();
    Some(ContractVersionedObjectReference {
        api_group: api_version.split_once('/').map_or("", |(group, _)| group).to_owned(),
        kind: str_at(old, &["kind"])?.to_owned(),
        name: str_at(old, &["name"])?.to_owned(),
    })
}

/// True while a running version is behind the desired one, or is another build without an order, or cannot be parsed. False before anything
/// runs.
pub fn is_upgrading(object: &Value) -> bool {
    let Some(wanted) = version(object) else {
        return false;
    };
    let parse = KubernetesVersion::parse_tolerant;
    let behind = |running: &str| match (parse(wanted), parse(running)) {
        (Ok(wanted), Ok(running)) => matches!(
            running.compare_with_build(&wanted),
            None | Some(std::cmp::Ordering::Less)
        ),
        _ => true,
    };
    let versions = status_versions(object);
    if versions.is_empty() {
        status_version(object).is_some_and(behind)
    } else {
        versions.iter().any(|running| behind(&running.version))
    }
}

/// True while counts differ from the desired ones, or are not reported. False for control planes without replicas.
pub fn is_scaling(object: &Value, contract: ContractVersion) -> bool {
    let Some(wanted) = replicas(object) else {
        return false;
    };
    // In the older contract a control plane without the field has no replica that is not available.
    let available = match contract {
        ContractVersion::V1Beta2 => available_replicas(object, contract),
        ContractVersion::V1Beta1 => available_replicas(object, contract).or(Some(wanted)),
    };
    [
        status_replicas(object),
        up_to_date_replicas(object, contract),
        ready_replicas(object),
        available,
    ]
    .into_iter()
    .any(|count| count != Some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use ContractVersion::{V1Beta1, V1Beta2};

    #[test]
    fn initialized_by_either_contract() {
        assert!(initialized(
            &json!({"status": {"initialization": {"controlPlaneInitialized": true}}}),
            V1Beta2
        ));
        assert!(initialized(&json!({"status": {"initialized": true}}), V1Beta1));
        assert!(!initialized(&json!({"status": {"initialized": true}}), V1Beta2));
    }

    #[test]
    fn upgrading_while_anything_is_behind() {
        let check = |object: Value, expect: bool| assert_eq!(is_upgrading(&object), expect, "{object}");
        check(json!({"spec": {"version": "v1.35.0"}}), false);
        check(
            json!({"spec": {"version": "v1.35.0"}, "status": {"version": "v1.34.0"}}),
            true,
        );
        check(
            json!({"spec": {"version": "v1.35.0"}, "status": {"version": "v1.35.0"}}),
            false,
        );
        check(
            json!({"spec": {"version": "v1.35.0+b2"}, "status": {"version": "v1.35.0+b1"}}),
            true,
        );
        // Some providers report no patch, or a build that is not in the spec.
        check(
            json!({"spec": {"version": "v1.35.0"}, "status": {"version": "1.35"}}),
            false,
        );
        check(
            json!({"spec": {"version": "v1.35.0"}, "status": {"version": "1.34"}}),
            true,
        );
        check(
            json!({"spec": {"version": "v1.35.0"}, "status": {"version": "v1.35.0+b1"}}),
            false,
        );
        check(
            json!({"spec": {"version": "v1.35.0"}, "status": {"version": "new"}}),
            true,
        );
        check(
            json!({"spec": {"version": "v1.35.0"}, "status": {"version": "v1.35.0", "versions": [{"version": "v1.34.1"}, {"version": "v1.35.0"}]}}),
            true,
        );
    }

    #[test]
    fn scaling_until_all_counts_agree() {
        let settled = json!({"spec": {"replicas": 3}, "status": {"replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "upToDateReplicas": 3}});
        assert!(!is_scaling(&settled, V1Beta2));
        assert!(is_scaling(&settled, V1Beta1), "the older contract has updatedReplicas");
        let old = json!({"spec": {"replicas": 3}, "status": {"replicas": 3, "readyReplicas": 3, "updatedReplicas": 3}});
        assert!(!is_scaling(&old, V1Beta1));
        assert!(is_scaling(&json!({"spec": {"replicas": 3}}), V1Beta2));
        assert!(!is_scaling(&json!({"spec": {}}), V1Beta2));
    }

    #[test]
    fn without_the_unavailable_count_of_the_older_contract_the_available_are_unknown() {
        let with =
            |unavailable: Value| json!({"spec": {"replicas": 3}, "status": {"unavailableReplicas": unavailable}});
        assert_eq!(available_replicas(&json!({"spec": {"replicas": 3}}), V1Beta1), None);
        assert_eq!(available_replicas(&with(json!(1)), V1Beta1), Some(2));
        assert_eq!(available_replicas(&with(json!(4)), V1Beta1), Some(0));
    }

    #[test]
    fn the_machine_template_is_found_where_either_contract_has_it() {
        let new = json!({"spec": {"machineTemplate": {"spec": {"infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "n"}}}}});
        let old = json!({"spec": {"machineTemplate": {"infrastructureRef": {"apiVersion": "g/v1", "kind": "K", "name": "n"}}}});
        assert_eq!(machine_template(&new), machine_template(&old));
        assert_eq!(machine_template(&new).unwrap().api_group, "g");
    }
}
