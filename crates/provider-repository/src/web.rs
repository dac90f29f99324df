//! Web folders with one folder per version. Versions come from the index page of the server.

use std::collections::BTreeSet;

use crate::content;
use crate::error::Error;
use crate::http::{Access, Ask, Refusal as _};
use crate::repository::Repository;
use crate::version;
use windlass_http_client::{Url, encoded};

/// No credentials are sent to plain web servers.
const ACCESS: Access = Access {
    sent: false,
    variables: "",
};

fn below(base: &Url, path: &str) -> Url {
    base.at(&format!("{}/{path}", base.path.trim_end_matches('/')))
}

pub(crate) async fn versions(of: &Repository, base: &Url) -> Result<Vec<String>, Error> {
    let answer = of.client.send(&Ask::get(below(base, ""), "text/html, */*")).await?;
    let found = match answer.status.as_u16() {
        200 => listed(&String::from_utf8_lossy(&answer.body)),
        403 | 404 => Vec::new(),
        _ => return Err(answer.refusal(ACCESS)),
    };
    match (found.is_empty(), &of.source.pinned) {
        (false, _) => Ok(found),
        (true, Some(pinned)) => Ok(vec![pinned.clone()]),
        (true, None) => Err(Error::NoList { place: of.place() }),
    }
}

/// The versions among a page's links.
fn listed(page: &str) -> Vec<String> {
    let links = page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        rest[1..].split(quote).next()
    });
    let names = links.filter_map(|link| {
        let path = link.split(['?', '#']).next()?;
        path.trim_end_matches('/').rsplit('/').next()
    });
    let found: BTreeSet<String> = names
        .map(|name| name.replace("%2B", "+"))
        .filter(|name| version::parse(name).is_some())
        .collect();
    found.into_iter().collect()
}

pub(crate) async fn file(of: &Repository, base: &Url, version: &str, name: &str) -> Result<String, Error> {
    let url = below(base, &format!("{}/{}", encoded(version), encoded(name)));
    let answer = of.client.send(&Ask::get(url.clone(), "*/*")).await?;
    match answer.status.as_u16() {
        200 => content::text(&url.to_string(), &answer.body),
        404 => Err(of.absent_or_no_version(version, name).await),
        _ => Err(answer.refusal(ACCESS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_among_the_links_of_a_page() {
        let page = r#"<a href="../">..</a> <a href="v1.0.0/">v1.0.0/</a><a href='/files/v1.1.0/'>x</a> <a href="?C=N">N</a>
            <a href="v1.0.0">again</a> <a href="notes.txt">notes</a> <a href=v9.9.9>bare</a>"#;
        assert_eq!(listed(page), ["v1.0.0", "v1.1.0"]);
    }
}
