//! `cargo xtask compat DIR`: compares our CRDs with tables of the fields that Cluster API serves.
//!
//! Every difference must be in `xtask/compat-allow.tsv`, and every table without a kind of ours in `xtask/compat-later.tsv`, each
//! with its reason. An unused entry of either list is a difference, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;
use windlass_manager::registry::crds::{Field, Table, flatten};
use windlass_manager::registry::kinds;

/// One difference between a table and our CRD.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    path: String,
    what: String,
}

/// The outcome: the text to print, and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The report.
    pub(crate) text: String,
    /// Whether every difference is allowed.
    pub(crate) good: bool,
}

/// Compares all tables in `dir`; the lists are next to this crate's manifest below `root`.
pub(crate) fn run(root: &Path, dir: &Path) -> Result<Outcome, String> {
    // Kind, path and type of difference: another difference at the same path is not allowed.
    let allowed = rows::<3>(&root.join("xtask/compat-allow.tsv"))?;
    let later = rows::<2>(&root.join("xtask/compat-later.tsv"))?;
    let mut used = BTreeSet::new();
    let mut report = Report::default();
    let ours = ours();
    for name in table_names(dir)? {
        let text = read(&dir.join(&name))?;
        let table = parse(&text).map_err(|error| format!("{name}: {error}"))?;
        let id = format!(
            "{}/{}, {}",
            table.facts["group"], table.facts["version"], table.facts["kind"]
        );
        match ours.get(&(
            table.facts["group"].clone(),
            table.facts["kind"].clone(),
            table.facts["version"].clone(),
        )) {
            Some(our) => {
                let differences = compare(&table, our);
                let (ok, bad): (Vec<_>, Vec<_>) = differences.into_iter().partition(|difference| {
                    let row = [
                        table.facts["kind"].clone(),
                        difference.path.clone(),
                        difference.what.clone(),
                    ];
                    let is_allowed = allowed.contains_key(&row);
                    if is_allowed {
                        used.insert(row.to_vec());
                    }
                    is_allowed
                });
                report.kind(&id, table.fields.len(), &ok, &bad);
            }
            None => match later.get(&[table.facts["kind"].clone(), table.facts["version"].clone()]) {
                Some(reason) => {
                    used.insert(vec![table.facts["kind"].clone(), table.facts["version"].clone()]);
                    report.later.push(format!("{id}: {reason}"));
                }
                None => report.bad(
                    &id,
                    "no such kind or version here, and no reason in xtask/compat-later.tsv",
                ),
            },
        }
    }
    let listed = allowed
        .keys()
        .map(|row| row.to_vec())
        .chain(later.keys().map(|row| row.to_vec()));
    for row in listed.filter(|row| !used.contains(row)) {
        report.bad(
            &row.join(" "),
            "listed as an exception, but there is no such difference any more",
        );
    }
    Ok(report.finish())
}

#[derive(Debug, Default)]
struct Report {
    text: String,
    later: Vec<String>,
    kinds: usize,
    fields: usize,
    allowed: usize,
    differences: usize,
}

impl Report {
    fn kind(&mut self, id: &str, fields: usize, allowed: &[Difference], bad: &[Difference]) {
        self.kinds += 1;
        self.fields += fields;
        self.allowed += allowed.len();
        self.differences += bad.len();
        let _ = writeln!(
            self.text,
            "{id}: {fields} fields, {} differences, {} allowed",
            bad.len(),
            allowed.len()
        );
        for difference in bad {
            let _ = writeln!(self.text, "  {}: {}", difference.path, difference.what);
        }
        for difference in allowed {
            let _ = writeln!(self.text, "  (allowed) {}: {}", difference.path, difference.what);
        }
    }

    fn bad(&mut self, id: &str, what: &str) {
        self.differences += 1;
        let _ = writeln!(self.text, "{id}: {what}");
    }

    fn finish(mut self) -> Outcome {
        let _ = writeln!(self.text, "not served yet:");
        for line in &self.later {
            let _ = writeln!(self.text, "  {line}");
        }
        let _ = writeln!(
            self.text,
            "{} kinds, {} fields compared: {} differences, {} allowed; {} not served yet",
            self.kinds,
            self.fields,
            self.differences,
            self.allowed,
            self.later.len()
        );
        Outcome {
            text: self.text,
            good: self.differences == 0,
        }
    }
}

