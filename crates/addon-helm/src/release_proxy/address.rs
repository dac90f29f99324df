//! The address of a repository as Helm receives it. A login in it, as in a browser, is passed to Helm separately, so that it is on no command
//! line and in no message. Pure.

use percent_encoding::percent_decode_str;
use windlass_helm::{Credentials, Secret};

/// An address without a login, and the login that stood in it.
pub(super) fn split(url: &str) -> (String, Option<Credentials>) {
    let Some((scheme, rest)) = url.split_once("://") else {
        return (url.to_owned(), None);
    };
    // A scheme may have any case. Comparisons expect lower case.
    let scheme = scheme.to_ascii_lowercase();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((login, host)) = authority.rsplit_once('@') else {
        return (format!("{scheme}://{rest}"), None);
    };
    let (username, password) = login.split_once(':').unwrap_or((login, ""));
    let text = |part| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let login = Credentials::Login {
        username: text(username),
        password: Secret::new(text(password)),
        // What the index refers to elsewhere is not asked with it, as with any address that has a login.
        pass_everywhere: false,
    };
    (format!("{scheme}://{host}{path}"), Some(login))
}

#[cfg(test)]
mod tests {
    use super::*;

    // AD-113: repositories are declared as people have always declared them.
    #[test]
    fn a_login_is_separated_from_the_address() {
        let check = |url: &str, address: &str, login: Option<(&str, &str)>| {
            let (split, found) = split(url);
            assert_eq!(split, address);
            let found = found.map(|found| match found {
                Credentials::Login { username, password, .. } => (username, password.reveal().to_owned()),
                Credentials::RegistryConfig(_) => panic!("{url}"),
            });
            assert_eq!(found.as_ref().map(|(name, word)| (name.as_str(), word.as_str())), login);
        };
        check("https://x.example/charts", "https://x.example/charts", None);
        check("HTTPS://x.example", "https://x.example", None);
        check("https://x.example/a@b", "https://x.example/a@b", None);
        check(
            "https://amy:s3@x.example:8443/c?d",
            "https://x.example:8443/c?d",
            Some(("amy", "s3")),
        );
        check(
            "https://amy:p%40s%3As@x.example",
            "https://x.example",
            Some(("amy", "p@s:s")),
        );
        check("https://amy@x.example/c", "https://x.example/c", Some(("amy", "")));
        check("oci://x.example/charts", "oci://x.example/charts", None);
        check("odd", "odd", None);
    }
}
