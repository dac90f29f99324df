//! The requests of a provider's files to cert-manager.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use serde_json::Value;
use windlass_meta::{GoDuration, ObjectKey};
use windlass_pki::LeafUsage;

use super::{CertificateError, usage};
use crate::object;

/// The group of cert-manager's kinds.
const GROUP: &str = "cert-manager.io";
/// The annotation with the Certificate, as `namespace/name`, whose authority is to be injected.
pub(super) const INJECT_FROM: &str = "cert-manager.io/inject-ca-from";
/// The same annotation for a Secret.
pub(super) const INJECT_FROM_SECRET: &str = "cert-manager.io/inject-ca-from-secret";
/// The annotation for injecting the authority of the API server.
const INJECT_API_SERVER: &str = "cert-manager.io/inject-apiserver-ca";
/// Default validity period of cert-manager's certificates.
const USUAL_DAYS: i32 = 90;
/// Longest common name that X.509 allows.
const LONGEST_NAME: usize = 64;

/// A requested certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The Certificate object of the request.
    pub certificate: ObjectKey,
    /// Its Secret in the same namespace.
    pub secret: String,
    /// The subject's common name.
    pub common_name: String,
    /// The subject's organization.
    pub organization: Option<String>,
    /// Its DNS names.
    pub dns_names: Vec<String>,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Its usage.
    pub usage: LeafUsage,
    /// Whether it is an authority.
    pub authority: bool,
    /// Its validity in days.
    pub days: i32,
    /// How long before its end it is renewed. Defaults to a third of its validity.
    pub renew_before: Option<SignedDuration>,
    /// Labels of the Secret.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Secret.
    pub annotations: BTreeMap<String, String>,
}

/// An object that gets a CA bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// Its index among the objects.
    pub at: usize,
    /// The Secret with the certificate of the authority.
    pub secret: String,
}

/// All requests to cert-manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Certificates to issue.
    pub requests: Vec<Request>,
    /// Objects that get the CA bundle.
    pub injections: Vec<Injection>,
}

impl Request {
    /// All names and addresses.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.dns_names.iter().chain(&self.addresses).map(String::as_str)
    }

    /// Its validity.
    pub fn life(&self) -> SignedDuration {
        SignedDuration::from_hours(i64::from(self.days) * 24)
    }
}

/// Finds the requested certificates. Requests that only cert-manager can fulfil are errors, all of them at once.
pub fn plan(objects: &[Value]) -> Result<Plan, CertificateError> {
    let mut problems = Vec::new();
    let certificates = of_kind(objects, "Certificate");
    let authorities: BTreeSet<(&str, &str)> = certificates
        .iter()
        .filter(|one| one["spec"]["isCA"] == true)
        .map(|one| (object::namespace(one), object::text(one, &["spec", "secretName"])))
        .collect();
    for one in objects.iter().filter(|one| is_of_cert_manager(one)) {
        if !["Certificate", "Issuer", "ClusterIssuer"].contains(&object::kind(one)) {
            problems.push(format!("{} cannot be replaced", object::Identity::of(one)));
        }
    }
    let mut requests: Vec<Request> = Vec::new();
    for one in certificates {
        match request(one, objects, &authorities) {
            Ok(request) if requests.iter().any(|other| other.secret == request.secret) => {
                problems.push(format!(
                    "Certificate {} has the Secret of another one",
                    request.certificate
                ));
            }
            Ok(request) => requests.push(request),
            Err(why) => problems.push(format!("Certificate {} {why}", object::Identity::of(one).key)),
        }
    }
    let mut injections = Vec::new();
    for (at, one) in objects.iter().enumerate() {
        match injected(one, &requests) {
            Ok(Some(secret)) => injections.push(Injection { at, secret }),
            Ok(None) => {}
            Err(why) => problems.push(format!("{} {why}", object::Identity::of(one))),
        }
    }
    if problems.is_empty() {
        Ok(Plan { requests, injections })
    } else {
        Err(CertificateError::NeedsCertManager(problems))
    }
}

pub(super) fn is_of_cert_manager(one: &Value) -> bool {
    let group = object::group(one);
    group == GROUP || group.strip_suffix(GROUP).is_some_and(|front| front.ends_with('.'))
}

fn of_kind<'v>(objects: &'v [Value], kind: &str) -> Vec<&'v Value> {
    let is = |one: &&Value| object::group(one) == GROUP && object::kind(one) == kind;
    objects.iter().filter(is).collect()
}

