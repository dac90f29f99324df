//! The handlers of the example: Clusters with an annotation are not deleted.
//!
//! Cluster API calls the hook BeforeClusterDelete when a Cluster with a topology was deleted, before it deletes anything of the Cluster.
//! While the handler blocks, everything stays, and the condition Deleting of the Cluster has the message of the handler.

use windlass_runtime_extension::hooks::Response as _;
use windlass_runtime_extension::hooks::lifecycle::{
    BeforeClusterDelete, BeforeClusterDeleteRequest, BeforeClusterDeleteResponse,
};
use windlass_runtime_extension::{BadHandler, Extension, Handler};

/// The name of the handler.
pub const HANDLER: &str = "keep-protected";
/// The annotation of a protected Cluster. Its value has no meaning.
pub const PROTECTED: &str = "example.windlass.dev/protected";
/// The key of the ExtensionConfig's settings that names another annotation.
pub const ANNOTATION: &str = "annotation";
/// How soon Cluster API asks again, in seconds.
const AGAIN: i32 = 10;

/// The extension with its handler.
pub fn extension() -> Result<Extension, BadHandler> {
    let handler = Handler::named(HANDLER).timeout_seconds(5);
    Extension::new().handle(BeforeClusterDelete, handler, |request| async move { decide(&request) })
}

/// Blocks while the Cluster has the annotation.
fn decide(request: &BeforeClusterDeleteRequest) -> BeforeClusterDeleteResponse {
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
