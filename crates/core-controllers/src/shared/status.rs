//! Words of status conditions.

/// `X`, `X and Y`.
pub(crate) fn and(words: &[String]) -> String {
    words.join(" and ")
}
