//! Releases, as on GitHub.

use serde_json::{Value, json};

use crate::answer::{Answer, sha256};
use crate::forge::{Asked, Demand, Files, State, decoded, hosts};

#[derive(Debug, Clone)]
pub(crate) struct Release {
    tag: String,
    draft: bool,
    pub(crate) files: Files,
}

/// The release with a tag. Creates it if needed.
pub(crate) fn release<'a>(releases: &'a mut Vec<Release>, tag: &str, draft: bool) -> &'a mut Release {
    let found = releases.iter().position(|release| release.tag == tag);
    let at = found.unwrap_or_else(|| {
        releases.push(Release {
            tag: tag.to_owned(),
            draft,
            files: Files::new(),
        });
        releases.len() - 1
    });
    &mut releases[at]
}

pub(crate) fn answer(state: &State, asked: &Asked) -> Answer {
    let path = decoded(asked.path.trim_matches('/'));
    let parts: Vec<&str> = path.split('/').collect();
    match (asked.host.as_str(), parts.as_slice()) {
        // The address is enough to read the file, and it must not be sent credentials.
        (hosts::GITHUB_FILES, [owner, repository, tag, name]) => file(state, owner, repository, tag, name),
        (hosts::GITHUB_API, ["repos", owner, repository, "releases", rest @ ..])
        | (_, ["api", "v3", "repos", owner, repository, "releases", rest @ ..]) => {
            let answer = refused(state, asked).unwrap_or_else(|| api(state, asked, owner, repository, rest));
            answer
                .with("x-ratelimit-limit", "60")
                .with("x-ratelimit-remaining", "59")
        }
        (hosts::GITHUB | hosts::ENTERPRISE, [owner, repository, "releases", "download", tag, name]) => {
            let public = !state.demands.lock().contains_key(api_host(&asked.host));
            match find(state, owner, repository, tag).filter(|release| public && release.files.contains_key(*name)) {
                Some(_) => Answer::redirect(&address(owner, repository, tag, name)),
                None => Answer::not_found(),
            }
        }
        _ => Answer::not_found(),
    }
}

fn api_host(host: &str) -> &str {
    if host == hosts::GITHUB { hosts::GITHUB_API } else { host }
}

fn refused(state: &State, asked: &Asked) -> Option<Answer> {
    let demands = state.demands.lock();
    let Some(Demand::Token(token)) = demands.get(&asked.host) else {
        return None;
    };
    match &asked.authorization {
        None => Some(Answer::not_found()),
        Some(shown) if *shown == format!("Bearer {token}") => None,
        Some(_) => Some(Answer::json(401, &json!({"message": "Bad credentials"}))),
    }
}

fn address(owner: &str, repository: &str, tag: &str, name: &str) -> String {
    format!(
        "https://{}/{owner}/{repository}/{tag}/{name}?X-Amz-Signature=forged",
        hosts::GITHUB_FILES
    )
}

fn find(state: &State, owner: &str, repository: &str, tag: &str) -> Option<Release> {
    let releases = state.releases.lock();
    let releases = releases.get(&format!("{owner}/{repository}"))?;
    releases
        .iter()
        .find(|release| release.tag == tag && !release.draft)
        .cloned()
}

fn file(state: &State, owner: &str, repository: &str, tag: &str, name: &str) -> Answer {
    let content = find(state, owner, repository, tag).and_then(|release| release.files.get(name).cloned());
    content.map_or_else(Answer::not_found, |content| Answer::new(200, content).tagged())
}

/// A stable number for a file.
fn id(tag: &str, name: &str) -> u64 {
    u64::from_str_radix(&sha256(format!("{tag}/{name}").as_bytes())[..12], 16).unwrap_or_default()
}

fn shown(release: &Release) -> Value {
    let asset = |(name, content): (&String, &bytes::Bytes)| {
        let digest = format!("sha256:{}", sha256(content));
        json!({"id": id(&release.tag, name), "name": name, "size": content.len(), "digest": digest})
    };
    let assets: Vec<Value> = release.files.iter().map(asset).collect();
    json!({"tag_name": release.tag, "draft": release.draft, "prerelease": false, "assets": assets})
}

fn api(state: &State, asked: &Asked, owner: &str, repository: &str, rest: &[&str]) -> Answer {
    let all = state.releases.lock().get(&format!("{owner}/{repository}")).cloned();
    let Some(mut all) = all else { return Answer::not_found() };
    all.reverse();
    match rest {
        [] => {
            let (page, next) = state.page(asked, &all);
            let answer = Answer::json(200, &page.iter().map(shown).collect()).tagged();
            match next {
                Some(next) => {
                    let prefix = asked.path.as_str();
                    let link = format!("<https://{}{prefix}?page={next}>; rel=\"next\"", asked.host);
                    answer.with("link", link)
                }
                None => answer,
            }
        }
        ["tags", tag] => {
            let found = all.iter().find(|release| release.tag == *tag && !release.draft);
            found.map_or_else(Answer::not_found, |release| Answer::json(200, &shown(release)).tagged())
        }
        ["assets", number] => {
            let mut files = all
                .iter()
                .flat_map(|release| release.files.keys().map(|name| (&release.tag, name)));
            match files.find(|(tag, name)| id(tag, name).to_string() == **number) {
                Some((tag, name)) if asked.accept.contains("octet-stream") => {
                    Answer::redirect(&address(owner, repository, tag, name))
                }
                Some((_, name)) => Answer::json(200, &json!({"name": name})),
                None => Answer::not_found(),
            }
        }
        _ => Answer::not_found(),
    }
}
