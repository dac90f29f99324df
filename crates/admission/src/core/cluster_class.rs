//! ClusterClasses: what is wrong with one by itself, and which changes the Clusters of a class can follow.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use windlass_api::annotations;
use windlass_gocompat::quote::quoted;
use windlass_meta::KubernetesVersion;
use windlass_schema::{FieldError, MOST_ERRORS};
use windlass_topology::blueprint;
use windlass_topology::model::{
    ClassSpec, TemplateRef, Topology, VariableClass, VariableDefinition, VariableStatus, read,
};
use windlass_topology::variables::check::{BUDGET, Definitions, is_unchecked, places};
use windlass_topology::variables::class::check_class;

use crate::common;
use crate::core::patches;
use crate::field::Field;
use crate::rule::{Change, Operation, Verdict};
use crate::view::{Read, Unread};

/// How many Clusters a refusal names.
const MOST_NAMES: usize = 3;

/// Checks a ClusterClass, and that its Clusters can follow a change.
pub fn check(change: &Change<'_>) -> Result<Verdict, Unread> {
    if change.operation == Operation::Delete {
        return deletion(change);
    }
    let class = Field::of(change.new).child("spec");
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    templates(&class, &mut errors);
    let workers = class.child("workers");
    unique(&workers.child("machineDeployments"), "MachineDeployment", &mut errors);
    unique(&workers.child("machinePools"), "MachinePool", &mut errors);
    for set in workers.child("machineDeployments").keyed("class") {
        common::rolling_update(&set.child("rollout.strategy"), &mut errors);
    }
    health_checks(&class, &mut errors);
    naming(&class, &mut errors);
    for part in parts(&class) {
        common::taints(&part.child("taints"), false, &mut errors);
    }
    match read::<ClassSpec>(change.new, "/spec") {
        Ok(spec) => errors.extend(check_class(&spec.variables)),
        Err(error) => errors.push(FieldError::invalid(error.field, Value::Null, error.message)),
    }
    for variable in class.child("variables").keyed("name") {
        common::template_metadata(&variable.child("deprecatedV1Beta1Metadata"), &mut errors);
    }
    patches::check(&class, &mut errors);
    let external = class.child("upgrade.external");
    if external.is_set() {
        errors.push(external.forbidden("runtime extensions are not supported"));
    }
    for part in parts(&class) {
        common::template_metadata(&part.child("metadata"), &mut errors);
    }
    versions(&class.child("kubernetesVersions"), &mut errors);
    if change.is_update() {
        errors.extend(compatible(change.old, change.new));
        let clusters = clusters(change, change.old)?;
        in_use(change, &clusters, &mut errors);
        warnings.extend(changed_variables(change, &clusters, BUDGET, &mut errors));
    }
    Ok(Verdict {
        errors,
        warnings,
        ..Verdict::default()
    })
}

/// The Clusters of a class.
fn clusters(change: &Change<'_>, class: &Value) -> Result<Vec<Arc<Value>>, Unread> {
    let text = |field: &str| Field::of(class).child("metadata").child(field).text().to_owned();
    change.view.read(&Read::ClustersOf {
        namespace: text("namespace"),
        name: text("name"),
        // A class that is gone cannot be brought back by the next event.
        exact: change.operation == Operation::Delete,
    })
}

fn deletion(change: &Change<'_>) -> Result<Verdict, Unread> {
    let clusters = clusters(change, change.old)?;
    if clusters.is_empty() {
        return Ok(Verdict::default());
    }
    let mut names: Vec<String> = clusters.iter().take(MOST_NAMES).map(|cluster| key(cluster)).collect();
    if clusters.len() > MOST_NAMES {
        names.push(format!("... ({} more)", clusters.len() - MOST_NAMES));
    }
    let name = Field::of(change.old).child("metadata.name").text();
    Ok(Verdict {
        forbidden: Some(format!(
            "{} {} is forbidden: ClusterClass cannot be deleted because it is used by Cluster(s): {}",
            change.resource,
            quoted(name),
            names.join(", ")
        )),
        ..Verdict::default()
    })
}

