//! A web server with folders.

use std::collections::BTreeSet;

use crate::answer::{Answer, basic};
use crate::forge::{Asked, Demand, State, decoded};

pub(crate) fn answer(state: &State, asked: &Asked) -> Answer {
    let is_let_in = match state.demands.lock().get(&asked.host) {
        Some(Demand::Token(_)) => false,
        Some(Demand::Basic(name, password)) => asked.authorization.as_deref() == Some(&basic(name, password)),
        _ => true,
    };
    if !is_let_in {
        return Answer::new(401, "").with("www-authenticate", "Basic realm=\"files\"");
    }
    let files = state.web.lock();
    let path = decoded(asked.path.trim_start_matches('/'));
    if let Some(content) = files.get(&path) {
        return Answer::new(200, content.clone()).tagged();
    }
    let inside = files.keys().filter_map(|name| name.strip_prefix(&path));
    let names: BTreeSet<&str> = inside.filter_map(|rest| rest.split_inclusive('/').next()).collect();
    if !path.ends_with('/') || names.is_empty() {
        return Answer::new(404, "nothing there");
    }
    if *state.unlisted.lock() {
        return Answer::new(403, "no listing");
    }
    let rows: String = names
        .iter()
        .flat_map(|name| ["<a href=\"", name, "\">", name, "</a>\n"])
        .collect();
    let page = format!("<!DOCTYPE html>\n<html><body>\n<a href=\"../\">..</a>\n{rows}</body></html>\n");
    Answer::new(200, page).with("content-type", "text/html").tagged()
}
