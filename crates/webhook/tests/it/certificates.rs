//! Certificates are shared, kept and replaced while webhooks are served.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, Patch, PatchParams};
use rustls::ClientConnection;
use serde_json::json;
use windlass_http_client::tls;
use windlass_meta::FakeClock;
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};
use windlass_webhook::{Certificates, Configuration, SECRET_NAME};

use crate::support::{Serving, World, until};

/// Writes a certificate of a new authority.
pub(crate) fn write_files(folder: &Path, names: &[&str]) {
    let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let authority = CertificateAuthority::self_signed(&CaRequest::new("mine"), key(), Timestamp::now()).unwrap();
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let server = key();
    let certificate = authority
        .issue(&LeafRequest::server("mine", names), &server, Timestamp::now())
        .unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    write("ca.crt", authority.certificate().to_pem());
    write("tls.crt", certificate.to_pem());
    write("tls.key", server.to_pem());
}

#[tokio::test]
async fn processes_share_one_certificate() {
    let world = World::start().await;
    let (one, other) = (Serving::new(), Serving::new());
    let both = tokio::join!(one.start(world.client.clone()), other.start(world.client.clone()));
    world.create("a", 5).await;
    world.is_judged("a").await;
    both.1.unwrap().shutdown().await;
    // Whichever address is in the configuration after one server ended, the other one writes its own.
    both.0.unwrap().shutdown().await;
    let again = one.start(world.client.clone()).await.unwrap();
    world.is_judged("a").await;
    again.shutdown().await;
}

#[tokio::test]
async fn a_lost_or_damaged_secret_is_made_again_while_it_serves() {
    let world = World::start().await;
    let webhooks = Serving::new().start(world.client.clone()).await.unwrap();
    world.create("a", 5).await;
    let (authority, certificate) = (world.kept("ca.crt").await, world.kept("tls.crt").await);
    world
        .secrets()
        .delete(SECRET_NAME, &DeleteParams::default())
        .await
        .unwrap();
    until("the Secret is back", async || {
        world.secrets().get_opt(SECRET_NAME).await.unwrap().is_some()
    })
    .await;
    assert_eq!(world.kept("ca.crt").await, authority, "what is trusted stays so");
    assert_eq!(world.kept("tls.crt").await, certificate);
    world.is_judged("a").await;

    let damage = Patch::Merge(json!({"stringData": {"tls.key": "rubbish"}}));
    world
        .secrets()
        .patch(SECRET_NAME, &PatchParams::default(), &damage)
        .await
        .unwrap();
    until("the key is replaced", async || {
        world.kept("tls.key").await.contains("PRIVATE KEY")
    })
    .await;
    assert_eq!(world.kept("ca.crt").await, authority);
    assert_ne!(world.kept("tls.crt").await, certificate);
    world.is_judged("a").await;

    let damage = Patch::Merge(json!({"stringData": {"ca.key": "rubbish"}}));
    world
        .secrets()
        .patch(SECRET_NAME, &PatchParams::default(), &damage)
        .await
        .unwrap();
    until("the authority is replaced", async || {
        world.kept("ca.key").await.contains("PRIVATE KEY")
    })
    .await;
    assert!(
        world.kept("ca.crt").await.ends_with(&authority),
        "the old one is trusted on"
    );
    until("the configuration names both", async || {
        bundle(&world).await == Some(world.kept("ca.crt").await)
    })
    .await;
    world.is_judged("a").await;
    webhooks.shutdown().await;
}

/// Whether a client that trusts these authorities gets a connection.
async fn is_trusted(address: SocketAddr, authorities: &str) -> bool {
    let config = tls::trusting(tls::roots(authorities.as_bytes()).unwrap()).unwrap();
    let name = "127.0.0.1".try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(config.with_no_client_auth()), name).unwrap();
    let shaken = tokio::task::spawn_blocking(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        client.complete_io(&mut stream).is_ok()
    });
    shaken.await.unwrap()
}

