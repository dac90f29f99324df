use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use windlass_api_operator::ProviderType;
use windlass_meta::ObjectKey;

use super::*;

fn release(version: &str, objects: &[Value]) -> Sealed {
    let mut packer = Packer::default();
    for object in objects {
        packer.add(object).unwrap();
    }
    let (packed, index) = packer.finish().unwrap();
    let release = Release {
        version: version.to_owned(),
        contract: "v1beta2".to_owned(),
        hash: "0123456789abcdef".to_owned(),
        manager: Value::Null,
        owner: "u".to_owned(),
        made: "2026-01-01T00:00:00Z".parse().unwrap(),
        replicas: BTreeMap::new(),
        paused: false,
        leftovers: Vec::new(),
        failure: None,
        content: String::new(),
        left: Vec::new(),
        renew: None,
        renewals: 0,
        asked: Vec::new(),
        migrated: false,
        replaces: false,
        notes: Vec::new(),
        components: String::new(),
        parts: 0,
        state: State::Current,
        secrets: Vec::new(),
        index,
    };
    let mut sealed = Sealed { release, packed };
    sealed.stamp();
    sealed
}

/// Digests of all that is in these Secrets.
fn vouched(secrets: &[Secret]) -> Vouched {
    let mut vouched = Vouched::default();
    for secret in secrets {
        let told = secret.data.as_ref().and_then(|data| data.get("release"));
        let Some(told) = told else { continue };
        let mut release: Release = serde_json::from_slice(&told.0).unwrap();
        let word = &secret.metadata.annotations.as_ref().unwrap()[crate::names::STATE];
        release.state = State::read(word).unwrap();
        let name = secret.metadata.name.as_deref().unwrap();
        vouched.expect(name, &release, &vouched::digest(release.state, &told.0));
    }
    Vouched::read(Some(&vouched.text()))
}

fn read(secrets: Vec<Secret>) -> (Kept, Vec<String>) {
    let vouched = vouched(&secrets);
    let kept = from_secrets(secrets, &vouched, |_| false).unwrap();
    let spare = kept.spare.clone();
    (kept, spare)
}

fn object(kind: &str, name: &str, padding: usize) -> Value {
    // What compresses badly, so that little text makes many bytes.
    let text: String = (0..padding)
        .map(|n| crate::objects::hex(&crate::objects::short_hash(&n.to_le_bytes())))
        .collect();
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n"}, "data": {"x": text}})
}

#[test]
fn what_is_kept_is_read_again_also_past_the_size_of_a_secret() {
    let check = |padding: usize, secrets: usize| {
        let mut sealed = release("v1.0.0", &[object("ConfigMap", "a", padding), object("Secret", "b", 0)]);
        let made = to_secrets(ProviderType::Infrastructure, &ObjectKey::new("n", "aws"), &sealed).unwrap();
        assert_eq!(made.len(), secrets);
        sealed.release.secrets = made.iter().map(|s| s.metadata.name.clone().unwrap()).collect();
        let (kept, spare) = read(made);
        assert_eq!(kept.current, Some(sealed.release));
        assert_eq!((kept.next, spare), (None, Vec::new()));
    };
    check(10, 1);
    check(60_000, 2);
}

#[test]
fn of_two_releases_in_a_state_the_newer_counts() {
    let key = ObjectKey::new("n", "aws");
    let secrets = |sealed: &Sealed| to_secrets(ProviderType::Infrastructure, &key, sealed).unwrap();
    let old = release("v1.0.0", &[]);
    let mut new = release("v1.1.0", &[]);
    new.release.made = "2026-01-02T00:00:00Z".parse().unwrap();
    let (old, new) = (secrets(&old), secrets(&new));
    let old_name = old[0].metadata.name.clone().unwrap();
    let (kept, spare) = read(old.into_iter().chain(new).collect());
    assert_eq!(kept.current.unwrap().version, "v1.1.0");
    assert_eq!(spare, [old_name]);
}

// A process that went back or forward may have been cut off at any write.
#[test]
fn what_worked_is_kept_until_it_is_known_that_the_next_one_does() {
    use State::{Current, Failed, Next};
    let check = |releases: &[(&str, State, bool)], expect: (Option<&str>, Option<&str>, Option<&str>), spare: usize| {
        let key = ObjectKey::new("n", "aws");
        let mut all = Vec::new();
        for (at, (version, state, worked)) in releases.iter().enumerate() {
            let mut sealed = release(version, &[]);
            sealed.release.made = format!("2026-01-0{}T00:00:00Z", at + 1).parse().unwrap();
            sealed.release.state = *state;
            sealed.release.migrated = *worked;
            all.extend(to_secrets(ProviderType::Infrastructure, &key, &sealed).unwrap());
        }
        let (kept, found) = read(all);
        let version = |release: &Option<Release>| release.as_ref().map(|release| release.version.clone());
        let found = (
            version(&kept.current),
            version(&kept.previous),
            version(&kept.next),
            found.len(),
        );
        let expect = [expect.0, expect.1, expect.2].map(|version| version.map(str::to_owned));
        let [current, previous, next] = expect;
        assert_eq!(found, (current, previous, next, spare), "{releases:?}");
    };
    let (a, b, c) = ("v1.0.0", "v1.1.0", "v1.2.0");
    check(&[(a, Current, true), (b, Next, false)], (Some(a), None, Some(b)), 0);
    check(&[(a, Current, true), (b, Current, false)], (Some(b), Some(a), None), 0);
    check(&[(a, Current, true), (b, Failed, false)], (Some(a), None, Some(b)), 0);
    check(&[(a, Current, true), (b, Current, true)], (Some(b), None, None), 1);
    check(&[(a, Current, false), (b, Current, false)], (Some(b), None, None), 1);
    let three = [(a, Current, true), (b, Current, false), (c, Current, false)];
    check(&three, (Some(c), Some(a), None), 1);
}

