//! The values of an add-on: a Go template over the objects of a cluster, rendered to YAML for Helm.
//!
//! A template sees the Cluster as `.Cluster` and, if they exist, the objects that it refers to as `.ControlPlane` and
//! `.InfraCluster`, each as stored in the API server. Fields are spelled as in YAML (`.Cluster.spec.clusterNetwork`) or as in Go
//! (`.Cluster.Spec.ClusterNetwork`, `.Cluster.Name`); [`fields`] has the known ones.
//!
//! A missing value must not become a gap in a user's network configuration. During rendering, every field lookup is checked
//! against the object and the schema of a Cluster: a field that neither has is an error. A field that exists but is unset is
//! empty for `if`, `with` and `range`, as in Go, and an error where it would be written. So only real lookups are checked: fields
//! behind a condition that does not hold do not affect the values.

mod fields;
mod mapping;

use serde_json::Value;
use windlass_gotemplate::{Functions, Missing, Rules, Template as GoTemplate, TemplateError};

const RULES: Rules = Rules {
    missing: Missing::Refuse,
    lenient: false,
};

const CLUSTER: &str = "Cluster";
const CONTROL_PLANE: &str = "ControlPlane";
const INFRA_CLUSTER: &str = "InfraCluster";

/// The objects that a template sees.
#[derive(Clone, Copy, Debug)]
pub struct Objects<'a> {
    /// The Cluster (`cluster.x-k8s.io/v1beta2`).
    pub cluster: &'a Value,
    /// The object behind its `controlPlaneRef`.
    pub control_plane: Option<&'a Value>,
    /// The object behind its `infrastructureRef`.
    pub infra_cluster: Option<&'a Value>,
}

/// The objects besides the Cluster that a template may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refers {
    /// The object behind `controlPlaneRef`.
    pub control_plane: bool,
    /// The object behind `infrastructureRef`.
    pub infra_cluster: bool,
}

/// Why a template gives no values. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// The text is not a valid template.
    #[error("valuesTemplate line {line}: {why}")]
    Parse {
        /// The line of the template.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// Rendering failed for these objects, for example because the template names an unknown field.
    #[error("valuesTemplate line {line}: {why}")]
    Render {
        /// The line of the template.
        line: usize,
        /// The cause.
        why: String,
    },
    /// The template writes a value that these objects do not have.
    #[error("valuesTemplate line {line}: {what} is not set; use `default`, or write it only within `if` or `with`")]
    Missing {
        /// The line of the template.
        line: usize,
        /// The missing path, and its object.
        what: String,
    },
    /// The result is not YAML.
    #[error("valuesTemplate renders to what is not YAML: {why}")]
    NotYaml {
        /// The problem, and its position in the rendered text.
        why: String,
    },
    /// The result is YAML, but not a mapping.
    #[error("valuesTemplate renders to {found}; values are a mapping (`key: value`)")]
    NotAMapping {
        /// What it is instead.
        found: &'static str,
    },
}

/// A parsed values template, to be rendered for any number of clusters.
#[derive(Clone, Debug)]
pub struct Template {
    template: GoTemplate,
    refers: Refers,
}

impl Template {
    /// Parses a template, and checks that its functions exist.
    pub fn parse(text: &str) -> Result<Self, ValuesError> {
        let template = GoTemplate::parse(text, Functions::Sprig).map_err(|error| told(error, None))?;
        let uses = template.uses();
        let refers = Refers {
            control_plane: uses.has(CONTROL_PLANE),
            infra_cluster: uses.has(INFRA_CLUSTER),
        };
        Ok(Self { template, refers })
    }

    /// The objects besides the Cluster that it may read. Others need be neither read nor watched.
    pub fn refers_to(&self) -> Refers {
        self.refers
    }

    /// The values for a cluster: a YAML mapping, or an empty text if the template gives none.
    pub fn render(&self, objects: &Objects<'_>) -> Result<String, ValuesError> {
        let named = [
            (CLUSTER, Some(objects.cluster)),
            (CONTROL_PLANE, objects.control_plane),
            (INFRA_CLUSTER, objects.infra_cluster),
        ];
        let named: Vec<(&str, &Value)> = named.into_iter().filter_map(|(n, o)| Some((n, o?))).collect();
        let text = self
            .template
            .render_known(&named, fields::DATA, fields::known(), RULES)
            .map_err(|error| told(error, Some(objects)))?;
        if mapping::has_values(&text)? {
            return Ok(text);
        }
        Ok(String::new())
    }
}

fn told(error: TemplateError, objects: Option<&Objects<'_>>) -> ValuesError {
    match error {
        TemplateError::Parse { line, why } => ValuesError::Parse { line, why },
        TemplateError::Render { line, why } => ValuesError::Render { line, why },
        TemplateError::Missing { line, path } => ValuesError::Missing {
            line,
            what: missing(path, objects),
        },
    }
}

/// A missing path, with the reason if the whole object is missing.
fn missing(path: String, objects: Option<&Objects<'_>>) -> String {
    let absent = [
        (CONTROL_PLANE, "controlPlaneRef", objects.and_then(|o| o.control_plane)),
        (
            INFRA_CLUSTER,
            "infrastructureRef",
            objects.and_then(|o| o.infra_cluster),
        ),
    ];
    for (name, reference, object) in absent {
        let of_it = path.strip_prefix('.').and_then(|p| p.strip_prefix(name));
        if object.is_none() && of_it.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
            return format!("{path} (there is no object behind the Cluster's spec.{reference})");
        }
    }
    if path.is_empty() { "the value".to_owned() } else { path }
}

#[cfg(test)]
mod tests;
