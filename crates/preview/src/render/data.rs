//! JSON and YAML, for programs.

use serde::Serialize;

/// The report as JSON, ending in a newline.
pub fn json(report: &impl Serialize) -> String {
    let value = serde_json::to_value(report).unwrap_or_default();
    format!("{value:#}\n")
}

/// The report as YAML.
pub fn yaml(report: &impl Serialize) -> String {
    windlass_gocompat::yaml::document(&serde_json::to_value(report).unwrap_or_default())
}
