//! Templates of ClusterClasses: the variable `motd` becomes the file `/etc/motd` of all Machines, and a quota limits the replicas of workers.
//!
//! A class names the handlers in `spec.patches[].external`. The file is written for the kubeadm kinds; templates of other kinds stay as they are.

use serde_json::{Value, json};
use windlass_runtime_extension::hooks::topology::{
    DiscoverVariables, DiscoverVariablesResponse, GeneratePatches, GeneratePatchesRequest, GeneratePatchesResponse,
    GeneratePatchesResponseItem, JSON_PATCH, ValidateTopology, ValidateTopologyRequest, ValidateTopologyResponse,
    Variable,
};
use windlass_runtime_extension::hooks::{ByteString, Response as _};
use windlass_runtime_extension::{BadHandler, Extension};

/// The variable with the text.
const MOTD: &str = "motd";
/// The key of the settings with the number of workers that a Cluster may have.
const MOST_WORKERS: &str = "mostWorkers";

pub(super) fn add(extension: Extension) -> Result<Extension, BadHandler> {
    extension
        .handle(DiscoverVariables, "motd-variables", |_| async move { variables() })?
        .handle(GeneratePatches, "motd", |request| async move { patches(&request) })?
        .handle(ValidateTopology, "quota", |request| async move { check(&request) })
}

fn variables() -> DiscoverVariablesResponse {
    let schema = json!({"type": "string", "maxLength": 1000, "default": "", "description": "The text of /etc/motd; none if it is empty."});
    let variable = json!({"name": MOTD, "required": false, "schema": {"openAPIV3Schema": schema}});
    match serde_json::from_value(variable) {
        Ok(variable) => {
            let mut response = DiscoverVariablesResponse::success();
            response.variables = vec![variable];
            response
        }
        Err(error) => DiscoverVariablesResponse::failure(error.to_string()),
    }
}

/// Where a template of a kind has files, if it is one of kubeadm's.
fn files(template: &Value) -> Option<&'static str> {
    match template["kind"].as_str()? {
        "KubeadmControlPlaneTemplate" => Some("/spec/template/spec/kubeadmConfigSpec/files"),
        "KubeadmConfigTemplate" => Some("/spec/template/spec/files"),
        _ => None,
    }
}

fn patches(request: &GeneratePatchesRequest) -> GeneratePatchesResponse {
    let mut response = GeneratePatchesResponse::success();
    for item in &request.items {
        // A value of the template's own has priority over that of the Cluster.
        let text = value(&item.variables, MOTD).or_else(|| value(&request.variables, MOTD));
        let Some(text) = text.and_then(Value::as_str).filter(|text| !text.is_empty()) else {
            continue;
        };
        let Some(path) = files(&item.object) else { continue };
        let file = json!({"path": "/etc/motd", "permissions": "0644", "content": text});
        let patch = if item.object.pointer(path).is_some_and(Value::is_array) {
            json!([{"op": "add", "path": format!("{path}/-"), "value": file}])
        } else {
            json!([{"op": "add", "path": path, "value": [file]}])
        };
        response.items.push(GeneratePatchesResponseItem {
            uid: item.uid.clone(),
            patch_type: JSON_PATCH.to_owned(),
            patch: ByteString(patch.to_string().into_bytes()),
        });
    }
    response
}

fn check(request: &ValidateTopologyRequest) -> ValidateTopologyResponse {
    let Some(setting) = request.settings.get(MOST_WORKERS) else {
        return ValidateTopologyResponse::success();
    };
    let Ok(most) = setting.parse::<u64>() else {
        return ValidateTopologyResponse::failure(format!("the setting {MOST_WORKERS} is no number: {setting:?}"));
    };
    // Each MachineDeployment has two templates: one of them counts.
    let machines = request
        .items
        .iter()
        .filter(|item| item.holder_reference.field_path == "spec.template.spec.infrastructureRef");
    let replicas = machines.filter_map(|item| {
        let builtin = value(&item.variables, "builtin")?;
        let worker = builtin
            .get("machineDeployment")
            .or_else(|| builtin.get("machinePool"))?;
        worker.get("replicas")?.as_u64()
    });
    let sum: u64 = replicas.fold(0, u64::saturating_add);
    if sum > most {
        return ValidateTopologyResponse::failure(format!("the workers have {sum} replicas, and {most} are allowed"));
    }
    ValidateTopologyResponse::success()
}

