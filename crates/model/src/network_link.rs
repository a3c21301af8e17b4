//! The demands of requests at network links, from the sizes of their responses.
//!
//! A response of n bytes of body has a head, and is sent in segments of at most `mss` bytes. Each segment has 40 bytes
//! of TCP and IP headers, and every second one is acknowledged with 40 bytes (RFC 1122, §4.2.3.2). A connection costs
//! four segments in each direction: to open it, to close it, and for their acknowledgements. The sum in bits, divided
//! by the rate of the link, is the demand (Menascé & Almeida, *Capacity Planning for Web Performance*, 1998, ch. 4;
//! Menascé et al., CMG 1999, §3.4). The overhead of the link layer is not included.
//!
//! A response takes one round trip to open the connection, one for the request and the first flight of segments, and
//! one for each further flight. A flight is a group of segments that is sent without waiting for acknowledgements. By
//! slow start the first flight has ten segments, and each flight is twice as long as the one before (RFC 6928; RFC
//! 5681, §3.1). Losses are not included.

/// Bytes of TCP and IP headers of a segment, without options.
const HEADERS: f64 = 40.0;
/// Number of segments in each direction for opening and closing a connection, including their acknowledgements.
const SEGMENTS_OF_CONNECTION: f64 = 4.0;
/// Number of data segments that one acknowledgement confirms.
const SEGMENTS_PER_ACKNOWLEDGEMENT: f64 = 2.0;
/// Number of segments that a new connection may send before the first acknowledgement (RFC 6928).
const FIRST_FLIGHT: f64 = 10.0;

/// A network path between the server and its clients, and the requests that use it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkPath {
    /// Maximum segment size: the largest number of bytes of a TCP segment, without headers.
    pub mss: f64,
    /// Mean size of a request in bytes.
    pub request_bytes: f64,
    /// Mean size of the head of a response in bytes.
    pub head_bytes: f64,
    /// Mean number of requests on a connection.
    pub requests_per_connection: f64,
}

impl Default for LinkPath {
    /// A path with segments of 1,460 bytes (Ethernet), requests and response heads of 300 bytes, and a new connection
    /// for each request.
    fn default() -> Self {
        Self { mss: 1_460.0, request_bytes: 300.0, head_bytes: 300.0, requests_per_connection: 1.0 }
    }
}

/// The network traffic of a request and its response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Bytes towards the server.
    pub bytes_in: f64,
    /// Bytes towards the client.
    pub bytes_out: f64,
    /// Number of round trips until the response is complete.
    pub round_trips: f64,
}

impl LinkPath {
    /// The transfer of one request whose response has a body of `body_bytes` bytes.
    pub fn transfer(&self, body_bytes: f64) -> Transfer {
        let request_segments = (self.request_bytes / self.mss).ceil().max(1.0);
        let response_bytes = self.head_bytes + body_bytes;
        let response_segments = (response_bytes / self.mss).ceil().max(1.0);
        let acknowledgements = |segments: f64| (segments / SEGMENTS_PER_ACKNOWLEDGEMENT).ceil();
        let connection = SEGMENTS_OF_CONNECTION / self.requests_per_connection;
        let segments_in = request_segments + acknowledgements(response_segments) + connection;
        let segments_out = response_segments + acknowledgements(request_segments) + connection;
        Transfer {
            bytes_in: self.request_bytes + HEADERS * segments_in,
            bytes_out: response_bytes + HEADERS * segments_out,
            round_trips: 1.0 / self.requests_per_connection + flights(response_segments),
        }
    }
}

/// Number of flights (groups of segments sent without waiting for acknowledgements), at least 1, in which a new
/// connection sends a response of `segments` segments.
fn flights(segments: f64) -> f64 {
    // After k flights of doubling length, FIRST_FLIGHT·(2^k − 1) segments were sent.
    (segments / FIRST_FLIGHT + 1.0).log2().ceil().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_response_is_one_segment_and_two_round_trips() {
        let transfer = LinkPath::default().transfer(0.0);
        // The request has 300 bytes. 40 bytes each are sent for its headers, for one acknowledgement, and for the
        // connection's four segments.
        assert_eq!(transfer.bytes_in, 300.0 + 40.0 * 6.0);
        assert_eq!((transfer.bytes_out, transfer.round_trips), (300.0 + 40.0 * 6.0, 2.0));
        let kept = LinkPath { requests_per_connection: f64::INFINITY, ..LinkPath::default() }.transfer(0.0);
        assert_eq!((kept.bytes_in, kept.round_trips), (380.0, 1.0));
    }

    #[test]
    fn overhead_and_flights_grow_with_the_response() {
        // 14,600 bytes are ten segments of 1,460 bytes, which the first flight contains.
        let path = LinkPath { head_bytes: 0.0, ..LinkPath::default() };
        let trips = [14_600.0, 14_601.0, 43_800.0, 43_801.0].map(|bytes| path.transfer(bytes).round_trips);
        assert_eq!(trips, [2.0, 3.0, 3.0, 4.0]);
        let out = path.transfer(14_600.0).bytes_out;
        assert_eq!(out, 14_600.0 + 40.0 * (10.0 + 1.0 + 4.0));
        let small = LinkPath { mss: 536.0, ..path }.transfer(14_600.0).bytes_out;
        assert_eq!(small, 14_600.0 + 40.0 * (28.0 + 1.0 + 4.0));
    }
}
