//! The MachineSets that a MachineDeployment wants, as it applies them.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta as Meta;
use windlass_api::core::{
    MachineDeployment, MachineSet, MachineSetDeletionSpec, MachineSetSpec, MachineTemplateSpec, ObjectMeta,
};
use windlass_api::meta::MetaExt as _;
use windlass_meta::{Moment, label_or_hash};

use crate::machine_deployment::settings::{self, Strategy};
use crate::shared::keys::{LAST_APPLIED, REVISION_HISTORY, annotations, finalizers, labels};
use crate::shared::machines::owner_reference;
use crate::shared::templates;

/// The number of a set's revision; zero when it has none.
pub(crate) fn revision(set: &MachineSet) -> i64 {
    set.metadata
        .annotation(annotations::REVISION)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// Which of the sets carries the current template, if any does.
///
/// After `rollout.after`, sets made before that instant do not count: the first one made since then does.
pub(crate) fn find_new<'a>(
    deployment: &MachineDeployment,
    sets: &'a [Arc<MachineSet>],
    now: &Moment,
) -> Option<&'a Arc<MachineSet>> {
    let after = deployment
        .spec
        .rollout
        .as_ref()
        .and_then(|rollout| rollout.after.as_ref());
    let after = after.map(|time| time.0).filter(|after| now.reached(*after));
    let alike = sets
        .iter()
        .filter(|set| templates::same_machines(&set.spec.template, &deployment.spec.template));
    match after {
        Some(after) => alike
            .filter(|set| set.metadata.created() >= after)
            .min_by_key(|set| (set.metadata.created(), set.metadata.name().to_owned())),
        None => alike.min_by_key(|set| {
            let replicas = set.spec.replicas.unwrap_or(0);
            (-replicas, set.metadata.created(), set.metadata.name().to_owned())
        }),
    }
}

/// The revision that the set with the current template has or gets.
pub(crate) fn new_revision(new: Option<&MachineSet>, sets: &[Arc<MachineSet>]) -> i64 {
    let is_new = |set: &MachineSet| new.is_some_and(|new| new.metadata.uid == set.metadata.uid);
    let newest_old = sets
        .iter()
        .filter(|set| !is_new(set))
        .map(|set| revision(set))
        .max()
        .unwrap_or(0);
    new.map_or(0, revision).max(newest_old + 1)
}

/// The revisions that the set had before, when it gets this one. What an earlier pass wrote is kept: a field manager gives up what it leaves
/// out.
fn revision_history(set: &MachineSet, revision: i64) -> Option<String> {
    let annotation = |key: &str| set.metadata.annotations.as_ref()?.get(key).cloned();
    let had = annotation(annotations::REVISION).filter(|had| *had != revision.to_string());
    let before = annotation(REVISION_HISTORY).filter(|history| !history.is_empty());
    let all: Vec<String> = before.into_iter().chain(had).collect();
    (!all.is_empty()).then(|| all.join(","))
}

/// The replicas that the deployment had when its sets were last applied; `None` for a deployment that is new.
pub(crate) fn replicas_before(sets: &[Arc<MachineSet>]) -> Option<i32> {
    let newest = sets.iter().max_by_key(|set| revision(set))?;
    let noted = newest.metadata.annotation(annotations::DESIRED_REPLICAS);
    let noted = noted.and_then(|text| text.parse().ok());
    noted.or_else(|| Some(sets.iter().filter_map(|set| set.spec.replicas).sum()))
}

