//! Each type of failure has its own error.

use std::time::Duration;

use windlass_fake_providers::{Fault, hosts};
use windlass_provider_repository::{Client, Credentials, Repository, Settings, Source};

use crate::env::{AWS, AWS_URL, Env, aws, aws_names, refused, settings};

const WEB: &str = "https://files.example.com/aws";

async fn env() -> Env {
    let env = Env::new().await;
    env.forge.publish(AWS, &aws("v1.0.0"));
    env.forge.folder("aws/v1.0.0", &aws("v1.0.0").files());
    env
}

#[tokio::test]
async fn every_fault_of_a_server_has_its_own_words() {
    let env = env().await;
    let redirect = |to: &str| Fault::Redirect(to.to_owned());
    let content = |text: &str| Fault::Content(text.to_owned());
    let cases: Vec<(Fault, &str, &[&str])> = vec![
        (
            Fault::Status(500),
            "UnexpectedAnswer",
            &["answers 500 (as the forge was told)", "server has a problem"],
        ),
        (Fault::Status(418), "UnexpectedAnswer", &["answers 418"]),
        (Fault::Status(403), "Forbidden", &["files.example.com does not allow"]),
        (Fault::Truncated, "Truncated", &["bytes of ", "connection broke"]),
        (
            Fault::Html,
            "WebPage",
            &["/aws/v1.0.0/infrastructure-components.yaml", "sign-in page"],
        ),
        (
            Fault::HangUp,
            "Unreachable",
            &["files.example.com", "without an answer"],
        ),
        (
            redirect("http://files.example.com/x"),
            "UnexpectedAnswer",
            &["not protected by TLS"],
        ),
        (
            redirect("https://files.example.com/aws/v1.0.0/"),
            "UnexpectedAnswer",
            &["more than 8 times"],
        ),
        (
            redirect("ftp://files.example.com/x"),
            "UnexpectedAnswer",
            &["not an address"],
        ),
        (content(""), "NotYAML", &["is empty"]),
    ];
    for (fault, reason, words) in cases {
        env.forge.heal();
        env.forge.fault("files.example.com/aws/v1.0.0/", fault, None);
        refused(env.at(WEB).files("v1.0.0").await, reason, words);
    }
    env.forge.heal();
    env.forge.fault("api.github.com", Fault::Html, None);
    refused(env.at(AWS_URL).versions().await, "WebPage", &["api.github.com"]);
    env.forge.heal();
    env.forge
        .fault("api.github.com", Fault::Content("[{}]".to_owned()), None);
    refused(
        env.at(AWS_URL).versions().await,
        "UnexpectedAnswer",
        &["a list of releases"],
    );
    env.forge.heal();
    assert!(env.at(WEB).files("v1.0.0").await.is_ok(), "nothing of it was kept");
}

#[tokio::test]
async fn what_does_not_answer_is_given_up() {
    let env = env().await;
    let client = Client::new(Settings {
        patience: Duration::from_millis(300),
        ..settings(&env.forge)
    })
    .unwrap();
    let repository = Repository::new(client, Source::parse(WEB).unwrap(), aws_names(), Credentials::default()).unwrap();
    for fault in [Fault::Stall, Fault::StallAfterHead] {
        env.forge.heal();
        env.forge.fault("files.example.com", fault, None);
        let error = refused(
            repository.files("v1.0.0").await,
            "TimedOut",
            &["did not answer within 0.3 s"],
        );
        assert!(error.is_passing());
    }
}

#[tokio::test]
async fn what_is_too_long_is_not_read() {
    let env = env().await;
    let client = Client::new(Settings {
        longest: 1000,
        ..settings(&env.forge)
    })
    .unwrap();
    let repository = Repository::new(client, Source::parse(WEB).unwrap(), aws_names(), Credentials::default()).unwrap();
    refused(
        repository.files("v1.0.0").await,
        "TooLarge",
        &["longer than 1000 bytes"],
    );
}

#[tokio::test]
async fn untrusted_certificates_are_named() {
    let env = env().await;
    let untrusted = format!("https://{}/aws", hosts::UNTRUSTED);
    let words = [
        "certificate of untrusted.example.com is not trusted",
        "its issuer is not trusted",
        "PEM",
    ];
    refused(
        env.at(&untrusted).files("v1.0.0").await,
        "CertificateNotTrusted",
        &words,
    );
    assert_eq!(env.forge.count(hosts::UNTRUSTED), 0, "nothing was asked");
    // Without the forge's authority, its certificates are not trusted.
    let client = Client::new(Settings {
        authorities: Vec::new(),
        ..settings(&env.forge)
    })
    .unwrap();
    let repository = Repository::new(client, Source::parse(WEB).unwrap(), aws_names(), Credentials::default()).unwrap();
    refused(
        repository.files("v1.0.0").await,
        "CertificateNotTrusted",
        &["files.example.com"],
    );
    for (pem, words) in [
        ("certificates", "BEGIN CERTIFICATE"),
        ("-----BEGIN CERTIFICATE-----\naGk=\n-----END CERTIFICATE-----\n", ""),
    ] {
        let settings = Settings {
            authorities: vec![pem.to_owned()],
            ..Settings::default()
        };
        refused(
            Client::new(settings).map(|_| ()),
            "CertificateNotTrusted",
            &["extra authorities", words],
        );
    }
}

#[tokio::test]
async fn hosts_that_are_not_there_are_unreachable() {
    let env = env().await;
    // A socket that is bound and does not listen: no other process gets its port.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (gone, plain) = (held.local_addr().unwrap(), env.forge.plain());
    for (address, words) in [(gone, "refused"), (plain, "it does not speak TLS there")] {
        let hosts = [("files.example.com:443".to_owned(), address)].into();
        let client = Client::new(Settings {
            hosts,
            ..settings(&env.forge)
        })
        .unwrap();
        let source = Source::parse(WEB).unwrap();
        let repository = Repository::new(client, source, aws_names(), Credentials::default()).unwrap();
        let error = refused(
            repository.files("v1.0.0").await,
            "Unreachable",
            &["files.example.com", words, "HTTPS_PROXY"],
        );
        assert!(error.is_passing());
    }
}
