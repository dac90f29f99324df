//! Machine templates: which differences mean new Machines, and their hash.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};
use windlass_api::core::{MachineSpec, MachineTemplateSpec};
use windlass_controller_runtime::Dynamic;

/// The part of a template that decides whether Machines have to be replaced; the rest is changed in place.
pub(crate) fn rollout_part(template: &MachineTemplateSpec) -> MachineSpec {
    let spec = &template.spec;
    MachineSpec {
        cluster_name: spec.cluster_name.clone(),
        bootstrap: spec.bootstrap.clone(),
        failure_domain: spec.failure_domain.clone(),
        infrastructure_ref: spec.infrastructure_ref.clone(),
        version: spec.version.as_deref().map(with_v),
        ..MachineSpec::default()
    }
}

/// Whether a Machine of one template would be as good as one of the other.
pub(crate) fn same_machines(a: &MachineTemplateSpec, b: &MachineTemplateSpec) -> bool {
    rollout_part(a) == rollout_part(b)
}

/// What makes Machines of `have` out of date with regard to `want`, one sentence each.
pub(crate) fn differences(have: &MachineTemplateSpec, want: &MachineTemplateSpec) -> Vec<String> {
    let (have, want) = (rollout_part(have), rollout_part(want));
    let mut found = Vec::new();
    if have.version != want.version {
        let say = |version: &Option<String>| version.clone().unwrap_or_else(|| "nil".to_owned());
        found.push(format!(
            "Version {}, {} required",
            say(&have.version),
            say(&want.version)
        ));
    }
    if have.bootstrap.config_ref != want.bootstrap.config_ref {
        let of = have
            .bootstrap
            .config_ref
            .as_ref()
            .or(want.bootstrap.config_ref.as_ref());
        let kind = of.map_or("BootstrapConfig", |reference| {
            reference.kind.trim_end_matches("Template")
        });
        found.push(format!("{kind} is not up-to-date"));
    } else if have.bootstrap.data_secret_name != want.bootstrap.data_secret_name {
        let say = |name: &Option<String>| name.clone().unwrap_or_else(|| "nil".to_owned());
        let (have, want) = (
            say(&have.bootstrap.data_secret_name),
            say(&want.bootstrap.data_secret_name),
        );
        found.push(format!("spec.bootstrap.dataSecretName {have}, {want} required"));
    }
    if have.infrastructure_ref != want.infrastructure_ref {
        let kind = have.infrastructure_ref.kind.trim_end_matches("Template");
        found.push(format!("{kind} is not up-to-date"));
    }
    if have.failure_domain != want.failure_domain {
        let say = |domain: &Option<String>| domain.clone().unwrap_or_else(|| "nil".to_owned());
        found.push(format!(
            "Failure domain {}, {} required",
            say(&have.failure_domain),
            say(&want.failure_domain)
        ));
    }
    found
}

/// The version with the `v` that every version of Kubernetes is written with here.
pub(crate) fn with_v(version: &str) -> String {
    if version.starts_with('v') {
        version.to_owned()
    } else {
        format!("v{version}")
    }
}

/// What to apply so that the Cluster is an owner of a template; `None` when it is one, or a ClusterClass is. Several Clusters may use one
/// template, and all of them are written with one field manager: the apply repeats the other Clusters, which it would remove otherwise.
pub(crate) fn adopt(template: &Dynamic, owner: &OwnerReference) -> Option<Value> {
    let owners = template.metadata().owner_references.iter().flatten();
    let owned = owners
        .clone()
        .any(|have| have.uid == owner.uid || have.kind == "ClusterClass");
    (!owned && !template.is_deleting()).then(|| {
        let mut clusters: Vec<_> = owners.filter(|have| have.kind == owner.kind).cloned().collect();
        windlass_api::owner::ensure(&mut clusters, owner.clone());
        json!({
            "apiVersion": template.api_version(),
            "kind": template.kind(),
            "metadata": {
                "name": template.name(),
                "namespace": template.metadata().namespace,
                "uid": template.metadata().uid,
                "ownerReferences": clusters,
            },
        })
    })
}

/// A short, stable number for what decides about replacing Machines (FNV-1a over its JSON).
pub(crate) fn hash(template: &MachineTemplateSpec) -> u32 {
    let bytes = serde_json::to_vec(&rollout_part(template)).unwrap_or_default();
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(version: &str) -> MachineTemplateSpec {
        MachineTemplateSpec {
            metadata: None,
            spec: MachineSpec {
                version: Some(version.to_owned()),
                ..MachineSpec::default()
            },
        }
    }

    #[test]
    fn what_is_changed_in_place_does_not_count() {
        let mut other = template("v1.35.0");
        other.spec.min_ready_seconds = Some(5);
        assert!(same_machines(&template("1.35.0"), &other));
        assert_eq!(hash(&template("1.35.0")), hash(&other));
        assert!(differences(&template("v1.35.0"), &other).is_empty());
    }

    #[test]
    fn a_version_counts_and_is_named() {
        assert!(!same_machines(&template("v1.35.0"), &template("v1.36.0")));
        assert_ne!(hash(&template("v1.35.0")), hash(&template("v1.36.0")));
        assert_eq!(
            differences(&template("v1.35.0"), &template("v1.36.0")),
            ["Version v1.35.0, v1.36.0 required"]
        );
    }
}