fn key(object: &Value) -> String {
    let text = |field: &str| Field::of(object).child("metadata").child(field).text();
    format!("{}/{}", text("namespace"), text("name"))
}

/// The parts of a class that have labels, annotations and taints.
fn parts<'a>(class: &Field<'a>) -> impl Iterator<Item = Field<'a>> {
    let workers = class.child("workers");
    let (sets, pools) = (workers.child("machineDeployments"), workers.child("machinePools"));
    let workers: Vec<_> = sets.keyed("class").chain(pools.keyed("class")).collect();
    std::iter::once(class.child("controlPlane")).chain(workers)
}

/// The references to templates.
fn references<'a>(class: &Field<'a>) -> Vec<Field<'a>> {
    let control_plane = class.child("controlPlane");
    let mut all = vec![
        class.child("infrastructure.templateRef"),
        control_plane.child("templateRef"),
    ];
    let machines = control_plane.child("machineInfrastructure.templateRef");
    all.extend(Some(machines).filter(Field::is_set));
    for kind in ["machineDeployments", "machinePools"] {
        for worker in class.child("workers").child(kind).items() {
            all.push(worker.child("bootstrap.templateRef"));
            all.push(worker.child("infrastructure.templateRef"));
        }
    }
    all
}

fn templates(class: &Field<'_>, errors: &mut Vec<FieldError>) {
    for reference in references(class) {
        let (name, kind, version) = (
            reference.child("name"),
            reference.child("kind"),
            reference.child("apiVersion"),
        );
        if name.text().is_empty() {
            errors.push(name.required("template name must be defined"));
        }
        if kind.text().strip_suffix("Template").is_none_or(str::is_empty) {
            errors.push(kind.invalid("template kind must be of form \"<name>Template\""));
        }
        match version.text().split('/').count() {
            _ if version.text().is_empty() => errors.push(version.required("template apiVersion must be defined")),
            1 | 2 => {}
            _ => errors.push(version.invalid(format!(
                "template apiVersion must be a valid Kubernetes apiVersion: unexpected GroupVersion string: {}",
                version.text()
            ))),
        }
    }
}

fn unique(classes: &Field<'_>, kind: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for worker in classes.items() {
        let class = worker.child("class");
        if !seen.insert(class.text()) {
            let name = quoted(class.text());
            errors.push(class.invalid(format!(
                "{kind} class must be unique. {kind} with class {name} is defined more than once"
            )));
        }
    }
}

/// Whether a health check is described: whether it is enabled does not count.
pub(crate) fn describes_health_check(check: &Field<'_>) -> bool {
    check.child("checks").is_set() || check.child("remediation").is_set()
}

fn health_checks(class: &Field<'_>, errors: &mut Vec<FieldError>) {
    let control_plane = class.child("controlPlane");
    let check = control_plane.child("healthCheck");
    if describes_health_check(&check) {
        common::health_check(&check, errors);
        if !control_plane.child("machineInfrastructure.templateRef").is_set() {
            errors.push(check.forbidden("can be only set if spec.controlPlane.machineInfrastructure is set"));
        }
    }
    for set in class.child("workers.machineDeployments").keyed("class") {
        let check = set.child("healthCheck");
        common::health_check(&check, errors);
        common::number_or_percentage(&check.child("remediation.maxInFlight"), errors);
    }
}

fn naming(class: &Field<'_>, errors: &mut Vec<FieldError>) {
    let data = common::naming_data(None);
    common::naming(&class.child("infrastructure.naming"), "InfraCluster", &data, errors);
    common::naming(&class.child("controlPlane.naming"), "ControlPlane", &data, errors);
    let kinds = [
        ("machineDeployments", "machineDeployment", "MachineDeployment"),
        ("machinePools", "machinePool", "MachinePool"),
    ];
    for (field, owner, kind) in kinds {
        let data = common::naming_data(Some((owner, "topologyName")));
        for worker in class.child("workers").child(field).keyed("class") {
            common::naming(&worker.child("naming"), kind, &data, errors);
        }
    }
}

