//! From a wish to a rendered release: fetches the files, reads what they need, and hands everything to what is pure.

pub(crate) mod read;
pub(crate) mod render;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use sha2::{Digest as _, Sha256};
use windlass_api_operator::{Declared, Fetch, reasons as known};
use windlass_components::metadata::Metadata;
use windlass_components::table;
use windlass_components::version::Version;
use windlass_kit::{Cx, Seen};
use windlass_repository::{Credentials, Files, Names, Repository, Source, configmaps};

use crate::awaited::Awaited;
use crate::kept::Sealed;
use crate::masked::masked;
use crate::objects::hex;
use crate::ports::Operator;
use crate::provider::facts::Facts;
use crate::provider::plan::{Again, Blocked, Stage, Wish, contract, rollback};

/// A problem of installing: something that the release is made of is not as it should be.
pub(crate) fn problem(reason: &'static str, message: impl Into<String>) -> Blocked {
    Blocked::new(Stage::Install, reason, message).again(Again::Input)
}

/// Something that could not be read just now.
pub(crate) fn unread(reason: &'static str, message: impl Into<String>) -> Blocked {
    problem(reason, message).again(Again::Backoff)
}

/// Fetches and renders what is wished for. Changes nothing.
pub async fn prepare(cx: &Cx, operator: &Operator, facts: &Facts, wish: &Wish) -> Result<Sealed, Blocked> {
    let Ok(declared) = &facts.declared else {
        return Err(problem(known::SPEC_VALIDATION_ERROR, "the declaration cannot be read").again(Again::Event));
    };
    let prepared = Box::pin(prepare_declared(cx, operator, facts, declared, wish)).await;
    prepared.map_err(|blocked| {
        let is_inside = matches!(declared.fetch, Fetch::Selector(_));
        let again = match blocked.again {
            Again::Input if is_inside => Again::Event,
            Again::Input => Again::Backoff,
            other => other,
        };
        blocked.again(again).until(inputs(declared))
    })
}

/// The objects that a release is made of.
pub(crate) fn inputs(declared: &Declared) -> Vec<Awaited> {
    let secret = declared.config_secret.as_ref();
    let mut inputs: Vec<_> = secret
        .map(|key| Awaited::one("v1", "Secret", key))
        .into_iter()
        .collect();
    let manifests = declared.manifests.as_ref();
    inputs.extend(manifests.map(|key| Awaited::one("v1", "ConfigMap", key)));
    if let Fetch::Selector(selector) = &declared.fetch {
        let labels = read::selector_text(selector);
        inputs.push(Awaited::labelled("v1", "ConfigMap", &declared.key.namespace, &labels));
    }
    inputs
}

async fn prepare_declared(
    cx: &Cx,
    operator: &Operator,
    facts: &Facts,
    declared: &Declared,
    wish: &Wish,
) -> Result<Sealed, Blocked> {
    let variables = read::variables(cx, declared).await?;
    let prepared = with_variables(cx, operator, facts, declared, wish, &variables).await;
    prepared.map_err(|blocked| Blocked {
        message: masked(&blocked.message, variables.iter().chain(&operator.0.environment)),
        ..blocked
    })
}

async fn with_variables(
    cx: &Cx,
    operator: &Operator,
    facts: &Facts,
    declared: &Declared,
    wish: &Wish,
    variables: &BTreeMap<String, String>,
) -> Result<Sealed, Blocked> {
    let (version, files) = fetch(cx, operator, declared, wish, variables).await?;
    let contract = contract_of(&version, &files.metadata, &files.from)?;
    contract::check(facts, &version, &contract)?;
    let additional = read::manifests(cx, declared).await?;
    let content = content(&files, variables, additional.as_deref());
    if let Some(failed) = facts.next().filter(|_| wish.unless.as_ref() == Some(&content)) {
        return Err(rollback::taken_back(Some(declared), failed));
    }
    let is_managed = read::has_cert_manager(cx).await?;
    let live = read::certificates(cx, &declared.key, declared.type_).await?;
    let Ok(turn) = operator.0.turn.acquire().await else {
        return Err(unread(known::COMPONENTS_FETCH_ERROR, "the operator is ending"));
    };
    let rendered = render::render(&render::Input {
        operator,
        facts,
        declared,
        wish,
        version,
        contract,
        files,
        content,
        variables,
        additional,
        cert_manager: is_managed,
        live,
        now: cx.now(),
    });
    drop(turn);
    let mut prepared = rendered?;
    if facts.current().is_none() && wish.occasion != crate::provider::plan::Occasion::Install {
        let release = &mut prepared.release;
        release.leftovers = read::installed_by_others(cx, declared, &release.index).await?;
    }
    Ok(prepared)
}

/// A hash of what a release is rendered from.
fn content(files: &Files, variables: &BTreeMap<String, String>, additional: Option<&str>) -> String {
    let mut hash = Sha256::new();
    let variables = variables.iter().flat_map(|(name, value)| [name.as_str(), value]);
    let parts = [
        files.components.as_str(),
        &files.metadata,
        additional.unwrap_or_default(),
    ];
    for part in parts.into_iter().chain(variables) {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize()[..16])
}

