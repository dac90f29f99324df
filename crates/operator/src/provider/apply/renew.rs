//! Certificates that were issued again.

use super::Run;
use crate::kept::{Release, Sealed};
use crate::provider::blocked::Blocked;

impl Run<'_> {
    /// Keeps the current release with the certificates that were issued again, and applies it.
    pub(super) async fn renew(&mut self) -> Result<(), Blocked> {
        let (Some(current), Some(renewed)) = (self.kept.current.clone(), self.renewed) else {
            return Ok(());
        };
        let before = current.secrets.clone();
        // Actions before this one may have changed the rest of the release.
        let mut sealed = Sealed {
            release: Release {
                renew: renewed.release.renew,
                renewals: renewed.release.renewals,
                index: renewed.release.index.clone(),
                left: Vec::new(),
                secrets: Vec::new(),
                ..current
            },
            packed: renewed.packed.clone(),
        };
        self.write(&mut sealed).await?;
        let spare: Vec<_> = before
            .into_iter()
            .filter(|name| !sealed.release.secrets.contains(name))
            .collect();
        self.drop_secrets(&spare).await?;
        self.kept.current = Some(sealed.release.clone());
        self.drop_vouched().await?;
        self.operator.0.tracker.doubt(&self.whose);
        self.rendered = Some(sealed);
        self.repair(None).await
    }
}
