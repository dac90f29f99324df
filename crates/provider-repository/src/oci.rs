//! OCI artifacts: files are the layers of a manifest, named by their title annotation.

mod access;
pub(crate) mod publish;
pub(crate) mod reference;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::Error;
use crate::github::understood;
use crate::http::{Answer, Refusal as _};
use crate::names::METADATA;
use crate::repository::{Files, Repository};
use crate::{content, digest, version};
use access::Session;
use reference::{Reference, is_digest, is_tag};

const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
                         application/vnd.docker.distribution.manifest.v2+json, \
                         application/vnd.docker.distribution.manifest.list.v2+json";
const TITLE: &str = "org.opencontainers.image.title";
/// The limit of manifests: an index may have one for each of many providers.
const MOST_MANIFESTS: usize = 64;
/// Layers of all manifests that are looked at: each names one file.
const MOST_LAYERS: usize = 10_000;
const MOST_PAGES: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(default)]
    layers: Vec<Descriptor>,
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize, Clone)]
struct Descriptor {
    digest: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Tags {
    tags: Option<Vec<String>>,
}

/// The versions in the file names of an artifact with several versions; otherwise the tags.
pub(crate) async fn versions(of: &Repository, reference: &Reference) -> Result<Vec<String>, Error> {
    let session = Session::new(&of.client, &of.credentials.oci);
    if reference.tag.is_none() && reference.digest.is_none() {
        return tags(of, &session, reference).await;
    }
    let titles = titles(of, &session, reference, "").await?;
    let named: Vec<String> = titles
        .keys()
        .filter_map(|title| of.names.version_in(title))
        .map(str::to_owned)
        .collect();
    match (named.is_empty(), of.source.pinned()) {
        (false, _) => Ok(named),
        (true, Some(tag)) => Ok(vec![tag.to_owned()]),
        (true, None) => Err(Error::NoList { place: of.place() }),
    }
}

/// Both files of a version. The most specific names take precedence.
pub(crate) async fn files(of: &Repository, reference: &Reference, version: &str) -> Result<Files, Error> {
    let session = Session::new(&of.client, &of.credentials.oci);
    let titles = titles(of, &session, reference, version).await?;
    let names = of.names.artifact_components(version);
    let (name, components) =
        find(&titles, &names).ok_or_else(|| of.absent(version, &names.join(" or "), all(&titles)))?;
    let metadata = metadata_among(of, &titles, version)?;
    Ok(Files {
        components: blob(of, &session, reference, name, components).await?,
        metadata: blob(of, &session, reference, METADATA, metadata).await?,
        from: format!("{} {version} {name}", of.place()),
    })
}

/// The metadata of a version.
pub(crate) async fn metadata(of: &Repository, reference: &Reference, version: &str) -> Result<String, Error> {
    let session = Session::new(&of.client, &of.credentials.oci);
    let titles = titles(of, &session, reference, version).await?;
    let metadata = metadata_among(of, &titles, version)?;
    blob(of, &session, reference, METADATA, metadata).await
}

type Titles = BTreeMap<String, Descriptor>;

fn find<'a>(titles: &'a Titles, names: &[String]) -> Option<(&'a String, &'a Descriptor)> {
    names.iter().find_map(|name| titles.get_key_value(name))
}

fn metadata_among<'a>(of: &Repository, titles: &'a Titles, version: &str) -> Result<&'a Descriptor, Error> {
    let found = find(titles, &of.names.artifact_metadata(version)).map(|(_, metadata)| metadata);
    found.ok_or_else(|| of.absent(version, METADATA, all(titles)))
}

fn all(titles: &Titles) -> Vec<String> {
    titles.keys().cloned().collect()
}

