//! Units of systemd: names and the syntax of their files.

use std::fmt::Write as _;

/// systemd cuts longer lines.
const LONGEST_LINE: usize = 2048;

/// The name of the unit that mounts a path: `/var/lib/etcd` is `var-lib-etcd.mount`. systemd refuses a mount unit with another name.
pub(super) fn mount_name(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let mut name = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            name.push('-');
        }
        for (at, byte) in part.bytes().enumerate() {
            let is_first = index == 0 && at == 0;
            if byte.is_ascii_alphanumeric() || b":_".contains(&byte) || byte == b'.' && !is_first {
                name.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(name, "\\x{byte:02x}");
            }
        }
    }
    if name.is_empty() {
        name.push('-');
    }
    format!("{name}.mount")
}

/// The sections that options of a unit file are in, each time one is. The error says what is wrong with the file.
pub(super) fn sections(text: &str) -> Result<Vec<&str>, &'static str> {
    if text.split('\n').any(|line| line.len() >= LONGEST_LINE) {
        return Err("a line of the unit is longer than 2048 bytes");
    }
    let mut found = Vec::new();
    let mut section = None;
    let mut rest = text;
    loop {
        // Before the first section, everything is skipped.
        rest = match section {
            Some(_) => rest.trim_start(),
            None => rest.trim_start_matches(|c| !matches!(c, '[' | '#' | ';')),
        };
        let Some(first) = rest.chars().next() else {
            return Ok(found);
        };
        match (first, section) {
            ('[', _) => {
                let Some((name, after)) = rest[1..].split_once(']') else {
                    return Err("a section of the unit has no closing bracket");
                };
                let (garbage, after) = line(after);
                if !garbage.trim().is_empty() {
                    return Err("there is text after the name of a section of the unit");
                }
                section = Some(name);
                rest = after;
            }
            ('#' | ';', _) => loop {
                let (comment, after) = line(rest);
                rest = after;
                let is_continued = comment.strip_suffix(' ').unwrap_or(comment).ends_with('\\');
                if !is_continued || rest.is_empty() {
                    break;
                }
            },
            (_, Some(name)) => {
                let (content, _) = line(rest);
                let Some((key, _)) = content.split_once('=') else {
                    return Err("a line of the unit has no = (NAME=VALUE is expected)");
                };
                if key.contains('\r') {
                    return Err("a line of the unit has no = (NAME=VALUE is expected)");
                }
                found.push(name);
                let (mut value, mut after) = line(&rest[key.len() + 1..]);
                while !value.trim().is_empty() && value.ends_with('\\') && !after.is_empty() {
                    (value, after) = line(after);
                }
                rest = after;
            }
            (_, None) => return Ok(found),
        }
    }
}

/// The first line and what follows it.
fn line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_units_are_named_after_escaped_paths() {
        for (path, name) in [
            ("/var/lib/etcd", "var-lib-etcd.mount"),
            ("/var//lib/my-data/", "var-lib-my\\x2ddata.mount"),
            ("/.snapshots", "\\x2esnapshots.mount"),
            ("/a/.b c", "a-.b\\x20c.mount"),
            ("/", "-.mount"),
        ] {
            assert_eq!(mount_name(path), name);
        }
    }

    #[test]
    fn unit_files_are_read_as_ignition_reads_them() {
        assert_eq!(sections(""), Ok(vec![]));
        assert_eq!(sections("text without a section"), Ok(vec![]));
        assert_eq!(
            sections("# c \\\n[no]\n[A]\nx=1\ny=a \\\n  [b]\n; c\n[B]\n\nz="),
            Ok(vec!["A", "A", "B"])
        );
        for bad in ["[A", "[A] x", "[A]\nx", "[A]\nx\ny=1"] {
            assert!(sections(bad).is_err(), "{bad}");
        }
        assert!(sections(&format!("[A]\nx={}", "a".repeat(2048))).is_err());
    }
}
