//! Netlink messages: `struct nlmsghdr`, a body, and padding to four bytes. Source: netlink(7), linux/netlink.h.

/// `struct nlmsghdr`: length, kind, flags, sequence number, port.
const HEADER: usize = 16;
/// Kind of a request for sockets of all protocols, in its current form. The messages of the answer have the same kind.
pub(super) const DIAG_BY_FAMILY: u16 = 20; // SOCK_DIAG_BY_FAMILY
/// Kind of a request for TCP sockets in its older form. The messages of the answer have the same kind.
pub(super) const TCP_DIAG: u16 = 18; // TCPDIAG_GETSOCK
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 1;
const MULTI: u16 = 2;
const INCONSISTENT: u16 = 0x10; // NLM_F_DUMP_INTR
/// Flags of a request for all matching entries of a table (`NLM_F_DUMP`).
pub(super) const DUMP: u16 = 0x300;

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Meaning of the message.
    pub kind: Kind,
    /// The sequence number of the request that the message answers.
    pub sequence: u32,
    /// Whether more messages follow.
    pub multi: bool,
    /// Whether the table changed while it was dumped.
    pub inconsistent: bool,
}

/// Meaning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The message describes one socket.
    Socket,
    /// The message ends the answer. It contains an error number, or 0 if there is no error.
    End(i32),
    Other,
}

/// Clears `message`, and starts a new request with its header.
pub(super) fn start(message: &mut Vec<u8>, kind: u16, flags: u16, sequence: u32) {
    message.clear();
    message.extend_from_slice(&[0; 4]);
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&(REQUEST | flags).to_ne_bytes());
    message.extend_from_slice(&sequence.to_ne_bytes());
    message.extend_from_slice(&[0; 4]);
}

/// Completes a request by setting its length.
pub(super) fn set_length(message: &mut [u8]) {
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
}

/// Splits the first message off `bytes`: returns its header, its body and the rest. Returns `None` at the end, or if
/// the rest is not a message.
pub(super) fn next(bytes: &[u8]) -> Option<(Header, &[u8], &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let body = bytes.get(HEADER..length)?;
    let rest = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    // The kernel writes error numbers as negative numbers. The message that ends a dump may also contain one.
    let errno = u32_at(body, 0).map(|errno| (errno as i32).wrapping_neg());
    let kind = match u16_at(bytes, 4)? {
        DIAG_BY_FAMILY | TCP_DIAG => Kind::Socket,
        ERROR => Kind::End(errno?),
        DONE => Kind::End(errno.unwrap_or_default()),
        _ => Kind::Other,
    };
    let (flags, sequence) = (u16_at(bytes, 6)?, u32_at(bytes, 8)?);
    let header = Header { kind, sequence, multi: flags & MULTI != 0, inconsistent: flags & INCONSISTENT != 0 };
    Some((header, body, rest))
}

/// The 16-bit number at an offset, in the byte order of the machine.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The 32-bit number at an offset, in the byte order of the machine.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        start(&mut bytes, kind, flags, 7);
        bytes.extend_from_slice(body);
        set_length(&mut bytes);
        bytes
    }

    #[test]
    fn the_kinds_are_told_apart() {
        let header = |kind, multi, inconsistent| Header { kind, sequence: 7, multi, inconsistent };
        let busy = (-libc::EBUSY).to_ne_bytes();
        for (bytes, expected) in [
            (message(DIAG_BY_FAMILY, MULTI, b"body"), header(Kind::Socket, true, false)),
            (message(DIAG_BY_FAMILY, MULTI | INCONSISTENT, b"body"), header(Kind::Socket, true, true)),
            (message(ERROR, 0, &busy), header(Kind::End(libc::EBUSY), false, false)),
            (message(DONE, MULTI, &busy), header(Kind::End(libc::EBUSY), true, false)),
            (message(DONE, MULTI, &[0; 4]), header(Kind::End(0), true, false)),
            (message(DONE, MULTI, &[]), header(Kind::End(0), true, false)),
            (message(1, 0, &[]), header(Kind::Other, false, false)),
        ] {
            assert_eq!(next(&bytes).unwrap().0, expected);
            for length in 0..bytes.len() {
                assert_eq!(next(&bytes[..length]), None);
            }
        }
        let (first, second) = (message(DIAG_BY_FAMILY, 0, b"fives"), message(DONE, 0, b""));
        let both = [&first[..], &[0; 3], &second[..]].concat();
        let (_, body, rest) = next(&both).unwrap();
        assert_eq!((body, rest), (&b"fives"[..], &second[..]), "padding is not part of the body");
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_reading_ends(at in 0usize..64, bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let mut mixed = [message(DIAG_BY_FAMILY, MULTI, &[0; 20]), message(DONE, MULTI, &[0; 4])].concat();
            mixed.splice(at.min(mixed.len()).., bytes.iter().copied());
            for mut rest in [&bytes[..], &mixed[..]] {
                while let Some((_, _, tail)) = next(rest) {
                    prop_assert!(tail.len() < rest.len());
                    rest = tail;
                }
            }
        }
    }
}
