//! A document and a patch, both JSON, separated by a zero byte: JSON patch, merge patch, strategic merge patch.

use serde_json::Value;

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let mut parts = data.splitn(2, |b| *b == 0);
    let (Some(document), Some(patch)) = (parts.next(), parts.next()) else {
        return;
    };
    let (Ok(document), Ok(patch)) = (
        serde_json::from_slice::<Value>(document),
        serde_json::from_slice::<Value>(patch),
    ) else {
        return;
    };
    let mut patched = document.clone();
    let _ = windlass_smd::json_patch(&mut patched, &patch);
    let mut patched = document.clone();
    windlass_smd::merge_patch(&mut patched, &patch);
    let once = patched.clone();
    windlass_smd::merge_patch(&mut patched, &patch);
    assert_eq!(once, patched, "a merge patch changes nothing the second time");
    let mut patched = document;
    let _ = windlass_smd::strategic_merge_patch(None, &mut patched, &patch);
}
