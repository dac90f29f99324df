//! A web server with releases, on loopback: one folder per provider, with one folder per version.

use windlass_fake_providers::Forge;

use super::files::Release;

/// The server; it ends when dropped.
pub(crate) struct Web(Forge);

impl Web {
    /// Serves the files of releases.
    pub(crate) async fn serve(releases: impl Iterator<Item = &Release>) -> Result<Self, String> {
        let forge = Forge::start().await;
        let forge = forge.map_err(|error| format!("cannot listen on loopback: {error}"))?;
        for release in releases {
            let files = [
                (release.type_.components_file(), release.components.clone()),
                ("metadata.yaml".to_owned(), release.metadata.clone()),
            ];
            forge.folder(&format!("{}/{}", release.label(), release.version), &files);
        }
        Ok(Self(forge))
    }

    /// The URL of a provider's versions.
    pub(crate) fn url(&self, release: &Release) -> String {
        format!("http://{}/{}", self.0.plain(), release.label())
    }
}