fn ours() -> BTreeMap<(String, String, String), Table> {
    let mut tables = BTreeMap::new();
    for entry in kinds::KINDS {
        let crd = (entry.crd)();
        for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
            let version = version["name"].as_str().unwrap_or_default();
            if let Some(table) = flatten(&crd, version) {
                tables.insert(
                    (entry.group.to_owned(), entry.kind.to_owned(), version.to_owned()),
                    table,
                );
            }
        }
    }
    tables
}

fn table_names(dir: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: cannot be read: {error}", dir.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "tsv"))
        .collect();
    if names.is_empty() {
        return Err(format!("{}: no tables (*.tsv) here", dir.display()));
    }
    names.sort();
    Ok(names)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: cannot be read: {error}", path.display()))
}

/// Rows `A<TAB>B<TAB>REASON` of a list; lines that start with `#` are comments.
fn rows<const KEYS: usize>(path: &Path) -> Result<BTreeMap<[String; KEYS], String>, String> {
    let text = read(path)?;
    let lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let row = |line: &str| {
        let (keys, reason) = line.rsplit_once('\t').filter(|(_, reason)| !reason.trim().is_empty())?;
        let keys: Vec<String> = keys.split('\t').map(str::to_owned).collect();
        Some((keys.try_into().ok()?, reason.to_owned()))
    };
    let wrong = |line| {
        format!(
            "{}: expected {} columns separated by tabs: {line:?}",
            path.display(),
            KEYS + 1
        )
    };
    lines.map(|line| row(line).ok_or_else(|| wrong(line))).collect()
}

/// Parses a table of fields.
fn parse(text: &str) -> Result<Table, String> {
    let mut table = Table::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(fact) = line.strip_prefix("# ") {
            parse_fact(&mut table, fact);
            continue;
        }
        let columns: Vec<&str> = line.split('\t').collect();
        let [path, type_, required, constraints] = columns[..] else {
            return Err(format!("expected four columns: {line:?}"));
        };
        let field = Field {
            type_: type_.to_owned(),
            required: required == "required",
            constraints: parse_constraints(constraints).ok_or_else(|| format!("cannot be read: {constraints:?}"))?,
        };
        table.fields.insert(path.to_owned(), field);
    }
    for fact in ["group", "kind", "version"] {
        if !table.facts.contains_key(fact) {
            return Err(format!("says no {fact}"));
        }
    }
    Ok(table)
}

fn parse_fact(table: &mut Table, fact: &str) {
    if let Some(column) = fact.strip_prefix("column ") {
        table.columns.push(column.to_owned());
    } else if let Some(subresources) = fact.strip_prefix("subresources ") {
        let value: Value = serde_json::from_str(subresources).unwrap_or_default();
        table.facts.insert("subresources".to_owned(), value.to_string());
    } else {
        let words: Vec<&str> = fact.split(' ').collect();
        for pair in words.chunks_exact(2) {
            let value = match pair[1] {
                "True" => "true",
                "False" => "false",
                other => other,
            };
            table.facts.insert(pair[0].to_owned(), value.to_owned());
        }
    }
}

/// Parses `name=JSON name=JSON ...`.
fn parse_constraints(text: &str) -> Option<BTreeMap<String, Value>> {
    let mut constraints = BTreeMap::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, tail) = rest.split_once('=')?;
        let mut values = serde_json::Deserializer::from_str(tail).into_iter::<Value>();
        let value = values.next()?.ok()?;
        constraints.insert(name.to_owned(), value);
        rest = tail[values.byte_offset()..].trim_start();
    }
    Some(constraints)
}

