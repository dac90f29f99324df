//! Certificates, and the end of a server.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use windlass_pki::CertificateAuthority;
use windlass_runtime_extension::hooks::Response as _;
use windlass_runtime_extension::hooks::lifecycle::{AfterClusterUpgrade, AfterClusterUpgradeResponse};
use windlass_runtime_extension::{Extension, tls};

use crate::support::{Caller, Served, authority, json, mount};

const DISCOVERY: &str = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery";

#[tokio::test]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let served = Served::start(Extension::new()).await;
    let (first, second) = (authority(), authority());
    let folder = served.certificates.path();
    mount(&first, folder);
    // A new client each time: one that has seen the server before resumes its session, without a look at the certificate.
    let is_trusted = async |authority: &CertificateAuthority| {
        let caller = Caller::trusting(authority, served.address);
        caller.send(Method::POST, DISCOVERY, "{}").await.is_ok()
    };
    assert!(is_trusted(&first).await && !is_trusted(&second).await);
    mount(&second, folder);
    assert!(!is_trusted(&first).await && is_trusted(&second).await);
    fs::write(folder.join("tls.key"), "rubbish").unwrap();
    assert!(is_trusted(&second).await, "the last good certificate stays");
    fs::remove_file(folder.join("tls.crt")).unwrap();
    assert!(is_trusted(&second).await);
    mount(&first, folder);
    assert!(is_trusted(&first).await && !is_trusted(&second).await);
}

#[test]
fn a_server_without_a_certificate_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let error = tls(folder.path()).unwrap_err().to_string();
    assert!(error.contains("tls.crt"), "{error}");
}

#[tokio::test]
async fn a_running_request_is_completed_at_the_end() {
    let (begun, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begin, released) = (Arc::clone(&begun), Arc::clone(&release));
    let extension = Extension::new().handle(AfterClusterUpgrade, "slow", move |_| {
        let (begin, released) = (Arc::clone(&begin), Arc::clone(&released));
        async move {
            begin.notify_one();
            released.notified().await;
            AfterClusterUpgradeResponse::success()
        }
    });
    let served = Served::start(extension.unwrap()).await;
    let caller = served.caller.clone();
    let path = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/afterclusterupgrade/slow?timeout=30s";
    let asking = tokio::spawn(async move { caller.post(path, "{}").await });
    begun.notified().await;
    served.stop.cancel();
    while TcpStream::connect(served.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    // Longer than other servers wait.
    let mut task = served.task;
    let ends = tokio::time::timeout(Duration::from_secs(6), &mut task).await;
    assert!(ends.is_err(), "the request is not cut off");
    release.notify_one();
    assert_eq!(json(&asking.await.unwrap())["status"], "Success");
    task.await.unwrap();
}

#[tokio::test]
async fn a_request_that_does_not_end_in_time_is_cut_off() {
    let begun = Arc::new(Notify::new());
    let begin = Arc::clone(&begun);
    let extension = Extension::new().handle(AfterClusterUpgrade, "endless", move |_| {
        begin.notify_one();
        std::future::pending::<AfterClusterUpgradeResponse>()
    });
    let served = Served::start(extension.unwrap().drain(Duration::from_millis(50))).await;
    let caller = served.caller.clone();
    let path = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/afterclusterupgrade/endless?timeout=30s";
    let asking = tokio::spawn(async move { caller.send(Method::POST, path, "{}").await });
    begun.notified().await;
    served.stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(10), served.task).await;
    ended.expect("it ends before the time limit of the request").unwrap();
    assert!(asking.await.unwrap().is_err());
}