fn versions(versions: &Field<'_>, errors: &mut Vec<FieldError>) {
    let mut before: Option<KubernetesVersion> = None;
    for version in versions.items() {
        let Ok(now) = KubernetesVersion::parse_tolerant(version.text()) else {
            errors.push(version.invalid("version must be a valid semantic version"));
            continue;
        };
        if let Some(before) = &before {
            // Builds that cannot be ordered may follow one another.
            if matches!(now.compare_with_build(before), Some(order) if order.is_le()) {
                errors.push(version.invalid(format!("version must be greater than {before}")));
            }
            let next = before.minor().saturating_add(1);
            if now.minor() != before.minor() && now.minor() != next {
                errors.push(version.invalid(format!(
                    "expecting a version with minor {} or {next}, found version {}",
                    before.minor(),
                    version.text().trim_start_matches('v')
                )));
            }
        }
        before = Some(now);
    }
}

/// What keeps Clusters of the class `old` from following the class `new`: the group and kind of what exists cannot change. Bootstrap
/// templates are only read when Machines are made, and may.
pub(crate) fn compatible(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (before, after) = (Field::of(old).child("spec"), Field::of(new).child("spec"));
    for part in [
        "infrastructure.templateRef",
        "controlPlane.templateRef",
        "controlPlane.machineInfrastructure.templateRef",
    ] {
        same_kind(&before.child(part), &after.child(part), &mut errors);
    }
    for kind in ["machineDeployments", "machinePools"] {
        let old: Vec<_> = before.child("workers").child(kind).items().collect();
        for worker in after.child("workers").child(kind).items() {
            let class = worker.child("class").text();
            for was in old.iter().filter(|was| was.child("class").text() == class) {
                let part = "infrastructure.templateRef";
                same_kind(&was.child(part), &worker.child(part), &mut errors);
            }
        }
    }
    errors
}

fn same_kind(old: &Field<'_>, new: &Field<'_>, errors: &mut Vec<FieldError>) {
    let group = |reference: &Field<'_>| {
        let version = reference.child("apiVersion").text();
        version
            .split_once('/')
            .map_or(String::new(), |(group, _)| group.to_owned())
    };
    let words = "to prevent incompatible changes in the Clusters";
    let (before, after) = (quoted(&group(old)), quoted(&group(new)));
    if before != after {
        let detail = format!("group of apiVersion cannot be changed from {before} to {after} {words}");
        errors.push(new.child("apiVersion").forbidden(detail));
    }
    let kind = |reference: &Field<'_>| quoted(reference.child("kind").text());
    let (before, after) = (kind(old), kind(new));
    if before != after {
        errors.push(
            new.child("kind")
                .forbidden(format!("kind cannot be changed from {before} to {after} {words}")),
        );
    }
}

/// Checks that the Clusters of a class can follow a change.
fn in_use(change: &Change<'_>, clusters: &[Arc<Value>], errors: &mut Vec<FieldError>) {
    let (old, new) = (Field::of(change.old).child("spec"), Field::of(change.new).child("spec"));
    let versions = new.child("kubernetesVersions");
    let allowed: BTreeSet<&str> = versions.items().map(|version| version.text()).collect();
    for cluster in clusters.iter().filter(|_| !allowed.is_empty()) {
        let version = Field::of(cluster).child("spec.topology.version").text();
        if !allowed.contains(version) {
            let name = quoted(Field::of(cluster).child("metadata.name").text());
            let detail = format!("Kubernetes Version {version} is used by Cluster {name} but not set in ClusterClass");
            errors.push(versions.forbidden(detail));
        }
    }
    for (field, kind) in [
        ("machineDeployments", "MachineDeploymentClass"),
        ("machinePools", "MachinePoolClass"),
    ] {
        removed_workers(&old, &new, (field, kind), clusters, errors);
    }
    removed_health_checks(&old, &new, clusters, errors);
    for cluster in clusters {
        errors.extend(autoscaled(cluster, Some(change.new)));
    }
}

