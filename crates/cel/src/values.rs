//! CEL values of Kubernetes: URLs, addresses, networks, quantities, versions, named formats.

use std::any::Any;
use std::collections::BTreeMap;
use std::net::IpAddr;

use cel::common::types::Type;
use cel::common::value::{StaticVal, Val};

use windlass_schema::Format;

pub(super) static URL: Type = Type::new_unspecified_type("kubernetes.URL");
pub(super) static IP: Type = Type::new_unspecified_type("net.IP");
pub(super) static CIDR: Type = Type::new_unspecified_type("net.CIDR");
pub(super) static QUANTITY: Type = Type::new_unspecified_type("kubernetes.Quantity");
pub(super) static SEMVER: Type = Type::new_unspecified_type("kubernetes.Semver");
pub(super) static FORMAT: Type = Type::new_unspecified_type("kubernetes.NamedFormat");

/// One of these values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Extra {
    Url(Url),
    Ip(IpAddr),
    Cidr(IpAddr, u8),
    /// In billionths.
    Quantity(i128),
    Semver(semver::Version),
    Format(NamedFormat),
}

impl Val for Extra {
    fn get_type(&self) -> &Type {
        match self {
            Self::Url(_) => &URL,
            Self::Ip(_) => &IP,
            Self::Cidr(..) => &CIDR,
            Self::Quantity(_) => &QUANTITY,
            Self::Semver(_) => &SEMVER,
            Self::Format(_) => &FORMAT,
        }
    }

    fn cel_type() -> &'static Type {
        // Only registration macros call this, and they are not used with this type.
        &URL
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self == other)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Extra {}

/// The parts of a URL.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Url {
    pub(super) scheme: String,
    pub(super) host: String,
    pub(super) path: String,
    /// Without the question mark, as it is written.
    pub(super) query: String,
}

impl Url {
    /// Parses an absolute URL or an absolute path.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if !Format::Uri.accepts(text) {
            return None;
        }
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let (text, query) = text.split_once('?').unwrap_or((text, ""));
        let query = query.to_owned();
        if text.starts_with('/') {
            return Some(Self {
                scheme: String::new(),
                host: String::new(),
                path: text.to_owned(),
                query,
            });
        }
        let (scheme, rest) = text.split_once(':')?;
        let (host, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.find('/').map_or((rest, ""), |at| rest.split_at(at)),
            None => ("", rest),
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        Some(Self {
            scheme: scheme.to_lowercase(),
            host: host.to_owned(),
            path: path.to_owned(),
            query,
        })
    }

    /// The values of the query by key. Pairs that are not valid are left out, as in Go.
    pub(super) fn parameters(&self) -> BTreeMap<String, Vec<String>> {
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let pairs = self
            .query
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.contains(';'));
        for pair in pairs {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Some(key), Some(value)) = (unescaped(key), unescaped(value)) {
                parameters.entry(key).or_default().push(value);
            }
        }
        parameters
    }

    pub(super) fn hostname(&self) -> &str {
        if let Some(rest) = self.host.strip_prefix('[') {
            return rest.split_once(']').map_or(rest, |(name, _)| name);
        }
        self.host.split_once(':').map_or(&self.host, |(name, _)| name)
    }

    pub(super) fn port(&self) -> &str {
        let after = self
            .host
            .rsplit_once(']')
            .map_or(self.host.as_str(), |(_, after)| after);
        after.rsplit_once(':').map_or("", |(_, port)| port)
    }
}

/// A part of a query without its escapes; `None` if one is not valid.
fn unescaped(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// Parses an address; IPv4 in IPv6 notation is refused, as in Kubernetes.
pub(super) fn parse_ip(text: &str) -> Option<IpAddr> {
    match text.parse().ok()? {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => None,
        ip => Some(ip),
    }
}

/// Parses a version. A tolerant parse accepts the prefix `v`, leading zeros and missing parts, as in Kubernetes.
pub(super) fn parse_version(text: &str, tolerant: bool) -> Option<semver::Version> {
    if !tolerant {
        return semver::Version::parse(text).ok();
    }
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return None;
    }
    parts.resize(3, "0".to_owned());
    semver::Version::parse(&parts.join(".")).ok()
}