/// All files of an artifact by title.
async fn titles(of: &Repository, session: &Session<'_>, reference: &Reference, version: &str) -> Result<Titles, Error> {
    // Tags in registries cannot contain a plus; by convention an underscore replaces it.
    let by_version = version.replace('+', "_");
    let wanted = match (&reference.digest, &reference.tag) {
        (Some(digest), _) => digest,
        (None, Some(tag)) => tag,
        (None, None) => &by_version,
    };
    if !wanted.starts_with("sha256:") && !is_tag(wanted) {
        return Err(no_version(of, session, reference, version).await);
    }
    let answer = session
        .get(&reference.at(&format!("manifests/{wanted}")), MANIFESTS)
        .await?;
    let first = match answer.status.as_u16() {
        200 => manifest(&answer, wanted)?,
        404 if reference.tag.is_none() && reference.digest.is_none() => {
            return Err(no_version(of, session, reference, version).await);
        }
        404 => {
            return Err(Error::VersionNotFound {
                place: of.place(),
                version: wanted.clone(),
                available: tags(of, session, reference).await.unwrap_or_default(),
            });
        }
        _ => return Err(answer.refusal(session.access())),
    };
    let mut found = BTreeMap::new();
    let mut layers = first.layers;
    for inner in first.manifests.iter().take(MOST_MANIFESTS) {
        let answer = session
            .get(&reference.at(&format!("manifests/{}", inner.digest)), MANIFESTS)
            .await?;
        if answer.status.as_u16() != 200 {
            return Err(answer.refusal(session.access()));
        }
        layers.extend(manifest(&answer, &inner.digest)?.layers);
        layers.truncate(MOST_LAYERS);
    }
    for layer in layers {
        if let Some(title) = layer.annotations.get(TITLE).cloned()
            && layer.size > 0
        {
            found.entry(title).or_insert(layer);
        }
    }
    Ok(found)
}

fn manifest(answer: &Answer, wanted: &str) -> Result<Manifest, Error> {
    let not_understood = |why: &str| Error::NotUnderstood {
        url: answer.url.to_string(),
        expected: "a manifest",
        why: why.to_owned(),
    };
    let expected = if is_digest(wanted) {
        Some(wanted)
    } else {
        answer.header("docker-content-digest")
    };
    if let Some(expected) = expected {
        if !is_digest(expected) {
            return Err(not_understood(
                "the digest that is announced is not one of SHA-256 or SHA-512",
            ));
        }
        digest::check(&answer.url.to_string(), &answer.body, expected)?;
    }
    let manifest: Manifest = understood(answer, "a manifest")?;
    // A digest is a part of the next address.
    let mut descriptors = manifest.layers.iter().chain(&manifest.manifests);
    if descriptors.any(|descriptor| !is_digest(&descriptor.digest)) {
        return Err(not_understood("a digest in it is not one of SHA-256 or SHA-512"));
    }
    Ok(manifest)
}

async fn no_version(of: &Repository, session: &Session<'_>, reference: &Reference, version: &str) -> Error {
    match tags(of, session, reference).await {
        Ok(available) => Error::VersionNotFound {
            place: of.place(),
            version: version.to_owned(),
            available: version::sorted(available),
        },
        Err(error @ Error::RepositoryNotFound { .. }) => error,
        Err(_) => Error::VersionNotFound {
            place: of.place(),
            version: version.to_owned(),
            available: Vec::new(),
        },
    }
}

async fn tags(of: &Repository, session: &Session<'_>, reference: &Reference) -> Result<Vec<String>, Error> {
    let mut url = reference.at("tags/list?n=1000");
    let mut all = Vec::new();
    for _ in 0..MOST_PAGES {
        let answer = session.get(&url, "application/json").await?;
        let tags: Tags = match answer.status.as_u16() {
            200 => understood(&answer, "a list of tags")?,
            404 => {
                let access = session.access();
                let token = (!access.sent).then_some(access.variables);
                return Err(Error::RepositoryNotFound {
                    place: of.place(),
                    token,
                });
            }
            _ => return Err(answer.refusal(session.access())),
        };
        all.extend(
            tags.tags
                .unwrap_or_default()
                .into_iter()
                .filter(|tag| is_tag(tag))
                .map(|tag| tag.replace('_', "+")),
        );
        let next = answer.header("link").filter(|link| link.contains("rel=\"next\""));
        let next = next
            .and_then(|link| link.split_once('<')?.1.split_once('>'))
            .map(|(next, _)| url.join(next));
        match next.transpose()? {
            // Credentials are sent only to the host in the address, regardless of links.
            Some(next) if next.same_origin(&url) => url = next,
            _ => break,
        }
    }
    Ok(all)
}

