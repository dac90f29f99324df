use serde_json::json;

use super::*;

fn objects() -> Vec<Value> {
    let labels = json!({"cluster.x-k8s.io/provider": "infrastructure-x", "clusterctl.cluster.x-k8s.io": ""});
    vec![
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "ns", "name": "webhook", "labels": labels},
            "spec": {"ports": [{"port": 443, "targetPort": "webhook-server"}]},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "ns", "name": "capx-controller-manager", "labels": labels},
            "spec": {"template": {"spec": {
                "containers": [
                    {"name": "manager", "image": "a:v1", "args": ["--v=1"]},
                    {"name": "proxy", "image": "b:v1"},
                ],
                "tolerations": [{"key": "a"}],
            }}},
        }),
        json!({
            "apiVersion": "x.cluster.x-k8s.io/v1", "kind": "Thing",
            "metadata": {"name": "thing", "labels": labels},
            "spec": {"containers": [{"name": "a", "image": "a"}, {"name": "b"}]},
        }),
    ]
}

fn targeted(patch: &str, target: Option<PatchTarget>) -> Patches {
    Patches::Targeted(vec![TargetedPatch {
        patch: patch.to_owned(),
        target,
    }])
}

fn kind(kind: &str) -> PatchTarget {
    PatchTarget {
        kind: Some(kind.to_owned()),
        ..PatchTarget::default()
    }
}

/// The indexes of the changed objects.
fn changed(patches: &Patches) -> Vec<usize> {
    let before = objects();
    let mut after = objects();
    let notes = apply(&mut after, patches).unwrap();
    let out: Vec<usize> = (0..before.len()).filter(|at| before[*at] != after[*at]).collect();
    assert_eq!(notes.iter().any(|note| note.ignored), out.is_empty(), "{notes:?}");
    out
}

#[test]
fn targets_are_what_fits_all_that_is_said() {
    let check = |target: PatchTarget, expect: &[usize]| {
        let patch = targeted("metadata: {annotations: {a: b}}", Some(target.clone()));
        assert_eq!(changed(&patch), expect, "{target:?}");
    };
    let some = |text: &str| Some(text.to_owned());
    let any = PatchTarget::default;
    check(any(), &[0, 1, 2]);
    check(
        PatchTarget {
            kind: some("Service"),
            ..any()
        },
        &[0],
    );
    check(
        PatchTarget {
            group: some("apps"),
            ..any()
        },
        &[1],
    );
    check(
        PatchTarget {
            version: some("v1"),
            ..any()
        },
        &[0, 1, 2],
    );
    check(
        PatchTarget {
            version: some("v2"),
            ..any()
        },
        &[],
    );
    check(
        PatchTarget {
            name: some("thing"),
            ..any()
        },
        &[2],
    );
    check(
        PatchTarget {
            namespace: some("ns"),
            ..any()
        },
        &[0, 1],
    );
    check(
        PatchTarget {
            namespace: some("ns"),
            name: some("thing"),
            ..any()
        },
        &[],
    );
    check(
        PatchTarget {
            label_selector: some("cluster.x-k8s.io/provider in (infrastructure-x),!no"),
            ..any()
        },
        &[0, 1, 2],
    );
    check(
        PatchTarget {
            label_selector: some("no"),
            ..any()
        },
        &[],
    );
    // Without a target: all objects, or the identity in the patch.
    assert_eq!(changed(&targeted("metadata: {annotations: {a: b}}", None)), [0, 1, 2]);
    let own = "apiVersion: v1\nkind: Service\nmetadata: {name: webhook, annotations: {a: b}}";
    assert_eq!(changed(&targeted(own, None)), [0]);
}

#[test]
fn lists_of_built_in_kinds_merge_by_key() {
    let mut all = objects();
    let patch = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: not-important}
spec: {template: {spec: {containers: [{name: manager, image: c:v2}], tolerations: [{key: b}]}}}";
    apply(&mut all, &targeted(patch, Some(kind("Deployment")))).unwrap();
    let pod = &all[1]["spec"]["template"]["spec"];
    assert_eq!(
        pod["containers"][0],
        json!({"name": "manager", "image": "c:v2", "args": ["--v=1"]})
    );
    assert_eq!(pod["containers"][1]["name"], "proxy");
    assert_eq!(pod["tolerations"], json!([{"key": "b"}]));
    assert_eq!(all[1]["metadata"]["name"], "capx-controller-manager");
    // Lists of other kinds are replaced.
    apply(
        &mut all,
        &targeted("spec: {containers: [{name: a}]}", Some(kind("Thing"))),
    )
    .unwrap();
    assert_eq!(all[2]["spec"]["containers"], json!([{"name": "a"}]));
}

