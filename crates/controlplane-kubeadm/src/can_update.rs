//! Asks the extension whether it can update a Machine in place (the hook CanUpdateMachine of the Runtime SDK).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use windlass_api::codec::Stored as _;
use windlass_api::core::v1beta2::Machine;
use windlass_controller_runtime::{Cx, ErrorKind};
use windlass_runtime_client::in_place::{self, InPlace, NO_EXTENSION, left_of_machine};
use windlass_runtime_client::{About, Extensions};
use windlass_runtime_hooks::Message as _;
use windlass_runtime_hooks::in_place::{
    CanUpdateMachine, CanUpdateMachineRequest, CanUpdateMachineResponse, MachineObjects,
};

use crate::desired;
use crate::facts::{CpMachine, Facts};
use crate::names::MANAGER;
use crate::plan::in_place::other_kind;
use crate::up_to_date::joining;

/// The part of an object that an extension can change.
const PART: &str = "/spec";

/// Whether a Machine can be updated in place.
pub(crate) async fn ask(cx: &Cx, extensions: &Extensions, facts: &Facts, object: &Machine) -> InPlace {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    match facts.machines.iter().find(|machine| machine.name == name) {
        Some(machine) => {
            let answer = answer(cx, extensions, facts, machine, object).await;
            answer.unwrap_or_else(InPlace::Unknown)
        }
        None => InPlace::Unknown(format!("Machine {name} is gone")),
    }
}

async fn answer(
    cx: &Cx,
    extensions: &Extensions,
    facts: &Facts,
    machine: &CpMachine,
    object: &Machine,
) -> Result<InPlace, String> {
    let handlers = extensions
        .handlers::<CanUpdateMachine>(&facts.control_plane.namespace)
        .await;
    let handlers = handlers.map_err(|error| error.to_string())?;
    if handlers.is_empty() {
        return Ok(InPlace::Impossible(NO_EXTENSION.to_owned()));
    }
    let (Some(have_infra), Some(have_config)) = (machine.infra.found(), machine.config.found()) else {
        let unread = machine.infra.failure().or(machine.config.failure());
        return Err(unread.unwrap_or("what it refers to does not exist").to_owned());
    };
    let wanted = desired::infra_machine(facts, &machine.name)?;
    if let Some(why) = other_kind(&wanted, machine) {
        return Ok(InPlace::Impossible(why));
    }
    // Both with what webhooks and other managers add: a new default is no difference.
    let (current, desired) = match (
        tried(cx, have_infra, &wanted, &have_infra["spec"]).await?,
        tried(cx, have_infra, &wanted, &wanted["spec"]).await?,
    ) {
        (Ok(current), Ok(desired)) => (current, desired),
        // It would be refused later, too.
        (Err(why), _) | (_, Err(why)) => {
            let kind = machine.infra_kind();
            return Ok(InPlace::Impossible(format!("{kind} cannot be changed: {why}")));
        }
    };
    let request = request(facts, object, (&current, &desired), have_config);
    let mut hasher = DefaultHasher::new();
    request.encode().map_err(|error| error.to_string())?.hash(&mut hasher);
    let about = About {
        uid: machine.uid.clone(),
        version: hasher.finish(),
    };
    let (have, want) = (&request.current, &request.desired);
    let left = |answer: &CanUpdateMachineResponse| {
        let machine = (have.machine.to_json(), want.machine.to_json());
        let mut left = left_of_machine(&machine.0, answer.machine_patch.as_ref(), &machine.1, PART)?;
        let patch = answer.bootstrap_config_patch.as_ref();
        left.extend(in_place::left(
            &have.bootstrap_config,
            patch,
            &want.bootstrap_config,
            PART,
        )?);
        let patch = answer.infrastructure_machine_patch.as_ref();
        let (have, want) = (&have.infrastructure_machine, &want.infrastructure_machine);
        left.extend(in_place::left(have, patch, want, PART)?);
        Ok(left)
    };
    Ok(extensions
        .can::<CanUpdateMachine>(&handlers, &about, &request, left)
        .await)
}

/// An infrastructure machine with the wanted labels and annotations and with this specification, as the API server would store it; in the inner
/// result, why it refuses it.
async fn tried(cx: &Cx, have: &Value, wanted: &Value, spec: &Value) -> Result<Result<Value, String>, String> {
    let (metadata, wanted) = (&have["metadata"], &wanted["metadata"]);
    let object = json!({
        "apiVersion": have["apiVersion"],
        "kind": have["kind"],
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "labels": wanted["labels"], "annotations": wanted["annotations"],
        },
        "spec": spec,
    });
    match cx.writer().try_apply_value(MANAGER, &object).await {
        Ok(stored) => Ok(Ok(stored)),
        Err(error) if [ErrorKind::Invalid, ErrorKind::Forbidden].contains(&error.kind()) => {
            Ok(Err(error.message().to_owned()))
        }
        Err(error) => Err(error.message().to_owned()),
    }
}

/// What the extension is asked. Labels and annotations are those that are wanted on both sides: they go in place without it.
fn request(
    facts: &Facts,
    object: &Machine,
    (have_infra, want_infra): (&Value, &Value),
    have_config: &Value,
) -> CanUpdateMachineRequest {
    let machine = |version: &str| {
        let mut spec = object.spec.clone();
        spec.version = Some(version.to_owned());
        Machine {
            metadata: ObjectMeta {
                name: object.metadata.name.clone(),
                namespace: object.metadata.namespace.clone(),
                labels: object.metadata.labels.clone(),
                annotations: object.metadata.annotations.clone(),
                ..ObjectMeta::default()
            },
            spec,
            status: None,
        }
    };
    let shown = |object: &Value, spec: &Value, metadata: &Value| {
        json!({
            "apiVersion": object["apiVersion"],
            "kind": object["kind"],
            "metadata": {
                "name": object["metadata"]["name"],
                "namespace": object["metadata"]["namespace"],
                "labels": metadata["labels"],
                "annotations": metadata["annotations"],
            },
            "spec": spec,
        })
    };
    let (config, wanted) = joining(facts, &have_config["spec"]);
    let current = object.spec.version.clone().unwrap_or_default();
    let metadata = &want_infra["metadata"];
    let of_config = &have_config["metadata"];
    CanUpdateMachineRequest {
        current: MachineObjects {
            machine: machine(&current),
            infrastructure_machine: shown(have_infra, &have_infra["spec"], metadata),
            bootstrap_config: shown(have_config, &config, of_config),
        },
        desired: MachineObjects {
            machine: machine(&facts.control_plane.version),
            infrastructure_machine: shown(want_infra, &want_infra["spec"], metadata),
            bootstrap_config: shown(have_config, &wanted, of_config),
        },
        ..CanUpdateMachineRequest::default()
    }
}
