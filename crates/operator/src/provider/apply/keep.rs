//! Writing and reading what is kept.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use windlass_controller_runtime::{ObjectKey, Seen};

use super::{Run, refused, unread};
use crate::kept::{self, Release, Sealed, State};
use crate::names::{MANAGER, STATE};
use crate::prepare::read;
use crate::provider::blocked::Blocked;

impl Run<'_> {
    /// Keeps what was rendered as the next release, with what attempts before left behind.
    pub(super) async fn keep(&mut self) -> Result<(), Blocked> {
        let Some(mut sealed) = self.rendered.take() else {
            return Err(unread("nothing was rendered"));
        };
        let before = self.kept.next.take();
        if let Some(before) = &before {
            sealed.release.leftovers.extend(before.beyond(&sealed.release));
        }
        sealed.release.state = State::Next;
        self.write(&mut sealed).await?;
        // A release that is desired again is no longer the one to go back to.
        self.kept
            .previous
            .take_if(|previous| previous.secrets == sealed.release.secrets);
        let spare = before.map(|before| before.secrets).unwrap_or_default();
        let spare: Vec<_> = spare
            .into_iter()
            .filter(|name| !sealed.release.secrets.contains(name))
            .collect();
        self.kept.next = Some(sealed.release.clone());
        self.drop_secrets(&spare).await?;
        self.rendered = Some(sealed);
        Ok(())
    }

    /// Writes a release with its objects.
    pub(super) async fn write(&self, sealed: &mut Sealed) -> Result<(), Blocked> {
        let made = kept::to_secrets(self.whose.type_, &self.whose.key, sealed).map_err(|e| unread(e.to_string()))?;
        let mut names = Vec::new();
        // The first says that there is a release, so it comes last.
        for secret in made.into_iter().rev() {
            let written = self.cx.writer().apply::<Secret>(MANAGER, &secret).await;
            let name = secret.metadata.name.unwrap_or_default();
            written.map_err(|error| refused(&error, &format!("Secret {name}")))?;
            names.insert(0, name);
        }
        sealed.release.secrets = names;
        Ok(())
    }

    /// Writes what a release is, without its objects.
    pub(super) async fn update(&self, release: &Release) -> Result<(), Blocked> {
        let Some(name) = release.secrets.first() else {
            return Ok(());
        };
        let told = serde_json::to_vec(release).map_err(|error| unread(error.to_string()))?;
        let patch = json!({
            "metadata": { "annotations": { (STATE): release.state.word() } },
            "data": { "release": ByteString(told) },
        });
        let key = ObjectKey::new(self.whose.key.namespace.as_str(), name.as_str());
        let written = self.cx.writer().merge_patch::<Secret>(MANAGER, &key, &patch).await;
        written
            .map(drop)
            .map_err(|error| refused(&error, &format!("Secret {key}")))
    }

    pub(super) async fn update_current(&self) -> Result<(), Blocked> {
        match &self.kept.current {
            Some(current) => self.update(current).await,
            None => Ok(()),
        }
    }

    pub(super) async fn update_next(&self) -> Result<(), Blocked> {
        match &self.kept.next {
            Some(next) => self.update(next).await,
            None => Ok(()),
        }
    }

    /// Makes the next release the current one, and forgets the one before.
    pub(super) async fn commit(&mut self) -> Result<(), Blocked> {
        let Some(mut next) = self.kept.next.clone() else {
            return Ok(());
        };
        next.state = State::Current;
        next.leftovers = Vec::new();
        next.failure = None;
        next.left = self.hashes(&next);
        self.update(&next).await?;
        let before = std::mem::take(&mut self.kept);
        let mut before: Vec<_> = [before.current, before.previous].into_iter().flatten().collect();
        before.retain(|release| release.secrets != next.secrets);
        // What worked is kept until the new one does.
        let proven = before.iter().position(|release| release.migrated && next.replaces);
        self.kept.previous = proven.map(|at| before.remove(at));
        self.kept.current = Some(next.clone());
        self.operator.0.tracker.complete(&self.whose, &next.index);
        let spare: Vec<_> = before.into_iter().flat_map(|release| release.secrets).collect();
        self.drop_secrets(&spare).await
    }

    /// How the objects of a release were left; nothing when not all of them are known.
    fn hashes(&self, release: &Release) -> Vec<String> {
        let tracker = &self.operator.0.tracker;
        tracker.hashes(&self.whose, &release.index).unwrap_or_default()
    }

    /// Writes down how the objects of the current release were left, unless that is known.
    pub(super) async fn record(&mut self) -> Result<(), Blocked> {
        let Some(mut current) = self.kept.current.clone() else {
            return Ok(());
        };
        let left = self.hashes(&current);
        if left != current.left {
            current.left = left;
            self.update(&current).await?;
            self.kept.current = Some(current);
        }
        Ok(())
    }

    /// A release with its objects.
    pub(super) async fn load(&self, release: &Release) -> Result<Sealed, Blocked> {
        if let Some(rendered) = &self.rendered
            && rendered.release.secrets == release.secrets
        {
            return Ok(Sealed {
                release: release.clone(),
                packed: rendered.packed.clone(),
            });
        }
        read::release(self.cx, self.operator, &self.declaration.me, release).await
    }

    /// Deletes Secrets of releases that are no longer kept.
    pub(super) async fn drop_secrets(&self, names: &[String]) -> Result<(), Blocked> {
        for name in names {
            let key = ObjectKey::new(self.whose.key.namespace.as_str(), name.as_str());
            let found = match self.cx.read::<Secret>(&key).await {
                Seen::Found(secret) => secret,
                Seen::NotFound => continue,
                Seen::Failed(why) => return Err(unread(why)),
            };
            let deleted = self.cx.writer().delete(&found).await;
            deleted.map_err(|error| refused(&error, &format!("Secret {key}")))?;
        }
        Ok(())
    }
}
