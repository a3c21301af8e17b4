//! Tests shortages of descriptors, ports and io_uring on this host. They must be reported apart from failures of the
//! server, and must not end the run.

use crate::call_recorder::{completed, count};
use crate::case::{Case, on_each_engine};
use crate::support::{Control, Plan, max_generator_delay};
use brimful_core::{End, ExhaustedResource, Nanos};
use brimful_engine::{Close, Engine, EngineError};
use brimful_testkit::{RawServer, Step, full_backlog_listener, script, with_length};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

on_each_engine!(
    a_lack_of_descriptors_fails_only_some_calls,
    a_lack_of_descriptors_causes_no_busy_loop,
    a_lack_of_ports_is_client_limited,
    calls_use_the_addresses_that_have_free_ports,
    a_missing_cpu_is_an_error,
);

fn descriptors(end: End) -> bool {
    end == End::ClientLimited(ExhaustedResource::Descriptors)
}

fn ports(end: End) -> bool {
    end == End::ClientLimited(ExhaustedResource::Ports)
}

/// Makes 400 calls per second that take 300 ms each, which needs 120 connections, in a process with 64 descriptors.
/// Expects that calls without a descriptor fail, and that all others complete. The server runs in another process, so
/// it has its own descriptors.
fn a_lack_of_descriptors_fails_only_some_calls(case: Case) {
    let answer_late = [Step::Request, Step::Pause(Duration::from_millis(300)), Step::Send(with_length(b"hello"))];
    let server = RawServer::start(script(answer_late));
    let Some(addr) = case.in_own_process("ulimit -n 64", &server.addr().to_string()) else { return };
    let run = Plan::new(case, addr.parse().unwrap()).calls(400).run_open_load(400.0, &Control::default());
    let calls = run.observer.calls;
    assert_eq!((calls.len(), count(&calls, completed) + count(&calls, descriptors)), (400, 400));
    for (i, part) in calls.chunks(200).enumerate() {
        let (answered, limited) = (count(part, completed), count(part, descriptors));
        assert!(answered > 20 && limited > 20, "half {i}: {answered} answered, {limited} limited");
    }
    assert!((20..=64).contains(&run.max_open_connections), "{} open", run.max_open_connections);
}

fn a_lack_of_descriptors_causes_no_busy_loop(case: Case) {
    let server = full_backlog_listener();
    let Some(addr) = case.in_own_process("ulimit -n 64", &server.addr().to_string()) else { return };
    let (timeout, window) = (Nanos::from_millis(50), Nanos::from_millis(500));
    let plan = Plan::new(case, addr.parse().unwrap()).calls(u64::MAX).configure(|c| {
        (c.connections.connect_timeout, c.window, c.connections.calls_per_connection) =
            (Some(timeout), window, Some(1));
    });
    let run = plan.run_s_clients(200);
    let calls = run.observer.calls;
    let (abandoned, limited) = (count(&calls, |end| end == End::Abandoned), count(&calls, descriptors));
    assert_eq!(abandoned + limited, calls.len());
    assert!(abandoned > 50 && limited > 50, "{abandoned} abandoned, {limited} limited");
    assert!(calls.len() <= 200 * 10, "{} attempts: each client makes one per {timeout}", calls.len());
}

/// Tries to open 60 connections from a host with 20 ports on each address. Expects that the calls without a port fail
/// for this reason. The other connections stay open until these calls have failed.
fn a_lack_of_ports_is_client_limited(case: Case) {
    let Some(_) = case.in_own_network(TWENTY_PORTS) else { return };
    for (nth, (source, addresses)) in
        [(None, 1), (Some("127.0.0.1"), 1), (Some("127.0.0.0/30"), 2)].into_iter().enumerate()
    {
        // Each iteration has its own server: the kernel may free a port late for connections to the same server, but
        // not for connections to another one.
        let server = outside_the_range(nth as u8);
        let expected = 20 * addresses;
        let plan = holding(case, server.addr(), source).calls(60);
        let run = plan.run_open_until(1000.0, |control| {
            server.connections() >= expected && control.ended.load(Ordering::Relaxed) >= 60 - expected as u64
        });
        let calls = run.observer.calls;
        assert_eq!((count(&calls, held), count(&calls, ports)), (expected, 60 - expected));
        assert_eq!(run.max_open_connections, expected as u64, "an attempt without a port does not count");
    }
}

