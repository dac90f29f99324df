//! Why a preview cannot be made.

/// Errors of previews.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The management cluster did not answer, or refused a read.
    #[error("cannot read {what} from the management cluster: {why}")]
    Unreadable {
        /// What was read.
        what: String,
        /// The server's words.
        why: String,
    },
    /// A file has something else than objects.
    #[error("{place}: {why}")]
    Document {
        /// The file, and the place in it.
        place: String,
        /// Why.
        why: String,
    },
    /// The change names something that is not there, or that cannot be changed so.
    #[error("{0}")]
    Change(String),
    /// The copy of the management cluster in memory does not work: a defect of this program.
    #[error("the copy of the management cluster failed: {0}")]
    Copy(String),
}

impl PreviewError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { .. } => Some(
                "a plan lists the kinds of Cluster API and of its providers in all namespaces: check the context, and the rights to \
                 get, list and dry-run patch"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
