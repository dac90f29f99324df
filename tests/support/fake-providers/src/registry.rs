//! Artifacts of an OCI registry.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::answer::{Answer, basic, sha256};
use crate::chart::ChartLike;
use crate::forge::{Asked, Demand, Files, State, hosts, query};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The token for authorized clients.
const TOKEN: &str = "issued-by-the-forge";

/// The stored artifacts.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    /// By digest.
    blobs: BTreeMap<String, Bytes>,
    /// By repository and tag or digest.
    manifests: BTreeMap<(String, String), (String, Bytes)>,
    /// By repository.
    tags: BTreeMap<String, Vec<String>>,
}

impl Registry {
    fn blob(&mut self, content: Bytes) -> (String, usize) {
        let digest = format!("sha256:{}", sha256(&content));
        let size = content.len();
        self.blobs.insert(digest.clone(), content);
        (digest, size)
    }

    fn manifest(&mut self, repository: &str, reference: Option<&str>, media: &str, content: Bytes) -> (String, usize) {
        let digest = format!("sha256:{}", sha256(&content));
        let size = content.len();
        let key = |reference: &str| (repository.to_owned(), reference.to_owned());
        if let Some(tag) = reference.filter(|reference| !reference.starts_with("sha256:")) {
            self.manifests.insert(key(tag), (media.to_owned(), content.clone()));
            let tags = self.tags.entry(repository.to_owned()).or_default();
            if !tags.iter().any(|known| known == tag) {
                tags.push(tag.to_owned());
            }
        }
        self.manifests.insert(key(&digest), (media.to_owned(), content));
        (digest, size)
    }

    fn layers(&mut self, files: impl IntoIterator<Item = (String, Bytes)>) -> Bytes {
        let mut layers = Vec::new();
        for (name, content) in files {
            let (digest, size) = self.blob(content);
            let annotations = json!({"org.opencontainers.image.title": name});
            layers.push(
                json!({"mediaType": "application/yaml", "digest": digest, "size": size, "annotations": annotations}),
            );
        }
        let (config, size) = self.blob(Bytes::from_static(b"{}"));
        let config = json!({"mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": size});
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
        manifest.to_string().into()
    }

    pub(crate) fn artifact(&mut self, repository: &str, tag: &str, files: impl IntoIterator<Item = (String, Bytes)>) {
        let manifest = self.layers(files);
        self.manifest(repository, Some(tag), MANIFEST, manifest);
    }

    /// Adds a chart below a path, with the media types of helm.
    pub(crate) fn chart(&mut self, path: &str, chart: &ChartLike) {
        let mut of_type = |media: &str, content: Bytes| {
            let (digest, size) = self.blob(content);
            json!({"mediaType": media, "digest": digest, "size": size})
        };
        let config = of_type(
            "application/vnd.cncf.helm.config.v1+json",
            chart.metadata().to_string().into(),
        );
        let layer = of_type("application/vnd.cncf.helm.chart.content.v1.tar+gzip", chart.archive());
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
        let repository = format!("{path}/{}", chart.name());
        // A tag must not contain a plus.
        let tag = chart.version().replace('+', "_");
        self.manifest(&repository, Some(&tag), MANIFEST, manifest.to_string().into());
    }

    pub(crate) fn index(&mut self, repository: &str, tag: &str, parts: Vec<Files>) {
        let mut manifests = Vec::new();
        for files in parts {
            let manifest = self.layers(files);
            let (digest, size) = self.manifest(repository, None, MANIFEST, manifest);
            manifests.push(json!({"mediaType": MANIFEST, "digest": digest, "size": size}));
        }
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
        self.manifest(repository, Some(tag), INDEX, index.to_string().into());
    }
}

fn error(status: u16, code: &str) -> Answer {
    Answer::json(status, &json!({"errors": [{"code": code}]}))
}

