//! Values that Ignition 2.3 accepts. Each check returns the problem.

/// File systems that Ignition makes, with the longest label of each in bytes.
const FORMATS: [(&str, usize); 5] = [("ext4", 16), ("btrfs", 256), ("xfs", 12), ("swap", 15), ("vfat", 11)];

const MEBIBYTE: u128 = 1 << 20;
const DIMENSION: &str = "a size with a unit is expected, such as 512MiB or 10GiB";

/// A path of a machine.
pub(super) fn path(path: &str) -> Option<&'static str> {
    (!path.starts_with('/')).then_some("an absolute path is expected")
}

/// Permissions.
pub(super) fn mode(mode: i64) -> Option<&'static str> {
    (!(0..=0o7777).contains(&mode)).then_some("a mode between 0 and 07777 is expected")
}

/// The type of a file system.
pub(super) fn format(format: &str) -> Option<&'static str> {
    let is_known = FORMATS.iter().any(|(known, _)| *known == format);
    (!is_known).then_some("ext4, btrfs, xfs, swap or vfat is expected")
}

/// The label of a file system of a type.
pub(super) fn label(format: &str, label: &str) -> Option<String> {
    let (_, most) = FORMATS.iter().find(|(known, _)| *known == format)?;
    (label.len() > *most).then(|| format!("the label of a file system of type {format} has at most {most} bytes"))
}

/// The identity of a partition, or of its type.
pub(super) fn guid(guid: &str) -> Option<&'static str> {
    let mut parts = guid.split('-');
    let lengths = [8, 4, 4, 4, 12];
    let is_good = lengths.iter().all(|length| {
        let part = parts.next().unwrap_or_default();
        part.len() == *length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    let is_good = guid.is_empty() || is_good && parts.next().is_none();
    (!is_good).then_some("a GUID such as 01234567-89AB-CDEF-EDCB-A98765432101 is expected")
}

/// The MiB of a size such as `1GiB512MiB` or `1.5GB`; `KB` and `KiB` are both 1024 bytes.
pub(super) fn mebibytes(text: &str) -> Result<u64, &'static str> {
    let (is_negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(DIMENSION);
    }
    let mut bytes: u128 = 0;
    let mut is_long = None;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(DIMENSION)?;
        let (number, after) = rest.split_at(end);
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        bytes = bytes.saturating_add(scaled(number, factor(unit, &mut is_long)?)?);
        rest = after;
    }
    if is_negative && bytes > 0 {
        return Err("a size cannot be negative");
    }
    if bytes > u128::from(u64::MAX >> 1) {
        return Err("the size is too large");
    }
    if !bytes.is_multiple_of(MEBIBYTE) {
        return Err("a size is a whole number of MiB");
    }
    u64::try_from(bytes / MEBIBYTE).map_err(|_| DIMENSION)
}

/// The bytes of a unit. `MiB` and `MB` cannot be in the same size; `B` fits to both.
fn factor(unit: &str, is_long: &mut Option<bool>) -> Result<u128, &'static str> {
    if unit == "B" {
        return Ok(1);
    }
    let (prefix, long) = match (unit.strip_suffix("iB"), unit.strip_suffix('B')) {
        (Some(prefix), _) => (prefix, true),
        (None, Some(prefix)) => (prefix, false),
        (None, None) => return Err(DIMENSION),
    };
    if is_long.replace(long).is_some_and(|before| before != long) {
        return Err(DIMENSION);
    }
    let power = ["K", "M", "G", "T", "P", "E"].iter().position(|known| *known == prefix);
    let power = power.and_then(|power| u32::try_from(power + 1).ok()).ok_or(DIMENSION)?;
    Ok(1024_u128.pow(power))
}

/// A decimal number times a factor, rounded down.
fn scaled(number: &str, factor: u128) -> Result<u128, &'static str> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || number.len() > 30 {
        return Err(DIMENSION);
    }
    let parse = |digits: &str| {
        if digits.is_empty() {
            Ok(0)
        } else {
            digits.parse::<u128>().map_err(|_| DIMENSION)
        }
    };
    let whole = parse(whole)?.checked_mul(factor).ok_or("the size is too large")?;
    // More digits would be less than a byte.
    let fraction = &fraction[..fraction.len().min(18)];
    let scale = 10_u128.pow(u32::try_from(fraction.len()).unwrap_or_default());
    Ok(whole.saturating_add(parse(fraction)? * factor / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_mebibytes() {
        for (text, expect) in [
            ("0", 0),
            ("512MiB", 512),
            ("1GiB512MiB", 1536),
            ("1.5GB", 1536),
            ("1024KB", 1),
            ("+2MB", 2),
            (".5GiB", 512),
            ("1048576B", 1),
            ("0MiB", 0),
            ("1MB1048576B", 2),
        ] {
            assert_eq!(mebibytes(text), Ok(expect), "{text}");
        }
        for text in [
            "",
            "-",
            "1",
            "1kB",
            "1MiB1MB",
            "1B",
            "-1MiB",
            "1.2.3MiB",
            ".MiB",
            "MiB",
            "16EiB",
            "x",
            "1é",
            "99999999999999999999999999999999MiB",
        ] {
            assert!(mebibytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn labels_and_guids_have_limits() {
        assert_eq!(label("xfs", "abcdefghijkl"), None);
        assert!(label("xfs", "abcdefghijklm").is_some_and(|why| why.contains("12 bytes")));
        assert_eq!(guid(""), None);
        assert_eq!(guid("01234567-89AB-cdef-EDCB-A98765432101"), None);
        for bad in [
            "x",
            "01234567-89AB-CDEF-EDCB-A9876543210",
            "01234567-89AB-CDEF-EDCB-A98765432101-0",
        ] {
            assert!(guid(bad).is_some(), "{bad}");
        }
        assert!(mode(-1).is_some() && mode(0o10000).is_some() && mode(0o644).is_none());
        assert!(path("a").is_some() && format("ntfs").is_some());
    }
}
