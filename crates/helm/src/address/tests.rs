//! Refused addresses, and the command lines of valid ones.

use super::*;

fn source(repo_url: &str) -> ChartSource {
    ChartSource {
        repo_url: repo_url.to_owned(),
        chart: "web".to_owned(),
        ..ChartSource::default()
    }
}

fn login() -> Credentials {
    Credentials::Login {
        username: "amy".to_owned(),
        password: Secret::new("hidden"),
        pass_everywhere: false,
    }
}

fn config(text: &str) -> Credentials {
    Credentials::RegistryConfig(Secret::new(text))
}

// AD-113, AD-114
#[test]
fn addresses_of_repositories() {
    for good in [
        "https://charts.example.com",
        "https://h:8443/a/b/?x=y",
        "oci://ghcr.io/org/charts",
        "oci://h:5000",
    ] {
        assert!(Address::new(&source(good)).is_ok(), "{good}");
    }
    for (bad, why) in [
        ("", "must begin with"),
        ("charts.example.com", "must begin with"),
        ("file:///etc", "must begin with"),
        ("/charts", "must begin with"),
        ("ftp://h/x", "must begin with"),
        ("OCI://h/x", "must begin with"),
        ("http://h/x", "http:// is not allowed here"),
        ("https://", "with a host"),
        ("https:///x", "with a host"),
        ("oci://", "with a host"),
        ("https://h/a b", "with a host"),
        ("https://h/\n", "with a host"),
        ("https://amy:pw@h/x", "belong into a Secret"),
        ("oci://h/x?y=z", "a host and a path"),
    ] {
        let error = Address::new(&source(bad)).unwrap_err();
        assert!(
            error.kind == Kind::Invalid && error.message.starts_with("repoURL: "),
            "{bad:?}: {error}"
        );
        assert!(error.message.contains(why), "{bad:?}: {error}");
    }
    let plain = ChartSource {
        plain_http: true,
        ..source("http://h/x")
    };
    assert_eq!(Address::new(&plain).unwrap().sort, Sort::Index);
}

#[test]
fn charts_and_versions_cannot_be_flags() {
    for bad in ["", "-x", "--all", "a b", "../etc", "a/../b", "/a", "a/", "a;b"] {
        let source = ChartSource {
            chart: bad.to_owned(),
            ..source("https://h")
        };
        assert!(
            Address::new(&source).unwrap_err().message.starts_with("chartName: "),
            "{bad}"
        );
    }
    for good in ["web", "Web_2.0", "team/web"] {
        let source = ChartSource {
            chart: good.to_owned(),
            ..source("https://h")
        };
        assert!(Address::new(&source).is_ok(), "{good}");
    }
    let odd = ChartSource {
        version: Some("1\n2".to_owned()),
        ..source("https://h")
    };
    assert!(Address::new(&odd).unwrap_err().message.starts_with("version: "));
}

// AD-104
#[test]
fn only_a_whole_version_never_changes() {
    let exact = |version: &str| {
        ChartSource {
            version: Some(version.to_owned()),
            ..source("https://h")
        }
        .is_exact()
    };
    for version in ["1.2.3", "v1.2.3", "1.2.3-rc.1", "1.2.3+build", " 1.2.3 "] {
        assert!(exact(version), "{version}");
    }
    for range in ["", "1.2", "1", "^1.2.3", ">=1 <2", "1.x", "*", "1.2.3 || 2.0.0"] {
        assert!(!exact(range), "{range}");
    }
    assert!(!source("https://h").is_exact());
}

// AD-113
#[test]
fn a_chart_in_a_registry_is_the_last_part_of_its_path() {
    let reference = |url: &str| Address::new(&source(url)).map(|address| address.reference()).unwrap();
    assert_eq!(reference("oci://h:5000/a/b"), "oci://h:5000/a/b/web");
    assert_eq!(reference("oci://h/"), "oci://h/web");
}

