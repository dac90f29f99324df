//! Secrets as Helm writes them, and damaged ones.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn packed(document: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(document).unwrap();
    BASE64_STANDARD.encode(gzip.finish().unwrap()).into_bytes()
}

fn secret(name: &str, stored: Vec<u8>) -> Secret {
    let mut secret = Secret {
        type_: Some(SECRET_TYPE.to_owned()),
        data: Some(BTreeMap::from([("release".to_owned(), ByteString(stored))])),
        ..Secret::default()
    };
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.namespace = Some("kube-system".to_owned());
    let labels = [
        ("name", "calico"),
        ("owner", "helm"),
        ("status", "deployed"),
        ("version", "3"),
        ("modifiedAt", "1"),
    ];
    let labels = labels.into_iter().chain([("example.com/team", "net")]);
    secret.metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
    secret
}

fn document() -> Value {
    json!({
        "name": "calico",
        "info": {
            "first_deployed": "2026-11-22T12:00:00.123456789Z",
            "last_deployed": "2026-11-22T13:30:00.5+01:00",
            "deleted": "",
            "description": "Upgrade complete",
            "status": "deployed",
            "notes": "Have fun."
        },
        "chart": {
            "metadata": {"name": "tigera-operator", "version": "v3.29.1", "appVersion": "v3.29.1", "apiVersion": "v2"},
            "lock": null,
            "templates": [{"name": "templates/a.yaml", "data": "a2luZDogQ29uZmlnTWFw"}],
            "values": {"installation": {"enabled": true}},
            "schema": null,
            "files": []
        },
        "config": {"installation": {"calicoNetwork": {"mtu": 1350}}},
        "manifest": "---\nkind: ConfigMap\n",
        "version": 3,
        "namespace": "kube-system"
    })
}

// AD-076, AD-077, AD-109
#[test]
fn a_release_is_read_from_its_secret() {
    let stored = packed(document().to_string().as_bytes());
    let release = decode(&secret("sh.helm.release.v1.calico.v3", stored)).unwrap();
    let expect = Release {
        name: "calico".to_owned(),
        namespace: "kube-system".to_owned(),
        revision: 3,
        status: Status::Deployed,
        chart: "tigera-operator".to_owned(),
        chart_version: "v3.29.1".to_owned(),
        app_version: Some("v3.29.1".to_owned()),
        values: crate::values::parse("installation: {calicoNetwork: {mtu: 1350}}").unwrap(),
        description: "Upgrade complete".to_owned(),
        labels: BTreeMap::from([("example.com/team".to_owned(), "net".to_owned())]),
        first_deployed: Some("2026-11-22T12:00:00.123456789Z".parse().unwrap()),
        last_deployed: Some("2026-11-22T12:30:00.5Z".parse().unwrap()),
    };
    assert_eq!(release, expect);
    assert!(release.has_values(&crate::values::parse("installation: {calicoNetwork: {mtu: 1350.0}}").unwrap()));
    assert!(!release.has_values(&Map::new()));
}

#[test]
fn what_helm_leaves_out_is_nothing() {
    let bare = json!({"name": "calico", "version": 1, "config": null, "chart": {"metadata": {"appVersion": ""}}, "info": {"first_deployed": "0001-01-01T00:00:00Z", "status": "odd"}});
    // Before releases were compressed.
    let stored = BASE64_STANDARD.encode(bare.to_string()).into_bytes();
    let release = decode(&secret("sh.helm.release.v1.calico.v1", stored)).unwrap();
    assert_eq!(release.namespace, "kube-system");
    assert_eq!((release.status, release.first_deployed), (Status::Unknown, None));
    assert_eq!((release.app_version, release.values.len()), (None, 0));
}

#[test]
fn invalid_releases_are_reported_without_their_content() {
    let read = |stored: &[u8]| decode(&secret("x", stored.to_vec())).unwrap_err();
    let words = |stored: &[u8]| read(stored).to_string();
    assert_eq!(words(b"hidden!"), "data.release cannot be read: it is not base64");
    assert_eq!(
        words(&packed(b"{\"hidden\"")),
        "data.release cannot be read: it is not the JSON of a release"
    );
    assert_eq!(
        words(&packed(b"{\"hidden\": 1}")),
        "data.release cannot be read: it is not the JSON of a release"
    );
    let cut = BASE64_STANDARD.decode(packed(&[b'x'; 4096])).unwrap();
    let cut = BASE64_STANDARD.encode(&cut[..cut.len() / 2]);
    assert_eq!(
        words(cut.as_bytes()),
        "data.release cannot be read: it is not a whole gzip stream"
    );
    assert_eq!(read(&vec![b'A'; MOST_STORED + 1]), DecodeError::TooLarge);

    let mut other = secret("x", Vec::new());
    other.data = None;
    assert_eq!(decode(&other).unwrap_err(), DecodeError::Missing);
    other.type_ = Some("Opaque".to_owned());
    assert_eq!(
        decode(&other).unwrap_err().to_string(),
        "it is of type \"Opaque\", not helm.sh/release.v1"
    );
}

#[test]
fn a_bomb_is_refused() {
    let bomb = packed(&[b' '; 1001]);
    assert_eq!(expand(&bomb, 1000).unwrap_err(), DecodeError::TooLarge);
    assert_eq!(expand(&bomb, 1001).unwrap().len(), 1001);
}

#[test]
fn the_newest_revision_is_the_one_with_the_highest_number() {
    let names = [
        "sh.helm.release.v1.calico.v9",
        "sh.helm.release.v1.calico.v10",
        "sh.helm.release.v1.calico.v2",
        "sh.helm.release.v1.calico.v1.v11",
        "sh.helm.release.v1.other.v12",
        "sh.helm.release.v1.calico.vx",
        "calico",
    ];
    let mut secrets: Vec<Secret> = names.iter().map(|name| secret(name, Vec::new())).collect();
    let mut foreign = secret("sh.helm.release.v1.calico.v99", Vec::new());
    foreign.type_ = Some("Opaque".to_owned());
    secrets.push(foreign);
    let found = newest("calico", &secrets).unwrap();
    assert_eq!(found.metadata.name.as_deref(), Some("sh.helm.release.v1.calico.v10"));
    assert_eq!(
        newest("calico.v1", &secrets).unwrap().metadata.name.as_deref(),
        Some(names[3])
    );
    assert!(newest("none", &secrets).is_none());
    assert_eq!(of_name(&secret_name("calico", 10)), Some(("calico", 10)));
    assert_eq!(selector("calico"), "owner=helm,name=calico");
}

// AD-076
#[test]
fn every_status_is_read_as_it_is_written() {
    for status in Status::ALL {
        assert_eq!(Status::read(&status.to_string()), status);
        assert_eq!(status.is_pending(), status.as_str().starts_with("pending-"), "{status}");
    }
}

proptest! {
    #[test]
    fn whatever_is_stored_is_answered(bytes in proptest::collection::vec(any::<u8>(), 0..2000), pack in any::<bool>()) {
        let stored = if pack { packed(&bytes) } else { bytes };
        let _ = decode(&secret("sh.helm.release.v1.x.v1", stored));
    }
}
