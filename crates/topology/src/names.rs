//! Names of generated objects.
//!
//! The five last characters look random but are derived from what the object is for: the Cluster's uid, its
//! place in the topology and, for a template that replaces another, what is new in it. A pass that dies half-way
//! and is repeated therefore arrives at the same names and finds what it made before, and nothing is left over.

use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use windlass_gotemplate as gotemplate;

use crate::error::Error;

/// Characters that generated names use: no vowels and no look-alikes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
const MAX_LENGTH: usize = 63;

/// Gives the five characters for what is described by `parts`.
pub fn suffix(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let digest = hash.finalize();
    let mut number = digest.iter().take(8).fold(0u64, |n, byte| (n << 8) | u64::from(*byte));
    let base = ALPHABET.len() as u64;
    (0..SUFFIX_LENGTH)
        .map(|_| {
            let index = usize::try_from(number % base).unwrap_or_default();
            number /= base;
            char::from(ALPHABET[index])
        })
        .collect()
}

/// A short text that stands for `value`; equal values give equal texts.
pub fn fingerprint(value: &impl Serialize) -> String {
    let mut hash = Sha256::new();
    // A hash takes everything, and what is hashed has texts as keys.
    let _ = serde_json::to_writer(Sink(&mut hash), value);
    hash.finalize()
        .iter()
        .take(8)
        .fold(String::new(), |out, byte| out + &format!("{byte:02x}"))
}

struct Sink<'a>(&'a mut Sha256);

impl std::io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// `base` cut so that five more characters fit, and the five characters.
pub fn simple(base: &str, parts: &[&str]) -> String {
    let kept: String = base.chars().take(MAX_LENGTH - SUFFIX_LENGTH).collect();
    format!("{kept}{}", suffix(parts))
}

/// The owner names for naming templates.
#[derive(Debug, Clone, Copy)]
pub struct Naming<'a> {
    /// Name of the Cluster.
    pub cluster: &'a str,
    /// What a worker set is called in naming templates, such as `machineDeployment`, and its name in the topology.
    pub topology: Option<(&'a str, &'a str)>,
    /// The template of the class, if it has one.
    pub template: Option<&'a str>,
    /// Where that template stands: object and field, for errors.
    pub at: (&'a str, &'a str),
}

impl Naming<'_> {
    /// Renders the naming template (or the default one) with the characters for `parts`.
    pub fn name(&self, parts: &[&str]) -> Result<String, Error> {
        let default = match self.topology {
            Some((kind, _)) => &format!("{{{{ .cluster.name }}}}-{{{{ .{kind}.topologyName }}}}-{{{{ .random }}}}"),
            None => "{{ .cluster.name }}-{{ .random }}",
        };
        let random = suffix(parts);
        let mut data = json!({"cluster": {"name": self.cluster}, "random": random});
        if let Some((kind, name)) = self.topology {
            data[kind] = json!({"topologyName": name});
        }
        let template = self.template.unwrap_or(default);
        let name =
            gotemplate::render_strict(template, &data).map_err(|e| Error::new(self.at.0, self.at.1, e.to_string()))?;
        if name.len() > MAX_LENGTH {
            return Ok(simple(&name, parts));
        }
        if !is_subdomain(&name) {
            let message = format!(
                "gives {name:?}, which is no valid object name: lower case letters, digits, '-' and '.', \
                 starting and ending with a letter or digit"
            );
            return Err(Error::new(self.at.0, self.at.1, message));
        }
        Ok(name)
    }
}

/// RFC 1123 subdomain.
fn is_subdomain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 253
        && name.split('.').all(|label| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming<'a>(template: Option<&'a str>, topology: Option<&'a str>) -> Naming<'a> {
        Naming {
            cluster: "foo",
            topology: topology.map(|name| ("machineDeployment", name)),
            template,
            at: ("ClusterClass bar/c", "spec.x"),
        }
    }

    // TO-272, TO-273
    #[test]
    fn default_names_end_in_five_safe_characters() {
        let name = naming(None, None).name(&["uid", "cp"]).unwrap();
        assert!(name.starts_with("foo-") && name.len() == 9, "{name}");
        assert!(name.bytes().skip(4).all(|b| ALPHABET.contains(&b)), "{name}");
        let name = naming(None, Some("md-0")).name(&["uid", "md"]).unwrap();
        assert!(name.starts_with("foo-md-0-") && name.len() == 14, "{name}");
    }

    // TO-011, TO-276
    #[test]
    fn naming_templates_are_rendered_and_cut() {
        let name = naming(Some("cp-{{ .cluster.name }}-{{ .random }}"), None)
            .name(&["u"])
            .unwrap();
        assert!(name.starts_with("cp-foo-"), "{name}");
        let long = "a".repeat(70);
        let name = naming(Some(&long), None).name(&["u"]).unwrap();
        assert_eq!(name.len(), 63);
    }

    // TO-184
    #[test]
    fn bad_naming_templates_are_refused() {
        assert!(naming(Some("{{ .nope }}"), None).name(&["u"]).is_err());
        let error = naming(Some("A_{{ .random }}"), None).name(&["u"]).unwrap_err();
        assert!(error.to_string().contains("no valid object name"), "{error}");
    }

    #[test]
    fn equal_parts_give_equal_names_and_others_do_not() {
        assert_eq!(suffix(&["a", "b"]), suffix(&["a", "b"]));
        assert_ne!(suffix(&["a", "b"]), suffix(&["ab", ""]));
    }
}
