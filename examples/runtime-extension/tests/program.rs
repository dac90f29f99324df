//! The program as a process: it serves with the files of a folder, and ends in an orderly way.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic, too")]

use std::fs;
use std::process::Stdio;

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use windlass_example_extension::PROTECTED;
use windlass_http_client::{Client, Request, Settings, Url};
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};

const PATH: &str = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterdelete/keep-protected?timeout=5s";

fn key() -> PrivateKey {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap()
}

#[tokio::test]
async fn it_serves_until_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::self_signed(&CaRequest::new("test"), key(), Timestamp::now()).unwrap();
    let of_server = key();
    let request = LeafRequest::server("extension", vec!["127.0.0.1".to_owned()]);
    let certificate = authority.issue(&request, &of_server, Timestamp::now()).unwrap();
    fs::write(folder.path().join("tls.crt"), certificate.to_pem()).unwrap();
    fs::write(folder.path().join("tls.key"), of_server.to_pem()).unwrap();
    let settings = Settings {
        authorities: vec![authority.certificate().to_pem()],
        ..Settings::default()
    };
    let client = Client::new(settings).unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_windlass-example-extension"))
            .args(["--listen", "127.0.0.1:0", "--certificates"])
            .arg(folder.path())
            .env("NO_COLOR", "1")
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(program.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if let Some((_, address)) = line.split_once("listening on ") {
                break address.to_owned();
            }
        };
        let request = json!({"cluster": {"metadata": {"annotations": {PROTECTED: "yes"}}, "spec": {}}});
        let url = Url::parse(&format!("https://{address}{PATH}")).unwrap();
        let request = Request {
            method: Method::POST,
            url: &url,
            accept: "application/json",
            content_type: None,
            authorization: None,
            known_tag: None,
            body: Bytes::from(request.to_string()),
        };
        let answer = client.send(&request).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer["retryAfterSeconds"], 10, "{answer}");
        let pid = Pid::from_raw(program.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        assert!(program.wait().await.unwrap().success());
    }
}

#[tokio::test]
async fn it_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_windlass-example-extension"))
        .args(["--listen", "127.0.0.1:0", "--certificates"])
        .arg(folder.path())
        .output()
        .await
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("tls.crt"), "{said}");
}
