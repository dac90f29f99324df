//! Texts of others in our messages.

use std::borrow::Cow;

/// A text, of which at most this many bytes are kept; three points then say so. For what others choose and a message quotes.
pub fn beginning(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}...", &text[..text.floor_char_boundary(most)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        assert_eq!(beginning("abc", 3), "abc");
        assert_eq!(beginning("abcd", 3), "abc...");
        assert_eq!(beginning("a\u{fc}b", 2), "a...");
        assert_eq!(beginning("", 0), "");
    }
}
