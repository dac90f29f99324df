//! ClusterClasses: what is wrong with one by itself, and which changes the Clusters of a class can follow.

mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use windlass_api::annotations;
use windlass_gocompat::quote::quoted;
use windlass_meta::KubernetesVersion;
use windlass_schema::{FieldError, FieldErrors};
use windlass_topology::blueprint;
use windlass_topology::model::{ClassSpec, TemplateRef, VariableClass, VariableDefinition, VariableStatus, read};
use windlass_topology::variables::check::BUDGET;
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
    let (mut errors, mut warnings) = (FieldErrors::new(), Vec::new());
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
    let mut wrong = Vec::new();
    match read::<ClassSpec>(change.new, "/spec") {
        Ok(spec) => {
            wrong = check_class(&spec.variables);
            errors.extend(wrong.iter().cloned());
        }
        Err(error) => errors.add(|| FieldError::invalid(error.field, Value::Null, error.message)),
    }
    let mut forgives_nothing = false;
    for variable in class.child("variables").keyed("name") {
        common::template_metadata(&variable.child("deprecatedV1Beta1Metadata"), &mut errors);
    }
    patches::check(&class, &mut errors);
    for part in parts(&class) {
        common::template_metadata(&part.child("metadata"), &mut errors);
    }
    versions(&class.child("kubernetesVersions"), &mut errors);
    if change.is_update() {
        compatible(change.old, change.new, &mut errors);
        let clusters = clusters(change, change.old)?;
        in_use(change, &clusters, &mut errors);
        let changed = values::Changed::of(change, &wrong);
        forgives_nothing = changed.as_ref().is_some_and(|changed| changed.are_some_wrong);
        warnings.extend(changed.and_then(|changed| values::check(change, &changed, &clusters, BUDGET, &mut errors)));
    }
    Ok(Verdict {
        errors: errors.into_vec(),
        warnings,
        forgives_nothing,
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

fn templates(class: &Field<'_>, errors: &mut FieldErrors) {
    for reference in references(class) {
        let (name, kind, version) = (
            reference.child("name"),
            reference.child("kind"),
            reference.child("apiVersion"),
        );
        if name.text().is_empty() {
            errors.add(|| name.required("template name must be defined"));
        }
        if kind.text().strip_suffix("Template").is_none_or(str::is_empty) {
            errors.add(|| kind.invalid("template kind must be of form \"<name>Template\""));
        }
        match version.text().split('/').count() {
            _ if version.text().is_empty() => errors.add(|| version.required("template apiVersion must be defined")),
            1 | 2 => {}
            _ => errors.add(|| {
                version.invalid(format!(
                    "template apiVersion must be a valid Kubernetes apiVersion: unexpected GroupVersion string: {}",
                    version.text()
                ))
            }),
        }
    }
}

fn unique(classes: &Field<'_>, kind: &str, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for worker in classes.items() {
        let class = worker.child("class");
        if !seen.insert(class.text()) {
            let name = quoted(class.text());
            errors.add(|| {
                class.invalid(format!(
                    "{kind} class must be unique. {kind} with class {name} is defined more than once"
                ))
            });
        }
    }
}

/// Whether a health check is described: whether it is enabled does not count.
pub(crate) fn describes_health_check(check: &Field<'_>) -> bool {
    check.child("checks").is_set() || check.child("remediation").is_set()
}

fn health_checks(class: &Field<'_>, errors: &mut FieldErrors) {
    let control_plane = class.child("controlPlane");
    let check = control_plane.child("healthCheck");
    if describes_health_check(&check) {
        common::health_check(&check, errors);
        if !control_plane.child("machineInfrastructure.templateRef").is_set() {
            errors.add(|| check.forbidden("can be only set if spec.controlPlane.machineInfrastructure is set"));
        }
    }
    for set in class.child("workers.machineDeployments").keyed("class") {
        let check = set.child("healthCheck");
        common::health_check(&check, errors);
        common::number_or_percentage(&check.child("remediation.maxInFlight"), errors);
    }
}

fn naming(class: &Field<'_>, errors: &mut FieldErrors) {
    let mut budget = common::naming_budget();
    let data = common::naming_data(None);
    for (part, kind) in [
        ("infrastructure.naming", "InfraCluster"),
        ("controlPlane.naming", "ControlPlane"),
    ] {
        common::naming(&class.child(part), kind, (&data, &mut budget), errors);
    }
    let kinds = [
        ("machineDeployments", "machineDeployment", "MachineDeployment"),
        ("machinePools", "machinePool", "MachinePool"),
    ];
    for (field, owner, kind) in kinds {
        let data = common::naming_data(Some((owner, "topologyName")));
        for worker in class.child("workers").child(field).keyed("class") {
            common::naming(&worker.child("naming"), kind, (&data, &mut budget), errors);
        }
    }
}

fn versions(versions: &Field<'_>, errors: &mut FieldErrors) {
    let mut before: Option<KubernetesVersion> = None;
    for version in versions.items() {
        let Ok(now) = KubernetesVersion::parse_tolerant(version.text()) else {
            errors.add(|| version.invalid("version must be a valid semantic version"));
            continue;
        };
        if let Some(before) = &before {
            // Builds that cannot be ordered may follow one another.
            if matches!(now.compare_with_build(before), Some(order) if order.is_le()) {
                errors.add(|| version.invalid(format!("version must be greater than {before}")));
            }
            let next = before.minor().saturating_add(1);
            if now.minor() != before.minor() && now.minor() != next {
                errors.add(|| {
                    version.invalid(format!(
                        "expecting a version with minor {} or {next}, found version {}",
                        before.minor(),
                        version.text().trim_start_matches('v')
                    ))
                });
            }
        }
        before = Some(now);
    }
}

/// What keeps Clusters of the class `old` from following the class `new`: the group and kind of what exists cannot change. Bootstrap
/// templates are only read when Machines are made, and may.
pub(crate) fn compatible(old: &Value, new: &Value, errors: &mut FieldErrors) {
    let (before, after) = (Field::of(old).child("spec"), Field::of(new).child("spec"));
    for part in [
        "infrastructure.templateRef",
        "controlPlane.templateRef",
        "controlPlane.machineInfrastructure.templateRef",
    ] {
        same_kind(&before.child(part), &after.child(part), errors);
    }
    for kind in ["machineDeployments", "machinePools"] {
        let old = by_class(&before.child("workers").child(kind));
        for worker in after.child("workers").child(kind).items() {
            if let Some(was) = old.get(worker.child("class").text()) {
                let part = "infrastructure.templateRef";
                same_kind(&was.child(part), &worker.child(part), errors);
            }
        }
    }
}

/// Worker classes by their names: the first of each name, of which there is one in a good class.
pub(crate) fn by_class<'a>(workers: &Field<'a>) -> BTreeMap<&'a str, Field<'a>> {
    let mut found = BTreeMap::new();
    for worker in workers.items() {
        found.entry(worker.child("class").text()).or_insert(worker);
    }
    found
}