#[test]
fn a_renewal_that_was_cut_off_leaves_what_was_kept_before() {
    let key = ObjectKey::new("n", "aws");
    let secrets = |sealed: &Sealed| to_secrets(ProviderType::Infrastructure, &key, sealed).unwrap();
    let mut sealed = release("v1.0.0", &[object("Secret", "a", 60_000)]);
    let before = secrets(&sealed);
    sealed.release.renewals = 1;
    let mut renewed = secrets(&sealed);
    assert_eq!((before.len(), renewed.len()), (2, 2));
    // The first part is written last. Until then there is one release; then the renewed one counts.
    let head = renewed.remove(0);
    let stored = |more: &[Secret]| -> Kept {
        let mut all: std::collections::BTreeMap<_, _> = BTreeMap::new();
        for secret in before.iter().chain(more) {
            all.insert(secret.metadata.name.clone(), secret.clone());
        }
        read(all.into_values().collect()).0
    };
    assert_eq!(stored(&renewed).current.unwrap().renewals, 0);
    renewed.push(head);
    assert_eq!(stored(&renewed).current.unwrap().renewals, 1);
}

fn part<'a>(secret: &'a mut Secret, key: &str) -> &'a mut Vec<u8> {
    &mut secret.data.as_mut().unwrap().get_mut(key).unwrap().0
}

// What differs is not even unpacked.
#[test]
fn only_what_the_operator_wrote_is_a_release() {
    let check = |change: fn(&mut Vec<Secret>)| {
        let sealed = release("v1.0.0", &[object("ConfigMap", "a", 60_000)]);
        let made = to_secrets(ProviderType::Core, &ObjectKey::new("n", "cluster-api"), &sealed).unwrap();
        let vouched = vouched(&made);
        let head = made[0].metadata.name.clone().unwrap();
        let mut changed = made;
        change(&mut changed);
        let kept = from_secrets(changed, &vouched, |_| false).unwrap();
        assert_eq!(kept.current, None);
        let told = kept.finding().unwrap();
        assert!(told.starts_with(&format!("Secret {head}")), "{told}");
    };
    check(|made| part(&mut made[0], "components").truncate(30));
    check(|made| part(&mut made[1], "components").push(0));
    check(|made| drop(made.pop()));
    check(|made| part(&mut made[0], "release").push(b' '));
    check(|made| {
        let notes = made[0].metadata.annotations.as_mut().unwrap();
        notes.insert(crate::names::STATE.to_owned(), "next".to_owned());
    });
    check(|made| made[0].metadata.name = made[0].metadata.name.take().map(|name| name + "-copy"));
}

#[test]
fn a_digest_counts_before_and_after_the_write_that_it_is_about() {
    let before = release("v1.0.0", &[]);
    let mut after = before.clone();
    after.release.migrated = true;
    let key = ObjectKey::new("n", "aws");
    let secrets = |sealed: &Sealed| to_secrets(ProviderType::Infrastructure, &key, sealed).unwrap();
    let (old, new) = (secrets(&before), secrets(&after));
    let name = old[0].metadata.name.clone().unwrap();
    let mut known = vouched(&old);
    known.expect(
        &name,
        &after.release,
        &vouched::digest(State::Current, &told(&after.release).unwrap()),
    );
    for stored in [&old, &new] {
        let kept = from_secrets(stored.clone(), &known, |_| false).unwrap();
        assert!(kept.current.is_some() && kept.strange.is_empty());
    }
    // What is known to be stored makes the other one void.
    let kept = from_secrets(new, &known, |_| false).unwrap();
    let kept = from_secrets(old, &kept.vouched, |_| false).unwrap();
    assert!(kept.current.is_none() && !kept.strange.is_empty());
}

#[test]
fn what_is_packed_has_limits_in_both_directions() {
    let mut bomb = GzEncoder::new(Vec::new(), Compression::default());
    let blanks = vec![b' '; 1 << 20];
    for _ in 0..20 {
        bomb.write_all(&blanks).unwrap();
    }
    let packed = bomb.finish().unwrap();
    let read: Vec<_> = walk(&packed).collect();
    assert!(
        matches!(&read[..], [Err(Unreadable(why))] if why.contains("longer than")),
        "{read:?}"
    );
    let long = json!({"kind": "ConfigMap", "data": {"x": "x".repeat(9 << 20)}});
    assert!(Packer::default().add(&long).is_err());
}

// OP-085, OP-229
#[test]
fn definitions_and_namespaces_never_go_with_an_upgrade() {
    let crd =
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let old = release(
        "v1.0.0",
        &[crd, namespace, object("ConfigMap", "a", 0), object("Service", "s", 0)],
    );
    let new = release("v1.1.0", &[object("Service", "s", 0)]);
    let beyond: Vec<_> = old
        .release
        .beyond(&new.release)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(beyond, ["ConfigMap n/a"]);
}
