//! Packages on GitLab, and web folders.

use windlass_fake_providers::{Demand, hosts};

use crate::env::{Env, aws, refused, variables};

const PACKAGE: &str = "https://gitlab.example.com/api/v4/projects/group%2Fcapi/packages/generic/aws";

#[tokio::test]
async fn packages_are_listed_and_read_with_a_token() {
    let env = Env::new().await;
    env.forge.page_size(1);
    for version in ["v1.0.0", "v1.1.0"] {
        env.forge.package("group%2Fcapi", "aws", version, &aws(version).files());
        env.forge.package("group%2Fcapi", "aws-extra", version, &[]);
    }
    env.forge.demand(hosts::GITLAB, Demand::Token("hush".to_owned()));
    let url = format!("{PACKAGE}/latest/infrastructure-components.yaml");
    let repository = env.with(&url, variables(&[("gitlab-access-token", "hush")]));
    assert_eq!(repository.versions().await.unwrap(), ["v1.0.0", "v1.1.0"]);
    assert_eq!(repository.default_version().await.unwrap(), "v1.1.0");
    assert_eq!(
        repository.files("v1.0.0").await.unwrap().components,
        aws("v1.0.0").components()
    );
    refused(
        repository.files("v3.0.0").await,
        "VersionNotFound",
        &["there are v1.1.0, v1.0.0"],
    );
    refused(
        env.at(&url).versions().await,
        "Unauthorized",
        &["set GITLAB_ACCESS_TOKEN"],
    );
    let pinned = env.at(&format!("{PACKAGE}/v1.0.0/infrastructure-components.yaml"));
    assert_eq!(
        pinned.versions().await.unwrap(),
        ["v1.0.0"],
        "who may not list has what the address names"
    );
    refused(
        pinned.files("v1.0.0").await,
        "Unauthorized",
        &["set GITLAB_ACCESS_TOKEN"],
    );
    let nowhere = env.with(
        &PACKAGE.replace("capi", "nothing"),
        variables(&[("GITLAB_ACCESS_TOKEN", "hush")]),
    );
    refused(
        nowhere.versions().await,
        "RepositoryNotFound",
        &["whether the token may read it"],
    );
}

#[tokio::test]
async fn folders_in_the_web_have_a_folder_for_each_version() {
    let env = Env::new().await;
    for version in ["v1.0.0", "v1.1.0", "v1.2.0-rc.0"] {
        env.forge
            .folder(&format!("providers/aws/{version}"), &aws(version).files());
    }
    let plain = format!("http://{}/providers/aws", env.forge.plain());
    for url in ["https://files.example.com/providers/aws/", &plain] {
        let repository = env.at(url);
        assert_eq!(
            repository.versions().await.unwrap(),
            ["v1.0.0", "v1.1.0", "v1.2.0-rc.0"]
        );
        assert_eq!(repository.default_version().await.unwrap(), "v1.1.0");
        assert_eq!(
            repository.files("v1.0.0").await.unwrap().metadata,
            aws("v1.0.0").metadata()
        );
        refused(
            repository.files("v9.9.9").await,
            "VersionNotFound",
            &["there are v1.2.0-rc.0, v1.1.0, v1.0.0"],
        );
    }
    env.forge.hide_listings();
    let hidden = env.at("https://files.example.com/providers/aws");
    refused(hidden.versions().await, "VersionNotFound", &["set spec.version"]);
    assert!(hidden.files("v1.0.0").await.is_ok());
    refused(hidden.files("v9.9.9").await, "FileNotFound", &["check the address"]);
    let pinned = env.at("https://files.example.com/providers/aws/v1.1.0/infrastructure-components.yaml");
    assert_eq!(pinned.versions().await.unwrap(), ["v1.1.0"]);
    env.forge.demand(hosts::WEB, Demand::Token(String::new()));
    let words = ["files.example.com wants credentials", "ConfigMaps"];
    refused(hidden.files("v1.0.0").await, "Unauthorized", &words);
}
