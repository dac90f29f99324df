//! The `ClusterConfiguration` that kubeadm keeps in the cluster (ConfigMap `kube-system/kubeadm-config`), which joining machines read:
//! decoding it in any known format, and bringing it to another specification, version and format.
//!
//! The whole document is converted, because each version of kubeadm decodes only its own formats: arguments are a map in one, and a list
//! in the next.

use serde_json::{Map, Value, json};
use windlass_api_kubeadm::bootstrap::{ClusterConfiguration, DNS, Etcd, InitConfiguration, Timeouts};
use windlass_gocompat::yaml;
use windlass_meta::{GoDuration, KubernetesVersion};

use crate::{ClusterFacts, KubeadmError, KubeadmVersion, convert};

const SECONDS_PER_DAY: i64 = 24 * 3600;
/// The format of kubeadm 1.15 to 1.21. The first kubeadm of the next format still reads it.
const V1BETA2: &str = "kubeadm.k8s.io/v1beta2";
/// Parts of the document with arguments.
const WITH_ARGUMENTS: [&str; 4] = ["/apiServer", "/controllerManager", "/scheduler", "/etcd/local"];
/// The feature gate that kubeadm has from 1.31 to 1.35. A kubeadm refuses configurations with gates that it does not know.
const LOCAL_MODE: &str = "ControlPlaneKubeletLocalMode";

/// A decoded document.
#[derive(Clone, Debug, PartialEq)]
struct Stored {
    config: ClusterConfiguration,
    /// What is in the document, and in the Cluster rather than in its kubeadm configuration.
    facts: ClusterFacts,
    /// A timeout that v1beta3 has in this document.
    init: InitConfiguration,
    dns_disabled: bool,
    proxy: Option<Value>,
}

/// The document brought to a specification and version; none when it is as it should be.
///
/// The sections that the specification has replace those of the document, also when they are empty: what was removed from the
/// specification would otherwise stay for ever. An image repository is kept when the specification has none, as are the parts that belong
/// to the cluster as a whole, such as its networks.
pub fn updated(text: &str, spec: &ClusterConfiguration, version: &str) -> Result<Option<String>, KubeadmError> {
    let before = document(text)?;
    let mut stored = decode(&before)?;
    let format = KubeadmVersion::for_kubernetes(version)?;
    let target = parsed(version)?;
    let spec = spec.clone();
    let config = &mut stored.config;
    config.api_server = spec.api_server;
    config.controller_manager = spec.controller_manager;
    config.scheduler = spec.scheduler;
    config.feature_gates = spec.feature_gates;
    config.certificate_validity_period_days = spec.certificate_validity_period_days;
    config.encryption_algorithm = spec.encryption_algorithm;
    let etcd = spec.etcd.unwrap_or_default();
    config.etcd = Some(match etcd.external {
        Some(external) => Etcd {
            external: Some(external),
            local: None,
        },
        None => Etcd {
            external: None,
            local: etcd.local,
        },
    });
    if let Some(repository) = spec.image_repository.filter(|repository| !repository.is_empty()) {
        config.image_repository = Some(repository);
    }
    stored.facts.kubernetes_version = target.to_string();
    let after = encode(&stored, format);
    Ok((after != before).then(|| yaml::document(&after)))
}

/// The document with the settings of DNS of a specification, in the format of a version; none when it is as it should be.
pub fn with_dns(text: &str, dns: Option<&DNS>, version: &str) -> Result<Option<String>, KubeadmError> {
    let before = document(text)?;
    let mut stored = decode(&before)?;
    stored.config.dns = dns.cloned();
    let after = encode(&stored, KubeadmVersion::for_kubernetes(version)?);
    Ok((after != before).then(|| yaml::document(&after)))
}

