//! Go text templates with the deterministic part of the Sprig functions: the one template engine of the project.
//!
//! Values of Helm charts, patches of ClusterClasses, names of Machines and files of bootstrap data are written as Go
//! templates. This is the language itself: syntax, types and functions are those of Go's text/template and of Sprig, held
//! against what the real engine gives (`testdata`). Nothing here reads a clock, the environment, the network or a source of
//! chance, and maps are walked in the order of their keys: the same template and data always give the same text. A template
//! may come from any user: its depth, its rounds and what it writes are bounded.

mod builtins;
mod exec;
mod functions;
mod knowledge;
mod lexer;
mod machine;
mod number;
mod parser;
mod patterns;
mod print;
mod sprig;
mod syntax;
mod uses;
mod value;

use serde_json::Value as Json;

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
    /// Fail where one is written; conditions and loops take it as empty.
    Refuse,
    /// Fail where one is looked up.
    Fail,
}

/// How a template is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The policy for missing values.
    pub missing: Missing,
    /// Whether numbers of different types compare, and functions convert what they get, where Go insists on types.
    pub lenient: bool,
}

impl Rules {
    /// Go's own.
    pub const GO: Self = Self {
        missing: Missing::Print,
        lenient: false,
    };
}

/// A template that does not parse or does not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is no valid template.
    #[error("template cannot be parsed: line {line}: {why}")]
    Parse {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The template failed while it ran.
    #[error("template cannot be rendered: line {line}: {why}")]
    Render {
        /// The line of the action, from 1.
        line: usize,
        /// What it failed with.
        why: String,
    },
    /// The template writes something that is not there.
    #[error("template uses a field that does not exist: line {line}: {}", if path.is_empty() { "the value is null or was never given" } else { path })]
    Missing {
        /// The line of the action, from 1.
        line: usize,
        /// The path of what is missing, as far as it is known; else empty.
        path: String,
    },
}

/// A template that has been parsed, to be rendered any number of times.
#[derive(Clone, Debug)]
pub struct Template {
    parsed: Parsed,
}

impl Template {
    /// Reads a template; every function that it names must exist.
    pub fn parse(text: &str, functions: Functions) -> Result<Self, TemplateError> {
        let parsed = parser::parse(text, functions).map_err(|(line, why)| TemplateError::Parse { line, why })?;
        Ok(Self { parsed })
    }

    /// Its text for some data.
    pub fn render(&self, data: &Json, rules: Rules) -> Result<String, TemplateError> {
        let mut machine = Machine::new(rules, None);
        let data = match data {
            Json::Null => Value::Missing(None),
            data => machine.heap.load(data, Numbers::Unstructured).map_err(too_large)?,
        };
        exec::render(&self.parsed, &mut machine, &data)
    }

    /// Its text for named objects of which something is known: `form` is that of the data as a whole.
    pub fn render_known(
        &self,
        objects: &[(&str, &Json)],
        form: Form,
        knowledge: &dyn Knowledge,
        rules: Rules,
    ) -> Result<String, TemplateError> {
        let mut machine = Machine::new(rules, Some(knowledge));
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

    /// Which of the data's top-level names it refers to.
    pub fn uses(&self) -> Uses {
        uses::of(&self.parsed)
    }
}

/// The data itself is too much; no line is to blame.
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

/// Checks that `text` parses and uses only functions that exist.
pub fn check(text: &str) -> Result<(), TemplateError> {
    Template::parse(text, Functions::Sprig).map(drop)
}

/// Of templates that were written for an engine that did not know Go's types.
const LENIENT: Rules = Rules {
    missing: Missing::Print,
    lenient: true,
};

/// Renders `text` with the Sprig functions; a missing field prints `<no value>`, as it does in Go, and types are converted.
pub fn render(text: &str, data: &Json) -> Result<String, TemplateError> {
    Template::parse(text, Functions::Sprig)?.render(data, LENIENT)
}

/// Renders a naming template: no Sprig functions, and a missing field is an error.
pub fn render_strict(text: &str, data: &Json) -> Result<String, TemplateError> {
    let rules = Rules {
        missing: Missing::Refuse,
        ..LENIENT
    };
    Template::parse(text, Functions::Builtin)?.render(data, rules)
}

#[cfg(test)]
mod tests;
