//! Warning headers: each warning once, their total size limited.

use http::{HeaderValue, Response, header};

use crate::http::body::ApiBody;

/// Limit of all warnings together in characters. Above it, each warning is shortened ...
const MAX_TOTAL: usize = 4096;
/// ... to this length.
const MAX_EACH: usize = 256;

/// Warnings of a response that are not headers yet.
#[derive(Clone, Default)]
struct Warnings(Vec<String>);

/// Adds a warning. Characters that a header cannot contain are omitted.
pub(crate) fn add(response: &mut Response<ApiBody>, words: &str) {
    let all = response.extensions_mut().get_or_insert_default::<Warnings>();
    if !words.is_empty() && !words.chars().any(char::is_control) && !all.0.iter().any(|other| other == words) {
        all.0.push(words.to_owned());
    }
}

/// Writes the headers.
pub(crate) fn write(response: &mut Response<ApiBody>) {
    let Some(Warnings(all)) = response.extensions_mut().remove::<Warnings>() else {
        return;
    };
    for words in limited(&all) {
        let text = format!("299 - \"{}\"", words.replace('\\', "\\\\").replace('"', "\\\""));
        if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

fn limited(all: &[String]) -> Vec<String> {
    let length = |words: &String| words.chars().count();
    if all.iter().map(length).sum::<usize>() <= MAX_TOTAL {
        return all.to_vec();
    }
    // Warnings up to the one over the limit are all sent, but shortened.
    let mut total = 0;
    let fit = all
        .iter()
        .take_while(|words| {
            total += length(words);
            total <= MAX_TOTAL
        })
        .count();
    let mut out: Vec<String> = Vec::new();
    let mut written = 0;
    for (index, words) in all.iter().enumerate() {
        if index > fit && written >= MAX_TOTAL {
            break;
        }
        let cut: String = words.chars().take(MAX_EACH).collect();
        written += length(&cut);
        out.push(cut);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_words_are_cut() {
        let check = |lengths: &[usize], want: &[usize]| {
            let all: Vec<String> = lengths.iter().map(|length| "x".repeat(*length)).collect();
            let got: Vec<usize> = limited(&all).iter().map(String::len).collect();
            assert_eq!(got, want);
        };
        check(&[10, 4000], &[10, 4000]);
        check(&[5000, 5], &[256, 5]);
        check(&[243; 20], &[243; 17]);
    }
}
