//! Converts the hub's kubeadm types to kubeadm's documents.
//!
//! kubeadm's own types embed most structures by value, so a document always has `etcd: {}`, `dns: {}` and the like. This is kept,
//! because these documents are compared across implementations.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api_kubeadm::bootstrap::{
    APIServer, Arg, BootstrapToken, ClusterConfiguration, ControlPlaneComponent, EnvVar, Etcd, HostPathMount,
    InitConfiguration, JoinConfiguration, LocalAPIEndpoint, NodeRegistrationOptions, Timeouts,
};
use windlass_meta::GoDuration;

use crate::KubeadmVersion;
use crate::object::Object;
use windlass_gocompat::yaml;

/// Cluster-wide parts of a machine's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// Name of the Cluster.
    pub name: String,
    /// Kubernetes version of the Machine, as in its spec.
    pub kubernetes_version: String,
    /// `host:port`, used if the configuration has no endpoint.
    pub control_plane_endpoint: Option<String>,
    /// DNS domain of Services.
    pub dns_domain: Option<String>,
    /// Pod networks.
    pub pod_subnets: Vec<String>,
    /// Service networks.
    pub service_subnets: Vec<String>,
}

/// The `ClusterConfiguration` document. `init` is the configuration beside it: v1beta3 has one of its timeouts here.
pub(crate) fn cluster_configuration(
    version: KubeadmVersion,
    config: &ClusterConfiguration,
    init: &InitConfiguration,
    facts: &ClusterFacts,
) -> String {
    yaml::document(&cluster_document(version, config, init, facts))
}

/// The `ClusterConfiguration` as a value.
pub(crate) fn cluster_document(
    version: KubeadmVersion,
    config: &ClusterConfiguration,
    init: &InitConfiguration,
    facts: &ClusterFacts,
) -> Value {
    let endpoint = config
        .control_plane_endpoint
        .as_deref()
        .or(facts.control_plane_endpoint.as_deref());
    let api_server = api_server(version, config.api_server.as_ref(), init.timeouts.as_ref());
    let dns = config.dns.clone().unwrap_or_default();
    let networking = Object::default()
        .text("dnsDomain", facts.dns_domain.as_deref())
        .text("podSubnet", Some(&facts.pod_subnets.join(",")))
        .text("serviceSubnet", Some(&facts.service_subnets.join(",")));
    let mut document = Object::default()
        .value("apiVersion", version.api_version().into())
        .value("kind", "ClusterConfiguration".into())
        .value("apiServer", api_server)
        .text("certificatesDir", config.certificates_dir.as_deref())
        .text("clusterName", Some(&facts.name))
        .text("controlPlaneEndpoint", endpoint)
        .value(
            "controllerManager",
            component(version, config.controller_manager.as_ref()),
        )
        .value(
            "dns",
            image(dns.image_repository.as_deref(), dns.image_tag.as_deref()).build(),
        )
        .value("etcd", etcd(version, config.etcd.as_ref()))
        .text("imageRepository", config.image_repository.as_deref())
        .text("kubernetesVersion", Some(&facts.kubernetes_version))
        .value("networking", networking.build())
        .value("scheduler", component(version, config.scheduler.as_ref()));
    if !config.feature_gates.is_empty() {
        document = document.value("featureGates", json!(config.feature_gates));
    }
    if version == KubeadmVersion::V1Beta4 {
        let days = |days: Option<i32>| days.map(|days| go_duration(i64::from(days) * 24 * 3600));
        document = document
            .value("proxy", json!({}))
            .some(
                "certificateValidityPeriod",
                days(config.certificate_validity_period_days),
            )
            .some(
                "caCertificateValidityPeriod",
                days(config.ca_certificate_validity_period_days),
            )
            .text("encryptionAlgorithm", config.encryption_algorithm.as_deref());
    }
    document.build()
}

/// The `InitConfiguration` document.
pub fn init_configuration(version: KubeadmVersion, config: &InitConfiguration) -> String {
    let tokens = config.bootstrap_tokens.iter().map(bootstrap_token).collect();
    let mut document = Object::default()
        .value("apiVersion", version.api_version().into())
        .value("kind", "InitConfiguration".into())
        .list("bootstrapTokens", tokens)
        .value("localAPIEndpoint", local_endpoint(config.local_api_endpoint.as_ref()))
        .value(
            "nodeRegistration",
            node_registration(version, config.node_registration.as_ref()),
        )
        .some(
            "patches",
            patches(config.patches.as_ref().and_then(|patches| patches.directory.as_deref())),
        )
        .texts("skipPhases", &config.skip_phases);
    if version == KubeadmVersion::V1Beta4 {
        document = document.some("timeouts", config.timeouts.as_ref().map(timeouts));
    }
    yaml::document(&document.build())
}

