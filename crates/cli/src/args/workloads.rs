//! Which servers the kubeconfigs of workload clusters may name.

use clap::{ArgAction, Args as ClapArgs};
use windlass_manager::{Network, Reach};

/// Link-local addresses, where clouds have their metadata, and the one of AWS over IPv6.
const DENIED: &str = "169.254.0.0/16,fe80::/10,fd00:ec2::254/128";

/// Networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Networks(Vec<Network>);

fn networks(text: &str) -> Result<Networks, String> {
    if text == "none" {
        return Ok(Networks(Vec::new()));
    }
    let all: Result<_, String> = text.split(',').map(|network| network.trim().parse()).collect();
    all.map(Networks)
}

/// Options of `up` and `manager`.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Connections to workload clusters")]
pub(crate) struct WorkloadArgs {
    /// Networks that servers and proxies in the kubeconfigs of workload clusters may not be in, separated by commas, or none
    #[arg(long = "workload-denied-networks", value_name = "NETWORKS", default_value = DENIED, value_parser = networks)]
    denied: Networks,
    /// Allow servers without TLS (http://) in these kubeconfigs also on other hosts than this one
    #[arg(
        long = "workload-plain-http",
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set
    )]
    plain: bool,
}

impl WorkloadArgs {
    /// The addresses that servers of workload clusters may have.
    pub(crate) fn reach(self) -> Reach {
        Reach::new(self.denied.0, self.plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_a_list_or_none() {
        let count = |text: &str| networks(text).map(|networks| networks.0.len()).ok();
        assert_eq!(count(DENIED), Some(3));
        assert_eq!(count("10.0.0.0/8, 192.168.0.0/16"), Some(2));
        assert_eq!(count("none"), Some(0));
        assert_eq!(count(""), None);
        assert_eq!(count("10.0.0.0/8,none"), None);
        assert_eq!(count("10.0.0.1"), None);
    }
}
