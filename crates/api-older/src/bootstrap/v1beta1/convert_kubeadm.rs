//! Conversion of the kubeadm configuration types.
//!
//! Timeouts are at other places in the two versions: see [`super::convert`].

use windlass_api_kubeadm::bootstrap::v1beta2 as hub;

use super::convert_same::{
    file_discovery_from_hub, file_discovery_to_hub, plain_dns, plain_external_etcd, plain_patches,
    plain_token_discovery, plain_volume, token_discovery_to_hub, volumes_to_hub,
};
use super::parts::{arg_list, arg_map, duration, filled, seconds, unless_default};
use super::{
    APIEndpoint, APIServer, BootstrapToken, ClusterConfiguration, ControlPlaneComponent, Discovery, Etcd,
    InitConfiguration, JoinConfiguration, JoinControlPlane, LocalEtcd, Networking, NodeRegistrationOptions,
};

pub(super) fn cluster_from_hub(hub: hub::ClusterConfiguration) -> ClusterConfiguration {
    let hub::ClusterConfiguration {
        api_server,
        ca_certificate_validity_period_days,
        certificate_validity_period_days,
        certificates_dir,
        control_plane_endpoint,
        controller_manager,
        dns,
        encryption_algorithm,
        etcd,
        feature_gates,
        image_repository,
        scheduler,
    } = hub;
    ClusterConfiguration {
        api_server: api_server_from_hub(api_server.unwrap_or_default()),
        api_version: None,
        ca_certificate_validity_period_days: filled(ca_certificate_validity_period_days),
        certificate_validity_period_days: filled(certificate_validity_period_days),
        certificates_dir: filled(certificates_dir),
        cluster_name: None,
        control_plane_endpoint: filled(control_plane_endpoint),
        controller_manager: component_from_hub(controller_manager.unwrap_or_default()),
        dns: plain_dns(dns.unwrap_or_default()),
        encryption_algorithm: filled(encryption_algorithm),
        etcd: etcd_from_hub(etcd.unwrap_or_default()),
        feature_gates,
        image_repository: filled(image_repository),
        kind: None,
        kubernetes_version: None,
        networking: Networking::default(),
        scheduler: component_from_hub(scheduler.unwrap_or_default()),
    }
}

pub(super) fn cluster_to_hub(
    older: ClusterConfiguration,
    kept: Option<&hub::ClusterConfiguration>,
) -> hub::ClusterConfiguration {
    // The Cluster and the Machine say what the fields without a place in the hub say.
    let ClusterConfiguration {
        api_server,
        api_version: _,
        ca_certificate_validity_period_days,
        certificate_validity_period_days,
        certificates_dir,
        cluster_name: _,
        control_plane_endpoint,
        controller_manager,
        dns,
        encryption_algorithm,
        etcd,
        feature_gates,
        image_repository,
        kind: _,
        kubernetes_version: _,
        networking: _,
        scheduler,
    } = older;
    let kept_server = kept.and_then(|kept| kept.api_server.as_ref());
    let kept_manager = kept.and_then(|kept| kept.controller_manager.as_ref());
    let kept_scheduler = kept.and_then(|kept| kept.scheduler.as_ref());
    let kept_etcd = kept.and_then(|kept| kept.etcd.as_ref());
    hub::ClusterConfiguration {
        api_server: unless_default(api_server_to_hub(api_server, kept_server)),
        ca_certificate_validity_period_days: filled(ca_certificate_validity_period_days),
        certificate_validity_period_days: filled(certificate_validity_period_days),
        certificates_dir: filled(certificates_dir),
        control_plane_endpoint: filled(control_plane_endpoint),
        controller_manager: unless_default(component_to_hub(controller_manager, kept_manager)),
        dns: unless_default(plain_dns(dns)),
        encryption_algorithm: filled(encryption_algorithm),
        etcd: unless_default(etcd_to_hub(etcd, kept_etcd)),
        feature_gates,
        image_repository: filled(image_repository),
        scheduler: unless_default(component_to_hub(scheduler, kept_scheduler)),
    }
}

fn api_server_from_hub(hub: hub::APIServer) -> APIServer {
    let hub::APIServer {
        cert_sans,
        extra_args,
        extra_envs,
        extra_volumes,
    } = hub;
    APIServer {
        cert_sans,
        extra_args: arg_map(extra_args),
        extra_envs,
        extra_volumes: extra_volumes.into_iter().map(plain_volume).collect(),
        timeout_for_control_plane: None,
    }
}

fn api_server_to_hub(older: APIServer, kept: Option<&hub::APIServer>) -> hub::APIServer {
    let APIServer {
        cert_sans,
        extra_args,
        extra_envs,
        extra_volumes,
        timeout_for_control_plane: _,
    } = older;
    hub::APIServer {
        cert_sans,
        extra_args: arg_list(extra_args, kept.map_or(&[], |kept| &kept.extra_args)),
        extra_envs,
        extra_volumes: volumes_to_hub(extra_volumes, kept.map_or(&[], |kept| &kept.extra_volumes)),
    }
}