/// The `JoinConfiguration` document.
pub fn join_configuration(version: KubeadmVersion, config: &JoinConfiguration) -> String {
    let control_plane = config
        .control_plane
        .as_ref()
        .map(|control_plane| json!({"localAPIEndpoint": local_endpoint(control_plane.local_api_endpoint.as_ref())}));
    let mut document = Object::default()
        .value("apiVersion", version.api_version().into())
        .value("kind", "JoinConfiguration".into())
        .text("caCertPath", config.ca_cert_path.as_deref())
        .some("controlPlane", control_plane)
        .value("discovery", discovery(version, config))
        .value(
            "nodeRegistration",
            node_registration(version, config.node_registration.as_ref()),
        )
        .some(
            "patches",
            patches(config.patches.as_ref().and_then(|patches| patches.directory.as_deref())),
        )
        .texts("skipPhases", &config.skip_phases);
    if version == KubeadmVersion::V1Beta4 {
        document = document.some("timeouts", config.timeouts.as_ref().map(timeouts));
    }
    yaml::document(&document.build())
}

fn discovery(version: KubeadmVersion, config: &JoinConfiguration) -> Value {
    let discovery = config.discovery.clone().unwrap_or_default();
    let token = discovery.bootstrap_token.as_ref().map(|token| {
        Object::default()
            .value("token", token.token.as_deref().unwrap_or_default().into())
            .text("apiServerEndpoint", token.api_server_endpoint.as_deref())
            .texts("caCertHashes", &token.ca_cert_hashes)
            .flag("unsafeSkipCAVerification", token.unsafe_skip_ca_verification)
            .build()
    });
    let file = discovery
        .file
        .as_ref()
        .map(|file| json!({"kubeConfigPath": file.kube_config_path}));
    let mut document = Object::default()
        .some("bootstrapToken", token)
        .some("file", file)
        .text("tlsBootstrapToken", discovery.tls_bootstrap_token.as_deref());
    if version == KubeadmVersion::V1Beta3 {
        let timeout = config
            .timeouts
            .as_ref()
            .and_then(|timeouts| timeouts.tls_bootstrap_seconds);
        document = document.some("timeout", timeout.map(duration));
    }
    document.build()
}

fn api_server(version: KubeadmVersion, server: Option<&APIServer>, init: Option<&Timeouts>) -> Value {
    let server = server.cloned().unwrap_or_default();
    let mut document = component_fields(version, &server.extra_args, &server.extra_envs, &server.extra_volumes)
        .texts("certSANs", &server.cert_sans);
    if version == KubeadmVersion::V1Beta3 {
        let timeout = init.and_then(|timeouts| timeouts.control_plane_component_health_check_seconds);
        document = document.some("timeoutForControlPlane", timeout.map(duration));
    }
    document.build()
}

fn component(version: KubeadmVersion, component: Option<&ControlPlaneComponent>) -> Value {
    let component = component.cloned().unwrap_or_default();
    component_fields(
        version,
        &component.extra_args,
        &component.extra_envs,
        &component.extra_volumes,
    )
    .build()
}

fn component_fields(version: KubeadmVersion, args: &[Arg], envs: &[EnvVar], volumes: &[HostPathMount]) -> Object {
    let volumes = volumes
        .iter()
        .map(|volume| {
            Object::default()
                .value("name", volume.name.as_str().into())
                .value("hostPath", volume.host_path.as_str().into())
                .value("mountPath", volume.mount_path.as_str().into())
                .flag("readOnly", volume.read_only)
                .text("pathType", volume.path_type.as_deref())
                .build()
        })
        .collect();
    let object = Object::default()
        .some("extraArgs", arguments(version, args))
        .list("extraVolumes", volumes);
    match version {
        KubeadmVersion::V1Beta3 => object,
        KubeadmVersion::V1Beta4 => object.list("extraEnvs", envs.iter().map(|env| json!(env)).collect()),
    }
}

/// v1beta3 has a map of arguments, v1beta4 a list.
fn arguments(version: KubeadmVersion, args: &[Arg]) -> Option<Value> {
    if args.is_empty() {
        return None;
    }
    Some(match version {
        KubeadmVersion::V1Beta3 => {
            let map: BTreeMap<_, _> = args.iter().map(|arg| (arg.name.as_str(), arg.value.as_str())).collect();
            json!(map)
        }
        KubeadmVersion::V1Beta4 => args
            .iter()
            .map(|arg| json!({"name": arg.name, "value": arg.value}))
            .collect(),
    })
}

