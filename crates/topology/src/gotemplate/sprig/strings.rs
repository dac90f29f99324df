//! Text functions.

use gtmpl_ng::{Func, FuncError, Value};
use regex::Regex;

use super::{Out, arg, count_arg, fail, int_arg, kind, list_arg, text, text_arg};

pub(super) const FUNCTIONS: &[(&str, Func)] = &[
    ("upper", |a| Ok(text_arg(a, 0, "upper")?.to_uppercase().into())),
    ("lower", |a| Ok(text_arg(a, 0, "lower")?.to_lowercase().into())),
    ("title", |a| Ok(capitalised(&text_arg(a, 0, "title")?, true).into())),
    (
        "untitle",
        |a| Ok(capitalised(&text_arg(a, 0, "untitle")?, false).into()),
    ),
    ("trim", |a| Ok(text_arg(a, 0, "trim")?.trim().into())),
    ("trimAll", |a| {
        with_set(a, "trimAll", |s, set| s.trim_matches(set).to_owned())
    }),
    ("trimLeft", |a| {
        with_set(a, "trimLeft", |s, set| s.trim_start_matches(set).to_owned())
    }),
    ("trimRight", |a| {
        with_set(a, "trimRight", |s, set| s.trim_end_matches(set).to_owned())
    }),
    ("trimPrefix", |a| {
        two(a, "trimPrefix", |p, s| s.strip_prefix(p).unwrap_or(s).into())
    }),
    ("trimSuffix", |a| {
        two(a, "trimSuffix", |p, s| s.strip_suffix(p).unwrap_or(s).into())
    }),
    ("hasPrefix", |a| two(a, "hasPrefix", |p, s| s.starts_with(p).into())),
    ("hasSuffix", |a| two(a, "hasSuffix", |p, s| s.ends_with(p).into())),
    ("contains", |a| two(a, "contains", |p, s| s.contains(p).into())),
    ("replace", replace),
    ("repeat", repeat),
    ("trunc", trunc),
    ("abbrev", abbrev),
    ("substr", substr),
    ("nospace", |a| {
        let kept: String = text_arg(a, 0, "nospace")?.split_whitespace().collect();
        Ok(kept.into())
    }),
    ("initials", |a| {
        let text = text_arg(a, 0, "initials")?;
        let firsts: String = text.split_whitespace().filter_map(|w| w.chars().next()).collect();
        Ok(firsts.into())
    }),
    ("quote", |a| Ok(quoted(a, |s| format!("{s:?}")).into())),
    ("squote", |a| Ok(quoted(a, |s| format!("'{s}'")).into())),
    ("cat", |a| Ok(quoted(a, str::to_owned).into())),
    ("indent", |a| {
        Ok(indented(count_arg(a, 0, "indent")?, &text_arg(a, 1, "indent")?)?.into())
    }),
    ("nindent", |a| {
        let body = indented(count_arg(a, 0, "nindent")?, &text_arg(a, 1, "nindent")?)?;
        Ok(format!("\n{body}").into())
    }),
    ("snakecase", |a| {
        Ok(words(&text_arg(a, 0, "snakecase")?).join("_").to_lowercase().into())
    }),
    ("kebabcase", |a| {
        Ok(words(&text_arg(a, 0, "kebabcase")?).join("-").to_lowercase().into())
    }),
    ("camelcase", |a| {
        let text = text_arg(a, 0, "camelcase")?;
        Ok(words(&text)
            .iter()
            .map(|w| capitalised(w, true))
            .collect::<String>()
            .into())
    }),
    ("plural", |a| {
        let chosen = usize::from(int_arg(a, 2, "plural")? != 1);
        Ok(arg(a, chosen, "plural")?.clone())
    }),
    ("toString", |a| Ok(text_arg(a, 0, "toString")?.into())),
    ("toStrings", |a| {
        let list = list_arg(a, 0, "toStrings")?;
        Ok(Value::Array(list.iter().map(|v| Value::String(text(v))).collect()))
    }),
    ("join", |a| {
        let separator = text_arg(a, 0, "join")?;
        let parts: Vec<String> = match arg(a, 1, "join")? {
            Value::Array(items) => items.iter().map(text).collect(),
            other => vec![text(other)],
        };
        Ok(parts.join(&separator).into())
    }),
    ("splitList", |a| {
        two(a, "splitList", |sep, s| {
            Value::Array(s.split(sep).map(Value::from).collect())
        })
    }),
    ("split", |a| two(a, "split", |sep, s| numbered(s.split(sep)))),
    ("splitn", |a| {
        let (sep, n, s) = (
            text_arg(a, 0, "splitn")?,
            count_arg(a, 1, "splitn")?,
            text_arg(a, 2, "splitn")?,
        );
        Ok(numbered(s.splitn(n, sep.as_str())))
    }),
    ("regexMatch", |a| {
        with_regex(a, "regexMatch", |re, a| {
            Ok(re.is_match(&text_arg(a, 1, "regexMatch")?).into())
        })
    }),
    ("regexFind", |a| {
        with_regex(a, "regexFind", |re, a| {
            let s = text_arg(a, 1, "regexFind")?;
            Ok(re.find(&s).map_or("", |m| m.as_str()).into())
        })
    }),
    ("regexFindAll", |a| {
        with_regex(a, "regexFindAll", |re, a| {
            let s = text_arg(a, 1, "regexFindAll")?;
            let limit = usize::try_from(int_arg(a, 2, "regexFindAll")?).unwrap_or(usize::MAX);
            Ok(Value::Array(
                re.find_iter(&s).take(limit).map(|m| m.as_str().into()).collect(),
            ))
        })
    }),
    ("regexReplaceAll", |a| {
        with_regex(a, "regexReplaceAll", |re, a| {
            let (s, with) = (text_arg(a, 1, "regexReplaceAll")?, text_arg(a, 2, "regexReplaceAll")?);
            Ok(re.replace_all(&s, with.as_str()).into_owned().into())
        })
    }),
    ("regexReplaceAllLiteral", |a| {
        with_regex(a, "regexReplaceAllLiteral", |re, a| {
            let f = "regexReplaceAllLiteral";
            let (s, with) = (text_arg(a, 1, f)?, text_arg(a, 2, f)?);
            Ok(re.replace_all(&s, regex::NoExpand(&with)).into_owned().into())
        })
    }),
    ("regexSplit", |a| {
        with_regex(a, "regexSplit", |re, a| {
            let s = text_arg(a, 1, "regexSplit")?;
            let limit = usize::try_from(int_arg(a, 2, "regexSplit")?).unwrap_or(usize::MAX);
            Ok(Value::Array(re.splitn(&s, limit).map(Value::from).collect()))
        })
    }),
    ("regexQuoteMeta", |a| {
        Ok(regex::escape(&text_arg(a, 0, "regexQuoteMeta")?).into())
    }),
    ("kindOf", |a| Ok(kind(arg(a, 0, "kindOf")?).into())),
    ("kindIs", |a| {
        Ok((kind(arg(a, 1, "kindIs")?) == text_arg(a, 0, "kindIs")?).into())
    }),
    ("fail", |a| Err(fail(text_arg(a, 0, "fail")?))),
];

