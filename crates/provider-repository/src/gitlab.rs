//! Generic packages on GitLab.

use serde::Deserialize;

use crate::content;
use crate::error::Error;
use crate::github::understood;
use crate::http::{Access, Ask, Refusal as _};
use crate::repository::Repository;
use crate::source::GitLab;
use windlass_http_client::{Scheme, Url, encoded};

const MOST_PAGES: usize = 50;
const TOKEN: &str = "GITLAB_ACCESS_TOKEN";

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

impl GitLab {
    fn at(&self, path: &str) -> Url {
        self.host
            .at(&format!("/api/v4/projects/{}/packages{path}", self.project))
    }

    fn authorization(&self, of: &Repository) -> Option<String> {
        let token = of
            .credentials
            .gitlab
            .as_ref()
            .filter(|_| self.host.scheme == Scheme::Https)?;
        Some(format!("Bearer {}", token.reveal()))
    }
}

/// The versions of the package. A user who may read packages may not always list them: then there is only the one in the address.
pub(crate) async fn versions(of: &Repository, place: &GitLab) -> Result<Vec<String>, Error> {
    match listed(of, place).await {
        Err(Error::Unauthorized { .. } | Error::Forbidden { .. } | Error::RepositoryNotFound { .. })
            if of.source.pinned.is_some() =>
        {
            Ok(of.source.pinned.iter().cloned().collect())
        }
        listed => listed,
    }
}

async fn listed(of: &Repository, place: &GitLab) -> Result<Vec<String>, Error> {
    let mut versions = Vec::new();
    let mut page = "1".to_owned();
    for _ in 0..MOST_PAGES {
        let query = format!(
            "?package_type=generic&package_name={}&per_page=100&page={page}",
            place.package
        );
        let ask = Ask::get(place.at(&query), "application/json").authorized(place.authorization(of));
        let answer = of.client.send(&ask).await?;
        let found: Vec<Package> = match answer.status.as_u16() {
            200 => understood(&answer, "a list of packages")?,
            404 => {
                return Err(Error::RepositoryNotFound {
                    place: of.place(),
                    token: place.authorization(of).is_none().then_some(TOKEN),
                });
            }
            _ => return Err(answer.refusal(access(of, place))),
        };
        // The query matches parts of names, too.
        let same = found
            .into_iter()
            .filter(|package| encoded(&package.name) == place.package || package.name == place.package);
        versions.extend(same.map(|package| package.version));
        match answer.header("x-next-page") {
            Some(next) if !next.is_empty() && next.bytes().all(|byte| byte.is_ascii_digit()) => {
                next.clone_into(&mut page);
            }
            _ => break,
        }
    }
    Ok(versions)
}

pub(crate) async fn file(of: &Repository, place: &GitLab, version: &str, name: &str) -> Result<String, Error> {
    let url = place.at(&format!(
        "/generic/{}/{}/{}",
        place.package,
        encoded(version),
        encoded(name)
    ));
    let ask = Ask::get(url.clone(), "application/octet-stream").authorized(place.authorization(of));
    let answer = of.client.send(&ask).await?;
    match answer.status.as_u16() {
        200 => content::text(&url.to_string(), &answer.body),
        404 => Err(of.absent_or_no_version(version, name).await),
        _ => Err(answer.refusal(access(of, place))),
    }
}

fn access(of: &Repository, place: &GitLab) -> Access {
    Access {
        sent: place.authorization(of).is_some(),
        variables: TOKEN,
    }
}
