//! Numbers that may also be percentages.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// How a percentage of a whole becomes a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// Towards more.
    Up,
    /// Towards less.
    Down,
}

/// The number that `value` means of `total`; `None` when it is neither a number nor a percentage.
pub(crate) fn resolve(value: &IntOrString, total: i32, round: Round) -> Option<i32> {
    match value {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let product = percent * i64::from(total);
            let number = if round == Round::Up {
                (product + 99).div_euclid(100)
            } else {
                product.div_euclid(100)
            };
            i32::try_from(number).ok()
        }
    }
}

/// The value as a user wrote it.
pub(crate) fn written(value: &IntOrString) -> String {
    match value {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    }
}

/// The length of a collection as API objects count.
pub(crate) fn len_i32(len: usize) -> i32 {
    i32::try_from(len).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_as_told() {
        let percent = IntOrString::String("25%".to_owned());
        assert_eq!(resolve(&percent, 5, Round::Up), Some(2));
        assert_eq!(resolve(&percent, 5, Round::Down), Some(1));
        assert_eq!(resolve(&IntOrString::Int(3), 5, Round::Down), Some(3));
        assert_eq!(resolve(&IntOrString::String("many".to_owned()), 5, Round::Up), None);
    }
}
