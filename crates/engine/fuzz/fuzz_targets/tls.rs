//! Changes the bytes that a TLS server sends. Checks that the client does not panic, that it receives nothing that the
//! server did not send, and that unchanged bytes give the same result however they are split into pieces.
//!
//! Input: a byte of flags (bit 0: the server sends close_notify; bit 1: bytes are inserted; bit 2: bits are flipped;
//! bit 3: the connection ends early; bits 4 to 7: the number of pieces), two bytes for the offset of the change, one
//! for the bits to flip, two for the length of each piece, and the inserted bytes. Each input needs a whole handshake,
//! so only a few hundred inputs run per second.
//!
//!     cd crates/engine && RUSTC_BOOTSTRAP=1 cargo fuzz run -O -s none tls -- -max_len=128 -max_total_time=300
#![no_main]

use brimful_engine::fuzzing::{End, Tampering, exchange};
use brimful_engine::{Security, SecurityOptions};
use brimful_testkit::{Certificates, CertificateFlaw, server_config};
use libfuzzer_sys::fuzz_target;
use rustls::ServerConfig;
use std::sync::{Arc, LazyLock};

static RESPONSE: LazyLock<Vec<u8>> = LazyLock::new(|| (0..20_000_u32).map(|i| (i ^ i >> 8) as u8).collect());

fuzz_target!(|input: &[u8]| {
    static PAIR: LazyLock<(Arc<ServerConfig>, Security)> = LazyLock::new(pair);
    let Some((&[flags, high, low, bits], rest)) = input.split_first_chunk() else { return };
    let at = usize::from(high) << 8 | usize::from(low);
    let Some((lengths, inserted)) = rest.split_at_checked(2 * usize::from(flags >> 4)) else { return };
    let (lengths, _) = lengths.as_chunks();
    let pieces: Vec<usize> = lengths.iter().map(|length| usize::from(u16::from_be_bytes(*length)) + 1).collect();
    let whole = Tampering { notify: flags & 1 > 0, ..Tampering::default() };
    let tampering = Tampering {
        pieces,
        insert: (flags & 2 > 0).then(|| (at, inserted.to_vec())),
        flip: (flags & 4 > 0 && bits > 0).then_some((at, bits)),
        cut: (flags & 8 > 0).then_some(at),
        ..whole.clone()
    };
    let (server, security) = &*PAIR;
    let harmless = flags & 0b1110 == 0;
    let Some(received) = exchange(server, security, &RESPONSE, tampering) else { return };
    assert!(RESPONSE.starts_with(&received.plaintext));
    assert!(received.end.is_some() && (received.secured || received.plaintext.is_empty()));
    assert!(received.end != Some(End::Truncated) || received.secured && !received.finished);
    if harmless {
        assert_eq!(Some(received), exchange(server, security, &RESPONSE, whole));
    }
});

/// Returns the configurations of a server and of a client that trusts its certificate.
fn pair() -> (Arc<ServerConfig>, Security) {
    let certificates = Certificates::new();
    let server = server_config(&certificates.issue("DNS:localhost", CertificateFlaw::None), Vec::new());
    let options = SecurityOptions {
        name: "localhost".to_owned(),
        authorities: Some(certificates.authority()),
        ..SecurityOptions::default()
    };
    (server, Security::new(&options).expect("the certificates that were just issued"))
}
