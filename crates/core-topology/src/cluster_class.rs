//! The ClusterClass controller: reports which variables a class and the extensions of its patches define and whether its references are up to
//! date, and adds owner references to its templates.

mod apply;
mod observe;
mod plan;
pub(crate) mod preview;
mod status;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases hand in literals")]
mod tests;

use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::ClusterClass;
use windlass_api::kind::ApiKind as _;
use windlass_api::meta::MetaExt as _;
use windlass_api::runtime::ExtensionConfig;
use windlass_controller_runtime::{Controller, Cx, Decision, Dynamic, Moment, NoQuestion, ObjectKey, Watch};
use windlass_runtime_client::Extensions;

/// Reconciles ClusterClasses.
#[derive(Debug)]
pub(crate) struct ClusterClasses {
    extensions: Extensions,
}

impl ClusterClasses {
    pub(crate) fn new(extensions: Extensions) -> Self {
        Self { extensions }
    }
}

/// Index of classes by the templates they name.
const BY_TEMPLATE: &str = "template";

/// Adds the index of classes by the templates they name.
pub(crate) fn index(cx: &Cx) {
    cx.cache::<ClusterClass>().add_index(BY_TEMPLATE, observe::templates_of);
}

/// The classes that name a template.
pub(crate) fn naming(cx: &Cx, template: &Dynamic) -> Vec<ObjectKey> {
    let classes = cx.cache::<ClusterClass>();
    let classes = classes.by_index(BY_TEMPLATE, &observe::index_of(template));
    classes.iter().map(|class| class.key()).collect()
}

impl Controller for ClusterClasses {
    type Kind = ClusterClass;
    type Observed = observe::Observed;
    type Question = NoQuestion;
    type Plan = plan::Plan;
    type Done = apply::Done;

    const NAME: &'static str = "clusterclass";
    const MANAGER: &'static str = apply::MANAGER;
    const STATUS_MANAGER: &'static str = "capi-clusterclass-status";
    const FINALIZER: Option<&'static str> = None;

    fn cluster_of(_object: &ClusterClass) -> Option<ObjectKey> {
        None
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::source(|cx, _| index(&cx)),
            Watch::dynamic_map(|cx, old, new| {
                let Some(object) = new.or(old) else { return Vec::new() };
                // Only coming, going and changes of ownership matter here.
                if let (Some(old), Some(new)) = (old, new)
                    && old.metadata().owner_references == new.metadata().owner_references
                    && old.metadata().annotations == new.metadata().annotations
                {
                    return Vec::new();
                }
                naming(cx, object)
            }),
            // It may define other variables, or be there at last.
            Watch::map::<ExtensionConfig>(|cx, old, new| {
                let Some(config) = new.or(old) else { return Vec::new() };
                let classes = cx.cache::<ClusterClass>().all();
                let asks = |class: &&Arc<ClusterClass>| observe::asks(class, config.metadata.name());
                classes.iter().filter(asks).map(|class| class.key()).collect()
            }),
        ]
    }

    async fn observe(&self, cx: &Cx, object: Arc<ClusterClass>) -> observe::Observed {
        observe::observe(cx, object, &self.extensions).await
    }

    fn plan(&self, seen: &observe::Observed, _: &Moment) -> Decision<plan::Plan, NoQuestion> {
        plan::plan(seen).into()
    }

    async fn apply(&self, cx: &Cx, _seen: &observe::Observed, plan: &plan::Plan) -> apply::Done {
        apply::apply(cx, plan).await
    }

    fn status(&self, seen: &observe::Observed, plan: &plan::Plan, _: &apply::Done, now: &Moment) -> Option<Value> {
        status::status(seen, plan, now.now())
    }
}
