//! Rules for declarations beyond their schemas. Pure. Admission refuses declarations that break these rules, and controllers do not act on
//! them, so that the rules hold without a webhook as well.

use serde_json::json;
use windlass_api::kind::ApiKind;
use windlass_api_ext::addons::{HelmChartProxy, HelmOptions, HelmReleaseProxy, TLSConfig};
use windlass_contract::Selector;
use windlass_meta::{GoDuration, MAX_LABEL_LENGTH};
use windlass_schema::{FieldError, Kind};

use crate::{steps, version};

/// The error of an immutable field that has changed.
const IMMUTABLE: &str = "field is immutable";

/// What is wrong with a HelmChartProxy that is created, or changed from what it was. What was wrong before is no reason to refuse
/// a change: it has to be possible to delete what came before these rules.
pub fn chart_proxy(old: Option<&HelmChartProxy>, new: &HelmChartProxy) -> Vec<FieldError> {
    let problems = |proxy| {
        let mut errors = chart_problems(proxy);
        errors.extend(selector_problem(proxy));
        errors
    };
    let mut errors = problems(new);
    if let Some(old) = old {
        let before = problems(old);
        errors.retain(|error| !before.contains(error));
        if old.spec.is_install_once() != new.spec.is_install_once() {
            let strategy = json!(new.spec.reconcile_strategy.as_deref().unwrap_or_default());
            errors.push(FieldError::invalid("spec.reconcileStrategy", strategy, IMMUTABLE));
        }
    } else if new.key().name.len() > MAX_LABEL_LENGTH {
        let limit =
            format!("may not be more than {MAX_LABEL_LENGTH} bytes, as it is the value of a label of its releases");
        errors.push(FieldError::new("metadata.name", Kind::TooLong, None, limit));
    }
    errors
}

/// Why nothing can be installed from a HelmChartProxy. Errors of its selector are not included: they concern the place, not the chart.
pub fn chart_problems(proxy: &HelmChartProxy) -> Vec<FieldError> {
    let spec = &proxy.spec;
    let mut errors = problems(&Wanted {
        chart_name: &spec.chart_name,
        repo_url: &spec.repo_url,
        tls: spec.tls_config.as_ref(),
        version: spec.version.as_deref(),
        release_name: spec.release_name(),
        namespace: spec.release_namespace(),
        options: spec.options.as_ref(),
    });
    errors.extend(steps::problems(spec.rollout.as_ref()));
    errors
}

/// Why nothing can be installed from a HelmReleaseProxy: the same rules, as a user may have written it by hand.
pub fn release_problems(proxy: &HelmReleaseProxy) -> Vec<FieldError> {
    let spec = &proxy.spec;
    problems(&Wanted {
        chart_name: &spec.chart_name,
        repo_url: &spec.repo_url,
        tls: spec.tls_config.as_ref(),
        version: spec.version(),
        release_name: spec.release_name(),
        namespace: spec.release_namespace(),
        options: spec.options.as_ref(),
    })
}

/// The fields of a release that both kinds have.
struct Wanted<'a> {
    chart_name: &'a str,
    repo_url: &'a str,
    tls: Option<&'a TLSConfig>,
    version: Option<&'a str>,
    release_name: Option<&'a str>,
    namespace: &'a str,
    options: Option<&'a HelmOptions>,
}

fn problems(wanted: &Wanted<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if wanted.chart_name.is_empty() {
        errors.push(FieldError::required(
            "spec.chartName",
            "expected the name of a chart in the repository",
        ));
    } else if !is_chart_name(wanted.chart_name) {
        let why = "expected the name of a chart in the repository: letters, digits, '-', '_' and '.', a letter or digit first; parts \
                   of a path in a registry are joined by '/'";
        errors.push(FieldError::invalid("spec.chartName", json!(wanted.chart_name), why));
    }
    if let Err(why) = repository(wanted.repo_url, wanted.tls) {
        let shown = json!(shown_url(wanted.repo_url));
        errors.push(FieldError::invalid("spec.repoURL", shown, why));
    }
    if let Some(version) = wanted.version.filter(|version| !version.is_empty())
        && let Some(why) = version::problem(version)
    {
        errors.push(FieldError::invalid("spec.version", json!(version), why));
    }
    if let Some(name) = wanted.release_name
        && let Some(why) = release_name_problem(name)
    {
        errors.push(FieldError::invalid("spec.releaseName", json!(name), why));
    }
    if !is_label(wanted.namespace) {
        let why = "expected the name of a namespace: up to 63 lower-case letters, digits and dashes";
        errors.push(FieldError::invalid("spec.namespace", json!(wanted.namespace), why));
    }
    if let Some(timeout) = wanted.options.and_then(|options| options.timeout.as_deref())
        && !timeout.is_empty()
        && let Err(why) = timeout.parse::<GoDuration>()
    {
        let why = why.to_string();
        errors.push(FieldError::invalid("spec.options.timeout", json!(timeout), why));
    }
    errors
}

