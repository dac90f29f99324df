//! Which labels and annotations of Machines an operator of the management cluster wants on Nodes, beside those of the domains that always go
//! there: Cluster API's options `--additional-sync-machine-labels` and `--additional-sync-machine-annotations`.

use std::str::FromStr;

use regex::Regex;
use windlass_gocompat::regexp::{Groups, translate};

/// A regular expression in Go's syntax for keys of labels or annotations. It matches a key if it matches a part of it.
#[derive(Clone, Debug)]
pub struct KeyPattern(Regex);

impl KeyPattern {
    fn matches(&self, key: &str) -> bool {
        self.0.is_match(key)
    }
}

impl FromStr for KeyPattern {
    type Err = String;

    /// The error names what is wrong with the pattern, in the words of Go.
    fn from_str(pattern: &str) -> Result<Self, String> {
        let translated = translate(pattern, Groups::Plain).map_err(|error| error.to_string())?;
        Regex::new(&translated).map(Self).map_err(|error| error.to_string())
    }
}

impl PartialEq for KeyPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// What goes from Machines to their Nodes beside what always does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSync {
    /// Labels whose key one of these patterns matches.
    pub labels: Vec<KeyPattern>,
    /// Annotations whose key one of these patterns matches.
    pub annotations: Vec<KeyPattern>,
    /// Whether the taints of Machines stay away from their Nodes.
    pub without_taints: bool,
}

impl NodeSync {
    pub(super) fn has_label(&self, key: &str) -> bool {
        self.labels.iter().any(|pattern| pattern.matches(key))
    }

    pub(super) fn has_annotation(&self, key: &str) -> bool {
        self.annotations.iter().any(|pattern| pattern.matches(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_go() {
        let sync = NodeSync {
            labels: vec!["^zone$".parse().unwrap(), r"example\.com/".parse().unwrap()],
            ..NodeSync::default()
        };
        assert!(sync.has_label("zone") && sync.has_label("a.example.com/b"));
        assert!(!sync.has_label("zones") && !sync.has_label("examplexcom/b"));
        assert!(!sync.has_annotation("zone"), "patterns of labels are for labels");
        let error = "a(".parse::<KeyPattern>().unwrap_err();
        assert_eq!(error, "error parsing regexp: missing closing ): `a(`");
    }
}
