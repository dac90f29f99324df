//! The admission rules by kind, as data.

use std::marker::PhantomData;

use kube::core::{ObjectMeta, PartialObjectMeta};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_addon_helm::rules as addons;
use windlass_admission::core::{
    cluster, cluster_class, machine, machine_deployment, machine_drain_rule, machine_health_check, machine_pool,
    machine_set,
};
use windlass_admission::kubeadm::{config, control_plane};
use windlass_admission::{Admission, Change, Operation, Rule, Verdict, WRITES, dev};
use windlass_admission::{addons as resource_sets, ipam, operator, rollouts, runtime};
use windlass_api::core::Cluster;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_api_operator::ProviderType;
use windlass_contract::infra_cluster;
use windlass_operator::BuiltIns;
use windlass_schema::FieldError;

use crate::FeatureGates;
use crate::registry::kinds::{KINDS, KindEntry};

const ALL: &[Operation] = &[Operation::Create, Operation::Update, Operation::Delete];

/// Clusters.
pub(crate) const CLUSTER: Admission = Admission::checking(WRITES, cluster::check)
    .completing(cluster::complete)
    .referring(cluster::refers);
/// ClusterClasses. One that Clusters use cannot be deleted.
pub(crate) const CLUSTER_CLASS: Admission = Admission::checking(ALL, cluster_class::check);
/// Machines.
pub(crate) const MACHINE: Admission = Admission::checking(WRITES, machine::check).completing(machine::complete);
/// MachineSets.
pub(crate) const MACHINE_SET: Admission =
    Admission::checking(WRITES, machine_set::check).completing(machine_set::complete);
/// MachineDeployments.
pub(crate) const MACHINE_DEPLOYMENT: Admission =
    Admission::checking(WRITES, machine_deployment::check).completing(machine_deployment::complete);
/// MachineDrainRules.
pub(crate) const MACHINE_DRAIN_RULE: Admission = Admission::checking(WRITES, machine_drain_rule::check);
/// MachinePools.
pub(crate) const MACHINE_POOL: Admission =
    Admission::checking(WRITES, machine_pool::check).completing(machine_pool::complete);
/// MachineHealthChecks.
pub(crate) const MACHINE_HEALTH_CHECK: Admission =
    Admission::checking(WRITES, machine_health_check::check).completing(machine_health_check::complete);
/// ClusterResourceSets.
pub(crate) const CLUSTER_RESOURCE_SET: Admission =
    Admission::checking(WRITES, resource_sets::check_set).completing(resource_sets::complete_set);
/// ClusterResourceSetBindings.
pub(crate) const CLUSTER_RESOURCE_SET_BINDING: Admission = Admission::checking(WRITES, resource_sets::check_binding);
/// ExtensionConfigs.
pub(crate) const EXTENSION_CONFIG: Admission =
    Admission::checking(WRITES, runtime::check_config).completing(runtime::complete_config);
/// ClusterClassRollouts.
pub(crate) const CLUSTER_CLASS_ROLLOUT: Admission = Admission::checking(WRITES, rollouts::check_class_rollout);
/// IPAddresses.
pub(crate) const IP_ADDRESS: Admission = Admission::checking(WRITES, ipam::check_address);
/// IPAddressClaims.
pub(crate) const IP_ADDRESS_CLAIM: Admission = Admission::checking(WRITES, ipam::check_claim);
/// KubeadmConfigs.
pub(crate) const KUBEADM_CONFIG: Admission = Admission::checking(WRITES, config::check);
/// KubeadmConfigTemplates.
pub(crate) const KUBEADM_CONFIG_TEMPLATE: Admission =
    Admission::checking(WRITES, config::check_template).completing(config::complete_template);
/// KubeadmControlPlanes, and their scale.
pub(crate) const KUBEADM_CONTROL_PLANE: Admission = Admission::checking(WRITES, control_plane::check)
    .completing(control_plane::complete)
    .scaling(control_plane::check_scale);
/// KubeadmControlPlaneTemplates.
pub(crate) const KUBEADM_CONTROL_PLANE_TEMPLATE: Admission = Admission::checking(WRITES, control_plane::check_template);
/// DevClusters. As every InfraCluster kind: an externally managed object stays externally managed.
pub(crate) const DEV_CLUSTER: Admission =
    Admission::checking(WRITES, |change| Ok(dev_cluster(change))).completing(dev::complete_cluster);
/// DevClusterTemplates.
pub(crate) const DEV_CLUSTER_TEMPLATE: Admission =
    Admission::checking(WRITES, dev::check_cluster_template).completing(dev::complete_cluster_template);
/// DevMachines.
pub(crate) const DEV_MACHINE: Admission =
    Admission::checking(WRITES, dev::check_machine).completing(dev::complete_machine);
