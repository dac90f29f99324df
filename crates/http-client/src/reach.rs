//! Which addresses may be connected to, when others than the administrator choose the server.
//!
//! A name is resolved once, and the addresses that were checked are those that are connected to. So a name that leads somewhere else a moment
//! later changes nothing.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::dns::Name;

/// The option that sets [`Reach::denied`].
const NETWORKS: &str = "--workload-denied-networks";
/// The option that sets [`Reach::plain`].
const PLAIN: &str = "--workload-plain-http";

/// A network, such as `169.254.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    pub(crate) fn new(address: IpAddr, bits: u8) -> Self {
        Self { address, bits }
    }

    /// Whether an address, as it is written, is in the network.
    pub(crate) fn contains(&self, found: IpAddr) -> bool {
        let (found, net, width): (u128, u128, u32) = match (found, self.address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (u32::from(a).into(), u32::from(b).into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.into(), b.into(), 128),
            _ => return false,
        };
        let drop = width.saturating_sub(self.bits.into());
        found.checked_shr(drop).unwrap_or(0) == net.checked_shr(drop).unwrap_or(0)
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no network: expected ADDRESS/BITS, such as 169.254.0.0/16");
        let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits: u8 = bits.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if bits > most {
            return Err(wrong());
        }
        Ok(Self { address, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// The addresses that servers may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    denied: Arc<[Network]>,
    /// Servers without TLS are allowed on other hosts than this one, too.
    plain: bool,
}

/// A server that may not be connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Its address is denied.
    #[error("{field} of the kubeconfig leads to {address}, which is in {network}: {NETWORKS} denies it")]
    Network {
        /// The field that names the server.
        field: &'static str,
        /// The address.
        address: IpAddr,
        /// The network.
        network: Network,
    },
    /// It has no TLS.
    #[error("{field} of the kubeconfig has no TLS and leads to {host}, which is not this host: {PLAIN} denies it")]
    Plain {
        /// The field that names the server.
        field: &'static str,
        /// The address, or the name.
        host: String,
    },
}

impl Reach {
    /// All addresses.
    pub fn anywhere() -> Self {
        Self::new(Vec::new(), true)
    }

    /// All addresses outside of these networks. `plain` allows servers without TLS that are not on this host.
    pub fn new(denied: Vec<Network>, plain: bool) -> Self {
        Self {
            denied: denied.into(),
            plain,
        }
    }

    /// Checks an address that a field leads to; `tls` is whether it is connected to with TLS.
    fn check(&self, field: &'static str, address: IpAddr, tls: bool) -> Result<(), Refused> {
        let forms = forms(address);
        for network in self.denied.iter().copied() {
            if forms.iter().any(|form| network.contains(*form)) {
                return Err(Refused::Network {
                    field,
                    address,
                    network,
                });
            }
        }
        let here = address.to_canonical().is_loopback();
        if tls || here || self.plain {
            return Ok(());
        }
        let host = address.to_string();
        Err(Refused::Plain { field, host })
    }

    /// Checks the host of a server that is written as an address. Names are checked when they are resolved.
    fn check_literal(&self, field: &'static str, server: &Uri, tls: bool) -> Result<(), Refused> {
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
        match host.parse() {
            Ok(address) => self.check(field, address, tls),
            Err(_) => Ok(()),
        }
    }

    /// Checks a server that a proxy connects to, and whose name only the proxy resolves.
    pub(crate) fn check_behind_proxy(&self, server: &Uri) -> Result<(), Refused> {
        let (field, tls) = (SERVER, is_tls(server));
        self.check_literal(field, server, tls)?;
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
        if tls || self.plain || host.parse::<IpAddr>().is_ok() {
            return Ok(());
        }
        let host = host.to_owned();
        Err(Refused::Plain { field, host })
    }

    /// Checks a server and its proxy before another program connects to them. What their names lead to then, only that program knows.
    pub async fn check_server(&self, server: &Uri, proxy: Option<&Uri>) -> Result<(), Refused> {
        let (uri, field, tls) = match proxy {
            Some(proxy) => {
                self.check_behind_proxy(server)?;
                (proxy, PROXY, true)
            }
            None => (server, SERVER, is_tls(server)),
        };
        self.check_literal(field, uri, tls)?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        // A name that leads nowhere is the other program's to report.
        let found = tokio::net::lookup_host((host, 0)).await;
        let mut found = found.into_iter().flatten();
        found.try_for_each(|address| self.check(field, address.ip(), tls))
    }
}

/// The field of the server.
pub(crate) const SERVER: &str = "cluster.server";
/// The field of its proxy.
pub(crate) const PROXY: &str = "cluster.proxy-url";

pub(crate) fn is_tls(server: &Uri) -> bool {
    server.scheme_str() != Some("http")
}

/// An address, and the IPv4 addresses that it stands for: mapped, compatible, translated (NAT64) and tunnelled (6to4) ones. Connections to
/// the unspecified address reach this host.
fn forms(address: IpAddr) -> Vec<IpAddr> {
    let mut forms = vec![address];
    if let IpAddr::V6(v6) = address {
        let octets = v6.octets();
        let at = |start: usize| Ipv4Addr::new(octets[start], octets[start + 1], octets[start + 2], octets[start + 3]);
        let is_nat64 = octets[..12] == [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];
        let is_compatible = octets[..12] == [0; 12] && !v6.is_loopback() && !v6.is_unspecified();
        if let Some(mapped) = v6.to_ipv4_mapped() {
            forms.push(mapped.into());
        } else if is_nat64 || is_compatible {
            forms.push(at(12).into());
        } else if octets[..2] == [0x20, 0x02] {
            forms.push(at(2).into());
        }
    }
    if forms.iter().any(IpAddr::is_unspecified) {
        forms.extend([IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()]);
    }
    forms
}

/// Resolves the names of a server, and checks what they lead to.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    pub(crate) reach: Reach,
    pub(crate) field: &'static str,
    pub(crate) tls: bool,
}

