//! Publishes files to a registry, for tests of reading.

use bytes::Bytes;
use http::Method;
use serde_json::json;

use super::access::Session;
use super::reference::Reference;
use super::{MANIFESTS, TITLE};
use crate::credentials::OciCredentials;
use crate::digest;
use crate::error::Error;
use crate::http::{Answer, Ask, Client, Refusal as _};
use windlass_http_client::{Url, encoded};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const ARTIFACT: &str = "application/vnd.windlass.provider.v1";

/// Publishes files under a tag, each as a layer with its name as title; an artifact may have many providers and versions. Returns
/// the digest of the manifest.
pub async fn publish(
    client: &Client,
    reference: &str,
    files: &[(String, Bytes)],
    credentials: &OciCredentials,
) -> Result<String, Error> {
    let place = Reference::parse(reference)?;
    let Some(tag) = place.tag.clone() else {
        return Err(Error::invalid_url(
            reference,
            "what is published needs a tag: {host}/{repository}:{tag}",
        ));
    };
    let session = Session::new(client, credentials);
    let empty = Bytes::from_static(b"{}");
    let mut layers = Vec::new();
    for (name, content) in files {
        let digest = upload(&session, &place, content).await?;
        layers.push(json!({
            "mediaType": "application/yaml", "digest": digest, "size": content.len(), "annotations": {TITLE: name},
        }));
    }
    let config = upload(&session, &place, &empty).await?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": ARTIFACT,
        "config": {"mediaType": EMPTY, "digest": config, "size": empty.len()},
        "layers": layers,
    });
    let manifest = Bytes::from(manifest.to_string());
    let digest = format!("sha256:{}", digest::sha256(&manifest));
    let ask = Ask {
        content_type: Some(MANIFEST),
        ..request(Method::PUT, place.at(&format!("manifests/{tag}")), manifest)
    };
    expect(&session, session.send(ask).await?, &[201])?;
    Ok(digest)
}

fn request(method: Method, url: Url, body: Bytes) -> Ask {
    Ask {
        method,
        body,
        kept: false,
        ..Ask::get(url, MANIFESTS)
    }
}

fn expect(session: &Session<'_>, answer: Answer, statuses: &[u16]) -> Result<Answer, Error> {
    if statuses.contains(&answer.status.as_u16()) {
        return Ok(answer);
    }
    Err(answer.refusal(session.access()))
}

async fn upload(session: &Session<'_>, place: &Reference, content: &Bytes) -> Result<String, Error> {
    let digest = format!("sha256:{}", digest::sha256(content));
    let there = request(Method::HEAD, place.at(&format!("blobs/{digest}")), Bytes::new());
    if session.send(there).await?.status.as_u16() == 200 {
        return Ok(digest);
    }
    let begun = session
        .send(request(Method::POST, place.at("blobs/uploads/"), Bytes::new()))
        .await?;
    let begun = expect(session, begun, &[202])?;
    let Some(location) = begun.header("location") else {
        return Err(Error::NotUnderstood {
            url: begun.url.to_string(),
            expected: "an upload",
            why: "it does not say where to".to_owned(),
        });
    };
    let url = begun.url.join(location)?;
    if !url.same_origin(&begun.url) {
        let why = format!("an upload to {url}, another host");
        return Err(windlass_http_client::Error::Redirect {
            url: begun.url.to_string(),
            why,
        }
        .into());
    }
    let path = url.path_and_query();
    let joint = if path.contains('?') { '&' } else { '?' };
    let url = url.at(&format!("{path}{joint}digest={}", encoded(&digest)));
    let ask = Ask {
        content_type: Some("application/octet-stream"),
        ..request(Method::PUT, url, content.clone())
    };
    expect(session, session.send(ask).await?, &[201])?;
    Ok(digest)
}
