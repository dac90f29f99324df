//! Images of containers: lists the ones that a provider needs, and overrides them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::object::{self, Identity};

/// The parts of an image: `repository/name:tag@digest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The part before the name; may be empty.
    pub repository: String,
    /// The last part of the path.
    pub name: String,
    /// The tag.
    pub tag: Option<String>,
    /// The digest, `sha256:...`.
    pub digest: Option<String>,
}

/// The replacement of an image, by part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ImageMeta {
    /// Another registry, or a path in one.
    pub repository: Option<String>,
    /// Another name.
    pub name: Option<String>,
    /// Another tag. The digest is dropped, as it identifies another image.
    pub tag: Option<String>,
}

/// The overrides of clusterctl's configuration, its field `images`: by `all`, by component (`infrastructure-aws`, `cert-manager`)
/// and by component and image name (`infrastructure-aws/cluster-api-aws-controller`). More specific ones take precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Overrides(pub BTreeMap<String, ImageMeta>);

/// An invalid image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{image:?} is not an image: expected REPOSITORY/NAME:TAG or REPOSITORY/NAME@DIGEST")]
pub struct ImageError {
    /// The text of the image.
    pub image: String,
}

/// An image of an object that cannot be replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("container {container:?} of {object}: {error}")]
pub struct OverrideError {
    /// The workload.
    pub object: Box<Identity>,
    /// Its container.
    pub container: String,
    /// The error.
    pub error: ImageError,
}

impl Image {
    /// Parses an image.
    pub fn parse(text: &str) -> Result<Self, ImageError> {
        let failed = || ImageError { image: text.to_owned() };
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) if digest.contains(':') => (rest, Some(digest.to_owned())),
            Some(_) => return Err(failed()),
            None => (text, None),
        };
        let (repository, last) = rest.rsplit_once('/').unwrap_or(("", rest));
        let (name, tag) = match last.split_once(':') {
            Some((name, tag)) => (name, Some(tag.to_owned())),
            None => (last, None),
        };
        let in_tag = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let in_name = |c: char| in_tag(c) && !c.is_ascii_uppercase();
        let good_tag = tag
            .as_deref()
            .is_none_or(|tag| !tag.is_empty() && tag.chars().all(in_tag));
        let good_name = !name.is_empty() && name.chars().all(in_name);
        let good_repository = !repository.contains("//")
            && repository
                .chars()
                .all(|c| in_tag(c) || matches!(c, '/' | ':' | '[' | ']'));
        if !(good_tag && good_name && good_repository) || rest.starts_with('/') {
            return Err(failed());
        }
        Ok(Self {
            repository: repository.to_owned(),
            name: name.to_owned(),
            tag,
            digest,
        })
    }

    /// The image with some parts replaced. Empty parts replace nothing.
    #[must_use]
    pub fn with(mut self, meta: &ImageMeta) -> Self {
        if let Some(repository) = given(meta.repository.as_ref()) {
            repository.trim_end_matches('/').clone_into(&mut self.repository);
        }
        if let Some(name) = given(meta.name.as_ref()) {
            name.clone_into(&mut self.name);
        }
        if let Some(tag) = given(meta.tag.as_ref()) {
            self.tag = Some(tag.to_owned());
            self.digest = None;
        }
        self
    }
}

fn given(part: Option<&String>) -> Option<&str> {
    part.map(String::as_str).filter(|part| !part.is_empty())
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.repository.is_empty() {
            write!(f, "{}/", self.repository)?;
        }
        f.write_str(&self.name)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

impl ImageMeta {
    /// Merges another one, which takes precedence.
    fn add(&mut self, other: &Self) {
        let take = |mine: &mut Option<String>, other: &Option<String>| {
            if given(other.as_ref()).is_some() {
                mine.clone_from(other);
            }
        };
        take(&mut self.repository, &other.repository);
        take(&mut self.name, &other.name);
        take(&mut self.tag, &other.tag);
    }
}

impl Overrides {
    /// The overrides for an image of a component.
    pub fn of(&self, component: &str, image: &str) -> ImageMeta {
        let mut meta = ImageMeta::default();
        for key in ["all", component, &format!("{component}/{image}")] {
            if let Some(other) = self.0.get(key) {
                meta.add(other);
            }
        }
        meta
    }
}

/// The images of the workloads, without duplicates, sorted.
pub fn list(objects: &[Value]) -> Vec<String> {
    let images: BTreeSet<&str> = objects
        .iter()
        .flat_map(object::containers)
        .map(|container| object::text(container, &["image"]))
        .filter(|image| !image.is_empty())
        .collect();
    images.into_iter().map(str::to_owned).collect()
}

/// Overrides the images of all workloads. An image without an override is unchanged.
pub fn override_images(objects: &mut [Value], component: &str, overrides: &Overrides) -> Result<(), OverrideError> {
    if overrides.0.is_empty() {
        return Ok(());
    }
    for object in objects {
        let identity = Identity::of(object);
        for container in object::containers_mut(object) {
            let image = object::text(container, &["image"]);
            if image.is_empty() {
                continue;
            }
            let parsed = Image::parse(image).map_err(|error| OverrideError {
                object: Box::new(identity.clone()),
                container: object::text(container, &["name"]).to_owned(),
                error,
            })?;
            let meta = overrides.of(component, &parsed.name);
            if meta != ImageMeta::default() {
                container["image"] = Value::String(parsed.with(&meta).to_string());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
