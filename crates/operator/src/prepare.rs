//! The files of a desired release, and the release rendered from them. Reads only; everything that is decided about a release is in its
//! plan.

pub(crate) mod read;
pub(crate) mod render;
pub(crate) mod renew;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use sha2::{Digest as _, Sha256};
use windlass_api_operator::{Declared, Fetch, reasons as known};
use windlass_controller_runtime::{Cx, Seen, Until};
use windlass_provider_components::metadata::Metadata;
use windlass_provider_components::table;
use windlass_provider_components::version::Version;
use windlass_provider_repository::{Credentials, Files, Names, Repository, Source, configmaps};

use crate::kept::Sealed;
use crate::masked::masked;
use crate::objects::hex;
use crate::ports::Operator;
use crate::provider::blocked::{Blocked, Stage};
use crate::provider::desired::{DesiredRelease, Occasion, inputs, is_remote, selector_text};
use crate::provider::facts::{Facts, Fetched, Recipe};

/// A defect of the objects or files that a release is made of. It ends when they change; no watch shows that of remote files.
pub(crate) fn problem(declared: &Declared, reason: &'static str, message: impl Into<String>) -> Blocked {
    let until = if is_remote(declared) {
        Until::Backoff
    } else {
        Until::Event
    };
    Blocked::new(Stage::Install, reason, message).until(until)
}

/// A failed read.
pub(crate) fn unread(reason: &'static str, message: impl Into<String>) -> Blocked {
    Blocked::new(Stage::Install, reason, message).until(Until::Backoff)
}

/// Fetches everything that a release is made of.
pub async fn fetch(cx: &Cx, operator: &Operator, facts: &Facts, desired: &DesiredRelease) -> Result<Fetched, Blocked> {
    let declared = readable(facts)?;
    let fetched = Box::pin(fetch_declared(cx, operator, declared, desired)).await;
    fetched.map_err(|blocked| blocked.awaiting(inputs(declared)))
}

/// Renders a release from what was fetched.
pub async fn render(cx: &Cx, operator: &Operator, facts: &Facts, desired: &DesiredRelease) -> Result<Sealed, Blocked> {
    let declared = readable(facts)?;
    let Some(Ok(fetched)) = &facts.fetched else {
        return Err(unread(known::COMPONENTS_FETCH_ERROR, "the files have not been fetched"));
    };
    let rendered = Box::pin(render_fetched(cx, operator, facts, declared, desired, fetched)).await;
    let rendered = rendered.map_err(|blocked| hide_values(blocked, operator, &fetched.variables));
    rendered.map_err(|blocked| blocked.awaiting(inputs(declared)))
}

fn readable(facts: &Facts) -> Result<&Declared, Blocked> {
    let wrong = |_| {
        Blocked::new(
            Stage::Install,
            known::SPEC_VALIDATION_ERROR,
            "the declaration cannot be read",
        )
    };
    facts.declared.as_ref().map_err(wrong)
}

/// Without the values of variables in the message.
fn hide_values(blocked: Blocked, operator: &Operator, variables: &BTreeMap<String, String>) -> Blocked {
    Blocked {
        message: masked(&blocked.message, variables.iter().chain(&operator.0.environment)),
        ..blocked
    }
}

async fn fetch_declared(
    cx: &Cx,
    operator: &Operator,
    declared: &Declared,
    desired: &DesiredRelease,
) -> Result<Fetched, Blocked> {
    let variables = read::variables(cx, declared).await?;
    match with_variables(cx, operator, declared, desired, &variables).await {
        Ok((version, contract, files)) => {
            let additional = read::manifests(cx, declared).await;
            let recipe = additional.map(|additional| Recipe {
                content: content(&files, &variables, additional.as_deref()),
                additional,
            });
            let recipe =
                recipe.map_err(|blocked| hide_values(blocked, operator, &variables).awaiting(inputs(declared)));
            Ok(Fetched {
                version,
                contract,
                files,
                variables,
                recipe,
            })
        }
        Err(blocked) => Err(hide_values(blocked, operator, &variables)),
    }
}

/// The version, its contract and its files.
async fn with_variables(
    cx: &Cx,
    operator: &Operator,
    declared: &Declared,
    desired: &DesiredRelease,
    variables: &BTreeMap<String, String>,
) -> Result<(String, String, Files), Blocked> {
    let (version, files) = download(cx, operator, declared, desired, variables).await?;
    let contract = contract_of(declared, &version, &files.metadata, &files.from)?;
    Ok((version, contract, files))
}

