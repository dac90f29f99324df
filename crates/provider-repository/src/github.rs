//! Releases on GitHub.
//!
//! Without a token, files are downloaded as by a browser, which has no rate limit; only the list of releases comes from the API.
//! With a token, everything comes from the API, including files of private repositories and checksums.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use windlass_meta::beginning;

use crate::error::{Error, LONGEST};
use crate::http::{Access, Answer, Ask, Refusal as _};
use crate::repository::Repository;
use crate::source::GitHub;
use crate::{content, digest};
use windlass_http_client::{Scheme, Url, encoded};

const JSON: &str = "application/vnd.github+json";
const BYTES: &str = "application/octet-stream";
const PAGE: usize = 100;
/// More pages of releases than any provider has.
const MOST_PAGES: usize = 50;
const TOKEN: &str = "GITHUB_TOKEN";

#[derive(Deserialize)]
struct Release {
    tag_name: String,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    assets: Vec<Asset>,
}

#[derive(Deserialize)]
struct Asset {
    id: u64,
    name: String,
    digest: Option<String>,
}

impl GitHub {
    fn api(&self, path: &str) -> Url {
        let path = format!("/repos/{}/{}/releases{path}", self.owner, self.repository);
        if self.host.host == "github.com" {
            let mut host = self.host.clone();
            "api.github.com".clone_into(&mut host.host);
            host.at(&path)
        } else {
            self.host.at(&format!("/api/v3{path}"))
        }
    }

    fn download(&self, tag: &str, file: &str) -> Url {
        let Self { owner, repository, .. } = self;
        self.host.at(&format!(
            "/{owner}/{repository}/releases/download/{}/{}",
            encoded(tag),
            encoded(file)
        ))
    }

    /// Tokens are sent only over encrypted connections.
    fn authorization(&self, of: &Repository) -> Option<String> {
        let token = of
            .credentials
            .github
            .as_ref()
            .filter(|_| self.host.scheme == Scheme::Https)?;
        Some(format!("Bearer {}", token.reveal()))
    }
}

pub(crate) async fn versions(of: &Repository, place: &GitHub) -> Result<Vec<String>, Error> {
    let mut tags = Vec::new();
    for page in 1..=MOST_PAGES {
        let answer = ask(of, place, place.api(&format!("?per_page={PAGE}&page={page}")), JSON).await?;
        let found: Vec<Release> = match answer.status.as_u16() {
            200 => understood(&answer, "a list of releases")?,
            404 => return Err(not_there(of, place)),
            _ => return Err(answer.refusal(access(of, place))),
        };
        // The header could name any address, and its author must not decide where tokens are sent.
        let more = answer.header("link").is_some_and(|link| link.contains("rel=\"next\""));
        tags.extend(
            found
                .into_iter()
                .filter(|release| !release.draft)
                .map(|release| release.tag_name),
        );
        if !more {
            break;
        }
    }
    Ok(tags)
}

pub(crate) async fn file(of: &Repository, place: &GitHub, version: &str, name: &str) -> Result<String, Error> {
    if place.authorization(of).is_some() {
        return asset(of, place, version, name).await;
    }
    let url = place.download(version, name);
    let answer = of.client.send(&Ask::get(url.clone(), BYTES)).await?;
    match answer.status.as_u16() {
        200 => content::text(&url.to_string(), &answer.body),
        404 => Err(missing(of, place, version, name).await),
        _ => Err(answer.refusal(access(of, place))),
    }
}

/// [`file`] through the API.
async fn asset(of: &Repository, place: &GitHub, version: &str, name: &str) -> Result<String, Error> {
    let Some(release) = release(of, place, version).await? else {
        return Err(of.absent_or_no_version(version, name).await);
    };
    let Some(asset) = release.assets.iter().find(|asset| asset.name == name) else {
        return Err(of.absent(version, name, names(&release)));
    };
    let answer = ask(of, place, place.api(&format!("/assets/{}", asset.id)), BYTES).await?;
    if answer.status.as_u16() != 200 {
        return Err(answer.refusal(access(of, place)));
    }
    let what = format!("{} {version} {name}", of.place());
    if let Some(expected) = &asset.digest {
        digest::check(&what, &answer.body, expected)?;
    }
    content::text(&what, &answer.body)
}

async fn release(of: &Repository, place: &GitHub, version: &str) -> Result<Option<Release>, Error> {
    let answer = ask(of, place, place.api(&format!("/tags/{}", encoded(version))), JSON).await?;
    match answer.status.as_u16() {
        200 => understood(&answer, "a release").map(Some),
        404 => Ok(None),
        _ => Err(answer.refusal(access(of, place))),
    }
}

/// The error for a missing download. It is less precise if the API refuses to list the files.
async fn missing(of: &Repository, place: &GitHub, version: &str, name: &str) -> Error {
    match release(of, place, version).await {
        Ok(Some(release)) => of.absent(version, name, names(&release)),
        Ok(None) => of.absent_or_no_version(version, name).await,
        Err(_) => of.absent(version, name, Vec::new()),
    }
}

fn names(release: &Release) -> Vec<String> {
    release.assets.iter().map(|asset| asset.name.clone()).collect()
}

fn not_there(of: &Repository, place: &GitHub) -> Error {
    Error::RepositoryNotFound {
        place: of.place(),
        token: place.authorization(of).is_none().then_some(TOKEN),
    }
}

fn access(of: &Repository, place: &GitHub) -> Access {
    Access {
        sent: place.authorization(of).is_some(),
        variables: TOKEN,
    }
}

async fn ask(of: &Repository, place: &GitHub, url: Url, accept: &'static str) -> Result<Answer, Error> {
    let ask = Ask::get(url, accept).authorized(place.authorization(of));
    of.client.send(&ask).await
}

/// Decodes the response of an API.
pub(crate) fn understood<T: DeserializeOwned>(answer: &Answer, expected: &'static str) -> Result<T, Error> {
    serde_json::from_slice(&answer.body).map_err(|error| {
        let url = answer.url.to_string();
        match std::str::from_utf8(&answer.body) {
            Ok(text) if content::is_html(text) => Error::Html { url },
            _ => Error::NotUnderstood {
                url,
                expected,
                why: beginning(&error.to_string(), LONGEST).into_owned(),
            },
        }
    })
}
