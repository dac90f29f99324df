//! Go text templates with the deterministic Sprig functions: the only template engine of the project.
//!
//! Values of Helm charts, patches of ClusterClasses, names of Machines and files of bootstrap data are Go templates. This crate
//! implements the language: syntax, types and functions are those of Go's text/template and of Sprig, and tests compare them with
//! the real engine (`testdata`). It reads neither a clock nor the environment, the network or a random source, and walks maps in
//! the order of their keys: the same template and data always give the same text. A template may come from any user, so its
//! depth, iterations and output are limited.

mod budget;
mod builtins;
mod exec;
mod functions;
mod knowledge;
mod lexer;
mod machine;
mod number;
mod parser;
mod print;
mod sprig;
mod syntax;
mod uses;
mod value;

use std::sync::OnceLock;

use serde_json::Value as Json;
use windlass_meta::budget::NAME_COST;

pub use budget::Budget;
pub use functions::Functions;
pub use knowledge::{Form, Knowledge, Member};
pub use uses::Uses;

use machine::Machine;
use parser::Parsed;
use value::{Entries, Numbers, Value};

/// The policy for missing values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Write `<no value>`, as Go does.
    Print,
    /// Fail if one is written; conditions and loops treat it as empty.
    Refuse,
    /// Fail if one is looked up.
    Fail,
}

/// The rules of rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The policy for missing values.
    pub missing: Missing,
    /// Whether numbers of different types are comparable, and functions convert their arguments, where Go requires exact types.
    pub lenient: bool,
}

impl Rules {
    /// The rules of Go.
    pub const GO: Self = Self {
        missing: Missing::Print,
        lenient: false,
    };
}

/// An error in parsing or rendering a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is not a valid template.
    #[error("template cannot be parsed: line {line}: {why}")]
    Parse {
        /// The line, from 1.
        line: usize,
        /// The cause.
        why: String,
    },
    /// Rendering failed.
    #[error("template cannot be rendered: line {line}: {why}")]
    Render {
        /// The line of the action, from 1.
        line: usize,
        /// The cause.
        why: String,
    },
    /// The template writes a missing value.
    #[error("template uses a field that does not exist: line {line}: {}", if path.is_empty() { "the value is null or was never given" } else { path })]
    Missing {
        /// The line of the action, from 1.
        line: usize,
        /// The path of the missing value; empty if unknown.
        path: String,
    },
}

/// A parsed template, which can be rendered any number of times.
#[derive(Clone, Debug)]
pub struct Template {
    parsed: Parsed,
    uses: Uses,
}

impl Template {
    /// Parses a template. All functions in it must exist.
    pub fn parse(text: &str, functions: Functions) -> Result<Self, TemplateError> {
        let parsed = parser::parse(text, functions).map_err(|(line, why)| TemplateError::Parse { line, why })?;
        let uses = uses::of(&parsed);
        Ok(Self { parsed, uses })
    }

    /// Renders it with data.
    pub fn render(&self, data: &Json, rules: Rules) -> Result<String, TemplateError> {
        self.render_within(data, rules, &mut Budget::default())
    }

    /// Renders it with data, and takes the cost from a budget.
    pub fn render_within(&self, data: &Json, rules: Rules, budget: &mut Budget) -> Result<String, TemplateError> {
        let mut machine = Machine::new(rules, None, budget.clone());
        let loaded = match data {
            Json::Null => Ok(Value::Missing(None)),
            Json::Object(fields) => machine.heap.load_used(fields, &self.uses).map_err(too_large),
            data => machine.heap.load(data, Numbers::Unstructured).map_err(too_large),
        };
        let shown = loaded.and_then(|data| exec::render(&self.parsed, &mut machine, &data));
        *budget = machine.heap.budget();
        shown
    }

    /// Renders it with data of a known form.
    pub fn render_known(
        &self,
        objects: &[(&str, &Json)],
        form: Form,
        knowledge: &dyn Knowledge,
        rules: Rules,
    ) -> Result<String, TemplateError> {
        let mut machine = Machine::new(rules, Some(knowledge), Budget::default());
        let mut entries = Entries::new();
        for (name, object) in objects {
            let form = knowledge.child(form, name);
            let value = machine
                .heap
                .load_form(object, &format!(".{name}"), form, knowledge)
                .map_err(too_large)?;
            entries.insert((*name).into(), value);
        }
        let data = machine.heap.new_root(entries, form).map_err(too_large)?;
        exec::render(&self.parsed, &mut machine, &data)
    }

    /// The top-level names of the data that it refers to.
    pub fn uses(&self) -> &Uses {
        &self.uses
    }
}

/// The data itself exceeds the limit; the error has no line.
fn too_large(fault: value::Fault) -> TemplateError {
    let value::Fault::Failed(why) = fault else {
        return TemplateError::Missing {
            line: 1,
            path: String::new(),
        };
    };
    TemplateError::Render {
        line: 1,
        why: format!("the data: {why}"),
    }
}

/// Checks that `text` parses and that its functions exist.
pub fn check(text: &str) -> Result<(), TemplateError> {
    Template::parse(text, Functions::Sprig).map(drop)
}

/// The rules for templates that were written for an engine without Go's types.
const LENIENT: Rules = Rules {
    missing: Missing::Print,
    lenient: true,
};

/// The cost to parse a byte of a template.
const PARSE: usize = 8;

/// A template with the Sprig functions that is kept, and parsed when it is rendered first. A missing field is `<no value>`, as in Go, and types are
/// converted. A text that is no template can be kept, too: rendering it fails.
#[derive(Clone, Debug)]
pub struct Prepared {
    text: String,
    template: OnceLock<Result<Template, TemplateError>>,
}

impl Prepared {
    /// Keeps a text.
    pub fn new(text: String) -> Self {
        Self {
            text,
            template: OnceLock::new(),
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The top-level names of the data that it refers to; none if it is no template.
    pub fn uses(&self) -> Option<&Uses> {
        self.template().ok().map(Template::uses)
    }

    fn template(&self) -> Result<&Template, TemplateError> {
        let template = self
            .template
            .get_or_init(|| Template::parse(&self.text, Functions::Sprig));
        template.as_ref().map_err(TemplateError::clone)
    }

    /// Renders it with data, and takes the cost from a budget: always with that of parsing, so that the first rendering costs what all others do.
    pub fn render_within(&self, data: &Json, budget: &mut Budget) -> Result<String, TemplateError> {
        budget.spend(self.text.len().saturating_mul(PARSE));
        self.template()?.render_within(data, LENIENT, budget)
    }
}

/// The same text is the same template.
impl PartialEq for Prepared {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// Renders `text` with the Sprig functions. A missing field is `<no value>`, as in Go, and types are converted.
pub fn render(text: &str, data: &Json) -> Result<String, TemplateError> {
    Prepared::new(text.to_owned()).render_within(data, &mut Budget::default())
}

/// Renders a naming template: without Sprig functions, and with an error for a missing field, wherever it stands, and for types that differ.
pub fn render_strict(text: &str, data: &Json) -> Result<String, TemplateError> {
    render_strict_within(text, data, &mut Budget::of(NAME_COST))
}

/// Renders a naming template as [`render_strict`], and takes the cost from a budget.
pub fn render_strict_within(text: &str, data: &Json, budget: &mut Budget) -> Result<String, TemplateError> {
    let rules = Rules {
        missing: Missing::Fail,
        lenient: false,
    };
    Template::parse(text, Functions::Builtin)?.render_within(data, rules, budget)
}

#[cfg(test)]
mod tests;
