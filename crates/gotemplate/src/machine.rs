//! The shared state of functions and evaluation: the heap, the rules, knowledge about the data, compiled expressions.

use std::collections::HashMap;
use std::fmt::Display;
use std::rc::Rc;

use regex::{Regex, RegexBuilder};

use windlass_gocompat::regexp;

use crate::budget::Budget;
use crate::knowledge::{Knowledge, Member};
use crate::value::{Fault, Gap, Heap, Map, Out, Value};
use crate::{Missing, Rules, sprig};

/// The state of a rendering, apart from the template.
pub(crate) struct Machine<'k> {
    pub(crate) heap: Heap,
    pub(crate) rules: Rules,
    knowledge: Option<&'k dyn Knowledge>,
    regexes: HashMap<String, Regex>,
}

impl<'k> Machine<'k> {
    pub(crate) fn new(rules: Rules, knowledge: Option<&'k dyn Knowledge>, budget: Budget) -> Self {
        Self {
            heap: Heap::new(rules.lenient, budget),
            rules,
            knowledge,
            regexes: HashMap::new(),
        }
    }

    /// The fault for writing a missing value.
    pub(crate) fn missing(value: &Value) -> Fault {
        Fault::Missing(match value {
            Value::Missing(Some(gap)) => gap.path.clone(),
            _ => String::new(),
        })
    }

    /// A field of a value, by Go's rules for maps: a missing key has no value, and neither has a field of a missing value.
    pub(crate) fn field(&mut self, receiver: &Value, name: &str) -> Out {
        let found = match receiver {
            Value::Missing(None) => Value::Missing(None),
            Value::Missing(Some(gap)) => self.below_a_gap(gap, name)?,
            Value::Nil => return Err(Fault::Failed(format!("nil has no field {name:?}"))),
            Value::Map(map) => self.member(*map, name)?,
            Value::Version(version) => sprig::version_field(self, version, name)?,
            other => {
                return Err(Fault::Failed(format!(
                    "a value of type {} has no field {name:?}",
                    other.type_name(&self.heap)
                )));
            }
        };
        if self.rules.missing == Missing::Fail && matches!(found, Value::Missing(_)) {
            return Err(Self::missing(&found));
        }
        Ok(found)
    }

    fn below_a_gap(&mut self, gap: &Gap, name: &str) -> Out {
        let Some((knowledge, form)) = self.knowledge.zip(gap.form) else {
            return Ok(Value::Missing(None));
        };
        let (keys, form) = understood(knowledge.member(form, name, &|_| false), &gap.path, name)?;
        let path = keys.iter().fold(gap.path.clone(), |path, key| format!("{path}.{key}"));
        self.heap.spend(path.len())?;
        Ok(Value::Missing(Some(Rc::new(Gap { path, form: Some(form) }))))
    }

    /// A key of a map, in a template's spelling.
    pub(crate) fn member(&mut self, map: Map, name: &str) -> Out {
        let data = self.heap.map(map);
        let known = data.origin.as_ref().and_then(|gap| Some((gap.clone(), gap.form?)));
        let Some(((origin, form), knowledge)) = known.zip(self.knowledge) else {
            let found = data.entries.get(name).cloned();
            return Ok(found.unwrap_or_else(|| {
                Value::Missing(Some(Rc::new(Gap {
                    path: format!(".{name}"),
                    form: None,
                })))
            }));
        };
        let member = knowledge.member(form, name, &|key| data.entries.contains_key(key));
        let (keys, form) = understood(member, &origin.path, name)?;
        let mut at = Some(Value::Map(map));
        let mut path = origin.path.clone();
        for key in keys {
            path = format!("{path}.{key}");
            at = match at {
                Some(Value::Map(map)) => self.heap.map(map).entries.get(key.as_str()).cloned(),
                _ => None,
            };
        }
        Ok(at.unwrap_or_else(|| Value::Missing(Some(Rc::new(Gap { path, form: Some(form) })))))
    }

    /// A compiled regular expression. Charges the cost of searching a text with it.
    pub(crate) fn regex(&mut self, pattern: &str, text: &str) -> Out<Regex> {
        self.heap.spend(text.len().saturating_mul(16))?;
        if let Some(regex) = self.regexes.get(pattern) {
            return Ok(regex.clone());
        }
        // Compilation is expensive, so a template can have a few hundred.
        self.heap.spend(200_000)?;
        let wrong = |why: &dyn Display| format!("{pattern:?} is no regular expression: {why}");
        let translated = regexp::translate(pattern, regexp::Groups::Kept).map_err(|why| wrong(&why))?;
        let regex = RegexBuilder::new(&translated).size_limit(1 << 18).build();
        let regex = regex.map_err(|why| wrong(&why))?;
        self.regexes.insert(pattern.to_owned(), regex.clone());
        Ok(regex)
    }
}

fn understood(member: Member, path: &str, name: &str) -> Out<(Vec<String>, crate::Form)> {
    match member {
        Member::Keys(keys, form) => Ok((keys, form)),
        Member::Unknown(closest) => {
            let hint = closest.map_or_else(String::new, |name| format!("; did you mean {path}.{name}?"));
            Err(Fault::Failed(format!("{path}.{name} does not exist{hint}")))
        }
    }
}
