//! The address of a handler: pure.

use windlass_api::runtime::ClientConfig;
use windlass_runtime_hooks::path;

/// The address of a handler of a hook, or why there is none. The name is empty for Discovery. The extension receives the time-out.
pub(crate) fn of(config: &ClientConfig, hook: &str, handler: &str, timeout_seconds: i32) -> Result<http::Uri, String> {
    let wrong = |why: String| format!("spec.clientConfig: {why}");
    let (authority, prefix) = match (&config.service, &config.url) {
        (Some(service), _) => {
            let host = format!("{}.{}.svc", service.name, service.namespace);
            let authority = match service.port {
                Some(port) => format!("{host}:{port}"),
                None => host,
            };
            (authority, service.path.clone().unwrap_or_default())
        }
        (None, Some(url)) => {
            let parsed: http::Uri = url
                .parse()
                .map_err(|error| wrong(format!("url {url:?} is not an address: {error}")))?;
            if parsed.scheme_str() != Some("https") {
                return Err(wrong(format!("url {url:?} has to begin with https://")));
            }
            let authority = parsed.authority().map(ToString::to_string).unwrap_or_default();
            (authority, parsed.path().to_owned())
        }
        (None, None) => return Err(wrong("neither url nor service is set".to_owned())),
    };
    if prefix.contains(['?', '#']) || authority.contains('@') {
        return Err(wrong(
            "a user, a query and a fragment are not allowed in an address".to_owned(),
        ));
    }
    let segments: Vec<&str> = prefix.split('/').filter(|segment| !segment.is_empty()).collect();
    let prefix = segments.join("/");
    let slash = if prefix.is_empty() { "" } else { "/" };
    let text = format!(
        "https://{authority}{slash}{prefix}{}?timeout={timeout_seconds}s",
        path(hook, handler)
    );
    text.parse()
        .map_err(|error| wrong(format!("{text:?} is not an address: {error}")))
}

#[cfg(test)]
mod tests {
    use windlass_api::runtime::ServiceReference;

    use super::*;

    #[test]
    fn an_address_has_the_path_of_the_extension_before_that_of_the_hook() {
        let url = |url: &str| ClientConfig {
            url: Some(url.to_owned()),
            ..ClientConfig::default()
        };
        let service = |port: Option<i32>, path: Option<&str>| ClientConfig {
            service: Some(ServiceReference {
                name: "ext".to_owned(),
                namespace: "ns".to_owned(),
                path: path.map(str::to_owned),
                port,
            }),
            ..ClientConfig::default()
        };
        let tail = "hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterdelete/guard?timeout=10s";
        for (config, expect) in [
            (url("https://a.b:8443"), "https://a.b:8443/"),
            (url("https://a.b:8443/"), "https://a.b:8443/"),
            (url("https://a.b/some/where/"), "https://a.b/some/where/"),
            (service(None, None), "https://ext.ns.svc/"),
            (service(Some(443), Some("/x")), "https://ext.ns.svc:443/x/"),
        ] {
            let address = of(&config, "BeforeClusterDelete", "guard", 10).unwrap();
            assert_eq!(address.to_string(), format!("{expect}{tail}"));
        }
        let secret = of(&url("https://user:secret@a"), "BeforeClusterDelete", "guard", 10).unwrap_err();
        assert!(!secret.contains("secret"), "{secret}");
        assert!(of(&service(None, Some("/x?y=")), "BeforeClusterDelete", "guard", 10).is_err());
        for bad in [
            url("http://a"),
            url("https://a b"),
            url("nothing"),
            ClientConfig::default(),
        ] {
            let why = of(&bad, "BeforeClusterDelete", "guard", 10).unwrap_err();
            assert!(why.starts_with("spec.clientConfig: "), "{why}");
        }
        let discovery = of(&url("https://a"), "Discovery", "", 10).unwrap();
        assert_eq!(discovery.path(), "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery");
    }
}