fn removed_workers(
    old: &Field<'_>,
    new: &Field<'_>,
    (field, kind): (&str, &str),
    clusters: &[Arc<Value>],
    errors: &mut Vec<FieldError>,
) {
    let names = |class: &Field<'_>| -> BTreeSet<String> {
        let workers = class.child("workers").child(field);
        workers
            .items()
            .map(|worker| worker.child("class").text().to_owned())
            .collect()
    };
    let after = names(new);
    let removed: BTreeSet<String> = names(old).into_iter().filter(|name| !after.contains(name)).collect();
    for cluster in clusters.iter().filter(|_| !removed.is_empty()) {
        let cluster = Field::of(cluster);
        for worker in cluster.child("spec.topology.workers").child(field).items() {
            let class = worker.child("class").text();
            if removed.contains(class) {
                errors.push(new.child("workers").child(field).forbidden(format!(
                    "{kind} {} cannot be deleted because it is used by Cluster {}",
                    quoted(class),
                    quoted(cluster.child("metadata.name").text())
                )));
            }
        }
    }
}

/// Checks that no Cluster enables a health check that only the class described.
fn removed_health_checks(old: &Field<'_>, new: &Field<'_>, clusters: &[Arc<Value>], errors: &mut Vec<FieldError>) {
    let needs = |check: &Field<'_>| check.child("enabled").is_true() && !describes_health_check(check);
    let mut refuse = |check: &Field<'_>, users: Vec<&str>| {
        if !users.is_empty() {
            let users = quoted(&users.join(","));
            errors.push(check.forbidden(format!(
                "healthCheck cannot be deleted because it is used by Cluster(s) {users}"
            )));
        }
    };
    let is_removed =
        |before: &Field<'_>, after: &Field<'_>| describes_health_check(before) && !describes_health_check(after);
    let name = |cluster: &'_ Arc<Value>| Field::of(cluster).child("metadata.name").text().to_owned();
    let check = new.child("controlPlane.healthCheck");
    if is_removed(&old.child("controlPlane.healthCheck"), &check) {
        let users = clusters
            .iter()
            .filter(|cluster| needs(&Field::of(cluster).child("spec.topology.controlPlane.healthCheck")));
        let users: Vec<String> = users.map(name).collect();
        refuse(&check, users.iter().map(String::as_str).collect());
    }
    for worker in new.child("workers.machineDeployments").keyed("class") {
        let class = worker.child("class").text();
        let sets = old.child("workers.machineDeployments");
        let Some(before) = sets.items().find(|before| before.child("class").text() == class) else {
            continue;
        };
        if !is_removed(&before.child("healthCheck"), &worker.child("healthCheck")) {
            continue;
        }
        let users = clusters.iter().filter(|cluster| {
            let sets = Field::of(cluster).child("spec.topology.workers.machineDeployments");
            sets.items()
                .any(|set| set.child("class").text() == class && needs(&set.child("healthCheck")))
        });
        let users: Vec<String> = users.map(name).collect();
        refuse(&worker.child("healthCheck"), users.iter().map(String::as_str).collect());
    }
}

/// Replicas of worker sets that the cluster autoscaler manages, as annotations of the set or of its class say.
pub(crate) fn autoscaled(cluster: &Value, class: Option<&Value>) -> Vec<FieldError> {
    let bounds = |metadata: &Field<'_>| {
        let annotations = metadata.child("annotations");
        let has = |name: &str| !annotations.entry(name).value().is_null();
        has(annotations::AUTOSCALER_MIN_SIZE) || has(annotations::AUTOSCALER_MAX_SIZE)
    };
    let mut errors = Vec::new();
    let cluster = Field::of(cluster);
    let (name, namespace) = (cluster.child("metadata.name"), cluster.child("metadata.namespace"));
    let owner = format!(
        "cluster {} in namespace {}",
        quoted(name.text()),
        quoted(namespace.text())
    );
    for set in cluster.child("spec.topology.workers.machineDeployments").keyed("name") {
        let replicas = set.child("replicas");
        if replicas.value().is_null() {
            continue;
        }
        if bounds(&set.child("metadata")) {
            errors.push(replicas.invalid(format!(
                "cannot be set for {owner} if the same MachineDeploymentTopology has autoscaler annotations"
            )));
        }
        let of = set.child("class").text();
        let classes = class.map(|class| Field::of(class).child("spec.workers.machineDeployments"));
        let found = classes
            .iter()
            .flat_map(Field::items)
            .filter(|class| class.child("class").text() == of);
        for _ in found.filter(|class| bounds(&class.child("metadata"))) {
            errors.push(replicas.invalid(format!(
                "cannot be set for {owner} if the source class {} of this MachineDeploymentTopology has autoscaler annotations",
                quoted(of)
            )));
        }
    }
    errors
}

