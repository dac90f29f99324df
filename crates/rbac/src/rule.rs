//! A rule of a role: whether it allows a request, and whether it covers another rule. Pure.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use windlass_meta::budget::MISSING_RIGHTS;

use crate::attributes::{Attributes, Target};

const ALL: &str = "*";

/// A rule of a Role or ClusterRole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// API groups, `*` for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// Paths, perhaps with a `*` at the end.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// Names; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Resources and subresources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Verbs.
    pub verbs: Vec<String>,
}

fn one(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|have| have == wanted)
}

fn has_or_all(list: &[String], wanted: &str) -> bool {
    list.iter().any(|have| have == ALL || have == wanted)
}

/// `pods`, `pods/log`, `*`, or `*/log`. Kubernetes gives `pods/*` no meaning here, so it grants nothing.
fn is_resource(named: &str, resource: &str, subresource: &str) -> bool {
    if named == ALL {
        return true;
    }
    let Some((main, sub)) = named.split_once('/') else {
        return subresource.is_empty() && named == resource;
    };
    !subresource.is_empty() && sub == subresource && (main == ALL || main == resource)
}

fn is_url(named: &str, path: &str) -> bool {
    named == path || named.ends_with('*') && path.starts_with(named.trim_end_matches('*'))
}

impl Rule {
    /// Whether the rule on its own allows a request.
    pub fn allows(&self, asked: &Attributes<'_>) -> bool {
        has_or_all(&self.verbs, asked.verb)
            && match asked.target {
                Target::Path(path) => self.urls.iter().any(|url| is_url(url, path)),
                Target::Resource {
                    group,
                    resource,
                    subresource,
                    name,
                    ..
                } => {
                    has_or_all(&self.api_groups, group)
                        && self.resources.iter().any(|r| is_resource(r, resource, subresource))
                        && (self.resource_names.is_empty() || has(&self.resource_names, name))
                }
            }
    }

    /// The number of its [`pieces`](Self::pieces).
    fn count(&self) -> usize {
        let resources = [&self.api_groups, &self.resources, &self.verbs].map(Vec::len);
        let names = self.resource_names.len().max(1);
        let product = |factors: &[usize]| {
            factors
                .iter()
                .fold(1, |product: usize, one| product.saturating_mul(*one))
        };
        product(&resources)
            .saturating_mul(names)
            .saturating_add(product(&[self.urls.len(), self.verbs.len()]))
    }

    /// Each of its names as a list; one empty list without any.
    fn names(&self) -> impl Iterator<Item = Vec<String>> {
        let unnamed = self.resource_names.is_empty().then(Vec::new);
        self.resource_names.iter().map(|name| one(name)).chain(unnamed)
    }

    /// The rule split into rules with a single group, resource, verb and perhaps name, or a single URL and verb.
    fn pieces(&self) -> impl Iterator<Item = Self> {
        let of_resources = self.api_groups.iter().flat_map(move |group| {
            self.resources.iter().flat_map(move |resource| {
                self.verbs.iter().flat_map(move |verb| {
                    self.names().map(move |names| Self {
                        api_groups: one(group),
                        resources: one(resource),
                        verbs: one(verb),
                        resource_names: names,
                        ..Self::default()
                    })
                })
            })
        });
        let of_urls = self.urls.iter().flat_map(move |url| {
            self.verbs.iter().map(move |verb| Self {
                urls: one(url),
                verbs: one(verb),
                ..Self::default()
            })
        });
        of_resources.chain(of_urls)
    }

    /// Whether this rule, whose names are given as a set, covers a single-valued rule.
    fn covers(&self, names: &HashSet<&str>, piece: &Self) -> bool {
        let names = names.is_empty()
            || !piece.resource_names.is_empty() && piece.resource_names.iter().all(|n| names.contains(n.as_str()));
        let resource = |wanted: &String| {
            has_or_all(&self.resources, wanted)
                || wanted
                    .split_once('/')
                    .is_some_and(|(_, sub)| self.resources.iter().any(|r| r.strip_prefix("*/") == Some(sub)))
        };
        names
            && piece.verbs.iter().all(|verb| has_or_all(&self.verbs, verb))
            && piece.api_groups.iter().all(|group| has_or_all(&self.api_groups, group))
            && piece.resources.iter().all(resource)
            && piece
                .urls
                .iter()
                .all(|wanted| self.urls.iter().any(|url| is_url(url, wanted)))
    }

    /// The rule in the form of messages.
    fn describe(&self) -> String {
        let mut out = String::from("{");
        for (name, list) in [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ] {
            if list.is_empty() {
                continue;
            }
            if out.len() > 1 {
                out.push_str(", ");
            }
            // Writing to a String cannot fail.
            let _ = write!(out, "{name}:{}", quoted(list));
        }
        out.push('}');
        out
    }
}

/// A list in the form of messages: `["a" "b"]`.
pub fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// The number of combinations of API group, resource, name and verb in rules.
pub fn count(rules: &[Rule]) -> usize {
    rules.iter().map(Rule::count).fold(0, usize::saturating_add)
}

/// How many comparisons [`lacking`] needs for these rules, at most.
pub fn comparisons(held: &[Rule], wanted: &[Rule]) -> usize {
    let values = |rule: &Rule| rule.verbs.len() + rule.api_groups.len() + rule.resources.len() + rule.urls.len();
    count(wanted).saturating_mul(held.iter().map(values).sum())
}

/// The single-valued rules of `wanted` that no rule of `held` covers. It costs the [`comparisons`].
pub fn lacking(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let held = held
        .iter()
        .map(|rule| (rule, rule.resource_names.iter().map(String::as_str).collect()));
    let held: Vec<(&Rule, HashSet<&str>)> = held.collect();
    let pieces = wanted.iter().flat_map(Rule::pieces);
    pieces
        .filter(|piece| !held.iter().any(|(rule, names)| rule.covers(names, piece)))
        .collect()
}

/// Merges single-valued rules on the same resource.
pub fn joined(pieces: &[Rule]) -> Vec<Rule> {
    let mut out: Vec<Rule> = Vec::new();
    let mut places: HashMap<_, usize> = HashMap::new();
    for piece in pieces {
        if !piece.urls.is_empty() {
            out.push(piece.clone());
            continue;
        }
        let resource = [&piece.api_groups, &piece.resources, &piece.resource_names];
        let place = *places.entry(resource).or_insert(out.len());
        match out.get_mut(place) {
            Some(rule) => {
                let is_new = |verb: &&String| !has(&rule.verbs, verb);
                let fresh: Vec<String> = piece.verbs.iter().filter(is_new).cloned().collect();
                rule.verbs.extend(fresh);
            }
            None => out.push(piece.clone()),
        }
    }
    out
}

/// Rules as lines of a message, sorted. Of many, only the first are listed.
pub fn lines(pieces: &[Rule]) -> String {
    let mut lines: Vec<String> = joined(pieces).iter().map(Rule::describe).collect();
    lines.sort();
    lines.dedup();
    if lines.len() > MISSING_RIGHTS {
        let more = lines.len() - MISSING_RIGHTS;
        lines.truncate(MISSING_RIGHTS);
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
