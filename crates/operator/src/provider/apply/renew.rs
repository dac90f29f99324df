//! Certificates that are about to end.

use windlass_api_operator::reasons as known;
use windlass_kit::Until;

use super::{Run, unread};
use crate::certificates::{Office, ask_again};
use crate::kept::{State, walk};
use crate::prepare::{read, render};
use crate::provider::blocked::{Blocked, Stage};

impl Run<'_> {
    /// Issues certificates again: the same objects, with what is asked of cert-manager among them again, go the same way as when the
    /// release was rendered. Nothing is fetched.
    pub(super) async fn renew(&mut self) -> Result<(), Blocked> {
        let Some(current) = self.kept.current.clone() else {
            return Ok(());
        };
        let label = self.whose.type_.label(&self.whose.key.name);
        let live = read::certificates(self.cx, &self.whose.key, self.whose.type_).await?;
        let office = Office {
            label: &label,
            namespace: &self.whose.key.namespace,
            keys: &self.operator.0.keys,
            live: &live,
            now: self.cx.now(),
        };
        let sealed = self.load(&current).await?;
        let mut issued: Vec<_> = current
            .asked
            .iter()
            .filter_map(|o| o["spec"]["secretName"].as_str())
            .collect();
        let authority = office.authority();
        issued.push(&authority);
        let mut objects = Vec::new();
        for object in walk(&sealed.packed) {
            let object = object.map_err(|error| unread(error.to_string()))?;
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if object["kind"] != "Secret" || !issued.contains(&name) {
                objects.push(object);
            }
        }
        ask_again(&mut objects, &current.asked);
        let issued = office.stand_in(&mut objects);
        let failed = |reason, message| Blocked::new(Stage::Install, reason, message).until(Until::Backoff);
        let issued = issued.map_err(|error| failed(known::COMPONENTS_CUSTOMIZATION_ERROR, error))?;
        let mut release = current;
        release.renew = issued.again;
        release.state = State::Current;
        release.left = Vec::new();
        let before = std::mem::take(&mut release.secrets);
        let mut sealed = render::seal(release, objects, &label, false)
            .map_err(|error| failed(known::COMPONENTS_FETCH_ERROR, error.to_string()))?;
        self.write(&mut sealed).await?;
        let spare: Vec<_> = before
            .into_iter()
            .filter(|name| !sealed.release.secrets.contains(name))
            .collect();
        self.drop_secrets(&spare).await?;
        self.kept.current = Some(sealed.release.clone());
        self.operator.0.tracker.doubt(&self.whose);
        self.rendered = Some(sealed);
        self.repair(None).await
    }
}
