//! Errors of commands.

use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

use windlass_controller_runtime::Panicked;
use windlass_demo::DemoError;
use windlass_manager::ManagerError;
use windlass_preview::PreviewError;

use crate::signals;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The management cluster could not start.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// Another failure.
    #[error("{what}")]
    Failed {
        what: String,
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
        hint: Option<String>,
    },
    /// A background task panicked: a defect of this program.
    #[error("the controllers had to stop")]
    Panicked(#[from] Panicked),
    /// The demo did not finish.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// There is no plan.
    #[error(transparent)]
    Preview(#[from] PreviewError),
    /// The arguments are invalid.
    #[error("{0}")]
    Usage(String),
    /// Files that a command was given cannot be read.
    #[error("{what}")]
    Input {
        what: String,
        #[source]
        source: Option<std::io::Error>,
    },
    /// The output says what is wrong.
    #[error("the output says what is wrong")]
    Reported,
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

    /// A failure whose text needs no cause.
    pub(crate) fn plain(what: impl Into<String>, hint: Option<String>) -> Self {
        Self::Failed {
            what: what.into(),
            source: None,
            hint,
        }
    }

    /// The remedy for the user.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Manager(error) => error.hint(),
            Self::Demo(error) => error.hint(),
            Self::Preview(error) => error.hint(),
            Self::Failed { hint, .. } => hint.clone(),
            Self::Usage(_) => Some("see `windlass help`".to_owned()),
            Self::Panicked(_) | Self::Output(_) | Self::Input { .. } | Self::Reported => None,
        }
    }

    /// More lines that explain the error.
    pub(crate) fn lines(&self) -> &[String] {
        match self {
            Self::Demo(error) => error.lines(),
            _ => &[],
        }
    }

    /// 1 for failures, 2 for wrong usage and for files that cannot be read, 130 for an interruption, as shells have it.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_)
            | Self::Input { .. }
            | Self::Manager(ManagerError::UnknownController { .. } | ManagerError::Confined { .. }) => {
                ExitCode::from(2)
            }
            Self::Demo(DemoError::Interrupted) => ExitCode::from(signals::INTERRUPTED),
            _ => ExitCode::FAILURE,
        }
    }

    /// Whether the output of the command says all of it already.
    pub(crate) fn is_reported(&self) -> bool {
        matches!(self, Self::Reported)
    }

    /// Whether the reader of the output has closed it.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let (Self::Output(output) | Self::Demo(DemoError::Output(output))) = self else {
            return false;
        };
        output.kind() == std::io::ErrorKind::BrokenPipe
    }

    /// The error and its causes in one line.
    pub(crate) fn line(&self) -> String {
        let mut line = self.to_string();
        let mut next = self.source();
        while let Some(cause) = next {
            if let Some(words) = refusal(cause) {
                let _ = write!(line, ": {words}");
                break;
            }
            let text = cause.to_string();
            // Parsers draw a position below their message; that needs several lines.
            let text = text.split("\n -->").next().unwrap_or_default();
            // The type name of a library does not help the user.
            let text = text.strip_prefix("ServiceError: ").unwrap_or(text);
            // Some libraries repeat their cause in their own text.
            if !line.ends_with(text) {
                let _ = write!(line, ": {text}");
            }
            next = cause.source();
        }
        line.replace('\n', " ")
    }
}

/// The message of a refusal by a server, without the whole response that the library appends.
fn refusal<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a str> {
    let boxed = || cause.downcast_ref::<Box<kube::Error>>().map(AsRef::as_ref);
    match cause.downcast_ref::<kube::Error>().or_else(boxed)? {
        kube::Error::Api(status) if !status.message.is_empty() => Some(&status.message),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn causes_are_shown_once_and_in_one_line() {
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
    fn only_the_message_of_a_refusal_is_shown() {
        let refused = || kube::Error::Api(Box::new(Status::failure("no room for a", "Internal")));
        assert_eq!(
            CliError::failed("cannot save", refused()).line(),
            "cannot save: no room for a"
        );
        let source = Box::new(refused());
        let url = "https://x".to_owned();
        let line = CliError::from(ManagerError::Connect { url, source }).line();
        assert!(line.ends_with(": no room for a"), "{line}");
    }

    #[test]
    fn exit_codes_tell_failures_from_wrong_usage() {
        let code = |error: CliError| format!("{:?}", error.exit_code());
        assert_eq!(
            code(CliError::Usage("x".to_owned())),
            format!("{:?}", ExitCode::from(2))
        );
        assert_eq!(code(CliError::plain("x", None)), format!("{:?}", ExitCode::FAILURE));
        assert_eq!(code(CliError::Reported), format!("{:?}", ExitCode::FAILURE));
        let (what, source) = ("x".to_owned(), None);
        assert_eq!(
            code(CliError::Input { what, source }),
            format!("{:?}", ExitCode::from(2))
        );
    }
}
