//! Checks that defaults are valid values of their schemas.

use crate::error::{FieldError, Kind};
use crate::node::Node;
use crate::path::Path;
use crate::review::RuleReview;
use crate::validation::apart;

/// Checks that every default is a valid value of its own schema. `resource` is the root of an API object.
pub(crate) fn check_defaults(
    node: &Node,
    resource: bool,
    at: &str,
    rules: &mut dyn RuleReview,
    errors: &mut Vec<FieldError>,
) {
    if !node.has_defaults && node.default.is_none() {
        return;
    }
    if let Some(default) = &node.default {
        let here = format!("{at}.default");
        let path = Path::Root(&here);
        let mut unknown = crate::strict::StrictErrors::default();
        crate::pruning::look(node, default, false, &path, &mut unknown);
        if !unknown.is_empty() {
            let words = "must not have unknown fields";
            errors.push(FieldError::new(
                here.clone(),
                Kind::Invalid,
                Some(default.clone()),
                words,
            ));
        }
        let start = errors.len();
        errors.extend(apart(node, default, None, &path));
        if errors.len() == start {
            rules.default(node, default, &path, errors);
        }
    }
    if let Some(child) = &node.items {
        check_defaults(child, false, &format!("{at}.items"), rules, errors);
    }
    for (name, child) in &node.properties {
        // Defaults of metadata are refused elsewhere.
        if !(resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata")) {
            check_defaults(child, false, &format!("{at}.properties[{name}]"), rules, errors);
        }
    }
}
