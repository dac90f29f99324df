//! The form of a case: a claim, and the requests that show it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::hooks::Answer;

/// A file of cases.
#[derive(Debug)]
pub struct Topic {
    /// `AREA/TOPIC`.
    pub name: String,
    /// Its cases.
    pub cases: Vec<Case>,
    /// The file with the real server's answers.
    pub recording: PathBuf,
}

/// A claim, and the requests that show it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The claim; unique within its file.
    pub case: String,
    /// The requests.
    pub steps: Vec<Step>,
    /// Paths of objects to delete afterwards.
    #[serde(default)]
    pub clean: Vec<String>,
    /// Webhooks at `$hooks/NAME`, and their answers.
    #[serde(default)]
    pub hooks: BTreeMap<String, Answer>,
}

/// One request, or a read from a watch.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Verb and path.
    pub send: Option<String>,
    /// The path of a watch.
    pub watch: Option<String>,
    /// Keeps the watch open, under this name.
    pub open: Option<String>,
    /// Reads from an open watch.
    pub read: Option<String>,
    /// Shows the reviews that a webhook has received since the last look; `*` for all webhooks, in order.
    pub hooked: Option<String>,
    /// The number of events to read; without it, until the server ends the watch.
    pub events: Option<usize>,
    /// Whether bookmarks count and are compared. Those that end initial events always do.
    pub bookmarks: bool,
    /// The type of patch of `body`.
    #[serde(rename = "type")]
    pub patch: Option<Patch>,
    /// The body.
    pub body: Option<Value>,
    /// The body as plain text.
    pub text: Option<String>,
    /// Headers of the request.
    pub headers: BTreeMap<String, String>,
    /// The user of the request. Defaults to the administrator.
    #[serde(rename = "as")]
    pub user: Option<User>,
    /// Variables, and the paths of their values in the body, or `header:NAME`.
    pub save: BTreeMap<String, String>,
    /// The only parts of the body that are compared.
    pub show: Option<Vec<String>>,
    /// Parts of the body that are not compared.
    pub hide: Vec<String>,
    /// More headers of the response that are compared.
    pub see: Vec<String>,
    /// The request is repeated until this webhook receives a review. Its reviews so far are dropped.
    pub reaches: Option<String>,
    /// The request is repeated until this holds.
    pub until: Option<Until>,
}

/// The types of patches.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Patch {
    /// JSON patch.
    Json,
    /// Merge patch.
    Merge,
    /// Strategic merge patch.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl Patch {
    /// Its content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// The user of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum User {
    /// `anonymous`: without credentials.
    Name(Anonymous),
    /// With a bearer token.
    Token {
        /// The token.
        token: String,
    },
    /// Impersonated by the administrator.
    Impersonated {
        /// The user's name.
        user: String,
        /// The user's groups.
        #[serde(default)]
        groups: Vec<String>,
    },
}

/// The name of a user without credentials.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Anonymous {
    /// A request without credentials.
    Anonymous,
}

/// The result that a repeated request waits for.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Until {
    /// A status code.
    Status(u16),
    /// Values at paths of the body; null matches an absent value.
    Values(BTreeMap<String, Value>),
}

/// All topics below a folder whose name contains one of the filters; all without a filter.
pub fn load(folder: &Path, filters: &[String]) -> Result<Vec<Topic>, String> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        let entries = std::fs::read_dir(&at).map_err(|e| format!("{}: {e}", at.display()))?;
        for entry in entries {
            let path = entry.map_err(|e| format!("{}: {e}", at.display()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                let name = path.strip_prefix(folder).unwrap_or(&path).with_extension("");
                let name = name.to_string_lossy().replace('\\', "/");
                if filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())) {
                    out.push(topic(name, &path)?);
                }
            }
        }
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}

fn topic(name: String, path: &Path) -> Result<Topic, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut cases: Vec<Case> = Vec::new();
    // One document at a time, so that an error names the claim of its document.
    for document in text
        .split("\n---\n")
        .filter(|document| !document.trim().trim_matches('-').is_empty())
    {
        let case: Case = serde_saphyr::from_str(document).map_err(|e| {
            let claim = document
                .lines()
                .find(|line| line.starts_with("case:"))
                .unwrap_or_default();
            format!("{}: {claim}: {e}", path.display())
        })?;
        if cases.iter().any(|other| other.case == case.case) {
            return Err(format!("{}: two cases claim {:?}", path.display(), case.case));
        }
        cases.push(case);
    }
    Ok(Topic {
        name,
        cases,
        recording: path.with_extension("real.jsonl"),
    })
}
