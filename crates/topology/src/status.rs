//! The content of the Cluster's condition TopologyReconciled.

use serde_json::Value;
use windlass_conditions::Draft;

use crate::current::Current;
use crate::desired::Desired;
use crate::error::Error;
use crate::hooks::{self, Blocking};
use crate::model::text;
use crate::upgrade::WorkerStep;

/// The progress of the MachineDeployments, or of the MachinePools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkersProgress {
    /// Those on their way to a version: name and version.
    pub upgrading: Vec<(String, String)>,
    /// Those that wait for their turn.
    pub pending: Vec<String>,
    /// Those that an annotation holds back.
    pub deferred: Vec<String>,
    /// Entries of the topology for which there is none yet.
    pub not_created: Vec<String>,
}

impl WorkersProgress {
    fn add(&mut self, entry: &str, exists: bool, object: &Value, step: &WorkerStep) {
        let name = || text(object, "/metadata/name").to_owned();
        match step {
            step if !exists && step.on_hold() => self.not_created.push(entry.to_owned()),
            step if step.deferred => self.deferred.push(name()),
            step if step.pending => self.pending.push(name()),
            step if step.upgrading || step.starting => self.upgrading.push((name(), step.version.clone())),
            _ => {}
        }
    }

    fn settled(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the user has to let it go on.
    fn only_deferred(&self) -> bool {
        !self.deferred.is_empty() && self.upgrading.is_empty() && self.pending.is_empty()
    }

    /// What is to be said, a line each. `deferred_by` are the annotations that hold back.
    fn lines(&self, kind: &str, plan: &[String], version: &str, deferred_by: &str) -> Vec<String> {
        let mut by_version: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, version) in &self.upgrading {
            match by_version.iter_mut().find(|(v, _)| v == version) {
                Some((_, names)) => names.push(name),
                None => by_version.push((version, vec![name])),
            }
        }
        let upgrading = by_version.into_iter().map(|(version, names)| {
            let (names, later) = (listed(kind, &names), later(plan, version));
            format!("{names} upgrading to version {version}{later}")
        });
        let mut lines: Vec<String> = upgrading.collect();
        let versions = versions(plan, version);
        if !self.pending.is_empty() {
            let names = listed(kind, &self.pending);
            lines.push(format!("{names} pending upgrade to version {versions}"));
        }
        if !self.deferred.is_empty() {
            let names = listed(kind, &self.deferred);
            lines.push(format!(
                "{names} upgrade to version {versions} deferred using {deferred_by} annotations"
            ));
        }
        if !self.not_created.is_empty() {
            let names = listed(kind, &self.not_created);
            lines.push(format!(
                "{names} creation deferred while control plane upgrade is in progress"
            ));
        }
        lines
    }
}

/// The progress of a topology.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The version that all parts are brought to.
    pub version: String,
    /// Kind of the control plane.
    pub control_plane_kind: String,
    /// The version the control plane is on its way to.
    pub control_plane_upgrading: Option<String>,
    /// Why the control plane has to wait for the version.
    pub control_plane_pending: Option<String>,
    /// Name of the control plane.
    pub control_plane_name: String,
    /// Whether nothing is made yet, as a hook blocks it.
    pub creation_blocked: bool,
    /// The hooks that block.
    pub blocking: Vec<Blocking>,
    /// Whether the hook after the upgrade is still to be called.
    pub after_upgrade: bool,
    /// The MachineDeployments.
    pub deployments: WorkersProgress,
    /// The MachinePools.
    pub pools: WorkersProgress,
    /// Versions the control plane still has to go through, as seen before this pass.
    pub control_plane_plan: Vec<String>,
    /// Versions the workers still have to go through, as seen before this pass.
    pub workers_plan: Vec<String>,
}