async fn render_fetched(
    cx: &Cx,
    operator: &Operator,
    facts: &Facts,
    declared: &Declared,
    desired: &DesiredRelease,
    fetched: &Fetched,
) -> Result<Sealed, Blocked> {
    let recipe = fetched.recipe.as_ref().map_err(Clone::clone)?;
    let is_managed = read::has_cert_manager(cx).await?;
    let live = read::certificates(cx, &declared.key, declared.type_).await?;
    let Ok(turn) = operator.0.turn.acquire().await else {
        return Err(unread(known::COMPONENTS_FETCH_ERROR, "the operator is ending"));
    };
    let rendered = render::render(&render::Input {
        operator,
        facts,
        declared,
        desired,
        fetched,
        recipe,
        cert_manager: is_managed,
        live,
        now: cx.now(),
    });
    drop(turn);
    let mut sealed = rendered?;
    let is_adopted = facts.current().is_none() && desired.occasion != Occasion::Install;
    // What others have changed no longer says what was left.
    if is_adopted || facts.finding().is_some() {
        let release = &mut sealed.release;
        release.leftovers = read::installed_by_others(cx, declared, &release.index).await?;
    }
    Ok(sealed)
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
async fn download(
    cx: &Cx,
    operator: &Operator,
    declared: &Declared,
    desired: &DesiredRelease,
    variables: &BTreeMap<String, String>,
) -> Result<(String, Files), Blocked> {
    if let Fetch::Selector(selector) = &declared.fetch {
        let text = selector_text(selector);
        let namespace = &declared.key.namespace;
        let maps = match cx.list::<ConfigMap>(namespace, &text).await {
            Seen::Found(maps) => maps,
            Seen::NotFound => Vec::new(),
            Seen::Failed(why) => return Err(unread(known::COMPONENTS_FETCH_ERROR, why)),
        };
        let wrong = |error| Blocked {
            until: Until::Event,
            ..fetching(declared, &error)
        };
        let shelf = configmaps::read(&maps, namespace, &text).map_err(wrong)?;
        let version = if let Some(version) = &desired.version {
            version.clone()
        } else {
            let versions = shelf.versions().map_err(wrong)?;
            let best = windlass_provider_repository::candidates(&versions);
            best.first().map(|best| (*best).to_owned()).unwrap_or_default()
        };
        let files = shelf.files(&version).map_err(wrong)?;
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
    let repository = Repository::new(operator.0.client.clone(), source, names, credentials)
        .map_err(|error| fetching(declared, &error))?;
    let version = match &desired.version {
        Some(version) => version.clone(),
        None => repository
            .default_version()
            .await
            .map_err(|error| fetching(declared, &error))?,
    };
    let files = repository
        .files(&version)
        .await
        .map_err(|error| fetching(declared, &error))?;
    Ok((version, files))
}

fn source(declared: &Declared) -> Result<Source, Blocked> {
    let wrong = |error: windlass_provider_repository::Error| {
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

fn fetching(declared: &Declared, error: &windlass_provider_repository::Error) -> Blocked {
    let reason = match error {
        // GitLab and registries want credentials, too, and no token for GitHub helps there.
        windlass_provider_repository::Error::Unauthorized {
            variables: "GITHUB_TOKEN",
            ..
        } => known::INVALID_GITHUB_TOKEN_ERROR,
        _ => known::COMPONENTS_FETCH_ERROR,
    };
    let blocked = problem(declared, reason, format!("{}: {error}", error.reason()));
    match error.retry_after() {
        Some(wait) => blocked.until(Until::After(wait)),
        None => blocked,
    }
}

/// The contract that a version follows, by its metadata.
fn contract_of(declared: &Declared, version: &str, metadata: &str, from: &str) -> Result<String, Blocked> {
    // Without a contract no preflight check can pass.
    let wrong = |reason, message: String| Blocked {
        stage: Stage::Preflight,
        ..problem(declared, reason, message)
    };
    let metadata = Metadata::parse(metadata).map_err(|error| {
        let message = format!("metadata of {from}: {error}");
        wrong(known::COMPONENTS_FETCH_ERROR, message)
    })?;
    let parsed = Version::parse(version)
        .map_err(|error| Blocked::new(Stage::Preflight, known::INCORRECT_VERSION_FORMAT, error.to_string()))?;
    let found = metadata.contract(&parsed).map(str::to_owned);
    found.ok_or_else(|| {
        let message = format!(
            "metadata of {from} has no release series for version {version}, so its contract is unknown; it has {}",
            metadata.known()
        );
        wrong(known::CAPI_VERSION_INCOMPATIBILITY, message)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_api_operator::{ProviderObject as _, operator};

    use super::*;

    #[test]
    fn only_what_github_refuses_is_about_its_token() {
        let object: operator::CoreProvider = serde_json::from_value(json!({
            "apiVersion": "operator.cluster.x-k8s.io/v1alpha2", "kind": "CoreProvider",
            "metadata": {"name": "cluster-api", "namespace": "n"}, "spec": {},
        }))
        .unwrap();
        let declared = object.declared().unwrap();
        let reason = |variables| {
            let host = "example.com".to_owned();
            let error = windlass_provider_repository::Error::Unauthorized {
                host,
                sent: true,
                variables,
            };
            fetching(&declared, &error).reason
        };
        assert_eq!(reason("GITHUB_TOKEN"), known::INVALID_GITHUB_TOKEN_ERROR);
        assert_eq!(reason("GITLAB_ACCESS_TOKEN"), known::COMPONENTS_FETCH_ERROR);
    }
}
