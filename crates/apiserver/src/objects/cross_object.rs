//! Defaults that depend on other objects: the priority of a pod, the storage class of a claim, the addresses and ports of a
//! service.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};
use windlass_builtin_kinds::Lookup;
use windlass_schema::{FieldError, FieldErrors};

use crate::error::ApiError;
use crate::objects::encoding::decode;
use crate::objects::resource::Resource;
use crate::objects::service_index::Others;
use crate::objects::stored;
use crate::state::Inner;
use windlass_objects::metadata::{meta, text};
use windlass_store::Key;

/// The default network of services: `10.96.0.0/12`.
const NETWORK: u32 = 0x0a60_0000;
const ADDRESSES: u32 = 1 << 20;
const FIRST_PORT: i64 = 30_000;
const PORTS: i64 = 2_768;

fn all(server: &Inner, storage: &str) -> Vec<Value> {
    let records = stored::all(&server.store, storage, None);
    records.iter().filter_map(|record| decode(record).ok()).collect()
}

/// Completes a new object after admission. The set fields have no owner in `managedFields`.
pub(crate) fn admit(server: &Inner, resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
    match resource.strategy.lookup {
        Lookup::Priority => prioritize(server, object),
        Lookup::StorageClass => {
            choose_class(server, object);
            Ok(())
        }
        Lookup::None => Ok(()),
    }
}

/// The priority classes that exist in every cluster.
const SYSTEM: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

fn prioritize(server: &Inner, pod: &mut Value) -> Result<(), ApiError> {
    let refuse = |words: &str| ApiError::forbidden("", "pods", meta(pod, "name"), words);
    let wanted = pod
        .pointer("/spec/priorityClassName")
        .and_then(Value::as_str)
        .unwrap_or("");
    let classes = all(server, "priorityclasses.scheduling.k8s.io");
    let class = if wanted.is_empty() {
        // Of several global defaults, the lowest counts.
        classes
            .into_iter()
            .filter(|c| c["globalDefault"] == Value::Bool(true))
            .min_by_key(|c| c["value"].as_i64())
    } else {
        let system = SYSTEM.iter().find(|(name, _)| *name == wanted);
        let system = system.map(|(name, value)| json!({"metadata": {"name": name}, "value": value}));
        let found = classes.into_iter().find(|c| meta(c, "name") == wanted).or(system);
        Some(found.ok_or_else(|| refuse(&format!("no PriorityClass with name {wanted} was found")))?)
    };
    let name = class.as_ref().map_or(String::new(), |c| meta(c, "name").to_owned());
    let value = class.as_ref().and_then(|c| c["value"].as_i64()).unwrap_or(0);
    let policy = class.as_ref().map_or("", |c| text(c, "preemptionPolicy"));
    let policy = if policy.is_empty() {
        "PreemptLowerPriority"
    } else {
        policy
    };
    let given = pod.pointer("/spec/priority").and_then(Value::as_i64);
    if given.is_some_and(|given| given != value) {
        return Err(refuse(&format!(
            "the integer value of priority ({}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name",
            given.unwrap_or_default(),
        )));
    }
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    if !name.is_empty() {
        spec.insert("priorityClassName".into(), name.into());
    }
    spec.insert("priority".into(), value.into());
    spec.entry("preemptionPolicy").or_insert_with(|| policy.into());
    Ok(())
}

fn choose_class(server: &Inner, claim: &mut Value) {
    const DEFAULT: &str = "/metadata/annotations/storageclass.kubernetes.io~1is-default-class";
    if claim.pointer("/spec/storageClassName").is_some() {
        return;
    }
    let mut classes = all(server, "storageclasses.storage.k8s.io");
    classes.retain(|c| c.pointer(DEFAULT).and_then(Value::as_str) == Some("true"));
    // Of several defaults, the newest counts.
    classes.sort_by(|a, b| {
        let made = |c: &Value| meta(c, "creationTimestamp").to_owned();
        made(b).cmp(&made(a)).then_with(|| meta(a, "name").cmp(meta(b, "name")))
    });
    if let (Some(class), Some(spec)) = (classes.first(), claim.get_mut("spec").and_then(Value::as_object_mut)) {
        spec.insert("storageClassName".into(), meta(class, "name").into());
    }
}

