//! Names of Machines, by the naming template of their MachineSet.

use std::collections::HashMap;

use gtmpl_ng::Value;

const MAX_NAME: usize = 63;
const RANDOM: usize = 5;
const DEFAULT_TEMPLATE: &str = "{{ .machineSet.name }}-{{ .random }}";

fn object(fields: &[(&str, Value)]) -> Value {
    Value::Object(
        fields
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect::<HashMap<_, _>>(),
    )
}

/// The name of a new Machine; `random` is five characters that differ from call to call.
pub(crate) fn machine_name(template: Option<&str>, cluster: &str, set: &str, random: &str) -> Result<String, String> {
    let template = template.unwrap_or(DEFAULT_TEMPLATE);
    let context = object(&[
        ("cluster", object(&[("name", Value::from(cluster))])),
        ("machineSet", object(&[("name", Value::from(set))])),
        ("random", Value::from(random)),
    ]);
    let mut name = gtmpl_ng::template(template, context)
        .map_err(|error| format!("machineNaming.template {template:?} cannot be rendered: {error}"))?;
    if name.len() > MAX_NAME {
        name.truncate(MAX_NAME - RANDOM);
        name.push_str(random);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_set_and_a_random_suffix() {
        assert_eq!(
            machine_name(None, "c", "md-0-x", "abcde").as_deref(),
            Ok("md-0-x-abcde")
        );
    }

    #[test]
    fn a_template_decides() {
        let template = "{{ .cluster.name }}-{{ .machineSet.name }}-{{ .random }}";
        assert_eq!(
            machine_name(Some(template), "c", "s", "abcde").as_deref(),
            Ok("c-s-abcde")
        );
        assert!(machine_name(Some("{{ .oops"), "c", "s", "abcde").is_err());
    }

    #[test]
    fn names_that_are_too_long_are_cut_and_stay_different() {
        let name = machine_name(None, "c", &"s".repeat(80), "abcde").unwrap();
        assert_eq!((name.len(), &name[58..]), (63, "abcde"));
    }
}
