//! References to images: `registry:5000/path/name:tag@sha256:...`.

use windlass_api_operator::ImageOverride;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Image {
    repository: Option<String>,
    name: String,
    tag: Option<String>,
    digest: Option<String>,
}

impl Image {
    fn parse(text: &str) -> Self {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.to_owned())),
            None => (text, None),
        };
        let (repository, last) = match rest.rsplit_once('/') {
            Some((repository, last)) => (Some(repository.to_owned()), last),
            None => (None, rest),
        };
        let (name, tag) = match last.split_once(':') {
            Some((name, tag)) => (name.to_owned(), Some(tag.to_owned())),
            None => (last.to_owned(), None),
        };
        Self {
            repository,
            name,
            tag,
            digest,
        }
    }

    fn text(&self) -> String {
        let mut out = self.repository.as_ref().map(|r| format!("{r}/")).unwrap_or_default();
        out.push_str(&self.name);
        for (sign, part) in [(':', &self.tag), ('@', &self.digest)] {
            if let Some(part) = part {
                out.push(sign);
                out.push_str(part);
            }
        }
        out
    }
}

/// The image to use instead of the one that a container has. On an error, the part that is wrong and why.
pub(super) fn overridden(have: &str, change: &ImageOverride) -> Result<String, (&'static str, String)> {
    let (repository, name, tag) = match change {
        ImageOverride::Whole(image) => {
            let odd = image.is_empty() || image.contains(char::is_whitespace);
            let why = || {
                (
                    "",
                    format!("{image:?} is not an image: expected one like registry.example.com/name:tag"),
                )
            };
            return if odd { Err(why()) } else { Ok(image.clone()) };
        }
        ImageOverride::Parts { repository, name, tag } => (repository, name, tag),
    };
    let mut image = Image::parse(have);
    if let Some(repository) = repository {
        let trimmed = repository.trim_end_matches('/');
        if trimmed.is_empty() || trimmed.contains(|c: char| c.is_whitespace() || c == '@') {
            let why = format!("{repository:?} is not a repository: expected one like registry.example.com/path");
            return Err((".repository", why));
        }
        image.repository = Some(trimmed.to_owned());
    }
    if let Some(name) = name {
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || "/:@".contains(c)) {
            let why =
                format!("{name:?} is not a name: what is before its last / belongs to repository, and a tag to tag");
            return Err((".name", why));
        }
        image.name.clone_from(name);
    }
    if let Some(tag) = tag {
        // A tag says which image is meant, and so does a digest: only one of them can be right.
        if tag.starts_with("sha256:") {
            (image.tag, image.digest) = (None, Some(tag.clone()));
        } else if tag.is_empty() || !tag.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
            return Err((".tag", format!("{tag:?} is not a tag: expected one like v1.2.3")));
        } else {
            (image.tag, image.digest) = (Some(tag.clone()), None);
        }
    }
    if image.name.is_empty() {
        return Err((
            ".name",
            "is needed: the container has no image to begin with".to_owned(),
        ));
    }
    Ok(image.text())
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
