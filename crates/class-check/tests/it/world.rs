//! The kinds of the product, and a class that is good.

use serde_json::Value;
use windlass_admission::core::{cluster, cluster_class, machine_deployment, machine_drain_rule, machine_health_check};
use windlass_admission::kubeadm::{config, control_plane};
use windlass_admission::{Admission, Rule, WRITES, dev};
use windlass_api::core::{Cluster, ClusterClass, MachineDeployment, MachineDrainRule, MachineHealthCheck, MachinePool};
use windlass_api::crd::crd;
use windlass_api::kind::ApiKind;
use windlass_api_ext::infrastructure::{DevCluster, DevClusterTemplate, DevMachineTemplate};
use windlass_api_kubeadm::bootstrap::KubeadmConfigTemplate;
use windlass_api_kubeadm::controlplane::{KubeadmControlPlane, KubeadmControlPlaneTemplate};
use windlass_api_older::OLDER;
use windlass_class_check::{File, Finding, Kinds, Severity, lint};

/// A class with templates, variables and patches.
pub(crate) const CLASS: &str = include_str!("../../../../examples/clusterclass-quick-start.yaml");
/// A Cluster of it.
pub(crate) const CLUSTER: &str = include_str!("../../../../examples/cluster-quick-start.yaml");

fn rule<K: ApiKind>(admission: Admission) -> Rule {
    Rule {
        group: K::GROUP,
        version: K::VERSION,
        kind: K::KIND,
        resource: K::PLURAL,
        admission,
        decode: Some(K::decode_stored),
        closed: Vec::new(),
    }
}

/// A kind with its older version.
fn drain_rules() -> Value {
    let mut definition = crd::<MachineDrainRule>();
    let older = OLDER.iter().find(|older| older.kind == MachineDrainRule::KIND).unwrap();
    let versions = definition["spec"]["versions"].as_array_mut().unwrap();
    versions.insert(0, (older.definition)());
    definition
}

/// The kinds that classes need, with their rules.
pub(crate) fn kinds() -> Kinds {
    let definitions = [
        crd::<Cluster>(),
        crd::<ClusterClass>(),
        crd::<MachineDeployment>(),
        crd::<MachineHealthCheck>(),
        crd::<MachinePool>(),
        crd::<KubeadmConfigTemplate>(),
        crd::<KubeadmControlPlane>(),
        crd::<KubeadmControlPlaneTemplate>(),
        crd::<DevCluster>(),
        crd::<DevClusterTemplate>(),
        crd::<DevMachineTemplate>(),
        drain_rules(),
    ];
    let rules = vec![
        rule::<Cluster>(Admission::checking(WRITES, cluster::check).completing(cluster::complete)),
        rule::<ClusterClass>(Admission::checking(WRITES, cluster_class::check)),
        rule::<MachineDeployment>(
            Admission::checking(WRITES, machine_deployment::check).completing(machine_deployment::complete),
        ),
        rule::<MachineHealthCheck>(
            Admission::checking(WRITES, machine_health_check::check).completing(machine_health_check::complete),
        ),
        rule::<KubeadmConfigTemplate>(
            Admission::checking(WRITES, config::check_template).completing(config::complete_template),
        ),
        rule::<KubeadmControlPlane>(
            Admission::checking(WRITES, control_plane::check).completing(control_plane::complete),
        ),
        rule::<KubeadmControlPlaneTemplate>(Admission::checking(WRITES, control_plane::check_template)),
        rule::<MachineDrainRule>(Admission::checking(WRITES, machine_drain_rule::check)),
        rule::<DevClusterTemplate>(
            Admission::checking(WRITES, dev::check_cluster_template).completing(dev::complete_cluster_template),
        ),
        rule::<DevMachineTemplate>(
            Admission::checking(WRITES, dev::check_machine_template).completing(dev::complete_machine_template),
        ),
    ];
    Kinds::new(&definitions, rules)
}

/// Files by name and text.
pub(crate) fn files(files: &[(&str, &str)]) -> Vec<File> {
    let file = |(name, text): &(&str, &str)| File {
        name: (*name).to_owned(),
        text: (*text).to_owned(),
    };
    files.iter().map(file).collect()
}

/// What is found in one file.
pub(crate) fn found(text: &str) -> Vec<Finding> {
    lint(&files(&[("a.yaml", text)]), kinds()).findings
}

/// The findings that are no notes.
pub(crate) fn grave(findings: &[Finding]) -> Vec<&Finding> {
    findings
        .iter()
        .filter(|finding| finding.severity != Severity::Note)
        .collect()
}

/// The class with some text replaced, which must be there.
pub(crate) fn changed(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(CLASS.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "no {from:?} in the class");
        text.replacen(from, to, 1)
    })
}