fn request(one: &Value, objects: &[Value], authorities: &BTreeSet<(&str, &str)>) -> Result<Request, String> {
    let spec = &one["spec"];
    let text = |field: &str| object::text(one, &["spec", field]);
    let namespace = object::namespace(one);
    issuer(&spec["issuerRef"], namespace, objects, authorities)?;
    let secret = text("secretName");
    if secret.is_empty() {
        return Err("has no spec.secretName".to_owned());
    }
    let strange = ["uris", "emailAddresses", "otherNames", "literalSubject", "keystores"];
    if let Some(field) = strange
        .into_iter()
        .find(|field| spec.get(field).is_some_and(|value| !value.is_null()))
    {
        return Err(format!("asks for spec.{field}"));
    }
    let (dns_names, addresses) = (texts(&spec["dnsNames"]), texts(&spec["ipAddresses"]));
    let authority = spec["isCA"] == true;
    if dns_names.is_empty() && addresses.is_empty() && !authority {
        return Err("has neither spec.dnsNames nor spec.ipAddresses".to_owned());
    }
    let duration = |field: &str| match text(field) {
        "" => Ok(None),
        text => match text.parse::<GoDuration>() {
            Ok(duration) => Ok(Some(SignedDuration::from_nanos(duration.as_nanos()))),
            Err(error) => Err(format!("has a spec.{field} that cannot be read: {error}")),
        },
    };
    let days = duration("duration")?.map_or(USUAL_DAYS, |life| {
        let days = life.as_secs().div_euclid(86_400) + i64::from(life.as_secs() % 86_400 != 0);
        i32::try_from(days.max(1)).unwrap_or(i32::MAX)
    });
    let words = texts(&spec["usages"]);
    let common_name = Some(text("commonName"))
        .filter(|name| !name.is_empty())
        .unwrap_or(object::name(one));
    let template = &spec["secretTemplate"];
    let mut labels = map(&one["metadata"]["labels"]);
    labels.extend(map(&template["labels"]));
    Ok(Request {
        certificate: ObjectKey::new(namespace, object::name(one)),
        secret: secret.to_owned(),
        common_name: common_name.chars().take(LONGEST_NAME).collect(),
        organization: texts(&spec["subject"]["organizations"]).into_iter().next(),
        dns_names,
        addresses,
        usage: usage(&words.iter().map(String::as_str).collect::<Vec<_>>()),
        authority,
        days,
        renew_before: duration("renewBefore")?,
        labels,
        annotations: map(&template["annotations"]),
    })
}

/// Checks that an issuer is self-signed, or has an authority of the provider.
fn issuer(
    reference: &Value,
    namespace: &str,
    objects: &[Value],
    authorities: &BTreeSet<(&str, &str)>,
) -> Result<(), String> {
    let text = |field: &str| object::text(reference, &[field]);
    let kind = Some(text("kind")).filter(|kind| !kind.is_empty()).unwrap_or("Issuer");
    let name = text("name");
    let group = text("group");
    let found = of_kind(objects, kind).into_iter().find(|issuer| {
        let here = kind != "Issuer" || object::namespace(issuer) == namespace;
        here && object::name(issuer) == name && ["", GROUP].contains(&group)
    });
    let Some(issuer) = found else {
        return Err(format!(
            "is issued by {kind} {name}, which does not come with the provider"
        ));
    };
    let spec = &issuer["spec"];
    let authority = object::text(spec, &["ca", "secretName"]);
    if spec.get("selfSigned").is_some() || authorities.contains(&(namespace, authority)) {
        return Ok(());
    }
    Err(format!(
        "is issued by {kind} {name}, which is neither selfSigned nor has an authority that comes with the provider"
    ))
}

/// The Secret whose authority is injected into an object.
fn injected(one: &Value, requests: &[Request]) -> Result<Option<String>, String> {
    let annotation = |key: &str| one["metadata"]["annotations"].get(key).and_then(Value::as_str);
    if annotation(INJECT_API_SERVER) == Some("true") {
        return Err(format!("has {INJECT_API_SERVER}"));
    }
    let of = |request: &Request| (request.certificate.namespace.clone(), request.certificate.name.clone());
    let to = |request: &Request| (request.certificate.namespace.clone(), request.secret.clone());
    let find = |text: &str, key: &dyn Fn(&Request) -> (String, String), what: &str| {
        let wanted = text
            .split_once('/')
            .map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
        let found = requests.iter().find(|request| Some(key(request)) == wanted);
        let why = || format!("is to trust {what} {text}, which does not come with the provider");
        found.map(|request| Some(request.secret.clone())).ok_or_else(why)
    };
    match (annotation(INJECT_FROM), annotation(INJECT_FROM_SECRET)) {
        (Some(text), _) => find(text, &of, "Certificate"),
        (None, Some(text)) => find(text, &to, "Secret"),
        (None, None) => Ok(None),
    }
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

fn map(value: &Value) -> BTreeMap<String, String> {
    let fields = value.as_object().into_iter().flatten();
    fields
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}
