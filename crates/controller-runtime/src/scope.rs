//! Which objects the controllers of a process are for: several processes may share one management cluster, each with its namespace or with
//! its value of the label `cluster.x-k8s.io/watch-filter`. The rules are those of the options `--namespace` and `--watch-filter` that every
//! provider of Cluster API has.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::labels;

/// Which objects the controllers of a process read and reconcile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The only namespace whose objects are read. Objects without a namespace are read as well [default: all namespaces]
    pub namespace: Option<String>,
    /// The value that the label `cluster.x-k8s.io/watch-filter` of an object has if the object is reconciled. What such an object refers to is
    /// read whatever its labels are [default: all objects are reconciled]
    pub watch_filter: Option<String>,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(only) => write!(f, "the namespace {only}")?,
            None => f.write_str("all namespaces")?,
        }
        match &self.watch_filter {
            Some(value) => write!(f, " and the label {}={value}", labels::WATCH_FILTER),
            None => Ok(()),
        }
    }
}

impl Scope {
    /// Whether objects of a namespace are read. Objects without a namespace are.
    pub fn reads(&self, namespace: &str) -> bool {
        let only = self.namespace.as_deref();
        namespace.is_empty() || only.is_none_or(|only| only == namespace)
    }

    /// Why objects of a namespace cannot be read; none if they can.
    pub fn why_unread(&self, namespace: &str) -> Option<String> {
        let only = self.namespace.as_deref().filter(|_| !self.reads(namespace))?;
        Some(format!(
            "this manager reads the namespace {only} only (option --namespace), so objects of the namespace {namespace} are unknown to it"
        ))
    }

    /// Whether an object is reconciled.
    pub fn reconciles(&self, meta: &ObjectMeta) -> bool {
        self.watch_filter.as_ref().is_none_or(|value| {
            let have = meta.labels.as_ref().and_then(|all| all.get(labels::WATCH_FILTER));
            have == Some(value)
        })
    }

    /// The namespace to which a request for objects of a kind is limited; empty for all.
    pub(crate) fn limit<'a>(&'a self, asked: &'a str, is_namespaced: bool) -> &'a str {
        match &self.namespace {
            Some(only) if asked.is_empty() && is_namespaced => only,
            _ => asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_of_a_namespace_reads_that_and_what_has_none() {
        let scope = Scope {
            namespace: Some("a".to_owned()),
            watch_filter: None,
        };
        assert!(scope.reads("a") && scope.reads(""));
        assert!(!scope.reads("b"));
        assert_eq!(scope.why_unread("a"), None);
        assert!(scope.why_unread("b").unwrap().contains("--namespace"));
        assert_eq!(scope.limit("", true), "a");
        assert_eq!(scope.limit("", false), "");
        assert_eq!(scope.limit("b", true), "b", "the server answers what is there");
        assert!(Scope::default().reads("b"));
        assert_eq!(Scope::default().limit("", true), "");
        assert_eq!(scope.to_string(), "the namespace a");
    }

    #[test]
    fn a_filter_is_the_whole_value_of_the_label() {
        let scope = Scope {
            namespace: None,
            watch_filter: Some("east".to_owned()),
        };
        let labelled = |value: &str| ObjectMeta {
            labels: Some([(labels::WATCH_FILTER.to_owned(), value.to_owned())].into()),
            ..ObjectMeta::default()
        };
        assert!(scope.reconciles(&labelled("east")));
        assert!(!scope.reconciles(&labelled("east-1")));
        assert!(!scope.reconciles(&ObjectMeta::default()));
        assert!(Scope::default().reconciles(&ObjectMeta::default()));
        assert!(Scope::default().reconciles(&labelled("east")));
        assert_eq!(
            scope.to_string(),
            "all namespaces and the label cluster.x-k8s.io/watch-filter=east"
        );
    }
}
