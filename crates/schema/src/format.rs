//! String formats.

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use base64::Engine;
use regex::Regex;

/// A format of CRD schemas. Formats that Kubernetes does not know are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the formats")]
pub enum Format {
    BsonObjectId,
    Byte,
    Cidr,
    CreditCard,
    Date,
    DateTime,
    Duration,
    Email,
    HexColor,
    Hostname,
    Ipv4,
    Ipv6,
    Isbn,
    Isbn10,
    Isbn13,
    LongName,
    Mac,
    Password,
    RgbColor,
    ShortName,
    Ssn,
    Uri,
    Uuid(char),
}

impl Format {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Self::BsonObjectId,
            "byte" => Self::Byte,
            "cidr" => Self::Cidr,
            "creditcard" => Self::CreditCard,
            "date" => Self::Date,
            "datetime" => Self::DateTime,
            "duration" => Self::Duration,
            "email" => Self::Email,
            "hexcolor" => Self::HexColor,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "isbn" => Self::Isbn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "k8slongname" => Self::LongName,
            "k8sshortname" => Self::ShortName,
            "mac" => Self::Mac,
            "password" => Self::Password,
            "rgbcolor" => Self::RgbColor,
            "ssn" => Self::Ssn,
            "uri" => Self::Uri,
            "uuid" => Self::Uuid('0'),
            "uuid3" => Self::Uuid('3'),
            "uuid4" => Self::Uuid('4'),
            "uuid5" => Self::Uuid('5'),
            _ => return None,
        })
    }

    /// Whether a text has the format.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::Byte => !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
            Self::Cidr => cidr(text),
            Self::CreditCard => credit_card(text),
            Self::Date => date(text),
            Self::DateTime => date_time(text),
            Self::Duration => duration(text),
            Self::Email => email(text),
            Self::HexColor => HEX_COLOR.is_match(text),
            Self::Hostname => hostname(text),
            Self::Ipv4 => ipv4(text) || (text.contains('.') && ipv6(text)),
            Self::Ipv6 => ipv6(text),
            Self::Isbn => isbn10(text) || isbn13(text),
            Self::Isbn10 => isbn10(text),
            Self::Isbn13 => isbn13(text),
            Self::LongName => text.len() <= 253 && text.split('.').all(label),
            Self::Mac => mac(text),
            Self::Password => true,
            Self::RgbColor => RGB_COLOR.is_match(text),
            Self::ShortName => text.len() <= 63 && label(text),
            Self::Ssn => text.len() == 11 && SSN.is_match(text),
            Self::Uri => uri(text),
            Self::Uuid(version) => uuid(text, version),
        }
    }
}

#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled by a test")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

static HEX_COLOR: LazyLock<Regex> = LazyLock::new(|| pattern("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\s*";
    pattern(&format!(r"^rgb\(\s*{part},\s*{part},\s*{part}\)$"))
});
static SSN: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static CARD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    )
});
static NUMBER_WITH_UNIT: LazyLock<Regex> = LazyLock::new(|| pattern(r"[0-9]+\s*([A-Za-zµ]+)"));
static HOST: LazyLock<Regex> = LazyLock::new(|| {
    let c = r"a-zA-Z0-9\p{S}\p{L}";
    pattern(&format!(
        r"^([{c}]((-?[{c}]{{0,62}})?)|([{c}](([{c}-]{{0,61}}[{c}])?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
    ))
});

fn label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    match text.as_bytes() {
        [] => false,
        bytes @ [first, .., last] => inner(*first) && inner(*last) && bytes.iter().all(|b| inner(*b) || *b == b'-'),
        [one] => inner(*one),
    }
}

fn cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    if bits.is_empty() || bits.len() > 3 || !bits.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    let bits: u32 = bits.parse().unwrap_or(u32::MAX);
    if address.contains(':') {
        ipv6(address) && bits <= 128
    } else {
        ipv4(address) && bits <= 32
    }
}

fn credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    CARD.is_match(&digits) && luhn(&digits)
}

