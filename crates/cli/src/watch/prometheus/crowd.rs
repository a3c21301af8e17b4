//! Everybody who is connected, on one thread that waits for none of them: who sends half a request holds up nobody.
//!
//! There are bounds on all that a stranger could draw out. Of too many connections the oldest is closed, and never the newest: one
//! that sends its request at once is answered at once, whoever else is there.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Connections at a time.
const MOST: usize = 64;
/// A request has to be here, and its answer away, within this.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Makes the answer to a request; `None` until the request is whole.
pub type Reply<'a> = &'a dyn Fn(&[u8]) -> Option<String>;

/// A listening socket, and those who came through it.
pub struct Crowd {
    listener: TcpListener,
    /// The oldest first, so the one whose time is over first.
    peers: VecDeque<Peer>,
    /// What is said to those whose time is over.
    late: String,
}

struct Peer {
    socket: TcpStream,
    until: Instant,
    request: Vec<u8>,
    /// What is left of the answer, once there is one.
    answer: Option<Vec<u8>>,
}

impl Crowd {
    /// Takes a listening socket over.
    pub fn new(listener: TcpListener, late: String) -> io::Result<Crowd> {
        listener.set_nonblocking(true)?;
        Ok(Crowd { listener, peers: VecDeque::new(), late })
    }

    /// Waits until there is something to do.
    pub fn wait(&self, now: Instant) {
        let what = |peer: &Peer| if peer.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.peers.iter().map(|peer| PollFd::new(&peer.socket, what(peer))));
        let left = self.peers.front().map(|oldest| oldest.until.saturating_duration_since(now));
        let left = left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        // A signal ends it early, and then there is nothing to do.
        let _ = poll(&mut fds, left.as_ref());
    }

    /// Does what can be done without waiting.
    pub fn attend(&mut self, now: Instant, reply: Reply<'_>) {
        // Those who are here come first, so that who is answered makes room.
        self.peers.retain_mut(|peer| peer.advance(reply).is_ok_and(|done| !done));
        self.accept(now, reply);
        while let Some(oldest) = self.peers.front().filter(|oldest| oldest.until <= now) {
            if oldest.answer.is_none() {
                // It is too late to wait for room to say so.
                let _ = (&oldest.socket).write(self.late.as_bytes());
            }
            self.peers.pop_front();
        }
    }

    /// Lets new ones in, each in the place of the oldest where there is no other.
    fn accept(&mut self, now: Instant, reply: Reply<'_>) {
        for _ in 0..MOST {
            match self.listener.accept() {
                Ok((socket, _)) => {
                    let mut peer = Peer { socket, until: now + PATIENCE, request: Vec::new(), answer: None };
                    // What a peer does wrong is its own loss.
                    let done = peer.socket.set_nonblocking(true).and_then(|()| peer.advance(reply));
                    if done.is_ok_and(|done| !done) {
                        self.peers.push_back(peer);
                    }
                    if self.peers.len() > MOST {
                        self.peers.pop_front();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                // No descriptor is left, for example: the oldest gives its own back, or time does.
                Err(_) if self.peers.pop_front().is_some() => {}
                Err(_) => return std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }
}

impl Peer {
    /// Reads and writes what it can; whether that was all.
    fn advance(&mut self, reply: Reply<'_>) -> io::Result<bool> {
        loop {
            if let Some(left) = &mut self.answer {
                match self.socket.write(left) {
                    Ok(n) if n == left.len() => return Ok(true),
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(n) => drop(left.drain(..n)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            let mut chunk = [0; 1024];
            match self.socket.read(&mut chunk) {
                Ok(0) => return Ok(true),
                Ok(n) => {
                    self.request.extend_from_slice(&chunk[..n]);
                    self.answer = reply(&self.request).map(String::into_bytes);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(request: &[u8]) -> Option<String> {
        request.ends_with(b".").then(|| "answered".to_owned())
    }

    fn crowd() -> (Crowd, impl Fn() -> TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (Crowd::new(listener, "late".to_owned()).unwrap(), move || TcpStream::connect(address).unwrap())
    }

    /// What comes until the end.
    fn hears(crowd: &mut Crowd, now: Instant, mut socket: &TcpStream) -> String {
        socket.set_nonblocking(true).unwrap();
        let mut heard = Vec::new();
        loop {
            let mut chunk = [0; 100];
            match socket.read(&mut chunk) {
                Ok(0) => return String::from_utf8(heard).unwrap(),
                Ok(n) => heard.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => crowd.attend(now, &reply),
                Err(error) => panic!("{error} after {heard:?}"),
            }
        }
    }

    /// Time stands still: nobody's patience is what makes room.
    #[test]
    fn half_a_request_holds_up_nobody() {
        let ((mut crowd, connect), now) = (crowd(), Instant::now());
        let half: Vec<TcpStream> = (0..3 * MOST)
            .map(|_| {
                let mut socket = connect();
                socket.write_all(b"half").unwrap();
                crowd.attend(now, &reply);
                socket
            })
            .collect();
        let whole = connect();
        (&whole).write_all(b"whole.").unwrap();
        assert_eq!(hears(&mut crowd, now, &whole), "answered");
        assert_eq!(crowd.peers.len(), MOST);
        let newest = half.last().unwrap();
        newest.set_nonblocking(true).unwrap();
        assert!(
            (&*newest).read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
            "it is still here"
        );
        (&*newest).write_all(b".").unwrap();
        assert_eq!(hears(&mut crowd, now, newest), "answered");
    }

    #[test]
    fn who_is_late_is_told_so() {
        let ((mut crowd, connect), now) = (crowd(), Instant::now());
        let late = connect();
        while crowd.peers.is_empty() {
            crowd.attend(now, &reply);
        }
        crowd.wait(now + PATIENCE);
        crowd.attend(now + PATIENCE - Duration::from_nanos(1), &reply);
        assert_eq!(crowd.peers.len(), 1);
        assert_eq!(hears(&mut crowd, now + PATIENCE, &late), "late");
    }
}
