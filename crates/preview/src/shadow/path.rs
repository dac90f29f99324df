//! The parts of a request's path.

/// The object that a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) group: String,
    pub(super) namespace: String,
    pub(super) plural: String,
    pub(super) name: String,
    pub(super) subresource: Option<String>,
}

impl Path {
    pub(super) fn of(path: &str) -> Self {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["apis", group, _, rest @ ..] => (*group, rest),
            ["api", _, rest @ ..] => ("", rest),
            _ => ("", &[][..]),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let at = |index: usize| rest.get(index).map(|part| (*part).to_owned());
        Self {
            group: group.to_owned(),
            namespace: namespace.to_owned(),
            plural: at(0).unwrap_or_default(),
            name: at(1).unwrap_or_default(),
            subresource: at(2),
        }
    }

    pub(super) fn is_of_events(&self) -> bool {
        self.plural == "events"
    }

    /// The object in any version.
    pub(super) fn key(&self) -> String {
        format!("{}/{}/{}/{}", self.group, self.namespace, self.plural, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_objects_in_any_version() {
        let path = Path::of("/apis/cluster.x-k8s.io/v1beta2/namespaces/a/clusters/b/status");
        assert_eq!((path.plural.as_str(), path.name.as_str()), ("clusters", "b"));
        assert_eq!(path.subresource.as_deref(), Some("status"));
        assert_eq!(
            Path::of("/apis/cluster.x-k8s.io/v1beta1/namespaces/a/clusters/b").key(),
            path.key()
        );
        let namespace = Path::of("/api/v1/namespaces/a");
        assert_eq!(
            (namespace.plural.as_str(), namespace.name.as_str()),
            ("namespaces", "a")
        );
        assert!(Path::of("/api/v1/namespaces/a/events").is_of_events());
    }
}
