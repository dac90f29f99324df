//! Evaluates a parsed template by the rules of Go's text/template.

use std::rc::Rc;

use crate::functions::Function;
use crate::machine::Machine;
use crate::parser::Parsed;
use crate::sprig::cast;
use crate::syntax::{Block, Body, Call, Command, Node, Number, Operand, Pipeline, Word};
use crate::value::{Fault, Out, Value};
use crate::{Missing, TemplateError};

/// The size limit of a template's output.
const MAX_OUTPUT: usize = 1 << 20;

/// The limit of nested templates, blocks and parentheses at run time: each level uses stack.
const DEEPEST: usize = 100;

/// The completion of a body: normal, break or continue.
#[derive(Clone, Copy, PartialEq)]
enum Flow {
    Done,
    Break,
    Continue,
}

type Stop = TemplateError;

struct Run<'t, 'm, 'k> {
    parsed: &'t Parsed,
    machine: &'m mut Machine<'k>,
    out: String,
    variables: Vec<(&'t str, Value)>,
    depth: usize,
}

/// Renders a template with data.
pub(crate) fn render(parsed: &Parsed, machine: &mut Machine<'_>, data: &Value) -> Result<String, TemplateError> {
    let mut run = Run {
        parsed,
        machine,
        out: String::new(),
        variables: vec![("$", data.clone())],
        depth: 0,
    };
    run.body(&parsed.main, data)?;
    Ok(run.out)
}

/// Adds a line to a fault.
fn stop(line: usize, fault: Fault) -> Stop {
    match fault {
        Fault::Failed(why) => TemplateError::Render { line, why },
        Fault::Missing(path) => TemplateError::Missing { line, path },
    }
}

fn fail<T>(line: usize, why: impl Into<String>) -> Result<T, Stop> {
    Err(TemplateError::Render { line, why: why.into() })
}

impl<'t> Run<'t, '_, '_> {
    fn spend(&mut self, line: usize, work: usize) -> Result<(), Stop> {
        self.machine.heap.spend(work).map_err(|fault| stop(line, fault))
    }

    fn deeper<T>(&mut self, line: usize, inner: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if self.depth >= DEEPEST {
            return fail(line, format!("templates call one another more than {DEEPEST} deep"));
        }
        self.depth += 1;
        let out = inner(self);
        self.depth -= 1;
        out
    }

    fn body(&mut self, body: &'t Body, dot: &Value) -> Result<Flow, Stop> {
        for node in &body.nodes {
            let flow = match node {
                Node::Text(text) => {
                    self.write(0, text)?;
                    Flow::Done
                }
                Node::Action(pipeline) => {
                    let value = self.pipeline(pipeline, dot)?;
                    if pipeline.variables.is_empty() {
                        self.write_value(pipeline.line, &value)?;
                    }
                    Flow::Done
                }
                Node::Block(block) => self.block(block, dot)?,
                Node::Template(call) => {
                    self.call_template(call, dot)?;
                    Flow::Done
                }
                Node::Break => Flow::Break,
                Node::Continue => Flow::Continue,
            };
            if flow != Flow::Done {
                return Ok(flow);
            }
        }
        Ok(Flow::Done)
    }

