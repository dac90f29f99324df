//! A schema with its compiled rules.

use std::sync::Arc;

use serde_json::Value;
use windlass_meta::budget::RULE_COST;
use windlass_schema::{Dialect, FieldError, Kind, Path, Patterns, Reviewing, Schema, SchemaError, check_lists};

use crate::evaluate::Evaluation;
use crate::review::RuleReviewer;
use crate::rule::Rules;

/// A schema with its compiled rules. It validates values completely.
#[derive(Debug)]
pub struct Validator {
    schema: Arc<Schema>,
    rules: Rules,
}

impl Validator {
    /// Compiles the rules of a schema that is stored. Its patterns have no budget.
    pub fn new(schema: Arc<Schema>) -> Self {
        Self::with(schema, &Patterns::trusted())
    }

    fn with(schema: Arc<Schema>, patterns: &Patterns) -> Self {
        let rules = Rules::compile(&schema, patterns);
        Self { schema, rules }
    }

    /// Parses the schema of a CRD version, with everything that kube-apiserver demands of it at creation.
    pub fn crd(schema: &Value) -> Result<Self, SchemaError> {
        Self::parse(schema, Dialect::Crd, "spec.validation.openAPIV3Schema")
    }

    /// Parses the structural schema of any value.
    pub fn value(schema: &Value) -> Result<Self, SchemaError> {
        Self::value_within(schema, &Patterns::default())
    }

    /// The same for one of several schemas of an object, which share its patterns.
    pub fn value_within(schema: &Value, patterns: &Patterns) -> Result<Self, SchemaError> {
        Self::parse_within(schema, Dialect::Value, "schema", patterns)
    }

    /// Parses a schema; `at` is the path that errors start with.
    pub fn parse(schema: &Value, dialect: Dialect, at: &str) -> Result<Self, SchemaError> {
        Self::parse_within(schema, dialect, at, &Patterns::default())
    }

    fn parse_within(schema: &Value, dialect: Dialect, at: &str, patterns: &Patterns) -> Result<Self, SchemaError> {
        let schema = Schema::parse(schema, dialect, at, patterns, &mut RuleReviewer::default())?;
        Ok(Self::with(Arc::new(schema), patterns))
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Everything wrong with an API object.
    ///
    /// With `old`, parts that did not change are not complained about again (ratcheting), and transition rules are evaluated.
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.validate_at("", value, old)
    }

    /// Everything wrong with a value that stands at the path `at`.
    pub fn validate_at(&self, at: &str, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = windlass_schema::validate_at(&self.schema, at, value, old);
        self.check_rules(value, old, &Path::Root(at), RULE_COST, &mut errors, &mut Vec::new());
        errors
    }

    /// What else is wrong with an object whose `errors` of shape are known: lists with keys, and rules. What was wrong with rules
    /// before and has not changed becomes a warning. Returns what is left of `budget`; nothing if the rules cost more.
    pub fn check_rest(
        &self,
        value: &Value,
        old: Option<&Value>,
        budget: u64,
        errors: &mut Vec<FieldError>,
        warnings: &mut Vec<FieldError>,
    ) -> Option<u64> {
        check_lists(&self.schema, value, old, errors);
        self.check_rules(value, old, &Path::Root(""), budget, errors, warnings)
    }

    fn check_rules(
        &self,
        value: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
        budget: u64,
        errors: &mut Vec<FieldError>,
        warnings: &mut Vec<FieldError>,
    ) -> Option<u64> {
        if !self.schema.root().has_rules() {
            return Some(budget);
        }
        let blocking = |e: &FieldError| {
            matches!(
                e.kind,
                Kind::NotSupported | Kind::Required | Kind::TooLong | Kind::TooMany | Kind::TypeInvalid
            )
        };
        if errors.iter().any(blocking) {
            errors.push(FieldError::invalid(
                path.or_nil(),
                Value::Null,
                "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
            ));
            return Some(budget);
        }
        let mut evaluation = Evaluation::new(&self.rules, budget, errors, warnings);
        evaluation.evaluate(&self.schema, value, old, path)
    }
}

/// Everything wrong with a schema, rules included.
pub fn review(schema: &Value, how: &Reviewing<'_>) -> Vec<FieldError> {
    windlass_schema::review(schema, how, &mut RuleReviewer::default())
}
