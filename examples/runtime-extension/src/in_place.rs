//! CanUpdateMachineSet, CanUpdateMachine and UpdateMachine: Machines with an annotation are updated, not replaced.
//!
//! The example says that it can make every change, and makes none: an extension for real machines talks to them in [`update`].

use serde_json::{Value, json};
use windlass_runtime_extension::hooks::in_place::{
    CanUpdateMachine, CanUpdateMachineRequest, CanUpdateMachineResponse, CanUpdateMachineSet,
    CanUpdateMachineSetRequest, CanUpdateMachineSetResponse, Patch, UpdateMachine, UpdateMachineRequest,
    UpdateMachineResponse,
};
use windlass_runtime_extension::hooks::topology::JSON_MERGE_PATCH;
use windlass_runtime_extension::hooks::{ByteString, Response as _};
use windlass_runtime_extension::{BadHandler, Extension};

use crate::IN_PLACE;

pub(super) fn add(extension: Extension) -> Result<Extension, BadHandler> {
    extension
        .handle(CanUpdateMachineSet, "can-update-set", |request| async move {
            can_update_set(&request)
        })?
        .handle(
            CanUpdateMachine,
            "can-update",
            |request| async move { can_update(&request) },
        )?
        .handle(UpdateMachine, "update", |request| async move { update(&request) })
}

/// A merge patch that sets one field to what is wanted.
fn patch(field: &[&str], wanted: Value) -> Option<Patch> {
    let whole = field.iter().rev().fold(wanted, |value, name| json!({ *name: value }));
    (!whole.is_null()).then(|| Patch {
        patch_type: JSON_MERGE_PATCH.to_owned(),
        patch: ByteString(whole.to_string().into_bytes()),
    })
}

/// The specification in a template, or of an object.
fn spec(object: &Value, field: &[&str]) -> Value {
    field.iter().fold(object, |value, name| &value[*name]).clone()
}

fn can_update_set(request: &CanUpdateMachineSetRequest) -> CanUpdateMachineSetResponse {
    const FIELD: &[&str] = &["spec", "template", "spec"];
    let wanted = &request.desired;
    let mut response = CanUpdateMachineSetResponse::success();
    let set = json!(wanted.machine_set);
    if set["spec"]["template"]["metadata"]["annotations"]
        .get(IN_PLACE)
        .is_none()
    {
        return response;
    }
    response.machine_set_patch = patch(FIELD, spec(&set, FIELD));
    response.infrastructure_machine_template_patch = patch(FIELD, spec(&wanted.infrastructure_machine_template, FIELD));
    response.bootstrap_config_template_patch = patch(FIELD, spec(&wanted.bootstrap_config_template, FIELD));
    response
}

fn can_update(request: &CanUpdateMachineRequest) -> CanUpdateMachineResponse {
    const FIELD: &[&str] = &["spec"];
    let wanted = &request.desired;
    let mut response = CanUpdateMachineResponse::success();
    let annotations = wanted.machine.metadata.annotations.as_ref();
    if !annotations.is_some_and(|all| all.contains_key(IN_PLACE)) {
        return response;
    }
    response.machine_patch = patch(FIELD, spec(&json!(wanted.machine), FIELD));
    response.infrastructure_machine_patch = patch(FIELD, spec(&wanted.infrastructure_machine, FIELD));
    response.bootstrap_config_patch = patch(FIELD, spec(&wanted.bootstrap_config, FIELD));
    response
}

/// Called again until it answers with success and without a time: an extension for real machines begins the change, and looks whether it is done.
fn update(request: &UpdateMachineRequest) -> UpdateMachineResponse {
    let machine = &request.desired.machine.metadata;
    tracing::info!(namespace = ?machine.namespace, name = ?machine.name, "a Machine would be updated now");
    UpdateMachineResponse::success()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_machines_with_the_annotation_are_updated() {
        let mut request = CanUpdateMachineRequest::default();
        request.desired.infrastructure_machine = json!({"spec": {"size": "large"}});
        assert_eq!(can_update(&request), CanUpdateMachineResponse::success());
        let annotations = request.desired.machine.metadata.annotations.get_or_insert_default();
        annotations.insert(IN_PLACE.to_owned(), String::new());
        let response = can_update(&request);
        let given = response.infrastructure_machine_patch.unwrap();
        let given: Value = serde_json::from_slice(&given.patch.0).unwrap();
        assert_eq!(given, json!({"spec": {"size": "large"}}));
        assert!(response.machine_patch.is_some());

        let mut request = CanUpdateMachineSetRequest::default();
        request.desired.infrastructure_machine_template = json!({"spec": {"template": {"spec": {"size": "large"}}}});
        assert_eq!(can_update_set(&request), CanUpdateMachineSetResponse::success());
        let set = json!({"spec": {"template": {"metadata": {"annotations": {IN_PLACE: ""}}}}});
        let mut whole = json!(request.desired.machine_set);
        whole["spec"]["template"]["metadata"] = set["spec"]["template"]["metadata"].clone();
        request.desired.machine_set = serde_json::from_value(whole).unwrap();
        let given = can_update_set(&request).infrastructure_machine_template_patch.unwrap();
        let given: Value = serde_json::from_slice(&given.patch.0).unwrap();
        assert_eq!(given, json!({"spec": {"template": {"spec": {"size": "large"}}}}));
    }
}
