//! Values whose type is the same in both versions, or nearly: what the older version writes of them, and what is restored of the kept hub
//! form.
//!
//! The older version has flags that are either true or unset, and writes no empty text. `plain_…` gives a value in that form.

use windlass_api_kubeadm::bootstrap::v1beta2 as hub;
use windlass_api_kubeadm::bootstrap::v1beta2::{
    BootstrapTokenDiscovery, ContainerLinuxConfig, DNS, ExternalEtcd, File, FileSource, Filesystem, HostPathMount,
    IgnitionSpec, KubeConfigAuthExec, KubeConfigAuthProvider, KubeConfigCluster, KubeConfigUser, NTP, PartitionSpec,
    PasswdSource, Patches, SecretKeySource, User,
};

use super::parts::{Partners, filled, intended};
use super::{FileDiscovery, FileDiscoveryKubeConfig};

/// A flag of the hub from a plain one.
fn flag(plain: Option<bool>, kept: Option<bool>) -> Option<bool> {
    intended(plain.unwrap_or_default(), kept)
}

pub(super) fn plain_file(file: File) -> File {
    let File {
        append,
        content,
        content_format,
        content_from,
        encoding,
        owner,
        path,
        permissions,
    } = file;
    File {
        append: filled(append),
        content: filled(content),
        content_format: filled(content_format),
        content_from: filled(content_from.map(|FileSource { secret }| FileSource {
            secret: plain_key(secret),
        })),
        encoding: filled(encoding),
        owner: filled(owner),
        path,
        permissions: filled(permissions),
    }
}

pub(super) fn files_to_hub(files: Vec<File>, kept: &[File]) -> Vec<File> {
    let mut kept = Partners::new(kept, |file| &file.path);
    let restored = files.into_iter().map(plain_file).map(|mut file| {
        file.append = flag(file.append, kept.of(&file.path).and_then(|kept| kept.append));
        file
    });
    restored.collect()
}

fn plain_key(key: SecretKeySource) -> SecretKeySource {
    let SecretKeySource { key, name } = key;
    SecretKeySource { key, name }
}

pub(super) fn plain_volume(volume: HostPathMount) -> HostPathMount {
    let HostPathMount {
        host_path,
        mount_path,
        name,
        path_type,
        read_only,
    } = volume;
    HostPathMount {
        host_path,
        mount_path,
        name,
        path_type,
        read_only: filled(read_only),
    }
}

pub(super) fn volumes_to_hub(volumes: Vec<HostPathMount>, kept: &[HostPathMount]) -> Vec<HostPathMount> {
    let mut kept = Partners::new(kept, |volume| &volume.host_path);
    let restored = volumes.into_iter().map(plain_volume).map(|mut volume| {
        let partner = kept.of(&volume.host_path);
        volume.read_only = flag(volume.read_only, partner.and_then(|kept| kept.read_only));
        volume
    });
    restored.collect()
}

pub(super) fn plain_user(user: User) -> User {
    let User {
        gecos,
        groups,
        home_dir,
        inactive,
        lock_password,
        name,
        passwd,
        passwd_from,
        primary_group,
        shell,
        ssh_authorized_keys,
        sudo,
    } = user;
    User {
        gecos: filled(gecos),
        groups: filled(groups),
        home_dir: filled(home_dir),
        inactive,
        lock_password,
        name,
        passwd: filled(passwd),
        passwd_from: filled(passwd_from.map(|PasswdSource { secret }| PasswdSource {
            secret: plain_key(secret),
        })),
        primary_group: filled(primary_group),
        shell: filled(shell),
        ssh_authorized_keys,
        sudo: filled(sudo),
    }
}

pub(super) fn plain_filesystem(filesystem: Filesystem) -> Filesystem {
    let Filesystem {
        device,
        extra_opts,
        filesystem,
        label,
        overwrite,
        partition,
        replace_fs,
    } = filesystem;
    Filesystem {
        device,
        extra_opts,
        filesystem,
        label: filled(label),
        overwrite,
        partition: filled(partition),
        replace_fs: filled(replace_fs),
    }
}

pub(super) fn plain_partition(partition: PartitionSpec) -> PartitionSpec {
    let PartitionSpec {
        partition_type,
        percentage,
    } = partition;
    PartitionSpec {
        partition_type: filled(partition_type),
        percentage,
    }
}

pub(super) fn plain_ntp(ntp: NTP) -> NTP {
    let NTP { enabled, servers } = ntp;
    NTP { enabled, servers }
}

pub(super) fn plain_dns(dns: DNS) -> DNS {
    let DNS {
        image_repository,
        image_tag,
    } = dns;
    DNS {
        image_repository: filled(image_repository),
        image_tag: filled(image_tag),
    }
}

pub(super) fn plain_patches(patches: Patches) -> Patches {
    let Patches { directory } = patches;
    Patches {
        directory: filled(directory),
    }
}

pub(super) fn plain_external_etcd(etcd: ExternalEtcd) -> ExternalEtcd {
    let ExternalEtcd {
        ca_file,
        cert_file,
        endpoints,
        key_file,
    } = etcd;
    ExternalEtcd {
        ca_file,
        cert_file,
        endpoints,
        key_file,
    }
}

fn plain_container_linux(config: ContainerLinuxConfig) -> ContainerLinuxConfig {
    let ContainerLinuxConfig {
        additional_config,
        strict,
    } = config;
    ContainerLinuxConfig {
        additional_config: filled(additional_config),
        strict: filled(strict),
    }
}