impl Progress {
    pub(crate) fn of(current: &Current, desired: &Desired) -> Self {
        let step = &desired.control_plane.step;
        let mut out = Self {
            version: desired.topology.version.clone(),
            control_plane_kind: text(&desired.control_plane.object, "/kind").to_owned(),
            control_plane_name: text(&desired.control_plane.object, "/metadata/name").to_owned(),
            control_plane_upgrading: (step.upgrading || step.starting).then(|| step.version.clone()),
            control_plane_pending: step.pending.clone(),
            control_plane_plan: desired.upgrade_plan.control_plane.clone(),
            workers_plan: desired.upgrade_plan.workers.clone(),
            ..Self::default()
        };
        for worker in &desired.workers {
            let exists = current.machine_deployments.contains_key(&worker.name);
            out.deployments.add(&worker.name, exists, &worker.object, &worker.step);
        }
        for pool in &desired.pools {
            let exists = current.machine_pools.contains_key(&pool.name);
            out.pools.add(&pool.name, exists, &pool.object, &pool.step);
        }
        out
    }

    /// Whether everything has its version.
    pub fn settled(&self) -> bool {
        let control_plane = self.control_plane_upgrading.is_none() && self.control_plane_pending.is_none();
        let hooks = self.blocking.is_empty() && !self.after_upgrade;
        control_plane && hooks && self.deployments.settled() && self.pools.settled()
    }

    /// When the first of the hooks that block is asked again, in seconds.
    pub fn ask_again(&self) -> Option<i32> {
        self.blocking.iter().filter_map(|one| one.seconds).min()
    }

    /// The reason while an upgrade goes on, or does not without the user. A control plane that waits for workers which an annotation holds back
    /// does not either.
    fn reason(&self) -> &'static str {
        if self.control_plane_upgrading.is_some() || !self.blocking.is_empty() {
            UPGRADING
        } else if self.deployments.only_deferred() {
            DEFERRED
        } else if self.pools.only_deferred() {
            POOLS_DEFERRED
        } else {
            UPGRADING
        }
    }
}

/// All generated objects match the topology.
pub const SUCCEEDED: &str = "ReconcileSucceeded";
/// The pass failed.
pub const FAILED: &str = "ReconcileFailed";
/// A hook blocks the creation of the first object.
pub const CREATING: &str = "ClusterCreating";
/// A version is on its way.
pub const UPGRADING: &str = "ClusterUpgrading";
/// Only worker sets that an annotation holds back are left.
pub const DEFERRED: &str = "MachineDeploymentsUpgradeDeferred";
/// The same for MachinePools.
pub const POOLS_DEFERRED: &str = "MachinePoolsUpgradeDeferred";
/// The Cluster is being deleted.
pub const DELETING: &str = "Deleting";

/// How many items of a list are shown.
const SHOWN: usize = 3;

/// The report of a pass that went through.
pub fn report(progress: &Progress) -> Draft {
    if progress.creation_blocked {
        let message = hooks::line(&progress.blocking, "Cluster topology creation");
        return Draft::no(CREATING, message.unwrap_or_default());
    }
    if progress.settled() {
        return Draft::yes(SUCCEEDED, "");
    }
    let version = &progress.version;
    let kind = &progress.control_plane_kind;
    let mut lines = vec![format!("Cluster is upgrading to {version}")];
    lines.extend(hooks::line(&progress.blocking, "upgrade"));
    if let Some(version) = &progress.control_plane_upgrading {
        let later = later(&progress.control_plane_plan, version);
        lines.push(format!("{kind} upgrading to version {version}{later}"));
    }
    if let Some(why) = &progress.control_plane_pending {
        // An upgrade under way says all there is to say.
        if progress.control_plane_upgrading.is_none() {
            let versions = versions(&progress.control_plane_plan, version);
            lines.push(format!("{kind} pending upgrade to version {versions}: {why}"));
        }
    }
    let plan = &progress.workers_plan;
    let annotations = "defer-upgrade or hold-upgrade-sequence";
    lines.extend(
        progress
            .deployments
            .lines("MachineDeployment", plan, version, annotations),
    );
    // The words of v1.14 differ here.
    let annotations = "topology.cluster.x-k8s.io/defer-upgrade or hold-upgrade-sequence";
    lines.extend(progress.pools.lines("MachinePool", plan, version, annotations));
    Draft::no(progress.reason(), lines.join("\n  * "))
}