fn two(args: &[Value], function: &str, f: impl Fn(&str, &str) -> Value) -> Out {
    Ok(f(&text_arg(args, 0, function)?, &text_arg(args, 1, function)?))
}

fn with_set(args: &[Value], function: &str, f: impl Fn(&str, &[char]) -> String) -> Out {
    let set: Vec<char> = text_arg(args, 0, function)?.chars().collect();
    Ok(f(&text_arg(args, 1, function)?, &set).into())
}

fn with_regex(args: &[Value], function: &str, f: impl Fn(&Regex, &[Value]) -> Out) -> Out {
    let pattern = text_arg(args, 0, function)?;
    let regex = Regex::new(&pattern).map_err(|e| fail(format!("{function}: {e}")))?;
    f(&regex, args)
}

fn replace(args: &[Value]) -> Out {
    let (from, to) = (text_arg(args, 0, "replace")?, text_arg(args, 1, "replace")?);
    Ok(text_arg(args, 2, "replace")?.replace(&from, &to).into())
}

fn repeat(args: &[Value]) -> Out {
    let (n, s) = (count_arg(args, 0, "repeat")?, text_arg(args, 1, "repeat")?);
    bounded(n.saturating_mul(s.len()), "repeat")?;
    Ok(s.repeat(n).into())
}