/// DevIPPools.
pub(crate) const DEV_IP_POOL: Admission = Admission::checking(WRITES, dev::check_ip_pool);
/// DevMachinePools.
pub(crate) const DEV_MACHINE_POOL: Admission = Admission::checking(WRITES, dev::check_machine_pool);
/// DevMachinePoolTemplates.
pub(crate) const DEV_MACHINE_POOL_TEMPLATE: Admission = Admission::checking(WRITES, dev::check_machine_pool_template);
/// DevMachineTemplates.
pub(crate) const DEV_MACHINE_TEMPLATE: Admission =
    Admission::checking(WRITES, dev::check_machine_template).completing(dev::complete_machine_template);
/// HelmChartProxies: invalid charts, invalid selectors, and immutable fields.
pub(crate) const HELM_CHART_PROXY: Admission = Admission::checking(WRITES, |change| {
    let old: Option<HelmChartProxy> = decoded(change.old);
    Ok(refused(decoded(change.new).as_ref(), |new| {
        addons::chart_proxy(old.as_ref(), new)
    }))
});
/// HelmReleaseProxies: the identity of a release is immutable.
pub(crate) const HELM_RELEASE_PROXY: Admission = Admission::checking(&[Operation::Update], |change| {
    let new: Option<HelmReleaseProxy> = decoded(change.new);
    Ok(refused(decoded(change.old).zip(new).as_ref(), |(old, new)| {
        addons::release_proxy(old, new)
    }))
});

/// Declared providers: those that are built in.
pub(crate) const PROVIDER: Admission = Admission::checking(WRITES, operator::check_provider);

/// An object of a kind. One that cannot be decoded is refused before.
fn decoded<K: DeserializeOwned>(object: &Value) -> Option<K> {
    K::deserialize(object).ok()
}

fn refused<T>(objects: Option<&T>, judge: impl FnOnce(&T) -> Vec<FieldError>) -> Verdict {
    objects.map(judge).unwrap_or_default().into()
}

/// The rules of all kinds that have one.
pub fn rules(gates: &FeatureGates) -> Vec<Rule> {
    KINDS.iter().filter_map(|entry| rule(entry, gates)).collect()
}

/// The same where these providers are built in: of the kinds of declared providers, only those of their types have a rule.
pub(crate) fn rules_of(gates: &FeatureGates, built_ins: &BuiltIns) -> Vec<Rule> {
    let mut rules = rules(gates);
    rules.retain(|rule| match ProviderType::from_inventory(rule.kind) {
        Some(type_) => built_ins.of_type(type_).is_some(),
        None => true,
    });
    rules
}

fn rule(entry: &KindEntry, gates: &FeatureGates) -> Option<Rule> {
    Some(Rule {
        group: entry.group,
        version: entry.version,
        kind: entry.kind,
        resource: entry.plural,
        admission: entry.admission?,
        decode: Some(entry.decode),
        closed: gates.closed(entry.kind),
    })
}

fn dev_cluster(change: &Change<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    if change.is_update() {
        verdict = infra_cluster_update(change);
    }
    verdict.errors.extend(dev::check_cluster(change));
    verdict
}

fn infra_cluster_update(change: &Change<'_>) -> Verdict {
    match infra_cluster::check_update(change.resource, &metadata(change.old), &metadata(change.new)) {
        Ok(warnings) => Verdict {
            warnings,
            ..Verdict::default()
        },
        Err(refusal) => vec![FieldError::forbidden(refusal.field, refusal.message)].into(),
    }
}