fn own_annotations(deployment: &MachineDeployment) -> BTreeMap<String, String> {
    let skipped = [
        LAST_APPLIED,
        REVISION_HISTORY,
        annotations::REVISION,
        annotations::DESIRED_REPLICAS,
        annotations::MAX_REPLICAS,
        annotations::CONVERSION_DATA,
    ];
    let all = deployment.metadata.annotations.iter().flatten();
    all.filter(|(key, _)| !skipped.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn replica_annotations(deployment: &MachineDeployment, is_new: bool, into: &mut BTreeMap<String, String>) {
    let (surge, _) = settings::limits(deployment);
    let replicas = settings::replicas(deployment);
    let frozen = settings::strategy(deployment) == Strategy::OnDelete && !is_new;
    into.insert(annotations::DESIRED_REPLICAS.to_owned(), replicas.to_string());
    into.insert(annotations::MAX_REPLICAS.to_owned(), (replicas + surge).to_string());
    into.insert(annotations::DISABLE_MACHINE_CREATE.to_owned(), frozen.to_string());
}

fn set_finalizers(deployment: &MachineDeployment) -> Vec<String> {
    let mut all = vec![finalizers::MACHINE_SET.to_owned()];
    if deployment.metadata.label(labels::TOPOLOGY_OWNED).is_some() {
        all.push(finalizers::MACHINE_SET_TOPOLOGY.to_owned());
    }
    all
}

/// The set with the current template: `have`, or a new one with this suffix.
pub(crate) fn new_set(
    deployment: &MachineDeployment,
    have: Option<&MachineSet>,
    suffix: &str,
    replicas: i32,
    revision: i64,
) -> MachineSet {
    let template = &deployment.spec.template;
    let hash = have
        .and_then(|set| set.metadata.label(labels::MACHINE_TEMPLATE_HASH).map(str::to_owned))
        .unwrap_or_else(|| format!("{}-{suffix}", templates::hash(template)));
    let set_name = have.map_or_else(
        || windlass_meta::generate_name(&format!("{}-", deployment.metadata.name()), suffix),
        |set| set.metadata.name().to_owned(),
    );
    let mut machine_labels = settings::template_labels(deployment);
    machine_labels.insert(labels::MACHINE_TEMPLATE_HASH.to_owned(), hash.clone());
    let mut set_labels = machine_labels.clone();
    let deployment_name = label_or_hash(deployment.metadata.name());
    set_labels.insert(labels::MACHINE_DEPLOYMENT_NAME.to_owned(), deployment_name);
    let mut notes = own_annotations(deployment);
    replica_annotations(deployment, true, &mut notes);
    notes.insert(annotations::REVISION.to_owned(), revision.to_string());
    let history = have.and_then(|set| revision_history(set, revision));
    notes.extend(history.map(|history| (REVISION_HISTORY.to_owned(), history)));
    let mut selector = settings::selector(deployment);
    selector
        .match_labels
        .get_or_insert_default()
        .insert(labels::MACHINE_TEMPLATE_HASH.to_owned(), hash);
    let template_notes = template.metadata.as_ref().map(|meta| meta.annotations.clone());
    MachineSet {
        metadata: Meta {
            name: Some(set_name),
            namespace: deployment.metadata.namespace.clone(),
            uid: have.and_then(|set| set.metadata.uid.clone()),
            labels: Some(set_labels),
            annotations: Some(notes),
            finalizers: Some(set_finalizers(deployment)),
            owner_references: Some(vec![owner_reference("MachineDeployment", &deployment.metadata, true)]),
            ..Meta::default()
        },
        spec: MachineSetSpec {
            cluster_name: deployment.spec.cluster_name.clone(),
            replicas: Some(replicas),
            selector: have.map_or(selector, |set| set.spec.selector.clone()),
            deletion: deletion(deployment),
            machine_naming: deployment.spec.machine_naming.clone(),
            template: MachineTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: machine_labels,
                    annotations: template_notes.unwrap_or_default(),
                }),
                spec: with_version(template),
            },
        },
        status: None,
    }
}

fn with_version(template: &MachineTemplateSpec) -> windlass_api::core::MachineSpec {
    let mut spec = template.spec.clone();
    spec.version = spec.version.as_deref().map(templates::with_v);
    spec
}

fn deletion(deployment: &MachineDeployment) -> Option<MachineSetDeletionSpec> {
    let order = deployment.spec.deletion.as_ref()?.order.clone();
    order.is_some().then_some(MachineSetDeletionSpec { order })
}

/// A set with an old template: its own, but for the replicas and what changes in place. Its Machines may live for long, under OnDelete or
/// while a rollout is stuck.
pub(crate) fn old_set(deployment: &MachineDeployment, have: &MachineSet, replicas: i32) -> MachineSet {
    let mut notes = own_annotations(deployment);
    let kept = have.metadata.annotations.iter().flatten();
    notes.extend(
        kept.filter(|(key, _)| [annotations::REVISION, REVISION_HISTORY].contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    replica_annotations(deployment, false, &mut notes);
    let template = &deployment.spec.template;
    let mut machine_labels = settings::template_labels(deployment);
    // The labels that tell the Machines of this set from others.
    let selected = have.spec.selector.match_labels.iter().flatten();
    machine_labels.extend(selected.map(|(key, value)| (key.clone(), value.clone())));
    let mut set_labels = machine_labels.clone();
    let hash = have.metadata.label(labels::MACHINE_TEMPLATE_HASH);
    set_labels.extend(hash.map(|hash| (labels::MACHINE_TEMPLATE_HASH.to_owned(), hash.to_owned())));
    let deployment_name = label_or_hash(deployment.metadata.name());
    set_labels.insert(labels::MACHINE_DEPLOYMENT_NAME.to_owned(), deployment_name);
    let mut spec = have.spec.clone();
    spec.replicas = Some(replicas);
    spec.deletion = deletion(deployment);
    spec.machine_naming.clone_from(&deployment.spec.machine_naming);
    spec.template.metadata = Some(ObjectMeta {
        labels: machine_labels,
        annotations: template
            .metadata
            .as_ref()
            .map(|meta| meta.annotations.clone())
            .unwrap_or_default(),
    });
    let machine = &mut spec.template.spec;
    machine.deletion.clone_from(&template.spec.deletion);
    machine.readiness_gates.clone_from(&template.spec.readiness_gates);
    machine.min_ready_seconds = template.spec.min_ready_seconds;
    machine.taints.clone_from(&template.spec.taints);
    MachineSet {
        metadata: Meta {
            name: have.metadata.name.clone(),
            namespace: have.metadata.namespace.clone(),
            uid: have.metadata.uid.clone(),
            labels: Some(set_labels),
            annotations: Some(notes),
            finalizers: Some(set_finalizers(deployment)),
            owner_references: Some(vec![owner_reference("MachineDeployment", &deployment.metadata, true)]),
            ..Meta::default()
        },
        spec,
        status: None,
    }
}
