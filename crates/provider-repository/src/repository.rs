//! A provider's repository: its versions, and the two files of a version.

use crate::credentials::Credentials;
use crate::error::Error;
use crate::http::Client;
use crate::names::{METADATA, Names};
use crate::source::{Place, Source};
use crate::version;
use crate::{folder, github, gitlab, oci, web};

/// The number of newest versions to check for a complete release: a tag exists before its files.
const LOOKED_AT: usize = 5;

/// The two files of a version, as published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The objects, with variables.
    pub components: String,
    /// The contracts of release series.
    pub metadata: String,
    /// The origin of the components, for messages.
    pub from: String,
}

/// The source of a provider's files, and the client for it.
pub struct Repository {
    pub(crate) client: Client,
    pub(crate) source: Source,
    pub(crate) names: Names,
    pub(crate) credentials: Credentials,
}

impl Repository {
    /// Makes no request yet.
    pub fn new(client: Client, source: Source, names: Names, credentials: Credentials) -> Result<Self, Error> {
        if let Place::Folder { label, .. } = &source.place {
            let url = source.to_string();
            if !client.reads_folders() {
                return Err(Error::LocalFolder { url });
            }
            if *label != names.label() {
                let why = format!("the folder above the versions has to be called {:?}", names.label());
                return Err(Error::InvalidUrl { url, why });
            }
        }
        Ok(Self {
            client,
            source,
            names,
            credentials,
        })
    }

    /// The versions, in rising order: tags that are semantic versions, including pre-releases.
    pub async fn versions(&self) -> Result<Vec<String>, Error> {
        let versions = match &self.source.place {
            Place::GitHub(place) => github::versions(self, place).await?,
            Place::GitLab(place) => gitlab::versions(self, place).await?,
            Place::Web(base) => web::versions(self, base).await?,
            Place::Folder { base, label } => folder::versions(base, label).await?,
            Place::Oci(reference) => oci::versions(self, reference).await?,
        };
        let versions = version::sorted(versions);
        if versions.is_empty() {
            return Err(Error::NoVersions { place: self.place() });
        }
        Ok(versions)
    }

    /// The default version: the one in the address, else the highest stable one with a complete release, else the highest
    /// pre-release.
    pub async fn default_version(&self) -> Result<String, Error> {
        if let Some(pinned) = self.source.pinned() {
            return Ok(pinned.to_owned());
        }
        let versions = self.versions().await?;
        let candidates = version::candidates(&versions);
        for candidate in candidates.iter().take(LOOKED_AT) {
            match self.metadata(candidate).await {
                Ok(_) => return Ok((*candidate).to_owned()),
                Err(error) if error.is_absent() => {}
                Err(error) => return Err(error),
            }
        }
        // None is complete. Fetching the first one reports what is missing.
        Ok(candidates.first().map(|&first| first.to_owned()).unwrap_or_default())
    }

    /// The metadata of a version, with the contracts of its release series.
    pub async fn metadata(&self, version: &str) -> Result<String, Error> {
        match &self.source.place {
            Place::GitHub(place) => github::file(self, place, version, METADATA).await,
            Place::GitLab(place) => gitlab::file(self, place, version, METADATA).await,
            Place::Web(base) => web::file(self, base, version, METADATA).await,
            Place::Folder { base, label } => folder::file(base, label, version, METADATA).await,
            Place::Oci(reference) => oci::metadata(self, reference, version).await,
        }
    }

    /// Both files of a version.
    pub async fn files(&self, version: &str) -> Result<Files, Error> {
        let name = self.components_file();
        let components = match &self.source.place {
            Place::Oci(reference) => return oci::files(self, reference, version).await,
            Place::GitHub(place) => github::file(self, place, version, &name).await?,
            Place::GitLab(place) => gitlab::file(self, place, version, &name).await?,
            Place::Web(base) => web::file(self, base, version, &name).await?,
            Place::Folder { base, label } => folder::file(base, label, version, &name).await?,
        };
        Ok(Files {
            components,
            metadata: self.metadata(version).await?,
            from: format!("{} {version} {name}", self.place()),
        })
    }

    /// Name of the component file: from the address, else from the provider type.
    pub fn components_file(&self) -> String {
        self.source
            .components
            .clone()
            .unwrap_or_else(|| self.names.components_file())
    }

    /// Its location, for messages.
    pub fn place(&self) -> String {
        self.source.to_string()
    }

    /// The error for a missing file of a known version.
    pub(crate) fn absent(&self, version: &str, file: &str, available: Vec<String>) -> Error {
        let (place, version) = (self.place(), version.to_owned());
        match file {
            METADATA => Error::NoMetadata { place, version },
            file => Error::FileNotFound {
                place,
                version,
                file: file.to_owned(),
                available,
            },
        }
    }

    /// The error for a missing file of an unknown version: the list of versions determines whether the version or the file is
    /// missing.
    pub(crate) async fn absent_or_no_version(&self, version: &str, file: &str) -> Error {
        match self.versions().await {
            Ok(available) if !available.iter().any(|known| known == version) => Error::VersionNotFound {
                place: self.place(),
                version: version.to_owned(),
                available,
            },
            Err(error @ (Error::RepositoryNotFound { .. } | Error::NoVersions { .. })) => error,
            _ => self.absent(version, file, Vec::new()),
        }
    }
}