fn trunc(args: &[Value]) -> Out {
    let (n, s) = (int_arg(args, 0, "trunc")?, text_arg(args, 1, "trunc")?);
    let len = s.chars().count();
    let keep = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    let out: String = if n < 0 {
        s.chars().skip(len.saturating_sub(keep)).collect()
    } else {
        s.chars().take(keep).collect()
    };
    Ok(out.into())
}

fn abbrev(args: &[Value]) -> Out {
    let (n, s) = (count_arg(args, 0, "abbrev")?, text_arg(args, 1, "abbrev")?);
    if n < 4 || s.chars().count() <= n {
        return Ok(s.into());
    }
    let head: String = s.chars().take(n - 3).collect();
    Ok(format!("{head}...").into())
}

fn substr(args: &[Value]) -> Out {
    let start = count_arg(args, 0, "substr")?;
    let end = int_arg(args, 1, "substr")?;
    let s = text_arg(args, 2, "substr")?;
    let len = s.chars().count();
    let end = usize::try_from(end).unwrap_or(len).min(len);
    Ok(s.chars()
        .skip(start)
        .take(end.saturating_sub(start))
        .collect::<String>()
        .into())
}

fn quoted(args: &[Value], f: impl Fn(&str) -> String) -> String {
    let parts: Vec<String> = args
        .iter()
        .filter(|v| !matches!(v, Value::Nil | Value::NoValue))
        .map(|v| f(&text(v)))
        .collect();
    parts.join(" ")
}

fn indented(n: usize, body: &str) -> Result<String, FuncError> {
    bounded(n.saturating_mul(body.lines().count().max(1)), "indent")?;
    let pad = " ".repeat(n);
    Ok(format!("{pad}{}", body.replace('\n', &format!("\n{pad}"))))
}

/// Keeps one call from asking for more memory than any field could hold.
pub(super) fn bounded(size: usize, function: &str) -> Result<(), FuncError> {
    if size > super::super::MAX_OUTPUT {
        return Err(fail(format!("{function}: the result would be too large")));
    }
    Ok(())
}

fn numbered<'a>(parts: impl Iterator<Item = &'a str>) -> Value {
    Value::Map(
        parts
            .enumerate()
            .map(|(i, p)| (format!("_{i}"), Value::from(p)))
            .collect(),
    )
}

fn capitalised(s: &str, up: bool) -> String {
    let mut start = true;
    s.chars()
        .map(|c| {
            let out = match (start, up) {
                (false, _) => c,
                (true, true) => c.to_ascii_uppercase(),
                (true, false) => c.to_ascii_lowercase(),
            };
            start = c.is_whitespace();
            out
        })
        .collect()
}

/// Splits at separators and where a lower-case letter meets an upper-case one.
fn words(s: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut current = String::new();
    let mut before_lower = false;
    for c in s.chars() {
        let separator = matches!(c, '-' | '_' | ' ' | '.');
        if (separator || (c.is_uppercase() && before_lower)) && !current.is_empty() {
            out.push(std::mem::take(&mut current));
        }
        if !separator {
            current.push(c);
        }
        before_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    if !current.is_empty() {
        out.push(current);
    }
    out
}
