//! Corefiles, the configuration language of CoreDNS, as a tree that can be changed and written again.
//!
//! The language is that of Caddy 1: words, separated by blanks, of which those of a line make a directive. A `{` at its end opens a block of
//! directives, and a `}` that begins a line closes it. Words in double quotes may hold blanks, `#` begins a comment.

/// How deep blocks may be nested. CoreDNS itself knows servers, plugins and their options.
const DEPTH: usize = 32;

/// A line of a Corefile with the block that it opens: a server, a plugin or an option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directive {
    /// Its words: zones of a server, or a name and its arguments.
    pub(crate) words: Vec<String>,
    /// What stands between its braces.
    pub(crate) block: Option<Vec<Self>>,
}

impl Directive {
    /// A directive without a block.
    pub(crate) fn line(words: &[&str]) -> Self {
        Self {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            block: None,
        }
    }

    /// The first word.
    pub(crate) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The words after the first.
    pub(crate) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// What stands in the block, if there is one.
    pub(crate) fn children(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }
}

/// A word, and where it stands.
struct Word {
    text: String,
    line: usize,
    /// The line on which it ends: a quoted word may hold line breaks.
    end: usize,
    quoted: bool,
}

impl Word {
    fn is(&self, brace: &str) -> bool {
        !self.quoted && self.text == brace
    }
}

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut chars = text.strip_prefix('\u{feff}').unwrap_or(text).chars().peekable();
    let mut line = 1;
    while let Some(first) = chars.next() {
        match first {
            '\n' => line += 1,
            blank if blank.is_whitespace() => {}
            '#' => while chars.next_if(|next| *next != '\n').is_some() {},
            '"' => {
                let (begin, mut word) = (line, String::new());
                let mut closed = false;
                while let Some(mut next) = chars.next() {
                    if next == '"' {
                        closed = true;
                        break;
                    }
                    // Only quotes are escaped: before anything else, a backslash is itself.
                    if next == '\\'
                        && let Some(escaped) = chars.next()
                    {
                        if escaped != '"' {
                            word.push(next);
                        }
                        next = escaped;
                    }
                    line += usize::from(next == '\n');
                    word.push(next);
                }
                if !closed {
                    return Err(format!("line {begin}: the quotes that begin here have no end"));
                }
                words.push(Word {
                    text: word,
                    line: begin,
                    end: line,
                    quoted: true,
                });
            }
            _ => {
                let mut word = String::from(first);
                // Caddy skips carriage returns, also within a word.
                while let Some(next) = chars.next_if(|next| *next != '#' && (!next.is_whitespace() || *next == '\r')) {
                    if next != '\r' {
                        word.push(next);
                    }
                }
                words.push(Word {
                    text: word,
                    line,
                    end: line,
                    quoted: false,
                });
            }
        }
    }
    Ok(words)
}

/// Reads a Corefile. The error names the line.
pub(crate) fn read(text: &str) -> Result<Vec<Directive>, String> {
    // The last level is the one that is read; each has the line on which it was opened.
    let mut levels: Vec<(usize, Vec<Directive>)> = vec![(0, Vec::new())];
    let words = words(text)?;
    let mut rest = words.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let top = levels.len() - 1;
        if first.is("}") {
            rest = after;
            let closed = levels.pop().filter(|_| top > 0);
            let (_, block) = closed.ok_or_else(|| format!("line {}: no block is open that }} closes", first.line))?;
            if let Some(directive) = levels.last_mut().and_then(|(_, directives)| directives.last_mut()) {
                directive.block = Some(block);
            }
            continue;
        }
        if first.is("{") {
            rest = after;
            let opens = levels[top].1.last().is_some_and(|directive| directive.block.is_none());
            if !opens {
                return Err(format!("line {}: a block begins without a name", first.line));
            }
            if levels.len() > DEPTH {
                return Err(format!("line {}: more than {DEPTH} blocks in each other", first.line));
            }
            levels.push((first.line, Vec::new()));
            continue;
        }
        let mut end = first.end;
        let more = after.iter().take_while(|word| {
            let same = word.line == end && !word.is("{");
            end = word.end;
            same
        });
        let count = 1 + more.count();
        let directive = Directive {
            words: rest[..count].iter().map(|word| word.text.clone()).collect(),
            block: None,
        };
        levels[top].1.push(directive);
        rest = &rest[count..];
    }
    match levels.pop() {
        Some((_, directives)) if levels.is_empty() => Ok(directives),
        Some((line, _)) => Err(format!("line {line}: the block that begins here has no end")),
        None => Ok(Vec::new()),
    }
}

