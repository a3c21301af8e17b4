//! The load generator's side of a connection to a monitor on another host: connects, compares clocks, and collects
//! samples.

use super::bounds::SampleRateCheck;
use super::clock::{CLOCK_EXCHANGES, Clock, ClockReading, MAX_UNCERTAINTY};
use super::link::{ANSWER_TIMEOUT, Link, Received};
use super::protocol::{self, Answer, MAX_ANSWER_BYTES, Request};
use super::protocol::{LinkError, sanitize};
use super::token::{Nonce, Side};
use super::{Token, stays_here, tls};
use crate::history::{History, Observations};
use crate::sampler::Sample;
use crate::schedule::Intervals;
use crate::{MonitorError, sys};
use brimful_core::Nanos;
use brimful_core::server::Overhead;
use std::collections::BTreeMap;
use std::io::PipeReader;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::path::PathBuf;

/// Number of sampling intervals that may pass without a sample. After these intervals and [`ANSWER_TIMEOUT`], the
/// stream counts as broken.
const MAX_MISSED_INTERVALS: u64 = 5;

/// Settings for connecting to `brimful watch --serve` on another host, and the intervals at which to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteConfig {
    /// Host and port. Without a certificate authority (`authority`) the host must be a loopback address.
    pub address: String,
    /// The token of the monitor on the other host.
    pub token: Token,
    /// For TLS: a PEM file of certificate authorities. One of them must have signed the certificate of the monitor on
    /// the other host.
    pub authority: Option<PathBuf>,
    /// The interval at which each group is sampled.
    pub intervals: Intervals,
}

/// A stream of samples from another host.
#[derive(Debug)]
pub struct Stream {
    link: Link,
    /// Description of the monitor on the other host, as it appears in `sources`.
    source: String,
    before: ClockReading,
    /// The shortest interval at which a group is sampled.
    interval: Nanos,
    pace: SampleRateCheck,
    history: History,
    latest: Latest,
}

/// The latest values that were received in addition to the samples.
#[derive(Debug, Default)]
struct Latest {
    sources: BTreeMap<String, String>,
    overhead: Overhead,
    at: Nanos,
}

impl Stream {
    /// Connects to the monitor on the other host, and waits for its first sample.
    pub fn open(config: &RemoteConfig) -> Result<Stream, MonitorError> {
        let tls = match &config.authority {
            Some(authority) => Some(tls::connect(split(&config.address)?.0, authority)?),
            None => None,
        };
        let remote = |why: String| MonitorError::Remote { peer: config.address.clone(), why };
        let socket = reach(config)?;
        let link = Link::open(socket, tls, MAX_ANSWER_BYTES).map_err(|LinkError(why)| remote(why))?;
        Stream::begin(link, config).map_err(|LinkError(why)| remote(why))
    }

    fn begin(mut link: Link, config: &RemoteConfig) -> Result<Stream, LinkError> {
        let (version, there) = match link.receive(sys::now() + ANSWER_TIMEOUT, None)? {
            Received::Message(Answer::Greeting { protocol, version, nonce }) => {
                match protocol::protocol_mismatch(&protocol, &config.address) {
                    Some(why) => return Err(LinkError(why)),
                    None => (sanitize(&version), Nonce::try_from(nonce).map_err(|why| LinkError(why.to_owned()))?),
                }
            }
            Received::Message(answer) => return Err(unexpected(answer)),
            Received::Timeout | Received::Stopped => {
                return Err(LinkError(format!(
                    "no greeting within {ANSWER_TIMEOUT}: check that `brimful watch --serve` is what listens there, and give \
                     --watch-ca if and only if that has --tls-cert"
                )));
            }
        };
        let here = Nonce::generate()?;
        let proof = config.token.proof(Side::Generator, &there, &here);
        link.send(&Request::Hello { nonce: here.clone(), proof })?;
        match link.receive_answer()? {
            Answer::Welcome { proof } if config.token.proves(Side::Watcher, &there, &here, &proof) => {}
            Answer::Welcome { .. } => {
                return Err(LinkError(
                    "it does not know the token, so it is another program than your `brimful watch --serve`: check which program listens there, or \
                     whether the tunnel is"
                        .to_owned(),
                ));
            }
            answer => return Err(unexpected(answer)),
        }
        let before = compare_clocks(&mut link)?;
        if before.uncertainty > MAX_UNCERTAINTY {
            return Err(LinkError(format!(
                "its clock is known only to within {}, because an answer takes twice that long, and figures of intervals need {MAX_UNCERTAINTY}: \
                 generate the load on a host closer to the server, or connect more directly than by this tunnel, VPN or relay",
                before.uncertainty.to_rounded_string()
            )));
        }
        let pace = SampleRateCheck::new(config.intervals, sys::now());
        link.send(&Request::Watch { every: protocol::intervals_by_group(config.intervals) })?;
        let (intervals, sources) = match link.receive_answer()? {
            Answer::Watching { every, sources } => (protocol::intervals(&every, config.intervals), sources),
            answer => return Err(unexpected(answer)),
        };
        let source = format!("brimful {version} at {}", config.address);
        let latest = Latest { sources, ..Latest::default() };
        let interval = intervals.shortest().unwrap_or_default();
        let mut stream = Stream { link, source, before, interval, pace, history: History::with_byte_limit(), latest };
        match stream.link.receive_answer()? {
            Answer::Sample { sample, overhead, last: None } => stream.keep(*sample, overhead)?,
            answer => return Err(unexpected(answer)),
        }
        Ok(stream)
    }

