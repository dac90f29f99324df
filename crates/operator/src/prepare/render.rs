//! From files to a release. Pure but for the keys of certificates.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use windlass_api_operator::{Declared, labels, reasons as known};
use windlass_controller_runtime::Timestamp;
use windlass_provider_components::assemble::{self, assemble};
use windlass_provider_components::envsubst::{RenderError, Template};
use windlass_provider_components::{customize, images, manifest, patch};

use super::problem;
use crate::certificates::{self, Office};
use crate::inventory;
use crate::kept::{Packer, Release, Sealed, State};
use crate::names::{RELEASE, reasons};
use crate::objects::{ObjectRef, own_groups};
use crate::ports::Operator;
use crate::provider::blocked::{Blocked, Stage};
use crate::provider::desired::{DesiredRelease, Occasion};
use crate::provider::facts::{Facts, Fetched, Recipe};

/// Everything that a release is rendered from.
pub(super) struct Input<'a> {
    pub(super) operator: &'a Operator,
    pub(super) facts: &'a Facts,
    pub(super) declared: &'a Declared,
    pub(super) desired: &'a DesiredRelease,
    pub(super) fetched: &'a Fetched,
    pub(super) recipe: &'a Recipe,
    pub(super) cert_manager: bool,
    /// Secrets of this provider that are stored, by name.
    pub(super) live: BTreeMap<String, Secret>,
    pub(super) now: Timestamp,
}

/// Renders a release.
pub(super) fn render(input: &Input<'_>) -> Result<Sealed, Blocked> {
    let declared = input.declared;
    let mut notes = Vec::new();
    let mut objects = parse(
        input,
        &substitute(input, &input.fetched.files.components)?,
        &input.fetched.files.from,
    )?;
    if let Some(text) = &input.recipe.additional {
        objects.extend(parse(input, &substitute(input, text)?, "the additional manifests")?);
    }
    let label = declared.type_.label(&declared.key.name);
    images::override_images(&mut objects, &label, &input.operator.0.overrides)
        .map_err(|error| problem(declared, known::COMPONENTS_IMAGE_OVERRIDE_ERROR, error.to_string()))?;
    let assembled = assemble(assemble::Input {
        type_: declared.type_,
        name: &declared.key.name,
        namespace: Some(&declared.key.namespace),
        objects,
    })
    .map_err(|error| {
        problem(
            declared,
            known::COMPONENTS_FETCH_ERROR,
            format!("{}: {error}", input.fetched.files.from),
        )
    })?;
    notes.extend(assembled.notes);
    let mut objects = assembled.objects;
    let told = customize::customize(&mut objects, declared)
        .map_err(|error| problem(declared, known::COMPONENTS_CUSTOMIZATION_ERROR, error.to_string()))?;
    notes.extend(told.iter().map(ToString::to_string));
    let told = patch::apply(&mut objects, &declared.patches)
        .map_err(|error| problem(declared, known::COMPONENTS_PATCH_ERROR, error.to_string()))?;
    notes.extend(told.iter().map(ToString::to_string));
    let (mut renew, mut asked) = (None, Vec::new());
    if !input.cert_manager {
        let office = Office {
            label: &label,
            namespace: &declared.key.namespace,
            keys: &input.operator.0.keys,
            live: &input.live,
            now: input.now,
        };
        asked = certificates::asked(&objects);
        let issued = office.stand_in(&mut objects);
        renew = issued
            .map_err(|error| problem(declared, known::COMPONENTS_CUSTOMIZATION_ERROR, error))?
            .again;
    }
    let own = |object: &Value| {
        !(object["kind"] == "Namespace" && object["metadata"]["name"] == declared.key.namespace.as_str())
    };
    objects.retain(own);
    let entry = inventory::entry(
        declared.type_,
        &declared.key.name,
        &declared.key.namespace,
        &input.fetched.version,
    );
    objects.push(entry);
    let mut release = release(input, renew);
    release.asked = asked;
    release.notes = notes;
    seal(release, objects, &label, input.cert_manager)
        .map_err(|error| problem(declared, known::COMPONENTS_FETCH_ERROR, error.to_string()))
}

