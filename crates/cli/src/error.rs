//! How a command fails.

use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

use windlass_manager::ManagerError;

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The management cluster could not start.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// Something else failed.
    #[error("{what}")]
    Failed {
        what: String,
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
        hint: Option<String>,
    },
    /// A failure with lines that explain it.
    #[error("{what}")]
    Explained {
        what: String,
        lines: Vec<String>,
        hint: Option<String>,
    },
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// Output could not be written.
    #[error("cannot write the output")]
    Output(#[from] std::io::Error),
}

impl CliError {
    /// A failure with a cause.
    pub(crate) fn failed(what: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed {
            what: what.into(),
            source: Some(source.into()),
            hint: None,
        }
    }

    /// A failure that says everything itself.
    pub(crate) fn plain(what: impl Into<String>, hint: Option<String>) -> Self {
        Self::Failed {
            what: what.into(),
            source: None,
            hint,
        }
    }

    /// What the user can do.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Manager(error) => error.hint(),
            Self::Failed { hint, .. } | Self::Explained { hint, .. } => hint.clone(),
            Self::Usage(_) => Some("see `windlass help`".to_owned()),
            Self::Output(_) => None,
        }
    }

    /// What explains it, line by line.
    pub(crate) fn lines(&self) -> &[String] {
        match self {
            Self::Explained { lines, .. } => lines,
            _ => &[],
        }
    }

    /// 1 for failures, 2 for wrong usage.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) | Self::Manager(ManagerError::UnknownController { .. }) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }

    /// Whether nobody reads our output any more.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// The error and its causes in one line.
    pub(crate) fn line(&self) -> String {
        let mut line = self.to_string();
        let mut next = self.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            // Parsers draw what they mean below; that needs lines.
            let text = text.split("\n -->").next().unwrap_or_default();
            // Some libraries repeat their cause in their own text.
            if !line.ends_with(text) {
                let _ = write!(line, ": {text}");
            }
            next = cause.source();
        }
        line.replace('\n', " ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once_and_in_one_line() {
        let cause = std::io::Error::other("disk\nfull");
        assert_eq!(CliError::failed("cannot save", cause).line(), "cannot save: disk full");
        let drawn = std::io::Error::other("line 1: bad\n --> <input>:1\n  | ^ here");
        assert_eq!(
            CliError::failed("cannot read", drawn).line(),
            "cannot read: line 1: bad"
        );
        let inner = ManagerError::File {
            verb: "write",
            path: "/x/y".into(),
            source: std::io::Error::other("denied"),
        };
        assert_eq!(CliError::from(inner).line(), "cannot write /x/y: denied");
    }

    #[test]
    fn exit_codes_tell_failures_from_wrong_usage() {
        let code = |error: CliError| format!("{:?}", error.exit_code());
        assert_eq!(
            code(CliError::Usage("x".to_owned())),
            format!("{:?}", ExitCode::from(2))
        );
        assert_eq!(code(CliError::plain("x", None)), format!("{:?}", ExitCode::FAILURE));
    }
}