fn etcd(version: KubeadmVersion, etcd: Option<&Etcd>) -> Value {
    let etcd = etcd.cloned().unwrap_or_default();
    let local = etcd.local.map(|local| {
        let object = image(local.image_repository.as_deref(), local.image_tag.as_deref())
            .text("dataDir", local.data_dir.as_deref())
            .some("extraArgs", arguments(version, &local.extra_args))
            .texts("serverCertSANs", &local.server_cert_sans)
            .texts("peerCertSANs", &local.peer_cert_sans);
        match version {
            KubeadmVersion::V1Beta3 => object,
            KubeadmVersion::V1Beta4 => {
                object.list("extraEnvs", local.extra_envs.iter().map(|env| json!(env)).collect())
            }
        }
        .build()
    });
    let external = etcd.external.map(|external| {
        json!({
            "endpoints": external.endpoints,
            "caFile": external.ca_file,
            "certFile": external.cert_file,
            "keyFile": external.key_file,
        })
    });
    Object::default()
        .some("local", local)
        .some("external", external)
        .build()
}

fn image(repository: Option<&str>, tag: Option<&str>) -> Object {
    Object::default()
        .text("imageRepository", repository)
        .text("imageTag", tag)
}

fn local_endpoint(endpoint: Option<&LocalAPIEndpoint>) -> Value {
    let endpoint = endpoint.cloned().unwrap_or_default();
    Object::default()
        .text("advertiseAddress", endpoint.advertise_address.as_deref())
        .number("bindPort", endpoint.bind_port)
        .build()
}

fn node_registration(version: KubeadmVersion, options: Option<&NodeRegistrationOptions>) -> Value {
    let options = options.cloned().unwrap_or_default();
    // No taints and an empty list differ: only without a list does kubeadm taint control plane nodes itself.
    let taints = options.taints.map_or(Value::Null, |taints| {
        taints
            .iter()
            .map(|taint| {
                Object::default()
                    .value("key", taint.key.as_str().into())
                    .value("effect", taint.effect.as_str().into())
                    .text("value", taint.value.as_deref())
                    .some("timeAdded", taint.time_added.as_ref().map(|time| json!(time)))
                    .build()
            })
            .collect()
    });
    let object = Object::default()
        .text("name", options.name.as_deref())
        .text("criSocket", options.cri_socket.as_deref())
        .value("taints", taints)
        .some("kubeletExtraArgs", arguments(version, &options.kubelet_extra_args))
        .texts("ignorePreflightErrors", &options.ignore_preflight_errors)
        .text("imagePullPolicy", options.image_pull_policy.as_deref());
    match version {
        KubeadmVersion::V1Beta3 => object,
        KubeadmVersion::V1Beta4 => object.some("imagePullSerial", options.image_pull_serial.map(Value::from)),
    }
    .build()
}

fn bootstrap_token(token: &BootstrapToken) -> Value {
    Object::default()
        .value("token", token.token.as_str().into())
        .text("description", token.description.as_deref())
        .some("ttl", token.ttl_seconds.map(duration))
        .some("expires", token.expires.as_ref().map(|time| json!(time)))
        .texts("usages", &token.usages)
        .texts("groups", &token.groups)
        .build()
}

fn patches(directory: Option<&str>) -> Option<Value> {
    directory.map(|directory| json!({"directory": directory}))
}

fn timeouts(timeouts: &Timeouts) -> Value {
    Object::default()
        .some(
            "controlPlaneComponentHealthCheck",
            timeouts.control_plane_component_health_check_seconds.map(duration),
        )
        .some(
            "kubeletHealthCheck",
            timeouts.kubelet_health_check_seconds.map(duration),
        )
        .some("kubernetesAPICall", timeouts.kubernetes_api_call_seconds.map(duration))
        .some("etcdAPICall", timeouts.etcd_api_call_seconds.map(duration))
        .some("tlsBootstrap", timeouts.tls_bootstrap_seconds.map(duration))
        .some("discovery", timeouts.discovery_seconds.map(duration))
        .build()
}

fn duration(seconds: i32) -> Value {
    go_duration(i64::from(seconds))
}

fn go_duration(seconds: i64) -> Value {
    GoDuration::from_secs(seconds).to_string().into()
}
