//! A text with variables: parsed, listed, and rendered with no variable set and with all set.

use windlass_provider_components::envsubst::{RenderError, Template};

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(text: &str) {
    let Ok(template) = Template::parse(text) else {
        return;
    };
    let variables = template.variables();
    let names = template.names();
    assert!(variables.keys().all(|name| names.contains(name.as_str())));
    let required = variables.iter().filter(|(_, default)| default.is_none());
    let required: Vec<String> = required.map(|(name, _)| name.clone()).collect();
    match template.render(|_| None) {
        Err(RenderError::Missing { names }) => assert_eq!(names, required),
        _ => assert!(required.is_empty(), "rendered without {required:?}"),
    }
    let given = template.render(|name| Some(format!("a{name}/b.c")));
    assert!(!matches!(given, Err(RenderError::Missing { .. })));
    // Escaped text is unchanged, except for blanks around names.
    if !text.contains(|c: char| c.is_ascii_whitespace()) {
        let escaped = text.replace('$', "$$");
        let template = Template::parse(&escaped).expect("there is no variable in it");
        assert_eq!(template.render(|_| None).as_deref(), Ok(text));
    }
}
