//! Tables of the monitor's metrics of a server, by group: kernel, processes, network and connections.

use super::layout::{UNKNOWN_MARK, bytes, count, facts, number, rows, seconds, share};
use brimful_core::quantity;
use brimful_core::server::{
    Connections, CpuShares, Disk, Kernel, KernelThreads, Listener, Network, NetworkTraffic, Program, Stall, State, Tcp,
};
use brimful_core::text::one_line;
use std::collections::BTreeMap;

/// Tables of the kernel's metrics, such as those of CPUs, memory and disks.
pub fn kernel(kernel: &Kernel) -> Vec<String> {
    let Kernel { cores, interrupts, paging, memory, pressure, .. } = kernel;
    let (interrupts, paging, pressure) =
        (interrupts.unwrap_or_default(), paging.unwrap_or_default(), pressure.unwrap_or_default());
    let cpu_row = |name: String, cpu: Option<CpuShares>| {
        let shares = |figure: fn(&CpuShares) -> Option<f64>| share(cpu.as_ref().and_then(figure));
        let sum =
            [shares(|s| Some(s.user)), shares(|s| Some(s.system)), shares(|s| Some(s.idle)), shares(|s| Some(s.steal))];
        let parts = [shares(|s| s.interrupt), shares(|s| s.io_wait)];
        [name].into_iter().chain(sum).chain(parts).collect()
    };
    let cpus: Vec<_> = [cpu_row("all watched".to_owned(), kernel.cpu)]
        .into_iter()
        .chain(cores.iter().map(|core| cpu_row(core.cpu.to_string(), Some(core.shares))))
        .collect();
    let stall_row = |name: &str, stall: Option<Stall>| {
        vec![name.to_owned(), share(stall.map(|stall| stall.some)), share(stall.and_then(|stall| stall.full))]
    };
    let one = |name, cell: String| (name, vec![cell]);
    vec![
        rows(&["cpu", "user", "system", "idle", "steal", "interrupt", "io_wait"], &cpus),
        facts(
            "kernel",
            &[],
            vec![
                one("runnable", count(kernel.runnable)),
                one("blocked", count(kernel.blocked)),
                one("context_switches_per_s", number(kernel.context_switches_per_s)),
                one("forks_per_s", number(kernel.forks_per_s)),
            ],
        ),
        facts(
            "interrupts",
            &[],
            vec![
                one("all_per_s", number(interrupts.all_per_s)),
                one("network_per_s", number(interrupts.network_per_s)),
                one("disk_per_s", number(interrupts.disk_per_s)),
            ],
        ),
        disks(kernel),
        facts(
            "paging",
            &[],
            vec![
                one("page_ins_per_s", number(paging.page_ins_per_s)),
                one("page_outs_per_s", number(paging.page_outs_per_s)),
                one("swap_ins_per_s", number(paging.swap_ins_per_s)),
                one("swap_outs_per_s", number(paging.swap_outs_per_s)),
                one("major_faults_per_s", number(paging.major_faults_per_s)),
            ],
        ),
        facts(
            "memory",
            &[],
            vec![
                one("total_bytes", bytes(memory.map(|memory| memory.total_bytes))),
                one("available_bytes", bytes(memory.and_then(|memory| memory.available_bytes))),
            ],
        ),
        rows(
            &["pressure", "some", "full"],
            &[stall_row("cpu", pressure.cpu), stall_row("memory", pressure.memory), stall_row("io", pressure.io)],
        ),
    ]
    .into_iter()
    .chain(kernel_threads(kernel))
    .collect()
}

/// A table of the kernel threads that used CPU time, in the order of their CPU time.
fn kernel_threads(kernel: &Kernel) -> Option<String> {
    let mut groups: Vec<_> = kernel.kernel_threads.iter().flatten().collect();
    groups.sort_by(|(_, a), (_, b)| b.cores.total_cmp(&a.cores));
    let row = |(name, group): (&String, &KernelThreads)| {
        vec![one_line(name).into_owned(), group.threads.to_string(), quantity::number(group.cores)]
    };
    let table: Vec<Vec<String>> = groups.into_iter().map(row).collect();
    (!table.is_empty()).then(|| rows(&["kernel_threads", "threads", "cores"], &table))
}

