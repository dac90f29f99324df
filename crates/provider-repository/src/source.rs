//! Sources by the form of their address.

use std::fmt;
use std::path::PathBuf;

use crate::error::Error;
use crate::oci::reference::Reference;
use crate::version;
use windlass_http_client::{Scheme, Url};

const GITHUB: &str = "github.com";
/// The alternative to a version in an address: the latest version.
const LATEST: &str = "latest";

/// The source of a provider's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub(crate) place: Place,
    /// The version in the address.
    pub(crate) pinned: Option<String>,
    /// The component file in the address.
    pub(crate) components: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    GitHub(GitHub),
    GitLab(GitLab),
    Web(Url),
    Folder { base: PathBuf, label: String },
    Oci(Reference),
}

/// Releases of a repository on GitHub, or on a host with the same API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitHub {
    pub(crate) host: Url,
    pub(crate) owner: String,
    pub(crate) repository: String,
}

/// Generic packages of a project on GitLab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitLab {
    pub(crate) host: Url,
    /// Number or path of the project, URL-encoded.
    pub(crate) project: String,
    pub(crate) package: String,
}

impl Source {
    /// Parses an address. Its form determines the type of source:
    ///
    /// - `https://github.com/{owner}/{repository}/releases`, optionally with `/latest` or `/{tag}` and then the name of the
    ///   component file; the same on any other host: GitHub Enterprise;
    /// - `https://{host}/api/v4/projects/{project}/packages/generic/{package}/{version}/{file}`: GitLab;
    /// - `file:///{folder}/{label}/{version}/{file}`, or the path alone: a local folder;
    /// - any other HTTP or HTTPS address: a web folder with one folder per version.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if let Some(reference) = text.strip_prefix("oci://") {
            return Self::oci(reference);
        }
        if let Some(path) = text.strip_prefix("file://") {
            return folder(text, path);
        }
        if text.starts_with('/') {
            return folder(text, text);
        }
        let url = Url::parse(text)?;
        if url.path_and_query().contains('?') {
            return Err(Error::invalid_url(
                text,
                "it has a query, and file names cannot be put behind one",
            ));
        }
        let segments: Vec<String> = url.segments().into_iter().map(str::to_owned).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            [owner, repository, "releases", rest @ ..] => github(text, &url, owner, repository, rest),
            _ if url.host == GITHUB || url.host == "www.github.com" => Err(Error::invalid_url(
                text,
                "releases on GitHub are at https://github.com/{owner}/{repository}/releases, with /latest or /{tag} and the \
                 name of the component file after it or without",
            )),
            ["api", "v4", "projects", project, rest @ ..] => gitlab(text, &url, project, rest),
            _ => web(text, &url, &segments),
        }
    }

    /// Parses the address of an artifact: `{host}/{repository}`, optionally with `:{tag}` or `@{digest}`. The tag defaults to the
    /// version. The prefix `http://` disables TLS, and `oci://` has no effect.
    pub fn oci(reference: &str) -> Result<Self, Error> {
        let reference = Reference::parse(reference)?;
        Ok(Self {
            pinned: reference.tag.clone().filter(|tag| version::parse(tag).is_some()),
            place: Place::Oci(reference),
            components: None,
        })
    }

    /// The version in the address.
    pub fn pinned(&self) -> Option<&str> {
        self.pinned.as_deref()
    }

    /// Whether it needs no network.
    pub fn is_local(&self) -> bool {
        matches!(self.place, Place::Folder { .. })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::GitHub(GitHub {
                host,
                owner,
                repository,
            }) => {
                write!(f, "{}/{owner}/{repository}/releases", host.origin())
            }
            Place::GitLab(gitlab) => {
                let GitLab { host, project, package } = gitlab;
                write!(
                    f,
                    "{}/api/v4/projects/{project}/packages/generic/{package}",
                    host.origin()
                )
            }
            Place::Web(base) => write!(f, "{base}"),
            Place::Folder { base, label } => write!(f, "{}", base.join(label).display()),
            Place::Oci(reference) => write!(f, "{reference}"),
        }
    }
}

