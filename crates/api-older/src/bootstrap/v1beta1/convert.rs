//! Conversion of the spec of KubeadmConfigs, which KubeadmControlPlanes have too.

use windlass_api_kubeadm::bootstrap::v1beta2 as hub;

use super::convert_kubeadm::{
    cluster_from_hub, cluster_to_hub, init_from_hub, init_to_hub, join_from_hub, join_to_hub,
};
use super::convert_same::{
    files_to_hub, ignition_from_hub, ignition_to_hub, plain_file, plain_filesystem, plain_ntp, plain_partition,
    plain_user,
};
use super::parts::{Partners, duration, filled, seconds, unless_default};
use super::{ClusterConfiguration, DiskSetup, JoinConfiguration, KubeadmConfigSpec, Partition};

/// The spec in the older version.
pub(crate) fn spec_from_hub(hub: Option<hub::KubeadmConfigSpec>) -> KubeadmConfigSpec {
    let hub::KubeadmConfigSpec {
        boot_commands,
        cluster_configuration,
        disk_setup,
        files,
        format,
        ignition,
        init_configuration,
        join_configuration,
        mounts,
        ntp,
        post_kubeadm_commands,
        pre_kubeadm_commands,
        users,
        verbosity,
    } = hub.unwrap_or_default();
    // The timeouts that the older version has are at other places there.
    let for_control_plane = init_configuration
        .as_ref()
        .and_then(|init| init.timeouts.as_ref()?.control_plane_component_health_check_seconds);
    let for_discovery = join_configuration
        .as_ref()
        .and_then(|join| join.timeouts.as_ref()?.tls_bootstrap_seconds);
    let mut cluster: Option<ClusterConfiguration> = filled(cluster_configuration).map(cluster_from_hub);
    if let Some(seconds) = for_control_plane {
        let server = &mut cluster.get_or_insert_default().api_server;
        server.timeout_for_control_plane = Some(duration(seconds));
    }
    let mut join: Option<JoinConfiguration> = join_configuration.map(join_from_hub);
    if let Some(seconds) = for_discovery {
        join.get_or_insert_default().discovery.timeout = Some(duration(seconds));
    }
    KubeadmConfigSpec {
        boot_commands,
        cluster_configuration: cluster,
        disk_setup: filled(disk_setup).map(disk_setup_from_hub),
        files: files.into_iter().map(plain_file).collect(),
        format: filled(format),
        ignition: filled(ignition).map(ignition_from_hub),
        init_configuration: filled(init_configuration.map(init_from_hub)),
        join_configuration: filled(join),
        mounts,
        ntp: filled(ntp).map(plain_ntp),
        post_kubeadm_commands,
        pre_kubeadm_commands,
        use_experimental_retry_join: None,
        users: users.into_iter().map(plain_user).collect(),
        verbosity,
    }
}

/// The spec in the hub version, unless it is empty.
pub(crate) fn spec_to_hub(
    older: KubeadmConfigSpec,
    kept: Option<&hub::KubeadmConfigSpec>,
) -> Option<hub::KubeadmConfigSpec> {
    let KubeadmConfigSpec {
        boot_commands,
        cluster_configuration,
        disk_setup,
        files,
        format,
        ignition,
        init_configuration,
        join_configuration,
        mounts,
        ntp,
        post_kubeadm_commands,
        pre_kubeadm_commands,
        use_experimental_retry_join: _,
        users,
        verbosity,
    } = older;
    let for_control_plane = cluster_configuration
        .as_ref()
        .and_then(|cluster| cluster.api_server.timeout_for_control_plane)
        .map(seconds);
    let for_discovery = join_configuration
        .as_ref()
        .and_then(|join| join.discovery.timeout)
        .map(seconds);
    let kept_cluster = kept.and_then(|kept| kept.cluster_configuration.as_ref());
    let kept_init = kept.and_then(|kept| kept.init_configuration.as_ref());
    let kept_join = kept.and_then(|kept| kept.join_configuration.as_ref());
    let kept_ignition = kept.and_then(|kept| kept.ignition.as_ref());
    let kept_disks = kept.and_then(|kept| kept.disk_setup.as_ref());

    let mut init = init_configuration.map_or_else(Default::default, |init| init_to_hub(init, kept_init));
    init.timeouts = init_timeouts(kept_init.and_then(|kept| kept.timeouts.clone()), for_control_plane);
    let mut join = join_configuration.map_or_else(Default::default, |join| join_to_hub(join, kept_join));
    join.timeouts = join_timeouts(
        kept_join.and_then(|kept| kept.timeouts.clone()),
        for_control_plane,
        for_discovery,
    );
    unless_default(hub::KubeadmConfigSpec {
        boot_commands,
        cluster_configuration: filled(cluster_configuration.map(|cluster| cluster_to_hub(cluster, kept_cluster))),
        disk_setup: filled(disk_setup.map(|disks| disk_setup_to_hub(disks, kept_disks))),
        files: files_to_hub(files, kept.map_or(&[], |kept| &kept.files)),
        format: filled(format),
        ignition: filled(ignition.map(|ignition| ignition_to_hub(ignition, kept_ignition))),
        init_configuration: unless_default(init),
        join_configuration: unless_default(join),
        mounts,
        ntp: filled(ntp.map(plain_ntp)),
        post_kubeadm_commands,
        pre_kubeadm_commands,
        users: users.into_iter().map(plain_user).collect(),
        verbosity,
    })
}

