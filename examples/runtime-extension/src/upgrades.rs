//! GenerateUpgradePlan: upgrades go through the versions that the settings list, such as `v1.34.2,v1.35.1,v1.36.0`.
//!
//! A class names the handler in `spec.upgrade.external.generateUpgradePlanExtension`.

use windlass_runtime_extension::hooks::Response as _;
use windlass_runtime_extension::hooks::lifecycle::UpgradeStep;
use windlass_runtime_extension::hooks::upgrade_plan::{
    GenerateUpgradePlan, GenerateUpgradePlanRequest, GenerateUpgradePlanResponse,
};
use windlass_runtime_extension::{BadHandler, Extension};

/// The key of the settings with the versions.
const VERSIONS: &str = "versions";

pub(super) fn add(extension: Extension) -> Result<Extension, BadHandler> {
    extension.handle(GenerateUpgradePlan, "upgrade-plan", |request| async move {
        plan(&request).unwrap_or_else(GenerateUpgradePlanResponse::failure)
    })
}

/// Major, minor and patch.
type Version = (u64, u64, u64);

fn read(text: &str) -> Result<Version, String> {
    let wrong = || format!("{text:?} is no version such as v1.35.0");
    let numbers: Result<Vec<u64>, _> = text.trim().trim_start_matches('v').split('.').map(str::parse).collect();
    match numbers.map_err(|_| wrong())?.as_slice() {
        [major, minor, patch] => Ok((*major, *minor, *patch)),
        _ => Err(wrong()),
    }
}

/// One version for each minor release on the way: the newest of the list, and the wanted one at the end. The workers follow when they must, so
/// their versions are left to Cluster API.
fn plan(request: &GenerateUpgradePlanRequest) -> Result<GenerateUpgradePlanResponse, String> {
    let (from, to) = (
        read(&request.from_control_plane_kubernetes_version)?,
        read(&request.to_kubernetes_version)?,
    );
    let listed = request.settings.get(VERSIONS).map(String::as_str).unwrap_or_default();
    let listed = listed.split(',').filter(|one| !one.trim().is_empty()).map(read);
    let listed = listed.collect::<Result<Vec<Version>, String>>()?;
    let mut steps = Vec::new();
    for minor in from.1 + 1..to.1 {
        let newest = listed.iter().filter(|one| (one.0, one.1) == (to.0, minor)).max();
        let Some((major, minor, patch)) = newest else {
            return Err(format!("the setting {VERSIONS} has no version of {}.{minor}", to.0));
        };
        steps.push(format!("v{major}.{minor}.{patch}"));
    }
    if from < to {
        steps.push(request.to_kubernetes_version.clone());
    }
    let mut response = GenerateUpgradePlanResponse::success();
    response.control_plane_upgrades = steps.into_iter().map(|version| UpgradeStep { version }).collect();
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_minor_release_on_the_way_has_a_version() {
        let steps = |versions: &str, to: &str| {
            let request = GenerateUpgradePlanRequest {
                settings: [(VERSIONS.to_owned(), versions.to_owned())].into(),
                from_control_plane_kubernetes_version: "v1.33.1".to_owned(),
                to_kubernetes_version: to.to_owned(),
                ..GenerateUpgradePlanRequest::default()
            };
            let steps = |response: GenerateUpgradePlanResponse| {
                response.control_plane_upgrades.into_iter().map(|step| step.version)
            };
            plan(&request).map(|response| steps(response).collect::<Vec<_>>())
        };
        let listed = "v1.34.2, v1.34.10,v1.35.1";
        assert_eq!(
            steps(listed, "v1.36.0"),
            Ok(["v1.34.10", "v1.35.1", "v1.36.0"].map(str::to_owned).to_vec())
        );
        assert_eq!(steps("", "v1.34.0"), Ok(vec!["v1.34.0".to_owned()]));
        assert_eq!(steps("", "v1.33.1"), Ok(Vec::new()));
        assert_eq!(
            steps("v1.34.2", "v1.36.0"),
            Err("the setting versions has no version of 1.35".to_owned())
        );
        assert!(steps("latest", "v1.36.0").is_err() && steps("", "1.36").is_err());
    }
}
