//! Proxies, and the cache in a folder.

use windlass_fake_providers::Proxy;
use windlass_provider_repository::{Client, Credentials, Proxies, Repository, Settings, Source};

use crate::env::{AWS, AWS_URL, Env, aws, aws_names, refused, settings};

fn repository(settings: Settings, url: &str) -> Repository {
    let client = Client::new(settings).unwrap();
    Repository::new(client, Source::parse(url).unwrap(), aws_names(), Credentials::default()).unwrap()
}

fn proxies(proxy: &str, exempt: &str) -> Proxies {
    let find = |name: &str| match name {
        "HTTPS_PROXY" | "HTTP_PROXY" => Some(proxy.to_owned()),
        "NO_PROXY" => Some(exempt.to_owned()),
        _ => None,
    };
    Proxies::from_env(find).unwrap()
}

#[tokio::test]
async fn what_is_not_exempt_goes_through_the_proxy() {
    let env = Env::new().await;
    env.forge.publish(AWS, &aws("v1.0.0"));
    env.forge.folder("aws/v1.0.0", &aws("v1.0.0").files());
    let proxy = Proxy::start(env.forge.hosts(), Some(("me", "hush"))).await.unwrap();
    // Only the proxy resolves the hosts.
    let behind = |proxies: Proxies| Settings {
        proxies,
        hosts: [].into(),
        ..settings(&env.forge)
    };
    let address = proxy.address();
    let all = behind(proxies(&format!("http://me:hush@{address}"), ""));
    assert!(repository(all.clone(), AWS_URL).files("v1.0.0").await.is_ok());
    assert!(
        repository(all, "http://files.example.com/aws")
            .files("v1.0.0")
            .await
            .is_ok()
    );
    let seen = proxy.seen();
    assert!(seen.contains(&"CONNECT github.com:443 HTTP/1.1".to_owned()), "{seen:?}");
    let plain = "GET http://files.example.com/aws/v1.0.0/metadata.yaml HTTP/1.1".to_owned();
    assert!(seen.contains(&plain), "{seen:?}");
    let unknown = behind(proxies(&format!("http://{address}"), ""));
    let place = format!("http://{address}");
    let words = [place.as_str(), "github.com", "407", "NO_PROXY"];
    refused(repository(unknown, AWS_URL).files("v1.0.0").await, "ProxyError", &words);
    let before = proxy.seen().len();
    let exempt = Settings {
        hosts: env.forge.hosts(),
        ..behind(proxies(&format!("http://{address}"), "*"))
    };
    assert!(repository(exempt, AWS_URL).files("v1.0.0").await.is_ok());
    assert_eq!(proxy.seen().len(), before);
    drop(proxy);
    let gone = behind(proxies(&format!("http://{address}"), ""));
    refused(
        repository(gone, AWS_URL).files("v1.0.0").await,
        "ProxyError",
        &["github.com"],
    );
}

#[tokio::test]
async fn what_is_kept_in_a_folder_is_there_for_the_next_process() {
    let env = Env::new().await;
    env.forge.publish(AWS, &aws("v1.0.0"));
    let folder = tempfile::tempdir().unwrap();
    let with = || Settings {
        kept_in: Some(folder.path().join("kept")),
        ..settings(&env.forge)
    };
    let first = repository(with(), AWS_URL).files("v1.0.0").await.unwrap();
    env.forge.forget();
    assert_eq!(repository(with(), AWS_URL).files("v1.0.0").await.unwrap(), first);
    assert_eq!(env.forge.seen().iter().filter(|seen| seen.status == 304).count(), 2);
}
