//! Valid and broken ConfigMaps with versions.

use k8s_openapi::ByteString;

use super::pack::pack_within;
use windlass_api_operator::ProviderType;

use super::*;
use crate::names::Names;

fn map(name: &str, keys: &[(&str, &str)]) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.metadata.namespace = Some("capz-system".to_owned());
    map.data = Some(
        keys.iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
    );
    map
}

fn whole(name: &str) -> ConfigMap {
    map(
        name,
        &[("components", "kind: Namespace"), ("metadata", "kind: Metadata")],
    )
}

fn labelled(mut map: ConfigMap, version: &str) -> ConfigMap {
    map.metadata.labels = Some(BTreeMap::from([(VERSION.to_owned(), version.to_owned())]));
    map
}

fn annotated(mut map: ConfigMap, key: &str, value: &str) -> ConfigMap {
    map.metadata
        .annotations
        .get_or_insert_default()
        .insert(key.to_owned(), value.to_owned());
    map
}

/// Requests a version, and checks a part of the message, if there is one.
#[track_caller]
fn check(maps: &[ConfigMap], version: &str, expected: Result<&str, (&str, &str)>) {
    let found = read(maps, "capz-system", "provider-components=azure").and_then(|shelf| shelf.files(version));
    match (found, expected) {
        (Ok(files), Ok(components)) => assert_eq!(files.components, components),
        (Err(error), Err((reason, words))) => {
            assert_eq!(error.reason(), reason, "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        (found, _) => panic!("{found:?}"),
    }
}

#[test]
fn a_config_map_is_for_the_version_it_is_named_or_labelled_with() {
    // OP-157, OP-158, OP-159, OP-160, OP-164, OP-169
    let two = [whole("v0.4.9"), whole("v0.4.8")];
    check(&two, "v0.4.8", Ok("kind: Namespace"));
    let shelf = read(&two, "capz-system", "").unwrap();
    assert_eq!(shelf.versions().unwrap(), ["v0.4.8", "v0.4.9"]);
    // OP-161
    let label = [labelled(whole("azure-1-0-0"), "v1.0.0")];
    check(&label, "v1.0.0", Ok("kind: Namespace"));
}

#[test]
fn what_is_missing_is_named() {
    // OP-159, OP-163, OP-165
    check(&[], "v1.0.0", Err(("ConfigMapNotFound", "provider-components=azure")));
    check(
        &[whole("v1.1.0"), whole("v1.0.1")],
        "v1.0.0",
        Err(("VersionNotFound", "there are v1.1.0, v1.0.1")),
    );
    let without = |key: &str| [map("v1.0.0", &[(key, "kind: X")])];
    check(
        &without("metadata"),
        "v1.0.0",
        Err((
            "ConfigMapKeyMissing",
            "capz-system/v1.0.0 has no key \"components\"; it has metadata",
        )),
    );
    check(
        &without("components"),
        "v1.0.0",
        Err(("ConfigMapKeyMissing", "no key \"metadata\"; it has components")),
    );
    let empty = [map("v1.0.0", &[("components", ""), ("metadata", "")])];
    check(
        &empty,
        "v1.0.0",
        Err(("NotYAML", "key \"components\" of ConfigMap capz-system/v1.0.0 is empty")),
    );
    let page = [map(
        "v1.0.0",
        &[("components", "<!doctype html><html>"), ("metadata", "kind: X")],
    )];
    check(&page, "v1.0.0", Err(("WebPage", "is a web page")));
}

#[test]
fn two_for_the_same_version_are_not_chosen_between() {
    // OP-163
    let twins = [whole("v1.0.0"), labelled(whole("other"), "v1.0.0"), whole("v1.1.0")];
    check(&twins, "v1.0.0", Err(("ConfigMapAmbiguous", "v1.0.0, other")));
    check(&twins, "v1.1.0", Ok("kind: Namespace"));
}

#[test]
fn a_config_map_for_no_version_stands_in_nobodys_way() {
    let maps = [whole("azure"), whole("v1.0.0"), labelled(whole("v1.1.0"), "1.1.0")];
    check(&maps, "v1.0.0", Ok("kind: Namespace"));
    let shelf = read(&maps, "capz-system", "").unwrap();
    let problems: Vec<_> = shelf.problems().iter().map(Error::to_string).collect();
    assert!(
        problems[0].contains("capz-system/azure") && problems[0].contains("its name"),
        "{problems:?}"
    );
    assert!(
        problems[1].contains("\"1.1.0\" (its label provider.cluster.x-k8s.io/version)"),
        "{problems:?}"
    );
    check(
        &maps[..1],
        "v1.0.0",
        Err(("ConfigMapVersionInvalid", "capz-system/azure")),
    );
}

fn files(size: usize) -> Files {
    // Text that compresses badly.
    let mut state = 7_u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{state:x} ")
    };
    let mut components = String::from("kind: Namespace # ");
    while components.len() < size {
        components += &word();
    }
    let metadata = "kind: Metadata".to_owned();
    Files {
        components,
        metadata,
        from: String::new(),
    }
}

#[test]
fn what_was_packed_is_read_again_however_long_it_is() {
    let names = Names::new(ProviderType::Infrastructure, "azure");
    let what = Pack {
        names: &names,
        version: "v1.0.0",
        namespace: "capz-system",
        labels: BTreeMap::from([("x".to_owned(), "y".to_owned())]),
    };
    for (size, longest, count, compressed) in [
        (100, 1_000, 1, false),
        (3_000, 2_000, 1, true),
        (20_000, 2_000, 7, true),
        (2_500_000, 1_000_000, 2, true),
    ] {
        let files = files(size);
        let maps = pack_within(&what, &files, longest).unwrap();
        assert_eq!(maps.len(), count, "{size}");
        for map in &maps {
            let values = [raw(map, COMPONENTS), raw(map, METADATA)]
                .into_iter()
                .flatten()
                .map(<[u8]>::len);
            assert!(values.sum::<usize>() <= longest);
            assert_eq!(annotation(map, COMPRESSED).is_some(), compressed);
            assert_eq!(map.metadata.labels.as_ref().unwrap()["x"], "y");
        }
        let shuffled: Vec<_> = maps.iter().rev().cloned().collect();
        let found = read(&shuffled, "capz-system", "x=y").unwrap().files("v1.0.0").unwrap();
        assert_eq!((found.components, found.metadata), (files.components, files.metadata));
    }
    assert_eq!(
        pack(&what, &files(10)).unwrap()[0].metadata.name.as_deref(),
        Some("infrastructure-azure-v1.0.0")
    );
    let error = pack(
        &Pack {
            version: "v1.0.0+x",
            ..what
        },
        &files(10),
    )
    .unwrap_err();
    assert!(error.to_string().contains("cannot be the value of a label"));
}

#[test]
fn pieces_that_do_not_fit_are_distinguished() {
    let part =
        |name: &str, part: &str, keys: &[(&str, &str)]| annotated(labelled(map(name, keys), "v1.0.0"), PART, part);
    let metadata = ("metadata", "kind: X");
    let one = part("a", "1/2", &[("components", "kind: "), metadata]);
    let two = part("b", "2/2", &[("components", "Namespace")]);
    check(&[two.clone(), one.clone()], "v1.0.0", Ok("kind: Namespace"));
    check(
        std::slice::from_ref(&one),
        "v1.0.0",
        Err(("ConfigMapDamaged", "piece 2 of 2 is missing")),
    );
    check(
        &[one.clone(), one.clone()],
        "v1.0.0",
        Err(("ConfigMapAmbiguous", "a, a")),
    );
    let three = part("c", "3/3", &[]);
    check(
        &[one.clone(), three],
        "v1.0.0",
        Err(("ConfigMapDamaged", "do not agree")),
    );
    check(
        &[part("d", "0/1", &[])],
        "v1.0.0",
        Err(("ConfigMapDamaged", "does not read as 1/3 does")),
    );
    check(
        &[part("d", "1/99999999999", &[])],
        "v1.0.0",
        Err(("ConfigMapDamaged", "piece 2 of 99999999999")),
    );
    check(
        &[one, whole("v1.0.0")],
        "v1.0.0",
        Err(("ConfigMapAmbiguous", "a, v1.0.0")),
    );
    let bare = part("b", "2/2", &[]);
    check(
        &[part("a", "1/2", &[("components", "x"), metadata]), bare],
        "v1.0.0",
        Err(("ConfigMapKeyMissing", "capz-system/b")),
    );
}

#[test]
fn what_is_said_to_be_compressed_is_decompressed_or_refused() {
    let with = |content: &[u8]| {
        let mut map = map("v1.0.0", &[("metadata", "kind: X")]);
        map.binary_data = Some(BTreeMap::from([(COMPONENTS.to_owned(), ByteString(content.to_vec()))]));
        map
    };
    check(
        &[annotated(with(b"kind: Namespace"), COMPRESSED, "true")],
        "v1.0.0",
        Err(("ConfigMapDamaged", "capz-system/v1.0.0")),
    );
    check(&[with(b"kind: Namespace")], "v1.0.0", Ok("kind: Namespace"));
    let what = Pack {
        names: &Names::new(ProviderType::Core, "x"),
        version: "v1.0.0",
        namespace: "n",
        labels: BTreeMap::new(),
    };
    let mut packed = pack_within(&what, &files(3_000), 2_000).unwrap().remove(0);
    packed.metadata.annotations = None;
    assert!(
        read(&[packed.clone()], "n", "").unwrap().files("v1.0.0").is_ok(),
        "gzip is known by its first bytes"
    );
    let cut = packed.binary_data.as_mut().unwrap().get_mut(COMPONENTS).unwrap();
    cut.0.truncate(100);
    check(&[packed], "v1.0.0", Err(("ConfigMapDamaged", "core-x-v1.0.0")));
}
