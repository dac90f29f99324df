//! `windlass apiserver snapshot`: objects saved from a running server are restored unchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

use crate::support::{Finished, Up, objects, run};

fn serve(folder: &Path, data: &str) -> Up {
    let (data, kubeconfig) = (folder.join(data), folder.join("kubeconfig"));
    let (data, kubeconfig) = (data.to_str().unwrap(), kubeconfig.to_str().unwrap());
    let args = [
        "apiserver",
        "--data-dir",
        data,
        "--kubeconfig",
        kubeconfig,
        "--port",
        "0",
    ];
    Up::command(folder, &args, "kubeconfig ")
}

fn snapshot(folder: &Path, verb: &str, file: &str, data: &str) -> Finished {
    let (file, data) = (folder.join(file), folder.join(data));
    let (file, data) = (file.to_str().unwrap(), data.to_str().unwrap());
    run(folder, &["apiserver", "snapshot", verb, file, "--data-dir", data])
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "b"}})).unwrap()
}

#[tokio::test]
async fn what_was_saved_from_a_running_server_is_restored_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let running = serve(folder.path(), "data");
    let first = objects(folder.path()).await.api::<ConfigMap>();
    let made = first.create(&PostParams::default(), &map("kept")).await.unwrap();
    snapshot(folder.path(), "save", "saved", "data").went_well();
    let mode = fs::metadata(folder.path().join("saved")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let later = first.create(&PostParams::default(), &map("later")).await.unwrap();
    let later = later.metadata.resource_version.unwrap();
    snapshot(folder.path(), "save", "saved", "data").failed_with(&["saved exists", "another name"]);
    snapshot(folder.path(), "restore", "saved", "data").failed_with(&["in use by another process"]);
    running.interrupt().went_well();
    snapshot(folder.path(), "restore", "saved", "data").failed_with(&["is not empty", "choose another"]);

    snapshot(folder.path(), "restore", "saved", "restored").went_well();
    let running = serve(folder.path(), "restored");
    let second = objects(folder.path()).await.api::<ConfigMap>();
    assert_eq!(second.get("kept").await.unwrap(), made);
    assert!(second.get("later").await.is_err());
    // A client that has seen later revisions must list again, and no revision is used twice.
    let mut watch = second.watch(&WatchParams::default(), &later).await.unwrap().boxed();
    let told = watch.try_next().await;
    assert!(
        matches!(&told, Ok(Some(WatchEvent::Error(status))) if status.code == 410),
        "{told:?}"
    );
    let now = second
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version;
    assert!(now.unwrap().parse::<u64>().unwrap() > later.parse::<u64>().unwrap());
    running.interrupt().went_well();

    let file = folder.path().join("saved");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 3]).unwrap();
    snapshot(folder.path(), "restore", "saved", "third")
        .failed_with(&["saved is not a whole snapshot", "another copy"]);
    assert!(!folder.path().join("third").exists());
    snapshot(folder.path(), "save", "more", "nothing").failed_with(&["nothing/store"]);
}
