//! Blocks of headers: names and values, compressed with zlib and a dictionary that both sides know. All blocks of one direction share one
//! compression context.

use bytes::{BufMut as _, Bytes, BytesMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::frame::Violation;

/// The names at the beginning of the dictionary, each with its length before it.
const NAMES: &str = "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow \
    authorization cache-control connection content-base content-encoding content-language content-length content-location content-md5 \
    content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since \
    last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer \
    transfer-encoding upgrade user-agent vary via warning www-authenticate method get status";
/// The names and values between the names and the text, each with its length before it.
const PAIRS: [&str; 8] = [
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];
/// The text at the end of the dictionary.
const TEXT: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative \
    Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not \
    Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, \
    GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=\
    gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
/// How many bytes are decompressed at once.
const PIECE: usize = 1 << 10;

/// Names in lower case and values, in the order in which they came. Several values of a name are separated by zero bytes.
pub type Headers = Vec<(String, String)>;

/// The dictionary of SPDY/3.
fn dictionary() -> Vec<u8> {
    let mut out = Vec::with_capacity(1423);
    for word in NAMES.split_whitespace().chain(PAIRS) {
        put(&mut out, word);
    }
    out.extend_from_slice(TEXT.as_bytes());
    out
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(text.as_bytes());
}

/// Decompresses the blocks of the other side.
#[derive(Debug)]
pub(crate) struct Inflater {
    state: Decompress,
    /// The most bytes of a decompressed block.
    most: usize,
}

impl Inflater {
    pub(crate) fn new(most: usize) -> Self {
        let state = Decompress::new(true);
        Self { state, most }
    }

    /// The headers of a block. After an error, the context is of no use any more.
    pub(crate) fn read(&mut self, mut block: &[u8]) -> Result<Headers, Violation> {
        let (mut out, mut piece) = (Vec::new(), [0; PIECE]);
        loop {
            let before = (self.state.total_in(), self.state.total_out());
            let done = self.state.decompress(block, &mut piece, FlushDecompress::Sync);
            let since = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
            let taken = since(self.state.total_in(), before.0);
            let written = since(self.state.total_out(), before.1);
            block = block.get(taken..).unwrap_or_default();
            out.extend_from_slice(piece.get(..written).unwrap_or_default());
            match done {
                Err(error) if error.needs_dictionary().is_some() => {
                    let known = self.state.set_dictionary(&dictionary());
                    known.map_err(|_| Violation::Headers("they need another dictionary"))?;
                    continue;
                }
                Err(_) | Ok(Status::StreamEnd) => return Err(Violation::Headers("they cannot be decompressed")),
                Ok(_) => {}
            }
            if out.len() > self.most {
                return Err(Violation::Headers("they are too long"));
            }
            if block.is_empty() && written < PIECE {
                return parse(&out);
            }
            if taken == 0 && written == 0 {
                return Err(Violation::Headers("they cannot be decompressed"));
            }
        }
    }
}

/// The headers of a decompressed block.
fn parse(mut block: &[u8]) -> Result<Headers, Violation> {
    let cut = || Violation::Headers("they end early");
    let count = number(&mut block).ok_or_else(cut)?;
    let mut found = Headers::new();
    for _ in 0..count {
        let name = text(&mut block)?.to_owned();
        let value = text(&mut block)?.to_owned();
        if name.is_empty() || name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(Violation::Headers("a name is empty or not in lower case"));
        }
        if found.iter().any(|(other, _)| *other == name) {
            return Err(Violation::Headers("a name is there twice"));
        }
        found.push((name, value));
    }
    if block.is_empty() {
        Ok(found)
    } else {
        Err(Violation::Headers("more bytes follow them"))
    }
}

fn number(from: &mut &[u8]) -> Option<u32> {
    let (first, rest) = from.split_first_chunk::<4>()?;
    *from = rest;
    Some(u32::from_be_bytes(*first))
}

/// A text with its length before it.
fn text<'a>(from: &mut &'a [u8]) -> Result<&'a str, Violation> {
    let length = number(from).and_then(|length| usize::try_from(length).ok());
    let cut = length.and_then(|length| from.split_at_checked(length));
    let (bytes, rest) = cut.ok_or(Violation::Headers("they end early"))?;
    *from = rest;
    std::str::from_utf8(bytes).map_err(|_| Violation::Headers("they are no text"))
}

/// Compresses the blocks of this side.
#[derive(Debug)]
pub(crate) struct Deflater(Compress);

