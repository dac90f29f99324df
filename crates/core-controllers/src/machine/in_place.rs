//! Updates in place: the hook UpdateMachine of the Runtime SDK. The owner of the Machine has written the new specs, and has marked the Machine, its
//! infrastructure machine and its bootstrap configuration. The Machine's controller calls the one extension that makes the changes until it has
//! made them, and takes the marks away.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;
use windlass_api::core::Machine;
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::Seen;
use windlass_runtime_client::{About, Extensions};
use windlass_runtime_hooks::Message as _;
use windlass_runtime_hooks::in_place::{MachineObjects, UpdateMachine, UpdateMachineRequest};

use super::observe::Observed;
use crate::shared::in_place;

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

/// Asks the extension.
pub(super) async fn ask(extensions: &Extensions, mut seen: Observed) -> Observed {
    seen.update = Some(answer(extensions, &seen).await.unwrap_or_else(Update::Failed));
    seen
}

async fn answer(extensions: &Extensions, seen: &Observed) -> Result<Update, String> {
    let machine = &seen.machine;
    let namespace = machine.metadata.namespace();
    let request = UpdateMachineRequest {
        settings: BTreeMap::new(),
        desired: MachineObjects {
            machine: Machine {
                metadata: in_place::shown(&machine.metadata),
                spec: machine.spec.clone(),
                status: None,
            },
            infrastructure_machine: seen
                .infrastructure
                .found()
                .map_or(Value::Null, |object| in_place::shown_object(object)),
            bootstrap_config: (seen.bootstrap.as_ref())
                .and_then(Seen::found)
                .map_or(Value::Null, |object| in_place::shown_object(object)),
        },
    };
    let mut hasher = DefaultHasher::new();
    request.encode().map_err(|error| error.to_string())?.hash(&mut hasher);
    let about = About {
        uid: machine.metadata.uid().to_owned(),
        version: hasher.finish(),
    };
    let answer = extensions.call_only::<UpdateMachine>(namespace, &about, &request).await;
    let answer = answer.map_err(|error| error.to_string())?;
    let answer = answer.ok_or("no extensions registered for UpdateMachine hook")?;
    Ok(if answer.retry_after_seconds != 0 {
        Update::Running(answer.retry_after_seconds, answer.message)
    } else {
        Update::Done
    })
}
