//! The admission rules by kind, as data.

use std::marker::PhantomData;

use kube::core::{ObjectMeta, PartialObjectMeta};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_addon_helm::rules as addons;
use windlass_api::core::Cluster;
use windlass_api::core::ClusterClass;
use windlass_api::kind::ApiKind;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_contract::infra_cluster;
use windlass_core_topology::rules as topology;
use windlass_schema::FieldError;
use windlass_webhook::{Change, Operation, Part, Reference, Refers, Rule, Verdict};

use crate::registry::kinds::{KINDS, KindEntry};

/// A check of writes of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    /// The operations that it checks.
    pub operations: &'static [Operation],
    /// The check.
    pub check: fn(&Change<'_>) -> Verdict,
    /// What a write newly refers to, so that the user needs rights there.
    pub refers: Option<Refers>,
    /// A condition in CEL that holds for all writes which the rule may refuse.
    pub condition: Option<&'static str>,
}

/// Holds for Clusters that have a new class of another namespace.
const HAS_NEW_FOREIGN_CLASS: &str = "has(object.spec) && has(object.spec.topology) && has(object.spec.topology.classRef) \
     && has(object.spec.topology.classRef.namespace) && object.spec.topology.classRef.namespace != object.metadata.namespace \
     && (oldObject == null || !has(oldObject.spec) || !has(oldObject.spec.topology) || !has(oldObject.spec.topology.classRef) \
     || oldObject.spec.topology.classRef != object.spec.topology.classRef)";

impl Admission {
    /// The rule of every InfraCluster kind: an externally managed object stays externally managed. Only updates can
    /// violate it. Creations and deletions are not covered, so they do not depend on a webhook.
    pub const INFRA_CLUSTER: Self = Self {
        operations: &[Operation::Update],
        check: infra_cluster_update,
        refers: None,
        condition: None,
    };

    /// The rule of Clusters: a class of another namespace needs rights there, as its templates are copied.
    pub const CLUSTER: Self = Self {
        operations: &[Operation::Create, Operation::Update],
        check: |_| Verdict::default(),
        refers: Some(foreign_class),
        condition: Some(HAS_NEW_FOREIGN_CLASS),
    };

    /// The rules of HelmChartProxies: invalid charts, invalid selectors, and immutable fields.
    pub const HELM_CHART_PROXY: Self = Self {
        operations: &[Operation::Create, Operation::Update],
        check: |change| {
            let old: Option<HelmChartProxy> = decoded(change.old);
            refused(decoded(change.new).as_ref(), |new| {
                addons::chart_proxy(old.as_ref(), new)
            })
        },
        refers: None,
        condition: None,
    };

    /// The rule of HelmReleaseProxies: the identity of a release is immutable.
    pub const HELM_RELEASE_PROXY: Self = Self {
        operations: &[Operation::Update],
        check: |change| {
            let new: Option<HelmReleaseProxy> = decoded(change.new);
            refused(decoded(change.old).zip(new).as_ref(), |(old, new)| {
                addons::release_proxy(old, new)
            })
        },
        refers: None,
        condition: None,
    };
}

/// An object of a kind. An object that cannot be decoded violates its schema, and the schema validation reports it.
fn decoded<K: DeserializeOwned>(object: &Value) -> Option<K> {
    K::deserialize(object).ok()
}

fn refused<T>(objects: Option<&T>, judge: impl FnOnce(&T) -> Vec<FieldError>) -> Verdict {
    Verdict {
        errors: objects.map(judge).unwrap_or_default(),
        warnings: Vec::new(),
    }
}

/// The rules of all kinds that have one.
pub fn rules() -> Vec<Rule> {
    KINDS.iter().filter_map(rule).collect()
}

fn rule(entry: &KindEntry) -> Option<Rule> {
    let admission = entry.admission?;
    Some(Rule {
        group: entry.group,
        versions: served_versions(entry),
        kind: entry.kind,
        resource: entry.plural,
        operations: admission.operations,
        check: admission.check,
        refers: admission.refers,
        condition: admission.condition,
    })
}

/// All versions that the CRD serves, the stored one first.
fn served_versions(entry: &KindEntry) -> Vec<String> {
    let crd = (entry.crd)();
    let versions = crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
    let served = versions.iter().filter(|version| version["served"] == true);
    let mut names: Vec<String> = served
        .filter_map(|version| Some(version["name"].as_str()?.to_owned()))
        .collect();
    names.sort_by_key(|name| name != entry.version);
    names
}