/// The definitions of inline variables, as the status of the class will have them.
pub(crate) fn inline_definitions(variables: &[VariableClass]) -> Vec<VariableStatus> {
    let definition = |variable: &VariableClass| VariableStatus {
        name: variable.name.clone(),
        definitions_conflict: false,
        definitions: vec![VariableDefinition {
            from: windlass_api::values::VARIABLE_FROM_INLINE.to_owned(),
            required: variable.required,
            schema: variable.schema.clone(),
        }],
    };
    variables.iter().map(definition).collect()
}

/// Checks that the values in the Clusters of a class fit definitions that change, and that no variable is removed that a Cluster sets.
///
/// Cluster API has checked this up to v1.3, and its proposal for ClusterClasses says so. Without the check a class is accepted, and its
/// Clusters are reconciled no more. Classes with variables of runtime extensions are not checked: those variables are not known here. Rules
/// of variables may cost `left` together. When it is spent, only the shapes of the other values are known: a warning says so.
///
/// Values that did not fit the definitions before do not count, nor those of Clusters that are being deleted.
fn changed_variables(
    change: &Change<'_>,
    clusters: &[Arc<Value>],
    mut left: Option<u64>,
    errors: &mut Vec<FieldError>,
) -> Option<String> {
    let (Ok(before), Ok(after)) = (
        read::<ClassSpec>(change.old, "/spec"),
        read::<ClassSpec>(change.new, "/spec"),
    ) else {
        return None;
    };
    let is_discovered = after.patches.iter().any(|patch| {
        let external = patch.external.as_ref();
        external.is_some_and(|external| external.get("discoverVariablesExtension").is_some())
    });
    let changed: Vec<VariableClass> = after
        .variables
        .iter()
        .filter(|variable| !before.variables.contains(variable))
        .cloned()
        .collect();
    let is_there = |name: &str| after.variables.iter().any(|variable| variable.name == name);
    let gone = before.variables.iter().map(|variable| variable.name.as_str());
    let gone: BTreeSet<&str> = gone.filter(|name| !is_there(name)).collect();
    if is_discovered || (changed.is_empty() && gone.is_empty()) {
        return None;
    }
    let at = Field::of(change.new).child("spec.variables");
    let definitions = match Definitions::of(&inline_definitions(&changed)) {
        Ok(definitions) => definitions,
        Err(why) => {
            // The check of the class says it better.
            if errors.is_empty() {
                errors.push(FieldError::invalid(at.path(), Value::Null, why));
            }
            return None;
        }
    };
    let changed_from: Vec<VariableClass> = before
        .variables
        .iter()
        .filter(|variable| changed.iter().any(|changed| changed.name == variable.name))
        .cloned()
        .collect();
    let definitions_before = Definitions::of(&inline_definitions(&changed_from)).ok();
    let names: BTreeSet<&str> = changed.iter().map(|variable| variable.name.as_str()).collect();
    let mut unchecked = 0;
    let in_use = clusters
        .iter()
        .filter(|cluster| !Field::of(cluster).child("metadata.deletionTimestamp").is_set());
    for cluster in in_use {
        let Ok(topology) = read::<Topology>(cluster, "/spec/topology") else {
            continue;
        };
        for place in places(&topology) {
            let (path, values, list) = (&place.at, place.values, place.list());
            for variable in values.iter().filter(|variable| gone.contains(variable.name.as_str())) {
                errors.push(at.forbidden(format!(
                    "variable {} can not be removed. It is used in Cluster {} at {path}",
                    quoted(&variable.name),
                    key(cluster)
                )));
            }
            let values = values.iter().filter(|variable| names.contains(variable.name.as_str()));
            let values: Vec<_> = values.cloned().collect();
            let completed = definitions.complete(&values, list);
            let found = definitions.check(&completed, &[], list, &mut left);
            let mut wrong: Vec<FieldError> = found.into_iter().filter(|error| !is_unchecked(error)).collect();
            if let Some(before) = definitions_before.as_ref().filter(|_| !wrong.is_empty()) {
                let values = values
                    .iter()
                    .filter(|value| changed_from.iter().any(|variable| variable.name == value.name));
                let completed = before.complete(&values.cloned().collect::<Vec<_>>(), list);
                let known = before.check(&completed, &[], list, &mut BUDGET.clone());
                let known = known.into_iter().filter(|error| !is_unchecked(error));
                let known: BTreeSet<String> = known.map(|error| variable_of(path, &error)).collect();
                wrong.retain(|error| !known.contains(&variable_of(path, error)));
            }
            // The values are those of others, and messages have them: only their places are named.
            errors.extend(wrong.into_iter().map(|error| {
                let (cluster, path) = (key(cluster), error.path);
                at.forbidden(format!(
                    "{path} of Cluster {cluster} does not fit the changed definitions"
                ))
            }));
        }
        unchecked += usize::from(left.is_none());
        if errors.len() >= MOST_ERRORS {
            break;
        }
    }
    (unchecked > 0).then(|| {
        let all = clusters.len();
        format!("the rules of the changed variables cost too much to check the values of {unchecked} of {all} Clusters")
    })
}