#[test]
fn operations_are_applied() {
    let mut all = objects();
    let patch = "
- op: add
  path: /spec/template/spec/containers/0/args/-
  value: --more=1
- op: remove
  path: /spec/template/spec/tolerations";
    let notes = apply(&mut all, &targeted(patch, Some(kind("Deployment")))).unwrap();
    let pod = &all[1]["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["args"], json!(["--v=1", "--more=1"]));
    assert_eq!(pod.get("tolerations"), None);
    assert_eq!(
        notes[0].to_string(),
        "spec.patches[0]: patched it (Deployment ns/capx-controller-manager)"
    );
}

#[test]
fn an_object_can_be_left_out() {
    let mut all = objects();
    apply(&mut all, &targeted("$patch: delete", Some(kind("Thing")))).unwrap();
    assert_eq!(all.len(), 2);
}

#[test]
fn manifest_patches_name_what_they_are_for() {
    let check =
        |text: &str, expect: &[usize]| assert_eq!(changed(&Patches::Merge(vec![text.to_owned()])), expect, "{text}");
    check("kind: Service\nmetadata: {annotations: {a: b}}", &[0]);
    check("kind: Service\napiVersion: v2\nmetadata: {annotations: {a: b}}", &[]);
    check(
        "kind: Service\napiVersion: v1\nmetadata: {name: webhook, labels: {a: b}}",
        &[0],
    );
    check(
        "kind: Service\nmetadata: {name: webhook, namespace: other, labels: {a: b}}",
        &[],
    );
    // These are merge patches: a list replaces a list.
    let mut all = objects();
    let patch = "kind: Deployment\nspec: {template: {spec: {containers: [{name: manager}]}}}";
    apply(&mut all, &Patches::Merge(vec![patch.to_owned()])).unwrap();
    assert_eq!(
        all[1]["spec"]["template"]["spec"]["containers"],
        json!([{"name": "manager"}])
    );
}

#[test]
fn later_patches_see_earlier_ones() {
    let one = |patch: &str| TargetedPatch {
        patch: patch.to_owned(),
        target: Some(kind("Service")),
    };
    let mut all = objects();
    let patches = Patches::Targeted(vec![
        one("metadata: {annotations: {a: b}}"),
        one("[{op: replace, path: /metadata/annotations/a, value: c}]"),
    ]);
    apply(&mut all, &patches).unwrap();
    assert_eq!(all[0]["metadata"]["annotations"]["a"], "c");
}

#[test]
fn labels_by_which_objects_are_found_stay() {
    let mut all = objects();
    apply(&mut all, &targeted("metadata: {labels: null}", Some(kind("Service")))).unwrap();
    let labels = &all[0]["metadata"]["labels"];
    assert_eq!(labels["cluster.x-k8s.io/provider"], "infrastructure-x");
    assert_eq!(labels["clusterctl.cluster.x-k8s.io"], "");
}

#[test]
fn problems_are_reported_with_their_place() {
    let check = |patches: Patches, expect: &[&str]| {
        let error = apply(&mut objects(), &patches).unwrap_err().to_string();
        for part in expect {
            assert!(error.contains(part), "{error} should contain {part}");
        }
    };
    let label = |text: &str| {
        Some(PatchTarget {
            label_selector: Some(text.to_owned()),
            ..PatchTarget::default()
        })
    };
    check(
        targeted("a: [", None),
        &["spec.patches[0]: patch is not YAML, in its line 1"],
    );
    check(targeted("", None), &["spec.patches[0]: patch is empty"]);
    check(
        targeted("just text", None),
        &["spec.patches[0]: patch is neither an object nor a list"],
    );
    check(targeted("a: b\n---\nc: d", None), &["more than one document"]);
    check(targeted("[{path: /a}]", None), &["entry 0 has no op"]);
    check(
        targeted("a: b", label("a in (b")),
        &["spec.patches[0]: target.labelSelector", "parenthesis"],
    );
    check(
        targeted("[{op: remove, path: /spec/no}]", Some(kind("Deployment"))),
        &[
            "spec.patches[0] cannot be applied to Deployment ns/capx-controller-manager",
            "/spec/no",
        ],
    );
    check(
        targeted(
            "[{op: replace, path: /metadata/name, value: other}]",
            Some(kind("Service")),
        ),
        &["Service ns/webhook", "would change metadata.name"],
    );
    check(
        targeted("metadata: null", Some(kind("Service"))),
        &["would change metadata.name"],
    );
    check(
        targeted("metadata: {labels: [1]}", Some(kind("Service"))),
        &["metadata.labels is not an object"],
    );
    check(
        Patches::Merge(vec!["metadata: {}".to_owned()]),
        &["spec.manifestPatches[0]: does not say a kind"],
    );
    check(
        Patches::Merge(vec!["[]".to_owned()]),
        &["spec.manifestPatches[0]: is a list of operations"],
    );
}
