//! The monitor on the server's host: accepts connections from load generators, and takes samples for each load
//! generator that knows the token.

use super::link::{Link, Received};
use super::notices::ConnectionLog;
use super::pending::{MAX_PENDING, PendingClient, PendingClients};
use super::protocol::LinkError;
use super::protocol::{self, Answer, MAX_REQUEST_BYTES, Request};
use super::tls::Acceptor;
use super::token::{Nonce, PROTOCOL, Side};
use super::{Identity, Token, stays_here};
use crate::meter::MeteredSampler;
use crate::sampler::Sampler;
use crate::schedule::{Intervals, Schedule};
use crate::{MonitorConfig, MonitorError, affinity, sys};
use brimful_core::Nanos;
use rustix::event::{PollFd, PollFlags};
use std::io::{self, PipeReader, PipeWriter};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of clients at a time.
const MAX_CLIENTS: usize = 4;
/// Maximum number of threads for connections. It exceeds the maximum number of connections, because the thread of a
/// closed connection needs a moment to end.
const MAX_THREADS: usize = MAX_CLIENTS + 4 * MAX_PENDING;
/// Maximum time without a request from a client that does not receive samples.
const IDLE_TIMEOUT: Nanos = Nanos::from_secs(60);

/// Configuration of a monitor that serves load generators on other hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeConfig {
    /// The address to listen on; port 0 selects a free port. Without a certificate (`identity`) it must be a loopback
    /// address.
    pub address: SocketAddr,
    /// The secret that clients must know.
    pub token: Token,
    /// Certificate and key for TLS; `None` for plain TCP.
    pub identity: Option<Identity>,
    /// The processes, ports and files to watch for each client. A client chooses only the intervals of the groups that
    /// are enabled.
    pub watch: MonitorConfig,
}

/// A running monitor server. Dropping this value ends the server and notifies connected clients.
#[derive(Debug)]
pub struct MonitorServer {
    address: SocketAddr,
    /// All threads end when this pipe is closed.
    _stop: PipeWriter,
}

/// State that all threads share.
struct ServerState {
    token: Token,
    acceptor: Option<Acceptor>,
    watch: MonitorConfig,
    stop: PipeReader,
    pending: PendingClients,
    threads: Arc<AtomicUsize>,
    clients: Arc<AtomicUsize>,
    notices: ConnectionLog,
}

/// Counts one thread or client until this value is dropped.
struct CountGuard(Arc<AtomicUsize>);

