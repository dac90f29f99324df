//! Infrastructure of a cluster.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_api::core::{APIEndpoint, FailureDomain};

use crate::ContractVersion;
use crate::path::{bool_at, flag_lack, str_at, value_at};

mod admission;

pub use admission::{Refusal, check_update};

/// The path of readiness: `status.initialization.provisioned`, or `status.ready` in the older contract.
pub fn provisioned_path(contract: ContractVersion) -> &'static [&'static str] {
    match contract {
        ContractVersion::V1Beta2 => &["status", "initialization", "provisioned"],
        ContractVersion::V1Beta1 => &["status", "ready"],
    }
}

/// True once the infrastructure is provisioned.
pub fn provisioned(object: &Value, contract: ContractVersion) -> bool {
    bool_at(object, provisioned_path(contract)).unwrap_or(false)
}

/// Why an object is not provisioned, beginning with the field; `None` if it is.
pub fn provisioned_lack(object: &Value, contract: ContractVersion) -> Option<String> {
    flag_lack(object, provisioned_path(contract))
}

/// The state of `spec.controlPlaneEndpoint`.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// Not set.
    Absent,
    /// Invalid; the problem, beginning with the field.
    Incomplete(String),
    /// Host and port.
    Complete(APIEndpoint),
}

/// Parses `spec.controlPlaneEndpoint`. A provider's schema may allow any value there: only a host and a port that are valid in a
/// Cluster are complete.
pub fn read_endpoint(object: &Value) -> Endpoint {
    let Some(value) = value_at(object, &["spec", "controlPlaneEndpoint"]) else {
        return Endpoint::Absent;
    };
    if !value.is_object() {
        return Endpoint::Incomplete(format!("{ENDPOINT} is not an object with host and port"));
    }
    match (read_host(&value["host"]), read_port(&value["port"])) {
        (Ok(host), Ok(port)) => Endpoint::Complete(APIEndpoint {
            host: Some(host.to_owned()),
            port: Some(port),
        }),
        // A zero value, from programs that omit no field.
        (Err(NOT_SET), Err(NOT_SET)) => Endpoint::Absent,
        (host, port) => {
            let wrong = [("host", host.err()), ("port", port.err())];
            let words = wrong
                .iter()
                .filter_map(|(field, why)| Some(format!("{ENDPOINT}.{field} is {}", (*why)?)));
            Endpoint::Incomplete(words.collect::<Vec<_>>().join(", "))
        }
    }
}

const ENDPOINT: &str = "spec.controlPlaneEndpoint";
const NOT_SET: &str = "not set";
/// The longest host that is valid in a Cluster.
const LONGEST_HOST: usize = 512;

fn read_host(host: &Value) -> Result<&str, &'static str> {
    match host {
        Value::Null => Err(NOT_SET),
        Value::String(host) if host.is_empty() => Err(NOT_SET),
        Value::String(host) if host.chars().count() > LONGEST_HOST => Err("longer than 512 characters"),
        Value::String(host) => Ok(host),
        _ => Err("not a text"),
    }
}

fn read_port(port: &Value) -> Result<i32, &'static str> {
    match port {
        Value::Null => Err(NOT_SET),
        port if port.as_i64() == Some(0) => Err(NOT_SET),
        port => port
            .as_u64()
            .and_then(|port| u16::try_from(port).ok())
            .map(i32::from)
            .ok_or("not a number from 1 to 65535"),
    }
}

/// `spec.controlPlaneEndpoint`, if host and port are set.
pub fn endpoint(object: &Value) -> Option<APIEndpoint> {
    match read_endpoint(object) {
        Endpoint::Complete(endpoint) => Some(endpoint),
        Endpoint::Absent | Endpoint::Incomplete(_) => None,
    }
}

/// `status.failureDomains`, by name: a list, or a map in the older contract. Failure domains that are not valid in a Cluster are
/// dropped, and so are duplicates after the first.
pub fn failure_domains(object: &Value, contract: ContractVersion) -> Vec<FailureDomain> {
    let found = value_at(object, &["status", "failureDomains"]);
    let named = |name: &str, value: &Value| {
        let fits = !name.is_empty() && name.chars().count() <= LONGEST_DOMAIN;
        (fits && value.is_object()).then(|| FailureDomain {
            name: name.to_owned(),
            control_plane: Some(value["controlPlane"].as_bool().unwrap_or(false)),
            attributes: attributes(&value["attributes"]),
        })
    };
    let domains: Vec<FailureDomain> = match contract {
        ContractVersion::V1Beta2 => {
            let list = found.and_then(Value::as_array).into_iter().flatten();
            list.filter_map(|value| named(value["name"].as_str()?, value)).collect()
        }
        ContractVersion::V1Beta1 => {
            let map = found.and_then(Value::as_object).into_iter().flatten();
            map.filter_map(|(name, value)| named(name, value)).collect()
        }
    };
    let mut by_name: BTreeMap<String, FailureDomain> = BTreeMap::new();
    for domain in domains {
        by_name.entry(domain.name.clone()).or_insert(domain);
    }
    by_name.into_values().take(MOST_DOMAINS).collect()
}

/// The longest name of a failure domain that is valid in a Cluster.
const LONGEST_DOMAIN: usize = 256;
/// The limit of failure domains in a Cluster.
const MOST_DOMAINS: usize = 100;