/// The report of a pass that failed.
pub fn failed(error: &Error) -> Draft {
    Draft::no(FAILED, error.to_string())
}

/// The report of a pass of which parts failed: the first few of them, as messages of servers may be long.
pub fn failed_parts(errors: &[&Error]) -> Draft {
    let mut lines: Vec<_> = errors.iter().take(SHOWN).map(ToString::to_string).collect();
    if errors.len() > SHOWN {
        lines.push(format!("... ({} more)", errors.len() - SHOWN));
    }
    Draft::no(FAILED, lines.join("\n  * "))
}

/// The report of a Cluster that is being deleted.
pub fn deleting() -> Draft {
    Draft::no(DELETING, "Cluster is deleting")
}

/// The report while the class's own controller has not caught up with the class.
pub fn class_not_reconciled(generation: i64, observed: i64) -> Draft {
    Draft::no(
        FAILED,
        format!(
            "ClusterClass is not successfully reconciled: ClusterClass.status.observedGeneration must be \
             {generation}, but is {observed}"
        ),
    )
}

/// The versions of a chain; the last one where no chain is known.
fn versions(plan: &[String], last: &str) -> String {
    match plan {
        [] => last.to_owned(),
        plan => plan.join(", "),
    }
}

/// ` (v1.33.0 pending)`: what comes after this version.
fn later(plan: &[String], version: &str) -> String {
    let later: Vec<&str> = plan.iter().map(String::as_str).filter(|one| *one != version).collect();
    match later.as_slice() {
        [] => String::new(),
        later => format!(" ({} pending)", later.join(", ")),
    }
}

