//! Finds the helm program and checks its version.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::process;
use crate::version::{BECAUSE, OLDEST, Version};
use crate::{HelmError, Kind};

/// The download page.
const GET: &str =
    "install helm (https://helm.sh/docs/intro/install) where the manager runs, or say with --helm where it is";

/// The last helm whose version was determined, and the result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probe(Option<(Found, Answer)>);

type Answer = Result<(PathBuf, Version), HelmError>;

/// A candidate for helm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// The modification time, which differs if another program replaces the file.
    changed: Option<SystemTime>,
    size: u64,
}

impl Probe {
    /// Looks up the program.
    pub(crate) fn look(program: &Path, search: Option<&OsStr>) -> Result<Found, HelmError> {
        let Some(path) = process::find(program, search) else {
            let message = format!("there is no program {} here: {GET}", program.display());
            return Err(HelmError::new(Kind::NotInstalled, message));
        };
        // It starts in another working directory, so relative paths do not work.
        let path = std::path::absolute(&path).unwrap_or(path);
        let file = std::fs::metadata(&path).ok();
        Ok(Found {
            changed: file.as_ref().and_then(|file| file.modified().ok()),
            size: file.map_or(0, |file| file.len()),
            path,
        })
    }

    /// The result for an unchanged file.
    pub(crate) fn known(&self, found: &Found) -> Option<Answer> {
        let (known, answer) = self.0.as_ref()?;
        (known == found).then(|| answer.clone())
    }

    pub(crate) fn learn(&mut self, found: Found, answer: Answer) {
        self.0 = Some((found, answer));
    }
}

impl Found {
    /// Parses the output of `helm version`.
    pub(crate) fn judge(&self, output: Result<&String, &HelmError>) -> Answer {
        let path = self.path.display();
        let words = match output {
            Ok(printed) => printed.trim(),
            Err(error) => error.message.as_str(),
        };
        let Some(version) = output.ok().and_then(|printed| Version::read(printed)) else {
            let message = format!("{path} is no helm that can be used, it says \"{words}\": {GET}");
            return Err(HelmError::new(Kind::NotInstalled, message));
        };
        if version < OLDEST {
            let message = format!("{path} is helm {words}, and {OLDEST} or newer is needed ({BECAUSE}): {GET}");
            return Err(HelmError::new(Kind::TooOld, message));
        }
        Ok((self.path.clone(), version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Found {
        Found {
            path: "/usr/bin/helm".into(),
            changed: None,
            size: 1,
        }
    }

    fn judged(printed: &str) -> Answer {
        found().judge(Ok(&printed.to_owned()))
    }

    // Windlass ships no helm, so the error says how to get one.
    #[test]
    fn an_unusable_helm_is_reported_with_a_remedy() {
        let old = judged("v3.13.3").unwrap_err();
        assert_eq!(old.kind, Kind::TooOld);
        assert!(
            old.message
                .starts_with("/usr/bin/helm is helm v3.13.3, and v3.14 or newer is needed (labels on releases"),
            "{old}"
        );
        assert!(
            old.message.contains("helm.sh/docs/intro/install") && old.message.contains("--helm"),
            "{old}"
        );
        let odd = judged("I am vim").unwrap_err();
        assert_eq!(odd.kind, Kind::NotInstalled);
        assert!(
            odd.message.contains("no helm that can be used, it says \"I am vim\""),
            "{odd}"
        );
        let none = Probe::look(Path::new("helm"), Some(OsStr::new("/none"))).unwrap_err();
        assert_eq!(none.kind, Kind::NotInstalled);
        assert!(
            none.message.starts_with("there is no program helm here: install helm"),
            "{none}"
        );
        assert_eq!(judged("v4.3.1\n").unwrap().1.to_string(), "v4.3");
    }

    #[test]
    fn a_file_that_has_changed_is_asked_again() {
        let mut probe = Probe::default();
        assert!(probe.known(&found()).is_none());
        probe.learn(found(), judged("v3.13.3"));
        assert!(probe.known(&found()).is_some_and(|answer| answer.is_err()));
        assert!(probe.known(&Found { size: 2, ..found() }).is_none());
    }
}