/// The version and its files.
async fn fetch(
    cx: &Cx,
    operator: &Operator,
    declared: &Declared,
    wish: &Wish,
    variables: &BTreeMap<String, String>,
) -> Result<(String, Files), Blocked> {
    if let Fetch::Selector(selector) = &declared.fetch {
        let text = read::selector_text(selector);
        let namespace = &declared.key.namespace;
        let maps = match cx.list::<ConfigMap>(namespace, &text).await {
            Seen::Found(maps) => maps,
            Seen::NotFound => Vec::new(),
            Seen::Failed(why) => return Err(unread(known::COMPONENTS_FETCH_ERROR, why)),
        };
        let again = |error| fetching(&error).again(Again::Input);
        let shelf = configmaps::read(&maps, namespace, &text).map_err(again)?;
        let version = if let Some(version) = &wish.version {
            version.clone()
        } else {
            let versions = shelf.versions().map_err(again)?;
            let best = windlass_repository::candidates(&versions);
            best.first().map(|best| (*best).to_owned()).unwrap_or_default()
        };
        let files = shelf.files(&version).map_err(again)?;
        return Ok((version, files));
    }
    let source = source(declared)?;
    let names = Names::new(declared.type_, &declared.key.name);
    let lookup = |name: &str| {
        variables
            .get(name)
            .or_else(|| operator.0.environment.get(name))
            .cloned()
    };
    let credentials = Credentials::from_variables(lookup);
    let repository =
        Repository::new(operator.0.client.clone(), source, names, credentials).map_err(|error| fetching(&error))?;
    let version = match &wish.version {
        Some(version) => version.clone(),
        None => repository.default_version().await.map_err(|error| fetching(&error))?,
    };
    let files = repository.files(&version).await.map_err(|error| fetching(&error))?;
    Ok((version, files))
}

fn source(declared: &Declared) -> Result<Source, Blocked> {
    let wrong = |error: windlass_repository::Error| {
        Blocked::new(
            Stage::Preflight,
            known::FETCH_CONFIG_VALIDATION_ERROR,
            error.to_string(),
        )
    };
    match &declared.fetch {
        Fetch::Url(url) => Source::parse(url).map_err(wrong),
        Fetch::Oci(reference) => Source::oci(reference).map_err(wrong),
        Fetch::Default | Fetch::Selector(_) => {
            let Some(entry) = table::lookup(declared.type_, &declared.key.name) else {
                let message = format!(
                    "there is no default place for the files of {} {}: set spec.fetchConfig, or choose one of the names {}",
                    declared.type_,
                    declared.key.name,
                    table::names(declared.type_).collect::<Vec<_>>().join(", ")
                );
                return Err(Blocked::new(Stage::Preflight, known::UNKNOWN_PROVIDER, message));
            };
            Source::parse(entry.url).map_err(wrong)
        }
    }
}

fn fetching(error: &windlass_repository::Error) -> Blocked {
    let reason = match error {
        // GitLab and registries want credentials, too, and no token for GitHub helps there.
        windlass_repository::Error::Unauthorized {
            variables: "GITHUB_TOKEN",
            ..
        } => known::INVALID_GITHUB_TOKEN_ERROR,
        _ => known::COMPONENTS_FETCH_ERROR,
    };
    let blocked = problem(reason, format!("{}: {error}", error.reason()));
    match error.retry_after() {
        Some(wait) => blocked.again(Again::After(wait)),
        None => blocked,
    }
}

/// The contract that a version follows, as its metadata says.
fn contract_of(version: &str, metadata: &str, from: &str) -> Result<String, Blocked> {
    // Without a contract nobody knows whether it fits, which is what comes before everything else.
    let wrong = |message: String| Blocked {
        stage: Stage::Preflight,
        ..problem(known::COMPONENTS_FETCH_ERROR, message)
    };
    let metadata = Metadata::parse(metadata).map_err(|error| wrong(format!("metadata of {from}: {error}")))?;
    let parsed = Version::parse(version)
        .map_err(|error| Blocked::new(Stage::Preflight, known::INCORRECT_VERSION_FORMAT, error.to_string()))?;
    let found = metadata.contract(&parsed).map(str::to_owned);
    found.ok_or_else(|| {
        let message = format!(
            "metadata of {from} has no release series for version {version}, so nobody knows its contract; it has {}",
            metadata.known()
        );
        Blocked::new(Stage::Preflight, known::CAPI_VERSION_INCOMPATIBILITY, message).again(Again::Input)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_github_refuses_is_about_its_token() {
        let reason = |variables| {
            let host = "example.com".to_owned();
            let error = windlass_repository::Error::Unauthorized {
                host,
                sent: true,
                variables,
            };
            fetching(&error).reason
        };
        assert_eq!(reason("GITHUB_TOKEN"), known::INVALID_GITHUB_TOKEN_ERROR);
        assert_eq!(reason("GITLAB_ACCESS_TOKEN"), known::COMPONENTS_FETCH_ERROR);
    }
}