pub(crate) fn answer(state: &State, asked: &Asked) -> Answer {
    if asked.path == "/token" {
        return token(state, asked);
    }
    let mut registry = state.registry.lock();
    if asked.host == hosts::REGISTRY_FILES {
        let content = registry.blobs.get(asked.path.trim_start_matches('/')).cloned();
        return content.map_or_else(Answer::not_found, |content| Answer::new(200, content));
    }
    let path = asked.path.strip_prefix("/v2/").unwrap_or_default();
    let marks = ["/manifests/", "/blobs/uploads/", "/blobs/", "/tags/"];
    let found = marks
        .iter()
        .find_map(|mark| path.split_once(mark).map(|(name, rest)| (*mark, name, rest)));
    let Some((mark, name, rest)) = found else {
        return Answer::not_found();
    };
    if let Some(refusal) = refused(state, asked, name) {
        return refusal;
    }
    match (asked.method.as_str(), mark) {
        ("GET", "/tags/") => tags(state, &registry, asked, name),
        ("GET" | "HEAD", "/manifests/") => match registry.manifests.get(&(name.to_owned(), rest.to_owned())) {
            Some((media, content)) => {
                let digest = format!("sha256:{}", sha256(content));
                Answer::new(200, content.clone())
                    .with("content-type", media)
                    .with("docker-content-digest", digest)
            }
            None if registry.tags.contains_key(name) => error(404, "MANIFEST_UNKNOWN"),
            None => error(404, "NAME_UNKNOWN"),
        },
        ("HEAD", "/blobs/") if registry.blobs.contains_key(rest) => Answer::new(200, ""),
        ("GET", "/blobs/") if registry.blobs.contains_key(rest) && asked.scheme == "https" => {
            Answer::redirect(&format!("https://{}/{rest}", hosts::REGISTRY_FILES))
        }
        ("GET", "/blobs/") if registry.blobs.contains_key(rest) => Answer::new(200, registry.blobs[rest].clone()),
        ("POST", "/blobs/uploads/") => {
            Answer::new(202, "").with("location", format!("/v2/{name}/blobs/uploads/1?state=forged"))
        }
        ("PUT", "/blobs/uploads/") => {
            let (digest, _) = registry.blob(asked.body.clone());
            let same = asked.query.get("digest") == Some(&digest) && asked.query.contains_key("state");
            if same {
                Answer::new(201, "")
            } else {
                error(400, "DIGEST_INVALID")
            }
        }
        ("PUT", "/manifests/") => {
            let known = |manifest: &Value| {
                let layers = manifest["layers"].as_array().into_iter().flatten();
                let mut all = layers.chain([&manifest["config"]]);
                all.all(|blob| {
                    blob["digest"]
                        .as_str()
                        .is_some_and(|digest| registry.blobs.contains_key(digest))
                })
            };
            if !serde_json::from_slice(&asked.body).is_ok_and(|manifest| known(&manifest)) {
                return error(400, "MANIFEST_BLOB_UNKNOWN");
            }
            registry.manifest(name, Some(rest), MANIFEST, asked.body.clone());
            Answer::new(201, "")
        }
        _ => error(404, "BLOB_UNKNOWN"),
    }
}

fn tags(state: &State, registry: &Registry, asked: &Asked, name: &str) -> Answer {
    let Some(all) = registry.tags.get(name) else {
        return error(404, "NAME_UNKNOWN");
    };
    let last = asked
        .query
        .get("last")
        .and_then(|last| all.iter().position(|tag| tag == last));
    let rest = &all[last.map_or(0, |at| at + 1)..];
    let size = state.page.lock().unwrap_or(1000);
    let page = &rest[..size.min(rest.len())];
    let answer = Answer::json(200, &json!({"name": name, "tags": page}));
    match page.last().filter(|_| rest.len() > size) {
        Some(last) => answer.with("link", format!("</v2/{name}/tags/list?last={last}>; rel=\"next\"")),
        None => answer,
    }
}

fn refused(state: &State, asked: &Asked, name: &str) -> Option<Answer> {
    let demands = state.demands.lock();
    let (wanted, challenge) = match demands.get(&asked.host)? {
        Demand::Token(token) => (format!("Bearer {token}"), None),
        Demand::Basic(user, password) => (basic(user, password), Some("Basic realm=\"forge\"".to_owned())),
        Demand::Login(..) | Demand::Refresh(_) | Demand::Anonymous => {
            let realm = match asked.scheme {
                "https" => format!("https://{}/token?from=challenge", hosts::REGISTRY_TOKENS),
                _ => format!("http://{}/token?from=challenge", asked.host),
            };
            let scope = format!("repository:{name}:pull,push");
            let service = &asked.host;
            let challenge = format!("Bearer realm=\"{realm}\",service=\"{service}\",scope=\"{scope}\"");
            (format!("Bearer {TOKEN}"), Some(challenge))
        }
    };
    if asked.authorization.as_deref() == Some(&wanted) {
        return None;
    }
    let refusal = error(401, "UNAUTHORIZED");
    Some(match challenge {
        Some(challenge) => refusal.with("www-authenticate", challenge),
        None => refusal,
    })
}

fn token(state: &State, asked: &Asked) -> Answer {
    let demands = state.demands.lock();
    let form = query(&String::from_utf8_lossy(&asked.body));
    let service = asked
        .query
        .get("service")
        .or_else(|| form.get("service"))
        .cloned()
        .unwrap_or_default();
    let allowed = match demands.get(&service) {
        Some(Demand::Login(user, password)) => asked.authorization.as_deref() == Some(&basic(user, password)),
        Some(Demand::Refresh(refresh)) => {
            let granted = form.get("grant_type").is_some_and(|grant| grant == "refresh_token");
            granted && asked.method == "POST" && form.get("refresh_token") == Some(refresh)
        }
        Some(Demand::Anonymous) => asked.query.contains_key("scope"),
        _ => false,
    };
    match allowed {
        true if asked.method == "POST" => Answer::json(200, &json!({"access_token": TOKEN})),
        true => Answer::json(200, &json!({"token": TOKEN})),
        false => error(401, "UNAUTHORIZED"),
    }
}
