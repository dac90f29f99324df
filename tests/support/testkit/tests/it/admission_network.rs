//! The same admission with the API server and the manager as two servers.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket};
use windlass_api::annotations::MANAGED_BY;
use windlass_manager::registry::kinds;
use windlass_manager::{FeatureGates, Selection, WebhookOptions, WebhookTarget, Webhooks, network, webhooks};
use windlass_testkit::{MANAGER, Objects, Server};

use crate::admission::{all_else_passes, dev_cluster, the_annotation_stays, warnings};

/// A separate API server, a client for it over the network, and a port for webhooks.
pub(crate) struct World {
    pub(crate) server: Server,
    client: kube::Client,
    pub(crate) objects: Objects,
    socket: TcpSocket,
}

impl World {
    pub(crate) async fn start() -> Self {
        let server = Server::start().await;
        let client = server.client(MANAGER);
        network::definitions(&client, &kinds::all_crds(), true).await.unwrap();
        // Bound without a listener, so that the port stays reserved.
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self {
            objects: Objects::new(client.clone()),
            server,
            client,
            socket,
        }
    }

    pub(crate) async fn serve(&self) -> Webhooks {
        self.serve_as(self.client.clone()).await
    }

    /// The same with another client.
    pub(crate) async fn serve_as(&self, client: kube::Client) -> Webhooks {
        let address = self.socket.local_addr().unwrap();
        let options = WebhookOptions {
            listener: TcpListener::bind(address).await.unwrap(),
            target: WebhookTarget::url(&format!("https://{address}")).unwrap(),
            certificate_dir: None,
            gates: FeatureGates::default(),
            built_ins: Selection::all().built_ins(),
        };
        webhooks::start(client, options).await.unwrap()
    }
}

// EX-079, EX-080, EX-081, EX-082, EX-084, EX-085
#[tokio::test]
async fn the_webhook_says_the_same_as_the_server_in_process() {
    let world = World::start().await;
    let webhooks = world.serve().await;
    let objects = &world.objects;
    the_annotation_stays(objects).await;
    all_else_passes(objects).await;
    let mut live = dev_cluster("live", &json!({}));
    live["metadata"]["finalizers"] = json!(["devcluster.infrastructure.cluster.x-k8s.io"]);
    objects.apply(&live).await;
    let told = warnings(
        objects,
        "live",
        &json!({"metadata": {"annotations": {MANAGED_BY: "x"}}}),
    )
    .await;
    assert!(
        told.join("\n")
            .contains("will not remove devcluster.infrastructure.cluster.x-k8s.io"),
        "{told:?}"
    );
    webhooks.shutdown().await;
    world.server.stop().await;
}

// EX-084, EX-087: what admission cannot prevent is not tested.
#[tokio::test]
async fn while_no_manager_answers_writes_are_refused_and_a_deleted_object_may_come_back_managed() {
    let world = World::start().await;
    let objects = &world.objects;
    let webhooks = world.serve().await;
    objects.apply(&dev_cluster("a", &json!({MANAGED_BY: "x"}))).await;
    webhooks.shutdown().await;
    let change = json!({"metadata": {"annotations": {MANAGED_BY: null}}});
    let update = async || {
        let patch = Patch::Merge(&change);
        let updated = objects
            .dynamic("DevCluster")
            .patch("a", &PatchParams::default(), &patch)
            .await;
        match updated {
            Err(kube::Error::Api(status)) => (status.code, status.message),
            other => panic!("not refused: {other:?}"),
        }
    };
    let (code, message) = update().await;
    assert!(
        code == 500 && message.contains("failed calling webhook"),
        "{code} {message}"
    );
    let api = objects.dynamic("DevCluster");
    let new = serde_json::from_value(dev_cluster("b", &json!({}))).unwrap();
    let created = api.create(&PostParams::default(), &new).await;
    assert!(matches!(created, Err(kube::Error::Api(status)) if status.code == 500));
    let webhooks = world.serve().await;
    assert_eq!(update().await.0, 422);
    webhooks.shutdown().await;
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
    let webhooks = world.serve().await;
    objects.apply(&dev_cluster("a", &json!({}))).await;
    webhooks.shutdown().await;
    world.server.stop().await;
}
