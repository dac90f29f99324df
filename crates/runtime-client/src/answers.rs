//! What answers mean: pure.

use windlass_runtime_hooks::{Response, Status};

/// Why a hook has no answer. The texts end in conditions: they are the same for the same state, and they have nothing secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The handler did not answer, or not in a usable way. This may pass.
    #[error("failed to call extension handler {handler:?}: {why}")]
    Unanswered {
        /// The name of the handler.
        handler: String,
        /// What happened.
        why: String,
    },
    /// The handler answered that it has failed.
    #[error("failed to call extension handler {handler:?}: {why}")]
    Failed {
        /// The name of the handler.
        handler: String,
        /// What it answered.
        why: String,
    },
    /// It cannot be told whether the handler is for objects of the namespace.
    #[error("failed to call extension handler {handler:?}: {why}")]
    Unusable {
        /// The name of the handler.
        handler: String,
        /// What is wrong.
        why: String,
    },
    /// Several extensions serve a hook that only one may serve.
    #[error("found multiple {hook} hooks ({handlers}): only one hook is supported")]
    Several {
        /// The hook.
        hook: &'static str,
        /// The names of the handlers.
        handlers: String,
    },
}

/// How much of a text of an extension is repeated, in bytes: conditions have a limit, and a longer one would keep the whole status from being
/// written.
const LONGEST: usize = 1024;

/// The beginning of a text of an extension.
pub(crate) fn beginning(text: &str) -> &str {
    let end = (0..=LONGEST.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// The answer of a handler, unless it has failed.
pub(crate) fn checked<R: Response>(handler: &str, answer: R) -> Result<R, CallError> {
    let why = match answer.status() {
        Status::Success => return Ok(answer),
        Status::Failure => format!("got failure response with message: {}", beginning(answer.message())),
        other => format!(
            "got unknown response status {:?} with message: {}",
            beginning(other.as_str()),
            beginning(answer.message())
        ),
    };
    Err(CallError::Failed {
        handler: handler.to_owned(),
        why,
    })
}

/// One answer for all: the messages, and the shortest time after which a handler wants to be asked again.
pub(crate) fn together<R: Response>(answers: &[R]) -> R {
    let mut whole = R::success();
    let waits = answers
        .iter()
        .map(Response::retry_after_seconds)
        .filter(|wait| *wait != 0);
    // A time that has passed blocks, too.
    whole.set_retry_after_seconds(waits.map(|wait| wait.max(1)).min().unwrap_or_default());
    let messages: Vec<&str> = answers
        .iter()
        .map(|answer| beginning(answer.message()))
        .filter(|message| !message.is_empty())
        .collect();
    // There may be any number of handlers.
    whole.set(Status::Success, beginning(&messages.join(", ")).to_owned());
    whole
}

#[cfg(test)]
mod tests {
    use windlass_runtime_hooks::lifecycle::BeforeClusterDeleteResponse as Answer;

    use super::*;

    #[test]
    fn the_shortest_wait_counts_and_all_messages_are_kept() {
        let all = [
            Answer::success(),
            Answer::blocked(30, "backup runs"),
            Answer::blocked(5, ""),
            Answer::blocked(7, "quota"),
        ];
        let whole = together(&all);
        assert_eq!(
            (whole.retry_after_seconds, whole.message.as_str()),
            (5, "backup runs, quota")
        );
        assert_eq!(whole.status, Status::Success);
        let mut past = Answer::success();
        past.retry_after_seconds = -3;
        assert_eq!(
            together(&[past]).retry_after_seconds,
            1,
            "a time that has passed blocks"
        );
        let long = together(&[Answer::blocked(1, "ä".repeat(5000))]);
        assert_eq!(long.message.len(), LONGEST);
        let many = together(&vec![Answer::blocked(1, "quota"); 1000]);
        assert!(many.message.len() <= LONGEST, "the condition has a limit");
        let none = together::<Answer>(&[]);
        assert_eq!((none.retry_after_seconds, none.status), (0, Status::Success));
    }

    #[test]
    fn only_success_is_an_answer() {
        assert!(checked("a.b", Answer::success()).is_ok());
        let text = |answer: Answer| checked("a.b", answer).unwrap_err().to_string();
        let expect = "failed to call extension handler \"a.b\": got failure response with message: no";
        assert_eq!(text(Answer::failure("no")), expect);
        let mut other = Answer::success();
        other.status = Status::from("Maybe".to_owned());
        let expect = "failed to call extension handler \"a.b\": got unknown response status \"Maybe\" with message: ";
        assert_eq!(text(other), expect);
        assert!(text(Answer::default()).contains("unknown response status \"\""));
    }
}