/// The metadata of an object. API servers send only well-formed metadata.
fn metadata(object: &Value) -> PartialObjectMeta<Cluster> {
    PartialObjectMeta {
        types: None,
        metadata: ObjectMeta::deserialize(&object["metadata"]).unwrap_or_default(),
        _phantom: PhantomData,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_admission::view::Nothing;

    use super::*;

    fn change<'a>(operation: Operation, old: &'a Value, new: &'a Value) -> Change<'a> {
        Change {
            resource: "devclusters.infrastructure.cluster.x-k8s.io",
            operation,
            dry_run: false,
            old,
            new,
            view: &Nothing,
        }
    }

    /// The schema of the stored version.
    fn schema(entry: &KindEntry) -> Value {
        let crd = (entry.crd)();
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let stored = versions.iter().find(|version| version["storage"] == true).unwrap();
        stored["schema"]["openAPIV3Schema"].clone()
    }

    /// The contract rule of InfraCluster kinds.
    fn is_infra_cluster(entry: &KindEntry) -> bool {
        let schema = schema(entry);
        let has = |path: &str| schema.pointer(path).is_some();
        has("/properties/spec/properties/controlPlaneEndpoint")
            && has("/properties/status/properties/initialization/properties/provisioned")
    }

    // EX-004, EX-084
    #[test]
    fn every_infra_cluster_kind_of_ours_is_judged_on_update_at_all_its_versions() {
        let rules = rules(&FeatureGates::default());
        let mut kinds = Vec::new();
        for entry in KINDS.iter().filter(|entry| is_infra_cluster(entry)) {
            let rule = rules
                .iter()
                .find(|rule| (rule.group, rule.kind) == (entry.group, entry.kind));
            let rule = rule.unwrap_or_else(|| panic!("{} is not judged as an InfraCluster in KINDS", entry.kind));
            assert!(rule.admission.operations.contains(&Operation::Update), "{}", entry.kind);
            assert_eq!((rule.resource, rule.version), (entry.plural, entry.version));
            kinds.push(entry.kind);
        }
        assert_eq!(kinds, ["DevCluster"]);
    }

    // AD-053, AD-079, AD-114, feature 486
    #[test]
    fn charts_and_releases_are_judged_as_their_rules_say() {
        let chart = |url: &str, strategy: &str| {
            let spec = json!({"clusterSelector": {}, "chartName": "c", "repoURL": url, "reconcileStrategy": strategy});
            json!({"metadata": {"name": "a", "namespace": "b"}, "spec": spec})
        };
        let release =
            |chart: &str| json!({"spec": {"clusterRef": {}, "chartName": chart, "repoURL": "https://x.example"}});
        let check = |admission: Admission, old: &Value, new: &Value, expect: &[&str]| {
            let verdict = (admission.check)(&change(Operation::Update, old, new)).unwrap();
            let paths: Vec<&str> = verdict.errors.iter().map(|error| error.path.as_str()).collect();
            assert_eq!(paths, expect, "{old} {new}");
        };
        let (of_chart, of_release) = (HELM_CHART_PROXY, HELM_RELEASE_PROXY);
        let good = &chart("https://x.example", "Continuous");
        let bad = &chart("file:///x", "Continuous");
        check(of_chart, &Value::Null, good, &[]);
        check(of_chart, &Value::Null, bad, &["spec.repoURL"]);
        check(of_chart, good, bad, &["spec.repoURL"]);
        check(of_chart, bad, bad, &[]);
        check(
            of_chart,
            good,
            &chart("https://x.example", "InstallOnce"),
            &["spec.reconcileStrategy"],
        );
        check(of_chart, &Value::Null, &json!({"spec": 7}), &[]);
        // What cannot be read is refused.
        let mut large = good.clone();
        large["spec"]["rollout"] = json!({"install": {"stepInit": 5_000_000_000_i64}});
        let rules = rules(&FeatureGates::default());
        let rule = rules.iter().find(|rule| rule.kind == "HelmChartProxy").unwrap();
        let refused = rule.check(&change(Operation::Create, &Value::Null, &large)).unwrap();
        assert_eq!(refused.errors[0].path, "spec.rollout.install.stepInit");
        check(of_release, &release("a"), &release("a"), &[]);
        check(of_release, &release("a"), &release("b"), &["spec.chartName"]);
        // Deletions depend on no webhook, and neither do creations of objects that only we create.
        assert!(!of_chart.operations.contains(&Operation::Delete));
        assert_eq!(of_release.operations, [Operation::Update]);
    }

    // EX-010, EX-093, EX-094, EX-095
    #[test]
    fn no_kind_and_no_field_serves_external_management() {
        for entry in KINDS {
            assert!(!entry.kind.contains("External"), "{}", entry.kind);
            let text = schema(entry).to_string().to_lowercase();
            assert!(
                !text.contains("managementpolicy") && !text.contains("managed-by"),
                "{}",
                entry.kind
            );
        }
    }

    // EX-034, EX-038, EX-079
    #[test]
    fn verdicts_are_those_of_the_contract() {
        let rules = rules(&FeatureGates::default());
        let rule = rules.iter().find(|rule| rule.kind == "DevCluster").unwrap();
        let object = |annotations: Value, finalizers: Value| json!({"metadata": {"name": "a", "namespace": "b", "annotations": annotations, "finalizers": finalizers}});
        let managed = object(json!(null), json!(["x.io/f"]));
        let external = object(json!({"cluster.x-k8s.io/managed-by": ""}), json!(["x.io/f"]));
        let judge = |operation, old: &Value, new: &Value| rule.check(&change(operation, old, new)).unwrap();
        let refused = judge(Operation::Update, &external, &managed);
        assert_eq!(refused.errors[0].path, "metadata.annotations");
        assert_eq!(refused.errors[0].kind.reason(), "FieldValueForbidden");
        let added = judge(Operation::Update, &managed, &external);
        assert!(added.errors.is_empty());
        assert!(added.warnings[1].contains("kubectl patch devclusters.infrastructure.cluster.x-k8s.io a -n b"));
        let check = |operation, old, new| {
            assert_eq!(judge(operation, old, new), Verdict::default(), "{operation:?}");
        };
        check(Operation::Update, &external, &external);
        check(Operation::Update, &managed, &managed);
        check(Operation::Create, &Value::Null, &managed);
        check(Operation::Create, &Value::Null, &external);
        check(Operation::Delete, &external, &Value::Null);
    }
}