/// The timeouts of kubeadm init: the kept ones, with the one that the older version has.
fn init_timeouts(kept: Option<hub::Timeouts>, for_control_plane: Option<i32>) -> Option<hub::Timeouts> {
    let mut timeouts = kept.unwrap_or_default();
    if for_control_plane.is_some() {
        timeouts.control_plane_component_health_check_seconds = for_control_plane;
    }
    unless_default(timeouts)
}

/// The timeouts of kubeadm join: the kept ones, with those that the older version has. If it has one, then joining machines wait for the
/// control plane as long as the first one does, because kubeadm had one timeout for both.
fn join_timeouts(
    kept: Option<hub::Timeouts>,
    for_control_plane: Option<i32>,
    for_discovery: Option<i32>,
) -> Option<hub::Timeouts> {
    let mut timeouts = kept.unwrap_or_default();
    if for_control_plane.is_some() || for_discovery.is_some() {
        timeouts.control_plane_component_health_check_seconds = for_control_plane;
    }
    if for_discovery.is_some() {
        timeouts.tls_bootstrap_seconds = for_discovery;
    }
    unless_default(timeouts)
}

fn disk_setup_from_hub(hub: hub::DiskSetup) -> DiskSetup {
    let hub::DiskSetup {
        filesystems,
        partitions,
    } = hub;
    DiskSetup {
        filesystems: filesystems.into_iter().map(plain_filesystem).collect(),
        partitions: partitions.into_iter().map(partition_from_hub).collect(),
    }
}

fn disk_setup_to_hub(older: DiskSetup, kept: Option<&hub::DiskSetup>) -> hub::DiskSetup {
    let DiskSetup {
        filesystems,
        partitions,
    } = older;
    let mut kept = Partners::new(kept.map_or(&[], |kept| &kept.partitions), |partition| &partition.device);
    hub::DiskSetup {
        filesystems: filesystems.into_iter().map(plain_filesystem).collect(),
        partitions: partitions
            .into_iter()
            .map(|partition| {
                let partner = kept.of(&partition.device);
                partition_to_hub(partition, partner)
            })
            .collect(),
    }
}

fn partition_from_hub(hub: hub::Partition) -> Partition {
    let hub::Partition {
        device,
        disk_layout,
        layout,
        overwrite,
        table_type,
    } = hub;
    Partition {
        device,
        disk_layout: disk_layout.into_iter().map(plain_partition).collect(),
        layout: layout.unwrap_or_default(),
        overwrite,
        table_type: filled(table_type),
    }
}

/// The older version always says `layout`. In the hub version it stays unset if it was kept as unset, because it excludes `diskLayout` there.
fn partition_to_hub(older: Partition, kept: Option<&hub::Partition>) -> hub::Partition {
    let Partition {
        device,
        disk_layout,
        layout,
        overwrite,
        table_type,
    } = older;
    let is_kept_unset = kept.is_some_and(|kept| kept.layout.is_none());
    hub::Partition {
        device,
        disk_layout: disk_layout.into_iter().map(plain_partition).collect(),
        layout: (layout || !is_kept_unset).then_some(layout),
        overwrite,
        table_type: filled(table_type),
    }
}
