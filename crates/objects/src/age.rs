//! Durations in the short form of kubectl.

/// A duration in the short form that kubectl uses.
pub fn human(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let s = seconds.max(0);
    let two = |big: i64, big_unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{big}{big_unit}")
        } else {
            format!("{big}{big_unit}{small}{small_unit}")
        }
    };
    if s < 2 * MINUTE {
        format!("{s}s")
    } else if s < 10 * MINUTE {
        two(s / MINUTE, "m", s % MINUTE, "s")
    } else if s < 3 * HOUR {
        format!("{}m", s / MINUTE)
    } else if s < 8 * HOUR {
        two(s / HOUR, "h", s / MINUTE % 60, "m")
    } else if s < 2 * DAY {
        format!("{}h", s / HOUR)
    } else if s < 8 * DAY {
        two(s / DAY, "d", s / HOUR % 24, "h")
    } else if s < 2 * YEAR {
        format!("{}d", s / DAY)
    } else if s < 8 * YEAR {
        two(s / YEAR, "y", s / DAY % 365, "d")
    } else {
        format!("{}y", s / YEAR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        for (seconds, want) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (195, "3m15s"),
            (3600, "60m"),
            (10800, "3h"),
            (11100, "3h5m"),
            (90_000, "25h"),
            (200_000, "2d7h"),
            (864_000, "10d"),
            (-5, "<invalid>"),
        ] {
            assert_eq!(human(seconds), want);
        }
    }
}