/// Writes a Corefile, with one empty line between servers.
pub(crate) fn write(directives: &[Directive]) -> String {
    let mut text = String::new();
    for directive in directives {
        if !text.is_empty() {
            text.push('\n');
        }
        write_one(&mut text, directive, 0);
    }
    // A reader takes the first of these for the mark of the encoding.
    if text.starts_with('\u{feff}') {
        text.insert(0, '\u{feff}');
    }
    text
}

fn write_one(text: &mut String, directive: &Directive, depth: usize) {
    let indent = "    ".repeat(depth);
    text.push_str(&indent);
    let words: Vec<String> = directive.words.iter().map(|word| quoted(word)).collect();
    text.push_str(&words.join(" "));
    if let Some(block) = &directive.block {
        text.push_str(" {\n");
        for directive in block {
            write_one(text, directive, depth + 1);
        }
        text.push_str(&indent);
        text.push('}');
    }
    text.push('\n');
}

fn quoted(word: &str) -> String {
    let plain = !word.is_empty()
        && !matches!(word, "{" | "}")
        && !word.starts_with('"')
        && !word.contains(|c: char| c.is_whitespace() || c == '#');
    if plain {
        word.to_owned()
    } else {
        format!("\"{}\"", word.replace('"', "\\\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Corefile of kubeadm, with what people add to it.
    const TEXT: &str = r#"# of our team
.:53 {
    errors # to the log
    health {
       lameduck 5s
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
    }
    rewrite name regex (.*)\.a\.b {1}.c "two words"
    template IN A example. {
        answer "{{ .Name }} 60 IN A 10.0.0.1 # not a comment"
        match "^\"x"
    }
    forward . {$UPSTREAM} 8.8.8.8
}
(snippet) {
    cache 30
}
"#;

    #[test]
    fn a_corefile_is_read_and_written() {
        let read_once = read(TEXT).unwrap();
        assert_eq!(read_once.len(), 2);
        let server = read_once[0].children();
        let names: Vec<&str> = server.iter().map(Directive::name).collect();
        assert_eq!(
            names,
            ["errors", "health", "kubernetes", "rewrite", "template", "forward"]
        );
        assert_eq!(server[3].arguments().last().unwrap(), "two words");
        assert_eq!(server[4].children()[1].arguments(), ["^\"x"]);
        let written = write(&read_once);
        assert!(
            written.starts_with(".:53 {\n    errors\n    health {\n        lameduck 5s\n    }\n"),
            "{written}"
        );
        assert!(written.contains("}\n\n(snippet) {\n"), "{written}");
        assert_eq!(read(&written).unwrap(), read_once);
        assert_eq!(write(&read(&written).unwrap()), written);
    }

    #[test]
    fn what_is_no_corefile_is_an_error_with_its_line() {
        for (text, line) in [
            ("a {\n b {\n", "line 2"),
            ("a\n}\n", "line 2"),
            ("\n{\n}", "line 2"),
            ("a \"b\n", "line 1"),
        ] {
            assert!(read(text).unwrap_err().starts_with(line), "{text}");
        }
        assert!(read(&"a {\n".repeat(100_000)).unwrap_err().contains("in each other"));
        assert_eq!(read("").unwrap(), []);
    }

    #[test]
    fn any_text_is_read_or_refused_and_what_is_written_is_read_as_it_was() {
        let parts = [
            "a", "{", "}", "\n", " ", "\"", "\\", "#", "\r", "{$X}", "é", "\t", "\u{feff}",
        ];
        let mut state = 7_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..24 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                text.push_str(parts[usize::try_from(state >> 33).unwrap() % parts.len()]);
            }
            if let Ok(directives) = read(&text) {
                assert_eq!(read(&write(&directives)).as_ref(), Ok(&directives), "{text:?}");
            }
        }
    }
}
