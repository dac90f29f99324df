//! Functions for URLs, addresses and networks.

use std::sync::Arc;

use cel::common::functions::Function;
use cel::common::types::STRING_TYPE;
use cel::common::value::CowVal;
use cel::objects::{Key, Map};
use cel::{DeclarationError, Env, ExecutionError, Value};

use super::{Args, Outcome, OwnedType as _, extra, give, give_extra, text};
use crate::values::{self, CIDR, Extra, IP, URL, Url};

pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("isURL", "is_url", vec![STRING_TYPE], |args| {
        give(Url::parse(&text(&args, 0)?).is_some())
    })?;
    env.add_overload("url", "url_of", vec![STRING_TYPE], |args| {
        give_extra(
            Url::parse(&text(&args, 0)?).map(Extra::Url),
            "url",
            "URL parse error during conversion from string",
        )
    })?;
    let parts: [(&str, Function); 5] = [
        ("getScheme", |args| url_part(&args, |url| url.scheme.clone())),
        ("getHost", |args| url_part(&args, |url| url.host.clone())),
        ("getHostname", |args| url_part(&args, |url| url.hostname().to_owned())),
        ("getPort", |args| url_part(&args, |url| url.port().to_owned())),
        ("getEscapedPath", |args| url_part(&args, |url| url.path.clone())),
    ];
    for (name, function) in parts {
        env.add_member_overload(name, name, URL.to_owned_type(), vec![], function)?;
    }
    env.add_member_overload(
        "getQuery",
        "url_get_query",
        URL.to_owned_type(),
        vec![],
        |args| match extra(&args, 0)? {
            Extra::Url(url) => give(query(&url)),
            _ => Err(ExecutionError::MissingArgumentOrTarget),
        },
    )?;
    addresses(env)?;
    networks(env)
}

fn addresses(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("isIP", "is_ip", vec![STRING_TYPE], |args| {
        give(values::parse_ip(&text(&args, 0)?).is_some())
    })?;
    env.add_overload("ip", "ip_of", vec![STRING_TYPE], |args| {
        give_extra(
            values::parse_ip(&text(&args, 0)?).map(Extra::Ip),
            "ip",
            "IP Address parse error during conversion from string",
        )
    })?;
    env.add_overload("ip.isCanonical", "ip_is_canonical", vec![STRING_TYPE], |args| {
        let text = text(&args, 0)?;
        match values::parse_ip(&text) {
            Some(ip) => give(ip.to_string() == *text),
            None => give_extra(
                None,
                "ip.isCanonical",
                "IP Address parse error during conversion from string",
            ),
        }
    })?;
    for (id, of) in [("ip_to_string", &IP), ("cidr_to_string", &CIDR)] {
        env.add_overload("string", id, vec![of.to_owned_type()], |args| match extra(&args, 0)? {
            Extra::Ip(ip) => give(ip.to_string()),
            Extra::Cidr(ip, bits) => give(format!("{ip}/{bits}")),
            _ => Err(ExecutionError::MissingArgumentOrTarget),
        })?;
    }
    let checks: [(&str, Function); 6] = [
        ("family", |args| {
            on_ip(&args, |ip| Value::Int(if ip.is_ipv4() { 4 } else { 6 }))
        }),
        ("isUnspecified", |args| on_ip(&args, |ip| ip.is_unspecified().into())),
        ("isLoopback", |args| on_ip(&args, |ip| ip.is_loopback().into())),
        ("isLinkLocalMulticast", |args| {
            on_ip(&args, |ip| is_link_local_multicast(ip).into())
        }),
        ("isLinkLocalUnicast", |args| on_ip(&args, |ip| is_link_local(ip).into())),
        ("isGlobalUnicast", |args| {
            on_ip(&args, |ip| is_global_unicast(ip).into())
        }),
    ];
    for (name, function) in checks {
        env.add_member_overload(name, name, IP.to_owned_type(), vec![], function)?;
    }
    Ok(())
}

