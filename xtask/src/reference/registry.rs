//! Metrics and field managers, from the registry of controllers.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;
use windlass_controller_runtime::{MetricKind, Runtime};
use windlass_manager::registry::controllers::{self, Ports};
use windlass_manager::registry::metrics::all;

use super::{code, table};
use crate::sources;

/// The page about metrics.
pub(super) fn metrics() -> String {
    let rows: Vec<Vec<String>> = all()
        .iter()
        .map(|metric| {
            let (name, kind) = match metric.kind {
                MetricKind::Counter => (format!("{}_total", metric.name), "counter"),
                MetricKind::Gauge => (metric.name.to_owned(), "gauge"),
                MetricKind::Histogram => (metric.name.to_owned(), "histogram"),
            };
            let labels: Vec<String> = metric.labels.iter().map(|label| code(label)).collect();
            vec![code(&name), kind.to_owned(), labels.join(", "), metric.help.to_owned()]
        })
        .collect();
    let head =
        "# Metrics\n\n`--diagnostics-address` of `windlass up` and `windlass manager` serves them at `/metrics`.\n\n";
    format!("{head}{}", table(&["name", "type", "labels", "meaning"], &rows))
}

/// The page about field managers and finalizers.
pub(super) fn field_managers(root: &Path) -> Result<String, String> {
    let mut known = BTreeSet::new();
    let mut rows = Vec::new();
    for entry in entries()? {
        let kind = format!("{}.{}", entry.kind().kind, entry.kind().group);
        known.extend([entry.manager().to_owned(), entry.status_manager().to_owned()]);
        rows.push(vec![
            code(entry.name()),
            kind,
            code(entry.manager()),
            code(entry.status_manager()),
            entry.finalizer().map(code).unwrap_or_default(),
        ]);
    }
    let head = ["controller", "kind", "metadata and finalizer", "status", "finalizer"];
    let mut text = "# Field managers\n\n## Controllers\n\nWhile an object is paused, the manager `<status manager>-paused` owns the condition Paused.\n\n".to_owned();
    text.push_str(&table(&head, &rows));
    text.push_str("## Other field managers\n\n");
    text.push_str(&table(&["field manager", "crate"], &others(root, &known)?));
    Ok(text)
}

/// All controllers, on a server that receives no requests.
fn entries() -> Result<Vec<windlass_controller_runtime::ControllerEntry>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let _inside = runtime.enter();
    let address = "http://127.0.0.1:1".parse().map_err(|error| format!("{error}"))?;
    let client = kube::Client::try_from(kube::Config::new(address)).map_err(|error| error.to_string())?;
    let kit = Runtime::builder(client).build();
    Ok(controllers::controllers(&Ports::new(
        &kit.cx(),
        windlass_testkit::keys(),
    )))
}

/// The field managers in constants of product code, except for those of controllers.
fn others(root: &Path, known: &BTreeSet<String>) -> Result<Vec<Vec<String>>, String> {
    let pattern = r#"const (?:[A-Z_]+_)?MANAGER: &(?:'static )?str = "([a-z][a-z0-9-]+)";"#;
    let pattern = Regex::new(pattern).map_err(|error| error.to_string())?;
    let mut found = BTreeSet::new();
    for (place, text) in sources::product(root)? {
        let of = place.split('/').nth(1).unwrap_or_default().to_owned();
        if of.starts_with("api-") {
            continue;
        }
        let names = pattern.captures_iter(&text).map(|captures| captures[1].to_owned());
        found.extend(
            names
                .filter(|name| !known.contains(name))
                .map(|name| (name, of.clone())),
        );
    }
    Ok(found
        .into_iter()
        .map(|(name, of)| vec![code(&name), code(&of)])
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_that_the_code_names_is_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let pattern = Regex::new(r#"name: "(windlass_[a-z_]+)""#).unwrap();
        let listed: BTreeSet<&str> = all().iter().map(|metric| metric.name).collect();
        let mut tables = 0;
        for (place, text) in sources::product(&root).unwrap() {
            for captures in pattern.captures_iter(&text) {
                assert!(
                    listed.contains(&captures[1]),
                    "{place}: {} is not in the list",
                    &captures[1]
                );
            }
            tables += text.matches(".table(").count() + text.matches(".durations(").count();
        }
        let computed = all()
            .iter()
            .filter(|metric| {
                windlass_controller_runtime::METRICS
                    .iter()
                    .all(|own| own.name != metric.name)
            })
            .count();
        assert_eq!(
            tables, computed,
            "each computed metric is registered once and listed once"
        );
    }

    #[test]
    fn every_controller_has_field_managers() {
        let entries = entries().unwrap();
        assert_eq!(entries.len(), controllers::CONTROLLERS.len());
        assert!(
            entries
                .iter()
                .all(|entry| !entry.manager().is_empty() && !entry.status_manager().is_empty())
        );
    }
}
