//! Admission over the network, and writes while no webhook server answers.

use std::sync::Arc;

use kube::api::{DeleteParams, Patch, PatchParams};
use rustls::{ClientConnection, StreamOwned};
use serde_json::json;
use windlass_http_client::tls;
use windlass_testkit::Kind;
use windlass_webhook::WebhookError;

use crate::support::{NAME, Serving, World, checks, until};

// EX-080, EX-084
#[tokio::test]
async fn updates_are_judged_at_every_version_and_nothing_else_is() {
    let world = World::start().await;
    let webhooks = Serving::new().start(world.client.clone()).await.unwrap();
    world.create("a", 5).await;
    world.resize("a", 6).await.unwrap();
    let refused = world.resize("a", 4).await.unwrap_err();
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
    assert!(
        refused
            .message
            .contains("TestCluster.infra.example.com \"a\" is invalid: spec.size: Forbidden: never smaller"),
        "{}",
        refused.message
    );
    assert!(
        refused.message.contains("validation.testcluster.infra.example.com"),
        "{}",
        refused.message
    );
    let causes = refused.details.unwrap().causes;
    assert_eq!((causes.len(), causes[0].field.as_str()), (1, "spec.size"));

    let smaller = Patch::Merge(json!({"spec": {"size": 1}}));
    let anyone = PatchParams::default();
    let older = world.objects("v1beta1").patch("a", &anyone, &smaller).await;
    assert!(matches!(older, Err(kube::Error::Api(status)) if status.code == 422));
    let dry = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let dry = world.objects("v1").patch("a", &dry, &smaller).await;
    assert!(matches!(dry, Err(kube::Error::Api(status)) if status.code == 422));
    let status = Patch::Merge(json!({"status": {"ready": true}, "spec": {"size": 1}}));
    let stored = world.objects("v1").patch_status("a", &anyone, &status).await.unwrap();
    assert_eq!(stored.data["spec"]["size"], 6);
    world.objects("v1").delete("a", &DeleteParams::default()).await.unwrap();
    webhooks.shutdown().await;
}

// EX-084
#[tokio::test]
async fn without_an_answer_updates_are_refused_and_creations_deletions_and_status_pass() {
    let world = World::start().await;
    let serving = Serving {
        rules: vec![checks()],
        ..Serving::new()
    };
    let webhooks = serving.start(world.client.clone()).await.unwrap();
    let certificate = world.kept("tls.crt").await;
    let configuration = world.configuration().await;
    world.create("a", 5).await;
    world.resize("a", 6).await.unwrap();
    world.resize("a", 5).await.unwrap_err();
    webhooks.shutdown().await;

    assert_eq!(
        world.configuration().await,
        configuration,
        "who ends leaves the configuration"
    );
    let refused = world.resize("a", 100).await.unwrap_err();
    assert_eq!(refused.code, 500);
    assert!(
        refused.message.contains("failed calling webhook"),
        "{}",
        refused.message
    );
    world.create("b", 1).await;
    let status = Patch::Merge(json!({"status": {"ready": true}}));
    world
        .objects("v1")
        .patch_status("b", &PatchParams::default(), &status)
        .await
        .unwrap();
    world.objects("v1").delete("b", &DeleteParams::default()).await.unwrap();

    let webhooks = serving.start(world.client.clone()).await.unwrap();
    world.resize("a", 7).await.unwrap();
    world.resize("a", 6).await.unwrap_err();
    assert_eq!(
        world.kept("tls.crt").await,
        certificate,
        "started again it serves the same certificate"
    );
    assert_eq!(world.configuration().await, configuration, "and writes nothing");
    webhooks.shutdown().await;
}

#[tokio::test]
async fn missing_permissions_are_named() {
    let world = World::start().await;
    let serving = Serving::new();
    let error = serving.start(world.user("no-rights")).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("Secret default/windlass-webhook-certificate"),
        "{error}"
    );
    assert!(
        error.hint().unwrap().contains("secrets in namespace default"),
        "{error:?}"
    );

    let folder = tempfile::tempdir().unwrap();
    crate::certificates::write_files(folder.path(), &["127.0.0.1"]);
    let serving = Serving {
        certificates: windlass_webhook::Certificates::Folder(folder.path().to_owned()),
        ..serving
    };
    let error = serving.start(world.user("no-rights")).await.unwrap_err();
    assert!(
        matches!(&error, WebhookError::Request { what, .. } if what.starts_with("MutatingWebhookConfiguration")),
        "{error}"
    );
    assert!(
        error.hint().unwrap().contains("mutatingwebhookconfigurations"),
        "{error:?}"
    );

    let serving = Serving {
        certificates: windlass_webhook::Certificates::Secret {
            namespace: "nowhere".to_owned(),
        },
        ..serving
    };
    let error = serving.start(world.client.clone()).await.unwrap_err();
    assert!(
        error.hint().unwrap().contains("kubectl create namespace nowhere"),
        "{error:?}"
    );
    assert_eq!(world.configuration().await, None);
}

