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
    /// Objects of files are not what a server would store.
    #[error("{}", invalid(*number, shown))]
    Invalid {
        /// The number of problems.
        number: usize,
        /// The first ones with their places, and what to do about each; may be empty.
        shown: Vec<(String, String)>,
    },
    /// The change names something that is not there, or that cannot be changed so.
    #[error("{0}")]
    Change(String),
    /// The copy of the management cluster in memory does not work: a defect of this program.
    #[error("the copy of the management cluster failed: {0}")]
    Copy(String),
}

/// A line per problem, and one below it for what to do.
fn invalid(number: usize, shown: &[(String, String)]) -> String {
    let mut lines = vec!["a server would not store what is in the files:".to_owned()];
    for (problem, hint) in shown {
        lines.push(problem.clone());
        if !hint.is_empty() {
            lines.push(format!("    {hint}"));
        }
    }
    if number > shown.len() {
        lines.push(format!("and {} more", number - shown.len()));
    }
    lines.join("\n")
}

impl PreviewError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { .. } => Some(
                "the kinds of Cluster API and of its providers are listed in all namespaces, and for adopt the Secrets and ConfigMaps in those \
                 of Clusters: check the context, and the rights to get and list, and for plan to dry-run patch"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
