//! Encodings and digests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gtmpl_ng::{Func, Value};
use sha2::{Digest, Sha256};

use super::super::{from_go, to_go};
use super::{Out, arg, fail, text_arg};

pub(super) const FUNCTIONS: &[(&str, Func)] = &[
    ("b64enc", |a| Ok(STANDARD.encode(text_arg(a, 0, "b64enc")?).into())),
    ("b64dec", |a| {
        let bytes = STANDARD
            .decode(text_arg(a, 0, "b64dec")?)
            .map_err(|e| fail(format!("b64dec: {e}")))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned().into())
    }),
    ("toJson", to_json),
    ("mustToJson", to_json),
    ("toRawJson", to_json),
    ("mustToRawJson", to_json),
    ("toPrettyJson", |a| {
        let value = from_go(arg(a, 0, "toPrettyJson")?);
        let text = serde_json::to_string_pretty(&value);
        Ok(text.map_err(|e| fail(format!("toPrettyJson: {e}")))?.into())
    }),
    ("fromJson", from_json),
    ("mustFromJson", from_json),
    ("sha256sum", |a| {
        let digest = Sha256::digest(text_arg(a, 0, "sha256sum")?.as_bytes());
        Ok(digest
            .iter()
            .fold(String::new(), |out, b| out + &format!("{b:02x}"))
            .into())
    }),
];

fn to_json(args: &[Value]) -> Out {
    Ok(from_go(arg(args, 0, "toJson")?).to_string().into())
}

fn from_json(args: &[Value]) -> Out {
    let parsed: serde_json::Value =
        serde_json::from_str(&text_arg(args, 0, "fromJson")?).map_err(|e| fail(format!("fromJson: {e}")))?;
    Ok(to_go(&parsed))
}
