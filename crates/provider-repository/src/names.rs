//! Names of the files of a provider, in all sources.

use windlass_api_operator::ProviderType;

/// The file with the contract of each release series.
pub const METADATA: &str = "metadata.yaml";

/// The file names that follow from a provider's type and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    type_: ProviderType,
    name: String,
}

impl Names {
    /// The names for a provider.
    pub fn new(type_: ProviderType, name: &str) -> Self {
        Self {
            type_,
            name: name.to_owned(),
        }
    }

    /// The provider type.
    pub fn type_(&self) -> ProviderType {
        self.type_
    }

    /// The provider's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names of local folders: `cluster-api`, `infrastructure-aws`.
    pub fn label(&self) -> String {
        self.type_.label(&self.name)
    }

    /// Name of the component file in releases.
    pub fn components_file(&self) -> String {
        self.type_.components_file()
    }

    /// Names of the component file in artifacts, the most specific first.
    pub fn artifact_components(&self, version: &str) -> Vec<String> {
        let full = |family: &str| format!("{family}-{}-{version}-components.yaml", self.name);
        let short = |family: &str| format!("{family}-components.yaml");
        let families = self.artifact_families();
        let mut names: Vec<_> = families.iter().map(|family| full(family)).collect();
        names.extend(families.iter().map(|family| short(family)));
        names.push("components.yaml".to_owned());
        names
    }

    /// Names of the metadata file in artifacts, the most specific first.
    pub fn artifact_metadata(&self, version: &str) -> Vec<String> {
        let full = |family: &String| format!("{family}-{}-{version}-metadata.yaml", self.name);
        let mut names: Vec<_> = self.artifact_families().iter().map(full).collect();
        names.push(METADATA.to_owned());
        names
    }

    /// The version in the full name of an artifact's component file, if it is this provider's.
    pub fn version_in<'a>(&self, title: &'a str) -> Option<&'a str> {
        let inner = title.strip_suffix("-components.yaml")?;
        let families = self.artifact_families();
        families.iter().find_map(|family| {
            let rest = inner.strip_prefix(family.as_str())?.strip_prefix('-')?;
            rest.strip_prefix(self.name.as_str())?.strip_prefix('-')
        })
    }

    /// Artifacts for other tools write some of the provider types as one word.
    fn artifact_families(&self) -> Vec<String> {
        let mut families = vec![self.type_.word().to_owned()];
        if self.type_ == ProviderType::RuntimeExtension {
            families.push("runtimeextension".to_owned());
        }
        families
    }
}