/// `Kind a` or `Kinds a, b, c, ... (n more)`.
fn listed<S: AsRef<str>>(kind: &str, names: &[S]) -> String {
    let shown = windlass_conditions::listed(names, SHOWN);
    match names.len() {
        0 | 1 => format!("{kind} {shown}"),
        _ => format!("{kind}s {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // TO-317: the texts that v1.14 leaves while the control plane, and then a worker set, is upgraded.
    #[test]
    fn reports_an_upgrade_as_it_goes() {
        let base = Progress {
            version: "v1.36.0".into(),
            control_plane_kind: "KubeadmControlPlane".into(),
            ..Progress::default()
        };
        assert_eq!(report(&base).reason, "ReconcileSucceeded");
        let first = Progress {
            control_plane_upgrading: Some("v1.36.0".into()),
            deployments: WorkersProgress {
                pending: vec!["demo000-md-0-f5krk".into()],
                ..WorkersProgress::default()
            },
            ..base.clone()
        };
        let first = report(&first);
        assert_eq!(first.reason, "ClusterUpgrading");
        assert_eq!(
            first.message,
            "Cluster is upgrading to v1.36.0\n  * KubeadmControlPlane upgrading to version v1.36.0\n  \
             * MachineDeployment demo000-md-0-f5krk pending upgrade to version v1.36.0"
        );
        let second = Progress {
            deployments: WorkersProgress {
                upgrading: vec![("demo000-md-0-f5krk".into(), "v1.36.0".into())],
                ..WorkersProgress::default()
            },
            ..base.clone()
        };
        assert_eq!(
            report(&second).message,
            "Cluster is upgrading to v1.36.0\n  * MachineDeployment demo000-md-0-f5krk upgrading to version v1.36.0"
        );
        let deferred = Progress {
            deployments: WorkersProgress {
                deferred: vec!["a".into()],
                ..WorkersProgress::default()
            },
            ..base
        };
        assert_eq!(report(&deferred).reason, "MachineDeploymentsUpgradeDeferred");
    }

    #[test]
    fn a_chain_of_upgrades_names_the_versions_that_are_still_to_come() {
        let plan = || vec!["v1.35.0".to_owned(), "v1.36.0".to_owned()];
        let base = Progress {
            version: "v1.36.0".into(),
            control_plane_kind: "KubeadmControlPlane".into(),
            control_plane_plan: plan(),
            workers_plan: plan(),
            ..Progress::default()
        };
        let text = report(&Progress {
            control_plane_upgrading: Some("v1.35.0".into()),
            deployments: WorkersProgress {
                pending: vec!["b".into()],
                ..WorkersProgress::default()
            },
            ..base.clone()
        });
        assert_eq!(
            text.message,
            "Cluster is upgrading to v1.36.0\n  * KubeadmControlPlane upgrading to version v1.35.0 (v1.36.0 pending)\n  \
             * MachineDeployment b pending upgrade to version v1.35.0, v1.36.0"
        );
        let text = report(&Progress {
            control_plane_pending: Some("why".into()),
            control_plane_plan: vec!["v1.36.0".into()],
            deployments: WorkersProgress {
                upgrading: vec![("a".into(), "v1.35.0".into())],
                not_created: vec!["md-1".into(), "md-2".into()],
                ..WorkersProgress::default()
            },
            ..base.clone()
        });
        assert_eq!(
            text.message,
            "Cluster is upgrading to v1.36.0\n  * KubeadmControlPlane pending upgrade to version v1.36.0: why\n  \
             * MachineDeployment a upgrading to version v1.35.0 (v1.36.0 pending)\n  \
             * MachineDeployments md-1, md-2 creation deferred while control plane upgrade is in progress"
        );
        // The chain waits for the user.
        let held = report(&Progress {
            control_plane_pending: Some("why".into()),
            deployments: WorkersProgress {
                deferred: vec!["a".into()],
                ..WorkersProgress::default()
            },
            ..base
        });
        assert_eq!(held.reason, "MachineDeploymentsUpgradeDeferred");
    }

    #[test]
    fn pools_are_reported_after_deployments() {
        let base = Progress {
            version: "v1.36.0".into(),
            control_plane_kind: "KubeadmControlPlane".into(),
            workers_plan: vec!["v1.36.0".to_owned()],
            pools: WorkersProgress {
                deferred: vec!["p".into()],
                ..WorkersProgress::default()
            },
            ..Progress::default()
        };
        let held = report(&base);
        assert_eq!(held.reason, "MachinePoolsUpgradeDeferred");
        assert_eq!(
            held.message,
            "Cluster is upgrading to v1.36.0\n  * MachinePool p upgrade to version v1.36.0 deferred using \
             topology.cluster.x-k8s.io/defer-upgrade or hold-upgrade-sequence annotations"
        );
        let both = report(&Progress {
            deployments: WorkersProgress {
                deferred: vec!["a".into()],
                ..WorkersProgress::default()
            },
            ..base
        });
        assert_eq!(both.reason, "MachineDeploymentsUpgradeDeferred");
        let lines: Vec<&str> = both.message.lines().collect();
        assert!(
            lines[1].starts_with("  * MachineDeployment a upgrade")
                && lines[2].starts_with("  * MachinePool p upgrade")
        );
    }

    #[test]
    fn failed_parts_are_lines_and_the_first_few_are_shown() {
        let errors: Vec<_> = ["a", "b", "c", "d"].map(|name| Error::new(name, "", "no")).into();
        let errors: Vec<_> = errors.iter().collect();
        assert_eq!(failed_parts(&errors[..1]).message, "a: no");
        assert_eq!(failed_parts(&errors[..3]).message, "a: no\n  * b: no\n  * c: no");
        let report = failed_parts(&errors);
        assert_eq!(report.reason, FAILED);
        assert_eq!(report.message, "a: no\n  * b: no\n  * c: no\n  * ... (1 more)");
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(listed("Machine", &["a"]), "Machine a");
        assert_eq!(listed("Machine", &["a", "b"]), "Machines a, b");
        assert_eq!(
            listed("Machine", &["a", "b", "c", "d", "e"]),
            "Machines a, b, c, ... (2 more)"
        );
    }
}
