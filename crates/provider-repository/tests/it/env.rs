//! A forge and a client that finds every host there.

use std::time::Duration;

use windlass_api_operator::ProviderType;
use windlass_fake_providers::{Forge, LookAlike};
use windlass_provider_repository::{Client, Credentials, Error, Names, Repository, Settings, Source};

pub(crate) const AWS: &str = "kubernetes-sigs/cluster-api-provider-aws";
pub(crate) const AWS_URL: &str = "https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases";

pub(crate) struct Env {
    pub(crate) forge: Forge,
    pub(crate) client: Client,
}

/// Settings that trust the forge, and resolve all other names to it as well.
pub(crate) fn settings(forge: &Forge) -> Settings {
    Settings {
        authorities: vec![forge.authority()],
        hosts: forge.hosts(),
        patience: Duration::from_mins(1),
        ..Settings::default()
    }
}

impl Env {
    pub(crate) async fn new() -> Self {
        let forge = Forge::start().await.unwrap();
        let client = Client::new(settings(&forge)).unwrap();
        Self { forge, client }
    }

    pub(crate) fn at(&self, url: &str) -> Repository {
        self.with(url, Credentials::default())
    }

    pub(crate) fn with(&self, url: &str, credentials: Credentials) -> Repository {
        let source = Source::parse(url).unwrap();
        Repository::new(self.client.clone(), source, aws_names(), credentials).unwrap()
    }

    /// The paths of all requests with this text in host and path.
    pub(crate) fn paths(&self, matching: &str) -> Vec<String> {
        let all = self
            .forge
            .seen()
            .into_iter()
            .map(|seen| format!("{}{}", seen.host, seen.path));
        all.filter(|path| path.contains(matching)).collect()
    }
}

pub(crate) fn aws_names() -> Names {
    Names::new(ProviderType::Infrastructure, "aws")
}

pub(crate) fn aws(version: &str) -> LookAlike {
    LookAlike::infrastructure("aws").version(version)
}

/// Credentials from variables.
pub(crate) fn variables(variables: &[(&str, &str)]) -> Credentials {
    let find = |name: &str| {
        variables
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| (*value).to_owned())
    };
    Credentials::from_variables(find)
}

/// Asserts the reason, these words in the message, and that neither form of the error has a secret.
#[track_caller]
pub(crate) fn refused<T>(found: Result<T, Error>, reason: &str, words: &[&str]) -> Error {
    let Err(error) = found else { panic!("expected {reason}") };
    let text = error.to_string();
    assert_eq!(error.reason(), reason, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
    for secret in ["hush", "forged", "issued-by"] {
        assert!(
            !text.contains(secret) && !format!("{error:?}").contains(secret),
            "{error:?}"
        );
    }
    error
}