// AD-112
#[test]
fn who_asks_for_something_else_shares_nothing() {
    let first = ChartSource {
        version: Some("1.0.0".to_owned()),
        ..source("https://h")
    };
    let others = [
        ChartSource {
            repo_url: "https://i".to_owned(),
            ..first.clone()
        },
        ChartSource {
            credentials: Some(login()),
            ..first.clone()
        },
        ChartSource {
            tls: Some(Tls {
                insecure_skip_verify: true,
                ca: None,
            }),
            ..first.clone()
        },
    ];
    let keys = |source: &ChartSource| {
        let address = Address::new(source).unwrap();
        (address.repository_key(), address.chart_key())
    };
    for other in &others {
        assert_ne!(keys(&first).0, keys(other).0, "{other:?}");
    }
    let newer = ChartSource {
        version: Some("2.0.0".to_owned()),
        ..first.clone()
    };
    let sister = ChartSource {
        chart: "db".to_owned(),
        ..first.clone()
    };
    for other in [&newer, &sister] {
        assert_eq!(keys(&first).0, keys(other).0);
        assert_ne!(keys(&first).1, keys(other).1);
    }
    let spaced = ChartSource {
        version: Some(" 1.0.0 ".to_owned()),
        ..first.clone()
    };
    assert_eq!(keys(&first), keys(&spaced));
    assert!(!keys(&others[1]).1.contains("hidden") && !format!("{:?}", others[1]).contains("hidden"));
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn either_form_of_credentials_serves_either_sort_of_repository() {
    let packed = BASE64_STANDARD.encode("amy:hidden");
    let docker = config(
        &json!({
            "auths": {"https://h:8443/v1/": {"auth": packed}, "other": {"auth": "x"}},
            "credsStore": "steal",
            "credHelpers": {"h:8443": "steal"}
        })
        .to_string(),
    );
    for credentials in [login(), docker.clone()] {
        let source = ChartSource {
            credentials: Some(credentials),
            ..source("https://h:8443/charts")
        };
        let file = json(&Address::new(&source).unwrap().repositories(Some("/ca")).unwrap());
        let entry = &file["repositories"][0];
        assert_eq!(
            (&entry["username"], &entry["password"]),
            (&json!("amy"), &json!("hidden"))
        );
        assert_eq!(
            (&entry["caFile"], &entry["pass_credentials_all"]),
            (&json!("/ca"), &json!(false))
        );
    }
    let of_registry = |credentials| {
        let source = ChartSource {
            credentials,
            ..source("oci://h:8443/charts")
        };
        json(&Address::new(&source).unwrap().registries().unwrap())
    };
    assert_eq!(
        of_registry(Some(login())),
        json!({"auths": {"h:8443": {"auth": packed}}})
    );
    assert_eq!(of_registry(None), json!({"auths": {}}));
    // No credential helper, which would run a program.
    let only = of_registry(Some(docker));
    assert_eq!(only.as_object().unwrap().len(), 1, "{only}");

    let elsewhere = ChartSource {
        credentials: Some(config(
            "{\"auths\": {\"other\": {\"username\": \"a\", \"password\": \"b\"}}}",
        )),
        ..source("https://h:8443/charts")
    };
    let file = json(&Address::new(&elsewhere).unwrap().repositories(None).unwrap());
    assert_eq!(file["repositories"][0].get("username"), None);
}

#[test]
fn a_config_that_is_none_is_refused_without_a_word_of_it() {
    for text in ["hidden", "[]", "{\"hidden\": 1}", "{\"auths\": []}"] {
        let source = ChartSource {
            credentials: Some(config(text)),
            ..source("oci://h")
        };
        let error = Address::new(&source).unwrap().registries().unwrap_err();
        assert!(
            error.kind == Kind::Invalid && !error.message.contains("hidden"),
            "{error}"
        );
    }
}

#[test]
fn what_is_secret_in_credentials_is_hidden() {
    let packed = BASE64_STANDARD.encode("amy:pass-word");
    let text = json!({"auths": {"h": {"auth": packed, "identitytoken": "id-token"}}}).to_string();
    let source = ChartSource {
        credentials: Some(config(&text)),
        ..source("oci://h")
    };
    let mut mask = Mask::default();
    Address::new(&source).unwrap().hide(&mut mask);
    let words = crate::words::of(&format!("Error: {packed} id-token pass-word amy"), &mask);
    assert_eq!(words, "*** *** *** amy");
}