/// Whether kubeadm of a version can decode a document. The error says why not.
pub fn readable(text: &str, version: &str) -> Result<(), KubeadmError> {
    let document = document(text)?;
    let stored = decode(&document)?;
    let format = KubeadmVersion::for_kubernetes(version)?;
    let api_version = text_at(&document, "/apiVersion").unwrap_or_default();
    if format == KubeadmVersion::V1Beta3 && api_version == KubeadmVersion::V1Beta4.api_version() {
        return Err(unreadable(
            "apiVersion",
            format!("kubeadm {version} does not know {api_version}"),
        ));
    }
    let listed = api_version == KubeadmVersion::V1Beta4.api_version();
    for part in WITH_ARGUMENTS {
        let arguments = document.pointer(part).map_or(&Value::Null, |part| &part["extraArgs"]);
        if !arguments.is_null() && arguments.is_array() != listed {
            let why = format!("{api_version} has {} here", if listed { "a list" } else { "a map" });
            return Err(unreadable(&format!("{}.extraArgs", field(part)), why));
        }
    }
    let known = parsed(version)?;
    let has_local_mode = known.at_least_minor(1, 31) && !known.at_least_minor(1, 36);
    if stored.config.feature_gates.contains_key(LOCAL_MODE) && !has_local_mode {
        return Err(unreadable(
            "featureGates",
            format!("kubeadm {version} does not know {LOCAL_MODE}"),
        ));
    }
    Ok(())
}

fn unreadable(field: &str, why: impl Into<String>) -> KubeadmError {
    KubeadmError::Field {
        field: format!("ClusterConfiguration.{field}").trim_end_matches('.').to_owned(),
        why: why.into(),
    }
}

fn parsed(version: &str) -> Result<KubernetesVersion, KubeadmError> {
    KubernetesVersion::parse_tolerant(version).map_err(|_| KubeadmError::Version {
        field: "spec.version",
        version: version.to_owned(),
    })
}

fn document(text: &str) -> Result<Value, KubeadmError> {
    if text.trim().is_empty() {
        return Err(unreadable("", "the document is empty"));
    }
    let document = yaml::read_plain(text).map_err(|error| unreadable("", error.to_string()))?;
    if !document.is_object() {
        return Err(unreadable("", "the document is no object"));
    }
    let api_version = text_at(&document, "/apiVersion").unwrap_or_default();
    let formats = [KubeadmVersion::V1Beta3, KubeadmVersion::V1Beta4].map(KubeadmVersion::api_version);
    if !formats.contains(&api_version) && api_version != V1BETA2 {
        return Err(unreadable(
            "apiVersion",
            format!("\"{api_version}\" is not a known format of kubeadm"),
        ));
    }
    Ok(document)
}

/// The hub's form has the field names of v1beta4, so a document becomes one by changing what differs.
fn decode(document: &Value) -> Result<Stored, KubeadmError> {
    let mut hub = document.clone();
    for part in WITH_ARGUMENTS {
        if let Some(arguments) = hub.pointer_mut(part).and_then(|part| part.get_mut("extraArgs")) {
            list_arguments(part, arguments)?;
        }
    }
    let ca = days(document, "caCertificateValidityPeriod")?;
    let leaf = days(document, "certificateValidityPeriod")?;
    if let Some(fields) = hub.as_object_mut() {
        fields.retain(|_, value| !is_empty(value));
        fields.extend(ca.map(|days| ("caCertificateValidityPeriodDays".to_owned(), json!(days))));
        fields.extend(leaf.map(|days| ("certificateValidityPeriodDays".to_owned(), json!(days))));
    }
    let config = serde_json::from_value(hub).map_err(|error| unreadable("", error.to_string()))?;
    let networking = |key: &str| text_at(document, &format!("/networking/{key}")).map(str::to_owned);
    let timeout = match text_at(document, "/apiServer/timeoutForControlPlane") {
        Some(text) => Some(seconds("apiServer.timeoutForControlPlane", text)?),
        None => None,
    };
    Ok(Stored {
        config,
        facts: ClusterFacts {
            name: text_at(document, "/clusterName").unwrap_or_default().to_owned(),
            kubernetes_version: text_at(document, "/kubernetesVersion").unwrap_or_default().to_owned(),
            control_plane_endpoint: None,
            dns_domain: networking("dnsDomain"),
            pod_subnets: networking("podSubnet").into_iter().collect(),
            service_subnets: networking("serviceSubnet").into_iter().collect(),
        },
        init: InitConfiguration {
            timeouts: timeout.map(|seconds| Timeouts {
                control_plane_component_health_check_seconds: Some(i32::try_from(seconds).unwrap_or(i32::MAX)),
                ..Timeouts::default()
            }),
            ..InitConfiguration::default()
        },
        dns_disabled: document["dns"]["disabled"] == true,
        proxy: document.get("proxy").filter(|proxy| !is_empty(proxy)).cloned(),
    })
}

