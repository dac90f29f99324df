//! Updates in place: the hook UpdateMachine of the Runtime SDK. The owner of the Machine has written the new specs, and has marked the Machine, its
//! infrastructure machine and its bootstrap configuration. The Machine's controller calls the one extension that makes the changes until it has
//! made them, and takes the marks away.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use windlass_api::annotations::{PENDING_HOOKS, UPDATE_IN_PROGRESS};
use windlass_api::core::Machine;
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{Dynamic, Seen};
use windlass_runtime_client::{About, Extensions};
use windlass_runtime_hooks::Message as _;
use windlass_runtime_hooks::in_place::{MachineObjects, UpdateMachine, UpdateMachineRequest};

use super::observe::Observed;

/// The name of the hook in the annotation of pending hooks.
const HOOK: &str = "UpdateMachine";

/// A fact that the plan asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Whether the extension has made the changes.
    Update,
}

/// What the extension says of the changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// It has made them.
    Done,
    /// Not yet: ask again in so many seconds.
    Running(i32, String),
    /// It has failed, or cannot be asked.
    Failed(String),
}

/// Whether the owner has marked the Machine.
pub(crate) fn is_marked(machine: &Machine) -> bool {
    machine.metadata.annotation(UPDATE_IN_PROGRESS).is_some()
}

/// Whether the extension is to be called.
pub(crate) fn is_pending(machine: &Machine) -> bool {
    pending(machine).any(|hook| hook == HOOK)
}

/// Whether an update is under way: it begins and ends with one of the two marks alone.
pub(crate) fn is_under_way(machine: &Machine) -> bool {
    is_marked(machine) || is_pending(machine)
}

fn pending(machine: &Machine) -> impl Iterator<Item = &str> {
    let hooks = machine.metadata.annotation(PENDING_HOOKS).unwrap_or_default();
    hooks.split(',').filter(|hook| !hook.is_empty())
}

/// The annotation of pending hooks without this one; null when none is left.
pub(super) fn without_hook(machine: &Machine) -> Value {
    let left: Vec<&str> = pending(machine).filter(|hook| *hook != HOOK).collect();
    if left.is_empty() {
        Value::Null
    } else {
        json!(left.join(","))
    }
}

/// Asks the extension.
pub(super) async fn ask(extensions: &Extensions, mut seen: Observed) -> Observed {
    seen.update = Some(answer(extensions, &seen).await.unwrap_or_else(Update::Failed));
    seen
}

async fn answer(extensions: &Extensions, seen: &Observed) -> Result<Update, String> {
    let machine = &seen.machine;
    let namespace = machine.metadata.namespace();
    let handlers = extensions.handlers::<UpdateMachine>(namespace).await;
    let handlers = handlers.map_err(|error| error.to_string())?;
    match handlers.as_slice() {
        [_] => {}
        [] => return Err("no extensions registered for UpdateMachine hook".to_owned()),
        many => {
            let names: Vec<&str> = many.iter().map(windlass_runtime_client::Handler::name).collect();
            let names = names.join(",");
            return Err(format!(
                "found multiple UpdateMachine hooks ({names}): only one hook is supported"
            ));
        }
    }
    let request = UpdateMachineRequest {
        settings: BTreeMap::new(),
        desired: MachineObjects {
            machine: shown(machine),
            infrastructure_machine: seen
                .infrastructure
                .found()
                .map_or(Value::Null, |object| spec_of(object)),
            bootstrap_config: (seen.bootstrap.as_ref())
                .and_then(Seen::found)
                .map_or(Value::Null, |object| spec_of(object)),
        },
    };
    let mut hasher = DefaultHasher::new();
    request.encode().map_err(|error| error.to_string())?.hash(&mut hasher);
    let about = About {
        uid: machine.metadata.uid().to_owned(),
        version: hasher.finish(),
    };
    let answer = extensions.call_all::<UpdateMachine>(&handlers, &about, &request).await;
    let answer = answer.map_err(|error| error.to_string())?;
    Ok(if answer.retry_after_seconds != 0 {
        Update::Running(answer.retry_after_seconds, answer.message)
    } else {
        Update::Done
    })
}

/// The Machine as the extension sees it.
fn shown(machine: &Machine) -> Machine {
    let metadata = &machine.metadata;
    Machine {
        metadata: ObjectMeta {
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            labels: metadata.labels.clone(),
            annotations: metadata.annotations.clone(),
            ..ObjectMeta::default()
        },
        spec: machine.spec.clone(),
        status: None,
    }
}

/// An object of a provider as the extension sees it.
fn spec_of(object: &Dynamic) -> Value {
    let metadata = object.metadata();
    json!({
        "apiVersion": object.api_version(),
        "kind": object.kind(),
        "metadata": {
            "name": metadata.name, "namespace": metadata.namespace,
            "labels": metadata.labels, "annotations": metadata.annotations,
        },
        "spec": object.value()["spec"],
    })
}