impl Lookup {
    /// Checks a host that is written as an address, which is not looked up.
    pub(crate) fn check_literal(&self, to: &Uri) -> Result<(), Refused> {
        self.reach.check_literal(self.field, to, self.tls)
    }
}

impl tower::Service<Name> for Lookup {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            for address in &found {
                let checked = this.reach.check(this.field, address.ip(), this.tls);
                checked.map_err(io::Error::other)?;
            }
            Ok(found.into_iter())
        })
    }
}

/// The refusal in an error or its causes.
pub fn refusal<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Refused> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return Some(refused);
        }
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(networks: &[&str], plain: bool) -> Reach {
        let denied = networks.iter().map(|network| network.parse().unwrap());
        Reach::new(denied.collect(), plain)
    }

    #[test]
    fn a_denied_network_is_found_in_all_forms_of_its_addresses() {
        let reach = reach(&["169.254.0.0/16", "fe80::/10", "127.0.0.0/8"], true);
        let check = |address: &str, network: Option<&str>| {
            let found = reach.check(SERVER, address.parse().unwrap(), true).err();
            let expect = network.map(|network| Refused::Network {
                field: SERVER,
                address: address.parse().unwrap(),
                network: network.parse().unwrap(),
            });
            assert_eq!(found, expect, "{address}");
        };
        check("169.254.169.254", Some("169.254.0.0/16"));
        check("169.255.0.0", None);
        check("::ffff:169.254.169.254", Some("169.254.0.0/16"));
        check("::169.254.169.254", Some("169.254.0.0/16"));
        check("64:ff9b::169.254.169.254", Some("169.254.0.0/16"));
        check("2002:a9fe:a9fe::1", Some("169.254.0.0/16"));
        check("2003:a9fe:a9fe::1", None);
        check("fe80::1", Some("fe80::/10"));
        check("fec0::1", None);
        check("0.0.0.0", Some("127.0.0.0/8"));
        check("::", Some("127.0.0.0/8"));
        check("10.0.0.1", None);
        check("2001:db8::1", None);
    }

    #[test]
    fn plain_servers_are_on_this_host_or_allowed() {
        let check = |address: &str, tls: bool, plain: bool, allowed: bool| {
            let found = reach(&[], plain).check(SERVER, address.parse().unwrap(), tls);
            assert_eq!(found.is_ok(), allowed, "{address} {tls} {plain}");
        };
        check("127.0.0.1", false, false, true);
        check("::1", false, false, true);
        check("::ffff:127.0.0.1", false, false, true);
        check("10.0.0.1", false, false, false);
        check("10.0.0.1", false, true, true);
        check("10.0.0.1", true, false, true);
        let named = Uri::from_static("http://api.example.com:8080");
        assert!(reach(&[], false).check_behind_proxy(&named).is_err());
        assert!(reach(&[], true).check_behind_proxy(&named).is_ok());
        let here = Uri::from_static("http://127.0.0.1:8080");
        assert!(reach(&[], false).check_behind_proxy(&here).is_ok());
    }

    #[tokio::test]
    async fn a_name_is_refused_for_the_address_that_it_leads_to() {
        let reach = reach(&["127.0.0.0/8", "::1/128"], true);
        let check = async |server: &str, proxy: Option<&str>, text: &str| {
            let proxy: Option<Uri> = proxy.map(|proxy| proxy.parse().unwrap());
            let checked = reach.check_server(&server.parse().unwrap(), proxy.as_ref()).await;
            let said = checked.map_or_else(|error| error.to_string(), |()| String::new());
            assert!(said.contains(text) && said.is_empty() == text.is_empty(), "{said}");
        };
        check(
            "https://localhost:6443",
            None,
            "cluster.server of the kubeconfig leads to",
        )
        .await;
        check("https://10.0.0.1", Some("http://localhost:3128"), "cluster.proxy-url").await;
        check("https://127.0.0.1", Some("http://10.0.0.1:3128"), "cluster.server").await;
        check("https://10.0.0.1", None, "").await;
        let mut lookup = Lookup {
            reach,
            field: SERVER,
            tls: true,
        };
        let name: Name = "localhost".parse().unwrap();
        let error = tower::Service::call(&mut lookup, name).await.unwrap_err();
        assert!(refusal(&error).is_some(), "{error}");
    }

    #[test]
    fn networks_are_written_with_their_bits() {
        let check = |text: &str, good: bool| assert_eq!(text.parse::<Network>().is_ok(), good, "{text}");
        check("10.0.0.0/8", true);
        check("fe80::/10", true);
        check("10.0.0.0/33", false);
        check("10.0.0.0", false);
        check("ten/8", false);
        assert_eq!("fe80::/10".parse::<Network>().unwrap().to_string(), "fe80::/10");
    }
}