fn luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, b)| {
            let digit = u32::from(b - b'0');
            match (i % 2, digit) {
                (0, d) => d,
                (_, d) if d > 4 => d * 2 - 9,
                (_, d) => d * 2,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

fn date(text: &str) -> bool {
    text.len() == 10 && text.as_bytes()[4] == b'-' && text.parse::<jiff::civil::Date>().is_ok()
}

fn date_time(text: &str) -> bool {
    if text.len() < 4 {
        return false;
    }
    let Some((day, clock)) = text.split_once(['T', 't']) else {
        return false;
    };
    if !date(day) {
        return false;
    }
    let bytes = clock.as_bytes();
    let pair = |at: usize, max: u8| match bytes.get(at..at + 2) {
        Some([a, b]) if a.is_ascii_digit() && b.is_ascii_digit() => (a - b'0') * 10 + (b - b'0') <= max,
        _ => false,
    };
    if !(pair(0, 23) && pair(3, 59) && pair(6, 59) && bytes[2] == b':' && bytes[5] == b':') {
        return false;
    }
    let mut rest = &clock[8..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if end == 0 {
            return false;
        }
        rest = &fraction[end..];
    }
    match rest.as_bytes() {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|x| x.is_ascii_digit()),
        _ => false,
    }
}

/// Durations in the form of Go's parser, or any text that contains a number with a unit.
pub(crate) fn duration(text: &str) -> bool {
    const EXACT: [&str; 12] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk", "sec"];
    const PREFIXES: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    windlass_gocompat::duration::parse(text).is_some()
        || NUMBER_WITH_UNIT.captures_iter(text).any(|found| {
            let unit = found.get(1).map_or("", |m| m.as_str()).to_lowercase();
            EXACT.contains(&unit.as_str()) || PREFIXES.iter().any(|prefix| unit.starts_with(prefix))
        })
}

fn email(text: &str) -> bool {
    let address = match (text.find('<'), text.ends_with('>')) {
        (Some(start), true) => &text[start + 1..text.len() - 1],
        _ => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let atom = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii();
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let dotted = |part: &str| !part.is_empty() && part.split('.').all(|a| !a.is_empty() && a.chars().all(atom));
    (quoted || dotted(local)) && dotted(domain)
}

fn hostname(text: &str) -> bool {
    HOST.is_match(text) && text.len() <= 255 && text.split('.').all(|part| part.len() <= 63)
}

/// IPv4 with leading zeros allowed, as in Kubernetes.
fn ipv4(text: &str) -> bool {
    let part = |part: &str| {
        let digits = part.trim_start_matches('0');
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && digits.len() <= 3
            && digits.parse::<u16>().unwrap_or(0) <= 255
    };
    text.split('.').count() == 4 && text.split('.').all(part)
}

fn ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

fn isbn10(text: &str) -> bool {
    let text: String = text.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    let bytes = text.as_bytes();
    if bytes.len() != 10 || !bytes[..9].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match bytes[9] {
        b'X' => 10,
        b if b.is_ascii_digit() => u32::from(b - b'0'),
        _ => return false,
    };
    let sum: u32 = bytes[..9]
        .iter()
        .zip(1u32..)
        .map(|(b, i)| i * u32::from(b - b'0'))
        .sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn isbn13(text: &str) -> bool {
    let text: String = text.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    text.len() == 13
        && text.bytes().all(|b| b.is_ascii_digit())
        && text
            .bytes()
            .enumerate()
            .map(|(i, b)| u32::from(b - b'0') * if i % 2 == 0 { 1 } else { 3 })
            .sum::<u32>()
            .is_multiple_of(10)
}

fn mac(text: &str) -> bool {
    let groups = |separator: char, width: usize| {
        let parts: Vec<&str> = text.split(separator).collect();
        matches!(parts.len() * width / 2, 6 | 8 | 20)
            && parts
                .iter()
                .all(|p| p.len() == width && p.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    groups(':', 2) || groups('-', 2) || groups('.', 4)
}

fn uri(text: &str) -> bool {
    if text.is_empty() || text.contains(|c: char| c.is_ascii_control() || c == ' ') {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let scheme_ok = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let escapes_ok = rest.match_indices('%').all(|(at, _)| {
        rest.as_bytes()
            .get(at + 1..at + 3)
            .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    });
    scheme_ok && escapes_ok
}

fn uuid(text: &str, version: char) -> bool {
    let hex: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
    let dashes_ok = {
        let mut at = 0;
        text.bytes().all(|b| {
            if b == b'-' {
                matches!(at, 8 | 12 | 16 | 20)
            } else {
                at += 1;
                true
            }
        })
    };
    if hex.len() != 32 || !dashes_ok || text.contains("--") || !hex.iter().all(u8::is_ascii_hexdigit) {
        return false;
    }
    match version {
        '0' => true,
        '3' => hex[12] == b'3',
        v => char::from(hex[12]) == v && matches!(hex[16].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b'),
    }
}