fn compare(theirs: &Table, ours: &Table) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut say = |path: &str, what: String| {
        differences.push(Difference {
            path: path.to_owned(),
            what,
        });
    };
    for (fact, value) in &theirs.facts {
        let our = ours.facts.get(fact);
        if our != Some(value) && fact != "deprecated" {
            say(
                fact,
                format!("expected {value}, ours is {}", our.map_or("-", String::as_str)),
            );
        }
    }
    if theirs.columns != ours.columns {
        say(
            "columns",
            format!("expected {:?}, ours are {:?}", theirs.columns, ours.columns),
        );
    }
    let paths: BTreeSet<&String> = theirs.fields.keys().chain(ours.fields.keys()).collect();
    for path in paths {
        match (theirs.fields.get(path), ours.fields.get(path)) {
            (Some(_), None) => say(path, "missing".to_owned()),
            (None, Some(_)) => say(path, "ours only".to_owned()),
            (Some(their), Some(our)) => {
                for what in compare_field(their, our) {
                    say(path, what);
                }
            }
            (None, None) => {}
        }
    }
    differences
}

fn compare_field(their: &Field, our: &Field) -> Vec<String> {
    let mut differences = Vec::new();
    if their.type_ != our.type_ {
        differences.push(format!("expected type {}, ours is {}", their.type_, our.type_));
    }
    if their.required != our.required {
        differences.push(format!(
            "expected required={}, ours is {}",
            their.required, our.required
        ));
    }
    let names: BTreeSet<&String> = their.constraints.keys().chain(our.constraints.keys()).collect();
    for name in names {
        let (their, our) = (their.constraints.get(name), our.constraints.get(name));
        if !same(name, their, our) {
            let show = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), Value::to_string);
            differences.push(format!("expected {name} {}, ours is {}", show(their), show(our)));
        }
    }
    differences
}

/// The order of an enumeration is ignored; numbers are compared as numbers.
fn same(name: &str, a: Option<&Value>, b: Option<&Value>) -> bool {
    let words = |value: &Value| {
        value
            .as_array()
            .map(|v| v.iter().map(Value::to_string).collect::<BTreeSet<_>>())
    };
    match (a, b) {
        (Some(a), Some(b)) if name == "enum" => words(a) == words(b),
        (Some(Value::Number(a)), Some(Value::Number(b))) => a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = concat!(
        "# kind K plural ks group g.io version v1\n# scope Namespaced shortNames - categories a,b\n",
        "# served True storage True deprecated False\n# subresources {\"status\": {}}\n",
        "# column Age .metadata.creationTimestamp date priority 0\n",
        "spec\tobject\trequired\tminProperties=1\n",
        "spec.a\tstring\toptional\tminLength=1 pattern=\"^a = b$\" enum=[\"x\", \"y\"]\n",
    );

    #[test]
    fn tables_are_read() {
        let table = parse(TABLE).unwrap();
        assert_eq!(table.facts["categories"], "a,b");
        assert_eq!(table.facts["served"], "true");
        assert_eq!(table.columns, ["Age .metadata.creationTimestamp date priority 0"]);
        assert_eq!(table.fields["spec.a"].constraints["pattern"], "^a = b$");
        assert!(table.fields["spec"].required);
        assert!(parse("spec\tobject").is_err());
    }

    #[test]
    fn every_difference_is_named_by_its_path() {
        let theirs = parse(TABLE).unwrap();
        let mut ours = theirs.clone();
        assert_eq!(compare(&theirs, &ours), []);
        ours.columns.clear();
        ours.fields.remove("spec.a");
        ours.fields.get_mut("spec").unwrap().constraints.clear();
        ours.fields.insert("spec.b".to_owned(), Field::default());
        let found: Vec<String> = compare(&theirs, &ours).into_iter().map(|d| d.path).collect();
        assert_eq!(found, ["columns", "spec", "spec.a", "spec.b"]);
    }

    #[test]
    fn the_order_of_an_enumeration_does_not_count() {
        let (a, b) = (serde_json::json!(["x", "y"]), serde_json::json!(["y", "x"]));
        assert!(same("enum", Some(&a), Some(&b)));
        assert!(!same("list-map-keys", Some(&a), Some(&b)));
        assert!(same(
            "minimum",
            Some(&serde_json::json!(1)),
            Some(&serde_json::json!(1.0))
        ));
    }
}
