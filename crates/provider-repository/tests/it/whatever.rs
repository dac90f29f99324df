//! Any text as an address is either parsed or refused.

use proptest::prelude::*;
use windlass_provider_repository::{Credentials, Proxies, Source};

proptest! {
    #[test]
    fn addresses_are_read_or_refused(text in ".{0,60}", rest in "[a-z0-9:/@.%\\[\\]?#v_-]{0,60}") {
        for text in [text, rest.clone(), format!("https://{rest}"), format!("file:///{rest}"), format!("registry.example.com/{rest}")] {
            for source in [Source::parse(&text), Source::oci(&text)] {
                match source {
                    // The printed form is parsed to the same source.
                    Ok(source) if !source.is_local() => prop_assert!(!source.to_string().is_empty()),
                    Ok(_) => {}
                    Err(error) => prop_assert!(error.reason() == "InvalidFetchURL"),
                }
            }
        }
    }

    #[test]
    fn passwords_in_addresses_are_never_shown(user in "[a-z]{1,8}", host in "[a-z.]{1,12}", path in "[a-z/]{0,12}") {
        let text = format!("https://{user}:s3cr3t@{host}/{path}");
        for text in [text.clone(), text.replace("https://", ""), text.replace("https://", "oci://"), text.replace("https", "ftp")] {
            for source in [Source::parse(&text), Source::oci(&text)] {
                let shown = match source {
                    Ok(source) => format!("{source} {source:?}"),
                    Err(error) => format!("{error} {error:?}"),
                };
                prop_assert!(!shown.contains("s3cr3t"), "{}", shown);
            }
        }
        let found = Proxies::from_env(|name| (name == "HTTPS_PROXY").then(|| text.clone()));
        let shown = format!("{found:?}");
        prop_assert!(!shown.contains("s3cr3t"), "{}", shown);
        let found = Credentials::from_variables(|_| Some("s3cr3t".to_owned()));
        let shown = format!("{found:?}");
        prop_assert!(!shown.contains("s3cr3t"), "{}", shown);
    }

    #[test]
    fn proxies_are_read_or_refused(text in "[a-z0-9:/@.%*,\\[\\] -]{0,60}") {
        let _ = Proxies::from_env(|_| Some(text.clone()));
    }
}
