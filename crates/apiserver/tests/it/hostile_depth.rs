//! Objects that are nested deeper than decoders take: they would be stored and never read again, or end the process.

use http::Request;
use kube::Client;
use serde_json::{Value, json};
use windlass_meta::budget::OBJECT_DEPTH;

use crate::hostile::{answer, post};
use crate::hostile_work::{ANY, anything, patch};

/// Objects within objects.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |value, _| json!({"a": value}))
}

fn widget(name: &str, levels: usize) -> Value {
    json!({"apiVersion": "example.com/v1alpha1", "kind": "Widget", "metadata": {"name": name}, "x": nested(levels)})
}

/// What is stored can be read, listed, changed and deleted.
async fn is_served(admin: &Client, name: &str) {
    let get = |path: &str| Request::get(path).body(Vec::new()).unwrap();
    assert_eq!(answer(admin, get(&format!("{ANY}/{name}"))).await.0, 200);
    assert_eq!(answer(admin, get(ANY)).await.0, 200);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let changed = answer(admin, patch(&format!("{ANY}/{name}"), "merge-patch+json", &label)).await;
    assert_eq!(changed.0, 200, "{}", changed.1);
    let deleted = Request::delete(format!("{ANY}/{name}")).body(Vec::new()).unwrap();
    assert_eq!(answer(admin, deleted).await.0, 200);
}

#[tokio::test]
async fn what_is_stored_can_be_read_again() {
    let (_server, admin) = anything().await;
    let (mut stored, mut refused) = (0, 0);
    for levels in 100..OBJECT_DEPTH + 4 {
        let created = answer(&admin, post(ANY, widget("w", levels).to_string().into())).await;
        let applied = widget("applied", levels);
        let path = format!("{ANY}/applied?fieldManager=me");
        let applied = answer(&admin, patch(&path, "apply-patch+yaml", &applied)).await;
        for (name, (code, text)) in [("w", created), ("applied", applied)] {
            if code == 201 {
                is_served(&admin, name).await;
                stored += 1;
            } else {
                assert_eq!(code, 400, "{text}");
                assert!(text.contains("nested more than 120 levels deep"), "{text}");
                refused += 1;
            }
        }
    }
    assert!(stored > 10 && refused > 10, "{stored} stored, {refused} refused");
}

/// Each copy doubles the depth: a few of them would take more stack than there is.
#[tokio::test]
async fn operations_of_a_patch_do_not_build_on_each_other_without_end() {
    let (_server, admin) = anything().await;
    let created = answer(&admin, post(ANY, widget("w", 1).to_string().into())).await;
    assert_eq!(created.0, 201);
    let mut operations = vec![json!({"op": "add", "path": "/x", "value": nested(100)})];
    let mut depth = 100;
    for _ in 0..6 {
        operations.push(json!({"op": "copy", "from": "/x", "path": format!("/x{}", "/a".repeat(depth))}));
        depth *= 2;
    }
    let added: Vec<Value> = (0..50)
        .map(
            |number| json!({"op": "add", "path": format!("/x{}", "/a".repeat(number * 100 + 1)), "value": nested(100)}),
        )
        .collect();
    let moved = json!([
        {"op": "add", "path": "/x", "value": nested(100)},
        {"op": "add", "path": "/y", "value": nested(100)},
        {"op": "move", "from": "/y", "path": format!("/x{}", "/a".repeat(100))},
    ]);
    let replaced = json!([{"op": "replace", "path": "", "value": nested(OBJECT_DEPTH + 2)}]);
    for operations in [json!(operations), json!(added), moved, replaced] {
        let (code, text) = answer(&admin, patch(&format!("{ANY}/w"), "json-patch+json", &operations)).await;
        assert_eq!(code, 413, "{text}");
        assert!(text.contains("would be deeper than 120 levels"), "{text}");
    }
    is_served(&admin, "w").await;
}