impl Deflater {
    pub(crate) fn new() -> Self {
        let mut state = Compress::new(Compression::fast(), true);
        // A new context takes any dictionary. Without it, the other side decompresses as well.
        let _ = state.set_dictionary(&dictionary());
        Self(state)
    }

    /// A block of headers.
    pub(crate) fn write(&mut self, headers: &[(String, String)]) -> Bytes {
        let mut plain = Vec::new();
        plain.put_u32(u32::try_from(headers.len()).unwrap_or(u32::MAX));
        for (name, value) in headers {
            put(&mut plain, name);
            put(&mut plain, value);
        }
        let (mut rest, mut out) = (plain.as_slice(), Vec::new());
        loop {
            let before = self.0.total_in();
            out.reserve(PIECE);
            // It fails only for contexts that were ended, and these are never ended.
            if self.0.compress_vec(rest, &mut out, FlushCompress::Sync).is_err() {
                break;
            }
            let taken = usize::try_from(self.0.total_in() - before).unwrap_or(usize::MAX);
            rest = rest.get(taken..).unwrap_or_default();
            if rest.is_empty() && out.len() < out.capacity() {
                break;
            }
        }
        BytesMut::from(out.as_slice()).freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 4 << 10;

    fn pairs(of: &[(&str, &str)]) -> Headers {
        of.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().chunks(2);
        digits
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn the_dictionary_is_that_of_the_protocol() {
        assert_eq!(dictionary().len(), 1423);
        let checksum = Compress::new(Compression::fast(), true).set_dictionary(&dictionary());
        assert_eq!(checksum.unwrap(), 0xe3c6_a7c2);
    }

    #[test]
    fn blocks_of_other_programs_are_read() {
        // From zlib's own library, with the best compression.
        let first =
            "78f9e3c6a7c202253a48f95b044eea46c6e696409ab308125f99a074cc68004e892545a989b9d0c2863515141500000000ffff";
        let second = "225333a8a44a04000000ffff";
        let mut inflater = Inflater::new(MOST);
        let expect = |kind| pairs(&[("port", "2379"), ("requestid", "0"), ("streamtype", kind)]);
        assert_eq!(inflater.read(&hex(first)), Ok(expect("error")));
        assert_eq!(inflater.read(&hex(second)), Ok(expect("data")));
    }

    #[test]
    fn what_is_written_can_be_read() {
        let (mut deflater, mut inflater) = (Deflater::new(), Inflater::new(MOST));
        for headers in [
            pairs(&[]),
            pairs(&[("a", ""), ("b", "x\0y")]),
            pairs(&[("long", &"äß".repeat(900))]),
            pairs(&[]),
        ] {
            assert_eq!(inflater.read(&deflater.write(&headers)), Ok(headers));
        }
    }

    #[test]
    fn a_block_that_grows_beyond_the_limit_is_refused() {
        let bomb = Deflater::new().write(&pairs(&[("a", &"x".repeat(16 << 20))]));
        assert!(bomb.len() < 200 << 10, "{}", bomb.len());
        let mut inflater = Inflater::new(MOST);
        assert_eq!(inflater.read(&bomb), Err(Violation::Headers("they are too long")));
        assert!(
            inflater.state.total_out() < 2 * MOST as u64,
            "the rest is not decompressed"
        );
    }

    #[test]
    fn a_bad_block_is_refused() {
        let check =
            |plain: &[u8], why: &'static str| assert_eq!(parse(plain), Err(Violation::Headers(why)), "{plain:?}");
        check(&[], "they end early");
        check(&[0, 0, 0, 1], "they end early");
        check(&[255, 255, 255, 255, 0, 0], "they end early");
        check(&[0, 0, 0, 1, 255, 255, 255, 255, 0, 0], "they end early");
        check(&[0, 0, 0, 0, 7], "more bytes follow them");
        check(
            &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
            "a name is empty or not in lower case",
        );
        check(
            &[0, 0, 0, 1, 0, 0, 0, 1, b'A', 0, 0, 0, 0],
            "a name is empty or not in lower case",
        );
        check(&[0, 0, 0, 1, 0, 0, 0, 1, 0xff, 0, 0, 0, 0], "they are no text");
        let twice = [0, 0, 0, 2, 0, 0, 0, 1, b'a', 0, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 0, 0];
        check(&twice, "a name is there twice");
        for bytes in [&b"no zlib at all"[..], &[], &[0x78]] {
            assert!(Inflater::new(MOST).read(bytes).is_err(), "{bytes:?}");
        }
    }
}
