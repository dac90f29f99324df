//! Checks before a MachineSet makes or replaces Machines: a Machine made at the wrong moment cannot join.

use std::str::FromStr;

use windlass_meta::KubernetesVersion;

const ALL: &str = "All";
const STABLE: &str = "ControlPlaneIsStable";
const KUBERNETES: &str = "KubernetesVersionSkew";
const KUBEADM: &str = "KubeadmVersionSkew";
const TOPOLOGY: &str = "ControlPlaneVersionSkew";

/// The names of checks, as in Cluster API.
const CHECKS: [&str; 5] = [ALL, KUBEADM, KUBERNETES, STABLE, TOPOLOGY];

/// The checks that a manager runs: Cluster API's option `--machineset-preflight-checks`. All of them by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreflightChecks(Vec<&'static str>);

impl Default for PreflightChecks {
    fn default() -> Self {
        Self(vec![ALL])
    }
}

impl FromStr for PreflightChecks {
    type Err = String;

    /// Names, separated by commas. No name means no check. The error lists the names that there are.
    fn from_str(text: &str) -> Result<Self, String> {
        let names = text.split(',').filter(|name| !name.is_empty());
        let known = |name: &str| {
            let found = CHECKS.into_iter().find(|check| *check == name);
            found.ok_or_else(|| format!("there is no check {name:?}: {} are expected", CHECKS.join(", ")))
        };
        names.map(known).collect::<Result<_, _>>().map(Self)
    }
}

impl PreflightChecks {
    /// The checks of several values of the option.
    pub fn together(all: &[Self]) -> Self {
        Self(all.iter().flat_map(|checks| checks.0.clone()).collect())
    }

    fn run(&self, check: &str) -> bool {
        self.0.iter().any(|one| *one == ALL || *one == check)
    }
}

/// What is known of the control plane, read by its contract.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControlPlaneFacts {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// `spec.version`; control planes without a version are not checked against.
    pub(crate) spec_version: Option<String>,
    /// The lowest version that any of its API servers runs.
    pub(crate) status_version: Option<String>,
    /// Some API server runs an older version than wanted.
    pub(crate) upgrading: bool,
}

/// What the checks look at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts<'a> {
    pub(crate) control_plane: Option<&'a ControlPlaneFacts>,
    /// `spec.topology.version` of a Cluster with a topology.
    pub(crate) topology_version: Option<&'a str>,
    /// The version that the topology controller takes the control plane to at the moment.
    pub(crate) upgrade_step: Option<&'a str>,
    /// The MachineSet is managed by a topology.
    pub(crate) topology_owned: bool,
    /// The version of the Machines to be made.
    pub(crate) version: Option<&'a str>,
    /// The Machines join with kubeadm.
    pub(crate) kubeadm: bool,
    /// The checks that the manager runs.
    pub(crate) checks: PreflightChecks,
    /// The value of the annotation that skips checks.
    pub(crate) skip: &'a str,
}

const MAX_SKEW: u64 = 3;

fn failed(check: &str, why: &str) -> String {
    format!("{why} (\"{check}\" preflight check failed)")
}

/// What speaks against making Machines now; empty when nothing does. `Err` when a version cannot be read.
pub(crate) fn run(facts: &Facts<'_>) -> Result<Vec<String>, String> {
    let skipped: Vec<&str> = facts.skip.split(',').map(str::trim).collect();
    let runs = |check: &str| facts.checks.run(check) && !skipped.contains(&check);
    if facts.checks.0.is_empty() || skipped.contains(&ALL) {
        return Ok(Vec::new());
    }
    let Some(plane) = facts.control_plane else {
        return Ok(Vec::new());
    };
    let Some(plane_version) = plane.spec_version.as_deref() else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    if runs(STABLE)
        && let Some(why) = unstable(plane, plane_version, facts)
    {
        found.push(failed(STABLE, &why));
    }
    let Some(version) = facts.version else { return Ok(found) };
    let parse = |what: &str, text: &str| {
        KubernetesVersion::parse_tolerant(text)
            .map_err(|error| format!("the version of the {what} cannot be compared: {error}"))
    };
    let (plane_semver, machine_semver) = (parse(&plane.kind, plane_version)?, parse("MachineSet", version)?);
    let (have, want) = (bare(version), bare(plane_version));
    if runs(KUBERNETES)
        && let Some(why) = skew(&machine_semver, &plane_semver)
    {
        let why = format!(
            "MachineSet version ({have}) and ControlPlane version ({want}) do not conform to the kubernetes version skew policy as {why}"
        );
        found.push(failed(KUBERNETES, &why));
    }
    if facts.kubeadm && runs(KUBEADM) && !machine_semver.same_minor(&plane_semver) {
        let why = format!(
            "MachineSet version ({have}) and ControlPlane version ({want}) do not conform to kubeadm version skew policy as kubeadm only supports joining with the same major+minor version as the control plane"
        );
        found.push(failed(KUBEADM, &why));
    }
    if facts.topology_version.is_some() && facts.topology_owned && runs(TOPOLOGY) && have != want {
        let why = format!(
            "MachineSet version ({have}) is not yet the same as the ControlPlane version ({want}), waiting for version to be propagated to the MachineSet"
        );
        found.push(failed(TOPOLOGY, &why));
    }
    Ok(found)
}