fn github(text: &str, url: &Url, owner: &str, repository: &str, rest: &[&str]) -> Result<Source, Error> {
    if url.host == GITHUB && url.scheme == Scheme::Http {
        return Err(Error::invalid_url(text, "it has to begin with https://"));
    }
    let (pinned, components) = match rest {
        [] | [LATEST] => (None, None),
        [LATEST, file] => (None, Some(*file)),
        ["tag" | "download", tag] | [tag] => (Some(*tag), None),
        ["download", tag, file] | [tag, file] => (Some(*tag), Some(*file)),
        _ => {
            let why = "what follows releases is not a tag and the name of a file: releases have no folders";
            return Err(Error::invalid_url(text, why));
        }
    };
    let place = GitHub {
        host: url.at("/"),
        owner: owner.to_owned(),
        repository: repository.to_owned(),
    };
    Ok(Source {
        place: Place::GitHub(place),
        pinned: pinned.map(str::to_owned),
        components: components.map(str::to_owned),
    })
}

fn gitlab(text: &str, url: &Url, project: &str, rest: &[&str]) -> Result<Source, Error> {
    let (package, version, file) = match rest {
        ["packages", "generic", package] => (*package, None, None),
        ["packages", "generic", package, version] => (*package, Some(*version), None),
        ["packages", "generic", package, version, file] => (*package, Some(*version), Some(*file)),
        _ => {
            return Err(Error::invalid_url(
                text,
                "packages on GitLab are at https://{host}/api/v4/projects/{project}/packages/generic/{package}/{version}/{file}",
            ));
        }
    };
    let place = GitLab {
        host: url.at("/"),
        project: project.to_owned(),
        package: package.to_owned(),
    };
    Ok(Source {
        place: Place::GitLab(place),
        pinned: version.filter(|&version| version != LATEST).map(str::to_owned),
        components: file.map(str::to_owned),
    })
}

fn is_version(segment: &str) -> bool {
    segment == LATEST || version::parse(segment).is_some()
}

fn is_file(segment: &str) -> bool {
    [".yaml", ".yml"].iter().any(|end| segment.ends_with(end))
}

fn web(text: &str, url: &Url, segments: &[&str]) -> Result<Source, Error> {
    let (base, version, file) = match segments {
        [base @ .., version, file] if is_file(file) && is_version(version) => (base, Some(*version), Some(*file)),
        [.., file] if is_file(file) => {
            let why = "the folder of a file has to be its version: https://{host}/{folder}/{version}/{file}";
            return Err(Error::invalid_url(text, why));
        }
        [base @ .., version] if is_version(version) => (base, Some(*version), None),
        base => (base, None, None),
    };
    let path = base.iter().flat_map(|segment| ["/", segment]).collect::<String>();
    Ok(Source {
        place: Place::Web(url.at(if path.is_empty() { "/" } else { &path })),
        pinned: version.filter(|&version| version != LATEST).map(str::to_owned),
        components: file.map(str::to_owned),
    })
}

fn folder(text: &str, path: &str) -> Result<Source, Error> {
    let form = "folders of this machine are given as file:///{folder}/{label}/{version}/{file}";
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let [base @ .., label, version, file] = parts.as_slice() else {
        return Err(Error::invalid_url(text, form));
    };
    if !path.starts_with('/') || parts.contains(&"..") {
        return Err(Error::invalid_url(text, "the path has to be absolute and without .."));
    }
    if !is_version(version) {
        let why = format!("{version:?} is not a version such as v1.2.3, nor latest: {form}");
        return Err(Error::invalid_url(text, &why));
    }
    Ok(Source {
        place: Place::Folder {
            base: PathBuf::from(format!("/{}", base.join("/"))),
            label: (*label).to_owned(),
        },
        pinned: (*version != LATEST).then(|| (*version).to_owned()),
        components: Some((*file).to_owned()),
    })
}

#[cfg(test)]
mod tests;
