//! The normal form of backends, in which v1.14 writes them in every version.

use windlass_api_ext::infrastructure::{
    DevMachineBackendSpec, DockerMachineBackendSpec, InMemoryComponentSpec, InMemoryMachineBackendSpec, Mount,
    ProvisioningSettings,
};
use windlass_meta::GoDuration;

use crate::parts::unless_default;

/// The backend of a machine as v1.14 writes it: durations as Go formats them, and those of components in memory always set. Nothing else
/// differs between the versions.
pub(super) fn normal(backend: DevMachineBackendSpec) -> DevMachineBackendSpec {
    let DevMachineBackendSpec { docker, in_memory } = backend;
    DevMachineBackendSpec {
        docker: docker.map(docker_backend),
        in_memory: in_memory.map(in_memory_backend),
    }
}

fn docker_backend(backend: DockerMachineBackendSpec) -> DockerMachineBackendSpec {
    let DockerMachineBackendSpec {
        bootstrap_timeout,
        custom_image,
        extra_mounts,
        pre_load_images,
    } = backend;
    DockerMachineBackendSpec {
        bootstrap_timeout: bootstrap_timeout.map(duration),
        custom_image: custom_image.and_then(unless_default),
        extra_mounts: extra_mounts.into_iter().map(mount).collect(),
        pre_load_images,
    }
}

fn mount(mount: Mount) -> Mount {
    let Mount {
        container_path,
        host_path,
        read_only,
    } = mount;
    Mount {
        container_path: container_path.and_then(unless_default),
        host_path: host_path.and_then(unless_default),
        read_only: read_only.and_then(unless_default),
    }
}

fn in_memory_backend(backend: InMemoryMachineBackendSpec) -> InMemoryMachineBackendSpec {
    let InMemoryMachineBackendSpec {
        api_server,
        etcd,
        node,
        vm,
    } = backend;
    InMemoryMachineBackendSpec {
        api_server: api_server.map(component),
        etcd: etcd.map(component),
        node: node.map(component),
        vm: vm.map(component),
    }
}

fn component(component: InMemoryComponentSpec) -> InMemoryComponentSpec {
    let InMemoryComponentSpec { provisioning } = component;
    let ProvisioningSettings {
        startup_duration,
        startup_jitter,
    } = provisioning.unwrap_or_else(|| ProvisioningSettings {
        startup_duration: GoDuration::default().to_string(),
        startup_jitter: None,
    });
    InMemoryComponentSpec {
        provisioning: Some(ProvisioningSettings {
            startup_duration: duration(startup_duration),
            startup_jitter: startup_jitter.and_then(unless_default),
        }),
    }
}

/// A duration as Go formats it. The schemas accept any text: one that is no duration stays as it is, so that the object can be read.
fn duration(text: String) -> String {
    match text.parse::<GoDuration>() {
        Ok(duration) => duration.to_string(),
        Err(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_writes_them() {
        let check = |text: &str, expect: &str| assert_eq!(duration(text.to_owned()), expect);
        check("300s", "5m0s");
        check("1m30s", "1m30s");
        check("0", "0s");
        check("soon", "soon");
        check("", "");
    }
}
