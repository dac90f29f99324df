//! `metadata.yaml` of a release: the contract of each release series of a provider.

use serde_json::Value;

use crate::object;
use crate::version::Version;
use crate::yaml::{self, NotYaml};

/// The version of the file's own format.
const API_VERSION: &str = "clusterctl.cluster.x-k8s.io/v1alpha3";

/// The contracts that this Cluster API supports, the newest first.
pub const CONTRACTS: [&str; 2] = ["v1beta2", "v1beta1"];

/// The release series in a release's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    series: Vec<Series>,
}

/// A release series and its contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The major version.
    pub major: u64,
    /// The minor version.
    pub minor: u64,
    /// The contract, `v1beta2`.
    pub contract: String,
}

/// Why metadata is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// A web page, XML, or binary data.
    #[error("it is {0}, not YAML: the address answers with something else than the file")]
    NotYaml(&'static str),
    /// Not YAML.
    #[error("line {line}: {problem}")]
    Syntax {
        /// The line.
        line: usize,
        /// The problem.
        problem: String,
    },
    /// Null, or a value that is not an object.
    #[error("it is no object: expected apiVersion {API_VERSION}, kind Metadata and releaseSeries")]
    NotAnObject,
    /// An object of another kind.
    #[error("{field} is {found:?}: expected {expected:?}")]
    Kind {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
    /// No release series.
    #[error("releaseSeries is empty: a release names at least its own series with its contract")]
    NoSeries,
    /// A field of a release series is invalid.
    #[error("releaseSeries[{index}].{field} is {found}: expected {expected}")]
    Field {
        /// Which series, from 0.
        index: usize,
        /// Which field of it.
        field: &'static str,
        /// The value that it has.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
}

impl Metadata {
    /// Parses the file.
    pub fn parse(text: &str) -> Result<Self, MetadataError> {
        match yaml::sniff(text) {
            Some(NotYaml::Html) => return Err(MetadataError::NotYaml("a web page")),
            Some(NotYaml::Xml) => return Err(MetadataError::NotYaml("XML")),
            Some(NotYaml::Binary) => return Err(MetadataError::NotYaml("no text")),
            None => {}
        }
        if text.trim().is_empty() {
            return Err(MetadataError::NotAnObject);
        }
        let value = yaml::read(text).map_err(|error| {
            let problem = windlass_gocompat::yaml::problem(&error);
            MetadataError::Syntax {
                line: problem.line,
                problem: problem.text,
            }
        })?;
        if !value.is_object() {
            return Err(MetadataError::NotAnObject);
        }
        let api_version = object::text(&value, &["apiVersion"]);
        if api_version != API_VERSION {
            return Err(MetadataError::Kind {
                field: "apiVersion",
                found: api_version.to_owned(),
                expected: API_VERSION,
            });
        }
        // Some providers publish the file without its kind, and clusterctl accepts that.
        let kind = object::kind(&value);
        if !matches!(kind, "" | "Metadata") {
            return Err(MetadataError::Kind {
                field: "kind",
                found: kind.to_owned(),
                expected: "Metadata",
            });
        }
        let series = match value.get("releaseSeries") {
            Some(Value::Array(list)) if !list.is_empty() => list,
            _ => return Err(MetadataError::NoSeries),
        };
        let series = series
            .iter()
            .enumerate()
            .map(|(index, value)| Series::read(index, value));
        Ok(Self {
            series: series.collect::<Result<_, _>>()?,
        })
    }

    /// The contract of a version's release series.
    pub fn contract(&self, version: &Version) -> Option<&str> {
        self.series
            .iter()
            .find(|series| series.major == version.major() && series.minor == version.minor())
            .map(|series| series.contract.as_str())
    }

    /// All release series, in the order of the file.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// The release series as a text for error messages: `0.9, 1.0, 1.1`.
    pub fn known(&self) -> String {
        let mut numbers: Vec<_> = self.series.iter().map(|series| (series.major, series.minor)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let words: Vec<String> = numbers
            .iter()
            .map(|(major, minor)| format!("{major}.{minor}"))
            .collect();
        words.join(", ")
    }
}

impl Series {
    fn read(index: usize, value: &Value) -> Result<Self, MetadataError> {
        let wrong = |field: &'static str, expected: &'static str| MetadataError::Field {
            index,
            field,
            found: value.get(field).map_or_else(|| "missing".to_owned(), Value::to_string),
            expected,
        };
        // An absent number is 0, because Go's encoder omits zeros.
        let number = |field: &'static str| match value.get(field) {
            None | Some(Value::Null) => Ok(0),
            Some(number) => number.as_u64().ok_or_else(|| wrong(field, "a whole number from 0 on")),
        };
        let contract = object::text(value, &["contract"]);
        if contract.is_empty() {
            return Err(wrong("contract", "a contract such as v1beta2"));
        }
        Ok(Self {
            major: number("major")?,
            minor: number("minor")?,
            contract: contract.to_owned(),
        })
    }
}

/// Whether providers of a contract work with a core of another one: a core supports its own contract, and `v1beta2` also supports
/// `v1beta1`.
pub fn compatible(core: &str, provider: &str) -> bool {
    core == provider || (core == CONTRACTS[0] && provider == CONTRACTS[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# comment\napiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n\
        - major: 1\n  minor: 2\n  contract: v1beta2\n- {major: 1, minor: 10, contract: v1beta2}\n- minor: 9\n  contract: v1beta1\n";

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    // OP-060, OP-133, OP-134
    #[test]
    fn the_contract_is_that_of_the_release_series() {
        let metadata = Metadata::parse(GOOD).unwrap();
        let check = |text: &str, expect: Option<&str>| assert_eq!(metadata.contract(&version(text)), expect, "{text}");
        check("v1.2.7", Some("v1beta2"));
        check("v1.2.0-rc.1", Some("v1beta2"));
        check("v0.9.4", Some("v1beta1"));
        check("v1.3.0", None);
        assert_eq!(metadata.known(), "0.9, 1.2, 1.10");
        assert_eq!(metadata.series().len(), 3);
    }

    #[test]
    fn a_missing_kind_is_forgiven() {
        assert!(Metadata::parse(&GOOD.replace("kind: Metadata\n", "")).is_ok());
    }

    // OP-134
    #[test]
    fn problems_are_reported() {
        let check = |text: &str, expect: &str| {
            assert_eq!(Metadata::parse(text).unwrap_err().to_string(), expect, "{text}");
        };
        let no_object = "it is no object: expected apiVersion clusterctl.cluster.x-k8s.io/v1alpha3, kind Metadata and releaseSeries";
        check("", no_object);
        check("# nothing\n", no_object);
        check("- x\n", no_object);
        check(
            "<!DOCTYPE html><html>",
            "it is a web page, not YAML: the address answers with something else than the file",
        );
        check("a: [\n", "line 1: unclosed bracket '['");
        check(
            &GOOD.replace("v1alpha3", "v1alpha4"),
            "apiVersion is \"clusterctl.cluster.x-k8s.io/v1alpha4\": expected \"clusterctl.cluster.x-k8s.io/v1alpha3\"",
        );
        check(
            &GOOD.replace("kind: M", "kind: N"),
            "kind is \"Netadata\": expected \"Metadata\"",
        );
        let empty = "releaseSeries is empty: a release names at least its own series with its contract";
        check(GOOD.split_inclusive("Series:").next().unwrap(), empty);
        check(
            &GOOD.replace("minor: 2", "minor: two"),
            "releaseSeries[0].minor is \"two\": expected a whole number from 0 on",
        );
        check(
            &GOOD.replace("  contract: v1beta1\n", ""),
            "releaseSeries[2].contract is missing: expected a contract such as v1beta2",
        );
    }

    // OP-081, OP-133
    #[test]
    fn a_core_knows_the_contract_before_its_own() {
        assert!(compatible("v1beta2", "v1beta2") && compatible("v1beta2", "v1beta1"));
        assert!(!compatible("v1beta1", "v1beta2") && !compatible("v1beta2", "v1alpha4"));
        assert!(compatible("v1alpha3", "v1alpha3"));
    }
}
