//! Replaces the image of a container.

use windlass_api_operator::ImageOverride;

use crate::images::{Image, ImageError, ImageMeta};

/// The image that replaces a container's image. The error is the invalid part and the reason.
pub(super) fn overridden(have: &str, change: &ImageOverride) -> Result<String, (&'static str, String)> {
    let (repository, name, tag) = match change {
        ImageOverride::Whole(image) => {
            let whole = Image::parse(image).map_err(|error| ("", error.to_string()))?;
            return Ok(whole.to_string());
        }
        ImageOverride::Parts { repository, name, tag } => (repository, name, tag),
    };
    let check = |part: &'static str, text: String, why: String| {
        let parsed = Image::parse(&text);
        parsed.map_err(|ImageError { .. }| (part, why)).map(drop)
    };
    if let Some(repository) = repository {
        let why = format!("{repository:?} is not a repository: expected one like registry.example.com/path");
        check(".repository", format!("{}/name", repository.trim_end_matches('/')), why)?;
    }
    if let Some(name) = name {
        let why = format!("{name:?} is not a name: what is before its last / belongs to repository, and a tag to tag");
        let bare = !name.contains(['/', ':', '@']);
        check(".name", if bare { name.clone() } else { String::new() }, why)?;
    }
    // A digest and a tag both identify an image: they may contradict each other.
    let digest = tag.clone().filter(|tag| tag.starts_with("sha256:"));
    if let Some(tag) = tag.as_ref().filter(|_| digest.is_none()) {
        check(
            ".tag",
            format!("name:{tag}"),
            format!("{tag:?} is not a tag: expected one like v1.2.3"),
        )?;
    }
    let begin = if have.is_empty() {
        name.as_deref().unwrap_or("")
    } else {
        have
    };
    if begin.is_empty() {
        return Err((
            ".name",
            "is needed: the container has no image to begin with".to_owned(),
        ));
    }
    let mut image = Image::parse(begin).map_err(|error| ("", format!("the container's {error}")))?;
    image = image.with(&ImageMeta {
        repository: repository.clone(),
        name: name.clone(),
        tag: tag.clone().filter(|_| digest.is_none()),
    });
    if digest.is_some() {
        (image.tag, image.digest) = (None, digest);
    }
    Ok(image.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(repository: &str, name: &str, tag: &str) -> ImageOverride {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        ImageOverride::Parts {
            repository: given(repository),
            name: given(name),
            tag: given(tag),
        }
    }

    #[test]
    fn only_the_parts_that_are_set_change() {
        // OP-055, OP-174
        let check = |have: &str, change: &ImageOverride, expect: &str| {
            let once = overridden(have, change).unwrap();
            assert_eq!(once, expect, "{have}");
            assert_eq!(overridden(&once, change).unwrap(), expect, "a second time");
        };
        let aws = "registry.k8s.io/cluster-api-aws/cluster-api-aws-controller:v0.6.0";
        // OP-172, OP-173
        check(
            aws,
            &parts("gcr.io/myregistry", "capa-controller", "v0.6.0-foo"),
            "gcr.io/myregistry/capa-controller:v0.6.0-foo",
        );
        check(
            aws,
            &parts("mirror:5000/x/", "", ""),
            "mirror:5000/x/cluster-api-aws-controller:v0.6.0",
        );
        check(
            aws,
            &parts("", "other", ""),
            "registry.k8s.io/cluster-api-aws/other:v0.6.0",
        );
        check(
            aws,
            &parts("", "", "v1"),
            "registry.k8s.io/cluster-api-aws/cluster-api-aws-controller:v1",
        );
        check("localhost:5000/a", &parts("", "", "v1"), "localhost:5000/a:v1");
        check("a", &parts("r", "", ""), "r/a");
        check("a", &parts("", "", ""), "a");
        check("a:v1", &ImageOverride::Whole("b@sha256:00".to_owned()), "b@sha256:00");
        // A tag drops the digest, another registry has the same content.
        check("r/a:v1@sha256:00", &parts("", "", "v2"), "r/a:v2");
        check("r/a:v1@sha256:00", &parts("s", "", ""), "s/a:v1@sha256:00");
        check("r/a:v1", &parts("", "", "sha256:11"), "r/a@sha256:11");
    }

    #[test]
    fn parts_that_are_none_are_named() {
        let check = |change: &ImageOverride, part: &str| assert_eq!(overridden("r/a:v1", change).unwrap_err().0, part);
        check(&parts("", "a/b", ""), ".name");
        check(&parts("", "a:v2", ""), ".name");
        check(&parts("", "", "v 2"), ".tag");
        check(&parts("/", "", ""), ".repository");
        check(&ImageOverride::Whole("a b".to_owned()), "");
        assert_eq!(overridden("", &parts("r", "", "")).unwrap_err().0, ".name");
    }
}
