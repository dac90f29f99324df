//! Clusters, with and without a topology.

mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Value, json};
use windlass_api::annotations;
use windlass_api::core::ClusterClass;
use windlass_api::kind::ApiKind;
use windlass_gocompat::quote::quoted;
use windlass_schema::{FieldError, FieldErrors, Kind};
use windlass_topology::model::{Topology, VariableValue, read};
use windlass_topology::variables::check::{BUDGET, Definitions, places, write};
use windlass_topology::variables::known::known;

use crate::common;
use crate::core::cluster_class::{self, describes_health_check};
use crate::defaults;
use crate::field::Field;
use crate::rights::{Part, Reference};
use crate::rule::{Change, Verdict};
use crate::view::{self, Unread, class_of};

const CLASS: (&str, &str) = (<ClusterClass as ApiKind>::GROUP, <ClusterClass as ApiKind>::KIND);

/// Sets the `v` of the version and the variables of the class that have defaults, and checks all variables: defaults and checks see the
/// same state of the class.
pub fn complete(change: &Change<'_>, cluster: &mut Value) -> Result<Verdict, Unread> {
    if !Field::of(cluster).child("spec.topology").is_set() {
        return Ok(Verdict::default());
    }
    defaults::version(cluster, "/spec/topology/version");
    let Some((namespace, name)) = class_of(cluster).map(|(namespace, name)| (namespace.to_owned(), name.to_owned()))
    else {
        let path = "spec.topology.classRef.name";
        return Ok(vec![FieldError::required(path, "cannot be empty")].into());
    };
    let class = view::object(change.view, CLASS, &namespace, &name)?;
    let Some(defined) = class.as_deref().and_then(cluster_class::definitions) else {
        return Ok(Verdict::default());
    };
    let compiled = known(&defined);
    let definitions = match &*compiled {
        Ok(definitions) => definitions,
        Err(why) => {
            let detail = format!("variable definitions in the ClusterClass not valid: {why}");
            // Nothing of the topology can be checked, so nothing of it may change.
            let error = FieldError::new("spec.topology", Kind::TypeInvalid, Some(json!(name)), detail);
            return Ok(vec![error].into());
        }
    };
    let is_rebased = class_of(change.old).is_some_and(|old| old != (namespace.as_str(), name.as_str()));
    Ok(Verdict {
        errors: variables(change.old, cluster, definitions),
        // Values that did not fit the class before have to fit the new one.
        forgives_nothing: is_rebased,
        ..Verdict::default()
    })
}

/// Completes and checks the values in the topology of a Cluster.
fn variables(old: &Value, cluster: &mut Value, definitions: &Definitions) -> Vec<FieldError> {
    // What cannot be read violates the schema, which says so.
    let Ok(topology) = read::<Topology>(cluster, "/spec/topology") else {
        return Vec::new();
    };
    let stored: Topology = read(old, "/spec/topology").unwrap_or_default();
    let stored: BTreeMap<String, &[VariableValue]> = places(&stored)
        .into_iter()
        .map(|place| (place.at, place.values))
        .collect();
    let (mut errors, mut left) = (FieldErrors::new(), BUDGET);
    for place in places(&topology) {
        let old = stored.get(&place.at).copied().unwrap_or_default();
        let values = definitions.complete(place.values, place.list());
        if !errors.is_full() {
            errors.extend(definitions.check(&values, old, place.list(), &mut left));
        }
        if values != place.values {
            write(cluster, &place, &values);
        }
    }
    errors.into_vec()
}

/// Checks a Cluster.
pub fn check(change: &Change<'_>) -> Result<Verdict, Unread> {
    let (mut errors, mut warnings) = (FieldErrors::new(), Vec::new());
    common::name_is_label(change.new, "must be a valid label value", &mut errors);
    let (old, new) = (Field::of(change.old).child("spec"), Field::of(change.new).child("spec"));
    let is_removed = |part: &str| old.child(part).is_set() && !new.child(part).is_set();
    if is_removed("infrastructureRef") {
        errors.add(|| new.child("infrastructureRef").forbidden("cannot be removed"));
    }
    if !["controlPlaneRef", "infrastructureRef", "topology"]
        .iter()
        .any(|part| new.child(part).is_set())
    {
        errors
            .add(|| new.forbidden("one of spec.controlPlaneRef, spec.infrastructureRef or spec.topology must be set"));
    }
    if is_removed("controlPlaneRef") {
        errors.add(|| new.child("controlPlaneRef").forbidden("cannot be removed"));
    }
    for part in ["pods", "services"] {
        for block in new.child("clusterNetwork").child(part).child("cidrBlocks").items() {
            if !is_network(block.text()) {
                errors.add(|| block.invalid(format!("invalid CIDR address: {}", block.text())));
            }
        }
    }
    if new.child("topology").is_set() {
        topology(change, &mut errors, &mut warnings)?;
    } else if old.child("topology").is_set() {
        let words = "cannot be removed from an existing Cluster";
        errors.add(|| new.child("topology").forbidden(words));
    }
    Ok(Verdict {
        warnings,
        ..errors.into()
    })
}

