//! Kubernetes quantities.

/// The value of a quantity (`500m`, `2Gi`, `1e3`); none when the text is not a quantity.
pub fn parse_quantity(text: &str) -> Option<f64> {
    let exponent = |suffix: &str| {
        suffix
            .strip_prefix(['e', 'E'])
            .and_then(|digits| digits.parse::<i32>().ok())
    };
    let split = text
        .char_indices()
        .find(|(_, c)| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .map_or(text.len(), |(at, _)| at);
    let (number, suffix) = text.split_at(split);
    if !number.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-')) {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    let scale = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0_f64.powi(4),
        "Pi" => 1024.0_f64.powi(5),
        "Ei" => 1024.0_f64.powi(6),
        other => 10_f64.powi(exponent(other)?),
    };
    Some(number * scale)
}

#[cfg(test)]
mod tests {
    use super::parse_quantity;

    #[test]
    fn suffixes_scale() {
        let check = |text: &str, expect: f64| {
            let value = parse_quantity(text).unwrap();
            assert!((value - expect).abs() <= expect.abs() * 1e-12, "{text}: {value}");
        };
        check("2", 2.0);
        check("500m", 0.5);
        check("2Gi", 2_147_483_648.0);
        check("1e3", 1000.0);
        check("-1.5k", -1500.0);
        check("1E", 1e18);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "x", "1X", "1 Gi", "Gi", "--1"] {
            assert_eq!(parse_quantity(text), None, "{text}");
        }
    }
}
