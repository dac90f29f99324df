//! The values of an add-on: a Go template over the objects of a cluster, rendered to the YAML that Helm takes.
//!
//! A template sees the Cluster as `.Cluster` and, where they exist, the objects that it refers to as `.ControlPlane` and
//! `.InfraCluster`, each as the API server gives it. Fields are spelled as in YAML (`.Cluster.spec.clusterNetwork`) or as in
//! Go (`.Cluster.Spec.ClusterNetwork`, `.Cluster.Name`); see [`fields`] for what is known of them.
//!
//! What is missing must not become a gap in a user's network configuration. While the template runs, every field that it looks up is
//! held against the object and the schema of a Cluster: a field that neither has is an error. One that exists and is just not
//! set is empty for `if`, `with` and `range`, as in Go, and an error where it would be written. So only what is really looked
//! up is judged: what stands behind a condition that does not hold has no part in the values, and is judged where it does.

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

/// Which objects besides the Cluster a template may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refers {
    /// The object behind `controlPlaneRef`.
    pub control_plane: bool,
    /// The object behind `infrastructureRef`.
    pub infra_cluster: bool,
}

/// A template that gives no values. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// The text is no template.
    #[error("valuesTemplate line {line}: {why}")]
    Parse {
        /// The line of the template.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The template failed for these objects, for one because it names a field that no such object has.
    #[error("valuesTemplate line {line}: {why}")]
    Render {
        /// The line of the template.
        line: usize,
        /// What it failed with.
        why: String,
    },
    /// The template writes something that these objects do not have.
    #[error("valuesTemplate line {line}: {what} is not set; use `default`, or write it only within `if` or `with`")]
    Missing {
        /// The line of the template.
        line: usize,
        /// The path of what is missing, and whose it is.
        what: String,
    },
    /// What the template gives is no YAML.
    #[error("valuesTemplate renders to what is not YAML: {why}")]
    NotYaml {
        /// What is wrong with it, and where in the rendered text.
        why: String,
    },
    /// What the template gives is YAML, but no values.
    #[error("valuesTemplate renders to {found}; values are a mapping (`key: value`)")]
    NotAMapping {
        /// What it is instead.
        found: &'static str,
    },
}

/// A values template that has been read, to be rendered for any number of clusters.
#[derive(Clone, Debug)]
pub struct Template {
    template: GoTemplate,
    refers: Refers,
}

impl Template {
    /// Reads a template: its syntax, and that every function exists.
    pub fn parse(text: &str) -> Result<Self, ValuesError> {
        let template = GoTemplate::parse(text, Functions::Sprig).map_err(|error| told(error, None))?;
        let uses = template.uses();
        let refers = Refers {
            control_plane: uses.has(CONTROL_PLANE),
            infra_cluster: uses.has(INFRA_CLUSTER),
        };
        Ok(Self { template, refers })
    }

    /// Which objects it may look at besides the Cluster; what it surely does not look at need be neither read nor watched.
    pub fn refers_to(&self) -> Refers {
        self.refers
    }

    /// The values for one cluster: one YAML mapping, or an empty text where the template gives none.
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

/// A missing path, with the reason where the whole object is missing.
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
