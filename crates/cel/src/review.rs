//! Validates the rules of a definition and their estimated costs.

use std::sync::Arc;

use serde_json::Value;
use windlass_schema::{FieldError, Kind, Node, Path, Patterns, Place, RuleReview, Schema, shown_rule};

use crate::cost::estimate;
use crate::declared::{Declared, MAX_REQUEST};
use crate::evaluate::evaluate_default;
use crate::program::Program;
use crate::rule::{Rule, Rules};
use crate::typing::Ty;

/// The limit of the estimated cost of one expression.
const MOST_EACH: u64 = 10_000_000;
/// The limit of the estimated costs of a schema.
const MOST_TOGETHER: u64 = 100_000_000;
/// The number of the most expensive expressions that an error names.
const NAMED: usize = 4;

/// What all the rules of a schema may cost.
#[derive(Debug, Default)]
struct Costs {
    total: u64,
    most: Vec<(u64, String)>,
}

impl Costs {
    fn add(&mut self, cost: u64, at: String) {
        self.total = self.total.saturating_add(cost);
        if cost >= MOST_TOGETHER / 100 {
            self.most.push((cost, at));
            self.most.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.most.truncate(NAMED);
        }
    }

    /// Complains if it is too much for the schema at `at`.
    fn errors(self, at: &str, errors: &mut Vec<FieldError>) {
        if self.total <= MOST_TOGETHER {
            return;
        }
        for (_, at) in self.most {
            let words = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            errors.push(FieldError::forbidden(at, words));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(at, exceeds(what, self.total, MOST_TOGETHER)));
    }
}

fn exceeds(what: &str, cost: u64, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is rounded when it is shown")]
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// Reviews the rules of a schema.
#[derive(Debug, Default)]
pub(crate) struct RuleReviewer {
    rules: Rules,
    costs: Costs,
}

impl RuleReview for RuleReviewer {
    fn begin(&mut self, schema: &Schema, patterns: &Patterns) {
        self.rules = Rules::compile(schema, patterns);
    }

    fn default(&mut self, node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        evaluate_default(node, &self.rules, value, path, errors);
    }

    fn level(&mut self, node: &Node, written: &[Value], place: &Place<'_>, errors: &mut Vec<FieldError>) {
        level(node, self.rules.of(node), written, place, &mut self.costs, errors);
    }

    fn end(&mut self, at: &str, errors: &mut Vec<FieldError>) {
        std::mem::take(&mut self.costs).errors(at, errors);
    }
}

/// Checks the rules of a level of a schema; `written` is their text.
fn level(
    node: &Node,
    rules: &[Rule],
    written: &[Value],
    place: &Place<'_>,
    costs: &mut Costs,
    errors: &mut Vec<FieldError>,
) {
    let Some(declared) = Declared::of(node, place.resource) else {
        let words = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
        errors.push(FieldError::new(
            format!("{}.x-kubernetes-validations", place.at),
            Kind::Internal,
            None,
            words,
        ));
        return;
    };
    let count = place.count.unwrap_or(MAX_REQUEST / (declared.min_bytes + 1));
    let of = Reviewed {
        ty: declared.ty(),
        declared,
    };
    for (index, (rule, written)) in rules.iter().zip(written).enumerate() {
        let here = |name: &str| format!("{}.x-kubernetes-validations[{index}].{name}", place.at);
        let optional = rule.optional_old_self == Some(true);
        let shown = || shown_rule(written);
        let found = if rule.is_empty() {
            Ok(0)
        } else {
            rule.program
                .as_ref()
                .map_err(|why| format!("compilation failed: {why}"))
                .and_then(|program| {
                    of.cost(program, optional, &Ty::Bool).map_err(|problem| {
                        problem.words("compilation failed: ", "cel expression must evaluate to a bool")
                    })
                })
        };
        let fine = found.is_ok();
        match found {
            Ok(each) => {
                let cost = each.saturating_mul(count);
                Reviewed::limit(cost, &here("rule"), "estimated rule cost", place, costs, errors);
            }
            Err(words) => errors.push(FieldError::shown(here("rule"), Kind::Invalid, shown(), words)),
        }
        if let Some(expression) = rule.message_expression.as_ref().filter(|_| fine) {
            let found = expression
                .as_ref()
                .map_err(|why| format!("messageExpression compilation failed: {why}"))
                .and_then(|program| {
                    of.cost(program, optional, &Ty::String).map_err(|problem| {
                        problem.words(
                            "messageExpression compilation failed: ",
                            "messageExpression must evaluate to a string",
                        )
                    })
                });
            let at = here("messageExpression");
            match found {
                Ok(cost) => Reviewed::limit(cost, &at, "estimated messageExpression cost", place, costs, errors),
                Err(words) => errors.push(FieldError::shown(at, Kind::Invalid, shown(), words)),
            }
        }
        if rule.uses_old_self && fine {
            if let Some(around) = place.uncorrelated {
                let words =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {around}");
                errors.push(FieldError::invalid(here("rule"), rule.source.as_str().into(), words));
            }
        } else if let Some(set) = rule.optional_old_self {
            let words = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(here("optionalOldSelf"), set.into(), words));
        }
    }
}

struct Reviewed {
    declared: Arc<Declared>,
    ty: Ty,
}

enum Trouble {
    Problems(String),
    WrongType,
}

impl Trouble {
    fn words(self, before: &str, wrong_type: &str) -> String {
        match self {
            Self::Problems(problems) => format!("{before}{problems}"),
            Self::WrongType => wrong_type.to_owned(),
        }
    }
}

impl Reviewed {
    /// The estimated cost of an expression, if it has the required type.
    fn cost(&self, program: &Program, optional: bool, wanted: &Ty) -> Result<u64, Trouble> {
        let old = if optional {
            Ty::optional(self.ty.clone())
        } else {
            self.ty.clone()
        };
        let variables = [("self", self.ty.clone()), ("oldSelf", old)];
        let expression = program.expression();
        let checked = program.check(&variables).map_err(Trouble::Problems)?;
        if !checked.ty(expression.id).is_exactly(wanted) {
            return Err(Trouble::WrongType);
        }
        Ok(estimate(expression, &checked, &self.declared).max)
    }

    fn limit(cost: u64, at: &str, what: &str, place: &Place<'_>, costs: &mut Costs, errors: &mut Vec<FieldError>) {
        if !place.known && cost > MOST_EACH {
            errors.push(FieldError::forbidden(at, exceeds(what, cost, MOST_EACH)));
        }
        costs.add(cost, at.to_owned());
    }
}