fn value<'a>(variables: &'a [Variable], name: &str) -> Option<&'a Value> {
    variables
        .iter()
        .find(|variable| variable.name == name)
        .map(|variable| &variable.value)
}

#[cfg(test)]
mod tests {
    use windlass_runtime_extension::hooks::Status;
    use windlass_runtime_extension::hooks::topology::{GeneratePatchesRequestItem, ValidateTopologyRequestItem};

    use super::*;

    fn motd(text: &str) -> Vec<Variable> {
        vec![Variable {
            name: MOTD.to_owned(),
            value: text.into(),
        }]
    }

    #[test]
    fn the_text_becomes_a_file_of_kubeadm_templates() {
        let item = |uid: &str, kind: &str, spec: Value, variables: Vec<Variable>| GeneratePatchesRequestItem {
            uid: uid.to_owned(),
            object: json!({"kind": kind, "spec": {"template": {"spec": spec}}}),
            variables,
            ..GeneratePatchesRequestItem::default()
        };
        let request = GeneratePatchesRequest {
            variables: motd("hello"),
            items: vec![
                item(
                    "a",
                    "KubeadmControlPlaneTemplate",
                    json!({"kubeadmConfigSpec": {}}),
                    Vec::new(),
                ),
                item("b", "KubeadmConfigTemplate", json!({"files": []}), motd("own")),
                item("c", "KubeadmConfigTemplate", json!({}), motd("")),
                item("d", "DevMachineTemplate", json!({}), Vec::new()),
            ],
            ..GeneratePatchesRequest::default()
        };
        let response = patches(&request);
        let given: Vec<(&str, Value)> = response
            .items
            .iter()
            .map(|item| (item.uid.as_str(), serde_json::from_slice(&item.patch.0).unwrap()))
            .collect();
        let file = |text: &str| json!({"path": "/etc/motd", "permissions": "0644", "content": text});
        let at = "/spec/template/spec";
        assert_eq!(
            given,
            [
                (
                    "a",
                    json!([{"op": "add", "path": format!("{at}/kubeadmConfigSpec/files"), "value": [file("hello")]}])
                ),
                (
                    "b",
                    json!([{"op": "add", "path": format!("{at}/files/-"), "value": file("own")}])
                ),
            ]
        );
        assert_eq!(variables().variables[0].name, MOTD);
    }

    #[test]
    fn the_quota_counts_each_worker_once() {
        let item = |field: &str, kind: &str, replicas: u64| {
            let mut item = ValidateTopologyRequestItem::default();
            item.holder_reference.field_path = format!("spec.template.spec.{field}");
            item.variables = vec![Variable {
                name: "builtin".to_owned(),
                value: json!({kind: {"replicas": replicas}}),
            }];
            item
        };
        let status = |most: &str| {
            let response = check(&ValidateTopologyRequest {
                settings: [(MOST_WORKERS.to_owned(), most.to_owned())].into(),
                items: vec![
                    item("bootstrap.configRef", "machineDeployment", 2),
                    item("infrastructureRef", "machineDeployment", 2),
                    item("infrastructureRef", "machinePool", 3),
                ],
                ..ValidateTopologyRequest::default()
            });
            (response.status, response.message)
        };
        assert_eq!(status("5").0, Status::Success);
        let refused = "the workers have 5 replicas, and 4 are allowed".to_owned();
        assert_eq!(status("4"), (Status::Failure, refused));
        assert_eq!(status("many").0, Status::Failure);
        assert_eq!(check(&ValidateTopologyRequest::default()).status, Status::Success);
    }
}
