//! Artifacts in registries.

use bytes::Bytes;
use windlass_fake_providers::{Demand, Fault, hosts};
use windlass_provider_repository::{Credentials, Repository, Source, publish};

use crate::env::{Env, aws, aws_names, refused, variables};

impl Env {
    fn oci(&self, reference: &str, credentials: Credentials) -> Repository {
        let source = Source::oci(reference).unwrap();
        Repository::new(self.client.clone(), source, aws_names(), credentials).unwrap()
    }
}

type Variables<'a> = &'a [(&'a str, &'a str)];

const AWS: &str = "registry.example.com/capi/aws";

fn none() -> Credentials {
    Credentials::default()
}

#[tokio::test]
async fn the_version_is_the_tag_where_the_address_has_none() {
    let env = Env::new().await;
    env.forge.page_size(1);
    for version in ["v1.0.0", "v1.1.0", "edge"] {
        env.forge.artifact("capi/aws", version, &aws(version).files());
    }
    let repository = env.oci(AWS, none());
    assert_eq!(repository.versions().await.unwrap(), ["v1.0.0", "v1.1.0"]);
    assert_eq!(repository.default_version().await.unwrap(), "v1.1.0");
    assert_eq!(
        repository.files("v1.0.0").await.unwrap().components,
        aws("v1.0.0").components()
    );
    assert!(
        env.paths(hosts::REGISTRY_FILES).len() >= 2,
        "blobs were behind redirects"
    );
    refused(
        repository.files("v2.0.0").await,
        "VersionNotFound",
        &["registry.example.com/capi/aws", "v1.1.0, v1.0.0"],
    );
    refused(
        env.oci("registry.example.com/no", none()).files("v1.0.0").await,
        "RepositoryNotFound",
        &["OCI_USERNAME"],
    );
    let tagged = env.oci(&format!("{AWS}:v1.1.0"), none());
    assert_eq!(tagged.default_version().await.unwrap(), "v1.1.0");
    assert_eq!(tagged.versions().await.unwrap(), ["v1.1.0"]);
    let edge = env.oci(&format!("{AWS}:edge"), none());
    assert!(
        edge.files("v7.0.0").await.is_ok(),
        "a tag that is no version has whatever it has"
    );
    refused(edge.versions().await, "VersionNotFound", &["set spec.version"]);
    refused(
        env.oci(&format!("{AWS}:gone"), none()).files("v1.0.0").await,
        "VersionNotFound",
        &["\"gone\""],
    );
}