/// The path of the variable in the list at `list` that an error is about, or what the error says of the list.
fn variable_of(list: &str, error: &FieldError) -> String {
    match error.path.strip_prefix(list) {
        Some(rest) if rest.starts_with('[') => {
            let end = rest.find(']').map_or(rest.len(), |end| end + 1);
            format!("{list}{}", &rest[..end])
        }
        _ => error.to_string(),
    }
}

/// The definitions of the variables of a class: those of its status if that is up to date, or else those of its specification, if that
/// has them all. None while only a reconcile can tell.
pub(crate) fn definitions(class: &Value) -> Option<Vec<VariableStatus>> {
    let spec: ClassSpec = read(class, "/spec").ok()?;
    if is_reconciled(class) {
        return read(class, "/status/variables").ok();
    }
    let is_discovered = spec.patches.iter().any(|patch| patch.external.is_some());
    let generation = |field: &str| Field::of(class).child(field).number().unwrap_or_default();
    let is_behind = generation("metadata.generation") != generation("status.observedGeneration");
    (is_behind && !is_discovered).then(|| inline_definitions(&spec.variables))
}

/// Whether the status of a class is about its specification, with good variables.
pub(crate) fn is_reconciled(class: &Value) -> bool {
    let class = Field::of(class);
    let generation = class.child("metadata.generation").number().unwrap_or_default();
    let observed = class.child("status.observedGeneration").number().unwrap_or_default();
    let conditions = class.child("status.conditions");
    let ready = conditions
        .items()
        .find(|condition| condition.child("type").text() == "VariablesReady");
    generation == observed && ready.is_some_and(|condition| condition.child("status").text() != "False")
}

/// What admission says of a class that a Cluster names by this key, before it can be used.
pub(crate) fn warning(namespace: &str, name: &str, what: &str, then: &str) -> String {
    format!(
        "Cluster refers to ClusterClass {namespace}/{name}, but this ClusterClass {what}. Cluster topology has not been fully validated. {then}"
    )
}