pub(super) fn ignition_from_hub(ignition: IgnitionSpec) -> IgnitionSpec {
    let IgnitionSpec { container_linux_config } = ignition;
    IgnitionSpec {
        container_linux_config: filled(container_linux_config).map(plain_container_linux),
    }
}

pub(super) fn ignition_to_hub(ignition: IgnitionSpec, kept: Option<&IgnitionSpec>) -> IgnitionSpec {
    let IgnitionSpec { container_linux_config } = ignition;
    let kept = kept.and_then(|kept| kept.container_linux_config.as_ref());
    IgnitionSpec {
        container_linux_config: filled(container_linux_config.map(|config| {
            let mut config = plain_container_linux(config);
            config.strict = flag(config.strict, kept.and_then(|kept| kept.strict));
            config
        })),
    }
}

pub(super) fn plain_token_discovery(discovery: BootstrapTokenDiscovery) -> BootstrapTokenDiscovery {
    let BootstrapTokenDiscovery {
        api_server_endpoint,
        ca_cert_hashes,
        token,
        unsafe_skip_ca_verification,
    } = discovery;
    BootstrapTokenDiscovery {
        api_server_endpoint: filled(api_server_endpoint),
        ca_cert_hashes,
        token: filled(token),
        unsafe_skip_ca_verification: filled(unsafe_skip_ca_verification),
    }
}

pub(super) fn token_discovery_to_hub(
    discovery: BootstrapTokenDiscovery,
    kept: Option<&BootstrapTokenDiscovery>,
) -> BootstrapTokenDiscovery {
    let mut discovery = plain_token_discovery(discovery);
    discovery.unsafe_skip_ca_verification = flag(
        discovery.unsafe_skip_ca_verification,
        kept.and_then(|kept| kept.unsafe_skip_ca_verification),
    );
    discovery
}

pub(super) fn file_discovery_from_hub(hub: hub::FileDiscovery) -> FileDiscovery {
    let hub::FileDiscovery {
        kube_config,
        kube_config_path,
    } = hub;
    FileDiscovery {
        kube_config: filled(kube_config).map(kube_config_from_hub),
        kube_config_path,
    }
}

pub(super) fn file_discovery_to_hub(older: FileDiscovery, kept: Option<&hub::FileDiscovery>) -> hub::FileDiscovery {
    let FileDiscovery {
        kube_config,
        kube_config_path,
    } = older;
    let kept = kept.and_then(|kept| kept.kube_config.as_ref());
    hub::FileDiscovery {
        kube_config: filled(kube_config.map(|config| kube_config_to_hub(config, kept))),
        kube_config_path,
    }
}

fn kube_config_from_hub(hub: hub::FileDiscoveryKubeConfig) -> FileDiscoveryKubeConfig {
    let hub::FileDiscoveryKubeConfig {
        cluster,
        user: KubeConfigUser { auth_provider, exec },
    } = hub;
    FileDiscoveryKubeConfig {
        cluster: filled(cluster).map(plain_cluster),
        user: KubeConfigUser {
            auth_provider: filled(auth_provider).map(plain_provider),
            exec: filled(exec).map(plain_exec),
        },
    }
}

fn kube_config_to_hub(
    older: FileDiscoveryKubeConfig,
    kept: Option<&hub::FileDiscoveryKubeConfig>,
) -> hub::FileDiscoveryKubeConfig {
    let FileDiscoveryKubeConfig {
        cluster,
        user: KubeConfigUser { auth_provider, exec },
    } = older;
    let kept_cluster = kept.and_then(|kept| kept.cluster.as_ref());
    let kept_exec = kept.and_then(|kept| kept.user.exec.as_ref());
    hub::FileDiscoveryKubeConfig {
        cluster: filled(cluster.map(|cluster| {
            let mut cluster = plain_cluster(cluster);
            cluster.insecure_skip_tls_verify = flag(
                cluster.insecure_skip_tls_verify,
                kept_cluster.and_then(|kept| kept.insecure_skip_tls_verify),
            );
            cluster
        })),
        user: KubeConfigUser {
            auth_provider: filled(auth_provider.map(plain_provider)),
            exec: filled(exec.map(|exec| {
                let mut exec = plain_exec(exec);
                exec.provide_cluster_info = flag(
                    exec.provide_cluster_info,
                    kept_exec.and_then(|kept| kept.provide_cluster_info),
                );
                exec
            })),
        },
    }
}

fn plain_cluster(cluster: KubeConfigCluster) -> KubeConfigCluster {
    let KubeConfigCluster {
        certificate_authority_data,
        insecure_skip_tls_verify,
        proxy_url,
        server,
        tls_server_name,
    } = cluster;
    KubeConfigCluster {
        certificate_authority_data: filled(certificate_authority_data),
        insecure_skip_tls_verify: filled(insecure_skip_tls_verify),
        proxy_url: filled(proxy_url),
        server: filled(server),
        tls_server_name: filled(tls_server_name),
    }
}

fn plain_provider(provider: KubeConfigAuthProvider) -> KubeConfigAuthProvider {
    let KubeConfigAuthProvider { config, name } = provider;
    KubeConfigAuthProvider { config, name }
}

fn plain_exec(exec: KubeConfigAuthExec) -> KubeConfigAuthExec {
    let KubeConfigAuthExec {
        api_version,
        args,
        command,
        env,
        provide_cluster_info,
    } = exec;
    KubeConfigAuthExec {
        api_version: filled(api_version),
        args,
        command,
        env,
        provide_cluster_info: filled(provide_cluster_info),
    }
}