fn disks(kernel: &Kernel) -> String {
    let disks = kernel.disks.iter().map(|(name, disk)| (name.as_str(), Some(disk)));
    let all = [("all", kernel.disk.as_ref())].into_iter();
    let (names, disks): (Vec<&str>, Vec<Option<&Disk>>) = all.chain(disks).unzip();
    let row = |name, cell: fn(f64) -> String, figure: fn(&Disk) -> f64| {
        (name, disks.iter().map(|disk| disk.map_or(UNKNOWN_MARK.to_owned(), |disk| cell(figure(disk)))).collect())
    };
    let rate = |x| number(Some(x));
    facts(
        "disk",
        &names,
        vec![
            row("reads_per_s", rate, |d| d.reads_per_s),
            row("blocks_read_per_s", rate, |d| d.blocks_read_per_s),
            row("writes_per_s", rate, |d| d.writes_per_s),
            row("blocks_written_per_s", rate, |d| d.blocks_written_per_s),
            row("utilization", |x| share(Some(x)), |d| d.utilization),
            row("queue_length", rate, |d| d.queue_length),
        ],
    )
}

/// The last component of the path of a program's control group. The JSON document contains the whole path.
fn quota_group(program: &Program) -> String {
    let group = program.quota.as_ref().and_then(|quota| quota.group.rsplit('/').find(|part| !part.is_empty()));
    one_line(group.unwrap_or("-")).into_owned()
}

/// A table of the metrics of the server's programs; `None` if none were monitored.
pub fn process(programs: &[Program]) -> Option<String> {
    let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
    let row = |name, cell: fn(&Program) -> String| (name, programs.iter().map(cell).collect());
    (!programs.is_empty()).then(|| {
        facts(
            "process",
            &names,
            vec![
                row("pids", |p| pids(&p.pids)),
                row("processes", |p| p.processes.to_string()),
                row("running", |p| count(p.running)),
                row("threads", |p| count(p.threads)),
                row("mean processes", |p| number(p.mean.map(|mean| mean.processes))),
                row("mean running", |p| number(p.mean.map(|mean| mean.running))),
                row("mean rss_bytes", |p| bytes(p.mean.map(|mean| mean.rss_bytes.round() as u64))),
                row("started", |p| p.started.to_string()),
                row("ended", |p| p.ended.to_string()),
                row("cpu_s", |p| seconds(Some(p.cpu_s))),
                row("cpu_s_user", |p| seconds(Some(p.cpu_s_user))),
                row("cpu_s_system", |p| seconds(Some(p.cpu_s_system))),
                row("cores", |p| number(Some(p.cores))),
                row("run_queue_wait_s", |p| seconds(p.run_queue_wait_s)),
                row("rss_bytes", |p| bytes(Some(p.rss_bytes))),
                row("memory_share", |p| share(p.memory_share)),
                row("major_faults", |p| count(p.major_faults)),
                row("context_switches", |p| count(p.context_switches)),
                row("quota group", quota_group),
                row("quota cpus", |p| number(p.quota.as_ref().map(|quota| quota.cpus))),
                row("quota throttled_periods", |p| share(p.quota.as_ref().map(|quota| quota.throttled_periods))),
                row("quota throttled_s", |p| seconds(p.quota.as_ref().map(|quota| quota.throttled_s))),
            ],
        )
    })
}

