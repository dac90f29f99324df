//! What clients of a cluster see that is made again after a restart.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::certificates::{plain_client, talks};
use super::*;

/// How long an answer takes at most that is not held back.
const ANSWER: Duration = Duration::from_millis(500);

async fn register(cloud: &Cloud, cluster: &ObjectKey, name: &str) {
    let node = NodeSpec {
        name: name.to_owned(),
        provider_id: format!("in-memory://{name}"),
        version: "v1.35.0".to_owned(),
        control_plane: name.starts_with("cp"),
        pins: Vec::new(),
        joined: true,
    };
    cloud.register_node(cluster, &node, now()).await.unwrap();
}

/// Asks the API server, which may let the client wait.
fn ask(at: SocketAddr) -> JoinHandle<bool> {
    tokio::spawn(async move {
        let stream = TcpStream::connect(at).await.unwrap();
        talks(stream, plain_client(AUTHORITIES.cluster.trusted()), "127.0.0.1").await
    })
}

#[tokio::test]
async fn a_cluster_that_is_made_again_answers_when_all_machines_are_back() {
    let cloud = Cloud::new();
    let (c, at) = (key("c"), free());
    let (before, all) = (("cp-0", "v1.35.0", Before::Joined), ["cp-0", "cp-1", "gone", "worker"]);
    start_among(&cloud, &c, before, at, &all).await.unwrap();
    let mut asking = ask(at);
    for name in ["cp-0", "cp-1", "worker"] {
        if name == "cp-1" {
            let before = (name, "v1.35.0", Before::Joined);
            start_version(&cloud, &c, before, at).await.unwrap();
        }
        cloud.start_vm(&c, name, now()).await.unwrap();
        register(&cloud, &c, name).await;
        let early = tokio::time::timeout(ANSWER, &mut asking).await;
        assert!(early.is_err(), "an answer when {name} was back");
    }
    cloud.start_vm(&c, "gone", now()).await.unwrap();
    cloud.delete_vm(&c, "gone").await.unwrap();
    assert!(asking.await.unwrap());
    cloud.shutdown().await;
}

#[tokio::test]
async fn a_new_cluster_answers_with_its_first_machine() {
    let cloud = Cloud::new();
    let (c, at) = (key("c"), free());
    start(&cloud, &c, "cp-0", at).await.unwrap();
    assert!(ask(at).await.unwrap());
    cloud.shutdown().await;
}

#[tokio::test]
async fn a_cluster_ends_before_all_machines_are_back() {
    let cloud = Cloud::new();
    let (c, at) = (key("c"), free());
    let before = ("cp-0", "v1.35.0", Before::Joined);
    start_among(&cloud, &c, before, at, &["cp-0", "cp-1"]).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), cloud.delete_vm(&c, "cp-0"));
    ended.await.expect("it waits for no machine").unwrap();
    assert!(!answers(at).await);
}
