//! Ignition: the instructions for the first start of machines with Flatcar Container Linux.
//!
//! The data is an Ignition configuration of version 2.3.0. A unit, `kubeadm.service`, runs a script around kubeadm, once: at its end the
//! script moves kubeadm's configuration away, without which the unit does not start. A user's Container Linux Config is converted and
//! appended.

mod check;
mod container_linux;
mod data_url;
mod document;
mod findings;
mod machine;
mod unit;

use windlass_api_kubeadm::bootstrap::KubeadmConfigSpec;
use windlass_api_kubeadm::values::FORMAT_IGNITION;

use crate::render::{BootstrapData, WriteFile};
use crate::{KubeadmError, Resolved};

/// Where kubeadm finds its configuration.
pub(crate) const KUBEADM_FILE: &str = "/etc/kubeadm.yml";

/// Bootstrap data: `documents` is kubeadm's configuration, `command` runs kubeadm.
pub(crate) fn render(
    spec: &KubeadmConfigSpec,
    certificates: &[WriteFile],
    resolved: &Resolved,
    documents: &str,
    command: &str,
) -> Result<BootstrapData, KubeadmError> {
    let mut document = machine::document(spec, certificates, resolved, documents, command)?;
    let mut warnings = Vec::new();
    let additional = spec
        .ignition
        .as_ref()
        .and_then(|ignition| ignition.container_linux_config.as_ref());
    if let Some(config) = additional
        && let Some(text) = config.additional_config.as_deref().filter(|text| !text.is_empty())
    {
        const FIELD: &str = "spec.ignition.containerLinuxConfig.additionalConfig";
        let (converted, found) =
            container_linux::convert(text, config.strict == Some(true)).map_err(|why| KubeadmError::Field {
                field: FIELD.to_owned(),
                why,
            })?;
        document.append(converted);
        warnings = found.into_iter().map(|text| format!("{FIELD}: {text}")).collect();
    }
    let value = serde_json::to_string(&document).map_err(|error| KubeadmError::Field {
        field: "spec".to_owned(),
        why: format!("the Ignition configuration cannot be written: {error}"),
    })?;
    Ok(BootstrapData {
        format: FORMAT_IGNITION,
        value,
        warnings,
    })
}

/// A whole number as YAML 1.1 writes it: `0644` is octal.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.replace('_', "");
    let (digits, base) = match digits.get(..2) {
        Some("0x") => (&digits[2..], 16),
        Some("0o") => (&digits[2..], 8),
        Some("0b") => (&digits[2..], 2),
        _ if digits.len() > 1 && digits.starts_with('0') => (&digits[1..], 8),
        _ => (digits.as_str(), 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i64::from_str_radix(digits, base).ok().map(|number| sign * number)
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn numbers_are_those_of_yaml() {
        for (text, number) in [
            ("0", Some(0)),
            ("12", Some(12)),
            ("-1_000", Some(-1000)),
            ("0644", Some(0o644)),
            ("0o17", Some(15)),
            ("0x1f", Some(31)),
            ("0b11", Some(3)),
            ("", None),
            ("08", None),
            ("--1", None),
            ("1.5", None),
            ("é1", None),
        ] {
            assert_eq!(integer(text), number, "{text}");
        }
    }
}
