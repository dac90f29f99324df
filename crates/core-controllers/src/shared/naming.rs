//! Names of Machines, by the naming template of their MachineSet.

use serde_json::json;
use windlass_gotemplate::render_strict;

const MAX_NAME: usize = 63;
const RANDOM: usize = 5;
const DEFAULT_TEMPLATE: &str = "{{ .machineSet.name }}-{{ .random }}";

/// The name of a new Machine; `random` is five characters that differ from call to call.
pub(crate) fn machine_name(template: Option<&str>, cluster: &str, set: &str, random: &str) -> Result<String, String> {
    let template = template.unwrap_or(DEFAULT_TEMPLATE);
    let data = json!({
        "cluster": {"name": cluster},
        "machineSet": {"name": set},
        "random": random,
    });
    let mut name =
        render_strict(template, &data).map_err(|error| format!("machineNaming.template {template:?}: {error}"))?;
    if name.len() > MAX_NAME {
        let cut = (0..=MAX_NAME - RANDOM).rev().find(|at| name.is_char_boundary(*at));
        name.truncate(cut.unwrap_or_default());
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
