//! Updates the status of CustomResourceDefinitions, before the response to the write that caused it.

use serde_json::{Value, json};

use crate::crds::STORAGE;
use crate::crds::status::{next, wants_names};
use crate::error::ApiError;
use crate::objects::encoding::decode;
use crate::state::Inner;
use crate::verbs::call::Call;
use crate::verbs::mutation::Mutation;
use crate::verbs::options::WriteOptions;
use windlass_objects::Part;
use windlass_objects::metadata::{meta, seconds};
use windlass_rbac::user::UserInfo;

/// The field manager of the status.
const MANAGER: &str = "kube-apiserver";

fn group(crd: &Value) -> &str {
    crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or("")
}

/// Updates the status of a definition, and of definitions that wait for names that it has given up.
pub(crate) async fn settle(server: &Inner, name: &str) -> Result<(), ApiError> {
    // Whether names are free depends on all definitions, so their updates are serialized.
    let _alone = server.crd_writes.lock().await;
    let Some(crd) = read(server, name) else {
        return Ok(());
    };
    settle_one(server, name).await?;
    waiting(server, group(&crd)).await
}

/// Assigns names that became free to definitions of a group that wait for them.
pub(crate) async fn settle_group(server: &Inner, group: &str) -> Result<(), ApiError> {
    let _alone = server.crd_writes.lock().await;
    waiting(server, group).await
}

/// Updates the status of all definitions: the process may have ended before an update.
pub(crate) async fn settle_all(server: &Inner) -> Result<(), ApiError> {
    let _alone = server.crd_writes.lock().await;
    let all = server.definitions(None);
    for crd in &all {
        // Checked with the definitions at start, updated with the definitions at that time.
        if next(crd, &all, "").is_some() {
            settle_one(server, meta(crd, "name")).await?;
        }
    }
    Ok(())
}

async fn waiting(server: &Inner, group_name: &str) -> Result<(), ApiError> {
    for crd in server.definitions(Some(group_name)) {
        if wants_names(&crd) {
            settle_one(server, meta(&crd, "name")).await?;
        }
    }
    Ok(())
}

fn read(server: &Inner, name: &str) -> Option<Value> {
    let record = server.store.get(STORAGE, "", name)?;
    decode(&record).ok()
}

async fn settle_one(server: &Inner, name: &str) -> Result<(), ApiError> {
    let Some(crd) = read(server, name) else {
        return Ok(());
    };
    let now = seconds(server.now());
    let Some(status) = next(&crd, &server.definitions(Some(group(&crd))), &now) else {
        return Ok(());
    };
    write_status(server, name, status).await
}

/// Writes the status of a definition as the server.
pub(crate) async fn write_status(server: &Inner, name: &str, status: Value) -> Result<(), ApiError> {
    let Some(resource) = server.registry().find_storage(STORAGE) else {
        return Ok(());
    };
    let user = UserInfo::new("system:apiserver", &["system:masters"]);
    let options = WriteOptions::default();
    let call = Call {
        server,
        resource: &resource,
        namespace: "",
        user: &user,
        options: &options,
        manager: MANAGER.to_owned(),
    };
    let mutation = Mutation::Merge(json!({"status": status}), Vec::new());
    match Box::pin(call.change(name, &mutation, Part::Status)).await {
        Err(error) if error.code == 404 => Ok(()),
        other => other.map(|_| ()),
    }
}
