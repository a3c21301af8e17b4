//! Counts the connections of a port by state as other programs do: by reading /proc/net/tcp, which has a line for every
//! socket of the network namespace. The parser is as fast as possible: it reuses one buffer, and parses two fields of
//! each line.

use brimful_core::server::State;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The states of connections, in the order of the kernel's numbers from 1 (include/net/tcp_states.h). `None` for CLOSE
/// and LISTEN, which are not states of connections.
const STATES: [Option<State>; 11] = [
    Some(State::Established),
    Some(State::SynSent),
    Some(State::SynReceived),
    Some(State::FinWait1),
    Some(State::FinWait2),
    Some(State::TimeWait),
    None,
    Some(State::CloseWait),
    Some(State::LastAck),
    None,
    Some(State::Closing),
];

/// Counts the IPv4 connections of a local port by state. States without connections are left out.
pub fn count_connections(port: u16) -> io::Result<BTreeMap<State, u64>> {
    let mut text = Vec::new();
    File::open(Path::new("/proc/net/tcp"))?.read_to_end(&mut text)?;
    Ok(count(&text, port))
}

/// Counts the connections in lines like `0: 0100007F:1F90 0200007F:C350 01 …`: number, local address, remote address,
/// state.
fn count(text: &[u8], port: u16) -> BTreeMap<State, u64> {
    let mut counts = [0u64; STATES.len()];
    for line in text.split(|&byte| byte == b'\n') {
        let mut fields = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
        let (local, state) = (fields.nth(1), fields.nth(1));
        let local = local.and_then(|address| hexadecimal(address.split(|&byte| byte == b':').nth(1)?));
        if local == Some(u32::from(port))
            && let Some(state) = state.and_then(hexadecimal)
            && let Some(count) = counts.get_mut((state as usize).wrapping_sub(1))
        {
            *count += 1;
        }
    }
    let by_state = STATES.iter().zip(counts).filter_map(|(state, count)| Some(((*state)?, count)));
    by_state.filter(|&(_, count)| count > 0).collect()
}

/// Parses up to eight hexadecimal digits.
fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let plausible = (1..=8).contains(&digits.len());
    plausible
        .then(|| digits.iter().try_fold(0, |number, &digit| Some(number << 4 | char::from(digit).to_digit(16)?)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_port_are_counted_by_state() {
        let text = b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1 0 100 0 0 10 0\n\
            1: 0100007F:1F90 0100007F:C350 01 00000000:00000000\n\
            2: 0100007F:C350 0100007F:1F90 01 00000000:00000000\n\
            3: 0100007F:1F90 0100007F:C351 06 00000000:00000000\n\
            4: 0100007F:1F90 0100007F:C352 01";
        assert_eq!(count(text, 8080), BTreeMap::from([(State::Established, 2), (State::TimeWait, 1)]));
        assert_eq!(count(text, 80), BTreeMap::new());
    }

    #[test]
    fn malformed_lines_are_ignored() {
        for text in [&b""[..], b"\n\n", b"a b c d", b"0: :1F90 x ZZ", b"0: x:1F90 x FF", b"0: x:1F90 x 00"] {
            assert_eq!(count(text, 8080), BTreeMap::new());
        }
    }
}