fn same_kind(old: &Field<'_>, new: &Field<'_>, errors: &mut FieldErrors) {
    let group = |reference: &Field<'_>| {
        let version = reference.child("apiVersion").text();
        version
            .split_once('/')
            .map_or(String::new(), |(group, _)| group.to_owned())
    };
    let words = "to prevent incompatible changes in the Clusters";
    let (before, after) = (group(old), group(new));
    if before != after {
        errors.add(|| {
            let (before, after) = (quoted(&before), quoted(&after));
            let detail = format!("group of apiVersion cannot be changed from {before} to {after} {words}");
            new.child("apiVersion").forbidden(detail)
        });
    }
    let (before, after) = (old.child("kind"), new.child("kind"));
    if before.text() != after.text() {
        errors.add(|| {
            let (before, now) = (quoted(before.text()), quoted(after.text()));
            after.forbidden(format!("kind cannot be changed from {before} to {now} {words}"))
        });
    }
}

/// Checks that the Clusters of a class can follow a change.
fn in_use(change: &Change<'_>, clusters: &[Arc<Value>], errors: &mut FieldErrors) {
    let (old, new) = (Field::of(change.old).child("spec"), Field::of(change.new).child("spec"));
    let versions = new.child("kubernetesVersions");
    let allowed: BTreeSet<&str> = versions.items().map(|version| version.text()).collect();
    for cluster in clusters.iter().filter(|_| !allowed.is_empty()) {
        let version = Field::of(cluster).child("spec.topology.version").text();
        if !allowed.contains(version) {
            errors.add(|| {
                let name = quoted(Field::of(cluster).child("metadata.name").text());
                let detail =
                    format!("Kubernetes Version {version} is used by Cluster {name} but not set in ClusterClass");
                versions.forbidden(detail)
            });
        }
    }
    for (field, kind) in [
        ("machineDeployments", "MachineDeploymentClass"),
        ("machinePools", "MachinePoolClass"),
    ] {
        removed_workers(&old, &new, (field, kind), clusters, errors);
    }
    removed_health_checks(&old, &new, clusters, errors);
    let scaled = autoscaled_classes(change.new);
    for cluster in clusters {
        autoscaled(cluster, &scaled, errors);
    }
}

