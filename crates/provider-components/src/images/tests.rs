use serde_json::json;

use super::*;

fn overrides(json: Value) -> Overrides {
    serde_json::from_value(json).unwrap()
}

#[test]
fn images_are_taken_apart_and_put_together() {
    let check = |text: &str, repository: &str, name: &str, tag: Option<&str>, digest: Option<&str>| {
        let image = Image::parse(text).unwrap();
        assert_eq!(image.to_string(), text);
        assert_eq!(
            (image.repository.as_str(), image.name.as_str()),
            (repository, name),
            "{text}"
        );
        assert_eq!((image.tag.as_deref(), image.digest.as_deref()), (tag, digest), "{text}");
    };
    check("gcr.io/a/b:v1", "gcr.io/a", "b", Some("v1"), None);
    check("localhost:5000/b", "localhost:5000", "b", None, None);
    check("controller:latest", "", "controller", Some("latest"), None);
    check(
        "quay.io/x/y:v1@sha256:abc",
        "quay.io/x",
        "y",
        Some("v1"),
        Some("sha256:abc"),
    );
    check("[::1]:5000/y@sha256:abc", "[::1]:5000", "y", None, Some("sha256:abc"));
    for text in [
        "",
        "/",
        "a/",
        "a/b:",
        "a/b@x",
        "a b",
        "a/B:x",
        "https://x/y",
        "a/b:x y",
        "/a",
    ] {
        assert!(Image::parse(text).is_err(), "{text}");
    }
}

// OP-055, OP-174
#[test]
fn only_the_given_parts_are_replaced() {
    let check = |image: &str, meta: Value, expect: &str| {
        let meta: ImageMeta = serde_json::from_value(meta).unwrap();
        assert_eq!(Image::parse(image).unwrap().with(&meta).to_string(), expect);
    };
    check(
        "gcr.io/a/b:v1",
        json!({"repository": "reg.local/x/"}),
        "reg.local/x/b:v1",
    );
    check("gcr.io/a/b:v1", json!({"name": "c"}), "gcr.io/a/c:v1");
    check("gcr.io/a/b:v1", json!({"tag": "v2"}), "gcr.io/a/b:v2");
    check("gcr.io/a/b:v1@sha256:abc", json!({"tag": "v2"}), "gcr.io/a/b:v2");
    check(
        "gcr.io/a/b:v1@sha256:abc",
        json!({"repository": "r"}),
        "r/b:v1@sha256:abc",
    );
    check("gcr.io/a/b:v1", json!({"repository": "", "tag": ""}), "gcr.io/a/b:v1");
    check("b", json!({"repository": "r"}), "r/b");
}

#[test]
fn the_more_an_override_says_the_more_it_counts() {
    let overrides = overrides(json!({
        "all": {"repository": "all.local", "tag": "t0"},
        "infrastructure-aws": {"repository": "aws.local"},
        "infrastructure-aws/manager": {"tag": "t2"},
        "cert-manager/manager": {"name": "other"},
    }));
    let check = |component: &str, image: &str, expect: &str| {
        let meta = overrides.of(component, image);
        assert_eq!(
            Image::parse(&format!("x/{image}:v1")).unwrap().with(&meta).to_string(),
            expect
        );
    };
    check("infrastructure-aws", "manager", "aws.local/manager:t2");
    check("infrastructure-aws", "proxy", "aws.local/proxy:t0");
    check("bootstrap-kubeadm", "manager", "all.local/manager:t0");
    check("cert-manager", "manager", "all.local/other:t0");
}

fn workloads() -> Vec<Value> {
    let pod = json!({
        "containers": [{"name": "manager", "image": "a.io/x/manager:v1"}, {"name": "proxy", "image": "b.io/proxy:v2"}],
        "initContainers": [{"name": "init", "image": "a.io/x/init:v1"}],
    });
    vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"},
            "spec": {"template": {"spec": pod}}}),
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "s", "namespace": "n"},
            "spec": {"template": {"spec": {"containers": [{"name": "p", "image": "b.io/proxy:v2"}]}}}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"image": "a.io/x/manager:v1"}}),
    ]
}

// OP-170
#[test]
fn every_image_of_every_workload_is_found_and_replaced() {
    let mut objects = workloads();
    assert_eq!(list(&objects), ["a.io/x/init:v1", "a.io/x/manager:v1", "b.io/proxy:v2"]);
    let all = overrides(json!({"all": {"repository": "reg.local/mirror"}}));
    override_images(&mut objects, "infrastructure-aws", &all).unwrap();
    let mirrored = [
        "reg.local/mirror/init:v1",
        "reg.local/mirror/manager:v1",
        "reg.local/mirror/proxy:v2",
    ];
    assert_eq!(list(&objects), mirrored);
    assert_eq!(objects[2], workloads()[2]);
}

#[test]
fn what_no_override_is_about_stays_as_written() {
    let mut objects = workloads();
    let other = overrides(json!({"bootstrap-kubeadm": {"tag": "x"}, "infrastructure-aws/other": {"tag": "y"}}));
    override_images(&mut objects, "infrastructure-aws", &other).unwrap();
    assert_eq!(objects, workloads());
}

#[test]
fn an_image_that_cannot_be_read_is_named_with_its_container() {
    let mut objects = workloads();
    objects[0]["spec"]["template"]["spec"]["containers"][1]["image"] = json!("not an image");
    assert!(override_images(&mut objects, "x", &Overrides::default()).is_ok());
    let all = overrides(json!({"all": {"tag": "x"}}));
    assert_eq!(
        override_images(&mut objects, "x", &all).unwrap_err().to_string(),
        "container \"proxy\" of Deployment n/d: \"not an image\" is not an image: expected REPOSITORY/NAME:TAG or REPOSITORY/NAME@DIGEST"
    );
}

// OP-067, OP-068
#[test]
fn an_override_wins_over_an_image_that_is_a_variable() {
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [\
        {name: manager, image: '${IMG:=a.io/b:c}'}]}}}\n";
    let template = crate::envsubst::Template::parse(text).unwrap();
    let run = |image: Option<&str>, tags: Value| {
        let rendered = template.render(|_| image.map(str::to_owned)).unwrap();
        let mut objects = crate::manifest::parse(&rendered).unwrap();
        override_images(&mut objects, "cluster-api", &overrides(tags)).unwrap();
        list(&objects)
    };
    assert_eq!(run(None, json!({})), ["a.io/b:c"]);
    assert_eq!(run(Some("x.io/y:z"), json!({})), ["x.io/y:z"]);
    assert_eq!(run(None, json!({"cluster-api/b": {"tag": "mine"}})), ["a.io/b:mine"]);
    assert_eq!(run(Some("x.io/y:z"), json!({"all": {"repository": "r"}})), ["r/y:z"]);
}
