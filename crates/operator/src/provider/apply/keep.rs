//! Writing and reading what is kept.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use windlass_controller_runtime::{Deleted, ErrorKind, ObjectKey, Seen, Stored as _, WriteError};

use super::{Run, refused, unread};
use crate::kept::{self, Kept, Release, Sealed, State, vouched};
use crate::names::{MANAGER, STATE, VOUCHED};
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
        self.sweep().await?;
        self.rendered = Some(sealed);
        Ok(())
    }

    /// Writes a release with its objects.
    pub(super) async fn write(&mut self, sealed: &mut Sealed) -> Result<(), Blocked> {
        sealed.stamp();
        let made = kept::to_secrets(self.whose.type_, &self.whose.key, sealed).map_err(|e| unread(e.to_string()))?;
        let names: Vec<_> = made.iter().filter_map(|secret| secret.metadata.name.clone()).collect();
        let head = names.first().cloned().unwrap_or_default();
        let digest = self.vouch(&head, &sealed.release).await?;
        // The first says that there is a release, so it comes last.
        for secret in made.iter().rev() {
            self.write_secret(secret).await?;
        }
        self.kept.vouched.written(&head, &digest);
        sealed.release.secrets = names;
        Ok(())
    }

    /// Writes a Secret, whatever is stored under its name. Some of what others may have made of it cannot be changed.
    async fn write_secret(&self, secret: &Secret) -> Result<(), Blocked> {
        let name = secret.metadata.name.clone().unwrap_or_default();
        let object = secret.to_json();
        let mut written = self.cx.writer().apply_sent(MANAGER, &object).await;
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::Invalid) {
            self.drop_secrets(std::slice::from_ref(&name)).await?;
            written = self.cx.writer().apply_sent(MANAGER, &object).await;
        }
        written
            .map(drop)
            .map_err(|error| refused(&error, &format!("Secret {name}")))
    }

    /// Writes what a release is, without its objects.
    pub(super) async fn update(&mut self, release: &Release) -> Result<(), Blocked> {
        let Some(name) = release.secrets.first() else {
            return Ok(());
        };
        let digest = self.vouch(name, release).await?;
        let told = kept::told(release).map_err(|error| unread(error.to_string()))?;
        let patch = json!({
            "metadata": { "annotations": { (STATE): release.state.word() } },
            "data": { "release": ByteString(told) },
        });
        let key = ObjectKey::new(self.whose.key.namespace.as_str(), name.as_str());
        let written = self.cx.writer().merge_patch::<Secret>(MANAGER, &key, &patch).await;
        if let Err(error) = written {
            if error.kind() != ErrorKind::Invalid {
                return Err(refused(&error, &format!("Secret {key}")));
            }
            // A user may have made it immutable. Its objects are read before it is deleted.
            tracing::warn!(secret = %key, "cannot be changed, as it is immutable or a policy refuses it: it is written again");
            let mut sealed = self.load(release).await?;
            return Box::pin(self.write(&mut sealed)).await;
        }
        self.kept.vouched.written(name, &digest);
        Ok(())
    }

    /// Has the declaration say that the operator is about to write a release, and gives back its digest.
    async fn vouch(&mut self, secret: &str, release: &Release) -> Result<String, Blocked> {
        let told = kept::told(release).map_err(|error| unread(error.to_string()))?;
        let digest = vouched::digest(release.state, &told);
        self.kept.vouched.expect(secret, release, &digest);
        self.write_vouched().await?;
        Ok(digest)
    }

    /// Forgets the digests of releases that are no longer kept.
    pub(super) async fn drop_vouched(&mut self) -> Result<(), Blocked> {
        let heads: Vec<_> = self.kept.heads().into_iter().map(str::to_owned).collect();
        self.kept.vouched.retain(&heads);
        self.write_vouched().await
    }

    async fn write_vouched(&mut self) -> Result<(), Blocked> {
        let text = self.kept.vouched.text();
        if self.kept.vouched.stored.as_ref() == Some(&text) {
            return Ok(());
        }
        let patch = json!({ "metadata": { "annotations": { (VOUCHED): text } } });
        let (writer, gvk) = (self.cx.writer(), self.declaration.object.gvk());
        let written = writer.merge_patch_value(MANAGER, &gvk, &self.whose.key, &patch).await;
        written.map_err(|error| refused(&error, "the declaration"))?;
        self.kept.vouched.stored = Some(text);
        Ok(())
    }

    /// Deletes what is stored as a release and was not written by the operator, and what is no longer needed.
    pub(super) async fn sweep(&mut self) -> Result<(), Blocked> {
        let in_use: Vec<_> = self
            .kept
            .releases()
            .flat_map(|release| release.secrets.clone())
            .collect();
        let strange = std::mem::take(&mut self.kept.strange);
        let names = strange.into_iter().flat_map(|strange| strange.secrets);
        let names = names.chain(std::mem::take(&mut self.kept.spare));
        // What was written since then, under the same name, stays.
        let names: Vec<_> = names.filter(|name| !in_use.contains(name)).collect();
        self.drop_secrets(&names).await
    }

    pub(super) async fn update_current(&mut self) -> Result<(), Blocked> {
        match self.kept.current.clone() {
            Some(current) => self.update(&current).await,
            None => Ok(()),
        }
    }

    pub(super) async fn update_next(&mut self) -> Result<(), Blocked> {
        match self.kept.next.clone() {
            Some(next) => self.update(&next).await,
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
        let fresh = Kept {
            vouched: self.kept.vouched.clone(),
            strange: std::mem::take(&mut self.kept.strange),
            spare: std::mem::take(&mut self.kept.spare),
            ..Kept::default()
        };
        let before = std::mem::replace(&mut self.kept, fresh);
        let mut before: Vec<_> = [before.current, before.previous].into_iter().flatten().collect();
        before.retain(|release| release.secrets != next.secrets);
        // What worked is kept until the new one does.
        let proven = before.iter().position(|release| release.migrated && next.replaces);
        self.kept.previous = proven.map(|at| before.remove(at));
        self.kept.current = Some(next.clone());
        self.operator.0.tracker.complete(&self.whose, &next.index);
        let spare: Vec<_> = before.into_iter().flat_map(|release| release.secrets).collect();
        self.drop_secrets(&spare).await?;
        self.sweep().await?;
        self.drop_vouched().await
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
            let writer = self.cx.writer();
            let failed = |error: WriteError| refused(&error, &format!("Secret {key}"));
            if writer.delete(&found).await.map_err(failed)? != Deleted::Going {
                continue;
            }
            // The operator sets no finalizers on its Secrets, so no controller has anything to clean up for them.
            let held = match self.cx.read::<Secret>(&key).await {
                Seen::Found(secret) if secret.metadata.uid == found.metadata.uid => secret,
                Seen::Found(_) | Seen::NotFound => continue,
                Seen::Failed(why) => return Err(unread(why)),
            };
            for finalizer in held.metadata.finalizers.iter().flatten() {
                writer
                    .remove_finalizer(MANAGER, &held, finalizer)
                    .await
                    .map_err(failed)?;
            }
        }
        Ok(())
    }
}