fn foreign_class(change: &Change<'_>) -> Option<Reference> {
    let key = topology::new_foreign_class(change.old, change.new)?;
    Some(Reference {
        field: "spec.topology.classRef",
        group: ClusterClass::GROUP,
        version: ClusterClass::VERSION,
        kind: ClusterClass::KIND,
        resource: <ClusterClass as ApiKind>::PLURAL,
        namespace: key.namespace,
        name: key.name,
        parts: |class| {
            let templates = topology::templates(class);
            let parts = templates.into_iter().map(|template| Part {
                group: template.group().to_owned(),
                kind: template.kind.clone(),
                name: template.name.clone(),
            });
            parts.collect()
        },
    })
}

fn infra_cluster_update(change: &Change<'_>) -> Verdict {
    match infra_cluster::check_update(change.resource, &metadata(change.old), &metadata(change.new)) {
        Ok(warnings) => Verdict {
            errors: Vec::new(),
            warnings,
        },
        Err(refusal) => Verdict {
            errors: vec![FieldError::forbidden(refusal.field, refusal.message)],
            warnings: Vec::new(),
        },
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

    use super::*;

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
        let rules = rules();
        let mut kinds = Vec::new();
        for entry in KINDS.iter().filter(|entry| is_infra_cluster(entry)) {
            let rule = rules
                .iter()
                .find(|rule| (rule.group, rule.kind) == (entry.group, entry.kind));
            let rule =
                rule.unwrap_or_else(|| panic!("{} is not judged by Admission::INFRA_CLUSTER in KINDS", entry.kind));
            assert_eq!(rule.operations, [Operation::Update], "{}", entry.kind);
            assert_eq!(rule.resource, entry.plural);
            assert_eq!(rule.versions[0], entry.version);
            let crd = (entry.crd)();
            for version in crd["spec"]["versions"].as_array().unwrap() {
                let named = rule.versions.iter().any(|name| version["name"] == **name);
                assert_eq!(version["served"] == true, named, "{} {version}", entry.kind);
            }
            kinds.push(entry.kind);
        }
        assert_eq!(kinds, ["DevCluster"]);
        // EX-013: no other kind is ever externally managed, templates included.
        let others = KINDS
            .iter()
            .filter(|entry| entry.admission.is_some() && !is_infra_cluster(entry));
        assert!(
            others
                .into_iter()
                .all(|entry| entry.kind.starts_with("Helm") || entry.kind == "Cluster")
        );
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
            let resource = "helm.addons.cluster.x-k8s.io";
            let verdict = (admission.check)(&Change { resource, old, new });
            let paths: Vec<&str> = verdict.errors.iter().map(|error| error.path.as_str()).collect();
            assert_eq!(paths, expect, "{old} {new}");
        };
        let (of_chart, of_release) = (Admission::HELM_CHART_PROXY, Admission::HELM_RELEASE_PROXY);
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
        let rules = rules();
        let rule = rules.iter().find(|rule| rule.kind == "DevCluster").unwrap();
        let object = |annotations: Value, finalizers: Value| json!({"metadata": {"name": "a", "namespace": "b", "annotations": annotations, "finalizers": finalizers}});
        let managed = object(json!(null), json!(["x.io/f"]));
        let external = object(json!({"cluster.x-k8s.io/managed-by": ""}), json!(["x.io/f"]));
        let refused = rule.judge(Operation::Update, "", &external, &managed);
        assert_eq!(refused.errors[0].path, "metadata.annotations");
        assert_eq!(refused.errors[0].kind.reason(), "FieldValueForbidden");
        let added = rule.judge(Operation::Update, "", &managed, &external);
        assert!(added.errors.is_empty());
        assert!(added.warnings[1].contains("kubectl patch devclusters.infrastructure.cluster.x-k8s.io a -n b"));
        let check = |operation, subresource, old, new| {
            assert_eq!(
                rule.judge(operation, subresource, old, new),
                Verdict::default(),
                "{operation:?} {subresource}"
            );
        };
        check(Operation::Update, "", &external, &external);
        check(Operation::Update, "", &managed, &managed);
        check(Operation::Update, "status", &external, &managed);
        check(Operation::Create, "", &Value::Null, &managed);
        check(Operation::Create, "", &Value::Null, &external);
        check(Operation::Delete, "", &external, &Value::Null);
    }
}
