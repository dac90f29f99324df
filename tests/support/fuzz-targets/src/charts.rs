//! What helm prints, separated by zero bytes: Chart.yaml, the result of an installation, an error.
//!
//! The program is a script that prints what the input has, so that it goes through everything between the process and the caller.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use windlass_helm::{
    Chart, ChartSource, Credentials, Engine as _, Freshness, Helm, HelmError, Marker, Options, Secret, Settings, Stop,
    Target, values,
};

use crate::served::RUNTIME;

/// The password for the repository, which no error shows.
const PASSWORD: &str = "hidden-from-every-error";
/// The longest message of an error.
const LONGEST: usize = 4 << 10;
/// Prints the files beside it. `pull` fails while there is an error to print.
const SCRIPT: &str = r#"#!/bin/sh
here=${0%/*}
case $1 in
version) echo v3.16.0 ;;
pull)
    if [ -e "$here/error" ]; then
        cat "$here/error" >&2
        exit 1
    fi
    for argument; do
        case $argument in
        --destination=*) : > "${argument#--destination=}/x.tgz" ;;
        esac
    done
    ;;
show) exec cat "$here/chart" ;;
install) exec cat "$here/release" ;;
esac
"#;
const KUBECONFIG: &str = r#"{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://c.test:6443"}}],
    "users":[{"name":"u","user":{"token":"t"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}"#;

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let (chart, release) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let error = parts.next();
    if let Ok(text) = std::str::from_utf8(chart)
        && let Ok(read) = values::parse(text)
    {
        let written = Value::Object(read.clone()).to_string();
        let again = values::parse(&written).expect("what was read can be written");
        assert!(values::same(&again, &read), "values survive their writing: {written}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let helm = folder.path().join("helm");
    fs::write(&helm, SCRIPT).expect("a program");
    fs::set_permissions(&helm, fs::Permissions::from_mode(0o700)).expect("a program");
    put(folder.path(), "release", release);
    let mut settings = Settings::new(folder.path().join("home"));
    settings.program = helm;
    let helm = Helm::new(settings).expect("an engine");
    RUNTIME.block_on(async {
        if let Some(error) = error {
            put(folder.path(), "error", error);
            check(&fetched(&helm).await.expect_err("helm failed"), &[]);
            fs::remove_file(folder.path().join("error")).expect("a file");
        }
        put(folder.path(), "chart", chart);
        match fetched(&helm).await {
            Ok(found) => {
                assert_eq!(
                    again(&helm, folder.path(), &found).await,
                    found,
                    "what is read can be written"
                );
                install(&helm, &found, release).await;
            }
            Err(error) => check(&error, chart),
        }
        helm.close().await;
    });
}

fn put(folder: &Path, name: &str, content: &[u8]) {
    fs::write(folder.join(name), content).expect("a file");
}

async fn fetched(helm: &Helm) -> Result<Chart, HelmError> {
    let source = ChartSource {
        repo_url: "oci://registry.test/charts".to_owned(),
        chart: "x".to_owned(),
        credentials: Some(Credentials::Login {
            username: "user".to_owned(),
            password: Secret::new(PASSWORD.to_owned()),
            pass_everywhere: false,
        }),
        ..ChartSource::default()
    };
    helm.chart(&source, Freshness::Now).await
}

/// The chart with what was read of it as its Chart.yaml.
async fn again(helm: &Helm, folder: &Path, found: &Chart) -> Chart {
    assert!(found.app_version.as_ref().is_none_or(|version| !version.is_empty()));
    let written = json!({"name": found.name, "version": found.version, "appVersion": found.app_version});
    put(folder, "chart", written.to_string().as_bytes());
    fetched(helm).await.expect("what was read can be written")
}

async fn install(helm: &Helm, chart: &Chart, printed: &[u8]) {
    let target = Target {
        kubeconfig: Secret::new(KUBECONFIG.to_owned()),
        namespace: "default".to_owned(),
        release: "r".to_owned(),
        marker: Marker::owner("fuzz"),
        stop: Stop::default(),
    };
    match helm.install(&target, chart, "", &Options::default()).await {
        Ok(summary) => assert!(summary.description.len() <= 3 * printed.len()),
        Err(error) => check(&error, printed),
    }
}

/// What a condition shows of an error. It quotes nothing that helm prints as a result.
fn check(error: &HelmError, printed: &[u8]) {
    let message = &error.message;
    assert!(message.len() <= LONGEST, "an error of {} bytes", message.len());
    assert!(!message.contains(PASSWORD), "{message}");
    assert!(!message.is_empty());
    let printed = String::from_utf8_lossy(printed);
    assert!(
        printed.trim().len() < 100 || !message.contains(printed.trim()),
        "{message}"
    );
}
