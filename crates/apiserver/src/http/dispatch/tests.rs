//! Requests map to verbs.

use super::*;

fn check(method: &str, target: &str, want: &str) {
    let request = http::Request::builder().method(method).uri(target).body(()).unwrap();
    let (parts, ()) = request.into_parts();
    let path = parse_path(parts.uri.path());
    let query = Query::parse(parts.uri.query().unwrap_or(""));
    assert_eq!(verb(&parts, path.as_ref(), &query), want, "{method} {target}");
}

#[test]
fn a_verb_says_what_is_done_to_what() {
    let (all, one) = ("/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/pods/p");
    check("GET", all, "list");
    check("HEAD", all, "list");
    check("GET", &format!("{all}?watch=true"), "watch");
    check("GET", &format!("{all}?watch=false"), "list");
    check("POST", all, "create");
    check("DELETE", all, "deletecollection");
    check("GET", one, "get");
    check("GET", &format!("{one}?watch=1"), "get");
    check("GET", "/api/v1/watch/namespaces/a/pods/p", "watch");
    check("GET", &format!("{one}/log?watch=1"), "get");
    check("PUT", &format!("{one}/status"), "update");
    check("PATCH", one, "patch");
    check("DELETE", one, "delete");
    check("POST", &format!("{one}/eviction"), "create");
    check("GET", "/apis?watch=true", "get");
}

#[test]
fn a_list_may_be_of_one_name() {
    let check = |query: &str, want: Option<&str>| assert_eq!(only_name(query).as_deref(), want, "{query}");
    check("fieldSelector=metadata.name%3Da", Some("a"));
    check("limit=1&fieldSelector=spec.x%3Db,metadata.name%3D%3Da", Some("a"));
    check("fieldSelector=metadata.name%21%3Da", None);
    check("labelSelector=metadata.name%3Da", None);
}