fn networks(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("isCIDR", "is_cidr", vec![STRING_TYPE], |args| {
        give(values::parse_cidr(&text(&args, 0)?).is_some())
    })?;
    env.add_overload("cidr", "cidr_of", vec![STRING_TYPE], |args| {
        let parsed = values::parse_cidr(&text(&args, 0)?).map(|(ip, bits)| Extra::Cidr(ip, bits));
        give_extra(
            parsed,
            "cidr",
            "network address parse error during conversion from string",
        )
    })?;
    env.add_member_overload(
        "prefixLength",
        "cidr_prefix_length",
        CIDR.to_owned_type(),
        vec![],
        |args| match extra(&args, 0)? {
            Extra::Cidr(_, bits) => give(i64::from(bits)),
            _ => Err(ExecutionError::MissingArgumentOrTarget),
        },
    )?;
    env.add_member_overload("ip", "cidr_ip", CIDR.to_owned_type(), vec![], |args| {
        match extra(&args, 0)? {
            Extra::Cidr(ip, _) => Ok(CowVal::owned(Extra::Ip(ip))),
            _ => Err(ExecutionError::MissingArgumentOrTarget),
        }
    })?;
    env.add_member_overload(
        "masked",
        "cidr_masked",
        CIDR.to_owned_type(),
        vec![],
        |args| match extra(&args, 0)? {
            Extra::Cidr(ip, bits) => Ok(CowVal::owned(Extra::Cidr(values::masked(ip, bits), bits))),
            _ => Err(ExecutionError::MissingArgumentOrTarget),
        },
    )?;
    for (name, id, other) in [
        ("containsIP", "cidr_contains_ip_string", STRING_TYPE),
        ("containsIP", "cidr_contains_ip", IP.to_owned_type()),
        ("containsCIDR", "cidr_contains_cidr_string", STRING_TYPE),
        ("containsCIDR", "cidr_contains_cidr", CIDR.to_owned_type()),
    ] {
        env.add_member_overload(name, id, CIDR.to_owned_type(), vec![other], |args| contains(&args))?;
    }
    Ok(())
}

fn url_part<'b, 'v>(args: &Args<'_, '_>, part: impl Fn(&Url) -> String) -> Outcome<'b, 'v> {
    match extra(args, 0)? {
        Extra::Url(url) => give(part(&url)),
        _ => Err(ExecutionError::MissingArgumentOrTarget),
    }
}

fn query(url: &Url) -> Value {
    let text = |text: String| Value::String(Arc::new(text));
    let values = |values: Vec<String>| Value::List(Arc::new(values.into_iter().map(text).collect()));
    let parameters = url.parameters().into_iter();
    let map = parameters
        .map(|(key, all)| (Key::String(Arc::new(key)), values(all)))
        .collect();
    Value::Map(Map { map: Arc::new(map) })
}

fn on_ip<'b, 'v>(args: &Args<'_, '_>, part: impl Fn(std::net::IpAddr) -> Value) -> Outcome<'b, 'v> {
    match extra(args, 0)? {
        Extra::Ip(ip) => give(part(ip)),
        _ => Err(ExecutionError::MissingArgumentOrTarget),
    }
}

fn is_link_local(ip: std::net::IpAddr) -> bool {
    match ip {
        std::net::IpAddr::V4(v4) => v4.is_link_local(),
        std::net::IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(ip: std::net::IpAddr) -> bool {
    match ip {
        std::net::IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        std::net::IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_global_unicast(ip: std::net::IpAddr) -> bool {
    let broadcast = matches!(ip, std::net::IpAddr::V4(v4) if v4.is_broadcast());
    !(broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local(ip))
}

fn contains<'b, 'v>(args: &Args<'_, '_>) -> Outcome<'b, 'v> {
    let Extra::Cidr(network, bits) = extra(args, 0)? else {
        return Err(ExecutionError::MissingArgumentOrTarget);
    };
    let inside = match extra(args, 1) {
        Ok(Extra::Ip(ip)) => values::in_network(network, bits, ip),
        Ok(Extra::Cidr(ip, other)) => other >= bits && values::in_network(network, bits, ip),
        _ => {
            let text = text(args, 1)?;
            match (values::parse_ip(&text), values::parse_cidr(&text)) {
                (Some(ip), _) => values::in_network(network, bits, ip),
                (None, Some((ip, other))) => other >= bits && values::in_network(network, bits, ip),
                _ => return Err(ExecutionError::function_error("containsIP", "not an address")),
            }
        }
    };
    give(inside)
}
