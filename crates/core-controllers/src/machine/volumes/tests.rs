//! Cases for what is still attached, and for the words.

use serde_json::{Value, json};

use super::*;

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn volume(name: &str, claim: Option<&str>) -> PersistentVolume {
    let claim = claim.map(|claim| json!({"kind": "PersistentVolumeClaim", "namespace": "apps", "name": claim}));
    from(json!({
        "metadata": {"name": name},
        "spec": {"claimRef": claim, "csi": {"driver": "d", "volumeHandle": format!("{name}-handle")}},
    }))
}

fn attachment(volume: &str, attached: bool) -> VolumeAttachment {
    from(json!({
        "metadata": {"name": format!("of-{volume}")},
        "spec": {"nodeName": "n", "source": {"persistentVolumeName": volume}}, "status": {"attached": attached},
    }))
}

fn check(node: Value, attachments: &[VolumeAttachment], kept: &[&str], expect: &[&str]) {
    let node: Node = from(json!({"metadata": {"name": "n"}, "status": {"volumesAttached": node}}));
    let kept = kept.iter().map(|claim| ObjectKey::new("apps", *claim)).collect();
    let volumes = [
        volume("one", Some("data")),
        volume("two", Some("logs")),
        volume("bare", None),
    ];
    let found = attached(&node, attachments, &volumes, &kept).unwrap();
    assert_eq!(found.lines(), expect);
    assert_eq!(found.is_empty(), expect.is_empty());
}

#[test]
fn volumes_are_named_by_their_claims() {
    check(json!([]), &[], &[], &[]);
    let reported = json!([{"name": "kubernetes.io/csi/d^one-handle", "devicePath": ""}]);
    check(reported, &[], &[], &["* PersistentVolumeClaims: apps/data"]);
    let both = [attachment("one", true), attachment("two", true)];
    check(
        json!([]),
        &both,
        &[],
        &["* PersistentVolumeClaims: apps/data, apps/logs"],
    );
}

#[test]
fn what_is_detached_or_belongs_to_a_pod_that_stays_does_not_count() {
    check(json!([]), &[attachment("one", false)], &[], &[]);
    check(json!([]), &[attachment("one", true)], &["data"], &[]);
}

#[test]
fn volumes_that_no_claim_explains_are_waited_for() {
    let reported = json!([{"name": "kubernetes.io/aws-ebs/vol-1", "devicePath": "/dev/x"}]);
    check(
        reported,
        &[attachment("bare", true), attachment("lost", true)],
        &[],
        &[
            "* PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim: bare",
            "* Node with .status.volumesAttached entries not matching a PersistentVolume: kubernetes.io/aws-ebs/vol-1",
            "* VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume: lost",
        ],
    );
}

#[test]
fn an_attachment_without_a_volume_is_an_error() {
    let odd = from(json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n"}, "status": {"attached": true}}));
    let found = attached(&Node::default(), &[odd], &[], &BTreeSet::new());
    assert_eq!(
        found.unwrap_err(),
        "spec.source.persistentVolumeName for VolumeAttachment a is not set"
    );
}
