//! Texts of others in our messages.

use std::borrow::Cow;

/// A text, of which at most this many bytes are kept; three points then say so. For what others choose and a message quotes.
pub fn beginning(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}...", &text[..text.floor_char_boundary(most)]))
}

/// The number of characters to change, add or remove to make one text of another.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
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

    #[test]
    fn the_distance_of_texts_counts_changes() {
        let check = |a: &str, b: &str, expect: usize| assert_eq!((distance(a, b), distance(b, a)), (expect, expect));
        check("", "", 0);
        check("kind", "kind", 0);
        check("kinds", "kind", 1);
        check("verison", "version", 2);
        check("", "äb", 2);
    }
}
