//! Patches with the results of the implementations in Kubernetes.

use serde_json::{Value, json};
use windlass_smd::{Edit, edit, json_patch, merge_patch, strategic_merge_patch};

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

/// An operation alone does what a patch with only this operation does.
#[test]
fn an_edit_is_a_patch_with_one_operation() {
    let document = json!({"a": {"b/c": 1, "~": 2}, "l": ["x", {"y": 3}]});
    let paths = [
        "",
        "a",
        "/",
        "/a",
        "/a/b~1c",
        "/a/~0",
        "/a/new",
        "/none/new",
        "/l",
        "/l/0",
        "/l/1/y",
        "/l/2",
        "/l/3",
        "/l/-",
        "/l/-1",
        "/l/x",
        "/l/0/x",
    ];
    let deep = (0..1_000).fold(json!(0), |below, _| json!([below]));
    for (path, value) in paths
        .iter()
        .flat_map(|path| [(path, json!({"v": 1})), (path, json!("v")), (path, deep.clone())])
    {
        let edits = [
            (
                Edit::Add(value.clone()),
                json!({"op": "add", "path": path, "value": value}),
            ),
            (
                Edit::Replace(value.clone()),
                json!({"op": "replace", "path": path, "value": value}),
            ),
            (Edit::Remove, json!({"op": "remove", "path": path})),
        ];
        for (change, operation) in edits {
            let (mut edited, mut patched) = (document.clone(), document.clone());
            let results = (
                edit(&mut edited, path, change),
                json_patch(&mut patched, &json!([operation])),
            );
            assert_eq!(results.0, results.1, "{} {path}", operation["op"]);
            assert_eq!(edited, patched, "{} {path}", operation["op"]);
        }
    }
}
