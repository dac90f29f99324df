//! Names of objects that programs make up.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

/// The characters of generated suffixes: no vowels and no look-alikes, so that no words appear.
pub const SUFFIX_ALPHABET: &str = "bcdfghjklmnpqrstvwxz2456789";

/// How many characters a generated suffix has.
pub const SUFFIX_LENGTH: usize = 5;

/// The longest generated name.
pub const MAX_NAME_LENGTH: usize = 63;

/// The longest value of a label.
pub const MAX_LABEL_LENGTH: usize = 63;

/// Makes random suffixes for names.
pub trait NameSource: Send + Sync + Debug {
    /// A suffix of `length` characters of [`SUFFIX_ALPHABET`].
    fn suffix(&self, length: usize) -> String;

    /// `base` and a random suffix; `base` is cut so that the whole fits [`MAX_NAME_LENGTH`].
    fn name(&self, base: &str) -> String {
        generate_name(base, &self.suffix(SUFFIX_LENGTH))
    }
}

fn random_suffix(random: &mut (impl Rng + ?Sized), length: usize) -> String {
    let alphabet = SUFFIX_ALPHABET.as_bytes();
    (0..length)
        .map(|_| char::from(alphabet[random.random_range(0..alphabet.len())]))
        .collect()
}

/// Unpredictable names.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

impl NameSource for SystemNames {
    fn suffix(&self, length: usize) -> String {
        random_suffix(&mut rand::rng(), length)
    }
}

/// Names that follow from a seed; for tests, and for pure code that was handed a seed.
#[derive(Debug)]
pub struct SeededNames(Mutex<SmallRng>);

impl SeededNames {
    /// A source whose names follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(SmallRng::seed_from_u64(seed)))
    }
}

impl Default for SeededNames {
    fn default() -> Self {
        Self::new(0)
    }
}

impl NameSource for SeededNames {
    fn suffix(&self, length: usize) -> String {
        random_suffix(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), length)
    }
}

/// `base` followed by `suffix`; `base` is cut so that the whole fits [`MAX_NAME_LENGTH`].
pub fn generate_name(base: &str, suffix: &str) -> String {
    format!("{}{suffix}", cut(base, MAX_NAME_LENGTH.saturating_sub(suffix.len())))
}

/// `name`, cut to `length` bytes; what is cut off is replaced by a hash of the whole, so that different names stay different.
pub fn truncate_name(name: &str, length: usize) -> String {
    if name.len() <= length {
        return name.to_owned();
    }
    let hash = short_hash(name);
    format!(
        "{}-{hash}",
        cut(name, length.saturating_sub(hash.len() + 1)).trim_end_matches(['-', '.'])
    )
}

/// `value` if it fits a label, otherwise a hash of it that does (the form that Cluster API writes, so that both find
/// each other's objects by label).
pub fn label_or_hash(value: &str) -> String {
    if value.len() <= MAX_LABEL_LENGTH {
        value.to_owned()
    } else {
        format!("hash_{}_z", base64_url(fnv1a_32(value)))
    }
}

/// Eight characters that depend on all of `text`, of [`SUFFIX_ALPHABET`].
pub fn short_hash(text: &str) -> String {
    let alphabet = SUFFIX_ALPHABET.as_bytes();
    let mut rest = fnv1a_64(text);
    (0..8)
        .map(|_| {
            let index = usize::try_from(rest % alphabet.len() as u64).unwrap_or(0);
            rest /= alphabet.len() as u64;
            char::from(alphabet[index])
        })
        .collect()
}

fn cut(text: &str, length: usize) -> &str {
    let mut end = length.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn fnv1a_64(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn fnv1a_32(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Four bytes as unpadded URL-safe base64.
fn base64_url(bytes: u32) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = u64::from(bytes) << 4;
    (0..6)
        .rev()
        .map(|at| char::from(ALPHABET[usize::try_from((bits >> (6 * at)) & 63).unwrap_or(0)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_fit_and_keep_their_suffix() {
        let names = SeededNames::new(7);
        let long = "x".repeat(80);
        let name = names.name(&long);
        assert_eq!(name.len(), MAX_NAME_LENGTH);
        let short = names.name("md-0-");
        assert_eq!(short.len(), "md-0-".len() + SUFFIX_LENGTH);
        assert!(
            short
                .trim_start_matches("md-0-")
                .chars()
                .all(|c| SUFFIX_ALPHABET.contains(c)),
            "{short}"
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_names() {
        let first = SeededNames::new(1);
        let second = SeededNames::new(1);
        assert_eq!(first.suffix(5), second.suffix(5));
        assert_ne!(first.suffix(5), first.suffix(5));
        assert_ne!(SystemNames.suffix(12), SystemNames.suffix(12));
    }

    #[test]
    fn long_names_stay_different_when_cut() {
        let (a, b) = (format!("{}a", "n".repeat(70)), format!("{}b", "n".repeat(70)));
        let (short_a, short_b) = (truncate_name(&a, 63), truncate_name(&b, 63));
        assert_eq!((short_a.len(), short_b.len()), (63, 63));
        assert_ne!(short_a, short_b);
        assert_eq!(truncate_name("short", 63), "short");
    }

    #[test]
    fn long_label_values_become_hashes() {
        assert_eq!(label_or_hash("short"), "short");
        // FNV-1a in 32 bits, big endian, in URL-safe base64 (computed with Python).
        assert_eq!(label_or_hash(&"a".repeat(64)), "hash_2W8PhQ_z");
        assert_eq!(fnv1a_32("foobar"), 0xbf9c_f968);
        assert_eq!(base64_url(0xbf9c_f968), "v5z5aA");
    }
}
