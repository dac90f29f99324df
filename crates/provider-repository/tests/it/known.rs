//! The providers that are known by name.

use windlass_api_operator::ProviderType;
use windlass_provider_components::table;
use windlass_provider_repository::{Credentials, Names, Repository, Source};

use crate::env::{Env, aws, aws_names};

#[tokio::test]
async fn every_known_provider_has_an_address_that_can_be_fetched_from() {
    // OP-148
    let env = Env::new().await;
    for entry in table::all() {
        let source = Source::parse(entry.url).unwrap();
        assert_eq!(source.pinned(), None, "{}", entry.url);
        assert_eq!(source.to_string(), entry.releases());
        let names = Names::new(entry.type_, entry.name);
        let repository = Repository::new(env.client.clone(), source, names, Credentials::default()).unwrap();
        assert_eq!(repository.components_file(), entry.file());
    }
    assert_eq!(env.forge.seen(), [], "no request before the first need");
}

#[tokio::test]
async fn a_provider_that_is_known_is_fetched_from_where_its_releases_are() {
    // OP-147, OP-150
    let env = Env::new().await;
    for (name, releases) in [
        (
            "aws",
            "https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases",
        ),
        (
            "vsphere",
            "https://github.com/kubernetes-sigs/cluster-api-provider-vsphere/releases",
        ),
    ] {
        let entry = table::lookup(ProviderType::Infrastructure, name).unwrap();
        assert_eq!(entry.releases(), releases);
    }
    env.forge
        .publish("kubernetes-sigs/cluster-api-provider-aws", &aws("v2.0.0"));
    let entry = table::lookup(ProviderType::Infrastructure, "aws").unwrap();
    let source = Source::parse(entry.url).unwrap();
    let repository = Repository::new(env.client.clone(), source, aws_names(), Credentials::default()).unwrap();
    assert_eq!(repository.default_version().await.unwrap(), "v2.0.0");
    assert_eq!(
        repository.files("v2.0.0").await.unwrap().components,
        aws("v2.0.0").components()
    );
}
