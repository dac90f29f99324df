//! The forms of addresses.

use super::*;

/// The source, its address, the version and the file.
type Form<'a> = (&'a str, &'a str, Option<&'a str>, Option<&'a str>);

fn check(text: &str, expected: Result<Form<'_>, &str>) {
    let found = Source::parse(text);
    let found = match &found {
        Ok(source) => {
            let sort = match source.place {
                Place::GitHub(_) => "github",
                Place::GitLab(_) => "gitlab",
                Place::Web(_) => "web",
                Place::Folder { .. } => "folder",
                Place::Oci(_) => "oci",
            };
            Ok((sort, source.to_string(), source.pinned(), source.components.as_deref()))
        }
        Err(error) => Err(error.to_string()),
    };
    match (&found, expected) {
        (Ok((sort, place, pinned, components)), Ok(expected)) => {
            assert_eq!((*sort, place.as_str(), *pinned, *components), expected, "{text}");
        }
        (Err(error), Err(words)) => assert!(error.contains(words), "{text}: {error}"),
        _ => panic!("{text}: {found:?}"),
    }
}

#[test]
fn releases_on_github_have_one_form() {
    // OP-056, OP-152, OP-155
    let place = "https://github.com/myorg/awesome-azure-provider/releases";
    let ok = |tail: &str, pinned, file| check(&format!("{place}{tail}"), Ok(("github", place, pinned, file)));
    ok("", None, None);
    ok("/", None, None);
    ok("/latest", None, None);
    ok(
        "/latest/infrastructure-components.yaml",
        None,
        Some("infrastructure-components.yaml"),
    );
    ok("/v1.0.0/x.yaml", Some("v1.0.0"), Some("x.yaml"));
    ok("/tag/v1.0.0", Some("v1.0.0"), None);
    ok("/download/v1.0.0/x.yaml", Some("v1.0.0"), Some("x.yaml"));
    check(&format!("{place}/v1.0.0/a/x.yaml"), Err("no folders"));
    for wrong in [
        "https://github.com/a/b",
        "https://github.com/a/releases",
        "https://github.com/a/b/tree/main",
    ] {
        check(wrong, Err("https://github.com/{owner}/{repository}/releases"));
    }
    check("http://github.com/a/b/releases", Err("has to begin with https://"));
    let internal = "https://github.example.com/a/b/releases";
    check(internal, Ok(("github", internal, None, None)));
}

#[test]
fn packages_on_gitlab_have_one_form() {
    let place = "https://gitlab.example.com/api/v4/projects/group%2Fproject/packages/generic/capi";
    check(
        &format!("{place}/v1.0.0/x.yaml"),
        Ok(("gitlab", place, Some("v1.0.0"), Some("x.yaml"))),
    );
    check(
        &format!("{place}/latest/x.yaml"),
        Ok(("gitlab", place, None, Some("x.yaml"))),
    );
    check(place, Ok(("gitlab", place, None, None)));
    check(
        "https://gitlab.example.com/api/v4/projects/1/packages/maven/x",
        Err("packages/generic"),
    );
}

#[test]
fn any_other_address_is_a_folder_in_the_web() {
    let place = "https://files.example.com/providers/aws";
    check(place, Ok(("web", place, None, None)));
    check(&format!("{place}/v1.0.0/"), Ok(("web", place, Some("v1.0.0"), None)));
    check(
        &format!("{place}/v1.0.0/x.yaml"),
        Ok(("web", place, Some("v1.0.0"), Some("x.yaml"))),
    );
    check(&format!("{place}/x.yaml"), Err("has to be its version"));
    check(&format!("{place}?a=b"), Err("query"));
    check(
        "http://files.example.com",
        Ok(("web", "http://files.example.com/", None, None)),
    );
    check("ftp://files.example.com", Err("https://"));
    check("aws", Err("https://"));
}

#[test]
fn folders_of_this_machine_name_label_and_version() {
    let ok = (
        "folder",
        "/srv/providers/infrastructure-aws",
        Some("v1.0.0"),
        Some("x.yaml"),
    );
    check("file:///srv/providers/infrastructure-aws/v1.0.0/x.yaml", Ok(ok));
    check("/srv/providers/infrastructure-aws/v1.0.0/x.yaml", Ok(ok));
    check(
        "file:///srv/providers/infrastructure-aws/latest/x.yaml",
        Ok((ok.0, ok.1, None, ok.3)),
    );
    check("file:///infrastructure-aws/v1.0.0", Err("file:///{folder}"));
    check("file:///srv/infrastructure-aws/one/x.yaml", Err("not a version"));
    check("file:///srv/../etc/v1.0.0/x.yaml", Err("without .."));
    check("file://srv/providers/aws/v1.0.0/x.yaml", Err("absolute"));
}

#[test]
fn artifacts_are_named_as_images_are() {
    let oci = |text: &str| Source::oci(text).map(|source| (source.to_string(), source.pinned));
    let named = |place: &str, pinned: Option<&str>| Ok((place.to_owned(), pinned.map(str::to_owned)));
    assert_eq!(
        oci("registry.example.com/capi/aws"),
        named("registry.example.com/capi/aws", None)
    );
    assert_eq!(
        oci("oci://registry.example.com/aws:v1.0.0"),
        named("registry.example.com/aws:v1.0.0", Some("v1.0.0"))
    );
    assert_eq!(oci("localhost:5000/aws:edge"), named("localhost:5000/aws:edge", None));
    assert_eq!(
        oci("http://localhost:5000/aws"),
        named("http://localhost:5000/aws", None)
    );
    for wrong in [
        "aws",
        "registry.example.com/",
        "registry.example.com/AWS",
        "me:hush@registry.example.com/aws",
        "r.io/a:b c",
    ] {
        let error = oci(wrong).unwrap_err().to_string();
        assert!(
            error.contains("{host}/{repository}") && !error.contains("hush"),
            "{error}"
        );
    }
}

#[test]
fn the_addresses_that_the_page_shows_are_addresses() {
    let page = include_str!("../../../../docs/provider-repositories.md");
    let blocks = page
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let mut shown = 0;
    for line in blocks.flat_map(str::lines).map(str::trim) {
        let found = match (line.strip_prefix("url: "), line.strip_prefix("oci: ")) {
            (Some(url), _) => Source::parse(url),
            (_, Some(reference)) => Source::oci(reference),
            _ => continue,
        };
        assert!(found.is_ok(), "{line}: {found:?}");
        shown += 1;
    }
    assert_eq!(shown, 5);
}