/// Why it cannot be said which Clusters a HelmChartProxy means.
pub fn selector_problem(proxy: &HelmChartProxy) -> Option<FieldError> {
    let error = Selector::parse(&proxy.spec.cluster_selector).err()?;
    let field = format!("spec.clusterSelector.{}", error.field);
    Some(FieldError::invalid(field, json!(error.value), error.expected))
}

/// What is wrong with a change of a HelmReleaseProxy.
pub fn release_proxy(old: &HelmReleaseProxy, new: &HelmReleaseProxy) -> Vec<FieldError> {
    let (was, is) = (&old.spec, &new.spec);
    let mut errors = Vec::new();
    let mut changed = |field: &str, value: &str| {
        errors.push(FieldError::invalid(format!("spec.{field}"), json!(value), IMMUTABLE));
    };
    if was.repo_url != is.repo_url {
        changed("repoURL", &shown_url(&is.repo_url));
    }
    if was.chart_name != is.chart_name {
        changed("chartName", &is.chart_name);
    }
    if was.release_namespace() != is.release_namespace() {
        changed("namespace", is.release_namespace());
    }
    if was.release_name().is_some() && was.release_name() != is.release_name() {
        changed("releaseName", is.release_name().unwrap_or_default());
    }
    if was.is_install_once() != is.is_install_once() {
        changed(
            "reconcileStrategy",
            is.reconcile_strategy.as_deref().unwrap_or_default(),
        );
    }
    errors
}

/// Whether charts may be fetched from a repository: from an index over HTTPS, or from a registry. A declaration that disables the verification
/// of certificates says that the connection needs no protection, and may name an index over plain HTTP as well.
pub fn repository(url: &str, tls: Option<&TLSConfig>) -> Result<(), String> {
    const EXPECTED: &str = "expected https://HOST/PATH for an index of charts, or oci://HOST/PATH for a registry";
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(EXPECTED.to_owned());
    };
    let may_be_plain = tls.and_then(|tls| tls.insecure_skip_tls_verify) == Some(true);
    match scheme {
        "oci" => {}
        _ if scheme.eq_ignore_ascii_case("oci") => return Err("expected oci:// in lower case".to_owned()),
        _ if scheme.eq_ignore_ascii_case("https") => {}
        _ if scheme.eq_ignore_ascii_case("http") && may_be_plain => {}
        _ if scheme.eq_ignore_ascii_case("http") => {
            return Err(format!(
                "{EXPECTED}; plain http is only used where spec.tlsConfig.insecureSkipTLSVerify is true"
            ));
        }
        _ => return Err(EXPECTED.to_owned()),
    }
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(format!("{EXPECTED}, without blanks"));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (login, authority) = authority.rsplit_once('@').unwrap_or(("", authority));
    if scheme == "oci" && !login.is_empty() {
        return Err(
            "expected oci://HOST/PATH without a login: spec.credentials names the Secret with that of a registry"
                .to_owned(),
        );
    }
    let host = authority.strip_prefix('[').map_or_else(
        || authority.split(':').next().unwrap_or_default(),
        |v6| v6.split(']').next().unwrap_or_default(),
    );
    if host.is_empty() {
        Err(format!("{EXPECTED}: the host is missing"))
    } else {
        Ok(())
    }
}

/// A URL as it may be shown: without what stands before an `@`, which may be a password.
pub fn shown_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://***@{host}{path}"),
        None => url.to_owned(),
    }
}

/// Nothing that could be read as a flag, a file or a URL.
fn is_chart_name(name: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    name.len() <= 250 && name.split('/').all(part)
}

/// Why Helm refuses a name for a release.
pub fn release_name_problem(name: &str) -> Option<&'static str> {
    let good = name.len() <= 53 && name.split('.').all(is_label);
    (!good).then_some("expected the name of a release: up to 53 lower-case letters, digits, '-' and '.', a letter or digit first and last")
}

fn is_label(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty()
        && text.len() <= MAX_LABEL_LENGTH
        && text.bytes().all(fits)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests;