fn bare(version: &str) -> &str {
    version.trim_start_matches('v')
}

fn unstable(plane: &ControlPlaneFacts, version: &str, facts: &Facts<'_>) -> Option<String> {
    let name = format!("{} {}/{}", plane.kind, plane.namespace, plane.name);
    let Some(running) = plane.status_version.as_deref() else {
        return Some(format!("{name} is provisioning"));
    };
    if plane.upgrading {
        return Some(format!("{name} is upgrading (from {running} to {version})"));
    }
    let goal = facts.topology_version?;
    let stepped = facts.upgrade_step.is_some_and(|step| bare(step) == bare(version));
    (bare(goal) != bare(version) && !stepped).then(|| format!("{name} has a pending version upgrade to {goal}"))
}

fn skew(machine: &KubernetesVersion, plane: &KubernetesVersion) -> Option<String> {
    if machine.major() != plane.major() || machine.minor() > plane.minor() {
        return Some("MachineSet version is higher than ControlPlane version".to_owned());
    }
    (machine.minor() + MAX_SKEW < plane.minor()).then(|| {
        format!("MachineSet version is more than {MAX_SKEW} minor versions older than the ControlPlane version")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(spec: &str, status: Option<&str>) -> ControlPlaneFacts {
        ControlPlaneFacts {
            kind: "KubeadmControlPlane".to_owned(),
            namespace: "default".to_owned(),
            name: "cp".to_owned(),
            spec_version: Some(spec.to_owned()),
            status_version: status.map(str::to_owned),
            upgrading: status.is_some_and(|status| status != spec),
        }
    }

    fn check(facts: &Facts<'_>, want: &[&str]) {
        let found = run(facts).unwrap();
        let checks: Vec<_> = found
            .iter()
            .map(|message| message.split('"').nth(1).unwrap_or_default())
            .collect();
        assert_eq!(checks, want, "{found:?}");
    }

    #[test]
    fn a_control_plane_without_a_running_version_is_provisioning() {
        let plane = plane("v1.35.0", None);
        let facts = Facts {
            control_plane: Some(&plane),
            version: Some("v1.35.0"),
            ..Facts::default()
        };
        assert_eq!(
            run(&facts).unwrap(),
            ["KubeadmControlPlane default/cp is provisioning (\"ControlPlaneIsStable\" preflight check failed)"]
        );
    }

    #[test]
    fn an_upgrading_or_lagging_control_plane_is_not_stable() {
        let upgrading = plane("v1.36.0", Some("v1.35.0"));
        let mut facts = Facts {
            control_plane: Some(&upgrading),
            version: Some("v1.36.0"),
            ..Facts::default()
        };
        check(&facts, &["ControlPlaneIsStable"]);
        let lagging = plane("v1.35.0", Some("v1.35.0"));
        facts = Facts {
            control_plane: Some(&lagging),
            version: Some("v1.35.0"),
            topology_version: Some("v1.36.0"),
            ..facts
        };
        check(&facts, &["ControlPlaneIsStable"]);
        facts.upgrade_step = Some("v1.35.0");
        check(&facts, &[]);
    }

    #[test]
    fn skews_are_found_unless_skipped() {
        let plane = plane("v1.35.0", Some("v1.35.0"));
        let mut facts = Facts {
            control_plane: Some(&plane),
            version: Some("v1.36.0"),
            kubeadm: true,
            topology_owned: true,
            topology_version: Some("v1.35.0"),
            ..Facts::default()
        };
        check(
            &facts,
            &["KubernetesVersionSkew", "KubeadmVersionSkew", "ControlPlaneVersionSkew"],
        );
        facts.skip = "KubeadmVersionSkew, ControlPlaneVersionSkew";
        check(&facts, &["KubernetesVersionSkew"]);
        facts.skip = "All";
        check(&facts, &[]);
        facts = Facts {
            version: Some("v1.31.0"),
            topology_version: None,
            kubeadm: false,
            skip: "",
            ..facts
        };
        check(&facts, &["KubernetesVersionSkew"]);
    }

    #[test]
    fn only_the_checks_of_the_manager_run() {
        let plane = plane("v1.35.0", None);
        let facts = |checks: &str| Facts {
            control_plane: Some(&plane),
            version: Some("v1.36.0"),
            kubeadm: true,
            checks: checks.parse().unwrap(),
            ..Facts::default()
        };
        let all = ["ControlPlaneIsStable", "KubernetesVersionSkew", "KubeadmVersionSkew"];
        check(&facts("All"), &all);
        check(&facts("KubeadmVersionSkew,All"), &all);
        check(&facts("KubeadmVersionSkew"), &["KubeadmVersionSkew"]);
        check(&facts(""), &[]);
        let some = PreflightChecks::together(&["KubeadmVersionSkew".parse().unwrap(), "".parse().unwrap()]);
        assert_eq!(some, "KubeadmVersionSkew".parse().unwrap());
        let error = "Kubeadm".parse::<PreflightChecks>().unwrap_err();
        assert!(error.starts_with("there is no check \"Kubeadm\": All, "), "{error}");
    }
}
