//! Corefiles are migrated as the migration library of CoreDNS does it. The vectors with its results are in `corefiles.jsonl`
//! (`cargo xtask vectors`).

use serde::Deserialize;
use windlass_kubeadm::coredns::{Version, migrate};

const VECTORS: &str = include_str!("corefiles.jsonl");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: String,
    #[serde(default)]
    corefile: String,
    after: Option<String>,
    error: Option<String>,
    #[serde(default)]
    releases: Vec<String>,
}

fn version(text: &str) -> Version {
    Version::of_tag(text).unwrap()
}

fn vectors() -> impl Iterator<Item = Vector> {
    VECTORS.lines().map(|line| serde_json::from_str(line).unwrap())
}

#[test]
fn the_releases_are_those_that_the_library_knows() {
    let known = vectors().find(|vector| !vector.releases.is_empty()).unwrap().releases;
    let oldest = version(&known[0]);
    let ours: Vec<String> = std::iter::once(oldest)
        .chain(oldest.later())
        .map(|release| release.to_string())
        .collect();
    assert!(oldest.is_known());
    assert_eq!(ours, known);
}

#[test]
fn corefiles_become_what_the_library_makes_of_them() {
    let (mut changed, mut kept, mut refused) = (0, 0, 0);
    for vector in vectors().filter(|vector| vector.releases.is_empty()) {
        let got = migrate(&vector.corefile, version(&vector.from), version(&vector.to));
        match (got, &vector.after, &vector.error) {
            (Ok(Some(text)), Some(after), None) => {
                assert_eq!(text, *after, "{vector:?}");
                changed += 1;
            }
            // The library writes also what stays as it is.
            (Ok(None), Some(after), None) => {
                assert_eq!(vector.corefile, *after, "{vector:?}");
                kept += 1;
            }
            (Err(_), None, Some(_)) => refused += 1,
            (got, ..) => panic!("{got:?} of {vector:?}"),
        }
    }
    assert!(changed > 30 && kept > 8 && refused > 3, "{changed} {kept} {refused}");
}

/// The library keeps it only where another word follows. Resolvers that take no UDP would not answer any more.
#[test]
fn connections_by_tcp_stay_also_where_the_library_forgets_them() {
    for protocol in ["dns force_tcp", "force_tcp", "force_tcp prefer_udp"] {
        let before = format!(".:53 {{\n    proxy . 1.1.1.1 {{\n        protocol {protocol}\n    }}\n}}\n");
        let after = ".:53 {\n    forward . 1.1.1.1 {\n        force_tcp\n    }\n}\n";
        let got = migrate(&before, version("1.4.0"), version("1.5.0"));
        assert_eq!(got, Ok(Some(after.to_owned())), "{protocol}");
    }
}
