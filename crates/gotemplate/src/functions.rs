//! The functions of templates: names, parameters, and the ones that are not supported.

use crate::builtins;
use crate::machine::Machine;
use crate::sprig;
use crate::value::{Out, Value};

/// The set of available functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functions {
    /// Those of text/template.
    Builtin,
    /// Those and the deterministic functions of Sprig.
    Sprig,
}

pub(crate) type Run = fn(&mut Machine<'_>, &[Value]) -> Out;

/// A function of templates.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// Its parameters, one letter each: `.` anything, `s` a text, `i` an int, `f` a float64, `b` a bool, `m` a dictionary; a
    /// final `*` repeats the last one any number of times.
    pub(crate) takes: &'static str,
    pub(crate) run: Run,
}

/// A row of a function table.
pub(crate) const fn f(name: &'static str, takes: &'static str, run: Run) -> Function {
    Function { name, takes, run }
}

/// Sprig functions that are not supported, and why.
pub(crate) const NOT_OFFERED: &[(&[&str], &str)] = &[
    (
        &[
            "ago",
            "date",
            "date_in_zone",
            "date_modify",
            "dateInZone",
            "dateModify",
            "htmlDate",
            "htmlDateInZone",
            "must_date_modify",
            "mustDateModify",
            "mustToDate",
            "now",
            "toDate",
            "unixEpoch",
        ],
        "it depends on the clock or the time zone, and a template must give the same text whenever it is rendered",
    ),
    (
        &[
            "randAlphaNum",
            "randAlpha",
            "randAscii",
            "randNumeric",
            "randBytes",
            "randInt",
            "shuffle",
            "uuidv4",
            "bcrypt",
            "htpasswd",
            "genPrivateKey",
            "genCA",
            "genCAWithKey",
            "genSelfSignedCert",
            "genSelfSignedCertWithKey",
            "genSignedCert",
            "genSignedCertWithKey",
            "encryptAES",
        ],
        "it depends on chance, and a template must give the same text whenever it is rendered",
    ),
    (
        &["env", "expandenv"],
        "it would show the environment of the controller to the authors of templates",
    ),
    (
        &["getHostByName"],
        "it would give authors of templates access to the network of the controller",
    ),
    (
        &["derivePassword", "decryptAES", "buildCustomCert"],
        "keys and passwords have no place in a template",
    ),
    (
        &["toYaml", "fromYaml", "toToml", "tpl", "include", "lookup"],
        "it is a function of Helm's charts, not of Sprig (`toJson` gives what YAML can hold)",
    ),
];

/// The function with a name.
pub(crate) fn find(name: &str, functions: Functions) -> Option<&'static Function> {
    let sprig = (functions == Functions::Sprig).then(|| sprig::find(name)).flatten();
    sprig.or_else(|| builtins::FUNCTIONS.iter().find(|function| function.name == name))
}

impl Function {
    /// The minimum number of arguments, and whether more are allowed.
    pub(crate) fn arity(&self) -> (usize, bool) {
        match self.takes.strip_suffix('*') {
            Some(fixed) => (fixed.len() - 1, true),
            None => (self.takes.len(), false),
        }
    }

    /// The type of the parameter at an index.
    pub(crate) fn kind(&self, at: usize) -> u8 {
        let kinds = self.takes.trim_end_matches('*').as_bytes();
        kinds.get(at).or(kinds.last()).copied().unwrap_or(b'.')
    }

    /// The value at which it stops evaluating its arguments, if it short-circuits.
    pub(crate) fn decides(&self) -> Option<bool> {
        match self.name {
            "and" => Some(false),
            "or" => Some(true),
            _ => None,
        }
    }
}
