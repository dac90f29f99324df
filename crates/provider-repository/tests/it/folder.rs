//! Local folders.

use windlass_provider_repository::{Client, Credentials, Error, Repository, Settings, Source};

use crate::env::{aws, aws_names, refused};

fn repository(url: &str, folders: bool) -> Result<Repository, Error> {
    let client = Client::new(Settings {
        folders,
        ..Settings::default()
    })?;
    Repository::new(client, Source::parse(url)?, aws_names(), Credentials::default())
}

#[tokio::test]
async fn only_command_lines_read_folders() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("infrastructure-aws");
    for version in ["v1.0.0", "v1.1.0"] {
        std::fs::create_dir_all(base.join(version)).unwrap();
        for (name, content) in aws(version).files() {
            std::fs::write(base.join(version).join(name), content).unwrap();
        }
    }
    std::fs::remove_file(base.join("v1.0.0/metadata.yaml")).unwrap();
    let url = format!("file://{}/latest/infrastructure-components.yaml", base.display());
    let found = repository(&url, true).unwrap();
    assert_eq!(found.versions().await.unwrap(), ["v1.0.0", "v1.1.0"]);
    assert_eq!(found.default_version().await.unwrap(), "v1.1.0");
    assert_eq!(
        found.files("v1.1.0").await.unwrap().components,
        aws("v1.1.0").components()
    );
    refused(found.files("v1.0.0").await, "MetadataNotFound", &["v1.0.0"]);
    refused(
        found.files("v2.0.0").await,
        "VersionNotFound",
        &["there are v1.1.0, v1.0.0"],
    );
    refused(found.files("../../etc").await, "VersionNotFound", &[]);
    let other = repository(&url.replace("infrastructure-components", "other"), true).unwrap();
    refused(
        other.files("v1.1.0").await,
        "FileNotFound",
        &["it has infrastructure-components.yaml, metadata.yaml"],
    );
    refused(
        repository(&url, false).map(|_| ()),
        "InvalidFetchURL",
        &["only the command line reads"],
    );
    let words = ["has to be called \"infrastructure-aws\""];
    refused(
        repository("file:///srv/aws/v1.0.0/x.yaml", true).map(|_| ()),
        "InvalidFetchURL",
        &words,
    );
    let missing = repository("file:///nowhere/infrastructure-aws/v1.0.0/x.yaml", true).unwrap();
    refused(missing.versions().await, "Unreadable", &["/nowhere/infrastructure-aws"]);
}
