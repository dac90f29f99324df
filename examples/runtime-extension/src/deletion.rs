//! BeforeClusterDelete: Clusters with an annotation are not deleted.

use windlass_runtime_extension::hooks::Response as _;
use windlass_runtime_extension::hooks::lifecycle::{BeforeClusterDeleteRequest, BeforeClusterDeleteResponse};

use crate::{AGAIN, ANNOTATION, PROTECTED};

/// Blocks while the Cluster has the annotation.
pub(super) fn decide(request: &BeforeClusterDeleteRequest) -> BeforeClusterDeleteResponse {
    let named = request.settings.get(ANNOTATION).map(String::as_str);
    let annotation = named.filter(|name| !name.is_empty()).unwrap_or(PROTECTED);
    let annotations = request.cluster.metadata.annotations.as_ref();
    if annotations.is_some_and(|all| all.contains_key(annotation)) {
        let message = format!("the Cluster is protected: remove the annotation {annotation} to delete it");
        BeforeClusterDeleteResponse::blocked(AGAIN, message)
    } else {
        BeforeClusterDeleteResponse::success()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_stays_while_it_has_the_annotation() {
        let check = |annotation: &str, setting: Option<&str>, is_blocked: bool| {
            let mut request = BeforeClusterDeleteRequest::default();
            let annotations = request.cluster.metadata.annotations.get_or_insert_default();
            annotations.insert(annotation.to_owned(), String::new());
            let setting = setting.map(|name| (ANNOTATION.to_owned(), name.to_owned()));
            request.settings = setting.into_iter().collect();
            let response = decide(&request);
            let seconds = if is_blocked { AGAIN } else { 0 };
            assert_eq!(response.retry_after_seconds, seconds, "{request:?}");
            assert_eq!(response.message.contains(annotation), is_blocked, "{response:?}");
        };
        check(PROTECTED, None, true);
        check("other", None, false);
        check("other", Some("other"), true);
        check(PROTECTED, Some("other"), false);
        check(PROTECTED, Some(""), true);
        let bare = decide(&BeforeClusterDeleteRequest::default());
        assert_eq!(bare, BeforeClusterDeleteResponse::success());
    }
}