    /// Receives samples until `stop` is closed, and then requests the last sample. Returns early if the connection
    /// breaks.
    pub fn follow(mut self, stop: &PipeReader) -> Observations {
        let followed = self.receive(stop).and_then(|()| self.end());
        let (after, broken) = match followed {
            Ok(after) => (Some(after), None),
            Err(LinkError(why)) => (None, Some(format!("the stream of {} broke: {why}", self.source))),
        };
        let clock = Clock::new(self.before, after);
        let Latest { mut sources, overhead, .. } = self.latest;
        sources.insert("clock".to_owned(), clock.source());
        sources.insert("monitor".to_owned(), self.source);
        let mut history = self.history;
        history.convert_times(|at| clock.local_time(at));
        Observations { history, sources, overhead, clock: Some(clock.offset()), broken }
    }

    fn receive(&mut self, stop: &PipeReader) -> Result<(), LinkError> {
        let patience = Nanos(self.interval.0.saturating_mul(MAX_MISSED_INTERVALS)) + ANSWER_TIMEOUT;
        loop {
            match self.link.receive(sys::now() + patience, Some(stop.as_fd()))? {
                Received::Stopped => return Ok(()),
                Received::Timeout => return Err(LinkError(format!("no sample came for {patience}"))),
                Received::Message(Answer::Sample { sample, overhead, last: None }) => {
                    self.keep(*sample, overhead)?;
                }
                Received::Message(answer) => return Err(unexpected(answer)),
            }
        }
    }

    /// Requests the last sample, and measures the clock offset again.
    fn end(&mut self) -> Result<ClockReading, LinkError> {
        self.link.send(&Request::Stop {})?;
        let until = sys::now() + ANSWER_TIMEOUT;
        loop {
            let Received::Message(answer) = self.link.receive(until, None)? else {
                return Err(LinkError(format!("no last sample came within {ANSWER_TIMEOUT}")));
            };
            match answer {
                Answer::Sample { sample, overhead, last: None } => self.keep(*sample, overhead)?,
                Answer::Sample { sample, overhead, last: Some(sources) } => {
                    self.note(&sample, overhead)?;
                    self.history.close(*sample);
                    self.latest.sources = sources;
                    return compare_clocks(&mut self.link);
                }
                answer => return Err(unexpected(answer)),
            }
        }
    }

    fn keep(&mut self, sample: Sample, overhead: Overhead) -> Result<(), LinkError> {
        self.note(&sample, overhead)?;
        self.history.push(sample);
        Ok(())
    }

    fn note(&mut self, sample: &Sample, overhead: Overhead) -> Result<(), LinkError> {
        self.pace.add_sample(sys::now())?;
        if sample.at < self.latest.at {
            return Err(LinkError("its clock went backwards between two samples".to_owned()));
        }
        self.latest.at = sample.at;
        self.latest.overhead = overhead;
        Ok(())
    }
}

/// Measures the clock offset several times, and returns the measurement with the shortest round trip.
fn compare_clocks(link: &mut Link) -> Result<ClockReading, LinkError> {
    let mut best: Option<ClockReading> = None;
    for _ in 0..CLOCK_EXCHANGES {
        let requested = sys::now();
        link.send(&Request::Clock {})?;
        let showed = match link.receive_answer()? {
            Answer::Clock { at } => at,
            answer => return Err(unexpected(answer)),
        };
        let reading = ClockReading::new(requested, showed, sys::now());
        best = best.filter(|best| best.uncertainty <= reading.uncertainty).or(Some(reading));
    }
    best.ok_or_else(|| LinkError("no clocks were compared".to_owned()))
}

fn unexpected(answer: Answer) -> LinkError {
    LinkError(match answer {
        Answer::Refused(why) => sanitize(&why),
        _ => "its answer does not belong to the request: check whether both sides run the same version of brimful"
            .to_owned(),
    })
}

/// Connects to one of the addresses of the host: the first allowed address that accepts the connection.
fn reach(config: &RemoteConfig) -> Result<TcpStream, MonitorError> {
    let (_, port) = split(&config.address)?;
    let remote = |why: String| MonitorError::Remote { peer: config.address.clone(), why };
    let addresses = config.address.to_socket_addrs();
    let addresses = addresses.map_err(|error| remote(format!("{error}; check the spelling, or give its address")))?;
    let allowed = |address: &SocketAddr| config.authority.is_some() || stays_here(address.ip());
    let addresses: Vec<SocketAddr> = addresses.filter(allowed).collect();
    let mut failed = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, ANSWER_TIMEOUT.into()) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = Some(error),
        }
    }
    Err(match failed {
        Some(error) => remote(format!("{error}; start `brimful watch --serve` there, or the tunnel to it")),
        None => MonitorError::Unusable(format!(
            "{} is on another host, and without TLS others could read the figures on the way: reach it by \
             `ssh -N -L {port}:127.0.0.1:{port} USER@HOST` as 127.0.0.1:{port}, or give --watch-ca if `brimful watch` has \
             --tls-cert there",
            config.address
        )),
    })
}

/// Splits an address into the host, without the brackets of IPv6, and the port.
fn split(address: &str) -> Result<(&str, u16), MonitorError> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    match parts {
        Some((host, port)) if !host.is_empty() => Ok((host.trim_start_matches('[').trim_end_matches(']'), port)),
        _ => Err(MonitorError::Unusable(format!(
            "`{address}` is not an address: write host and port, like 127.0.0.1:7411"
        ))),
    }
}