impl MonitorServer {
    /// Starts to listen. `notice` is called with log lines about clients that connect and disconnect.
    ///
    /// Returns an error if the address is not free, if other hosts could read the samples, or if the certificate or key
    /// cannot be used.
    pub fn start(
        config: ServeConfig,
        notice: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<MonitorServer, MonitorError> {
        let ServeConfig { address, token, identity, watch } = config;
        if identity.is_none() && !stays_here(address.ip()) {
            return Err(MonitorError::Unusable(exposed(address)));
        }
        let acceptor = identity.as_ref().map(Acceptor::new).transpose()?;
        let failed = |source: io::Error| MonitorError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let (stopped, stop) = io::pipe().map_err(failed)?;
        let (pending, threads, clients) = Default::default();
        let notices = ConnectionLog::new(notice);
        let state = Arc::new(ServerState { token, acceptor, watch, stop: stopped, pending, threads, clients, notices });
        spawn("serve", move || accept(&listener, &state))?;
        Ok(MonitorServer { address: bound, _stop: stop })
    }

    /// The address on which this server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Accepts connections, each with its own thread, until `stop` closes.
fn accept(listener: &TcpListener, state: &Arc<ServerState>) {
    loop {
        let mut fds = [PollFd::new(&state.stop, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        let ready = sys::wait(&mut fds, Nanos::MAX);
        if ready.is_err() || !fds[0].revents().is_empty() {
            return;
        }
        let started = listener.accept().map_err(|error| error.to_string()).and_then(|(socket, peer)| {
            let Some(thread) = CountGuard::take(&state.threads, MAX_THREADS) else { return Ok(()) };
            // If too many connections are pending, `admit` closes one of them. A client that knows the token is pending
            // only for a moment, so its connection is hardly ever closed.
            let client = state.pending.admit(&socket, peer.ip()).map_err(|error| error.to_string())?;
            let state = state.clone();
            spawn("session", move || {
                let _thread = thread;
                match authenticate(socket, client, &state) {
                    Ok((mut link, _client)) => {
                        let ended = serve_client(&mut link, peer, &state);
                        let words = ended.map_or_else(|LinkError(why)| why, |()| "done".to_owned());
                        state.notices.log_client(format!("{peer}: {words}"));
                    }
                    Err(LinkError(why)) => state.notices.log_unauthenticated(format!("{peer}: {why}")),
                }
            })
            .map_err(|error| error.to_string())
        });
        if let Err(why) = started {
            // No file descriptor or thread is free. A connection that was not accepted stays in the accept queue, so
            // the socket stays ready. The pause prevents this loop from spinning.
            state.notices.log_unauthenticated(format!("cannot accept a connection: {why}"));
            let _ = sys::wait(&mut fds[..1], sys::now() + Nanos::from_millis(100));
        }
    }
}

/// Accepts a client that knows the token, if fewer than `MAX_CLIENTS` are connected.
fn authenticate(
    socket: TcpStream,
    pending: PendingClient,
    state: &ServerState,
) -> Result<(Link, CountGuard), LinkError> {
    let tls = state.acceptor.as_ref().map(Acceptor::connection).transpose()?;
    let mut link = Link::open(socket, tls, MAX_REQUEST_BYTES)?;
    let here = Nonce::generate()?;
    link.send(&Answer::Greeting {
        protocol: PROTOCOL.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        nonce: here.to_string(),
    })?;
    let there = match link.receive_answer()? {
        Request::Hello { nonce, proof } if state.token.proves(Side::Generator, &here, &nonce, &proof) => nonce,
        Request::Hello { .. } => {
            return Err(refuse(
                &mut link,
                "the token is not that of `brimful watch --serve`: give both sides the same --token-file or \
                 BRIMFUL_TOKEN",
            ));
        }
        _ => return Err(refuse(&mut link, "the first message must be hello")),
    };
    let Some(client) = CountGuard::take(&state.clients, MAX_CLIENTS) else {
        return Err(refuse(
            &mut link,
            &format!("it samples for {MAX_CLIENTS} clients already: wait until one has ended"),
        ));
    };
    drop(pending);
    link.send(&Answer::Welcome { proof: state.token.proof(Side::Watcher, &here, &there) })?;
    Ok((link, client))
}

/// Answers the requests of one client, and takes samples for it.
fn serve_client(link: &mut Link, peer: SocketAddr, state: &ServerState) -> Result<(), LinkError> {
    let mut sampling: Option<(MeteredSampler, Schedule)> = None;
    let mut ended = false;
    loop {
        let until = match &sampling {
            Some((_, schedule)) => schedule.next().unwrap_or(Nanos::MAX),
            None => sys::now() + IDLE_TIMEOUT,
        };
        let received = match link.receive(until, Some(state.stop.as_fd())) {
            Err(_) if ended => return Ok(()),
            received => received?,
        };
        match (received, &mut sampling) {
            (Received::Message(Request::Clock {}), _) => link.send(&Answer::Clock { at: sys::now() })?,
            (Received::Message(Request::Watch { every }), None) => {
                let intervals = protocol::intervals(&every, state.watch.intervals);
                let mut meter = match begin(&state.watch, intervals) {
                    Ok(meter) => meter,
                    Err(error) => return Err(refuse(link, &error.to_string())),
                };
                let mut schedule = Schedule::new(intervals, sys::now());
                // The first sample comes before the sources, because it shows whether each source works.
                let sample = Box::new(meter.sample(schedule.take_due(sys::now())));
                let sources = meter.sources();
                link.send(&Answer::Watching { every: protocol::intervals_by_group(intervals), sources })?;
                link.send(&Answer::Sample { sample, overhead: meter.overhead(sys::thread_cpu()), last: None })?;
                state.notices.log_client(format!("{peer} watches"));
                sampling = Some((meter, schedule));
            }
            (Received::Timeout, Some((meter, schedule))) => {
                let sample = Box::new(meter.sample(schedule.take_due(sys::now())));
                link.send(&Answer::Sample { sample, overhead: meter.overhead(sys::thread_cpu()), last: None })?;
            }
            (Received::Message(Request::Stop {}), Some((meter, _))) => {
                let sample = Box::new(meter.last_sample());
                let last = Some(meter.sources());
                link.send(&Answer::Sample { sample, overhead: meter.overhead(sys::thread_cpu()), last })?;
                (sampling, ended) = (None, true);
            }
            (Received::Timeout, None) => {
                return Err(refuse(link, &format!("you have sent nothing for {IDLE_TIMEOUT}")));
            }
            (Received::Message(Request::Hello { .. } | Request::Watch { .. } | Request::Stop {}), _) => {
                return Err(refuse(link, "that message is not allowed at this point"));
            }
            (Received::Stopped, _) => return Err(refuse(link, "`brimful watch --serve` was ended there")),
        }
    }
}

/// Creates the sampler of one client. Must be called by the client's thread.
fn begin(watch: &MonitorConfig, intervals: Intervals) -> Result<MeteredSampler, MonitorError> {
    if intervals.shortest().is_none() {
        let why = "none of the requested groups is watched here: enable one for `brimful watch --serve`";
        return Err(MonitorError::Unusable(why.to_owned()));
    }
    watch.pin.map_or(Ok(()), affinity::pin_this_thread)?;
    let sampler = Sampler::open(&MonitorConfig { intervals, ..watch.clone() })?;
    sampler.require_processes()?;
    Ok(MeteredSampler::new(sampler))
}

/// Sends the client the reason why the connection ends.
fn refuse(link: &mut Link, why: &str) -> LinkError {
    match link.send(&Answer::Refused(why.to_owned())) {
        Ok(()) => LinkError(format!("refused: {why}")),
        Err(broken) => broken,
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), MonitorError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop).map_err(MonitorError::Thread)
}

fn exposed(address: SocketAddr) -> String {
    let port = address.port();
    format!(
        "{address} is open to other hosts, and without TLS others could read the figures on the way: serve \
         on 127.0.0.1:{port} and reach that by `ssh -N -L {port}:127.0.0.1:{port} USER@HOST`, or give --tls-cert and \
         --tls-key"
    )
}

impl CountGuard {
    fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<CountGuard> {
        let taken = taken.clone();
        let free = taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n < most).then_some(n + 1));
        free.is_ok().then(|| CountGuard(taken))
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
