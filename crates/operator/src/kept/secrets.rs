//! Releases as Secrets, and back.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api_operator::{ProviderType, annotations, labels};
use windlass_meta::ObjectKey;

use super::vouched::{Strange, Vouched, digest, digest_of_objects};
use super::{Kept, Release, State, Unreadable, walk};
use crate::names;
use crate::objects::{ObjectRef, hex, short_hash};

/// Key of what a release is.
const RELEASE: &str = "release";
/// Key of its objects.
const COMPONENTS: &str = "components";
/// The type of the Secrets.
const TYPE: &str = "cluster.x-k8s.io/provider-release";
/// Bytes of objects in one Secret: servers take a mebibyte, encoded.
const PART: usize = 700 * 1024;

/// A release with its objects, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealed {
    /// What it is.
    pub release: Release,
    /// Its objects, packed.
    pub packed: Vec<u8>,
}

impl Sealed {
    /// Has the release say which objects are its own.
    pub fn stamp(&mut self) {
        self.release.components = digest_of_objects(&self.packed);
        self.release.parts = self.packed.chunks(PART).len().max(1);
    }
}

/// The labels of what is kept of a provider.
pub(crate) fn provider_labels(type_: ProviderType, name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (labels::TYPE.to_owned(), type_.inventory().to_owned()),
        (labels::NAME.to_owned(), name.to_owned()),
        (labels::MANAGED_BY_OPERATOR.to_owned(), "true".to_owned()),
    ])
}

/// The selector of what is kept of a provider.
pub(crate) fn selector(type_: ProviderType, name: &str) -> String {
    let labels = provider_labels(type_, name);
    let terms: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    terms.join(",")
}

/// A release as Secrets without an owner: they have to outlive a declaration that is deleted together with its dependents. The first one
/// describes the release and has as many objects as there is room for. The others have the rest.
pub fn to_secrets(type_: ProviderType, key: &ObjectKey, sealed: &Sealed) -> Result<Vec<Secret>, Unreadable> {
    let release = &sealed.release;
    let told = told(release)?;
    let base = secret_name(type_, &key.name, release);
    let mut parts: Vec<&[u8]> = sealed.packed.chunks(PART).collect();
    if parts.is_empty() {
        parts.push(&[]);
    }
    let made = parts.iter().enumerate().map(|(at, part)| {
        let mut labels = provider_labels(type_, &key.name);
        labels.insert(labels::VERSION.to_owned(), release.version.replace('+', "_"));
        let mut notes = BTreeMap::from([
            (names::STATE.to_owned(), release.state.word().to_owned()),
            (names::PART.to_owned(), at.to_string()),
            (annotations::APPLIED_SPEC_HASH.to_owned(), release.hash.clone()),
        ]);
        notes.insert(annotations::COMPRESSED.to_owned(), "true".to_owned());
        let mut data = BTreeMap::from([(COMPONENTS.to_owned(), ByteString(part.to_vec()))]);
        if at == 0 {
            data.insert(RELEASE.to_owned(), ByteString(told.clone()));
        }
        Secret {
            metadata: ObjectMeta {
                name: Some(part_name(&base, at)),
                namespace: Some(key.namespace.clone()),
                labels: Some(labels),
                annotations: Some(notes),
                ..ObjectMeta::default()
            },
            type_: Some(TYPE.to_owned()),
            data: Some(data),
            ..Secret::default()
        }
    });
    Ok(made.collect())
}

/// Two renderings of a version for the same declaration have the same name, unless certificates were issued again between them; no others
/// have.
fn secret_name(type_: ProviderType, name: &str, release: &Release) -> String {
    let id = match release.renewals {
        0 => release.id(),
        renewals => format!("{}-{renewals}", release.id()),
    };
    let tag = hex(&short_hash(id.as_bytes())[..4]);
    let version = release.version.replace('+', "-").to_lowercase();
    format!("{}-{version}-{tag}", type_.label(name))
}

fn part_name(base: &str, at: usize) -> String {
    if at == 0 {
        base.to_owned()
    } else {
        format!("{base}.{at}")
    }
}

/// What the Secrets of a provider hold. Reads the objects only to know which they are, and only those of releases that the operator wrote.
/// Of several releases in a state the newest counts; the others are spare. What belongs to
/// `theirs`, another declaration, is left out.
pub fn from_secrets(
    secrets: Vec<Secret>,
    vouched: &Vouched,
    theirs: impl Fn(&str) -> bool,
) -> Result<Kept, Unreadable> {
    let (heads, mut rest) = parted(secrets);
    let mut kept = Kept {
        vouched: vouched.clone(),
        ..Kept::default()
    };
    let mut releases = Vec::new();
    for head in heads {
        let name = head.metadata.name.clone().unwrap_or_default();
        match written(&head, &mut kept.vouched) {
            Written::ByOperator(told) => {
                let mut release = parse(&name, &told, &head)?;
                let found = |at: usize| match at {
                    0 => Some(head.clone()),
                    at => rest.remove(&part_name(&name, at)),
                };
                match objects(&release, found) {
                    Some(packed) => {
                        release.index = index_of(&name, &packed)?;
                        release.secrets = (0..release.parts).map(|at| part_name(&name, at)).collect();
                        releases.push(release);
                    }
                    None => kept.strange.push(strange(name, vouched)),
                }
            }
            Written::By(owner) if theirs(&owner) => {
                (1..).map_while(|at| rest.remove(&part_name(&name, at))).for_each(drop);
            }
            Written::By(_) => kept.strange.push(strange(name, vouched)),
        }
    }
    releases.retain(|release| !theirs(&release.owner));
    kept.spare = sorted(&mut kept, releases);
    kept.spare.extend(rest.into_keys());
    Ok(kept)
}

