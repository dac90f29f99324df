//! Asks the extension whether it can update a Machine in place (the hook CanUpdateMachine of the Runtime SDK).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use windlass_api::codec::Stored as _;
use windlass_api::core::v1beta2::Machine;
use windlass_controller_runtime::{Cx, ErrorKind};
use windlass_runtime_client::{About, CAPABILITY_COUNTS_FOR, Extensions, in_place as promises};
use windlass_runtime_hooks::Message as _;
use windlass_runtime_hooks::in_place::{CanUpdateMachine, CanUpdateMachineRequest, MachineObjects};

use crate::desired;
use crate::facts::{CpMachine, Facts, InPlace};
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
    let namespace = facts.control_plane.namespace.as_str();
    let none = || InPlace::Impossible("no extension updates Machines in place".to_owned());
    let handlers = extensions.handlers::<CanUpdateMachine>(namespace).await;
    if handlers.map_err(|error| error.to_string())?.is_empty() {
        return Ok(none());
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
        tried(cx, have_infra, &have_infra["spec"]).await?,
        tried(cx, have_infra, &wanted["spec"]).await?,
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
    let keep = CAPABILITY_COUNTS_FOR;
    let answer = extensions
        .call_only::<CanUpdateMachine>(namespace, &about, &request, keep)
        .await;
    let Some(answer) = answer.map_err(|error| error.to_string())? else {
        return Ok(none());
    };
    let (have, want) = (&request.current, &request.desired);
    let machine = promises::patched(&have.machine.to_json(), answer.machine_patch.as_ref(), PART)?;
    let infra = promises::patched(
        &have.infrastructure_machine,
        answer.infrastructure_machine_patch.as_ref(),
        PART,
    )?;
    let config = promises::patched(&have.bootstrap_config, answer.bootstrap_config_patch.as_ref(), PART)?;
    let left: Vec<String> = [
        // The rest of a Machine goes in place without an extension.
        (&compared(&machine), &compared(&want.machine.to_json()), "Machine"),
        (&config, &want.bootstrap_config, "KubeadmConfig"),
        (
            &infra,
            &want.infrastructure_machine,
            infra["kind"].as_str().unwrap_or_default(),
        ),
    ]
    .into_iter()
    .flat_map(|(have, want, kind)| {
        let paths = promises::differences(have, want, PART).into_iter();
        paths.map(move |path| format!("{path} of {kind}"))
    })
    .collect();
    Ok(if left.is_empty() {
        InPlace::Possible
    } else {
        InPlace::Impossible(format!("the extension does not change {}", left.join(", ")))
    })
}

/// An infrastructure machine with this specification, as the API server would store it; in the inner result, why it refuses it.
async fn tried(cx: &Cx, have: &Value, spec: &Value) -> Result<Result<Value, String>, String> {
    let metadata = &have["metadata"];
    let object = json!({
        "apiVersion": have["apiVersion"],
        "kind": have["kind"],
        "metadata": { "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"] },
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

fn compared(machine: &Value) -> Value {
    let text = |field: &str| machine["spec"][field].as_str().unwrap_or_default().to_owned();
    json!({ "spec": { "version": text("version"), "failureDomain": text("failureDomain") } })
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
