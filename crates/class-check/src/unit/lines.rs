//! Differences of texts, line by line.

/// Texts with more lines are shown as a whole.
const MOST_LINES: usize = 500;
/// The lines around a difference.
const AROUND: usize = 2;

/// What has to be changed in one text to get another: lines with `-`, `+` or a blank before them, those that are equal only around others.
pub(super) fn difference(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    if before.len() > MOST_LINES || after.len() > MOST_LINES {
        let removed = before.iter().map(|line| format!("-{line}"));
        return removed.chain(after.iter().map(|line| format!("+{line}"))).collect();
    }
    let marked = marked(&before, &after);
    let near = |index: usize| {
        let from = index.saturating_sub(AROUND);
        let to = (index + AROUND + 1).min(marked.len());
        marked[from..to].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut out = Vec::new();
    let mut is_left_out = false;
    for (index, (mark, line)) in marked.iter().enumerate() {
        if near(index) {
            out.push(format!("{mark}{line}"));
        } else if !is_left_out {
            out.push(" ...".to_owned());
        }
        is_left_out = !near(index);
    }
    out
}

/// All lines of both texts with their marks, by the longest common subsequence.
fn marked<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<(char, &'a str)> {
    let width = after.len() + 1;
    let mut common = vec![0_usize; (before.len() + 1) * width];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            common[i * width + j] = if before[i] == after[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < before.len() || j < after.len() {
        if i < before.len() && j < after.len() && before[i] == after[j] {
            out.push((' ', before[i]));
            (i, j) = (i + 1, j + 1);
        } else if j >= after.len() || (i < before.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]) {
            out.push(('-', before[i]));
            i += 1;
        } else {
            out.push(('+', after[j]));
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_shown_with_those_around_them() {
        let check = |before: &str, after: &str, expect: &[&str]| assert_eq!(difference(before, after), expect);
        check("a\nb", "a\nb", &[" ..."]);
        check("a\nb\nc", "a\nx\nc", &[" a", "-b", "+x", " c"]);
        check("1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5\n6\n7", &[" ...", " 5", " 6", "+7"]);
        check("", "a", &["+a"]);
        check("a", "", &["-a"]);
    }
}
