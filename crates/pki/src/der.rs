//! The DER elements to convert between PKCS#8 and the older key formats of kubeadm.

/// Splits off the first element: tag, content, rest.
fn split(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let n = usize::from(first & 0x7f);
        if n == 0 || n > 4 || rest.len() < n {
            return None;
        }
        let length = rest[..n]
            .iter()
            .fold(0usize, |sum, &byte| (sum << 8) | usize::from(byte));
        (length, &rest[n..])
    };
    (rest.len() >= length).then(|| (tag, &rest[..length], &rest[length..]))
}

/// One element with its length.
pub(crate) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    if let Ok(short) = u8::try_from(length)
        && short < 0x80
    {
        out.push(short);
    } else {
        let bytes = length.to_be_bytes();
        let skip = bytes.iter().take_while(|&&byte| byte == 0).count();
        let significant = &bytes[skip..];
        // A length has at most eight bytes.
        out.push(0x80 | u8::try_from(significant.len()).unwrap_or(8));
        out.extend_from_slice(significant);
    }
    out.extend_from_slice(content);
    out
}

/// The private key inside a PKCS#8 document: PKCS#1 for RSA, `ECPrivateKey` for elliptic curves.
pub(crate) fn pkcs8_inner(pkcs8: &[u8]) -> Option<&[u8]> {
    let (0x30, body, _) = split(pkcs8)? else {
        return None;
    };
    let (0x02, _, rest) = split(body)? else {
        return None;
    };
    let (0x30, _, rest) = split(rest)? else {
        return None;
    };
    let (0x04, inner, _) = split(rest)? else {
        return None;
    };
    Some(inner)
}

/// The private number of an `ECPrivateKey`.
pub(crate) fn ec_private_number(inner: &[u8]) -> Option<&[u8]> {
    let (0x30, body, _) = split(inner)? else {
        return None;
    };
    let (0x02, _, rest) = split(body)? else {
        return None;
    };
    let (0x04, number, _) = split(rest)? else {
        return None;
    };
    Some(number)
}

/// An `ECPrivateKey` (RFC 5915) with curve and public key, as Go writes it.
pub(crate) fn ec_private_key(number: &[u8], curve_oid: &[u8], public: &[u8]) -> Vec<u8> {
    let mut body = element(0x02, &[1]);
    body.extend(element(0x04, number));
    body.extend(element(0xa0, &element(0x06, curve_oid)));
    let mut bits = vec![0];
    bits.extend_from_slice(public);
    body.extend(element(0xa1, &element(0x03, &bits)));
    element(0x30, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_round_trip_at_every_form_border() {
        for length in [0usize, 1, 127, 128, 255, 256, 65_535, 65_536] {
            let content = vec![7; length];
            let encoded = element(0x04, &content);
            assert_eq!(split(&encoded), Some((0x04, content.as_slice(), &[][..])), "{length}");
        }
    }

    #[test]
    fn truncated_input_is_refused() {
        assert_eq!(split(&[0x30, 0x05, 1]), None);
        assert_eq!(split(&[0x30, 0x80]), None);
        assert_eq!(split(&[]), None);
        assert_eq!(pkcs8_inner(&[0x30, 0x03, 0x02, 0x01, 0x00]), None);
    }
}