/// Packs objects in the order of installation.
pub(crate) fn seal(
    mut release: Release,
    mut objects: Vec<Value>,
    label: &str,
    cert_manager: bool,
) -> std::io::Result<Sealed> {
    let id = release.id();
    for object in &mut objects {
        settle(object, label, &id, cert_manager);
    }
    let refs: Vec<_> = objects.iter().map(ObjectRef::of).collect();
    let own = own_groups(&refs);
    objects.sort_by_key(|object| ObjectRef::of(object).rank(&own));
    let mut packer = Packer::default();
    for object in objects {
        packer.add(&object)?;
    }
    let (packed, index) = packer.finish()?;
    release.index = index;
    Ok(Sealed { release, packed })
}

fn release(input: &Input<'_>, renew: Option<Timestamp>) -> Release {
    let facts = input.facts;
    let before = facts.current();
    Release {
        version: input.fetched.version.clone(),
        contract: input.fetched.contract.clone(),
        hash: facts.hash.clone(),
        manager: facts.manager.clone(),
        owner: facts.me.uid.clone(),
        made: input.now,
        replicas: before
            .filter(|_| input.desired.paused)
            .map(|current| current.replicas.clone())
            .unwrap_or_default(),
        paused: input.desired.paused,
        leftovers: Vec::new(),
        failure: None,
        content: input.recipe.content.clone(),
        left: Vec::new(),
        renew,
        renewals: 0,
        asked: Vec::new(),
        migrated: false,
        replaces: matches!(input.desired.occasion, Occasion::Upgrade { .. } | Occasion::Change),
        notes: Vec::new(),
        components: String::new(),
        parts: 0,
        state: State::Next,
        secrets: Vec::new(),
        index: Vec::new(),
    }
}

/// The text with the values of variables: those of the Secret, else of the operator's environment, else defaults.
fn substitute(input: &Input<'_>, text: &str) -> Result<String, Blocked> {
    let syntax = |error: String| {
        problem(
            input.declared,
            known::COMPONENTS_FETCH_ERROR,
            format!("{}: {error}", input.fetched.files.from),
        )
    };
    let template = Template::parse(text).map_err(|error| syntax(error.to_string()))?;
    let lookup = |name: &str| {
        let environment = &input.operator.0.environment;
        input
            .fetched
            .variables
            .get(name)
            .or_else(|| environment.get(name))
            .cloned()
    };
    template.render(lookup).map_err(|error| match error {
        RenderError::Missing { names } => {
            let place = match &input.declared.config_secret {
                Some(key) => format!("add them to Secret {key}"),
                None => "create a Secret with them and name it in the declaration".to_owned(),
            };
            let message = format!(
                "the components need variables without a value: {}; {place}",
                names.join(", ")
            );
            Blocked::new(Stage::Install, reasons::VARIABLES_MISSING, message)
        }
        other => syntax(other.to_string()),
    })
}

fn parse(input: &Input<'_>, text: &str, from: &str) -> Result<Vec<Value>, Blocked> {
    manifest::parse(text).map_err(|error| {
        problem(
            input.declared,
            known::COMPONENTS_FETCH_ERROR,
            format!("{from}: {error}"),
        )
    })
}

/// Leaves out and adds fields so that no other field manager fights over an object that is applied again and again.
fn settle(object: &mut Value, label: &str, release: &str, cert_manager: bool) {
    let of = ObjectRef::of(object);
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let meta = &mut object["metadata"];
    for (key, value) in [(labels::CLUSTERCTL, ""), (labels::PROVIDER, label)] {
        meta["labels"][key] = json!(value);
    }
    if of.is_workload() {
        meta["annotations"][RELEASE] = json!(release);
    }
    let injected = meta["annotations"]
        .as_object()
        .is_some_and(|notes| notes.contains_key("cert-manager.io/inject-ca-from"));
    match of.kind.as_str() {
        // The server owns the rules of aggregated roles.
        "ClusterRole" if object["aggregationRule"].is_object() => {
            if let Some(fields) = object.as_object_mut() {
                fields.remove("rules");
            }
        }
        "Secret" => encode(object),
        _ => {}
    }
    if injected && cert_manager {
        drop_bundles(object);
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
}

/// A Secret's texts as the server stores them.
fn encode(secret: &mut Value) {
    let Some(texts) = secret.as_object_mut().and_then(|fields| fields.remove("stringData")) else {
        return;
    };
    for (key, text) in texts.as_object().into_iter().flatten() {
        secret["data"][key] = json!(STANDARD.encode(text.as_str().unwrap_or_default()));
    }
}

/// cert-manager owns what it injects.
fn drop_bundles(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("caBundle");
            fields.values_mut().for_each(drop_bundles);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_bundles),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
