//! A call that is ended returns when its process has ended. The program is a script: what counts is when things happen.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use windlass_helm::{Chart, Engine as _, Helm, Kind, Marker, Options, Secret, Settings, Stop, Target};

const KUBECONFIG: &str = r#"{
    "apiVersion": "v1", "kind": "Config", "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "users": [{"name": "u", "user": {}}]
}"#;

/// A program that works until it is asked to end, and then takes its time to record that.
fn program(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("helm");
    let here = folder.display();
    let script = format!(
        "#!/bin/sh\n\
         if [ \"$1\" = version ]; then echo v3.22; exit; fi\n\
         trap 'sleep 1; touch {here}/recorded; exit 1' TERM\n\
         touch {here}/begun\n\
         while :; do sleep 0.05; done\n"
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn a_call_that_is_ended_returns_after_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        program: program(folder.path()),
        ..Settings::new(folder.path().join("home"))
    };
    let helm = Helm::new(settings).unwrap();
    // Builds from source lack the patch number.
    assert_eq!(helm.version().await.unwrap(), "v3.22");
    let stop = Stop::default();
    let target = Target {
        kubeconfig: Secret::new(KUBECONFIG),
        namespace: "apps".to_owned(),
        release: "web".to_owned(),
        marker: Marker::owner("default.web"),
        stop: stop.clone(),
    };
    let chart = Chart {
        name: "web".to_owned(),
        version: "1.0.0".to_owned(),
        app_version: None,
        digest: String::new(),
        archive: folder.path().join("web.tgz"),
    };
    let options = Options::default();
    let end = async {
        while !folder.path().join("begun").exists() {
            tokio::task::yield_now().await;
        }
        stop.end();
    };
    let (result, ()) = tokio::join!(helm.install(&target, &chart, "", &options), end);
    assert_eq!(result.unwrap_err().kind, Kind::Cancelled);
    assert!(folder.path().join("recorded").exists(), "helm was done");
    // Later calls for the target do not begin.
    let later = helm.uninstall(&target, &options).await;
    assert_eq!(later.unwrap_err().kind, Kind::Cancelled);
}