    fn write(&mut self, line: usize, text: &str) -> Result<(), Stop> {
        if self.out.len() + text.len() > MAX_OUTPUT {
            return fail(line, format!("the result is longer than {MAX_OUTPUT} bytes"));
        }
        self.spend(line, 16 + text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    fn write_value(&mut self, line: usize, value: &Value) -> Result<(), Stop> {
        if value.is_nothing() {
            return match self.machine.rules.missing {
                Missing::Print => self.write(line, "<no value>"),
                Missing::Refuse | Missing::Fail => Err(stop(line, Machine::missing(value))),
            };
        }
        let text = self.machine.shown(value).map_err(|fault| stop(line, fault))?;
        self.write(line, &text)
    }

    fn call_template(&mut self, call: &'t Call, dot: &Value) -> Result<(), Stop> {
        let Some(body) = self.parsed.defined.get(&call.name) else {
            return fail(call.line, format!("template {:?} is not defined", call.name));
        };
        self.spend(call.line, 64)?;
        let argument = match &call.argument {
            Some(pipeline) => self.pipeline(pipeline, dot)?,
            None => Value::Missing(None),
        };
        let outer = std::mem::replace(&mut self.variables, vec![("$", argument.clone())]);
        let out = self.deeper(call.line, |run| run.body(body, &argument));
        self.variables = outer;
        out.map(drop)
    }

    fn block(&mut self, block: &'t Block, dot: &Value) -> Result<Flow, Stop> {
        let line = block.pipeline.line;
        let variables = self.variables.len();
        let out = self.deeper(line, |run| {
            let value = run.pipeline(&block.pipeline, dot)?;
            match block.word {
                Word::Range => return run.range(block, value, dot),
                Word::With if value.is_true(&run.machine.heap) => return run.body(&block.body, &value),
                Word::If if value.is_true(&run.machine.heap) => return run.body(&block.body, dot),
                Word::With | Word::If => {}
            }
            block
                .otherwise
                .as_ref()
                .map_or(Ok(Flow::Done), |body| run.body(body, dot))
        });
        self.variables.truncate(variables);
        out
    }

    fn range(&mut self, block: &'t Block, value: Value, dot: &Value) -> Result<Flow, Stop> {
        let line = block.pipeline.line;
        let mut ran = false;
        match value {
            Value::Missing(_) | Value::Nil => {}
            Value::List(list) => {
                for (at, item) in self.machine.heap.list(list).iter().enumerate() {
                    ran = true;
                    let index = Value::Int(i64::try_from(at).unwrap_or(i64::MAX));
                    if self.round(block, index, item)? == Flow::Break {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                let entries = self.machine.heap.map(map).entries.clone();
                self.spend(line, entries.len() * 64)?;
                for (key, item) in entries {
                    ran = true;
                    if self.round(block, Value::Text(key), &item)? == Flow::Break {
                        break;
                    }
                }
            }
            Value::Int(end) | Value::Int64(end) => {
                if block.pipeline.variables.len() > 1 {
                    return fail(line, "range over a number has only one variable");
                }
                let is_int = matches!(value, Value::Int(_));
                for n in 0..end.max(0) {
                    ran = true;
                    let n = if is_int { Value::Int(n) } else { Value::Int64(n) };
                    if self.round(block, n.clone(), &n)? == Flow::Break {
                        break;
                    }
                }
            }
            other => {
                let kind = other.type_name(&self.machine.heap);
                return fail(
                    line,
                    format!("range needs a list, a map or a whole number, not a {kind}"),
                );
            }
        }
        match &block.otherwise {
            Some(body) if !ran => self.body(body, dot),
            _ => Ok(Flow::Done),
        }
    }

    /// An iteration of a loop: variables, then the body with the element as dot.
    fn round(&mut self, block: &'t Block, index: Value, element: &Value) -> Result<Flow, Stop> {
        let line = block.pipeline.line;
        self.spend(line, 64)?;
        let outer = self.variables.len();
        let names = &block.pipeline.variables;
        let values = if names.len() > 1 {
            vec![index, element.clone()]
        } else {
            vec![element.clone()]
        };
        for (name, value) in names.iter().zip(values) {
            if block.pipeline.assigns {
                self.assign(line, name, value)?;
            } else {
                self.variables.push((name, value));
            }
        }
        let flow = self.body(&block.body, element)?;
        self.variables.truncate(outer);
        Ok(if flow == Flow::Break { Flow::Break } else { Flow::Done })
    }

    fn assign(&mut self, line: usize, name: &str, value: Value) -> Result<(), Stop> {
        match self.variables.iter_mut().rev().find(|(n, _)| *n == name) {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => fail(line, format!("undefined variable {name:?}")),
        }
    }

    fn variable(&self, line: usize, name: &str) -> Result<Value, Stop> {
        match self.variables.iter().rev().find(|(n, _)| *n == name) {
            Some((_, value)) => Ok(value.clone()),
            None => fail(line, format!("undefined variable {name:?}")),
        }
    }

    fn pipeline(&mut self, pipeline: &'t Pipeline, dot: &Value) -> Result<Value, Stop> {
        let mut value = None;
        for command in &pipeline.commands {
            let next = self.command(command, dot, value.take())?;
            // Go has no null in a pipeline: it is treated as an absent value.
            value = Some(if matches!(next, Value::Nil) {
                Value::Missing(None)
            } else {
                next
            });
        }
        let value = value.unwrap_or(Value::Missing(None));
        for name in &pipeline.variables {
            if pipeline.assigns {
                self.assign(pipeline.line, name, value.clone())?;
            } else {
                self.variables.push((name, value.clone()));
            }
        }
        Ok(value)
    }

    fn command(&mut self, command: &'t Command, dot: &Value, piped: Option<Value>) -> Result<Value, Stop> {
        let line = command.line;
        self.spend(line, 16)?;
        let Some((first, arguments)) = command.operands.split_first() else {
            return fail(line, "empty command");
        };
        let has_arguments = !arguments.is_empty() || piped.is_some();
        match first {
            Operand::Function(function) => self.call(line, function, arguments, piped, dot),
            Operand::Field(path) => self.fields(line, dot, path, has_arguments),
            Operand::Variable(name, path) if !path.is_empty() => {
                let value = self.variable(line, name)?;
                self.fields(line, &value, path, has_arguments)
            }
            Operand::Chain(inner, path) => {
                let value = self.operand(line, inner, dot)?;
                self.fields(line, &value, path, has_arguments)
            }
            _ if has_arguments => fail(line, "only a function takes arguments, or a value from a pipe"),
            Operand::Nil => fail(line, "nil is not a command"),
            other => self.operand(line, other, dot),
        }
    }

    fn fields(&mut self, line: usize, receiver: &Value, path: &[String], has_arguments: bool) -> Result<Value, Stop> {
        let mut value = receiver.clone();
        for (at, name) in path.iter().enumerate() {
            self.spend(line, 16)?;
            if has_arguments && at + 1 == path.len() && !matches!(value, Value::Missing(_)) {
                return fail(line, format!("{name:?} is a field and takes no arguments"));
            }
            value = self.machine.field(&value, name).map_err(|fault| stop(line, fault))?;
        }
        Ok(value)
    }

    /// The value of an operand.
    fn operand(&mut self, line: usize, operand: &'t Operand, dot: &Value) -> Result<Value, Stop> {
        match operand {
            Operand::Dot => Ok(dot.clone()),
            Operand::Nil => Ok(Value::Nil),
            Operand::Bool(b) => Ok(Value::Bool(*b)),
            Operand::Number(number) => constant(line, number),
            Operand::Text(text) => self.machine.heap.new_text(text).map_err(|fault| stop(line, fault)),
            Operand::Field(path) => self.fields(line, dot, path, false),
            Operand::Variable(name, path) => {
                let value = self.variable(line, name)?;
                self.fields(line, &value, path, false)
            }
            Operand::Function(function) => self.call(line, function, &[], None, dot),
            Operand::Chain(inner, path) => {
                let value = self.operand(line, inner, dot)?;
                self.fields(line, &value, path, false)
            }
            Operand::Pipeline(inner) => self.deeper(line, |run| run.pipeline(inner, dot)),
        }
    }

    fn call(
        &mut self,
        line: usize,
        function: &'static Function,
        arguments: &'t [Operand],
        piped: Option<Value>,
        dot: &Value,
    ) -> Result<Value, Stop> {
        let name = function.name;
        let count = arguments.len() + usize::from(piped.is_some());
        let (least, more) = function.arity();
        if count < least || (count > least && !more) {
            let at_least = if more { "at least " } else { "" };
            return fail(line, format!("{name} takes {at_least}{least} arguments, not {count}"));
        }
        self.spend(line, 32)?;
        let mut values = Vec::with_capacity(count);
        for (at, operand) in arguments.iter().enumerate() {
            let value = self.argument(line, function, at, operand, dot)?;
            if function.decides() == Some(value.is_true(&self.machine.heap)) {
                return Ok(value);
            }
            values.push(value);
        }
        if let Some(value) = piped {
            values.push(
                self.fit(function, values.len(), value)
                    .map_err(|fault| stop(line, fault))?,
            );
        }
        let heap = &self.machine.heap;
        let size = values.iter().map(|value| value.size(heap)).sum();
        self.spend(line, size)?;
        (function.run)(self.machine, &values).map_err(|fault| match fault {
            Fault::Failed(why) => stop(line, Fault::Failed(format!("{name}: {why}"))),
            missing @ Fault::Missing(_) => stop(line, missing),
        })
    }

    /// An argument of a function: constants take the type of the parameter.
    fn argument(
        &mut self,
        line: usize,
        function: &Function,
        at: usize,
        operand: &'t Operand,
        dot: &Value,
    ) -> Result<Value, Stop> {
        let value = match (operand, function.kind(at)) {
            (Operand::Nil, b'.' | b'm') => return Ok(Value::Nil),
            (Operand::Number(number), b'i') if number.whole.is_some() => Value::Int(number.whole.unwrap_or_default()),
            (Operand::Number(number), b'f') => Value::Float(number.float),
            _ => self.operand(line, operand, dot)?,
        };
        self.fit(function, at, value).map_err(|fault| stop(line, fault))
    }

    /// Converts a value to a parameter's type. Go requires the exact type; in lenient mode, numbers and texts are converted.
    fn fit(&mut self, function: &Function, at: usize, value: Value) -> Out {
        let heap = &self.machine.heap;
        let (wanted, fits) = match function.kind(at) {
            b's' => ("string", matches!(value, Value::Text(_))),
            b'i' => ("int", matches!(value, Value::Int(_))),
            b'f' => ("float64", matches!(value, Value::Float(_))),
            b'b' => ("bool", matches!(value, Value::Bool(_))),
            b'm' => (
                "map[string]interface {}",
                match &value {
                    Value::Map(map) => self.machine.rules.lenient || !heap.map(*map).only_texts,
                    Value::Missing(_) => true,
                    _ => false,
                },
            ),
            _ => return Ok(value),
        };
        if fits {
            return Ok(value);
        }
        if self.machine.rules.lenient {
            match function.kind(at) {
                b's' if value.is_nothing() => return Ok(Value::Text(Rc::from(""))),
                b's' => return self.machine.shown(&value).map(Value::text),
                b'i' => return Ok(Value::Int(cast::int(&value))),
                b'f' => return Ok(Value::Float(cast::float(&value))),
                _ => {}
            }
        }
        // The value may be secret or long: only its type is shown.
        Err(Fault::Failed(format!(
            "{}: argument {} must be a {wanted}, not a {}",
            function.name,
            at + 1,
            value.type_name(heap)
        )))
    }
}

fn constant(line: usize, number: &Number) -> Result<Value, Stop> {
    match number.whole {
        _ if number.has_point => Ok(Value::Float(number.float)),
        Some(whole) => Ok(Value::Int(whole)),
        None => fail(line, format!("{} overflows int", number.text)),
    }
}
