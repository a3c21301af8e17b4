//! Scripts for servers in tests: a script is a list of steps that a server runs on one connection.
use crate::Request;
use rustix::net::SendFlags;
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread::sleep;
use std::time::Duration;

/// One step of a script. A script ends early if a step fails because the client has closed or reset the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads one whole request.
    Request,
    /// Reads this many bytes.
    Read(usize),
    /// Reads until the client closes the connection, and never responds.
    Drain,
    /// Sends these bytes at once. They are not combined with other bytes in a TCP segment.
    Send(Vec<u8>),
    /// Sends these bytes one by one, and pauses for this time after each.
    Trickle(Vec<u8>, Duration),
    /// Sends these bytes again and again until the client closes the connection.
    Repeat(Vec<u8>),
    /// Sends these bytes as TCP urgent data; the last byte is out of band.
    Urgent(Vec<u8>),
    /// Sends FIN, but continues to read, because the client may still send.
    HalfClose,
    /// Waits for this time.
    Pause(Duration),
    /// Closes the connection with RST.
    Reset,
    /// Closes the socket. The kernel sends FIN, or RST if there are unread bytes from the client.
    Close,
    /// Closes the connection with FIN, after reading everything that the client sends.
    Finish,
}

/// Returns a behaviour for [`RawServer`](crate::RawServer) that repeats these steps until one of them ends the
/// connection.
pub fn script(steps: impl IntoIterator<Item = Step>) -> impl Fn(TcpStream, usize) + Send + Sync + 'static {
    let steps: Vec<Step> = steps.into_iter().collect();
    move |conn, _| {
        // Without TCP_NODELAY, the kernel delays small segments until all earlier segments were acknowledged.
        conn.set_nodelay(true).expect("set TCP_NODELAY on an open socket");
        let mut reader = BufReader::new(&conn);
        let mut steps = steps.iter().cycle();
        while let Some(step) = steps.next()
            && matches!(step.run(&conn, &mut reader), Ok(true))
        {}
    }
}

impl Step {
    /// Runs the step. Returns whether the connection continues.
    fn run(&self, mut conn: &TcpStream, reader: &mut BufReader<&TcpStream>) -> io::Result<bool> {
        match self {
            Step::Request => return Ok(Request::read(reader).is_some()),
            Step::Read(length) => reader.read_exact(&mut vec![0; *length])?,
            Step::Drain => {
                drain(reader);
                return Ok(false);
            }
            Step::Send(bytes) => conn.write_all(bytes)?,
            Step::Trickle(bytes, pause) => {
                for byte in bytes {
                    conn.write_all(&[*byte])?;
                    sleep(*pause);
                }
            }
            Step::Repeat(bytes) => {
                // Large pieces, so that the client limits the rate of the bytes, not the server.
                let piece = bytes.repeat((64 * 1024 / bytes.len().max(1)).max(1));
                loop {
                    conn.write_all(&piece)?;
                }
            }
            Step::Urgent(bytes) => {
                rustix::net::send(conn, bytes, SendFlags::OOB | SendFlags::NOSIGNAL)?;
            }
            Step::HalfClose => conn.shutdown(Shutdown::Write)?,
            Step::Pause(length) => sleep(*length),
            Step::Reset => {
                set_socket_linger(conn, Some(Duration::ZERO)).expect("set SO_LINGER on an open socket");
                return Ok(false);
            }
            Step::Close => return Ok(false),
            Step::Finish => {
                conn.shutdown(Shutdown::Write)?;
                drain(reader);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Reads until the client closes the connection or the server stops.
fn drain(reader: &mut impl Read) {
    let mut scratch = [0; 16 * 1024];
    while matches!(reader.read(&mut scratch), Ok(1..)) {}
}
