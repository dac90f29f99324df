//! What an extension says about itself: pure.

use std::collections::BTreeSet;

use windlass_api::runtime::{ExtensionHandler, GroupVersionHook};
use windlass_runtime_hooks::discovery::DiscoveryResponse;
use windlass_runtime_hooks::{API_VERSION, CATALOG, DEFAULT_TIMEOUT_SECONDS, LONGEST_TIMEOUT_SECONDS};

/// The handlers of an extension for the status of its ExtensionConfig, completed by defaults. The error has everything that is wrong: an
/// extension is used whole, or not at all.
pub fn handlers(config: &str, answer: &DiscoveryResponse) -> Result<Vec<ExtensionHandler>, String> {
    let mut wrong = Vec::new();
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for handler in &answer.handlers {
        let name = &handler.name;
        if !names.insert(name) {
            wrong.push(format!("duplicate name for handler {name} found"));
        }
        if !is_dns_label(name) {
            wrong.push(format!(
                "handler name {name:?} is not valid: it has to be a DNS label: at most 63 lower case letters, digits and '-', which is neither the first nor the last"
            ));
        }
        let timeout = handler.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        if !(0..=LONGEST_TIMEOUT_SECONDS).contains(&timeout) {
            wrong.push(format!(
                "handler {name} timeoutSeconds {timeout} must be between 0 and {LONGEST_TIMEOUT_SECONDS}"
            ));
        }
        let policy = handler.failure_policy.as_deref().unwrap_or("Fail");
        if !["Fail", "Ignore"].contains(&policy) {
            wrong.push(format!(
                "handler {name} failurePolicy {policy} must equal \"Ignore\" or \"Fail\""
            ));
        }
        let hook = &handler.request_hook;
        if hook.api_version != API_VERSION || !CATALOG.iter().any(|known| known.name == hook.hook) {
            wrong.push(format!(
                "handler {name} requestHook {}/{} is not in the Runtime SDK catalog",
                hook.api_version, hook.hook
            ));
        }
        found.push(ExtensionHandler {
            name: format!("{name}.{config}"),
            request_hook: GroupVersionHook {
                api_version: hook.api_version.clone(),
                hook: hook.hook.clone(),
            },
            timeout_seconds: Some(timeout).filter(|timeout| *timeout > 0),
            failure_policy: Some(policy.to_owned()),
        });
    }
    match wrong.as_slice() {
        [] => Ok(found),
        [one] => Err(format!("failed to validate discovery response: {one}")),
        all => Err(format!("failed to validate discovery response: [{}]", all.join(", "))),
    }
}

fn is_dns_label(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&name.len()) && name.chars().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use windlass_runtime_hooks::discovery::ExtensionHandler as Offered;
    use windlass_runtime_hooks::lifecycle::BeforeClusterDelete;

    use super::*;

    fn of(offered: Vec<Offered>) -> Result<Vec<ExtensionHandler>, String> {
        let answer = DiscoveryResponse {
            handlers: offered,
            ..DiscoveryResponse::default()
        };
        handlers("ext", &answer)
    }

    #[test]
    fn handlers_get_the_name_of_their_extension_and_defaults() {
        let found = of(vec![Offered::of::<BeforeClusterDelete>("guard")]).unwrap();
        assert_eq!(found[0].name, "guard.ext");
        assert_eq!(found[0].timeout_seconds, Some(10));
        assert_eq!(found[0].failure_policy.as_deref(), Some("Fail"));
        assert_eq!(found[0].request_hook.hook, "BeforeClusterDelete");
    }

    #[test]
    fn an_extension_with_a_wrong_handler_is_refused_whole() {
        let good = || Offered::of::<BeforeClusterDelete>("guard");
        let wrong = |change: fn(&mut Offered)| {
            let mut handler = good();
            change(&mut handler);
            of(vec![handler]).unwrap_err()
        };
        let prefix = "failed to validate discovery response: handler";
        for (change, expect) in [
            (
                (|h| h.timeout_seconds = Some(31)) as fn(&mut Offered),
                "guard timeoutSeconds 31 must be between 0 and 30",
            ),
            (
                |h| h.timeout_seconds = Some(-1),
                "guard timeoutSeconds -1 must be between 0 and 30",
            ),
            (
                |h| h.failure_policy = Some("Maybe".to_owned()),
                "guard failurePolicy Maybe must equal \"Ignore\" or \"Fail\"",
            ),
            (
                |h| h.request_hook.hook = "Nothing".to_owned(),
                "guard requestHook hooks.runtime.cluster.x-k8s.io/v1alpha1/Nothing is not in the Runtime SDK catalog",
            ),
        ] {
            assert_eq!(wrong(change), format!("{prefix} {expect}"));
        }
        assert!(wrong(|h| h.name = "Guard.x".to_owned()).contains("handler name \"Guard.x\" is not valid"));
        let two = of(vec![good(), good()]).unwrap_err();
        assert_eq!(
            two,
            "failed to validate discovery response: duplicate name for handler guard found"
        );
    }
}
