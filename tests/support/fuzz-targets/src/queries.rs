//! The query of a list: selectors, limits, tokens.

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = windlass_apiserver::input::list_query(text);
    for parameter in ["labelSelector", "fieldSelector", "continue", "resourceVersion"] {
        let _ = windlass_apiserver::input::list_query(&format!("{parameter}={text}"));
    }
}
