//! Rules, compiled once for each schema.

use serde_json::Value;
use windlass_schema::{Additional, Kind, Node, Patterns, Schema, Steps};

use crate::program::Program;

/// The compiled rules of a schema. A level of the schema has a number, which is the index of its rules.
#[derive(Debug, Default)]
pub(crate) struct Rules(Vec<Vec<Rule>>);

impl Rules {
    /// Compiles all rules of a schema. An error of a rule is reported when a definition is reviewed, and when the rule is evaluated.
    pub(crate) fn compile(schema: &Schema, patterns: &Patterns) -> Self {
        let mut rules = Self::default();
        rules.add(schema.root(), patterns);
        rules
    }

    fn add(&mut self, node: &Node, patterns: &Patterns) {
        if !node.has_rules() {
            return;
        }
        if let Some(written) = &node.rules {
            if self.0.len() <= written.level {
                self.0.resize_with(written.level + 1, Vec::new);
            }
            let rules = written.rules.iter().map(|rule| Rule::compile(rule, node, patterns));
            self.0[written.level] = rules.collect();
        }
        let values = match &node.additional {
            Additional::Values(values) => Some(values.as_ref()),
            _ => None,
        };
        let below = node.properties.values().chain(values).chain(node.items.as_deref());
        below.for_each(|node| self.add(node, patterns));
    }

    /// The rules of one level.
    pub(crate) fn of(&self, node: &Node) -> &[Rule] {
        let level = node.rules.as_ref().and_then(|written| self.0.get(written.level));
        level.map(Vec::as_slice).unwrap_or_default()
    }
}

/// One rule.
pub(crate) struct Rule {
    pub(crate) source: String,
    /// The program, or why there is none.
    pub(crate) program: Result<Program, String>,
    pub(crate) message: Option<String>,
    pub(crate) message_expression: Option<Result<Program, String>>,
    pub(crate) reason: Kind,
    pub(crate) field_path: String,
    pub(crate) optional_old_self: Option<bool>,
    pub(crate) uses_old_self: bool,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rule").field(&self.source).finish()
    }
}

impl Rule {
    /// Compiles a rule that stands on `node`. What is wrong with it is said when a definition is reviewed.
    fn compile(rule: &Value, node: &Node, patterns: &Patterns) -> Self {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).filter(|t| !t.is_empty());
        let source = text("rule").unwrap_or_default().to_owned();
        let program = Program::compile(&source, patterns);
        let reason = match text("reason") {
            Some("FieldValueForbidden") => Kind::Forbidden,
            Some("FieldValueRequired") => Kind::Required,
            Some("FieldValueDuplicate") => Kind::Duplicate,
            _ => Kind::Invalid,
        };
        let field_path = text("fieldPath").and_then(|path| Steps::parse(path, node, true).ok());
        Self {
            uses_old_self: program.as_ref().is_ok_and(|program| program.uses("oldSelf")),
            program,
            message: text("message").map(|m| m.trim().to_owned()),
            message_expression: text("messageExpression").map(|text| Program::compile(text, patterns)),
            reason,
            field_path: field_path.map(|steps| steps.to_string()).unwrap_or_default(),
            optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
            source,
        }
    }

    /// Whether there is nothing to evaluate.
    pub(crate) fn is_empty(&self) -> bool {
        self.source.trim().is_empty()
    }

    /// What stands for the rule in messages.
    pub(crate) fn shown(&self) -> &str {
        self.message.as_deref().unwrap_or(self.source.trim())
    }

    pub(crate) fn default_message(&self) -> String {
        self.message
            .clone()
            .unwrap_or_else(|| format!("failed rule: {}", self.source.trim()))
    }
}