/// Whether a text is an address with the length of a prefix.
fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let is_plain = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    is_plain && length.parse::<u8>().is_ok_and(|length| length <= most)
}

fn topology(change: &Change<'_>, errors: &mut FieldErrors, warnings: &mut Vec<String>) -> Result<(), Unread> {
    let at = Field::of(change.new).child("spec.topology");
    let Some((namespace, name)) = class_of(change.new) else {
        let words = "classRef.name cannot be empty";
        errors.add(|| at.child("classRef.name").required(words));
        return Ok(());
    };
    let version = at.child("version");
    if version.text().is_empty() {
        errors.add(|| version.invalid("version must be a valid semantic version"));
    }
    common::version(&version, "version must be a valid semantic version", errors);
    for part in parts(&at) {
        common::template_metadata(&part.child("metadata"), errors);
    }
    for set in at.child("workers.machineDeployments").keyed("name") {
        common::rolling_update(&set.child("rollout.strategy"), errors);
    }
    for part in parts(&at) {
        common::taints(&part.child("taints"), false, errors);
    }
    concurrency(change.new, errors);
    let class = view::object(change.view, CLASS, namespace, name)?;
    let not_found = "The ClusterClass must be created to reconcile the Cluster";
    let not_ready = "Please take a look at the ClusterClass status";
    match &class {
        None => warnings.push(cluster_class::warning(namespace, name, "does not exist", not_found)),
        Some(class) if cluster_class::definitions(class).is_none() => warnings.push(cluster_class::warning(
            namespace,
            name,
            "hasn't been successfully reconciled",
            not_ready,
        )),
        Some(_) => {}
    }
    if let Some(class) = &class {
        for_class(&at, class, errors);
    }
    let scaled = class.as_deref().map(cluster_class::autoscaled_classes);
    cluster_class::autoscaled(change.new, &scaled.unwrap_or_default(), errors);
    if change.is_update() {
        update(change, &at, class.as_deref(), (errors, warnings))?;
    }
    Ok(())
}

/// The parts of a topology that have labels, annotations and taints.
fn parts<'a>(topology: &Field<'a>) -> Vec<Field<'a>> {
    let workers = topology.child("workers");
    let mut all = vec![topology.child("controlPlane")];
    all.extend(workers.child("machineDeployments").keyed("name"));
    all.extend(workers.child("machinePools").keyed("name"));
    all
}

fn concurrency(cluster: &Value, errors: &mut FieldErrors) {
    let annotation = Field::of(cluster)
        .child("metadata.annotations")
        .entry(annotations::TOPOLOGY_UPGRADE_CONCURRENCY);
    if annotation.value().is_null() {
        return;
    }
    match annotation.text().parse::<i64>() {
        Err(_) => errors.add(|| {
            annotation.invalid(format!(
                "could not parse the value of the annotation: strconv.Atoi: parsing {}: invalid syntax",
                quoted(annotation.text())
            ))
        }),
        Ok(number) if number < 1 => errors.add(|| annotation.invalid("value cannot be less than 1")),
        Ok(_) => {}
    }
}

/// Checks a topology against its class.
fn for_class(topology: &Field<'_>, class: &Value, errors: &mut FieldErrors) {
    let class = Field::of(class);
    let (name, spec) = (quoted(class.child("metadata.name").text()), class.child("spec"));
    let versions = spec.child("kubernetesVersions");
    let version = topology.child("version");
    if !versions.is_empty() && !versions.items().any(|known| known.text() == version.text()) {
        errors.add(|| version.invalid("version must match one of the versions defined in the ClusterClass"));
    }
    for (field, kind) in [
        ("machineDeployments", "MachineDeployment"),
        ("machinePools", "MachinePool"),
    ] {
        let mut names = BTreeSet::new();
        let classes = cluster_class::by_class(&spec.child("workers").child(field));
        for set in topology.child("workers").child(field).items() {
            let (of, set) = (set.child("class"), set.child("name"));
            if !classes.contains_key(of.text()) {
                errors.add(|| {
                    of.invalid(format!(
                        "{kind}Class with name {} does not exist in ClusterClass {name}",
                        quoted(of.text())
                    ))
                });
            }
            if set.text().is_empty() {
                errors.add(|| set.required("name must not be empty"));
            } else if !names.insert(set.text()) {
                errors.add(|| {
                    set.invalid(format!(
                        "name must be unique. {kind} with name {} is defined more than once",
                        quoted(set.text())
                    ))
                });
            }
        }
    }
    let check = topology.child("controlPlane.healthCheck");
    if describes_health_check(&check) && !spec.child("controlPlane.machineInfrastructure.templateRef").is_set() {
        errors.add(|| {
            check.forbidden("can be only set if spec.controlPlane.machineInfrastructure is set in ClusterClass")
        });
    }
    health_check(&check, &spec.child("controlPlane.healthCheck"), errors);
    let classes = cluster_class::by_class(&spec.child("workers.machineDeployments"));
    for set in topology.child("workers.machineDeployments").keyed("name") {
        let class = classes.get(set.child("class").text());
        let check = set.child("healthCheck");
        common::number_or_percentage(&check.child("remediation.maxInFlight"), errors);
        match class {
            Some(class) => health_check(&check, &class.child("healthCheck"), errors),
            None => common::health_check(&check, errors),
        }
    }
}

