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
    /// The end of the loop around it.
    Break,
    /// The end of this round of the loop around it.
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

/// Commands of which each gets the value of the one before it as its last argument.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub(crate) line: usize,
    /// Variables that take the value, with their `$`.
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

/// A value that a command names.
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
    /// Fields of an operand that is none of the above: `(f x).a.b`.
    Chain(Box<Self>, Vec<String>),
    Pipeline(Box<Pipeline>),
}

/// A number in a template has no type until it is known what takes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Number {
    /// As it is written.
    pub(crate) text: String,
    /// Its value, where it is whole and fits.
    pub(crate) whole: Option<i64>,
    /// Its value; a whole number that only fits without a sign has this alone.
    pub(crate) float: f64,
    /// Whether it is written as a floating point number.
    pub(crate) has_point: bool,
}