/// The templates that are read for a class, and copied for its Clusters.
pub(crate) fn templates_of(class: &Value) -> Vec<TemplateRef> {
    let spec: ClassSpec = read(class, "/spec").unwrap_or_default();
    let all = blueprint::references(&spec)
        .into_iter()
        .map(|reference| reference.template.clone());
    all.filter(|template| !template.name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::Objects;

    /// A Cluster may have come before its class, or from Cluster API, which does not check this.
    #[test]
    fn values_that_did_not_fit_before_do_not_refuse_a_change() {
        let class = |variables: Value| {
            let variable =
                |(name, schema): (&String, &Value)| json!({"name": name, "schema": {"openAPIV3Schema": schema}});
            let variables: Vec<Value> = variables.as_object().unwrap().iter().map(variable).collect();
            json!({"metadata": {"namespace": "a", "name": "c"}, "spec": {"variables": variables}})
        };
        let cluster = |deleted: Value| {
            let values = json!([{"name": "size", "value": "waytoolong"}, {"name": "n", "value": 1}]);
            json!({
                "kind": "Cluster", "metadata": {"namespace": "a", "name": "x", "deletionTimestamp": deleted},
                "spec": {"topology": {"classRef": {"name": "c"}, "variables": values}},
            })
        };
        let refused = |old: &Value, new: &Value, cluster: Value| {
            let change = Change {
                resource: "clusterclasses.cluster.x-k8s.io",
                operation: Operation::Update,
                dry_run: false,
                old,
                new,
                view: &Objects(Vec::new()),
            };
            let mut errors = Vec::new();
            changed_variables(&change, &[Arc::new(cluster)], BUDGET, &mut errors);
            let details = errors.into_iter().map(|error| error.detail);
            details.collect::<Vec<_>>()
        };
        let size = |most: i64| json!({"type": "string", "maxLength": most});
        let old = class(json!({"size": size(5), "n": {"type": "integer"}}));
        let relaxed = class(json!({"size": size(8), "n": {"type": "integer"}}));
        assert_eq!(refused(&old, &relaxed, cluster(Value::Null)), Vec::<String>::new());
        let stricter = class(json!({"size": size(8), "n": {"type": "integer", "minimum": 2}}));
        let words = "spec.topology.variables[n].value of Cluster a/x does not fit the changed definitions";
        assert_eq!(refused(&old, &stricter, cluster(Value::Null)), [words]);
        let deleted = cluster(json!("2026-01-01T00:00:00Z"));
        assert_eq!(refused(&old, &stricter, deleted), Vec::<String>::new());
        // Another variable of this name was not there before.
        let none = class(json!({"n": {"type": "integer"}}));
        assert_eq!(refused(&none, &relaxed, cluster(Value::Null)).len(), 1);
    }

    /// What could not be checked is not known to be wrong.
    #[test]
    fn values_that_cost_too_much_to_check_do_not_refuse_a_change() {
        let numbers = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]";
        let rule = format!("{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, self + a + b + c > 0)))");
        let class = |least: i64| {
            let schema = json!({"type": "integer", "minimum": least, "x-kubernetes-validations": [{"rule": rule}]});
            json!({
                "metadata": {"namespace": "a", "name": "c"},
                "spec": {"variables": [{"name": "n", "schema": {"openAPIV3Schema": schema}}]},
            })
        };
        let set =
            |number| json!({"name": format!("md-{number}"), "variables": {"overrides": [{"name": "n", "value": 1}]}});
        let changed = |sets: usize, least: i64| {
            let sets: Vec<Value> = (0..sets).map(set).collect();
            let cluster = json!({
                "kind": "Cluster", "metadata": {"namespace": "a", "name": "x"},
                "spec": {"topology": {"classRef": {"name": "c"}, "workers": {"machineDeployments": sets}}},
            });
            let (old, new) = (class(0), class(least));
            let change = Change {
                resource: "clusterclasses.cluster.x-k8s.io",
                operation: Operation::Update,
                dry_run: false,
                old: &old,
                new: &new,
                view: &Objects(Vec::new()),
            };
            let mut errors = Vec::new();
            let warning = changed_variables(&change, &[Arc::new(cluster)], Some(500_000), &mut errors);
            (errors.len(), warning.is_some())
        };
        assert_eq!(changed(1, 1), (0, false));
        assert_eq!(changed(1, 2), (1, false));
        assert_eq!(changed(100, 1), (0, true));
    }
}
