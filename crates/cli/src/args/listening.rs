//! Where health and diagnostics are served, in the forms that Cluster API's managers take: `:8443`, `host:port`, and 0 for nowhere.

use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use clap::{ArgAction, Args as ClapArgs};
use windlass_manager::up::Listeners;
use windlass_manager::{DiagnosticsOptions, ManagerError, SetLogLevel, network};

/// An address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listening {
    /// Nothing is served.
    Off,
    /// The address.
    At(SocketAddr),
}

/// Parses an address that may be off.
fn listening(text: &str) -> Result<Listening, String> {
    if text == "0" {
        return Ok(Listening::Off);
    }
    let parsed = address(text);
    parsed.map(Listening::At).map_err(|why| format!("{why}, or 0 for none"))
}

/// Parses an address. Without a host it means all addresses of this machine.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong = || format!("{text:?} is not an address: expected :PORT or ADDRESS:PORT");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    if host.is_empty() {
        return Ok((Ipv6Addr::UNSPECIFIED, port).into());
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut found = (host, port).to_socket_addrs().map_err(|_| wrong())?;
    found.next().ok_or_else(wrong)
}

/// Options of `up` and `manager`.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Health and diagnostics")]
pub(crate) struct ServingArgs {
    /// Address of /healthz and /readyz, in plain HTTP without authentication; 0 for none [default: :9440 for manager, none for up]
    #[arg(long = "health-addr", value_name = "ADDRESS:PORT", value_parser = listening)]
    health: Option<Listening>,
    /// Address of /metrics and of the log level (PUT /debug/flags/v), with TLS, for bearer tokens of users who may get or put these
    /// paths (nonResourceURLs); 0 for none [default: :8443 for manager, none for up]
    #[arg(long = "diagnostics-address", value_name = "ADDRESS:PORT", value_parser = listening)]
    diagnostics: Option<Listening>,
    /// Serve diagnostics in plain HTTP without authentication, and /metrics only
    #[arg(
        long = "insecure-diagnostics",
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set
    )]
    insecure: bool,
}

impl ServingArgs {
    /// The same options, with the defaults of Cluster API's managers.
    pub(crate) fn or_defaults(self) -> Self {
        let at = |port| Some(Listening::At((Ipv6Addr::UNSPECIFIED, port).into()));
        Self {
            health: self.health.or(at(9440)),
            diagnostics: self.diagnostics.or(at(8443)),
            insecure: self.insecure,
        }
    }

    /// Listens on the addresses, so that a taken port is reported before anything starts.
    pub(crate) async fn listen(&self, set_log_level: SetLogLevel) -> Result<Listeners, ManagerError> {
        let mut listeners = Listeners::default();
        if let Some(Listening::At(address)) = self.health {
            listeners.health = Some(network::listen(address, "--health-addr").await?);
        }
        if let Some(Listening::At(address)) = self.diagnostics {
            listeners.diagnostics = Some(DiagnosticsOptions {
                listener: network::listen(address, "--diagnostics-address").await?,
                insecure: self.insecure,
                set_log_level,
            });
        }
        Ok(listeners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_forms_of_other_managers() {
        let check = |text: &str, expect: Option<&str>| {
            let expect = expect.map(|address| Listening::At(address.parse().unwrap()));
            assert_eq!(listening(text).ok(), expect, "{text}");
        };
        check(":8443", Some("[::]:8443"));
        check("127.0.0.1:0", Some("127.0.0.1:0"));
        check("[::1]:8080", Some("[::1]:8080"));
        check("8443", None);
        check(":port", None);
        check("", None);
        assert_eq!(listening("0"), Ok(Listening::Off));
        let local = listening("localhost:8080");
        assert!(
            matches!(local, Ok(Listening::At(address)) if address.ip().is_loopback()),
            "{local:?}"
        );
    }
}