fn component_from_hub(hub: hub::ControlPlaneComponent) -> ControlPlaneComponent {
    let hub::ControlPlaneComponent {
        extra_args,
        extra_envs,
        extra_volumes,
    } = hub;
    ControlPlaneComponent {
        extra_args: arg_map(extra_args),
        extra_envs,
        extra_volumes: extra_volumes.into_iter().map(plain_volume).collect(),
    }
}

fn component_to_hub(
    older: ControlPlaneComponent,
    kept: Option<&hub::ControlPlaneComponent>,
) -> hub::ControlPlaneComponent {
    let ControlPlaneComponent {
        extra_args,
        extra_envs,
        extra_volumes,
    } = older;
    hub::ControlPlaneComponent {
        extra_args: arg_list(extra_args, kept.map_or(&[], |kept| &kept.extra_args)),
        extra_envs,
        extra_volumes: volumes_to_hub(extra_volumes, kept.map_or(&[], |kept| &kept.extra_volumes)),
    }
}

fn etcd_from_hub(hub: hub::Etcd) -> Etcd {
    let hub::Etcd { external, local } = hub;
    Etcd {
        external: filled(external).map(plain_external_etcd),
        local: filled(local).map(local_etcd_from_hub),
    }
}

fn etcd_to_hub(older: Etcd, kept: Option<&hub::Etcd>) -> hub::Etcd {
    let Etcd { external, local } = older;
    let kept_local = kept.and_then(|kept| kept.local.as_ref());
    hub::Etcd {
        external: filled(external.map(plain_external_etcd)),
        local: filled(local.map(|local| local_etcd_to_hub(local, kept_local))),
    }
}

fn local_etcd_from_hub(hub: hub::LocalEtcd) -> LocalEtcd {
    let hub::LocalEtcd {
        data_dir,
        extra_args,
        extra_envs,
        image_repository,
        image_tag,
        peer_cert_sans,
        server_cert_sans,
    } = hub;
    LocalEtcd {
        data_dir: filled(data_dir),
        extra_args: arg_map(extra_args),
        extra_envs,
        image_repository: filled(image_repository),
        image_tag: filled(image_tag),
        peer_cert_sans,
        server_cert_sans,
    }
}

fn local_etcd_to_hub(older: LocalEtcd, kept: Option<&hub::LocalEtcd>) -> hub::LocalEtcd {
    let LocalEtcd {
        data_dir,
        extra_args,
        extra_envs,
        image_repository,
        image_tag,
        peer_cert_sans,
        server_cert_sans,
    } = older;
    hub::LocalEtcd {
        data_dir: filled(data_dir),
        extra_args: arg_list(extra_args, kept.map_or(&[], |kept| &kept.extra_args)),
        extra_envs,
        image_repository: filled(image_repository),
        image_tag: filled(image_tag),
        peer_cert_sans,
        server_cert_sans,
    }
}

pub(super) fn init_from_hub(hub: hub::InitConfiguration) -> InitConfiguration {
    let hub::InitConfiguration {
        bootstrap_tokens,
        local_api_endpoint,
        node_registration,
        patches,
        skip_phases,
        timeouts: _,
    } = hub;
    InitConfiguration {
        api_version: None,
        bootstrap_tokens: bootstrap_tokens.into_iter().map(token_from_hub).collect(),
        kind: None,
        local_api_endpoint: endpoint_from_hub(local_api_endpoint),
        node_registration: node_from_hub(node_registration.unwrap_or_default()),
        patches: filled(patches).map(plain_patches),
        skip_phases,
    }
}

/// Without the timeouts.
pub(super) fn init_to_hub(older: InitConfiguration, kept: Option<&hub::InitConfiguration>) -> hub::InitConfiguration {
    let InitConfiguration {
        api_version: _,
        bootstrap_tokens,
        kind: _,
        local_api_endpoint,
        node_registration,
        patches,
        skip_phases,
    } = older;
    let kept_node = kept.and_then(|kept| kept.node_registration.as_ref());
    hub::InitConfiguration {
        bootstrap_tokens: bootstrap_tokens.into_iter().map(token_to_hub).collect(),
        local_api_endpoint: endpoint_to_hub(local_api_endpoint),
        node_registration: unless_default(node_to_hub(node_registration, kept_node)),
        patches: filled(patches.map(plain_patches)),
        skip_phases,
        timeouts: None,
    }
}

fn token_from_hub(hub: hub::BootstrapToken) -> BootstrapToken {
    let hub::BootstrapToken {
        description,
        expires,
        groups,
        token,
        ttl_seconds,
        usages,
    } = hub;
    BootstrapToken {
        description: filled(description),
        expires,
        groups,
        token,
        ttl: ttl_seconds.map(duration),
        usages,
    }
}

fn token_to_hub(older: BootstrapToken) -> hub::BootstrapToken {
    let BootstrapToken {
        description,
        expires,
        groups,
        token,
        ttl,
        usages,
    } = older;
    hub::BootstrapToken {
        description: filled(description),
        expires,
        groups,
        token,
        ttl_seconds: ttl.map(seconds),
        usages,
    }
}