/// Allocates the missing addresses and ports of a service. The caller holds the lock of services until the service is stored.
pub(crate) fn allocate(server: &Inner, service: &mut Value) -> Result<(), ApiError> {
    let kind = service
        .pointer("/spec/type")
        .and_then(Value::as_str)
        .unwrap_or("ClusterIP");
    if kind == "ExternalName" {
        return Ok(());
    }
    let ported = matches!(kind, "NodePort" | "LoadBalancer")
        && service.pointer("/spec/allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
    let storage = server.storage_name("services");
    let services = server.services.current(&server.store, &storage);
    let key = Key::new(&storage, meta(service, "namespace"), meta(service, "name"));
    let used = services.others(&key, meta(service, "uid"));
    let seed = chance(meta(service, "uid"));
    let mut errors = FieldErrors::new();
    address(service, &used, seed, &mut errors);
    ports(service, &used, seed, ported, &mut errors)?;
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid("", "Service", meta(service, "name"), &errors))
}

/// A number that differs from object to object.
fn chance(uid: &str) -> u32 {
    uid.bytes()
        .fold(17, |n: u32, b| n.wrapping_mul(31).wrapping_add(u32::from(b)))
}

fn address(service: &mut Value, used: &Others<'_>, seed: u32, errors: &mut FieldErrors) {
    let Some(spec) = service.get_mut("spec").filter(|s| s.is_object()) else {
        return;
    };
    let given = match text(spec, "clusterIP") {
        "" => spec.pointer("/clusterIPs/0").and_then(Value::as_str).unwrap_or(""),
        given => given,
    }
    .to_owned();
    let chosen = match given.as_str() {
        "None" => given,
        "" => {
            let free = (0..ADDRESSES - 2)
                .map(|step| Ipv4Addr::from(NETWORK + 1 + seed.wrapping_add(step) % (ADDRESSES - 2)).to_string())
                .find(|ip| !used.have_address(ip));
            let Some(free) = free else {
                return;
            };
            free
        }
        _ if given.parse::<std::net::IpAddr>().is_err() => {
            errors.push(FieldError::invalid(
                "spec.clusterIPs[0]",
                given.into(),
                "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ));
            return;
        }
        _ if used.have_address(&given) => {
            let words = format!("failed to allocate IP {given}: provided IP is already allocated");
            errors.push(FieldError::invalid("spec.clusterIPs", json!([given]), words));
            return;
        }
        _ => given,
    };
    let six = chosen.contains(':');
    spec["clusterIP"] = chosen.clone().into();
    if spec["clusterIPs"].is_null() {
        spec["clusterIPs"] = json!([chosen]);
    }
    if spec["ipFamilies"].is_null() {
        spec["ipFamilies"] = json!([if six { "IPv6" } else { "IPv4" }]);
    }
    if spec["ipFamilyPolicy"].is_null() {
        spec["ipFamilyPolicy"] = "SingleStack".into();
    }
}

fn ports(
    service: &mut Value,
    used: &Others<'_>,
    seed: u32,
    ported: bool,
    errors: &mut FieldErrors,
) -> Result<(), ApiError> {
    // Those that the service has itself.
    let mut taken = BTreeSet::new();
    // No port is looked at twice, however many the service has.
    let mut candidates = (0..PORTS).map(|step| FIRST_PORT + (i64::from(seed) + step) % PORTS);
    let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for (i, port) in ports.into_iter().flatten().enumerate() {
        let refuse =
            |number: i64, words: &str| FieldError::invalid(format!("spec.ports[{i}].nodePort"), number.into(), words);
        match port["nodePort"].as_i64() {
            Some(number) if number != 0 => {
                if !(FIRST_PORT..FIRST_PORT + PORTS).contains(&number) {
                    errors.push(refuse(
                        number,
                        "provided port is not in the valid range. The range of valid ports is 30000-32767",
                    ));
                } else if used.have_port(number) || !taken.insert(number) {
                    errors.push(refuse(number, "provided port is already allocated"));
                }
            }
            _ if ported => {
                let Some(free) = candidates.find(|number| !used.have_port(*number) && !taken.contains(number)) else {
                    return Err(ApiError::internal("failed to allocate a nodePort: range is full"));
                };
                taken.insert(free);
                port["nodePort"] = free.into();
            }
            _ => {
                // Indexing with `port["nodePort"]` inserts null if the field is absent; that null must not stay.
                if let Some(map) = port.as_object_mut() {
                    map.remove("nodePort");
                }
            }
        }
    }
    Ok(())
}
