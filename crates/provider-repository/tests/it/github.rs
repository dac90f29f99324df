//! Releases.

use windlass_api_operator::ProviderType;
use windlass_fake_providers::{Demand, Fault, hosts};
use windlass_provider_repository::{Credentials, Names, Repository, Source};

use crate::env::{AWS, AWS_URL, Env, aws, refused, variables};

#[tokio::test]
async fn exactly_the_two_files_of_the_wanted_release_are_downloaded() {
    // OP-152, OP-153, OP-154
    let env = Env::new().await;
    env.forge.publish("myorg/awesome-azure-provider", &aws("v1.0.0"));
    env.forge.publish("myorg/awesome-azure-provider", &aws("v1.1.0"));
    let url = "https://github.com/myorg/awesome-azure-provider/releases";
    let files = env.at(url).files("v1.0.0").await.unwrap();
    assert_eq!(files.components, aws("v1.0.0").components());
    assert_eq!(files.metadata, aws("v1.0.0").metadata());
    let folder = "github.com/myorg/awesome-azure-provider/releases/download/v1.0.0";
    let both = ["infrastructure-components.yaml", "metadata.yaml"].map(|file| format!("{folder}/{file}"));
    assert_eq!(env.paths("/releases"), both);
    assert!(
        env.forge.seen().iter().all(|seen| seen.path.contains("myorg")),
        "no other repository is asked"
    );
}

#[tokio::test]
async fn kind_and_name_choose_between_files_of_the_same_release() {
    // OP-149
    let env = Env::new().await;
    let url = "https://github.com/kubernetes-sigs/cluster-api/releases";
    for provider in [
        windlass_fake_providers::LookAlike::bootstrap("kubeadm"),
        windlass_fake_providers::LookAlike::control_plane("kubeadm"),
    ] {
        env.forge.publish("kubernetes-sigs/cluster-api", &provider);
    }
    for (type_, file) in [
        (ProviderType::Bootstrap, "bootstrap-components.yaml"),
        (ProviderType::ControlPlane, "control-plane-components.yaml"),
    ] {
        let (source, names) = (Source::parse(url).unwrap(), Names::new(type_, "kubeadm"));
        let repository = Repository::new(env.client.clone(), source, names, Credentials::default()).unwrap();
        let files = repository.files("v1.0.0").await.unwrap();
        assert!(files.from.ends_with(file), "{}", files.from);
        assert!(files.components.contains(&format!("{}-kubeadm-system", type_.word())));
    }
}

#[tokio::test]
async fn the_latest_release_is_the_highest_stable_version_on_all_pages() {
    // OP-012, OP-153
    let env = Env::new().await;
    env.forge.page_size(2);
    for version in ["v1.9.0", "v1.10.0", "v1.2.0", "v2.0.0-rc.0", "nightly"] {
        env.forge.publish(AWS, &aws(version));
    }
    env.forge.draft(AWS, "v3.0.0");
    let repository = env.at(AWS_URL);
    assert_eq!(
        repository.versions().await.unwrap(),
        ["v1.2.0", "v1.9.0", "v1.10.0", "v2.0.0-rc.0"]
    );
    assert_eq!(env.paths("api.github.com").len(), 3);
    assert_eq!(repository.default_version().await.unwrap(), "v1.10.0");
    // A tag exists before its files.
    env.forge.release(AWS, "v1.11.0", &[]);
    assert_eq!(repository.default_version().await.unwrap(), "v1.10.0");
    let pinned = env.at(&format!("{AWS_URL}/v1.2.0/infrastructure-components.yaml"));
    assert_eq!(pinned.default_version().await.unwrap(), "v1.2.0");
}

#[tokio::test]
async fn a_host_of_a_company_has_its_api_behind_its_own_name() {
    // OP-155, OP-169
    let env = Env::new().await;
    env.forge.publish("capi/aws", &aws("v1.0.0"));
    let repository = env.at("https://github.example.com/capi/aws/releases");
    assert_eq!(repository.default_version().await.unwrap(), "v1.0.0");
    assert!(repository.files("v1.0.0").await.is_ok());
    assert_eq!(env.paths("/api/v3/repos/capi/aws/releases").len(), 1);
    assert_eq!(env.paths("api.github.com").len(), 0);
}

#[tokio::test]
async fn private_repositories_are_read_with_a_token_that_stays_with_the_api() {
    let env = Env::new().await;
    env.forge.publish(AWS, &aws("v1.0.0"));
    env.forge.demand(hosts::GITHUB_API, Demand::Token("hush".to_owned()));
    let private = refused(
        env.at(AWS_URL).versions().await,
        "RepositoryNotFound",
        &[AWS_URL, "GITHUB_TOKEN"],
    );
    assert!(private.is_absent());
    refused(
        env.at(AWS_URL).files("v1.0.0").await,
        "RepositoryNotFound",
        &["GITHUB_TOKEN"],
    );
    let wrong = env.with(AWS_URL, variables(&[("GITHUB_TOKEN", "hush-hush")]));
    refused(
        wrong.versions().await,
        "Unauthorized",
        &["api.github.com", "GITHUB_TOKEN were not accepted"],
    );
    env.forge.forget();
    let right = env.with(AWS_URL, variables(&[("github-token", "hush\n")]));
    assert_eq!(right.versions().await.unwrap(), ["v1.0.0"]);
    assert_eq!(
        right.files("v1.0.0").await.unwrap().components,
        aws("v1.0.0").components()
    );
    for seen in env.forge.seen() {
        let expected = (seen.host == hosts::GITHUB_API).then(|| "Bearer hush".to_owned());
        assert_eq!(seen.authorization, expected, "{}", seen.host);
    }
    assert!(env.paths(hosts::GITHUB_FILES).len() >= 2, "files were behind redirects");
}

