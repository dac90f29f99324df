//! Helm's options, from those of a HelmReleaseProxy. Pure.

use std::time::Duration;

use windlass_api_ext::addons::{HelmOptions, HelmUpgradeOptions};
use windlass_helm::{Install, Options, Uninstall, Upgrade};

use super::observed::Operation;

/// The options of an operation.
pub(super) fn of(said: Option<&HelmOptions>, operation: Operation, timeout: Duration) -> Options {
    let nothing = HelmOptions::default();
    let said = said.unwrap_or(&nothing);
    let on = |field: Option<bool>| field == Some(true);
    let upgrade = said.upgrade.as_ref();
    let upgrades = |field: fn(&HelmUpgradeOptions) -> Option<bool>| upgrade.and_then(field) == Some(true);
    Options {
        disable_hooks: on(said.disable_hooks),
        wait: said.waits(),
        wait_for_jobs: on(said.wait_for_jobs),
        timeout,
        skip_crds: on(said.skip_crds),
        sub_notes: on(said.sub_notes),
        disable_openapi_validation: on(said.disable_open_api_validation),
        atomic: on(said.atomic),
        take_ownership: on(said.take_ownership),
        install: Install {
            create_namespace: said.creates_namespace(),
            replace: operation == Operation::Install { replace: true },
        },
        upgrade: Upgrade {
            force: upgrades(|upgrade| upgrade.force),
            reset_values: upgrades(|upgrade| upgrade.reset_values),
            reuse_values: upgrades(|upgrade| upgrade.reuse_values),
            reset_then_reuse_values: upgrades(|upgrade| upgrade.reset_then_reuse_values),
            max_history: u32::try_from(said.max_history()).unwrap_or_default(),
            cleanup_on_fail: upgrades(|upgrade| upgrade.cleanup_on_fail),
        },
        uninstall: Uninstall {
            keep_history: operation == Operation::Uninstall { keep_history: true },
            description: said
                .uninstall
                .as_ref()
                .and_then(|uninstall| uninstall.description.clone()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // AD-065
    #[test]
    fn all_options_reach_helm() {
        let said: HelmOptions = serde_json::from_value(json!({
            "atomic": true, "waitForJobs": true, "skipCRDs": true, "options": true, "disableHooks": true,
            "disableOpenAPIValidation": true, "takeOwnership": true,
            "install": {"createNamespace": false},
            "upgrade": {"force": true, "reuseValues": true, "maxHistory": 3, "cleanupOnFail": true},
            "uninstall": {"keepHistory": true, "description": "why"},
        }))
        .unwrap();
        let timeout = Duration::from_secs(7);
        let found = of(Some(&said), Operation::Uninstall { keep_history: true }, timeout);
        let expect = Options {
            disable_hooks: true,
            wait: true,
            wait_for_jobs: true,
            timeout,
            skip_crds: true,
            sub_notes: true,
            disable_openapi_validation: true,
            atomic: true,
            take_ownership: true,
            install: Install {
                create_namespace: false,
                replace: false,
            },
            upgrade: Upgrade {
                force: true,
                reuse_values: true,
                max_history: 3,
                cleanup_on_fail: true,
                ..Upgrade::default()
            },
            uninstall: Uninstall {
                keep_history: true,
                description: Some("why".to_owned()),
            },
        };
        assert_eq!(found, expect);
    }

    // AD-059. A release that is uninstalled to be installed again keeps no history, independent of the options for uninstallation.
    #[test]
    fn unset_options_are_helms_defaults() {
        let timeout = Options::default().timeout;
        assert_eq!(of(None, Operation::Upgrade, timeout), Options::default());
        let again = of(None, Operation::Install { replace: true }, timeout);
        assert!(again.install.replace && again.install.create_namespace);
    }
}