/// Checks the health check of a part of a topology: one that is enabled must be described here or in the class.
fn health_check(check: &Field<'_>, of_class: &Field<'_>, errors: &mut FieldErrors) {
    common::health_check(check, errors);
    let enabled = check.child("enabled");
    if enabled.is_true() && !describes_health_check(check) && !describes_health_check(of_class) {
        let words = "cannot be set to true as healthCheck definition is not available in the Cluster topology or the ClusterClass";
        errors.add(|| enabled.forbidden(words));
    }
}

/// Checks a change of a topology.
fn update(
    change: &Change<'_>,
    at: &Field<'_>,
    class: Option<&Value>,
    (errors, warnings): (&mut FieldErrors, &mut Vec<String>),
) -> Result<(), Unread> {
    let class_field = at.child("classRef");
    let annotation = |name: &str| {
        let annotations = Field::of(change.new).child("metadata.annotations");
        !annotations.entry(name).value().is_null()
    };
    let (namespace, name) = class_of(change.new).unwrap_or_default();
    let Some(class) = class else {
        let detail = format!("ClusterClass {namespace}/{name} not found");
        // A topology that cannot be checked cannot be changed. Everything else can: the path is that of the topology.
        errors.add(|| FieldError::new(at.path(), Kind::Internal, None, detail));
        return Ok(());
    };
    let Some((old_namespace, old_name)) = class_of(change.old) else {
        if !annotation(annotations::TOPOLOGY_UNSAFE_UPDATE_CLASS_NAME) {
            let words = "classRef cannot be set on an existing Cluster";
            errors.add(|| class_field.forbidden(words));
        }
        return Ok(());
    };
    if annotation(annotations::TOPOLOGY_UNSAFE_UPDATE_VERSION) {
        warnings.push(format!(
            "Skipping version validation for Cluster because annotation {} is set.",
            quoted(annotations::TOPOLOGY_UNSAFE_UPDATE_VERSION)
        ));
    } else {
        let spec = Field::of(class).child("spec");
        let is_planned = spec.child("kubernetesVersions").is_set()
            || spec.child("upgrade.external.generateUpgradePlanExtension").is_set();
        errors.extend(version::check(change, !is_planned)?);
    }
    if (old_namespace, old_name) != (namespace, name) {
        if let Some(old) = view::object(change.view, CLASS, old_namespace, old_name)? {
            cluster_class::compatible(&old, class, errors);
        } else {
            let (old, new) = (
                quoted(&format!("{old_namespace}/{old_name}")),
                quoted(&format!("{namespace}/{name}")),
            );
            errors.add(|| class_field.forbidden(format!(
                "valid ClusterClass with name {old} could not be retrieved, change from class {old} to class {new} cannot be \
                 validated. Error: the ClusterClass does not exist"
            )));
        }
    }
    Ok(())
}

