//! The command line of helm. Pure, and documented by the same table in docs/helm-addons.md.
//!
//! It never contains secrets. User input always follows a `=`, so that it cannot be parsed as a flag.

use std::path::Path;
use std::time::Duration;

use crate::version::Version;
use crate::{HelmError, Kind, Options, Target};

#[cfg(test)]
#[path = "flags/tests.rs"]
mod tests;

/// The first version with `--take-ownership`.
const TAKES_OWNERSHIP: Version = Version { major: 3, minor: 17 };

/// The longest release name that helm accepts.
const LONGEST_NAME: usize = 53;

/// The limit of Go's durations, which count nanoseconds; in milliseconds.
const LONGEST_TIMEOUT: u128 = 9_000_000_000_000;

/// The common parameters of all operations on a release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct On<'a> {
    pub(crate) version: Version,
    pub(crate) target: &'a Target,
    pub(crate) kubeconfig: &'a Path,
    pub(crate) options: &'a Options,
}

/// The command line of an operation.
pub(crate) type Flags = Vec<String>;

impl On<'_> {
    pub(crate) fn install(&self, archive: &Path) -> Result<Flags, HelmError> {
        let mut flags = self.apply("install", archive)?;
        let install = &self.options.install;
        flags.when(install.create_namespace, "--create-namespace");
        flags.when(install.replace, "--replace");
        Ok(flags.0)
    }

    pub(crate) fn upgrade(&self, archive: &Path) -> Result<Flags, HelmError> {
        let mut flags = self.apply("upgrade", archive)?;
        let upgrade = &self.options.upgrade;
        // Without any of the three, helm interprets empty values as "unchanged".
        let reuses = upgrade.reuse_values || upgrade.reset_then_reuse_values;
        flags.when(upgrade.reset_values || !reuses, "--reset-values");
        flags.when(upgrade.reuse_values, "--reuse-values");
        flags.when(upgrade.reset_then_reuse_values, "--reset-then-reuse-values");
        self.change(&mut flags);
        Ok(flags.0)
    }

    pub(crate) fn rollback(&self, to_revision: u32) -> Result<Flags, HelmError> {
        let mut flags = self.begin(&["rollback", &self.target.release, &to_revision.to_string()])?;
        flags.when(self.options.wait_for_jobs, "--wait-for-jobs");
        self.change(&mut flags);
        self.apply_as_client(&mut flags);
        Ok(flags.0)
    }

    pub(crate) fn uninstall(&self) -> Result<Flags, HelmError> {
        let mut flags = self.begin(&["uninstall", &self.target.release])?;
        let uninstall = &self.options.uninstall;
        flags.when(uninstall.keep_history, "--keep-history");
        if let Some(description) = &uninstall.description {
            flags.push(format!("--description={description}"));
        }
        Ok(flags.0)
    }

    /// Timeout of an operation. Helm's own timeout bounds each of its waits: pre-hooks, resources, post-hooks, and the
    /// same again for a rollback.
    pub(crate) fn limit(&self, grace: Duration) -> Duration {
        let options = self.options;
        let waits = 1 + if options.disable_hooks { 0 } else { 2 };
        let rounds = waits * if options.atomic { 2 } else { 1 };
        options.timeout.saturating_mul(rounds).saturating_add(grace)
    }

    /// Common flags of install and upgrade.
    fn apply(&self, verb: &str, archive: &Path) -> Result<List, HelmError> {
        let options = self.options;
        let archive = text(archive)?;
        let mut flags = self.begin(&[verb, &self.target.release, &archive])?;
        flags.push("--output=json");
        flags.push("--values=-");
        let labels = self.target.marker.labels.iter();
        let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
        if !labels.is_empty() {
            flags.push(format!("--labels={}", labels.join(",")));
        }
        let undo = if self.version.is_four() {
            "--rollback-on-failure"
        } else {
            "--atomic"
        };
        flags.when(options.atomic, undo);
        flags.when(options.wait_for_jobs, "--wait-for-jobs");
        flags.when(options.skip_crds, "--skip-crds");
        flags.when(options.sub_notes, "--render-subchart-notes");
        flags.when(options.disable_openapi_validation, "--disable-openapi-validation");
        if options.take_ownership && self.version < TAKES_OWNERSHIP {
            let message = format!(
                "the option takeOwnership needs helm {TAKES_OWNERSHIP} or newer, not {}",
                self.version
            );
            return Err(HelmError::new(Kind::TooOld, message));
        }
        flags.when(options.take_ownership, "--take-ownership");
        self.apply_as_client(&mut flags);
        Ok(flags)
    }

    /// Applies on the client side, as helm 3 does, with either version: manual changes of fields are reverted without conflicts,
    /// and a fleet can switch between the versions.
    fn apply_as_client(&self, flags: &mut List) {
        flags.when(self.version.is_four(), "--server-side=false");
    }

    /// Common flags of upgrade and rollback.
    fn change(&self, flags: &mut List) {
        let upgrade = &self.options.upgrade;
        let replace = if self.version.is_four() {
            "--force-replace"
        } else {
            "--force"
        };
        flags.when(upgrade.force, replace);
        flags.push(format!("--history-max={}", upgrade.max_history));
        flags.when(upgrade.cleanup_on_fail, "--cleanup-on-fail");
    }

    /// The common part.
    fn begin(&self, words: &[&str]) -> Result<List, HelmError> {
        checked(self.target)?;
        let options = self.options;
        let mut flags = List(words.iter().map(|&word| word.to_owned()).collect());
        flags.push(format!("--kubeconfig={}", text(self.kubeconfig)?));
        flags.push(format!("--namespace={}", self.target.namespace));
        let timeout = options.timeout.as_millis().clamp(1, LONGEST_TIMEOUT);
        flags.push(format!("--timeout={timeout}ms"));
        flags.when(options.disable_hooks, "--no-hooks");
        flags.when(options.wait, "--wait");
        Ok(flags)
    }
}

/// Validates names like helm does; here this also keeps names from being parsed as flags.
fn checked(target: &Target) -> Result<(), HelmError> {
    let invalid = |what: &str, name: &str, longest: usize| {
        let message = format!(
            "\"{name}\" cannot be {what}: up to {longest} lower-case letters, digits, \"-\" and \".\", with a letter or digit at both ends"
        );
        Err(HelmError::new(Kind::Invalid, message))
    };
    if !is_name(&target.release, LONGEST_NAME) {
        return invalid("the name of a release", &target.release, LONGEST_NAME);
    }
    if !is_name(&target.namespace, 63) || target.namespace.contains('.') {
        return invalid("the name of a namespace", &target.namespace, 63);
    }
    Ok(())
}

fn is_name(name: &str, longest: usize) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part =
        |part: &str| part.starts_with(plain) && part.ends_with(plain) && part.chars().all(|c| plain(c) || c == '-');
    name.len() <= longest && name.split('.').all(part)
}

pub(crate) fn text(path: &Path) -> Result<String, HelmError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        HelmError::new(
            Kind::Invalid,
            format!("{}: helm is given only paths in UTF-8", path.display()),
        )
    })
}

/// A command line under construction.
struct List(Flags);

impl List {
    fn push(&mut self, flag: impl Into<String>) {
        self.0.push(flag.into());
    }

    fn when(&mut self, wanted: bool, flag: &str) {
        if wanted {
            self.push(flag);
        }
    }
}
