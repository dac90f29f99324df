//! MachineDrainRules: which of them are about a Machine, and what they say of a Pod. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass_api::core::{MachineDrainRule, MachineDrainRuleDrainConfig};
use windlass_api::k8s::Pod;
use windlass_contract::{Labels, Selector};
use windlass_controller_runtime::Seen;

/// The labels of namespaces, by their names.
pub(crate) type Namespaces = BTreeMap<String, Labels>;

/// The rules that are about a Machine, by their names: the first that is about a Pod decides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    name: String,
    drain: MachineDrainRuleDrainConfig,
    /// Selectors of Pods and of their namespaces. The rule is about all Pods when there is none.
    pods: Vec<(Selector, Selector)>,
}

/// What is done with a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// It is evicted, after those with a lower order.
    Drain(i32),
    /// It is left alone.
    Skip,
    /// It is waited for.
    WaitCompleted,
}

impl Rules {
    /// Those of these rules that are about a Machine with these labels of a Cluster with those. An invalid selector is an error, whichever
    /// rule has it: what it is about is unknown.
    pub(crate) fn about(
        all: &[Arc<MachineDrainRule>],
        machine: Option<&Labels>,
        cluster: Option<&Labels>,
    ) -> Result<Self, String> {
        let mut rules = Vec::new();
        for rule in all {
            let name = rule.metadata.name.clone().unwrap_or_default();
            let invalid = |why: String| {
                format!("failed to get matching MachineDrainRules: invalid selectors in MachineDrainRule {name}: {why}")
            };
            let mut is_about = rule.spec.machines.is_empty();
            for (at, entry) in rule.spec.machines.iter().enumerate() {
                let field = |selector: &str| format!("spec.machines[{at}].{selector}");
                let of_machine = parse(entry.selector.as_ref(), || field("selector")).map_err(invalid)?;
                let of_cluster =
                    parse(entry.cluster_selector.as_ref(), || field("clusterSelector")).map_err(invalid)?;
                is_about |= of_machine.matches(machine) && of_cluster.matches(cluster);
            }
            let mut pods = Vec::new();
            for (at, entry) in rule.spec.pods.iter().enumerate() {
                let field = |selector: &str| format!("spec.pods[{at}].{selector}");
                let of_pod = parse(entry.selector.as_ref(), || field("selector")).map_err(invalid)?;
                let of_namespace =
                    parse(entry.namespace_selector.as_ref(), || field("namespaceSelector")).map_err(invalid)?;
                pods.push((of_pod, of_namespace));
            }
            if is_about {
                let drain = rule.spec.drain.clone();
                rules.push(Rule { name, drain, pods });
            }
        }
        rules.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self(rules))
    }

    /// Whether the labels of namespaces decide.
    pub(crate) fn ask_for_namespaces(&self) -> bool {
        let mut entries = self.0.iter().flat_map(|rule| &rule.pods);
        entries.any(|(_, of_namespace)| !of_namespace.is_everything())
    }

    /// What the first rule says that is about a Pod; without one it is evicted. An error says why that is unknown.
    pub(crate) fn behavior(&self, pod: &Pod, namespaces: &Seen<Namespaces>) -> Result<Behavior, String> {
        for rule in &self.0 {
            if rule.is_about(pod, namespaces)? {
                return rule.behavior();
            }
        }
        Ok(Behavior::Drain(0))
    }
}

impl Rule {
    fn is_about(&self, pod: &Pod, namespaces: &Seen<Namespaces>) -> Result<bool, String> {
        for (of_pod, of_namespace) in &self.pods {
            if of_pod.matches(pod.metadata.labels.as_ref())
                && (of_namespace.is_everything() || of_namespace.matches(Some(namespace_of(pod, namespaces)?)))
            {
                return Ok(true);
            }
        }
        Ok(self.pods.is_empty())
    }

    fn behavior(&self) -> Result<Behavior, String> {
        match self.drain.behavior.as_str() {
            "Drain" => Ok(Behavior::Drain(self.drain.order.unwrap_or(0))),
            "Skip" => Ok(Behavior::Skip),
            "WaitCompleted" => Ok(Behavior::WaitCompleted),
            other => Err(format!(
                "MachineDrainRule \"{}\" has unknown spec.drain.behavior: \"{other}\"",
                self.name
            )),
        }
    }
}

/// A selector; one that is not there matches everything.
fn parse(selector: Option<&LabelSelector>, field: impl Fn() -> String) -> Result<Selector, String> {
    let parsed = selector.map(Selector::parse).transpose();
    parsed
        .map(Option::unwrap_or_default)
        .map_err(|error| format!("{}.{error}", field()))
}

/// The labels of a Pod's namespace.
fn namespace_of<'a>(pod: &Pod, namespaces: &'a Seen<Namespaces>) -> Result<&'a Labels, String> {
    let name = pod.metadata.namespace.as_deref().unwrap_or_default();
    match namespaces {
        Seen::Found(all) => all
            .get(name)
            .ok_or_else(|| format!("Namespace {name} of a Pod does not exist")),
        Seen::NotFound => Err(format!("Namespace {name} of a Pod does not exist")),
        Seen::Failed(why) => Err(format!("failed to list Namespaces: {why}")),
    }
}