/// The class of another namespace that a write newly names. Its templates are copied, so the user needs rights there.
pub fn refers(change: &Change<'_>) -> Option<Reference> {
    let foreign = |cluster: &Value| {
        let (namespace, name) = class_of(cluster)?;
        let own = cluster["metadata"]["namespace"].as_str().unwrap_or_default();
        (namespace != own).then(|| (namespace.to_owned(), name.to_owned()))
    };
    let (namespace, name) = foreign(change.new)?;
    if foreign(change.old).as_ref() == Some(&(namespace.clone(), name.clone())) {
        return None;
    }
    Some(Reference {
        field: "spec.topology.classRef",
        group: <ClusterClass as ApiKind>::GROUP,
        version: <ClusterClass as ApiKind>::VERSION,
        kind: <ClusterClass as ApiKind>::KIND,
        resource: <ClusterClass as ApiKind>::PLURAL,
        namespace,
        name,
        parts: |class| {
            let templates = cluster_class::templates_of(class);
            let parts = templates.into_iter().map(|template| Part {
                group: template.group().to_owned(),
                kind: template.kind.clone(),
                name: template.name,
            });
            parts.collect()
        },
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rule::{Admission, Operation, Rule, WRITES};
    use crate::view::Objects;

    #[test]
    fn a_new_class_forgives_no_values() {
        let class = |name: &str| {
            let schema = json!({"type": "string", "maxLength": 5});
            json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
                "metadata": {"namespace": "a", "name": name, "generation": 1},
                "spec": {"variables": [{"name": "size", "schema": {"openAPIV3Schema": schema}}]},
            })
        };
        let view = Objects(vec![Arc::new(class("one")), Arc::new(class("two"))]);
        let cluster = |class: &str| {
            let values = json!([{"name": "size", "value": "waytoolong"}]);
            json!({
                "metadata": {"namespace": "a", "name": "x"},
                "spec": {"topology": {"classRef": {"name": class}, "version": "v1.35.0", "variables": values}},
            })
        };
        let rule = Rule {
            group: "cluster.x-k8s.io",
            version: "v1beta2",
            kind: "Cluster",
            resource: "clusters",
            admission: Admission::checking(WRITES, check).completing(complete),
            decode: None,
            closed: Vec::new(),
        };
        let refused = |to: &str| {
            let (old, mut new) = (cluster("one"), cluster(to));
            let change = Change {
                resource: "clusters.cluster.x-k8s.io",
                operation: Operation::Update,
                dry_run: false,
                old: &old,
                new: &Value::Null,
                view: &view,
            };
            rule.complete(&change, &mut new).unwrap().errors.len()
        };
        assert_eq!((refused("one"), refused("two")), (0, 1));
    }

    /// Compiled definitions are shared, also with caches that are behind.
    #[test]
    fn a_changed_class_counts_at_once() {
        let complete_with = |default: &str| {
            let schema = json!({"type": "string", "default": default, "maxLength": 5});
            let class = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
                "metadata": {"namespace": "a", "name": "c", "uid": "u", "resourceVersion": "7", "generation": 1},
                "spec": {"variables": [{"name": "size", "schema": {"openAPIV3Schema": schema}}]},
            });
            let mut cluster = json!({
                "metadata": {"namespace": "a", "name": "x"},
                "spec": {"topology": {"classRef": {"name": "c"}, "version": "v1.35.0"}},
            });
            let change = Change {
                resource: "clusters.cluster.x-k8s.io",
                operation: Operation::Create,
                dry_run: false,
                old: &Value::Null,
                new: &Value::Null,
                view: &Objects(vec![Arc::new(class)]),
            };
            let errors = complete(&change, &mut cluster).unwrap().errors.len();
            let value = cluster.pointer("/spec/topology/variables/0/value").cloned();
            (value.unwrap_or_default(), errors)
        };
        for _ in 0..2 {
            assert_eq!(complete_with("s"), (json!("s"), 0));
            assert_eq!(complete_with("m"), (json!("m"), 0));
            assert_eq!(complete_with("toolong").1, 1);
        }
    }

    /// A mutating webhook sees objects before their schema is checked.
    #[test]
    fn topologies_of_any_shape_are_left_to_the_schema() {
        let variable = json!({"name": "size", "schema": {"openAPIV3Schema": {"type": "string", "default": "small"}}});
        let class = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
            "metadata": {"namespace": "a", "name": "c", "generation": 1}, "spec": {"variables": [variable]},
        });
        let view = Objects(vec![Arc::new(class)]);
        for topology in [
            json!({"variables": [["region", "eu"]]}),
            json!({"variables": {"region": "eu"}}),
            json!({"variables": [7, null, "x"]}),
            json!({"workers": {"machineDeployments": [["a"], {"name": 7}]}}),
            json!({"workers": 7, "version": 7}),
            json!({"version": "v1.18446744073709551615.0"}),
            json!([]),
            json!(7),
        ] {
            let mut cluster = json!({"metadata": {"namespace": "a", "name": "x"}, "spec": {"topology": topology}});
            if cluster["spec"]["topology"].is_object() {
                cluster["spec"]["topology"]["classRef"] = json!({"name": "c"});
            }
            let change = |new| Change {
                resource: "clusters.cluster.x-k8s.io",
                operation: Operation::Update,
                dry_run: false,
                old: &cluster,
                new,
                view: &view,
            };
            let mut completed = cluster.clone();
            complete(&change(&Value::Null), &mut completed).unwrap();
            check(&change(&completed)).unwrap();
        }
    }
}