#[tokio::test]
async fn what_it_says_that_it_needs_is_all_that_it_needs() {
    let world = World::start().await;
    let all = ["get", "list", "watch", "create", "update"];
    world.allow("manager", "", "secrets", &all).await;
    let more = ["get", "list", "watch", "create", "patch", "update"];
    for configurations in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        world
            .allow("manager", "admissionregistration.k8s.io", configurations, &more)
            .await;
    }
    let definitions = ["get", "list", "watch", "update"];
    world
        .allow(
            "manager",
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            &definitions,
        )
        .await;
    let webhooks = Serving::new().start(world.user("manager")).await.unwrap();
    world.create("a", 5).await;
    world.is_judged("a").await;
    let anyone = PatchParams::default();
    let wrong = Patch::Merge(json!({"webhooks": [], "metadata": {"labels": {"a": "b"}}}));
    world.configurations().patch(NAME, &anyone, &wrong).await.unwrap();
    until("the webhook is back", async || {
        world.configuration().await.unwrap()["webhooks"]
            .as_array()
            .is_some_and(|all| all.len() == 1)
    })
    .await;
    world.is_judged("a").await;
    webhooks.shutdown().await;
}

#[tokio::test]
async fn it_is_reached_through_a_service() {
    let why = "only the embedded server finds services in a table; a real one needs a network for them";
    if Kind::leaves_out(&[Kind::Embedded, Kind::Socket], why) {
        return;
    }
    let (world, services) = World::with_services().await;
    let serving = Serving {
        service: Some(("default", "windlass-webhook")),
        ..Serving::new()
    };
    services.set("default", "windlass-webhook", serving.socket.local_addr().unwrap());
    let webhooks = serving.start(world.client.clone()).await.unwrap();
    world.create("a", 5).await;
    world.is_judged("a").await;
    webhooks.shutdown().await;
}

#[tokio::test]
async fn broken_or_silent_clients_do_not_block_others() {
    use tokio::io::AsyncWriteExt as _;
    let world = World::start().await;
    let serving = Serving::new();
    let webhooks = serving.start(world.client.clone()).await.unwrap();
    world.create("a", 5).await;
    let address = webhooks.address().unwrap();
    let mut idle = Vec::new();
    for number in 0..20 {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        }
        idle.push(stream);
    }
    world.is_judged("a").await;
    let ended = tokio::time::timeout(std::time::Duration::from_mins(1), webhooks.shutdown());
    assert!(ended.await.is_ok(), "it ends although others stay");
}

/// A port that everyone can reach: idle connections make room for the API server's.
#[tokio::test]
async fn more_idle_connections_than_there_is_room_for_do_not_keep_the_api_server_away() {
    use tokio::io::AsyncWriteExt as _;
    let world = World::start().await;
    let serving = Serving::new();
    let webhooks = serving.start(world.client.clone()).await.unwrap();
    world.create("a", 5).await;
    let address = webhooks.address().unwrap();
    let mut idle = Vec::new();
    for _ in 0..300 {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
        idle.push(stream);
    }
    world.is_judged("a").await;
    webhooks.shutdown().await;
}

/// Each of them is at work all the time: it sends a body that does not end.
#[tokio::test]
async fn more_slow_bodies_than_there_is_room_for_do_not_keep_the_api_server_away() {
    use std::io::Write as _;
    let world = World::start().await;
    let serving = Serving::new();
    let webhooks = serving.start(world.client.clone()).await.unwrap();
    world.create("a", 5).await;
    let (address, authority) = (webhooks.address().unwrap(), world.kept("ca.crt").await);
    let slow = tokio::task::spawn_blocking(move || {
        let config = tls::trusting(tls::roots(authority.as_bytes()).unwrap()).unwrap();
        let config = Arc::new(config.with_no_client_auth());
        let request = "POST /validate-infra-example-com-v1-testcluster HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
                       Content-Length: 1000\r\n\r\n{";
        let connect = |_| {
            let client = ClientConnection::new(Arc::clone(&config), "127.0.0.1".try_into().unwrap()).unwrap();
            let mut stream = StreamOwned::new(client, std::net::TcpStream::connect(address).unwrap());
            stream.write_all(request.as_bytes()).unwrap();
            stream
        };
        (0..300).map(connect).collect::<Vec<_>>()
    });
    let slow = slow.await.unwrap();
    world.is_judged("a").await;
    drop(slow);
    webhooks.shutdown().await;
}
