//! The syntax tree of a parsed template, without evaluation.

use crate::functions::Function;

/// A sequence of texts and actions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) nodes: Vec<Node>,
}

/// One piece of a body.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Text that is written as it is.
    Text(String),
    /// A pipeline whose value is written, unless it declares a variable.
    Action(Pipeline),
    /// `if`, `with` or `range`.
    Block(Block),
    /// A call of a defined template.
    Template(Call),
    /// Ends the enclosing loop.
    Break,
    /// Ends this iteration of the enclosing loop.
    Continue,
}

/// The operation of a block with its pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    If,
    With,
    Range,
}

impl Word {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::With => "with",
            Self::Range => "range",
        }
    }
}

/// `if`, `with` or `range`, with both bodies.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) word: Word,
    pub(crate) pipeline: Pipeline,
    pub(crate) body: Body,
    pub(crate) otherwise: Option<Body>,
}

/// `{{template "name" pipeline}}`.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) argument: Option<Pipeline>,
}

/// Commands, each of which gets the previous one's value as its last argument.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub(crate) line: usize,
    /// Variables that are set to the value, with their `$`.
    pub(crate) variables: Vec<String>,
    /// Whether the variables exist already (`=` instead of `:=`).
    pub(crate) assigns: bool,
    pub(crate) commands: Vec<Command>,
}

/// An operand, or a function with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) line: usize,
    /// Never empty.
    pub(crate) operands: Vec<Operand>,
}

/// An operand of a command.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    Text(String),
    /// `.a.b`, without the dots.
    Field(Vec<String>),
    /// `$x.a.b`: the variable with its `$`, and the fields.
    Variable(String, Vec<String>),
    Function(&'static Function),
    /// Fields of any other operand: `(f x).a.b`.
    Chain(Box<Self>, Vec<String>),
    Pipeline(Box<Pipeline>),
}

/// A number of a template. It has no type until it is used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Number {
    /// The text of the number.
    pub(crate) text: String,
    /// Its value, if it is an integer and fits.
    pub(crate) whole: Option<i64>,
    /// Its value; the only one for an integer that fits only without a sign.
    pub(crate) float: f64,
    /// Whether it is written as a floating point number.
    pub(crate) has_point: bool,
}