/// API servers follow a configuration by a watch: until they know the new authority, they trust only the old one.
#[tokio::test]
async fn a_new_authority_is_in_the_configuration_long_before_it_is_used() {
    let world = World::start().await;
    let serve = async |spread| {
        let serving = Serving {
            spread,
            ..Serving::new()
        };
        serving.start(world.client.clone()).await.unwrap()
    };
    let damage = async || {
        let (old, damage) = (
            world.kept("ca.crt").await,
            Patch::Merge(json!({"stringData": {"ca.key": "rubbish"}})),
        );
        let secrets = world.secrets();
        secrets
            .patch(SECRET_NAME, &PatchParams::default(), &damage)
            .await
            .unwrap();
        until("the configuration has a new authority", async || {
            let both = world.kept("ca.crt").await;
            both != old && bundle(&world).await == Some(both)
        })
        .await;
        assert!(world.kept("ca.crt").await.contains(&first(&old)), "the old one stays");
        first(&old)
    };
    let slow = serve(Duration::from_hours(1)).await;
    let old = damage().await;
    assert!(is_trusted(slow.address().unwrap(), &old).await);
    slow.shutdown().await;
    let quick = serve(Duration::from_millis(1)).await;
    let old = damage().await;
    until("the new authority is used", async || {
        !is_trusted(quick.address().unwrap(), &old).await
    })
    .await;
    assert!(is_trusted(quick.address().unwrap(), &world.kept("ca.crt").await).await);
    quick.shutdown().await;
}

/// The first certificate of a text in PEM.
fn first(authorities: &str) -> String {
    let end = "-----END CERTIFICATE-----\n";
    authorities[..authorities.find(end).unwrap() + end.len()].to_owned()
}

/// The authorities in both configurations; none if one has others than the other.
pub(crate) async fn bundle(world: &World) -> Option<String> {
    let mut bundles = Vec::new();
    for of in Configuration::ALL {
        let configuration = world.configuration_of(of).await?;
        let bundle = configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str()?;
        bundles.push(String::from_utf8(BASE64_STANDARD.decode(bundle).unwrap()).unwrap());
    }
    let bundle = bundles.pop()?;
    bundles.iter().all(|other| *other == bundle).then_some(bundle)
}

#[tokio::test]
async fn a_secret_that_is_not_ours_stays_as_it_is() {
    let world = World::start().await;
    let theirs = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET_NAME}, "stringData": {"tls.crt": "theirs"},
    });
    let parameters = PatchParams::apply("another-manager");
    world
        .secrets()
        .patch(SECRET_NAME, &parameters, &Patch::Apply(&theirs))
        .await
        .unwrap();
    let error = Serving::new().start(world.client.clone()).await.unwrap_err();
    assert!(error.to_string().contains("not one of ours"), "{error}");
    assert!(error.hint().unwrap().contains("--webhook-certificate-dir"), "{error:?}");
    assert_eq!(world.kept("tls.crt").await, "theirs");
}

#[tokio::test]
async fn it_is_renewed_before_it_ends_without_a_restart() {
    let world = World::start().await;
    let clock = FakeClock::new(Timestamp::now());
    let serving = Serving {
        clock: Arc::new(clock.clone()),
        ..Serving::new()
    };
    let webhooks = serving.start(world.client.clone()).await.unwrap();
    world.create("a", 5).await;
    world.is_judged("a").await;
    let (authority, certificate) = (world.kept("ca.crt").await, world.kept("tls.crt").await);
    clock.advance(SignedDuration::from_hours(24 * 250));
    until("the certificate is renewed", async || {
        world.kept("tls.crt").await != certificate
    })
    .await;
    assert_eq!(world.kept("ca.crt").await, authority);
    world.is_judged("a").await;
    webhooks.shutdown().await;
}

#[tokio::test]
async fn files_of_the_user_are_served_and_read_again() {
    let world = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving {
        certificates: Certificates::Folder(folder.path().to_owned()),
        ..Serving::new()
    };
    let error = serving.start(world.client.clone()).await.unwrap_err();
    assert!(error.to_string().contains(folder.path().to_str().unwrap()), "{error}");
    write_files(folder.path(), &["elsewhere.example.com"]);
    let error = serving.start(world.client.clone()).await.unwrap_err();
    assert!(error.to_string().contains("127.0.0.1"), "{error}");

    write_files(folder.path(), &["127.0.0.1"]);
    let webhooks = serving.start(world.client.clone()).await.unwrap();
    world.create("a", 5).await;
    world.is_judged("a").await;
    assert!(world.secrets().get_opt(SECRET_NAME).await.unwrap().is_none());

    let before = bundle(&world).await.unwrap();
    // A half-written replacement is not served.
    std::fs::write(folder.path().join("tls.crt"), "rubbish").unwrap();
    world.is_judged("a").await;
    write_files(folder.path(), &["127.0.0.1"]);
    until("the new authority is in both configurations", async || {
        bundle(&world).await.is_some_and(|now| now != before)
    })
    .await;
    world.is_judged("a").await;
    webhooks.shutdown().await;
}
