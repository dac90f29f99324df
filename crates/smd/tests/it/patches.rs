//! Patches with the results of the implementations in Kubernetes.

use serde_json::Value;
use windlass_smd::{json_patch, merge_patch, strategic_merge_patch};

#[test]
fn recorded_patches_come_out_the_same() {
    let mut wrong = Vec::new();
    for line in include_str!("patches.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("case");
        let mut doc = case["doc"].clone();
        let outcome = match case["type"].as_str() {
            Some("json") => json_patch(&mut doc, &case["patch"]),
            Some("merge") => {
                merge_patch(&mut doc, &case["patch"]);
                Ok(())
            }
            _ => strategic_merge_patch(None, &mut doc, &case["patch"]),
        };
        let want_error = case.get("error").is_some();
        if outcome.is_err() != want_error || (!want_error && doc != case["result"]) {
            wrong.push(format!("{line}\nhave {outcome:?} {doc}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