async fn blob(
    of: &Repository,
    session: &Session<'_>,
    reference: &Reference,
    title: &str,
    descriptor: &Descriptor,
) -> Result<String, Error> {
    let what = format!("{title} of {}", of.place());
    let limit = of.client.longest();
    if descriptor.size > limit as u64 {
        return Err(windlass_http_client::Error::TooLarge { url: what, limit }.into());
    }
    let answer = session
        .get(&reference.at(&format!("blobs/{}", descriptor.digest)), "*/*")
        .await?;
    if answer.status.as_u16() != 200 {
        return Err(answer.refusal(session.access()));
    }
    let got = answer.body.len() as u64;
    if got < descriptor.size {
        let expected = Some(descriptor.size);
        return Err(windlass_http_client::Error::Truncated {
            url: what,
            got,
            expected,
        }
        .into());
    }
    digest::check(&what, &answer.body, &descriptor.digest)?;
    content::text(&what, &answer.body)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};
    use windlass_http_client::Url;

    use super::*;

    #[test]
    fn announced_digests_are_checked() {
        let read = |announced: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("docker-content-digest", announced.parse().unwrap());
            let answer = Answer {
                status: StatusCode::OK,
                headers,
                body: "{}".into(),
                url: Url::parse("https://example.com/v2/a/manifests/v1").unwrap(),
            };
            manifest(&answer, "v1").map(|_| ()).map_err(|error| error.to_string())
        };
        let sha512 = "27c74670adb75075fad058d5ceaf7b20c4e7786c83bae8a32f626f9782af34c9a33c2046ef60fd2a7878d378e29fec851806bbd9a67878f3a9f1cda4830763fd";
        assert_eq!(
            read("sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
            Ok(())
        );
        assert_eq!(read(&format!("sha512:{sha512}")), Ok(()));
        for wrong in [
            format!("sha256:{}", "0a".repeat(32)),
            format!("sha512:{}", "0a".repeat(64)),
            format!("sha256:{}", "0a".repeat(5000)),
            "anything".to_owned(),
        ] {
            let error = read(&wrong).unwrap_err();
            assert!(error.len() < 500, "{error}");
        }
    }

    #[test]
    fn digests_in_manifests_are_digests() {
        let read = |digest: &str| {
            let body = serde_json::json!({"layers": [{"digest": digest, "size": 1}], "manifests": []});
            let answer = Answer {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
                body: body.to_string().into(),
                url: Url::parse("https://example.com/v2/a/manifests/v1").unwrap(),
            };
            manifest(&answer, "v1")
        };
        for good in [
            format!("sha256:{}", "0a".repeat(32)),
            format!("sha512:{}", "0a".repeat(64)),
        ] {
            assert!(read(&good).is_ok(), "{good}");
        }
        for wrong in [
            "",
            "sha256",
            "sha256:",
            "sha256:../../other",
            "sha256:a?b",
            &format!("SHA256:{}", "0a".repeat(32)),
            &format!("sha256:{}", "0A".repeat(32)),
            &format!("md5:{}", "0a".repeat(16)),
            &"a:b".repeat(99),
        ] {
            let error = read(wrong).map(|_| ()).unwrap_err();
            assert_eq!(error.reason(), "UnexpectedAnswer", "{wrong}");
            assert!(error.to_string().len() < 300, "{error}");
        }
    }
}