fn endpoint_from_hub(hub: Option<hub::LocalAPIEndpoint>) -> APIEndpoint {
    let hub::LocalAPIEndpoint {
        advertise_address,
        bind_port,
    } = hub.unwrap_or_default();
    APIEndpoint {
        advertise_address: filled(advertise_address),
        bind_port: filled(bind_port),
    }
}

fn endpoint_to_hub(older: APIEndpoint) -> Option<hub::LocalAPIEndpoint> {
    let APIEndpoint {
        advertise_address,
        bind_port,
    } = older;
    unless_default(hub::LocalAPIEndpoint {
        advertise_address: filled(advertise_address),
        bind_port: filled(bind_port),
    })
}

fn node_from_hub(hub: hub::NodeRegistrationOptions) -> NodeRegistrationOptions {
    let hub::NodeRegistrationOptions {
        cri_socket,
        ignore_preflight_errors,
        image_pull_policy,
        image_pull_serial,
        kubelet_extra_args,
        name,
        taints,
    } = hub;
    NodeRegistrationOptions {
        cri_socket: filled(cri_socket),
        ignore_preflight_errors,
        image_pull_policy: filled(image_pull_policy),
        image_pull_serial,
        kubelet_extra_args: arg_map(kubelet_extra_args),
        name: filled(name),
        taints,
    }
}

fn node_to_hub(
    older: NodeRegistrationOptions,
    kept: Option<&hub::NodeRegistrationOptions>,
) -> hub::NodeRegistrationOptions {
    let NodeRegistrationOptions {
        cri_socket,
        ignore_preflight_errors,
        image_pull_policy,
        image_pull_serial,
        kubelet_extra_args,
        name,
        taints,
    } = older;
    hub::NodeRegistrationOptions {
        cri_socket: filled(cri_socket),
        ignore_preflight_errors,
        image_pull_policy: filled(image_pull_policy),
        image_pull_serial,
        kubelet_extra_args: arg_list(kubelet_extra_args, kept.map_or(&[], |kept| &kept.kubelet_extra_args)),
        name: filled(name),
        taints,
    }
}

pub(super) fn join_from_hub(hub: hub::JoinConfiguration) -> JoinConfiguration {
    let hub::JoinConfiguration {
        ca_cert_path,
        control_plane,
        discovery,
        node_registration,
        patches,
        skip_phases,
        timeouts: _,
    } = hub;
    let hub::Discovery {
        bootstrap_token,
        file,
        tls_bootstrap_token,
    } = discovery.unwrap_or_default();
    JoinConfiguration {
        api_version: None,
        ca_cert_path: filled(ca_cert_path),
        control_plane: control_plane.map(|hub::JoinControlPlane { local_api_endpoint }| JoinControlPlane {
            local_api_endpoint: endpoint_from_hub(local_api_endpoint),
        }),
        discovery: Discovery {
            bootstrap_token: filled(bootstrap_token).map(plain_token_discovery),
            file: filled(file).map(file_discovery_from_hub),
            timeout: None,
            tls_bootstrap_token: filled(tls_bootstrap_token),
        },
        kind: None,
        node_registration: node_from_hub(node_registration.unwrap_or_default()),
        patches: filled(patches).map(plain_patches),
        skip_phases,
    }
}

/// Without the timeouts.
pub(super) fn join_to_hub(older: JoinConfiguration, kept: Option<&hub::JoinConfiguration>) -> hub::JoinConfiguration {
    let JoinConfiguration {
        api_version: _,
        ca_cert_path,
        control_plane,
        discovery,
        kind: _,
        node_registration,
        patches,
        skip_phases,
    } = older;
    let kept_node = kept.and_then(|kept| kept.node_registration.as_ref());
    let kept_discovery = kept.and_then(|kept| kept.discovery.as_ref());
    hub::JoinConfiguration {
        ca_cert_path: filled(ca_cert_path),
        control_plane: control_plane.map(|JoinControlPlane { local_api_endpoint }| hub::JoinControlPlane {
            local_api_endpoint: endpoint_to_hub(local_api_endpoint),
        }),
        discovery: unless_default(discovery_to_hub(discovery, kept_discovery)),
        node_registration: unless_default(node_to_hub(node_registration, kept_node)),
        patches: filled(patches.map(plain_patches)),
        skip_phases,
        timeouts: None,
    }
}

fn discovery_to_hub(older: Discovery, kept: Option<&hub::Discovery>) -> hub::Discovery {
    let Discovery {
        bootstrap_token,
        file,
        timeout: _,
        tls_bootstrap_token,
    } = older;
    let kept_token = kept.and_then(|kept| kept.bootstrap_token.as_ref());
    let kept_file = kept.and_then(|kept| kept.file.as_ref());
    hub::Discovery {
        bootstrap_token: filled(bootstrap_token.map(|token| token_discovery_to_hub(token, kept_token))),
        file: filled(file.map(|file| file_discovery_to_hub(file, kept_file))),
        tls_bootstrap_token: filled(tls_bootstrap_token),
    }
}
