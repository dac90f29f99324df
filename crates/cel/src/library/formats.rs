//! Functions for named formats of strings.

use std::sync::Arc;

use cel::common::functions::Function;
use cel::common::types::{CelOptional, STRING_TYPE};
use cel::common::value::{CowVal, Val as _};
use cel::{DeclarationError, Env, Value};
use windlass_schema::Format;

use super::{OwnedType as _, extra, give, text};
use crate::values::{Extra, FORMAT, NamedFormat};

/// Declares the functions.
pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload(
        "validate",
        "format_validate",
        FORMAT.to_owned_type(),
        vec![STRING_TYPE],
        |args| {
            let problem = match extra(&args, 0)? {
                Extra::Format(format) => format.problem(&text(&args, 1)?),
                _ => None,
            };
            let found = problem.map(|p| Value::List(Arc::new(vec![Value::String(Arc::new(p))])));
            give(crate::convert::optional(found))
        },
    )?;
    env.add_overload("format.named", "format_named", vec![STRING_TYPE], |args| {
        let name = text(&args, 0)?;
        let found = NamedFormat::ALL.iter().find(|(known, _)| *known == name.as_str());
        let found = found.map(|(_, format)| Extra::Format(*format).clone_as_boxed());
        Ok(CowVal::owned(found.map_or_else(CelOptional::none, CelOptional::of)))
    })?;
    let formats: [(&str, Function); 13] = [
        ("format.dns1123Label", |_| Ok(of(NamedFormat::Label))),
        ("format.dns1123Subdomain", |_| Ok(of(NamedFormat::Subdomain))),
        ("format.dns1035Label", |_| Ok(of(NamedFormat::Label1035))),
        ("format.qualifiedName", |_| Ok(of(NamedFormat::QualifiedName))),
        ("format.dns1123LabelPrefix", |_| Ok(of(NamedFormat::LabelPrefix))),
        ("format.dns1123SubdomainPrefix", |_| {
            Ok(of(NamedFormat::SubdomainPrefix))
        }),
        ("format.dns1035LabelPrefix", |_| Ok(of(NamedFormat::Label1035Prefix))),
        ("format.labelValue", |_| Ok(of(NamedFormat::LabelValue))),
        ("format.uri", |_| Ok(of(NamedFormat::Known(Format::Uri)))),
        ("format.uuid", |_| Ok(of(NamedFormat::Known(Format::Uuid('0'))))),
        ("format.byte", |_| Ok(of(NamedFormat::Known(Format::Byte)))),
        ("format.date", |_| Ok(of(NamedFormat::Known(Format::Date)))),
        ("format.datetime", |_| Ok(of(NamedFormat::Known(Format::DateTime)))),
    ];
    for (name, function) in formats {
        env.add_overload(name, name, vec![], function)?;
    }
    Ok(())
}

fn of<'b, 'v>(format: NamedFormat) -> CowVal<'b, 'v> {
    CowVal::owned(Extra::Format(format))
}
