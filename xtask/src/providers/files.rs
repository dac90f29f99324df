//! The files of real providers in a folder: `TYPE-NAME/VERSION/` with a components file and `metadata.yaml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use windlass_api_operator::ProviderType;
use windlass_fake_providers::LookAlike;
use windlass_provider_components::envsubst::Template;
use windlass_provider_components::version::Version;

/// The name of the core provider.
const CORE: &str = windlass_api_operator::keys::CORE;

/// One release of a provider.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    pub(crate) type_: ProviderType,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) components: String,
    pub(crate) metadata: String,
}

impl Release {
    /// Its name in lists: the value of its objects' label.
    pub(crate) fn label(&self) -> String {
        self.type_.label(&self.name)
    }

    /// A value for each required variable. Only their form is valid.
    pub(crate) fn variables(&self) -> Result<BTreeMap<String, String>, String> {
        let template = Template::parse(&self.components).map_err(|error| format!("{}: {error}", self.label()))?;
        let required = template
            .variables()
            .into_iter()
            .filter(|(_, default)| default.is_none());
        Ok(required.map(|(name, _)| (name, "Tm90aGluZw==".to_owned())).collect())
    }

    /// The same release with the next patch version, replaced everywhere.
    pub(crate) fn renamed(&self) -> Result<Self, String> {
        let version = Version::parse(&self.version).map_err(|error| format!("{}: {error}", self.label()))?;
        let next = format!("v{}.{}.{}", version.major(), version.minor(), version.patch() + 1);
        Ok(Self {
            components: self.components.replace(&self.version, &next),
            version: next,
            ..self.clone()
        })
    }
}

/// As many providers as requested: missing ones, including the core, are fake.
pub(crate) fn filled_up(mut releases: Vec<Release>, count: usize) -> Vec<Release> {
    if !releases.iter().any(|release| release.type_ == ProviderType::Core) {
        releases.insert(0, made_up(ProviderType::Core, &LookAlike::core(), CORE));
    }
    for number in releases.len()..count {
        let name = format!("made-up-{number}");
        let made = LookAlike::infrastructure(&name).without_required_variables();
        releases.push(made_up(ProviderType::Infrastructure, &made, &name));
    }
    releases
}

/// A release of a fake provider.
fn made_up(type_: ProviderType, made: &LookAlike, name: &str) -> Release {
    Release {
        type_,
        name: name.to_owned(),
        version: "v1.0.0".to_owned(),
        components: made.components(),
        metadata: made.metadata(),
    }
}

/// All releases of a folder, in the order in which providers are installed.
pub(crate) fn read(dir: &Path) -> Result<Vec<Release>, String> {
    let mut releases = Vec::new();
    for provider in folders(dir)? {
        let label = file_name(&provider);
        let known = ProviderType::ALL.into_iter().find_map(|type_| {
            let name = label.strip_prefix(type_.word())?.strip_prefix('-')?;
            Some((type_, name.to_owned()))
        });
        let (type_, name) = known.ok_or_else(|| {
            let words = ProviderType::ALL.map(ProviderType::word).join(", ");
            format!("{}: expected TYPE-NAME with a type of {words}", provider.display())
        })?;
        for folder in folders(&provider)? {
            releases.push(Release {
                type_,
                name: name.clone(),
                version: file_name(&folder),
                components: text(&components_file(&folder)?)?,
                metadata: text(&folder.join("metadata.yaml"))?,
            });
        }
    }
    if releases.is_empty() {
        return Err(format!("{}: there are no providers", dir.display()));
    }
    releases.sort_by(|a, b| (a.type_, &a.name).cmp(&(b.type_, &b.name)));
    Ok(releases)
}

/// The only file besides the metadata: some providers use their own name for it.
fn components_file(folder: &Path) -> Result<PathBuf, String> {
    let mut files: Vec<PathBuf> = entries(folder)?
        .into_iter()
        .filter(|path| path.is_file() && file_name(path) != "metadata.yaml")
        .collect();
    match (files.pop(), files.is_empty()) {
        (Some(file), true) => Ok(file),
        _ => Err(format!(
            "{}: expected one components file beside metadata.yaml",
            folder.display()
        )),
    }
}

fn folders(dir: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(entries(dir)?.into_iter().filter(|path| path.is_dir()).collect())
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    let entries = fs::read_dir(dir).map_err(failed)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