/// A part of a version without leading zeros.
fn without_zeros(part: &str) -> String {
    let rest = part.trim_start_matches('0');
    if part.len() > 1 && !rest.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("0{rest}");
    }
    if part.len() > 1 { rest } else { part }.to_owned()
}

/// Parses a network.
pub(super) fn parse_cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/')?;
    let address = parse_ip(address)?;
    if bits.len() > 1 && bits.starts_with('0') {
        return None;
    }
    let bits: u8 = bits.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    (bits <= most).then_some((address, bits))
}

/// The address as a number of `most` bits.
fn number(ip: IpAddr) -> (u128, u8) {
    match ip {
        IpAddr::V4(v4) => (u32::from(v4).into(), 32),
        IpAddr::V6(v6) => (v6.into(), 128),
    }
}

/// Whether the first `bits` bits of two addresses are equal.
pub(super) fn in_network(network: IpAddr, bits: u8, ip: IpAddr) -> bool {
    let ((network, most), (ip, other)) = (number(network), number(ip));
    let rest = u32::from(most - bits.min(most));
    most == other && network.checked_shr(rest).unwrap_or(0) == ip.checked_shr(rest).unwrap_or(0)
}

/// The network with the bits behind the prefix cleared.
pub(super) fn masked(ip: IpAddr, bits: u8) -> IpAddr {
    let (value, most) = number(ip);
    let rest = u32::from(most - bits.min(most));
    let value = value.checked_shr(rest).and_then(|v| v.checked_shl(rest)).unwrap_or(0);
    match ip {
        #[expect(clippy::cast_possible_truncation, reason = "it came from 32 bits")]
        IpAddr::V4(_) => IpAddr::V4((value as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(value.into()),
    }
}

/// A named format of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedFormat {
    Label,
    Subdomain,
    Label1035,
    LabelPrefix,
    SubdomainPrefix,
    Label1035Prefix,
    QualifiedName,
    LabelValue,
    Known(Format),
}

impl NamedFormat {
    pub(super) const ALL: [(&'static str, Self); 13] = [
        ("dns1123Label", Self::Label),
        ("dns1123Subdomain", Self::Subdomain),
        ("dns1035Label", Self::Label1035),
        ("dns1123LabelPrefix", Self::LabelPrefix),
        ("dns1123SubdomainPrefix", Self::SubdomainPrefix),
        ("dns1035LabelPrefix", Self::Label1035Prefix),
        ("qualifiedName", Self::QualifiedName),
        ("labelValue", Self::LabelValue),
        ("uri", Self::Known(Format::Uri)),
        ("uuid", Self::Known(Format::Uuid('0'))),
        ("byte", Self::Known(Format::Byte)),
        ("date", Self::Known(Format::Date)),
        ("datetime", Self::Known(Format::DateTime)),
    ];

    /// The problem of a text, if there is one.
    pub(super) fn problem(self, text: &str) -> Option<String> {
        let fits = match self {
            Self::Label => Format::ShortName.accepts(text),
            Self::Subdomain => Format::LongName.accepts(text),
            Self::Label1035 => Format::ShortName.accepts(text) && text.starts_with(|c: char| c.is_ascii_lowercase()),
            // A prefix may end with the dash that separates it from the rest.
            Self::LabelPrefix => Self::Label.problem(&completed(text)).is_none(),
            Self::SubdomainPrefix => Self::Subdomain.problem(&completed(text)).is_none(),
            Self::Label1035Prefix => Self::Label1035.problem(&completed(text)).is_none(),
            Self::LabelValue => text.is_empty() || is_name(text),
            Self::QualifiedName => match text.split_once('/') {
                Some((prefix, name)) => Format::LongName.accepts(prefix) && is_name(name),
                None => is_name(text),
            },
            Self::Known(format) => format.accepts(text),
        };
        (!fits).then(|| format!("invalid {self:?}"))
    }
}

/// A prefix of a name, as a name.
fn completed(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(before) if !before.is_empty() => {
            let mut name: String = before.to_owned();
            name.pop();
            name.push('a');
            name
        }
        _ => prefix.to_owned(),
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}
