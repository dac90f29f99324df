//! What is refused, by field.

#![allow(clippy::needless_pass_by_value, reason = "objects are made where they are passed")]

use serde_json::{Value, json};

use super::*;

fn chart(change: &Value) -> HelmChartProxy {
    let mut object = json!({
        "metadata": {"name": "calico", "namespace": "ns"},
        "spec": {"clusterSelector": {}, "chartName": "calico", "repoURL": "https://charts.example"},
    });
    merge(&mut object, change);
    serde_json::from_value(object).unwrap()
}

/// A JSON merge patch.
fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

/// The fields that are wrong with a new object.
fn refused(change: Value) -> Vec<String> {
    let errors = chart_proxy(None, &chart(&change));
    errors.into_iter().map(|error| error.path).collect()
}

// AD-114: the table of URLs.
#[test]
fn repositories_are_reached_over_https_or_are_registries() {
    let check = |url: &str, good: bool| assert_eq!(repository(url, None).is_ok(), good, "{url}");
    for good in [
        "https://charts.example",
        "https://charts.example:8443/path?x=1",
        "HTTPS://charts.example",
        "https://[::1]:8443/charts",
        "https://user:password@charts.example/private",
        "oci://registry.example/charts",
        "oci://localhost:5000",
    ] {
        check(good, true);
    }
    for bad in [
        "",
        "charts.example",
        "/charts",
        "./charts",
        "file:///charts",
        "ftp://charts.example",
        "http://charts.example",
        "https://",
        "https:///path",
        "https://:8443",
        "https://user@/path",
        "oci://",
        "oci://user:password@registry.example/charts",
        "OCI://registry.example",
        "Oci://registry.example",
        "https:charts.example",
        "https://charts.example/a b",
        "https://charts.example\n",
        "git+https://x.example",
        "s3://bucket",
    ] {
        check(bad, false);
    }
}

// AD-114: plain HTTP is for those who ask for it.
#[test]
fn plain_http_has_to_be_asked_for() {
    let tls = |skip| TLSConfig {
        insecure_skip_tls_verify: Some(skip),
        ..TLSConfig::default()
    };
    assert!(repository("http://charts.example", Some(&tls(true))).is_ok());
    assert!(repository("http://", Some(&tls(true))).is_err());
    let why = repository("http://charts.example", Some(&tls(false))).unwrap_err();
    assert!(
        why.ends_with("plain http is only used where spec.tlsConfig.insecureSkipTLSVerify is true"),
        "{why}"
    );
}

// A password is in no message.
#[test]
fn what_stands_before_the_host_is_never_shown() {
    assert_eq!(
        shown_url("https://user:secret@charts.example/x"),
        "https://***@charts.example/x"
    );
    assert_eq!(shown_url("https://charts.example/x@y"), "https://charts.example/x@y");
    let object = chart(&json!({"spec": {"repoURL": "ftp://user:secret@charts.example"}}));
    let error = chart_proxy(None, &object).remove(0);
    assert!(!error.to_string().contains("secret"), "{error}");
}

// AD-055, AD-060, AD-104, feature 486
#[test]
fn every_field_is_judged() {
    let check = |change: Value, expect: &[&str]| assert_eq!(refused(change.clone()), expect, "{change}");
    check(json!({}), &[]);
    check(json!({"spec": {"chartName": ""}}), &["spec.chartName"]);
    check(json!({"spec": {"chartName": "--post-renderer=x"}}), &["spec.chartName"]);
    check(json!({"spec": {"chartName": "../chart"}}), &["spec.chartName"]);
    check(
        json!({"spec": {"chartName": "oci://x.example/chart"}}),
        &["spec.chartName"],
    );
    check(json!({"spec": {"chartName": "Capital_Chart.v2/part"}}), &[]);
    check(json!({"spec": {"repoURL": ""}}), &["spec.repoURL"]);
    check(json!({"spec": {"version": "latest"}}), &["spec.version"]);
    check(json!({"spec": {"version": ""}}), &[]);
    check(json!({"spec": {"version": "^1.2"}}), &[]);
    check(json!({"spec": {"releaseName": "-x"}}), &["spec.releaseName"]);
    check(json!({"spec": {"releaseName": "x".repeat(54)}}), &["spec.releaseName"]);
    check(json!({"spec": {"releaseName": "my.release-1"}}), &[]);
    check(json!({"spec": {"namespace": "Kube"}}), &["spec.namespace"]);
    check(json!({"spec": {"namespace": ""}}), &[]);
    check(
        json!({"spec": {"options": {"timeout": "soon"}}}),
        &["spec.options.timeout"],
    );
    check(json!({"spec": {"options": {"timeout": "1h30m"}}}), &[]);
    check(
        json!({"spec": {"rollout": {"install": {"stepInit": "x"}}}}),
        &["spec.rollout.install.stepInit"],
    );
}

