//! What is wanted, and how what there is differs from it.

#![allow(clippy::needless_pass_by_value, reason = "objects are made where they are passed")]

use serde_json::json;
use windlass_api_ext::addons::annotations;

use super::*;

fn proxy(spec: Value) -> HelmChartProxy {
    let mut all = json!({
        "clusterSelector": {}, "chartName": "tigera-operator", "repoURL": "https://charts.example/calico",
    });
    let given = spec.as_object().cloned().unwrap_or_default();
    all.as_object_mut().unwrap().extend(given);
    let object = json!({"metadata": {"name": "calico", "namespace": "ns", "uid": "u1"}, "spec": all});
    serde_json::from_value(object).unwrap()
}

/// As the server stores what is wanted.
fn stored(want: &HelmReleaseProxy) -> HelmReleaseProxy {
    let mut have = want.clone();
    have.metadata.uid = Some("u2".to_owned());
    have.metadata.resource_version = Some("7".to_owned());
    have
}

fn wanted(spec: Value) -> HelmReleaseProxy {
    release_proxy(&proxy(spec), "c1", "a: 1\n")
}

// AD-069, AD-070, AD-072, AD-073, AD-074, AD-137, AD-161
#[test]
fn a_release_proxy_has_everything_of_its_chart_and_its_cluster() {
    let want =
        wanted(json!({"version": "1.2.3", "releaseName": "cni", "credentials": {"secret": {"name": "s"}, "key": ""}}));
    let object = serde_json::to_value(&want).unwrap();
    assert_eq!(
        object["spec"],
        json!({
            "clusterRef": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "namespace": "ns"},
            "chartName": "tigera-operator",
            "repoURL": "https://charts.example/calico",
            "releaseName": "cni",
            "namespace": "default",
            "version": "1.2.3",
            "values": "a: 1\n",
            "options": {"timeout": "10m0s", "enableClientCache": false},
            "credentials": {"secret": {"name": "s", "namespace": "ns"}, "key": "config.json"},
        })
    );
    assert_eq!(object["metadata"]["namespace"], "ns");
    assert_eq!(object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "c1");
    let label = &object["metadata"]["labels"]["helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name"];
    assert_eq!(label, "calico");
    let owner = &object["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["controller"]),
        (&json!("HelmChartProxy"), &json!(true))
    );
}

// AD-084, AD-058: an empty namespace is the default one, and nothing changes by itself.
#[test]
fn what_is_as_wanted_is_left_alone() {
    let want = wanted(json!({"namespace": ""}));
    assert_eq!(change(&want, &stored(&want)), Change::None);
    let mut have = stored(&want);
    have.spec.namespace = None;
    assert_eq!(
        change(&want, &have),
        Change::Patch(json!({"spec": {"namespace": "default"}}))
    );
    // AD-078: the generated name stays.
    let mut have = stored(&want);
    have.spec.release_name = Some("tigera-operator-1".to_owned());
    let generated = [(annotations::IS_RELEASE_NAME_GENERATED.to_owned(), "true".to_owned())];
    have.metadata.annotations = Some(generated.into());
    assert_eq!(change(&want, &have), Change::None);
    // Two words for the same.
    have.spec.reconcile_strategy = Some("Continuous".to_owned());
    assert_eq!(change(&want, &have), Change::None);
}

// AD-048, AD-084: hand edits go, also of fields that the chart leaves out.
#[test]
fn one_patch_puts_everything_right() {
    let want = wanted(json!({"version": "2.0.0"}));
    let mut have = stored(&want);
    have.spec.version = Some("1.0.0".to_owned());
    have.spec.values = Some("b: 2\n".to_owned());
    have.spec.tls_config = Some(TLSConfig::default());
    let options = have.spec.options.as_mut().unwrap();
    options.wait = Some(true);
    let patch = json!({"spec": {"version": "2.0.0", "values": "a: 1\n", "tlsConfig": null, "options": {"wait": null}}});
    assert_eq!(change(&want, &have), Change::Patch(patch));
}

// AD-060, AD-073: a version that was set by hand goes when the HelmChartProxy has none.
#[test]
fn a_version_that_was_set_by_hand_goes() {
    let want = wanted(json!({"version": ""}));
    let mut have = stored(&want);
    have.spec.version = Some("1.0.0".to_owned());
    assert_eq!(change(&want, &have), Change::Patch(json!({"spec": {"version": null}})));
}

// AD-137: labels and owner come back, and the owners of others stay.
#[test]
fn labels_and_owner_are_put_back() {
    let want = wanted(json!({}));
    let mut have = stored(&want);
    have.metadata.labels = None;
    let labels = json!(want.metadata.labels);
    assert_eq!(
        change(&want, &have),
        Change::Patch(json!({"metadata": {"uid": "u2", "labels": labels}}))
    );
    let mut have = stored(&want);
    let other = OwnerReference {
        kind: "Other".to_owned(),
        name: "o".to_owned(),
        ..OwnerReference::default()
    };
    have.metadata.owner_references = Some(vec![other]);
    let patch = adoption(&want, &have).unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    let owners = patch["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(
        (&owners[0]["kind"], &owners[1]["kind"]),
        (&json!("Other"), &json!("HelmChartProxy"))
    );
}

// AD-090: what cannot change on a release means another release.
#[test]
fn fixed_fields_need_another_release() {
    let check = |spec: Value, expect: &[&'static str]| {
        let have = stored(&wanted(json!({"releaseName": "cni", "version": "1"})));
        assert_eq!(
            change(&wanted(spec.clone()), &have),
            Change::Reinstall(expect.to_vec()),
            "{spec}"
        );
    };
    check(json!({"releaseName": "cni", "chartName": "other"}), &["chartName"]);
    check(
        json!({"releaseName": "cni", "repoURL": "https://other.example"}),
        &["repoURL"],
    );
    check(json!({"releaseName": "other"}), &["releaseName"]);
    check(
        json!({"releaseName": "cni", "namespace": "kube-system"}),
        &["namespace"],
    );
    check(
        json!({"releaseName": "other", "namespace": "x"}),
        &["releaseName", "namespace"],
    );
    // A name that is set for the first time, or is no longer given, changes no release.
    let nameless = stored(&wanted(json!({})));
    let patch = json!({"spec": {"releaseName": "cni"}});
    assert_eq!(
        change(&wanted(json!({"releaseName": "cni"})), &nameless),
        Change::Patch(patch)
    );
    let named = stored(&wanted(json!({"releaseName": "cni"})));
    assert_eq!(change(&wanted(json!({})), &named), Change::None);
}

// Feature 486: atomic includes wait.
#[test]
fn options_are_complete() {
    let want = wanted(json!({"options": {"atomic": true, "install": {}, "upgrade": {"force": true}}}));
    let options = serde_json::to_value(want.spec.options.unwrap()).unwrap();
    assert_eq!(
        options,
        json!({
            "atomic": true, "wait": true, "timeout": "10m0s", "enableClientCache": false,
            "install": {"createNamespace": true}, "upgrade": {"force": true, "maxHistory": 10},
        })
    );
}
