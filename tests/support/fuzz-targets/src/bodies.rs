//! Bodies of requests in every supported form.

use windlass_apiserver::input;

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let Some((first, body)) = data.split_first() else {
        return;
    };
    let media_type = [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ][usize::from(first % 7)];
    if media_type.contains("patch") {
        let _ = input::patch(media_type, body);
    } else if let Ok(object) = input::object(media_type, body) {
        // A decoded object can be encoded and decoded again.
        let text = object.to_string();
        assert_eq!(input::object("application/json", text.as_bytes()).ok(), Some(object));
    }
}