#[tokio::test]
async fn what_is_not_there_is_said_with_what_is() {
    // OP-140
    let env = Env::new().await;
    env.forge.publish(AWS, &aws("v1.0.0"));
    env.forge.publish(AWS, &aws("v1.1.0"));
    let (components, metadata) = (aws("v1.2.0").components(), aws("v1.2.0").metadata());
    env.forge.release(
        AWS,
        "v1.2.0",
        &[
            ("other.yaml".to_owned(), components.clone()),
            ("metadata.yaml".to_owned(), metadata),
        ],
    );
    env.forge.release(
        AWS,
        "v1.3.0",
        &[("infrastructure-components.yaml".to_owned(), components)],
    );
    for credentials in [Credentials::default(), variables(&[("GITHUB_TOKEN", "hush")])] {
        let repository = env.with(AWS_URL, credentials);
        let words = ["no version \"v9.9.9\"", "there are v1.3.0, v1.2.0, v1.1.0, v1.0.0"];
        refused(repository.files("v9.9.9").await, "VersionNotFound", &words);
        let words = [
            "no file \"infrastructure-components.yaml\"",
            "it has metadata.yaml, other.yaml",
        ];
        refused(repository.files("v1.2.0").await, "FileNotFound", &words);
        refused(
            repository.files("v1.3.0").await,
            "MetadataNotFound",
            &["v1.3.0", "contract"],
        );
    }
    let nothing = env.at("https://github.com/no/body/releases");
    refused(
        nothing.files("v1.0.0").await,
        "RepositoryNotFound",
        &["https://github.com/no/body/releases"],
    );
    env.forge.release("no/versions", "nightly", &[]);
    refused(
        env.at("https://github.com/no/versions/releases").versions().await,
        "VersionNotFound",
        &["v1.2.3"],
    );
}

#[tokio::test]
async fn rate_limits_are_distinguished_from_other_refusals() {
    let env = Env::new().await;
    env.forge.publish(AWS, &aws("v1.0.0"));
    let repository = env.at(AWS_URL);
    for (fault, least, most) in [
        (Fault::RateLimited(1800), 1790, 1801),
        (Fault::TooMany(90), 90, 90),
        (Fault::Burst, 60, 60),
        (Fault::Status(429), 60, 60),
    ] {
        env.forge.heal();
        env.forge.fault("api.github.com", fault.clone(), None);
        let words = ["api.github.com takes no more requests", "until 2", "GITHUB_TOKEN"];
        let error = refused(repository.versions().await, "RateLimited", &words);
        let wait = error.retry_after().unwrap().as_secs();
        assert!(
            (least..=most).contains(&wait) && error.is_passing(),
            "{fault:?}: {wait}"
        );
        let with = env.with(AWS_URL, variables(&[("GITHUB_TOKEN", "hush")]));
        let error = refused(with.versions().await, "RateLimited", &[]);
        assert!(!error.to_string().contains("GITHUB_TOKEN"), "there is a token already");
        assert!(repository.files("v1.0.0").await.is_ok(), "downloads are not limited");
    }
    env.forge.heal();
    env.forge.fault("api.github.com", Fault::Status(403), None);
    let error = refused(
        repository.versions().await,
        "Forbidden",
        &["as the forge was told", "set credentials"],
    );
    assert_eq!(error.retry_after(), None);
}

#[tokio::test]
async fn what_has_not_changed_is_not_sent_again() {
    let env = Env::new().await;
    env.forge.publish(AWS, &aws("v1.0.0"));
    let repository = env.at(AWS_URL);
    let first = (
        repository.versions().await.unwrap(),
        repository.files("v1.0.0").await.unwrap(),
    );
    env.forge.forget();
    assert_eq!(
        (
            repository.versions().await.unwrap(),
            repository.files("v1.0.0").await.unwrap()
        ),
        first
    );
    let statuses: Vec<_> = env
        .forge
        .seen()
        .iter()
        .map(|seen| (seen.conditional, seen.status))
        .collect();
    assert_eq!(
        statuses,
        [(true, 304), (true, 302), (true, 304), (true, 302), (true, 304)]
    );
    let changed = [("infrastructure-components.yaml".to_owned(), "kind: Other".to_owned())];
    env.forge.release(AWS, "v1.0.0", &changed);
    assert_eq!(repository.files("v1.0.0").await.unwrap().components, "kind: Other");
    // Cached content is only for clients that the server authorizes.
    env.forge.demand(hosts::GITHUB_API, Demand::Token("hush".to_owned()));
    refused(repository.versions().await, "RepositoryNotFound", &[]);
}

#[tokio::test]
async fn an_asset_that_is_not_what_its_checksum_says_is_refused() {
    let env = Env::new().await;
    env.forge.publish(AWS, &aws("v1.0.0"));
    env.forge.fault(hosts::GITHUB_FILES, Fault::Changed, None);
    let repository = env.with(AWS_URL, variables(&[("GITHUB_TOKEN", "hush")]));
    let words = ["infrastructure-components.yaml", "expected sha256:", "changed"];
    refused(repository.files("v1.0.0").await, "ChecksumMismatch", &words);
}
