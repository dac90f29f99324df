//! Settings of the Helm controllers.

use std::path::PathBuf;
use std::time::Duration;

use crate::registry::helm::HelmUse;

/// The user's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Helming {
    /// The helm program. Defaults to the one in `PATH`.
    pub program: Option<PathBuf>,
    /// The folder for charts and for the files of single calls; defaults to a temporary folder.
    pub home: Option<PathBuf>,
    /// Interval of looking for newer chart versions.
    pub ask_every: Option<Duration>,
    /// Number of concurrent helm processes, without those that wait for their release.
    pub at_a_time: Option<usize>,
}

impl Helming {
    /// Settings of the Helm controllers.
    pub fn used(&self) -> HelmUse {
        let mut used = match &self.home {
            Some(home) => HelmUse::new(home),
            None => HelmUse::default(),
        };
        if let Some(program) = &self.program {
            used.program.program.clone_from(program);
        }
        if let Some(every) = self.ask_every {
            used.releases.ask_every = every;
        }
        if let Some(count) = self.at_a_time {
            used.at_a_time(count);
        }
        used
    }

    /// The same settings with a default folder.
    #[must_use]
    pub fn or_home(mut self, home: impl FnOnce() -> PathBuf) -> Self {
        self.home.get_or_insert_with(home);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_reaches_helm() {
        let said = Helming {
            program: Some("/opt/helm".into()),
            ask_every: Some(Duration::from_mins(1)),
            at_a_time: Some(3),
            ..Helming::default()
        };
        let used = said.or_home(|| "/data/helm".into()).used();
        assert_eq!(used.program.program, PathBuf::from("/opt/helm"));
        assert_eq!(used.program.home, PathBuf::from("/data/helm"));
        assert_eq!(used.releases.ask_every, Duration::from_mins(1));
        assert_eq!((used.releases.at_a_time, used.program.operations), (3, 15));
        let used = Helming::default().used();
        assert_eq!(used.program.program, PathBuf::from("helm"));
        assert!(used.program.operations > used.releases.at_a_time);
    }
}