/// The first Secrets of releases, and the other ones by name.
fn parted(secrets: Vec<Secret>) -> (Vec<Secret>, BTreeMap<String, Secret>) {
    let (mut heads, mut rest) = (Vec::new(), BTreeMap::new());
    for secret in secrets {
        if secret.type_.as_deref() != Some(TYPE) {
            continue;
        }
        let is_head = secret.data.as_ref().is_some_and(|data| data.contains_key(RELEASE));
        if is_head {
            heads.push(secret);
        } else {
            rest.insert(secret.metadata.name.clone().unwrap_or_default(), secret);
        }
    }
    (heads, rest)
}

/// Who wrote what a release is.
enum Written {
    /// The operator: this.
    ByOperator(Vec<u8>),
    /// Others, as far as the operator can tell. It says that it is of the declaration with this uid.
    By(String),
}

fn written(head: &Secret, vouched: &mut Vouched) -> Written {
    let name = head.metadata.name.as_deref().unwrap_or_default();
    let told = bytes(head, RELEASE).unwrap_or_default();
    if vouched.settle(name, &digest(state_of(head), &told)) {
        return Written::ByOperator(told);
    }
    let release: Option<Release> = serde_json::from_slice(&told).ok();
    Written::By(release.map(|release| release.owner).unwrap_or_default())
}

fn strange(secret: String, vouched: &Vouched) -> Strange {
    Strange {
        secrets: vec![secret],
        is_old: vouched.stored.is_none(),
    }
}

/// Gives releases their places. The names of the Secrets of those without a place are given back.
fn sorted(kept: &mut Kept, mut releases: Vec<Release>) -> Vec<String> {
    releases.sort_by_key(|release| std::cmp::Reverse((release.made, release.renewals)));
    let mut spare = Vec::new();
    for release in releases {
        let place = match release.state {
            // Of what was installed before, only what worked is worth going back to.
            State::Current if kept.current.as_ref().is_some_and(|current| !current.migrated) && release.migrated => {
                &mut kept.previous
            }
            State::Current => &mut kept.current,
            State::Next | State::Failed => &mut kept.next,
        };
        if place.is_none() {
            *place = Some(release);
        } else {
            spare.extend(release.secrets);
        }
    }
    spare
}

/// What a Secret says of a release: what [`digest`] is about.
pub(crate) fn told(release: &Release) -> Result<Vec<u8>, Unreadable> {
    serde_json::to_vec(release).map_err(|error| Unreadable(error.to_string()))
}

fn parse(name: &str, told: &[u8], head: &Secret) -> Result<Release, Unreadable> {
    let mut release: Release =
        serde_json::from_slice(told).map_err(|error| Unreadable(format!("Secret {name}: key {RELEASE}: {error}")))?;
    release.state = state_of(head);
    Ok(release)
}

fn state_of(head: &Secret) -> State {
    let notes = head.metadata.annotations.as_ref();
    let state = notes.and_then(|notes| notes.get(names::STATE));
    state.and_then(|word| State::read(word)).unwrap_or(State::Next)
}

fn bytes(secret: &Secret, key: &str) -> Option<Vec<u8>> {
    let data = secret.data.as_ref()?;
    data.get(key).map(|bytes| bytes.0.clone())
}

/// The packed objects of a release out of its Secrets, by their number; none when they are not those that the operator wrote. They are
/// not unpacked before that is known.
pub(crate) fn objects(release: &Release, mut part: impl FnMut(usize) -> Option<Secret>) -> Option<Vec<u8>> {
    let mut packed = Vec::new();
    for at in 0..release.parts {
        packed.extend(bytes(&part(at)?, COMPONENTS).unwrap_or_default());
    }
    (digest_of_objects(&packed) == release.components).then_some(packed)
}

fn index_of(name: &str, packed: &[u8]) -> Result<Vec<ObjectRef>, Unreadable> {
    let all = walk(packed).map(|object| object.map(|object| ObjectRef::of(&object)));
    let all: Result<_, _> = all.collect();
    all.map_err(|error| Unreadable(format!("Secret {name}: key {COMPONENTS}: {error}")))
}