fn attributes(value: &Value) -> BTreeMap<String, String> {
    let all = value.as_object().into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// `status.failureReason`: a failure that needs a user, as one word. Informational.
pub fn failure_reason(object: &Value) -> Option<&str> {
    str_at(object, &["status", "failureReason"])
}

/// `status.failureMessage`: a failure that needs a user, as text. Informational.
pub fn failure_message(object: &Value) -> Option<&str> {
    str_at(object, &["status", "failureMessage"])
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

    // EX-047: reads are total, and say what is wrong.
    #[test]
    fn an_endpoint_is_complete_or_says_what_is_missing() {
        let read = |endpoint: Value| read_endpoint(&json!({"spec": {"controlPlaneEndpoint": endpoint}}));
        let lacks = |endpoint: Value, why: &str| assert_eq!(read(endpoint), Endpoint::Incomplete(why.to_owned()));
        let (host, port) = ("spec.controlPlaneEndpoint.host", "spec.controlPlaneEndpoint.port");
        lacks(json!({"host": "a"}), &format!("{port} is not set"));
        lacks(json!({"host": "a", "port": 0}), &format!("{port} is not set"));
        lacks(json!({"port": 6443}), &format!("{host} is not set"));
        lacks(json!({"host": "", "port": 6443}), &format!("{host} is not set"));
        lacks(
            json!({"host": 10, "port": "6443"}),
            &format!("{host} is not a text, {port} is not a number from 1 to 65535"),
        );
        lacks(
            json!({"host": "a", "port": 65536}),
            &format!("{port} is not a number from 1 to 65535"),
        );
        lacks(
            json!({"host": "a".repeat(513), "port": 6443}),
            &format!("{host} is longer than 512 characters"),
        );
        for wrong in [json!("10.0.0.1:6443"), json!(["10.0.0.1"]), json!(6443)] {
            lacks(wrong, "spec.controlPlaneEndpoint is not an object with host and port");
        }
        for absent in [json!({}), json!(null), json!({"host": "", "port": 0})] {
            assert_eq!(read(absent), Endpoint::Absent);
        }
        assert_eq!(read_endpoint(&json!({})), Endpoint::Absent);
        let complete = json!({"spec": {"controlPlaneEndpoint": {"host": "::1", "port": 65535}}});
        assert_eq!(endpoint(&complete).unwrap().port, Some(65535));
    }

    // EX-044, EX-045: the contract decides where to look, and what is missing is named there.
    #[test]
    fn what_keeps_an_object_from_being_provisioned_is_named() {
        use ContractVersion::{V1Beta1, V1Beta2};
        let check = |status: Value, contract, expect: Option<&str>| {
            let object = json!({ "status": status });
            assert_eq!(provisioned_lack(&object, contract).as_deref(), expect);
            assert_eq!(provisioned(&object, contract), expect.is_none());
        };
        let new = |words| Some(format!("status.initialization.provisioned is {words}"));
        check(json!(null), V1Beta2, new("false").as_deref());
        check(json!({"ready": true}), V1Beta2, new("false").as_deref());
        check(
            json!({"initialization": {"provisioned": false}}),
            V1Beta2,
            new("false").as_deref(),
        );
        check(
            json!({"initialization": {"provisioned": "true"}}),
            V1Beta2,
            new("not a boolean").as_deref(),
        );
        check(json!({"initialization": "done"}), V1Beta2, new("false").as_deref());
        check(json!({"initialization": {"provisioned": true}}), V1Beta2, None);
        let both = json!({"initialization": {"provisioned": true}, "ready": false});
        check(both, V1Beta1, Some("status.ready is false"));
        check(json!({}), V1Beta1, Some("status.ready is false"));
        check(json!({"ready": true}), V1Beta1, None);
    }

    // EX-048
    #[test]
    fn failure_domains_that_a_cluster_may_not_have_are_left_out() {
        use ContractVersion::{V1Beta1, V1Beta2};
        let check = |value: Value, contract, expect: &[(&str, bool)]| {
            let found = failure_domains(&json!({"status": {"failureDomains": value}}), contract);
            let found: Vec<_> = found
                .iter()
                .map(|domain| (domain.name.as_str(), domain.control_plane == Some(true)))
                .collect();
            assert_eq!(found, expect);
        };
        let list = json!([
            {"name": "b", "controlPlane": true}, "c", {"controlPlane": true}, {"name": ""}, {"name": 7}, {"name": "b"},
            {"name": "a", "controlPlane": "yes", "attributes": {"k": 1, "l": "v"}}, {"name": "x".repeat(257)},
        ]);
        check(list.clone(), V1Beta2, &[("a", false), ("b", true)]);
        check(list, V1Beta1, &[]);
        let map = json!({"a": {"controlPlane": true}, "b": {}, "c": null, "": {}});
        check(map.clone(), V1Beta1, &[("a", true), ("b", false)]);
        check(map, V1Beta2, &[]);
        for none in [json!(null), json!([]), json!({}), json!("zones"), json!(3)] {
            check(none.clone(), V1Beta1, &[]);
            check(none, V1Beta2, &[]);
        }
        let many: Vec<_> = (0..150).map(|n| json!({"name": format!("{n:03}")})).collect();
        let object = json!({"status": {"failureDomains": many}});
        assert_eq!(failure_domains(&object, V1Beta2).len(), 100);
    }

    // EX-049
    #[test]
    fn failures_are_text_or_nothing() {
        let failed = json!({"status": {"failureReason": "NoQuota", "failureMessage": "no more networks"}});
        assert_eq!(failure_reason(&failed), Some("NoQuota"));
        assert_eq!(failure_message(&failed), Some("no more networks"));
        let odd = json!({"status": {"failureReason": "", "failureMessage": {"text": "x"}}});
        assert_eq!((failure_reason(&odd), failure_message(&odd)), (None, None));
    }
}
