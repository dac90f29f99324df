//! A kubeconfig leads the controllers to a server that sends without end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use windlass_api::core::Cluster;
use windlass_testkit::{ClusterOf, Env};

use super::running;

const MIB: usize = 1 << 20;

/// Answers one request: the Nodes are an event that never ends.
async fn answer(mut stream: TcpStream, sent: Arc<AtomicUsize>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let begin = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    if !String::from_utf8_lossy(&head).contains(" /api/v1/nodes?") {
        let whole = format!("{begin}Content-Length: 2\r\n\r\n{{}}");
        return stream.write_all(whole.as_bytes()).await;
    }
    let begin = format!("{begin}\r\n{{\"type\":\"ADDED\",\"object\":{{\"kind\":\"");
    stream.write_all(begin.as_bytes()).await?;
    let piece = vec![b'x'; 64 << 10];
    loop {
        stream.write_all(&piece).await?;
        sent.fetch_add(piece.len(), Ordering::SeqCst);
    }
}

async fn hostile() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let counts = sent.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, counts.clone()));
        }
    });
    (address, sent)
}

/// Status and message of RemoteConnectionProbe.
fn probe(cluster: &Cluster) -> Option<(&str, &str)> {
    let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    let found = conditions.find(|condition| condition.type_ == "RemoteConnectionProbe")?;
    Some((found.status.as_str(), found.message.as_str()))
}

#[tokio::test]
async fn a_cluster_whose_server_sends_without_end_says_so_and_others_are_served() {
    let env = Env::start().await;
    let (cluster, other) = (ClusterOf::new("led", 1, 0), ClusterOf::new("other", 1, 0));
    running(&env, &cluster).await;
    let (address, sent) = hostile().await;
    let (secrets, name) = (env.api::<Secret>(), "led-kubeconfig");
    let kubeconfig = secrets.get(name).await.unwrap().data.unwrap()["value"].clone();
    let kubeconfig = String::from_utf8(kubeconfig.0).unwrap();
    let server = kubeconfig.lines().find(|line| line.contains("server: ")).unwrap();
    let (begin, _) = server.split_once("server: ").unwrap();
    let led = kubeconfig.replace(server, &format!("{begin}server: http://{address}"));
    let patch = Patch::Merge(json!({"data": {"value": ByteString(led.into_bytes())}}));
    secrets.patch(name, &PatchParams::default(), &patch).await.unwrap();
    let why = "the API server sent an event of more than 16 MiB";
    env.wait_for::<Cluster>(&cluster.key(), "reported", |cluster| {
        probe(cluster) == Some(("False", why))
    })
    .await;
    other.apply(&env).await;
    other.wait_running(&env).await;
    // Once: it is left alone for a while. Sockets hold some of it.
    let sent = sent.load(Ordering::SeqCst);
    assert!(sent < 64 * MIB, "{sent} bytes");
    env.stop().await;
}
