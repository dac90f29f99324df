//! Declarations of providers that are built in: they are satisfied as they are, or refused. Nothing is installed for them, and nothing of
//! theirs is deleted, but for what the operator installed when the provider was not built in: its webhooks would refuse every write, as
//! nothing answers them, and its workloads would reconcile the same objects once more.

use windlass_api::kind::ApiKind as _;
use windlass_api_operator::{
    AdditionalDeployment, Api, BuiltIn, Declared, DeploymentSettings, Fetch, Patches, Settings,
};
use windlass_api_operator::{inventory, labels};
use windlass_controller_runtime::{EventType, Note};

use super::{Action, Intent, Plan};
use crate::names::reasons;
use crate::objects::ObjectRef;
use crate::provider::blocked::{Blocked, Stage};
use crate::provider::facts::Facts;

/// Whether the declaration is satisfied.
pub(super) fn intent(facts: &Facts, built_in: &BuiltIn) -> Result<Intent, Blocked> {
    let refused = |message: String| Err(Blocked::new(Stage::Preflight, reasons::BUILT_IN_DIFFERENTLY, message));
    let declared = facts.declared.as_ref().ok();
    let version = declared.and_then(|declared| declared.version.as_deref());
    if let Some((field, why)) = built_in.refuses(&facts.me.key.name, version) {
        return refused(format!("{field}: {why}"));
    }
    if declared.is_some_and(|declared| declared.paused) {
        let message = "spec.paused: Windlass has this provider built in, with no Deployment that could be paused; set it to false, and \
                       pause Clusters by their own spec.paused, or stop Windlass";
        return refused(message.to_owned());
    }
    Ok(Intent::BuiltIn)
}

/// What to do about a declaration of a built-in provider.
pub(super) fn plan(facts: &Facts, blocked: Option<Blocked>) -> Plan {
    let mut plan = Plan {
        blocked,
        ..Plan::default()
    };
    retire(facts, &mut plan);
    if let Some(note) = facts.declared.as_ref().ok().and_then(without_effect) {
        plan.notes.push(Note::new(note));
    }
    plan
}

/// What to do about a declaration that goes and has nothing installed.
pub(super) fn released(facts: &Facts) -> Plan {
    let mut plan = Plan::default();
    if facts.built_in().is_some() {
        retire(facts, &mut plan);
    }
    plan.actions.push(Action::Forget);
    plan
}

/// Takes what the operator installed before out of the way. What is of another declaration stays.
fn retire(facts: &Facts, plan: &mut Plan) {
    let Ok(kept) = &facts.kept else { return };
    if facts.rival().is_some() {
        return;
    }
    let installed = kept
        .releases()
        .flat_map(|release| release.index.iter().chain(&release.leftovers));
    let mut objects: Vec<ObjectRef> = installed.filter(|object| is_in_the_way(object)).cloned().collect();
    objects.sort();
    objects.dedup_by_key(|object| object.identity());
    let Some(version) = kept.releases().next().map(|release| release.version.as_str()) else {
        if !(kept.strange.is_empty() && kept.spare.is_empty()) {
            plan.actions.push(Action::Sweep);
        }
        return;
    };
    let names: Vec<String> = objects.iter().map(ToString::to_string).collect();
    let message = format!(
        "version {version} was installed, and this provider is built in now: deleted what would stand in its way: {}; all other objects \
         of it stay, with the label {}={}. Never delete the CustomResourceDefinitions among them: all objects of their kinds go with them",
        names.join(", "),
        labels::PROVIDER,
        facts.type_().label(&facts.me.key.name)
    );
    plan.actions.push(Action::Retire { objects });
    let note = Note::event(EventType::Normal, reasons::REPLACED_BY_BUILT_IN, message);
    plan.notes.push(note);
}

/// Whether an object of a release disturbs the built-in provider: what calls a server that no longer runs, what runs the same
/// controllers, and what says that another version is installed.
fn is_in_the_way(object: &ObjectRef) -> bool {
    let is_webhook = object.group() == "admissionregistration.k8s.io";
    let is_entry = object.api_version == inventory::Provider::API_VERSION;
    is_webhook || is_entry || object.is_workload()
}

/// Fields of the specification that say how to install a provider, and have no effect where nothing is installed.
fn without_effect(declared: &Declared) -> Option<String> {
    let is_v1alpha1 = declared.api == Api::V1Alpha1;
    let fields = [
        ("fetchConfig", declared.fetch != Fetch::Default),
        ("secretName", is_v1alpha1 && declared.config_secret.is_some()),
        ("configSecret", !is_v1alpha1 && declared.config_secret.is_some()),
        ("manager", declared.manager != Settings::default()),
        ("deployment", declared.deployment != DeploymentSettings::default()),
        (
            "additionalDeployments",
            declared
                .additional
                .values()
                .any(|one| *one != AdditionalDeployment::default()),
        ),
        ("additionalManifests", declared.manifests.is_some()),
        ("patches", matches!(declared.patches, Patches::Targeted(_))),
        ("manifestPatches", matches!(declared.patches, Patches::Merge(_))),
    ];
    let set: Vec<String> = fields
        .iter()
        .filter(|(_, is_set)| *is_set)
        .map(|(field, _)| format!("spec.{field}"))
        .collect();
    (!set.is_empty()).then(|| {
        format!(
            "no effect have {}: the options of the Windlass process take their place",
            set.join(", ")
        )
    })
}

/// Why a provider cannot be installed that has objects of a built-in one.
pub(super) fn shared(built_in: &BuiltIn, shared: &ObjectRef) -> Blocked {
    let message = format!(
        "{shared} belongs to the {} {}, which Windlass has built in: the two have the same components, and nothing is installed in the \
         place of what is built in; delete this declaration, or declare the provider as {}",
        built_in.type_, built_in.name, built_in.name
    );
    Blocked::new(Stage::Preflight, reasons::COMPONENTS_SHARED, message)
}
