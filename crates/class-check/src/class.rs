//! A ClusterClass with its templates: what can be told from their texts, and what a trial of its patches shows.

mod blame;
mod blueprint;
mod example;
mod reference;
mod scenario;
mod trial;
mod usage;

pub(crate) use blueprint::{Parts, blueprint, first_plan, objects};

use windlass_topology::model::{ClassSpec, read};

use crate::finding::Finding;
use crate::library::{Entry, Library};

/// What is found about a class beside what is wrong with the object by itself.
pub(crate) fn lint(library: &Library, class: &Entry) -> Vec<Finding> {
    // What cannot be read violates the schema, which says so.
    let Ok(spec) = read::<ClassSpec>(&class.stored, "/spec") else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let of_class = reference::problems(library, class, &spec)
        .into_iter()
        .chain(usage::problems(class, &spec));
    findings.extend(of_class.map(|problem| class.object.finding(problem)));
    findings.extend(trial::findings(library, class, &spec));
    findings
}