fn calls_use_the_addresses_that_have_free_ports(case: Case) {
    let Some(_) = case.in_own_network(TWENTY_PORTS) else { return };
    let server = outside_the_range(0);
    let _held: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(server.addr()).unwrap()).collect();
    let plan = holding(case, server.addr(), Some("127.0.0.0/30")).calls(20);
    let run = plan.run_open_until(1000.0, |_| server.connections() >= 40);
    assert_eq!(count(&run.observer.calls, held), 20, "127.0.0.1 has no port left, 127.0.0.2 has 20");
    assert_eq!(run.max_open_connections, 20);
    let delay = max_generator_delay(&run);
    assert!(run.observer.calls.iter().all(|call| call.lateness() <= delay), "a port is found without a pause: {delay}");
}

/// Whether the call was under way at the end of the run, because its connection stayed open. The run may end before the
/// generator has noticed that the connection was accepted.
fn held(end: End) -> bool {
    matches!(end, End::Unfinished { .. })
}

const TWENTY_PORTS: &str = "echo '40000 40019' > /proc/sys/net/ipv4/ip_local_port_range";

/// Starts a server that accepts connections and keeps them open. Its port is outside the range of the clients' ports.
fn outside_the_range(nth: u8) -> RawServer {
    let listener = TcpListener::bind(("127.0.0.1", 8080 + u16::from(nth))).unwrap();
    RawServer::start_on(listener, script([Step::Drain]))
}

/// A plan whose connections stay open until the end of the run. They use the addresses of `source`, or any address if
/// `None`. The client closes them with RST, so that their ports are free again after the run.
fn holding(case: Case, server: SocketAddr, source: Option<&str>) -> Plan {
    Plan::with_method(case, server, "GET", Close::Rst).configure(|c| {
        c.connections.source = source.map(|range| range.parse().unwrap());
        c.connections.response_timeout = Nanos::from_secs(60);
    })
}

fn a_missing_cpu_is_an_error(case: Case) {
    let server = RawServer::content_length("hello");
    let plan = |cpu| Plan::new(case, server.addr()).calls(1).configure(|c| c.cpus = vec![cpu]);
    for absent in [1000, 1 << 20] {
        let error = plan(absent).expect_error();
        assert!(matches!(&error, EngineError::Cpu { cpu, .. } if *cpu == absent), "{error}");
        assert!(error.to_string().contains("nproc"), "{error}");
    }
}

/// Forbids io_uring in this thread and the threads that it starts, as many containers do. Expects that the run uses
/// epoll instead.
#[test]
fn where_io_uring_is_forbidden_epoll_takes_its_place() {
    std::thread::spawn(|| {
        forbid_io_uring();
        let server = RawServer::content_length("hello");
        let plan = |engine| Plan::with_engine(engine, server.addr()).calls(5);
        let run = plan(Engine::Auto).run_open_load(1000.0, &Control::default());
        assert_eq!((run.engine, count(&run.observer.calls, completed)), ("epoll", 5));
        let message = plan(Engine::Uring).expect_error().to_string();
        assert!(message.contains("io_uring") && message.contains("epoll"), "{message}");
    })
    .join()
    .unwrap();
}

/// Installs a seccomp filter of four instructions that makes `io_uring_setup` fail with EPERM. A real sandbox would
/// also check the architecture of a system call.
fn forbid_io_uring() {
    rustix::thread::set_no_new_privs(true).expect("give up new privileges");
    let instruction = |code: u32, jump_false, k| libc::sock_filter { code: code as u16, jt: 0, jf: jump_false, k };
    let mut filter = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_io_uring_setup as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the filter program during the call, and the program lives until the end of this
    // function.
    let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}
