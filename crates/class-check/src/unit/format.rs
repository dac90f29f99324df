//! The format of test files. `docs/class-tests.md` describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use serde::Deserialize;
use serde_json::Value;

/// A document of a test file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Document {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    files: Vec<String>,
    class: Option<String>,
    #[serde(default)]
    cluster: Value,
    cases: Vec<Case>,
}

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    /// What the Cluster has besides that of the suite.
    #[serde(default)]
    pub(super) cluster: Value,
    /// Values of variables for the whole Cluster.
    #[serde(default)]
    pub(super) variables: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) expect: Expect,
}

/// What a case expects.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Expect {
    #[serde(default)]
    pub(super) objects: Vec<Expected>,
    #[serde(default)]
    pub(super) absent: Vec<Selector>,
    pub(super) golden: Option<String>,
    #[serde(default)]
    pub(super) refused: Vec<Refusal>,
}

/// An object that is generated, with the fields that it has at least.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Expected {
    pub(super) kind: String,
    pub(super) api_version: Option<String>,
    pub(super) place: Option<String>,
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) metadata: Value,
    #[serde(default)]
    pub(super) spec: Value,
}

impl Expected {
    /// Which object is meant.
    pub(super) fn selector(&self) -> Selector {
        Selector {
            kind: self.kind.clone(),
            api_version: self.api_version.clone(),
            place: self.place.clone(),
            name: self.name.clone(),
        }
    }
}

/// Selects objects.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Selector {
    pub(super) kind: String,
    pub(super) api_version: Option<String>,
    pub(super) place: Option<String>,
    pub(super) name: Option<String>,
}

/// A refusal: a field, and a part of the message.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Refusal {
    pub(super) field: Option<String>,
    pub(super) message: Option<String>,
}

/// The tests of one document.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The file that it is from.
    pub file: String,
    /// Its name.
    pub name: String,
    /// Files and directories with the class, its templates and CustomResourceDefinitions, relative to the directory of the test file.
    pub files: Vec<String>,
    pub(super) class: Option<String>,
    pub(super) cluster: Value,
    pub(super) cases: Vec<Case>,
}

impl Suite {
    /// The golden files, relative to the directory of the test file.
    pub fn goldens(&self) -> impl Iterator<Item = &str> {
        self.cases.iter().filter_map(|case| case.expect.golden.as_deref())
    }

    /// Keeps the cases whose name has this part.
    pub fn filter(&mut self, part: &str) {
        self.cases.retain(|case| case.name.contains(part));
    }

    /// The number of cases.
    pub fn cases(&self) -> usize {
        self.cases.len()
    }
}

/// Whether a path leads to a file below the directory that it is relative to.
fn is_below(path: &str) -> bool {
    let is_step = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    !path.is_empty() && Path::new(path).components().all(is_step)
}

impl Document {
    /// The tests, or why they make no sense.
    pub(super) fn suite(self) -> Result<Suite, String> {
        let Spec {
            files,
            class,
            cluster,
            cases,
        } = self.spec;
        if files.is_empty() {
            return Err("spec.files must name the files with the class and its templates".to_owned());
        }
        if files.iter().any(|file| file.is_empty() || file == "-") {
            return Err("spec.files must name files and directories".to_owned());
        }
        if cases.is_empty() {
            return Err("spec.cases must have at least one case".to_owned());
        }
        let is_object = |value: &Value| value.is_null() || value.is_object();
        if !is_object(&cluster) {
            return Err("spec.cluster must be an object: parts of a Cluster".to_owned());
        }
        let mut names = BTreeSet::new();
        let mut goldens = BTreeSet::new();
        for case in &cases {
            let refuse = |why: &str| Err(format!("case {:?}: {why}", case.name));
            let expect = &case.expect;
            if case.name.is_empty() || !names.insert(&case.name) {
                return refuse("each case must have a name of its own");
            }
            if !is_object(&case.cluster) {
                return refuse("cluster must be an object: parts of a Cluster");
            }
            let has_objects = !expect.objects.is_empty() || !expect.absent.is_empty() || expect.golden.is_some();
            if has_objects && !expect.refused.is_empty() {
                return refuse("a Cluster that is refused has no objects: expect one of both");
            }
            if expect
                .refused
                .iter()
                .any(|one| one.field.is_none() && one.message.is_none())
            {
                return refuse("each refusal must have a field or a message");
            }
            for expected in &expect.objects {
                let wanted = [("metadata", &expected.metadata), ("spec", &expected.spec)];
                if let Some((part, _)) = wanted.iter().find(|(_, part)| !is_object(part)) {
                    return refuse(&format!("{part} of an expected {} must be an object", expected.kind));
                }
            }
            let Some(golden) = &expect.golden else { continue };
            if !is_below(golden) {
                return refuse("the golden file must be below the directory of the test file: --update writes it");
            }
            if !goldens.insert(golden) {
                return refuse("two cases cannot have the same golden file");
            }
        }
        Ok(Suite {
            file: String::new(),
            name: self.metadata.name,
            files,
            class,
            cluster,
            cases,
        })
    }
}