fn encode(stored: &Stored, format: KubeadmVersion) -> Value {
    let mut document = convert::cluster_document(format, &stored.config, &stored.init, &stored.facts);
    if format == KubeadmVersion::V1Beta4 {
        if stored.dns_disabled {
            document["dns"]["disabled"] = json!(true);
        }
        if let Some(proxy) = &stored.proxy {
            document["proxy"] = proxy.clone();
        }
    }
    document
}

/// Arguments as a list, whatever they are: documents exist that have the map of v1beta3 under the name of v1beta4.
fn list_arguments(part: &str, arguments: &mut Value) -> Result<(), KubeadmError> {
    let list = match arguments {
        Value::Null => Vec::new(),
        Value::Array(_) => return Ok(()),
        Value::Object(map) => {
            let text =
                |(name, value): (&String, &Value)| value.is_string().then(|| json!({"name": name, "value": value}));
            let all: Option<Vec<Value>> = map.iter().map(text).collect();
            all.ok_or_else(|| unreadable(&format!("{}.extraArgs", field(part)), "a value is no text"))?
        }
        _ => {
            return Err(unreadable(
                &format!("{}.extraArgs", field(part)),
                "neither a list nor a map",
            ));
        }
    };
    *arguments = Value::Array(list);
    Ok(())
}

/// `/etcd/local` as people write it.
fn field(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

fn text_at<'a>(document: &'a Value, pointer: &str) -> Option<&'a str> {
    document.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// Whole days of a period, at least one.
fn days(document: &Value, name: &str) -> Result<Option<i64>, KubeadmError> {
    let Some(text) = document.get(name).and_then(Value::as_str) else {
        return Ok(None);
    };
    Ok(Some((seconds(name, text)? / SECONDS_PER_DAY).max(1)))
}

fn seconds(name: &str, text: &str) -> Result<i64, KubeadmError> {
    let duration: GoDuration = text
        .parse()
        .map_err(|_| unreadable(name, format!("\"{text}\" is no duration")))?;
    Ok(duration.as_nanos() / 1_000_000_000)
}

/// The document as `kubeadm init` of a version leaves it for a cluster without settings, with the defaults that kubeadm fills in.
pub fn initial(name: &str, endpoint: &str, version: &str) -> Result<String, KubeadmError> {
    let format = KubeadmVersion::for_kubernetes(version)?;
    let facts = ClusterFacts {
        name: name.to_owned(),
        kubernetes_version: parsed(version)?.to_string(),
        control_plane_endpoint: Some(endpoint.to_owned()),
        dns_domain: Some("cluster.local".to_owned()),
        pod_subnets: Vec::new(),
        service_subnets: vec!["10.96.0.0/12".to_owned()],
    };
    let mut defaults = Map::new();
    defaults.insert("certificatesDir".to_owned(), json!("/etc/kubernetes/pki"));
    defaults.insert("imageRepository".to_owned(), json!("registry.k8s.io"));
    defaults.insert("etcd".to_owned(), json!({"local": {"dataDir": "/var/lib/etcd"}}));
    match format {
        KubeadmVersion::V1Beta3 => {
            let api_server = json!({
                "extraArgs": {"authorization-mode": "Node,RBAC"}, "timeoutForControlPlane": "4m0s",
            });
            defaults.insert("apiServer".to_owned(), api_server);
        }
        KubeadmVersion::V1Beta4 => {
            defaults.insert("caCertificateValidityPeriod".to_owned(), json!("87600h0m0s"));
            defaults.insert("certificateValidityPeriod".to_owned(), json!("8760h0m0s"));
            defaults.insert("encryptionAlgorithm".to_owned(), json!("RSA-2048"));
        }
    }
    let config = ClusterConfiguration::default();
    let mut document = convert::cluster_document(format, &config, &InitConfiguration::default(), &facts);
    if let Some(fields) = document.as_object_mut() {
        fields.extend(defaults);
    }
    Ok(yaml::document(&document))
}

#[cfg(test)]
mod tests;
