//! The repositories of the providers that `clusterctl` 1.14 knows by default, by type and name.

use std::sync::LazyLock;

use windlass_api_operator::ProviderType;

/// `type`, `name` and address, separated by tabs.
const DATA: &str = include_str!("table/providers.tsv");

/// A known provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The type of the provider.
    pub type_: ProviderType,
    /// Its name.
    pub name: &'static str,
    /// The address of its latest components, as clusterctl lists it: `https://github.com/OWNER/REPOSITORY/releases/latest/FILE`.
    pub url: &'static str,
}

impl Entry {
    /// The address of all its releases: `https://github.com/OWNER/REPOSITORY/releases`.
    pub fn releases(&self) -> &'static str {
        self.parts().0
    }

    /// The component file. Not all are named after the type of the provider.
    pub fn file(&self) -> &'static str {
        self.parts().1
    }

    fn parts(&self) -> (&'static str, &'static str) {
        self.url.split_once("/latest/").unwrap_or((self.url, ""))
    }
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| DATA.lines().filter_map(read).collect());

fn read(line: &'static str) -> Option<Entry> {
    let mut cells = line.split('\t');
    Some(Entry {
        type_: ProviderType::from_inventory(cells.next()?)?,
        name: cells.next()?,
        url: cells.next()?,
    })
}

/// All of them, by type and name.
pub fn all() -> &'static [Entry] {
    &ENTRIES
}

/// The provider of a type with a name: `kubeadm` is a bootstrap provider and a control plane provider.
pub fn lookup(type_: ProviderType, name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.type_ == type_ && entry.name == name)
}

/// The known names of a type, for error messages.
pub fn names(type_: ProviderType) -> impl Iterator<Item = &'static str> {
    ENTRIES
        .iter()
        .filter(move |entry| entry.type_ == type_)
        .map(|entry| entry.name)
}

#[cfg(test)]
mod tests {
    use ProviderType::{Bootstrap, ControlPlane, Core, Infrastructure, RuntimeExtension};

    use super::*;

    #[test]
    fn every_line_is_an_entry_once() {
        assert_eq!(all().len(), DATA.lines().count());
        assert_eq!(all().len(), 64);
        assert!(all().is_sorted_by(|a, b| (a.type_, a.name) < (b.type_, b.name)));
        for entry in all() {
            let owner = entry.releases().strip_prefix("https://github.com/").unwrap();
            assert_eq!(owner.split('/').count(), 3, "{owner}");
            assert!(owner.ends_with("/releases"), "{owner}");
            assert!(entry.file().contains("-components"), "{}", entry.file());
        }
    }

    // OP-008, OP-078, OP-147, OP-148, OP-149, OP-150, OP-154
    #[test]
    fn a_provider_is_found_by_type_and_name() {
        let check = |type_: ProviderType, name: &str, expect: Option<(&str, &str)>| {
            let found = lookup(type_, name).map(|entry| (entry.releases(), entry.file()));
            let expect = expect.map(|(repository, file)| (format!("https://github.com/{repository}/releases"), file));
            assert_eq!(
                found,
                expect.as_ref().map(|(url, file)| (url.as_str(), *file)),
                "{type_} {name}"
            );
        };
        let sigs = |name: &str| format!("kubernetes-sigs/cluster-api{name}");
        let infrastructure = "infrastructure-components.yaml";
        check(Core, "cluster-api", Some((&sigs(""), "core-components.yaml")));
        check(Infrastructure, "aws", Some((&sigs("-provider-aws"), infrastructure)));
        check(
            Infrastructure,
            "vsphere",
            Some((&sigs("-provider-vsphere"), infrastructure)),
        );
        check(
            Infrastructure,
            "azure",
            Some((&sigs("-provider-azure"), infrastructure)),
        );
        check(Bootstrap, "kubeadm", Some((&sigs(""), "bootstrap-components.yaml")));
        check(
            ControlPlane,
            "kubeadm",
            Some((&sigs(""), "control-plane-components.yaml")),
        );
        let talos = |kind: &str| format!("siderolabs/cluster-api-{kind}-provider-talos");
        check(
            Bootstrap,
            "talos",
            Some((&talos("bootstrap"), "bootstrap-components.yaml")),
        );
        check(
            ControlPlane,
            "talos",
            Some((&talos("control-plane"), "control-plane-components.yaml")),
        );
        check(
            Infrastructure,
            "docker",
            Some((&sigs(""), "infrastructure-components-development.yaml")),
        );
        let extensions = "nutanix-cloud-native/cluster-api-runtime-extensions-nutanix";
        check(
            RuntimeExtension,
            "nutanix",
            Some((extensions, "runtime-extensions-components.yaml")),
        );
        check(Infrastructure, "kubeadm", None);
        check(Infrastructure, "nosuch", None);
        assert!(names(ControlPlane).any(|name| name == "talos"));
    }
}
