//! Finds the top-level names of its data that a template refers to, from its text alone.

use std::collections::BTreeSet;

use crate::parser::Parsed;
use crate::syntax::{Body, Node, Operand, Pipeline, Word};

/// The top-level names that a template can read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// The names in the template.
    pub names: BTreeSet<String>,
    /// Whether it passes on its data as a whole, and so may read any name.
    pub everything: bool,
}

impl Uses {
    /// Whether a name may be read.
    pub fn has(&self, name: &str) -> bool {
        self.everything || self.names.contains(name)
    }
}

pub(crate) fn of(parsed: &Parsed) -> Uses {
    let mut uses = Uses::default();
    uses.body(&parsed.main, true);
    // The argument of a defined template is known only at the call: it may be all data.
    for body in parsed.defined.values() {
        uses.body(body, true);
    }
    uses
}

/// Whether an operand is all data. A reassigned `$` only makes the result larger than necessary.
fn is_root(operand: &Operand, dot_is_root: bool) -> bool {
    match operand {
        Operand::Dot => dot_is_root,
        Operand::Variable(name, path) => name == "$" && path.is_empty(),
        Operand::Pipeline(inner) => is_just_root(inner, dot_is_root),
        _ => false,
    }
}

fn is_just_root(pipeline: &Pipeline, dot_is_root: bool) -> bool {
    pipeline.variables.is_empty()
        && matches!(pipeline.commands.as_slice(), [command]
            if matches!(command.operands.as_slice(), [operand] if is_root(operand, dot_is_root)))
}

impl Uses {
    fn body(&mut self, body: &Body, dot_is_root: bool) {
        for node in &body.nodes {
            match node {
                Node::Text(_) | Node::Break | Node::Continue => {}
                Node::Action(pipeline) => self.pipeline(pipeline, dot_is_root),
                Node::Template(call) => {
                    // A template that gets all data is analysed separately.
                    if let Some(argument) = call.argument.as_ref().filter(|p| !is_just_root(p, dot_is_root)) {
                        self.pipeline(argument, dot_is_root);
                    }
                }
                Node::Block(block) => {
                    let root = is_just_root(&block.pipeline, dot_is_root);
                    if !(root && block.word == Word::With) {
                        self.pipeline(&block.pipeline, dot_is_root);
                    }
                    let inside = match block.word {
                        Word::If => dot_is_root,
                        Word::With => root,
                        Word::Range => false,
                    };
                    self.body(&block.body, inside);
                    if let Some(otherwise) = &block.otherwise {
                        self.body(otherwise, dot_is_root);
                    }
                }
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, dot_is_root: bool) {
        for command in &pipeline.commands {
            for operand in &command.operands {
                self.operand(operand, dot_is_root);
            }
        }
    }

    fn operand(&mut self, operand: &Operand, dot_is_root: bool) {
        match operand {
            Operand::Field(path) if dot_is_root => self.name(path),
            Operand::Variable(name, path) if name == "$" && !path.is_empty() => self.name(path),
            Operand::Chain(inner, path) if is_root(inner, dot_is_root) => self.name(path),
            Operand::Chain(inner, _) => self.operand(inner, dot_is_root),
            Operand::Pipeline(inner) if !is_root(operand, dot_is_root) => self.pipeline(inner, dot_is_root),
            other => self.everything |= is_root(other, dot_is_root),
        }
    }

    fn name(&mut self, path: &[String]) {
        self.names.extend(path.first().cloned());
    }
}
