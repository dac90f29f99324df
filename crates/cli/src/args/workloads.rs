//! Which servers the kubeconfigs of workload clusters may name, and what those may cost.

use clap::{ArgAction, Args as ClapArgs};
use windlass_gocompat::quantity::Quantity;
use windlass_manager::{Limits, Network, Policy, Reach};

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

/// The least that makes sense: a server with a few hundred Nodes.
const LEAST: usize = 16 << 20;

fn memory(text: &str) -> Result<usize, String> {
    let wrong = || "a quantity of bytes of at least 16Mi, such as 256Mi or 2Gi, is expected".to_owned();
    let bytes = Quantity::parse(text).and_then(Quantity::whole);
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    bytes.filter(|bytes| *bytes >= LEAST).ok_or_else(wrong)
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
    /// What the cached objects of one workload cluster may take; a server with more is not connected to
    #[arg(long = "workload-memory-limit", value_name = "QUANTITY", default_value = "128Mi", value_parser = memory)]
    memory: usize,
}

impl WorkloadArgs {
    /// The addresses that servers of workload clusters may have, and what they may cost.
    pub(crate) fn policy(self) -> Policy {
        Policy {
            reach: Reach::new(self.denied.0, self.plain),
            limits: Limits::with_cached(self.memory),
        }
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

    #[test]
    fn memory_is_a_quantity() {
        assert_eq!(memory("16Mi"), Ok(16 << 20));
        assert_eq!(memory("2Gi"), Ok(2 << 30));
        assert_eq!(memory("200M"), Ok(200_000_000));
        for wrong in ["", "16Mi1", "16777215", "-1Gi", "lots"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
    }
}
