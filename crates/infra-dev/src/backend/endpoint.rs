//! Where the API server of a simulated cluster serves: pure.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A control plane endpoint as the contract gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// A name or an address.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
}

impl Endpoint {
    /// The address that a simulated machine can listen on without a load balancer; none when the host is not this one.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        let host = if self.host.eq_ignore_ascii_case("localhost") {
            IpAddr::from(Ipv4Addr::LOCALHOST)
        } else {
            self.host.parse().ok().filter(IpAddr::is_loopback)?
        };
        Some(SocketAddr::new(host, self.port))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, expect: Option<&str>) {
        let endpoint = Endpoint {
            host: host.to_owned(),
            port: 6443,
        };
        assert_eq!(endpoint.address().map(|address| address.to_string()).as_deref(), expect);
    }

    #[test]
    fn only_this_host_can_be_listened_on() {
        check("localhost", Some("127.0.0.1:6443"));
        check("127.0.0.1", Some("127.0.0.1:6443"));
        check("127.1.2.3", Some("127.1.2.3:6443"));
        check("::1", Some("[::1]:6443"));
        for host in ["10.0.0.1", "api.example.com", "0.0.0.0", "::", "", "[::1]"] {
            check(host, None);
        }
    }
}
