//! Releases as Secrets, and back.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api_operator::{ProviderType, annotations, labels};
use windlass_meta::ObjectKey;

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
    let told = serde_json::to_vec(release).map_err(|error| Unreadable(error.to_string()))?;
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

/// What the Secrets of a provider hold. Reads the objects only to know which they are. Of several releases in a state the newest
/// counts; the names of the others are given back, they are to be deleted.
pub fn from_secrets(secrets: Vec<Secret>) -> Result<(Kept, Vec<String>), Unreadable> {
    let mut rest: BTreeMap<String, Secret> = BTreeMap::new();
    let mut heads = Vec::new();
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
    let mut releases = Vec::new();
    for head in heads {
        let name = head.metadata.name.clone().unwrap_or_default();
        let (release, _) = read(&head, |at| rest.remove(&part_name(&name, at)))?;
        releases.push(release);
    }
    releases.sort_by_key(|release| std::cmp::Reverse((release.made, release.renewals)));
    let (mut kept, mut spare) = (Kept::default(), Vec::new());
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
    spare.extend(rest.into_keys());
    Ok((kept, spare))
}

/// A release out of its first Secret, and the others by their number.
pub(crate) fn read(
    head: &Secret,
    mut part: impl FnMut(usize) -> Option<Secret>,
) -> Result<(Release, Vec<u8>), Unreadable> {
    let name = head.metadata.name.clone().unwrap_or_default();
    let wrong = |what: String| Unreadable(format!("Secret {name}: {what}"));
    let bytes = |secret: &Secret, key: &str| {
        let data = secret.data.as_ref()?;
        data.get(key).map(|bytes| bytes.0.clone())
    };
    let told = bytes(head, RELEASE).ok_or_else(|| wrong(format!("no key {RELEASE}")))?;
    let mut release: Release =
        serde_json::from_slice(&told).map_err(|error| wrong(format!("key {RELEASE}: {error}")))?;
    let state = head
        .metadata
        .annotations
        .as_ref()
        .and_then(|notes| notes.get(names::STATE));
    release.state = state.and_then(|word| State::read(word)).unwrap_or(State::Next);
    let mut packed = bytes(head, COMPONENTS).unwrap_or_default();
    release.secrets = vec![name.clone()];
    for at in 1.. {
        let Some(next) = part(at) else { break };
        packed.extend(bytes(&next, COMPONENTS).unwrap_or_default());
        release.secrets.push(part_name(&name, at));
    }
    release.index = walk(&packed)
        .map(|object| object.map(|object| ObjectRef::of(&object)))
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(format!("key {COMPONENTS}: {error}")))?;
    Ok((release, packed))
}
