//! Taking out of the way what was installed of a provider that is built in now.

use super::Run;
use crate::kept::Kept;
use crate::objects::ObjectRef;
use crate::provider::blocked::Blocked;

impl Run<'_> {
    /// Deletes these objects of the kept releases, webhooks first, and forgets the releases.
    pub(super) async fn retire(&mut self, objects: &[ObjectRef]) -> Result<(), Blocked> {
        self.operator.0.tracker.forget(&self.whose);
        self.delete_in_turn(objects.to_vec()).await?;
        self.drop_kept().await?;
        self.kept = Kept {
            vouched: self.kept.vouched.clone(),
            ..Kept::default()
        };
        self.drop_vouched().await
    }
}