#[tokio::test]
async fn the_most_precise_name_of_a_file_wins() {
    let env = Env::new().await;
    let file = |name: &str| (name.to_owned(), format!("kind: {name}"));
    let all = [
        "components.yaml",
        "infrastructure-components.yaml",
        "infrastructure-aws-v1.0.0-components.yaml",
        "infrastructure-aws-v1.1.0-components.yaml",
        "infrastructure-awsome-v9.0.0-components.yaml",
        "metadata.yaml",
        "infrastructure-aws-v1.0.0-metadata.yaml",
    ];
    env.forge.artifact("capi/all", "many", &all.map(file));
    let many = env.oci("registry.example.com/capi/all:many", none());
    let check = |components: &str, metadata: &str| (format!("kind: {components}"), format!("kind: {metadata}"));
    for (version, expected) in [
        ("v1.0.0", check(all[2], all[6])),
        ("v1.1.0", check(all[3], all[5])),
        ("v1.2.0", check(all[1], all[5])),
    ] {
        let files = many.files(version).await.unwrap();
        assert_eq!((files.components, files.metadata), expected);
    }
    assert_eq!(many.versions().await.unwrap(), ["v1.0.0", "v1.1.0"]);
    env.forge.artifact("capi/few", "v1.0.0", &[file("components.yaml")]);
    refused(
        env.oci("registry.example.com/capi/few", none()).files("v1.0.0").await,
        "MetadataNotFound",
        &["v1.0.0"],
    );
    env.forge.artifact("capi/none", "v1.0.0", &[file("metadata.yaml")]);
    let words = [
        "infrastructure-components.yaml or components.yaml",
        "it has metadata.yaml",
    ];
    refused(
        env.oci("registry.example.com/capi/none", none()).files("v1.0.0").await,
        "FileNotFound",
        &words,
    );
    let parts = [vec![file("components.yaml")], vec![file("metadata.yaml")]];
    env.forge.artifact_index("capi/index", "v1.0.0", &parts);
    assert!(
        env.oci("registry.example.com/capi/index", none())
            .files("v1.0.0")
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn credentials_are_what_the_registry_asks_for() {
    let env = Env::new().await;
    env.forge.artifact("capi/aws", "v1.0.0", &aws("v1.0.0").files());
    let login = [("OCI_USERNAME", "me"), ("OCI_PASSWORD", "hush")];
    let wrong_login = [("OCI_USERNAME", "me"), ("OCI_PASSWORD", "hush-hush")];
    let (token, refresh) = ([("OCI_ACCESS_TOKEN", "hush")], [("OCI_REFRESH_TOKEN", "hush")]);
    let (wrong_token, wrong_refresh) = (
        [("OCI_ACCESS_TOKEN", "hush-hush")],
        [("OCI_REFRESH_TOKEN", "hush-hush")],
    );
    let (me, hush) = ("me".to_owned(), "hush".to_owned());
    let cases: [(Demand, Variables<'_>, Variables<'_>); 4] = [
        (Demand::Basic(me.clone(), hush.clone()), &login, &wrong_login),
        (Demand::Login(me, hush.clone()), &login, &wrong_login),
        (Demand::Token(hush.clone()), &token, &wrong_token),
        (Demand::Refresh(hush), &refresh, &wrong_refresh),
    ];
    for (demand, right, wrong) in cases {
        env.forge.demand(hosts::REGISTRY, demand.clone());
        env.forge.forget();
        assert!(
            env.oci(AWS, variables(right)).files("v1.0.0").await.is_ok(),
            "{demand:?}"
        );
        let storage: Vec<_> = env
            .forge
            .seen()
            .into_iter()
            .filter(|seen| seen.host == hosts::REGISTRY_FILES)
            .collect();
        assert!(
            storage.len() == 2 && storage.iter().all(|seen| seen.authorization.is_none()),
            "{storage:?}"
        );
        let words = ["those in OCI_USERNAME and OCI_PASSWORD"];
        refused(
            env.oci(AWS, variables(wrong)).files("v1.0.0").await,
            "Unauthorized",
            &words,
        );
        refused(
            env.oci(AWS, none()).files("v1.0.0").await,
            "Unauthorized",
            &["set OCI_USERNAME"],
        );
    }
    env.forge.demand(hosts::REGISTRY, Demand::Anonymous);
    assert!(
        env.oci(AWS, none()).files("v1.0.0").await.is_ok(),
        "a token for everybody"
    );
}

#[tokio::test]
async fn content_that_is_not_what_its_digest_says_is_refused() {
    let env = Env::new().await;
    env.forge.artifact("capi/aws", "v1.0.0", &aws("v1.0.0").files());
    let repository = env.oci(AWS, none());
    env.forge.fault("/manifests/", Fault::Changed, Some(1));
    refused(
        repository.files("v1.0.0").await,
        "ChecksumMismatch",
        &["/manifests/v1.0.0"],
    );
    env.forge.fault(hosts::REGISTRY_FILES, Fault::Changed, Some(1));
    refused(
        repository.files("v1.0.0").await,
        "ChecksumMismatch",
        &["infrastructure-components.yaml"],
    );
    env.forge
        .fault(hosts::REGISTRY_FILES, Fault::Content("kind: X".to_owned()), Some(1));
    refused(repository.files("v1.0.0").await, "Truncated", &["7 bytes of "]);
    assert!(repository.files("v1.0.0").await.is_ok());
}

#[tokio::test]
async fn what_is_published_is_read_again() {
    let env = Env::new().await;
    let content = |text: String| Bytes::from(text);
    let files: Vec<_> = aws("v1.0.0")
        .files()
        .into_iter()
        .map(|(name, text)| (name, content(text)))
        .collect();
    let credentials = variables(&[("OCI_USERNAME", "me"), ("OCI_PASSWORD", "hush")]);
    let plain = env.forge.plain();
    env.forge
        .demand(hosts::REGISTRY, Demand::Login("me".to_owned(), "hush".to_owned()));
    env.forge
        .demand(&plain.to_string(), Demand::Login("me".to_owned(), "hush".to_owned()));
    for place in [AWS.to_owned(), format!("http://{plain}/capi/plain")] {
        let tagged = format!("{place}:v1.0.0");
        let digest = publish(&env.client, &tagged, &files, &credentials.oci).await.unwrap();
        let found = env.oci(&place, credentials.clone()).files("v1.0.0").await.unwrap();
        assert_eq!(found.components, aws("v1.0.0").components());
        let by_digest = env.oci(&format!("{place}@{digest}"), credentials.clone());
        assert!(by_digest.files("v1.0.0").await.is_ok());
        refused(
            publish(&env.client, &tagged, &files, &none().oci).await,
            "Unauthorized",
            &["set OCI_USERNAME"],
        );
        refused(
            publish(&env.client, &place, &files, &credentials.oci).await,
            "InvalidFetchURL",
            &["needs a tag"],
        );
    }
}
