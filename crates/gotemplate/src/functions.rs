//! The functions of templates: what they are called, what they take, and which there are not.

use crate::builtins;
use crate::machine::Machine;
use crate::sprig;
use crate::value::{Out, Value};

/// Which functions a template may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functions {
    /// Those of text/template.
    Builtin,
    /// Those and Sprig's, as far as they always give the same result.
    Sprig,
}

pub(crate) type Run = fn(&mut Machine<'_>, &[Value]) -> Out;

/// A function of templates.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// Its parameters, a letter each: `.` anything, `s` a text, `i` an int, `f` a float64, `b` a bool, `m` a dictionary;
    /// a `*` at the end allows the last one any number of times.
    pub(crate) takes: &'static str,
    pub(crate) run: Run,
}

/// A row of a function table.
pub(crate) const fn f(name: &'static str, takes: &'static str, run: Run) -> Function {
    Function { name, takes, run }
}

/// Names of Sprig that do not exist here, and why.
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

/// The function of a name.
pub(crate) fn find(name: &str, functions: Functions) -> Option<&'static Function> {
    let sprig = (functions == Functions::Sprig).then(|| sprig::find(name)).flatten();
    sprig.or_else(|| builtins::FUNCTIONS.iter().find(|function| function.name == name))
}

impl Function {
    /// The minimum number of arguments, and whether there may be more.
    pub(crate) fn arity(&self) -> (usize, bool) {
        match self.takes.strip_suffix('*') {
            Some(fixed) => (fixed.len() - 1, true),
            None => (self.takes.len(), false),
        }
    }

    /// What it takes at a place.
    pub(crate) fn kind(&self, at: usize) -> u8 {
        let kinds = self.takes.trim_end_matches('*').as_bytes();
        kinds.get(at).or(kinds.last()).copied().unwrap_or(b'.')
    }

    /// Whether it stops evaluating its arguments once one of them decides: which one, true or false.
    pub(crate) fn decides(&self) -> Option<bool> {
        match self.name {
            "and" => Some(false),
            "or" => Some(true),
            _ => None,
        }
    }
}
