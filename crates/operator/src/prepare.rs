//! From a wish to a rendered release: fetches the files, reads what they need, and hands everything to what is pure.

pub(crate) mod read;
pub(crate) mod render;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass_api_operator::{Declared, Fetch, reasons as known};
use windlass_components::metadata::Metadata;
use windlass_components::table;
use windlass_components::version::Version;
use windlass_kit::{Cx, Seen};
use windlass_repository::{Credentials, Files, Names, Repository, Source, configmaps};

use crate::kept::Sealed;
use crate::ports::Operator;
use crate::provider::facts::Facts;
use crate::provider::plan::{Again, Blocked, LOOK_AGAIN, Stage, Wish, contract};

/// A problem of installing.
pub(crate) fn problem(reason: &'static str, message: impl Into<String>) -> Blocked {
    Blocked::new(Stage::Install, reason, message).again(Again::Backoff)
}

/// Fetches and renders what is wished for. Changes nothing.
pub async fn prepare(cx: &Cx, operator: &Operator, facts: &Facts, wish: &Wish) -> Result<Sealed, Blocked> {
    let Ok(declared) = &facts.declared else {
        return Err(problem(known::SPEC_VALIDATION_ERROR, "the declaration cannot be read"));
    };
    let variables = read::variables(cx, operator, declared).await?;
    let (version, files) = fetch(cx, operator, declared, wish, &variables).await?;
    let contract = contract_of(&version, &files.metadata, &files.from)?;
    contract::check(facts, &version, &contract)?;
    let additional = read::manifests(cx, declared).await?;
    let is_managed = read::has_cert_manager(cx).await?;
    let live = read::certificates(cx, &declared.key, declared.type_).await?;
    let Ok(turn) = operator.0.turn.acquire().await else {
        return Err(problem(known::COMPONENTS_FETCH_ERROR, "the operator is ending"));
    };
    let rendered = render::render(&render::Input {
        operator,
        facts,
        declared,
        wish,
        version,
        contract,
        files,
        variables: &variables,
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
            Seen::Failed(why) => return Err(problem(known::COMPONENTS_FETCH_ERROR, why)),
        };
        let again = |error| fetching(&error).again(Again::After(LOOK_AGAIN));
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
    let wrong = |message: String| problem(known::COMPONENTS_FETCH_ERROR, message);
    let metadata = Metadata::parse(metadata).map_err(|error| wrong(format!("metadata of {from}: {error}")))?;
    let parsed = Version::parse(version)
        .map_err(|error| Blocked::new(Stage::Preflight, known::INCORRECT_VERSION_FORMAT, error.to_string()))?;
    let found = metadata.contract(&parsed).map(str::to_owned);
    found.ok_or_else(|| {
        let message = format!(
            "metadata of {from} has no release series for version {version}, so nobody knows its contract; it has {}",
            metadata.known()
        );
        Blocked::new(Stage::Preflight, known::CAPI_VERSION_INCOMPATIBILITY, message).again(Again::Backoff)
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
