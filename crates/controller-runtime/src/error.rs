//! Errors of reads, writes and reconciles, and how to handle them.

use std::fmt;
use std::time::Duration;

use crate::object::{Gvk, ObjectKey};

/// The properties of an error that callers decide by, without reading its text.
pub trait Triage {
    /// Whether a retry can succeed without a change by a user.
    fn retry(&self) -> bool;
    /// A word from a closed set, fit for a metric label.
    fn reason(&self) -> &'static str;
}

/// The text of an error with its causes, each once. Client errors often say only "client error" and leave the reason to their
/// cause.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !out.contains(&text) {
            out.push_str(": ");
            out.push_str(&text);
        }
        next = cause.source();
    }
    out
}

/// Why a cache is not available.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// No CustomResourceDefinition serves the kind.
    #[error("no CustomResourceDefinition serves kind {kind} in group {group:?}; install the provider that defines it")]
    UnknownKind {
        /// API group asked for.
        group: String,
        /// Kind asked for.
        kind: String,
    },
    /// The kind's definition has no contract label.
    #[error(
        "CustomResourceDefinition {crd} has none of the contract labels cluster.x-k8s.io/v1beta2 and cluster.x-k8s.io/v1beta1 with a version that is served; use a provider that implements one of these contracts"
    )]
    NoContract {
        /// Name of the definition.
        crd: String,
    },
    /// The informer did not sync in time.
    #[error("informer not synced: {kind}")]
    NotSynced {
        /// Kind of the informer.
        kind: String,
    },
}

impl Triage for RuntimeError {
    fn retry(&self) -> bool {
        true
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::UnknownKind { .. } => "UnknownKind",
            Self::NoContract { .. } => "NoContract",
            Self::NotSynced { .. } => "NotSynced",
        }
    }
}

/// The category of a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Another client changed or owns the object.
    Conflict,
    /// The object or its kind does not exist.
    NotFound,
    /// An object of this name exists.
    AlreadyExists,
    /// The content is not valid.
    Invalid,
    /// The server refuses the request for another reason than its content: admission denies it, for example.
    Refused,
    /// This process lacks the permission.
    Forbidden,
    /// The server is too busy.
    TooManyRequests,
    /// The server failed.
    Server,
    /// No answer: the write may or may not have happened.
    Transport,
    /// The object could not be encoded, or the answer not decoded.
    Encoding,
}

impl ErrorKind {
    /// The word of errors of this category, as [`Triage::reason`] gives it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Conflict => "Conflict",
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::Invalid => "Invalid",
            Self::Refused => "Refused",
            Self::Forbidden => "Forbidden",
            Self::TooManyRequests => "TooManyRequests",
            Self::Server => "ServerError",
            Self::Transport => "Transport",
            Self::Encoding => "Encoding",
        }
    }

    /// True if the answer does not show whether the write happened. A server may fail after it has stored an object.
    pub fn is_ambiguous(self) -> bool {
        matches!(self, Self::Transport | Self::Server)
    }
}

/// A write that did not succeed.
#[derive(Debug, Clone)]
pub struct WriteError {
    pub(crate) kind: ErrorKind,
    pub(crate) verb: &'static str,
    pub(crate) what: String,
    pub(crate) message: String,
    /// Whether the connection broke, so that the same request may succeed at once.
    pub(crate) is_broken: bool,
}

impl WriteError {
    pub(crate) fn new(
        kind: ErrorKind,
        verb: &'static str,
        gvk: &Gvk,
        key: &ObjectKey,
        message: impl Into<String>,
    ) -> Self {
        let what = if key.namespace.is_empty() {
            format!("{} {}", gvk.kind, key.name)
        } else {
            format!("{} {}/{}", gvk.kind, key.namespace, key.name)
        };
        Self {
            kind,
            verb,
            what,
            message: message.into(),
            is_broken: false,
        }
    }

    /// The category of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message of the server or the transport.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// True if the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.kind == ErrorKind::NotFound
    }

    /// True if another client changed the object.
    pub fn is_conflict(&self) -> bool {
        self.kind == ErrorKind::Conflict
    }

    /// True if an object of this name exists.
    pub fn is_already_exists(&self) -> bool {
        self.kind == ErrorKind::AlreadyExists
    }

    /// True if the content is not valid.
    pub fn is_invalid(&self) -> bool {
        self.kind == ErrorKind::Invalid
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to {} {}: {}", self.verb, self.what, self.message)
    }
}

impl std::error::Error for WriteError {}

impl Triage for WriteError {
    fn retry(&self) -> bool {
        !matches!(
            self.kind,
            ErrorKind::Invalid | ErrorKind::Refused | ErrorKind::Forbidden | ErrorKind::Encoding
        )
    }

    fn reason(&self) -> &'static str {
        self.kind.reason()
    }
}

/// Why a reconcile failed. It is logged, counted by its reason, and retried with backoff.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ReconcileError {
    reason: &'static str,
    message: String,
    most: Option<Duration>,
}

impl ReconcileError {
    /// `reason` is a word from a small closed set (a metric label); `message` a sentence for people.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            most: None,
        }
    }

    /// The same error with a limit for its backoff.
    #[must_use]
    pub fn within(mut self, most: Duration) -> Self {
        self.most = Some(self.most.map_or(most, |sooner| sooner.min(most)));
        self
    }

    /// The limit of the backoff.
    pub(crate) fn most(&self) -> Option<Duration> {
        self.most
    }

    /// Joins several failures into one.
    pub fn join(errors: &[Self]) -> Option<Self> {
        let first = errors.first()?;
        let message = errors.iter().map(|e| e.message.as_str()).collect::<Vec<_>>().join("; ");
        Some(Self {
            reason: first.reason,
            message,
            most: errors.iter().filter_map(|e| e.most).min(),
        })
    }
}

impl Triage for ReconcileError {
    fn retry(&self) -> bool {
        true
    }

    fn reason(&self) -> &'static str {
        self.reason
    }
}

impl From<WriteError> for ReconcileError {
    fn from(error: WriteError) -> Self {
        Self::new(error.reason(), error.to_string())
    }
}

impl From<&WriteError> for ReconcileError {
    fn from(error: &WriteError) -> Self {
        Self::new(error.reason(), error.to_string())
    }
}

impl From<RuntimeError> for ReconcileError {
    fn from(error: RuntimeError) -> Self {
        Self::new(error.reason(), error.to_string())
    }
}