/// Tables of the network's metrics.
pub fn network(network: &Network) -> Vec<String> {
    let interfaces = network.interfaces.iter().map(|(name, traffic)| (name.as_str(), Some(traffic)));
    let (names, traffic): (Vec<&str>, Vec<Option<&NetworkTraffic>>) =
        [("all", network.all.as_ref())].into_iter().chain(interfaces).unzip();
    let row = |name, figure: fn(&NetworkTraffic) -> f64| {
        (name, traffic.iter().map(|traffic| number(traffic.map(figure))).collect())
    };
    let traffic = facts(
        "network",
        &names,
        vec![
            row("rx_packets_per_s", |t| t.rx_packets_per_s),
            row("tx_packets_per_s", |t| t.tx_packets_per_s),
            row("rx_bytes_per_s", |t| t.rx_bytes_per_s),
            row("tx_bytes_per_s", |t| t.tx_bytes_per_s),
            row("rx_errors_per_s", |t| t.rx_errors_per_s),
            row("tx_errors_per_s", |t| t.tx_errors_per_s),
            row("rx_dropped_per_s", |t| t.rx_dropped_per_s),
            row("tx_dropped_per_s", |t| t.tx_dropped_per_s),
            row("collisions_per_s", |t| t.collisions_per_s),
        ],
    );
    let tcp = network.tcp.unwrap_or_default();
    let rate = |name, per_s: fn(&Tcp) -> Option<f64>| (name, vec![number(per_s(&tcp))]);
    let now = |name, n: Option<u64>| (name, vec![count(n)]);
    let tcp = facts(
        "tcp",
        &[],
        vec![
            rate("segments_in_per_s", |t| t.segments_in_per_s),
            rate("segments_out_per_s", |t| t.segments_out_per_s),
            rate("retransmitted_per_s", |t| t.retransmitted_per_s),
            rate("resets_out_per_s", |t| t.resets_out_per_s),
            rate("active_opens_per_s", |t| t.active_opens_per_s),
            rate("passive_opens_per_s", |t| t.passive_opens_per_s),
            rate("listen_overflows_per_s", |t| t.listen_overflows_per_s),
            rate("listen_drops_per_s", |t| t.listen_drops_per_s),
            rate("syn_cookies_per_s", |t| t.syn_cookies_per_s),
            rate("backlog_drops_per_s", |t| t.backlog_drops_per_s),
            now("time_wait", tcp.time_wait),
            now("in_use", tcp.in_use),
            now("orphans", tcp.orphans),
            ("memory_bytes", vec![bytes(tcp.memory_bytes)]),
        ],
    );
    let overflows = format!("  {:<24}{:>14}\n", "queue_overflows_per_s", number(network.queue_overflows_per_s));
    vec![traffic + &overflows, tcp]
}

/// Tables of the metrics of listening sockets and connections.
pub fn connections(connections: &Connections) -> Vec<String> {
    let Connections { listener, connections, ports } = connections;
    if ports.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> =
        ["all ports".to_owned()].into_iter().chain(ports.iter().map(|port| port.port.to_string())).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let listeners: Vec<Option<&Listener>> =
        [listener.as_ref()].into_iter().chain(ports.iter().map(|port| port.listener.as_ref())).collect();
    let row = |name, cell: fn(&Listener) -> String| {
        let cells = listeners.iter().map(|listener| listener.map_or(UNKNOWN_MARK.to_owned(), cell));
        (name, cells.collect())
    };
    let listener = facts(
        "listener",
        &names,
        vec![
            row("syn_per_s", |l| number(l.syn_per_s)),
            row("accepted_per_s", |l| number(l.accepted_per_s)),
            row("dropped_per_s", |l| number(Some(l.dropped_per_s))),
            row("accept_queue", |l| quantity::count(l.accept_queue)),
            row("accept_queue_max", |l| quantity::count(l.accept_queue_max)),
            row("backlog", |l| quantity::count(l.backlog)),
            row("sockets", |l| l.sockets.to_string()),
            row("fullest length", |l| quantity::count(l.fullest.length)),
            row("fullest limit", |l| quantity::count(l.fullest.limit)),
        ],
    );
    let states: Vec<Option<&BTreeMap<State, u64>>> =
        [connections.as_ref()].into_iter().chain(ports.iter().map(|port| port.connections.as_ref())).collect();
    let row = |state: State| {
        let cells = states.iter().map(|states| count(states.and_then(|states| states.get(&state)).copied()));
        (state.name(), cells.collect())
    };
    vec![listener, facts("connections", &names, State::ALL.into_iter().map(row).collect())]
}

/// Formats a list of process IDs as the first one and the number of the others.
fn pids(pids: &[u32]) -> String {
    match pids {
        [] => UNKNOWN_MARK.to_owned(),
        [pid] => pid.to_string(),
        [first, rest @ ..] => format!("{first} + {}", rest.len()),
    }
}
