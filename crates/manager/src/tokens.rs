//! Bearer tokens and their users, from a file with a line for each: `token,user,uid,"group1,group2"`.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use windlass_apiserver::UserInfo;

use crate::ManagerError;
use crate::files::read;

/// Reads a file of tokens.
pub(crate) fn load(path: &Path) -> Result<BTreeMap<String, UserInfo>, ManagerError> {
    let wrong = |why: String| ManagerError::Tokens {
        path: path.to_owned(),
        why,
    };
    let text = read(path)?.ok_or_else(|| wrong("there is no such file".to_owned()))?;
    warn_of_readers(path);
    parse(&text).map_err(wrong)
}

/// Warns when others than the owner may use the file: a token is all that a user needs.
fn warn_of_readers(path: &Path) {
    let Ok(metadata) = std::fs::metadata(path) else {
        return;
    };
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        tracing::warn!(
            "the tokens in {} can be read or changed by other users of this machine (mode {mode:04o}): chmod 600 keeps them to their owner",
            path.display()
        );
    }
}

/// Errors about a line never contain its text: that may be a token.
fn parse(text: &str) -> Result<BTreeMap<String, UserInfo>, String> {
    let mut tokens = BTreeMap::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = index + 1;
        let columns = columns(line).ok_or_else(|| format!("line {number} has a quotation mark that is not closed"))?;
        let (token, name, uid, groups) = match columns.as_slice() {
            [token, name, uid] => (token, name, uid, ""),
            [token, name, uid, groups] => (token, name, uid, groups.as_str()),
            other => {
                let found = other.len();
                return Err(format!(
                    "line {number} has {found} columns: expected a token, a user, a uid (may be empty) and, if any, groups in quotation marks"
                ));
            }
        };
        if token.is_empty() || name.is_empty() {
            return Err(format!("line {number} lacks the token or the user"));
        }
        let groups: Vec<&str> = groups
            .split(',')
            .map(str::trim)
            .filter(|group| !group.is_empty())
            .collect();
        let user = UserInfo {
            uid: uid.clone(),
            ..UserInfo::new(name, &groups)
        };
        if tokens.insert(token.clone(), user).is_some() {
            return Err(format!("line {number} has the token of a line before"));
        }
    }
    Ok(tokens)
}

/// The columns of a line; a quoted column may contain commas. None if a quote has no end.
pub fn columns(line: &str) -> Option<Vec<String>> {
    let mut columns = vec![String::new()];
    let mut quoted = false;
    for c in line.trim().chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => columns.push(String::new()),
            c => columns.last_mut()?.push(c),
        }
    }
    (!quoted).then(|| columns.iter().map(|column| column.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_whose_a_token_is() {
        let found = parse("sesame, terraform ,7\n\nbarley,ann,,\"dev, ops\"\nrye,bob,8,dev\n").unwrap();
        let check = |token: &str, name: &str, uid: &str, groups: &[&str]| {
            let want = UserInfo {
                uid: uid.to_owned(),
                ..UserInfo::new(name, groups)
            };
            assert_eq!(found[token], want);
        };
        assert_eq!(found.len(), 3);
        check("sesame", "terraform", "7", &[]);
        check("barley", "ann", "", &["dev", "ops"]);
        check("rye", "bob", "8", &["dev"]);
    }

    #[test]
    fn a_wrong_line_is_named_without_what_is_in_it() {
        let check = |text: &str, part: &str| {
            let why = parse(text).unwrap_err();
            assert!(why.contains(part), "{why}");
            assert!(!why.contains("sesame"), "{why}");
        };
        check("sesame,ann", "line 1 has 2 columns");
        check("a,b,c\nsesame,ann,1,dev,ops", "line 2 has 5 columns");
        check("sesame,,1", "line 1 lacks");
        check(",sesame,1", "line 1 lacks");
        check("sesame,ann,1,\"dev", "line 1 has a quotation mark");
        check("sesame,ann,1\nsesame,bob,2", "line 2 has the token of a line before");
    }

    #[test]
    fn a_missing_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let error = load(&folder.path().join("tokens")).unwrap_err();
        assert!(error.to_string().contains("tokens"), "{error}");
    }
}
