//! Ports of pods, forwarded by the unmodified `kubectl`: over SPDY, and over SPDY inside a WebSocket.

use std::path::Path;
use std::process::Stdio;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::task::JoinSet;
use windlass_envtest::Tools;

use crate::edge::Edge;
use crate::support::client;

/// A running `kubectl port-forward`.
struct Forward {
    child: Child,
    /// The local ports, in the order of the arguments.
    ports: Vec<u16>,
    _output: Lines<BufReader<ChildStdout>>,
    errors: Lines<BufReader<ChildStderr>>,
}

impl Forward {
    async fn start(program: &Path, kubeconfig: &Path, over_websockets: bool, ports: &[u16]) -> Self {
        let mut command = Command::new(program);
        command
            .env("KUBECONFIG", kubeconfig)
            .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", over_websockets.to_string())
            .args(["port-forward", "--address=127.0.0.1", "pod/p"])
            .args(ports.iter().map(|port| format!(":{port}")))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut found = Vec::new();
        while found.len() < ports.len() {
            tokio::select! {
                line = output.next_line() => {
                    let line = line.unwrap().expect("a line for each port");
                    let (_, rest) = line.split_once("127.0.0.1:").unwrap_or_else(|| panic!("{line}"));
                    found.push(rest.split(' ').next().unwrap().parse().unwrap());
                }
                Ok(Some(line)) = errors.next_line() => panic!("{line}"),
            }
        }
        Self {
            child,
            ports: found,
            _output: output,
            errors,
        }
    }

    async fn connect(&self, port: usize) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.ports[port])).await.unwrap()
    }
}

/// What the pod says first.
const GREETING: &[u8] = b"default/p:2379\n";

async fn greeted(stream: &mut TcpStream) {
    let mut heard = vec![0; GREETING.len()];
    stream.read_exact(&mut heard).await.unwrap();
    assert_eq!(heard, GREETING);
}

async fn talks_to_kubectl(over_websockets: bool) {
    let Some(program) = Tools::required("kubectl") else {
        return;
    };
    let edge = Edge::start().await;
    let pods: Api<Pod> = Api::namespaced(client(&edge.server), "default");
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap())
        .await
        .unwrap();
    let runs = json!({"status": {"phase": "Running"}});
    pods.patch_status("p", &PatchParams::default(), &Patch::Merge(runs))
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, edge.kubeconfig(&json!({"token": "sesame"})).to_string()).unwrap();

    let mut forward = Forward::start(&program, &kubeconfig, over_websockets, &[2379, 1]).await;
    // Much data in both directions, more than any window, and the end of it.
    let mut stream = forward.connect(0).await;
    greeted(&mut stream).await;
    let sent: Vec<u8> = (0..2_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (mut reader, mut writer) = stream.into_split();
    let copy = sent.clone();
    let writing = tokio::spawn(async move {
        writer.write_all(&copy).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let mut back = Vec::new();
    reader.read_to_end(&mut back).await.unwrap();
    writing.await.unwrap();
    assert!(back == sent, "{} of {} bytes came back", back.len(), sent.len());
    // A client that goes in the middle, and one that does not read, take nothing from others.
    let mut gone = forward.connect(0).await;
    greeted(&mut gone).await;
    gone.write_all(&[7; 1000]).await.unwrap();
    drop(gone);
    let mut idle = forward.connect(0).await;
    // Many at the same time.
    let mut tasks = JoinSet::new();
    for number in 0..40_u32 {
        let mut stream = forward.connect(0).await;
        tasks.spawn(async move {
            greeted(&mut stream).await;
            let text = format!("{number}").repeat(5000);
            let (mut reader, mut writer) = stream.split();
            let write = async {
                writer.write_all(text.as_bytes()).await.unwrap();
                writer.shutdown().await.unwrap();
            };
            let mut back = String::new();
            let ((), read) = tokio::join!(write, reader.read_to_string(&mut back));
            read.unwrap();
            assert_eq!(back, text);
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    greeted(&mut idle).await;
    // The error of a port comes through; kubectl ends the connection then.
    let mut refused = forward.connect(1).await;
    assert_eq!(refused.read(&mut [0; 8]).await.unwrap_or(0), 0);
    loop {
        let line = forward
            .errors
            .next_line()
            .await
            .unwrap()
            .expect("the error of the port");
        if line.contains("error forwarding port 1 to pod p: no listener") {
            break;
        }
    }
    forward.child.kill().await.unwrap();
}

#[tokio::test]
async fn ports_are_forwarded_over_spdy() {
    talks_to_kubectl(false).await;
}

#[tokio::test]
async fn ports_are_forwarded_over_spdy_inside_a_websocket() {
    talks_to_kubectl(true).await;
}
