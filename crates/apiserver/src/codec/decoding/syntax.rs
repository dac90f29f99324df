//! Syntax errors of JSON texts in the wording of Go's scanner, which clients of Kubernetes know.

/// The first syntax error, if there is one.
pub(crate) fn mistake(bytes: &[u8]) -> Option<String> {
    let mut scanner = Scanner { bytes, at: 0, depth: 0 };
    let outcome = scanner.value("looking for beginning of value").and_then(|()| {
        scanner.space();
        match scanner.peek() {
            None => Ok(()),
            Some(_) => Err(scanner.unexpected("after top-level value")),
        }
    });
    outcome.err()
}

/// The depth limit of Go's decoder.
const DEPTH: usize = 10_000;

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn unexpected(&self, context: &str) -> String {
        match self.peek() {
            None => "unexpected end of JSON input".to_owned(),
            Some(b'\'') => format!("invalid character '\\'' {context}"),
            Some(b @ (b' '..=b'~' | 0x80..)) => format!("invalid character '{}' {context}", char::from(b)),
            Some(b'\n') => format!("invalid character '\\n' {context}"),
            Some(b'\t') => format!("invalid character '\\t' {context}"),
            Some(b'\r') => format!("invalid character '\\r' {context}"),
            Some(b) => format!("invalid character '\\x{b:02x}' {context}"),
        }
    }

    /// An explicit stack instead of recursion, because the client chooses the depth.
    fn value(&mut self, context: &str) -> Result<(), String> {
        let mut open: Vec<u8> = Vec::new();
        let mut context = context;
        loop {
            self.space();
            match self.peek() {
                Some(b @ (b'{' | b'[')) => {
                    self.at += 1;
                    open.push(b);
                    self.depth = self.depth.max(open.len());
                    if self.depth > DEPTH {
                        return Err("exceeded max depth".to_owned());
                    }
                    self.space();
                    let closing = if b == b'{' { b'}' } else { b']' };
                    if self.peek() == Some(closing) {
                        self.at += 1;
                        open.pop();
                    } else if b == b'{' {
                        self.key()?;
                        context = "looking for beginning of value";
                        continue;
                    } else {
                        context = "looking for beginning of value";
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                _ => return Err(self.unexpected(context)),
            }
            // After a value come the ends of open values, or the next value.
            loop {
                let Some(within) = open.last() else {
                    return Ok(());
                };
                self.space();
                match (within, self.peek()) {
                    (b'{', Some(b'}')) | (b'[', Some(b']')) => {
                        self.at += 1;
                        open.pop();
                    }
                    (b'{', Some(b',')) => {
                        self.at += 1;
                        self.space();
                        self.key()?;
                        break;
                    }
                    (b'[', Some(b',')) => {
                        self.at += 1;
                        break;
                    }
                    (b'{', _) => return Err(self.unexpected("after object key:value pair")),
                    _ => return Err(self.unexpected("after array element")),
                }
            }
            context = "looking for beginning of value";
        }
    }

    fn key(&mut self) -> Result<(), String> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
                        Some(b'u') => {
                            self.at += 1;
                            for _ in 0..4 {
                                if !self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                                    return Err(self.unexpected("in \\u hexadecimal character escape"));
                                }
                                self.at += 1;
                            }
                        }
                        _ => return Err(self.unexpected("in string escape code")),
                    }
                }
                Some(0..=0x1f) | None => return Err(self.unexpected("in string literal")),
                Some(_) => self.at += 1,
            }
        }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self, context: &str) -> Result<(), String> {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.unexpected(context));
        }
        self.digits();
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.some_digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        self.at += 1;
        for expected in word.chars().skip(1) {
            if self.peek().map(char::from) != Some(expected) {
                return Err(self.unexpected(&format!("in literal {word} (expecting '{expected}')")));
            }
            self.at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: Option<&str>) {
        assert_eq!(mistake(text.as_bytes()).as_deref(), want, "{text}");
    }

    #[test]
    fn what_is_json_has_no_mistake() {
        for text in [
            "{}",
            " [1, -2.5e+3, \"a\\u00e9\\n\", true, false, null, {\"a\": []}] ",
            "0",
            "\"x\"",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn syntax_errors_have_the_wording_of_go() {
        check("", Some("unexpected end of JSON input"));
        check("{", Some("unexpected end of JSON input"));
        check(
            "{not",
            Some("invalid character 'n' looking for beginning of object key string"),
        );
        check("{\"a\" 1}", Some("invalid character '1' after object key"));
        check(
            "{\"a\": 1 \"b\"}",
            Some("invalid character '\"' after object key:value pair"),
        );
        check("[1 2]", Some("invalid character '2' after array element"));
        check("[1,]", Some("invalid character ']' looking for beginning of value"));
        check("nope", Some("invalid character 'o' in literal null (expecting 'u')"));
        check("01", Some("invalid character '1' after top-level value"));
        check("{} x", Some("invalid character 'x' after top-level value"));
        check("\"\\x\"", Some("invalid character 'x' in string escape code"));
        check("-", Some("unexpected end of JSON input"));
        check(
            "1.x",
            Some("invalid character 'x' after decimal point in numeric literal"),
        );
        check(&"[".repeat(20_000), Some("exceeded max depth"));
    }
}
