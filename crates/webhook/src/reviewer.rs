//! Asks an API server about the rights of the user of a review, by SubjectAccessReviews.

use std::collections::HashMap;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::discovery;
use serde_json::Value;
use tokio::sync::Mutex;
use windlass_admission::{Asker, Reference, Refusal, Right, decide};

use crate::queues::Reading;

/// How long the answers may take: with what a rule reads afterwards, shorter than API servers wait for a webhook.
const PATIENCE: Duration = Duration::from_secs(4);

/// The resources of an API group by their kinds.
type Resources = HashMap<String, String>;

/// The API server, about one user.
struct Reviewer<'a> {
    client: &'a kube::Client,
    user: &'a UserInfo,
    /// The API groups that were read for this review.
    groups: Mutex<HashMap<String, Resources>>,
}

/// Whether a user may refer to an object. It is asked when it is the review's turn.
pub(crate) async fn ask(
    client: &kube::Client,
    user: &UserInfo,
    reference: &Reference,
    place: Reading<'_>,
) -> Result<(), Refusal> {
    let name = user.username.as_deref().unwrap_or_default();
    let reviewer = Reviewer {
        client,
        user,
        groups: Mutex::default(),
    };
    let asking = async {
        let _turn = place.turn().await;
        decide(reference, name, &reviewer).await
    };
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(decided) => decided,
        Err(_) => Err(Refusal::Unknown(
            "the API server did not say in time which rights the user has; try again".to_owned(),
        )),
    }
}

impl Asker for Reviewer<'_> {
    async fn may(&self, right: &Right<'_>) -> Result<bool, String> {
        let text = |text: &str| Some(text.to_owned());
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: self.user.username.clone(),
                groups: self.user.groups.clone(),
                uid: self.user.uid.clone(),
                extra: self.user.extra.clone(),
                resource_attributes: Some(ResourceAttributes {
                    verb: text(right.verb),
                    group: text(right.group),
                    resource: text(right.resource),
                    namespace: text(right.namespace),
                    name: text(right.name),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await;
        let answer = answer.map_err(|error| format!("a SubjectAccessReview failed: {error}"))?;
        let status = answer.status.ok_or("a SubjectAccessReview has no status")?;
        Ok(status.allowed && status.denied != Some(true))
    }

    async fn read(&self, reference: &Reference) -> Result<Option<Value>, String> {
        let resource = ApiResource {
            group: reference.group.to_owned(),
            version: reference.version.to_owned(),
            api_version: format!("{}/{}", reference.group, reference.version),
            kind: reference.kind.to_owned(),
            plural: reference.resource.to_owned(),
        };
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &reference.namespace, &resource);
        let found = api.get_opt(&reference.name).await;
        let found = found.map_err(|error| format!("{} cannot be read: {error}", reference.kind))?;
        let value = found.map(serde_json::to_value).transpose();
        value.map_err(|error| error.to_string())
    }

    async fn resource(&self, group: &str, kind: &str) -> Result<Option<String>, String> {
        let mut groups = self.groups.lock().await;
        if let Some(known) = groups.get(group) {
            return Ok(known.get(kind).cloned());
        }
        let read = self.group(group).await?;
        let found = read.get(kind).cloned();
        groups.insert(group.to_owned(), read);
        Ok(found)
    }
}

impl Reviewer<'_> {
    /// The resources of an API group; none if it is not served.
    async fn group(&self, group: &str) -> Result<Resources, String> {
        let found = match discovery::group(self.client, group).await {
            Ok(found) => found,
            Err(kube::Error::Discovery(kube::error::DiscoveryError::MissingApiGroup(_))) => {
                return Ok(Resources::new());
            }
            Err(error) => return Err(format!("the kinds of API group {group} cannot be read: {error}")),
        };
        let mut resources = Resources::new();
        for (resource, _) in found.versions().flat_map(|version| found.versioned_resources(version)) {
            resources.entry(resource.kind).or_insert(resource.plural);
        }
        Ok(resources)
    }
}
