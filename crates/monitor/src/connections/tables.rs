//! Connections from /proc/net/tcp and tcp6, which list all sockets of a network namespace as text. These files are used
//! if sock_diag is refused. Source: proc(5), net/ipv4/tcp_ipv4.c (`get_tcp4_sock` and the functions below it).
//!
//! The files are read in pieces, and no line is kept. Like a sock_diag dump, they do not show a single moment: the
//! kernel formats one page at a time.

use crate::sock_diag::ConnectedSocket;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The open files /proc/net/tcp and tcp6.
#[derive(Debug)]
pub(super) struct Tables {
    tcp: File,
    /// /proc/net/tcp6; `None` on a kernel without IPv6.
    tcp6: Option<File>,
}

/// Number of bytes read at a time. The kernel returns at most a page at once, and a line has about 150 bytes.
const PIECE: usize = 8 * 1024;
const LISTEN: u8 = 10;
/// Value of the timer field (`tr`) for a closed socket. The kernel replaces such a socket by a small record.
const RECORD_TIMER: &[u8] = b"03";

impl Tables {
    /// Opens the files tcp and tcp6 in the directory `net`.
    pub fn open(net: &Path) -> io::Result<Tables> {
        Ok(Tables { tcp: File::open(net.join("tcp"))?, tcp6: File::open(net.join("tcp6")).ok() })
    }

    /// Calls `see` for every connection of the namespace, whatever its port.
    pub fn connections(&self, mut see: impl FnMut(ConnectedSocket)) -> io::Result<()> {
        for file in [Some(&self.tcp), self.tcp6.as_ref()].into_iter().flatten() {
            each_line(file, |line| connection(line).into_iter().for_each(&mut see))?;
        }
        Ok(())
    }
}

fn each_line(file: &File, mut see: impl FnMut(&[u8])) -> io::Result<()> {
    let mut piece = [0; PIECE];
    let (mut kept, mut offset) = (0, 0);
    loop {
        let read = file.read_at(&mut piece[kept..], offset)?;
        if read == 0 {
            return Ok(());
        }
        offset += read as u64;
        let filled = kept + read;
        let whole = piece[..filled].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        piece[..whole].split(|&byte| byte == b'\n').for_each(&mut see);
        piece.copy_within(whole..filled, 0);
        // The remainder (%) matters only for a line longer than `PIECE`. The kernel writes no such line, but it would
        // cause an endless loop.
        kept = (filled - whole) % PIECE;
    }
}

/// Parses a line `sl local_address rem_address st tx_queue:rx_queue tr:tm->when …`. The numbers are hexadecimal.
fn connection(line: &[u8]) -> Option<ConnectedSocket> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let local = words.nth(1)?;
    let port = hexadecimal(local.get(local.len().checked_sub(4)?..)?)?;
    let state = hexadecimal(words.nth(1)?)? as u8;
    let timer = words.nth(1)?.get(..2)?;
    (state != LISTEN).then_some(ConnectedSocket { port, state, record: timer == RECORD_TIMER })
}

fn hexadecimal(word: &[u8]) -> Option<u16> {
    u16::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 9 1 0 100 0 0 10 0\n   \
        1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 9 1 0 20 4 30 10 -1\n  \
        10: 0100007F:1F90 0100007F:C352 06 00000000:00000000 03:000012A5 00000000     0        0 0 3 0\n";
    const TCP6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue \
        tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 00000000000000000000000001000000:1F91 00000000000000000000000001000000:D2F0 05 00000000:00000000 03:00000A00 \
        00000000     0        0 0 3 0\n";

    #[test]
    fn connections_are_read_and_listeners_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let found = || {
            let mut found = Vec::new();
            Tables::open(directory.path()).unwrap().connections(|socket| found.push(socket)).unwrap();
            found
        };
        assert!(Tables::open(directory.path()).is_err());
        std::fs::write(directory.path().join("tcp"), TCP).unwrap();
        let established = ConnectedSocket { port: 8080, state: 1, record: false };
        let time_wait = ConnectedSocket { port: 8080, state: 6, record: true };
        assert_eq!(found(), [established, time_wait], "without the file tcp6, the connections in tcp are counted");
        std::fs::write(directory.path().join("tcp6"), TCP6).unwrap();
        assert_eq!(found(), [established, time_wait, ConnectedSocket { port: 8081, state: 5, record: true }]);
    }

    #[test]
    fn a_table_longer_than_a_piece_is_read_whole() {
        let mut lines = TCP.split_inclusive('\n');
        let (head, line) = (lines.next().unwrap(), lines.nth(1).unwrap());
        let directory = tempfile::tempdir().unwrap();
        for count in [0, 1, 54, 55, 56, 1000] {
            std::fs::write(directory.path().join("tcp"), head.to_owned() + &line.repeat(count)).unwrap();
            let mut found = 0;
            Tables::open(directory.path()).unwrap().connections(|_| found += 1).unwrap();
            assert_eq!(found, count);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(at in 0usize..300, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut mixed = TCP.as_bytes().to_vec();
            mixed.splice(at.., bytes.iter().copied());
            for line in mixed.split(|&byte| byte == b'\n').chain([&bytes[..]]) {
                let _ = connection(line);
            }
        }

        #[test]
        fn no_file_makes_reading_panic_or_last(bytes in proptest::collection::vec(any::<u8>(), 0..3 * PIECE)) {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            let mut lines = 0;
            each_line(&file, |_| lines += 1).unwrap();
            prop_assert!(lines <= bytes.len() + 3);
        }
    }
}