// What was stored before can lose its finalizer, and be put right step by step.
#[test]
fn only_new_mistakes_are_refused_of_what_exists() {
    let bad = chart(&json!({"spec": {"repoURL": "file:///x", "version": "latest"}}));
    assert_eq!(chart_proxy(Some(&bad), &bad), []);
    let half = chart(&json!({"spec": {"version": "latest"}}));
    assert_eq!(chart_proxy(Some(&bad), &half), []);
    let worse = chart(&json!({"spec": {"repoURL": "file:///x", "version": "latest", "chartName": ""}}));
    assert_eq!(chart_proxy(Some(&bad), &worse)[0].path, "spec.chartName");
}

// AD-053
#[test]
fn a_selector_that_means_nothing_is_refused() {
    let selector = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    let field = "spec.clusterSelector.matchExpressions[0].operator";
    assert_eq!(refused(json!({"spec": {"clusterSelector": selector}})), [field]);
}

// AD-094: an 80-character name is refused when the object is created, and in words.
#[test]
fn a_name_too_long_for_a_label_is_refused() {
    let long = chart(&json!({"metadata": {"name": "x".repeat(80)}}));
    let errors = chart_proxy(None, &long);
    assert_eq!(errors[0].path, "metadata.name");
    assert!(errors[0].detail.contains("63 bytes"), "{}", errors[0]);
    // What exists can still be changed, and deleted.
    assert_eq!(chart_proxy(Some(&long), &long), []);
    assert_eq!(
        refused(json!({"metadata": {"name": "x".repeat(63)}})),
        Vec::<String>::new()
    );
}

// Feature 486: what InstallOnce once was stays so; no word and Continuous are the same.
#[test]
fn the_strategy_never_changes() {
    let of = |strategy: Value| chart(&json!({"spec": {"reconcileStrategy": strategy}}));
    let check = |old: Value, new: Value, good: bool| {
        let errors = chart_proxy(Some(&of(old.clone())), &of(new.clone()));
        assert_eq!(errors.is_empty(), good, "{old} {new}");
    };
    check(json!("InstallOnce"), json!("Continuous"), false);
    check(json!("Continuous"), json!("InstallOnce"), false);
    check(json!(null), json!("InstallOnce"), false);
    check(json!("InstallOnce"), json!(null), false);
    check(json!(""), json!("Continuous"), true);
    check(json!("InstallOnce"), json!("InstallOnce"), true);
}

// AD-079
#[test]
fn a_release_proxy_stays_the_same_release() {
    let of = |change: Value| -> HelmReleaseProxy {
        let mut object = json!({"spec": {"clusterRef": {}, "chartName": "a", "repoURL": "https://a.example"}});
        merge(&mut object["spec"], &change);
        serde_json::from_value(object).unwrap()
    };
    let check = |old: Value, new: Value, expect: &[&str]| {
        let errors = release_proxy(&of(old), &of(new));
        let fields: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(fields, expect);
        assert!(errors.iter().all(|error| error.detail == "field is immutable"));
    };
    check(json!({}), json!({"chartName": "b"}), &["spec.chartName"]);
    check(json!({}), json!({"repoURL": "https://b.example"}), &["spec.repoURL"]);
    check(json!({}), json!({"namespace": "x"}), &["spec.namespace"]);
    check(json!({}), json!({"namespace": "default"}), &[]);
    check(json!({}), json!({"releaseName": "x"}), &[]);
    check(json!({"releaseName": ""}), json!({"releaseName": "x"}), &[]);
    check(
        json!({"releaseName": "x"}),
        json!({"releaseName": "y"}),
        &["spec.releaseName"],
    );
    check(json!({"releaseName": "x"}), json!({}), &["spec.releaseName"]);
    check(
        json!({}),
        json!({"reconcileStrategy": "InstallOnce"}),
        &["spec.reconcileStrategy"],
    );
    check(json!({}), json!({"version": "2", "values": "a: 1"}), &[]);
}
