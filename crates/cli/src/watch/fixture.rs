//! Metrics of an overloaded server, for tests.

use brimful_core::Nanos;
use brimful_core::server::{
    AcceptQueue, Connections, Core, CpuDemand, CpuShares, Disk, Elapsed, Interrupts, Kernel, Listener, Memory, Module,
    ModuleClass, ModuleServer, Network, NetworkTraffic, Paging, Phases, Port, Pressure, Program, Programs, SocketClass,
    SocketPort, SocketRequests, Stall, State, Tcp,
};
use brimful_monitor::{PeriodMetrics, Rates};

/// The metrics of a server whose CPUs and accept queue are overloaded.
pub fn busy_rates() -> Rates {
    let shares = |user, system, steal| CpuShares {
        user,
        system,
        steal,
        idle: 1.0 - user - system - steal,
        interrupt: Some(0.05),
        io_wait: Some(0.0),
    };
    let disk = Disk {
        reads_per_s: 3.0,
        writes_per_s: 12.0,
        blocks_written_per_s: 960.0,
        utilization: 0.021,
        ..Disk::default()
    };
    let stall = |some| Some(Stall { some, full: Some(0.0) });
    let kernel = Kernel {
        cpu: Some(shares(0.31, 0.525, 0.015)),
        cpus: vec![0, 1],
        cores: vec![Core { cpu: 0, shares: shares(0.12, 0.85, 0.0) }, Core { cpu: 1, shares: shares(0.5, 0.2, 0.03) }],
        runnable: Some(5),
        blocked: Some(0),
        context_switches_per_s: Some(12_345.0),
        forks_per_s: Some(3.0),
        interrupts: Some(Interrupts { all_per_s: Some(8_000.0), network_per_s: Some(5_400.0), disk_per_s: Some(12.0) }),
        paging: Some(Paging { page_outs_per_s: Some(120.0), page_ins_per_s: Some(0.0), ..Paging::default() }),
        memory: Some(Memory { total_bytes: 4_124_000_000, available_bytes: Some(2_100_000_000) }),
        disk: Some(disk),
        disks: [("vda".to_owned(), disk)].into(),
        pressure: Some(Pressure { cpu: stall(0.45), memory: stall(0.0), io: stall(0.01) }),
        kernel_threads: None,
    };
    let nginx = Program {
        name: "nginx".to_owned(),
        pids: vec![7, 8, 9],
        processes: 3,
        running: Some(2),
        threads: Some(3),
        cpu_s: 0.97,
        cpu_s_user: 0.12,
        cpu_s_system: 0.85,
        cores: 0.97,
        run_queue_wait_s: Some(0.73),
        rss_bytes: 12_300_000,
        memory_share: Some(0.003),
        major_faults: Some(0),
        context_switches: Some(4_321),
        ..Program::default()
    };
    let php = Program { name: "php-fpm8.2".to_owned(), run_queue_wait_s: None, ..nginx.clone() };
    let eth0 = NetworkTraffic {
        rx_packets_per_s: 15_000.0,
        tx_packets_per_s: 14_000.0,
        rx_bytes_per_s: 1.9e6,
        tx_bytes_per_s: 38.0e6,
        ..NetworkTraffic::default()
    };
    let tcp = Tcp {
        segments_in_per_s: Some(15_000.0),
        segments_out_per_s: Some(14_000.0),
        retransmitted_per_s: Some(12.0),
        resets_out_per_s: Some(1.0),
        listen_overflows_per_s: Some(1_210.0),
        time_wait: Some(10_240),
        ..Tcp::default()
    };
    let interfaces = [("eth0".to_owned(), eth0), ("lo".to_owned(), NetworkTraffic::default())].into();
    let network = Network { all: Some(eth0), interfaces, queue_overflows_per_s: Some(0.0), tcp: Some(tcp) };
    let listener = Some(Listener {
        syn_per_s: Some(5_210.0),
        accepted_per_s: Some(4_000.0),
        dropped_per_s: 1_210.0,
        accept_queue: 4096,
        accept_queue_max: 4096,
        backlog: 4096,
        fullest: AcceptQueue { length: 4096, limit: 4096 },
        sockets: 1,
    });
    let states =
        [(State::Established, 1_234), (State::SynReceived, 12), (State::TimeWait, 10_000), (State::CloseWait, 0)];
    let states = Some(states.into());
    let ports = vec![Port { port: 80, listener, connections: states.clone() }];
    Rates {
        module: None,
        requests: None,
        kernel: second(kernel),
        process: second(Programs { process: vec![nginx, php] }),
        network: second(network),
        connections: second(Connections { listener, connections: states, ports }),
    }
}

/// The requests at the sockets of the server's port.
fn socket_requests() -> SocketRequests {
    let times =
        |mean: f64| Some(Elapsed { count: 600, mean, stddev: mean, p50: mean, p90: 2.0 * mean, p99: 5.0 * mean });
    let class = SocketClass {
        name: "5k-50k".to_owned(),
        port: 80,
        requests: 600,
        requests_per_s: Some(4_000.0),
        sent_bytes_per_s: Some(3e7),
        wait_us: times(20.0),
        service_us: times(110.0),
    };
    let port = SocketPort {
        port: 80,
        requests: 610,
        requests_per_s: Some(4_066.0),
        under_way: Some(0.53),
        open_share: Some(0.016),
        wait_us: times(20.0),
        service_us: times(110.0),
        ..SocketPort::default()
    };
    SocketRequests { duty: 0.2, slice_s: Some(0.2), slices: 1, ports: vec![port], classes: vec![class], limits: vec![] }
}

/// The metrics of the server of [`busy_rates`], if this server has a Server Module.
pub fn busy_rates_with_module() -> Rates {
    let elapsed =
        |mean: f64| Some(Elapsed { count: 4_000, mean, stddev: mean, p50: mean, p90: 2.0 * mean, p99: 5.0 * mean });
    let class = |name: &str, requests: u64| ModuleClass {
        name: name.to_owned(),
        requests,
        requests_per_s: requests as f64,
        bytes_per_s: 2.5e6,
        failed: 12,
        phases_us: Phases {
            parse: elapsed(5.0),
            process: elapsed(95.0),
            send: elapsed(40.0),
            log: elapsed(3.0),
            ..Phases::default()
        },
        demand_us: Some(CpuDemand { mean: 123.0, ci95_half_width: 1.0, stddev: 20.0 }),
        ..ModuleClass::default()
    };
    let server = ModuleServer {
        name: "nginx/1.22.1".to_owned(),
        recording: true,
        requests_per_s: 4_000.0,
        requests_in_progress: 31,
        workers: 2,
        workers_busy: Some(1.85),
        ..ModuleServer::default()
    };
    let module = Module {
        servers: vec![server],
        classes: vec![class("under-5k", 3_900), class("images", 100), class("other", 0)],
    };
    Rates { module: second(module), requests: second(socket_requests()), ..busy_rates() }
}

fn second<T>(metrics: T) -> Option<PeriodMetrics<T>> {
    Some(PeriodMetrics { from: Nanos::from_secs(10), to: Nanos::from_secs(11), suspended: Nanos::ZERO, metrics })
}
