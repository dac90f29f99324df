//! The streams of a client that forwards ports: for each connection to a port one for its data and one for its error, which name the same
//! request.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use windlass_spdy::Headers;

/// How long a stream waits for the other one of its pair.
const ALONE: Duration = Duration::from_secs(30);

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Error,
    Data,
}

/// What the headers of a stream say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) kind: Kind,
    port: u16,
    request: String,
}

impl Asked {
    /// Reads the headers of a stream. The first clients gave no number of the request: their data stream follows the error stream.
    pub(super) fn read(stream: u32, headers: &Headers) -> Result<Self, String> {
        let of = |name: &str| {
            headers
                .iter()
                .find(|(other, _)| other == name)
                .map(|(_, value)| value.as_str())
        };
        let kind = match of("streamtype") {
            Some("error") => Kind::Error,
            Some("data") => Kind::Data,
            other => return Err(format!("the header streamType must be error or data, not {other:?}")),
        };
        let port = of("port").and_then(|port| port.parse().ok()).filter(|port| *port > 0);
        let port = port.ok_or_else(|| format!("the header port must be a port, not {:?}", of("port")))?;
        let first = match kind {
            Kind::Error => stream,
            Kind::Data => stream.saturating_sub(2),
        };
        let request = of("requestid").map_or_else(|| format!("stream {first}"), str::to_owned);
        Ok(Self { kind, port, request })
    }
}

/// Both streams of a connection to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) port: u16,
    pub(super) error: u32,
    pub(super) data: u32,
}

/// A stream that waits for the other one.
#[derive(Debug)]
struct Half {
    stream: u32,
    kind: Kind,
    port: u16,
    until: Instant,
}

/// The streams that wait for the other one of their pair, by request.
#[derive(Debug, Default)]
pub(super) struct Pairs(BTreeMap<String, Half>);

impl Pairs {
    /// Adds a stream. Returns its pair if it is complete.
    pub(super) fn add(&mut self, stream: u32, asked: Asked, now: Instant) -> Result<Option<Pair>, String> {
        let Asked { kind, port, request } = asked;
        let Some(first) = self.0.get(&request) else {
            let until = now + ALONE;
            self.0.insert(
                request,
                Half {
                    stream,
                    kind,
                    port,
                    until,
                },
            );
            return Ok(None);
        };
        if (first.kind, first.port) == (kind, port) {
            return Err(format!("request {request:?} has such a stream already"));
        }
        if first.port != port {
            return Err(format!(
                "request {request:?} is for port {}, not for {port}",
                first.port
            ));
        }
        let (error, data) = match kind {
            Kind::Error => (stream, first.stream),
            Kind::Data => (first.stream, stream),
        };
        self.0.remove(&request);
        Ok(Some(Pair { port, error, data }))
    }

    /// Forgets a stream that has ended.
    pub(super) fn remove(&mut self, stream: u32) {
        self.0.retain(|_, half| half.stream != stream);
    }

    /// When the first stream has waited for too long.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.values().map(|half| half.until).min()
    }

    /// Takes the streams that have waited for too long.
    pub(super) fn late(&mut self, now: Instant) -> Vec<u32> {
        let late = self.0.extract_if(.., |_, half| half.until <= now);
        late.map(|(_, half)| half.stream).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &str) -> Headers {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn read(stream: u32, text: &str) -> Asked {
        Asked::read(stream, &headers(text)).unwrap()
    }

    #[test]
    fn streams_of_a_request_are_a_pair_in_either_order() {
        let now = Instant::now();
        let mut pairs = Pairs::default();
        let mut add = |stream, text| pairs.add(stream, read(stream, text), now);
        assert_eq!(add(1, "streamtype=error port=80 requestid=0"), Ok(None));
        assert_eq!(add(3, "streamtype=data port=81 requestid=1"), Ok(None));
        let pair = |port, error, data| Ok(Some(Pair { port, error, data }));
        assert_eq!(add(5, "streamtype=data port=80 requestid=0"), pair(80, 1, 5));
        assert_eq!(add(7, "streamtype=error port=81 requestid=1"), pair(81, 7, 3));
        // Without numbers of requests.
        assert_eq!(add(9, "streamtype=error port=80"), Ok(None));
        assert_eq!(add(11, "streamtype=data port=80"), pair(80, 9, 11));
        // Used again.
        assert_eq!(add(13, "streamtype=error port=80 requestid=0"), Ok(None));
        assert!(add(15, "streamtype=error port=80 requestid=0").is_err());
        assert!(add(17, "streamtype=data port=81 requestid=0").is_err());
        assert_eq!(add(19, "streamtype=data port=80 requestid=0"), pair(80, 13, 19));
        assert_eq!(pairs.deadline(), None);
    }

    #[test]
    fn a_stream_does_not_wait_forever() {
        let now = Instant::now();
        let mut pairs = Pairs::default();
        for (stream, seconds) in [(1, 0), (3, 5), (5, 9)] {
            let asked = read(stream, &format!("streamtype=error port=80 requestid={stream}"));
            assert_eq!(pairs.add(stream, asked, now + Duration::from_secs(seconds)), Ok(None));
        }
        pairs.remove(3);
        assert_eq!(pairs.deadline(), Some(now + ALONE));
        assert_eq!(pairs.late(now + ALONE), [1]);
        assert!(pairs.late(now + ALONE).is_empty());
        assert_eq!(pairs.deadline(), Some(now + ALONE + Duration::from_secs(9)));
    }

    #[test]
    fn a_stream_that_is_for_nothing_is_refused() {
        for text in [
            "",
            "port=80",
            "streamtype=stdin port=80",
            "streamtype=data",
            "streamtype=data port=0",
            "streamtype=error port=70000",
        ] {
            assert!(Asked::read(1, &headers(text)).is_err(), "{text}");
        }
    }
}