fn removed_workers(
    old: &Field<'_>,
    new: &Field<'_>,
    (field, kind): (&str, &str),
    clusters: &[Arc<Value>],
    errors: &mut FieldErrors,
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
                errors.add(|| {
                    new.child("workers").child(field).forbidden(format!(
                        "{kind} {} cannot be deleted because it is used by Cluster {}",
                        quoted(class),
                        quoted(cluster.child("metadata.name").text())
                    ))
                });
            }
        }
    }
}

/// Checks that no Cluster enables a health check that only the class described.
fn removed_health_checks(old: &Field<'_>, new: &Field<'_>, clusters: &[Arc<Value>], errors: &mut FieldErrors) {
    let needs = |check: &Field<'_>| check.child("enabled").is_true() && !describes_health_check(check);
    let mut refuse = |check: &Field<'_>, users: &[&str]| {
        if !users.is_empty() {
            errors.add(|| {
                let users = quoted(&users.join(","));
                check.forbidden(format!(
                    "healthCheck cannot be deleted because it is used by Cluster(s) {users}"
                ))
            });
        }
    };
    let is_removed =
        |before: &Field<'_>, after: &Field<'_>| describes_health_check(before) && !describes_health_check(after);
    let (mut of_control_plane, mut of_class) = (Vec::new(), BTreeMap::<&str, Vec<&str>>::new());
    for cluster in clusters {
        let (name, topology) = (
            Field::of(cluster).child("metadata.name").text(),
            Field::of(cluster).child("spec.topology"),
        );
        of_control_plane.extend(Some(name).filter(|_| needs(&topology.child("controlPlane.healthCheck"))));
        let sets = topology.child("workers.machineDeployments");
        let sets = sets.items().filter(|set| needs(&set.child("healthCheck")));
        let classes: BTreeSet<&str> = sets.map(|set| set.child("class").text()).collect();
        for class in classes {
            of_class.entry(class).or_default().push(name);
        }
    }
    let check = new.child("controlPlane.healthCheck");
    if is_removed(&old.child("controlPlane.healthCheck"), &check) {
        refuse(&check, &of_control_plane);
    }
    let before = by_class(&old.child("workers.machineDeployments"));
    for worker in new.child("workers.machineDeployments").keyed("class") {
        let class = worker.child("class").text();
        let (Some(before), Some(users)) = (before.get(class), of_class.get(class)) else {
            continue;
        };
        if is_removed(&before.child("healthCheck"), &worker.child("healthCheck")) {
            refuse(&worker.child("healthCheck"), users);
        }
    }
}

/// Whether the annotations in metadata make the cluster autoscaler manage replicas.
fn is_autoscaled(metadata: &Field<'_>) -> bool {
    let annotations = metadata.child("annotations");
    let has = |name: &str| !annotations.entry(name).value().is_null();
    has(annotations::AUTOSCALER_MIN_SIZE) || has(annotations::AUTOSCALER_MAX_SIZE)
}

/// The worker classes of a class whose annotations make the cluster autoscaler manage the replicas of their sets.
pub(crate) fn autoscaled_classes(class: &Value) -> BTreeSet<&str> {
    let workers = Field::of(class).child("spec.workers.machineDeployments");
    let scaled = workers
        .items()
        .filter(|worker| is_autoscaled(&worker.child("metadata")));
    scaled.map(|worker| worker.child("class").text()).collect()
}

/// Checks that no worker set has replicas that the cluster autoscaler manages, as annotations of the set or of its class say.
pub(crate) fn autoscaled(cluster: &Value, classes: &BTreeSet<&str>, errors: &mut FieldErrors) {
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
        if is_autoscaled(&set.child("metadata")) {
            errors.add(|| {
                replicas.invalid(format!(
                    "cannot be set for {owner} if the same MachineDeploymentTopology has autoscaler annotations"
                ))
            });
        }
        let of = set.child("class").text();
        if classes.contains(of) {
            errors.add(|| {
                replicas.invalid(format!(
                    "cannot be set for {owner} if the source class {} of this MachineDeploymentTopology has autoscaler annotations",
                    quoted(of)
                ))
            });
        }
    }
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

/// The definitions of the variables of a class: those of its status if that is up to date, or else those of its specification, if that
/// has them all. None while only a reconcile can tell.
pub(crate) fn definitions(class: &Value) -> Option<Vec<VariableStatus>> {
    let spec: ClassSpec = read(class, "/spec").ok()?;
    if is_reconciled(class) {
        return read(class, "/status/variables").ok();
    }
    let mut external = spec.patches.iter().filter_map(|patch| patch.external.as_ref());
    let is_discovered = external.any(|external| external.discovers().is_some());
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
