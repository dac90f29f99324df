//! Generic packages, as on GitLab.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::forge::{Asked, Demand, State, decoded};

pub(crate) fn answer(state: &State, asked: &Asked) -> Answer {
    if let Some(Demand::Token(token)) = state.demands.lock().get(&asked.host)
        && asked.authorization.as_deref() != Some(&format!("Bearer {token}"))
    {
        return Answer::json(401, &json!({"message": "401 Unauthorized"}));
    }
    let path = asked.path.trim_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    let packages = state.packages.lock();
    match parts.as_slice() {
        ["api", "v4", "projects", project, "packages"] => {
            let mut all: Vec<Value> = Vec::new();
            for ((_, name), versions) in packages.iter().filter(|((of, _), _)| of == project) {
                all.extend(versions.keys().map(|version| json!({"name": name, "version": version})));
            }
            if all.is_empty() {
                return Answer::json(404, &json!({"message": "404 Project Not Found"}));
            }
            let wanted = asked.query.get("package_name").cloned().unwrap_or_default();
            all.retain(|package| package["name"].as_str().is_some_and(|name| name.contains(&wanted)));
            let (page, next) = state.page(asked, &all);
            let next = next.map(|next| next.to_string()).unwrap_or_default();
            Answer::json(200, &page.into()).tagged().with("x-next-page", next)
        }
        [
            "api",
            "v4",
            "projects",
            project,
            "packages",
            "generic",
            package,
            version,
            name,
        ] => {
            let versions = packages.get(&((*project).to_owned(), (*package).to_owned()));
            let files = versions.and_then(|versions| versions.get(&decoded(version)));
            let content = files.and_then(|files| files.get(&decoded(name)).cloned());
            content.map_or_else(Answer::not_found, |content| Answer::new(200, content).tagged())
        }
        _ => Answer::not_found(),
    }
}
