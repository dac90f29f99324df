//! The query of a list: selectors, limits, tokens.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = windlass_apiserver::input::list_query(text);
    for parameter in ["labelSelector", "fieldSelector", "continue", "resourceVersion"] {
        let _ = windlass_apiserver::input::list_query(&format!("{parameter}={text}"));
    }
});
