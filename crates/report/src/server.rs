//! The monitor's metrics of a server as text: a summary of a few lines, or every metric with its name.
//!
//! The names are the keys of the `server` object (`schema/server.schema.json`). A dash means that a value is unknown;
//! the list of the monitor's data sources at the end of the text says why.

mod groups;
mod layout;
mod module;
mod paper;
mod sockets;

pub use module::table as module_table;
pub use paper::tables as paper_tables;
pub use sockets::table as requests_table;

use crate::format::labelled;
use brimful_core::quantity::{self, bytes, count, number, percent, rate};
use brimful_core::server::{
    AcceptQueue, Core, CpuQuota, CpuShares, Disk, HostProbe, Listener, Network, Program, Server,
};
use brimful_core::text::one_line;
use groups::{connections, kernel, network, process};
use layout::{facts, seconds};

/// Describes the main metrics in a few lines, each with a label such as `CPU`.
pub fn summary_lines(server: &Server) -> Vec<(&'static str, String)> {
    let Server { kernel, process, network, connections, .. } = server;
    let mut lines = vec![("CPU", kernel.cpu.map_or("not known".to_owned(), |cpu| cpu_in_words(&cpu, &kernel.cores)))];
    if !process.is_empty() {
        lines.push(("programs", process.iter().map(program_in_words).collect::<Vec<_>>().join(", ")));
    }
    lines.extend(kernel_threads_in_words(server).map(|words| ("kernel", words)));
    lines.extend(connections.listener.map(|listener| ("listener", listener_in_words(&listener))));
    lines.extend(network.as_ref().and_then(network_in_words).map(|words| ("network", words)));
    let busiest = kernel.disks.iter().max_by(|(_, a), (_, b)| a.utilization.total_cmp(&b.utilization));
    lines.extend(busiest.filter(|(_, disk)| disk.utilization >= 0.001).map(|(name, disk)| {
        let Disk { reads_per_s, writes_per_s, utilization, .. } = disk;
        let words = format!(
            "{name} {} busy, {} reads/s, {} writes/s",
            percent(*utilization),
            number(*reads_per_s),
            number(*writes_per_s)
        );
        ("disk", words)
    }));
    lines.extend(server.module.iter().flat_map(module::describe).map(|words| ("requests", words)));
    lines.extend(server.requests.iter().flat_map(sockets::describe).map(|words| ("sockets", words)));
    lines.extend(server.host_probe.map(|probe| ("host", describe_probe(&probe) + " when the watch began")));
    // Escapes control characters, which may occur in names of programs.
    lines.into_iter().map(|(what, words)| (what, one_line(&words).into_owned())).collect()
}

/// Describes the measured speed of a host: `2,310 million operations/s, 25.3 million memory reads/s`.
pub fn describe_probe(probe: &HostProbe) -> String {
    let HostProbe { arithmetic_mops, memory_mreads } = *probe;
    format!("{} million operations/s, {} million memory reads/s", number(arithmetic_mops), number(memory_mreads))
}

fn cpu_in_words(cpu: &CpuShares, cores: &[Core]) -> String {
    let CpuShares { user, system, idle, steal, .. } = *cpu;
    let [user, system, idle, steal] = [user, system, idle, steal].map(percent);
    let busy = |core: &Core| core.shares.user + core.shares.system;
    let busiest = cores.iter().filter(|_| cores.len() > 1).max_by(|a, b| busy(a).total_cmp(&busy(b)));
    let busiest = busiest.map_or(String::new(), |core| format!("; busiest: CPU {} {}", core.cpu, percent(busy(core))));
    format!("user {user}, system {system}, idle {idle}, steal {steal}{busiest}")
}

fn program_in_words(process: &Program) -> String {
    let waited = process.run_queue_wait_s.filter(|&wait| wait > 0.0);
    let waited = waited.map(|wait| format!("waited {} for a CPU", quantity::seconds(wait)));
    let stopped = process.quota.as_ref().filter(|quota| quota.throttled_s > 0.0).map(|quota| {
        let CpuQuota { cpus, throttled_s, .. } = quota;
        format!("stopped for {} by a quota of {} CPUs", quantity::seconds(*throttled_s), number(*cpus))
    });
    let notes: Vec<String> = waited.into_iter().chain(stopped).collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    format!("{} {}{notes}", process.name, quantity::seconds(process.cpu_s))
}

/// Describes the kernel threads that used a notable share of a CPU, in the order of their CPU time.
fn kernel_threads_in_words(server: &Server) -> Option<String> {
    /// Minimum share of a CPU that a group of kernel threads must use to be mentioned.
    const NOTABLE: f64 = 0.001;
    let mut groups: Vec<_> = server.kernel.kernel_threads.iter().flatten().collect();
    groups.retain(|(_, group)| group.cores >= NOTABLE);
    groups.sort_by(|(_, a), (_, b)| b.cores.total_cmp(&a.cores));
    let words: Vec<String> = groups.iter().map(|(name, group)| format!("{name} {}", percent(group.cores))).collect();
    (!words.is_empty()).then(|| format!("threads of the kernel: {} of a CPU", words.join(", ")))
}

fn listener_in_words(listener: &Listener) -> String {
    let syns = listener.syn_per_s.map_or("SYN/s not known".to_owned(), |syns| number(syns) + " SYN/s");
    let Listener { dropped_per_s, fullest: AcceptQueue { length, limit }, .. } = listener;
    format!("{syns}, {} dropped; accept queue at most {} of {}", rate(*dropped_per_s), count(*length), count(*limit))
}

fn network_in_words(network: &Network) -> Option<String> {
    let all = network.all?;
    let (received, sent) = (bytes(all.rx_bytes_per_s), bytes(all.tx_bytes_per_s));
    let again = network.tcp.and_then(|tcp| tcp.retransmitted_per_s);
    let again = again.map_or(String::new(), |again| format!("; {} segments/s sent again", number(again)));
    Some(format!("{received}/s received, {sent}/s sent{again}"))
}

/// Formats every metric with its name, except the metrics of single intervals. The text ends in a newline.
pub fn text(server: &Server) -> String {
    let mut groups = kernel(&server.kernel);
    groups.extend(process(&server.process));
    groups.extend(server.network.as_ref().map(network).unwrap_or_default());
    groups.extend(connections(&server.connections));
    groups.extend(server.module.as_ref().map(module::text).unwrap_or_default());
    groups.extend(server.requests.as_ref().map(sockets::text).unwrap_or_default());
    if let Some(clock) = &server.clock {
        let cells = [("offset_s", clock.offset_s), ("uncertainty_s", clock.uncertainty_s)];
        groups.push(facts("clock", &[], cells.map(|(name, s)| (name, vec![seconds(Some(s))])).to_vec()));
    }
    if let Some(probe) = &server.host_probe {
        let cells = [("arithmetic_mops", probe.arithmetic_mops), ("memory_mreads", probe.memory_mreads)];
        groups.push(facts("host_probe", &[], cells.map(|(name, x)| (name, vec![number(x)])).to_vec()));
    }
    let overhead = &server.overhead;
    let cells = vec![
        ("monitor_cpu_s", vec![quantity::seconds(overhead.monitor_cpu_s)]),
        ("per_sample_us", vec![quantity::seconds(overhead.per_sample_us / 1e6)]),
        ("samples", vec![overhead.samples.to_string()]),
    ];
    groups.push(facts("overhead", &[], cells));
    let name = server.sources.keys().map(String::len).max().unwrap_or(0);
    let source = |(figures, source): (&String, &String)| {
        labelled(&format!("  {}", one_line(figures)), &one_line(source), name + 4)
    };
    groups.push("sources\n".to_owned() + &server.sources.iter().map(source).collect::<String>());
    groups.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::with_width;
    use brimful_core::server::{
        ClockOffset, Connections, Disk, Interrupts, Kernel, KernelThreads, Memory, Overhead, Paging, Port, Pressure,
    };
    use brimful_core::server::{NetworkTraffic, Stall, State, Tcp};
    use serde_json::Value;
    use std::collections::{BTreeMap, BTreeSet};

    /// Metrics of a server in which every field has a value.
    fn server() -> Server {
        let shares = CpuShares {
            user: 0.123,
            system: 0.301,
            idle: 0.566,
            steal: 0.01,
            interrupt: Some(0.05),
            io_wait: Some(0.002),
        };
        let disk = Disk { reads_per_s: 12.0, utilization: 0.5, queue_length: 0.7, ..Disk::default() };
        let stall = Some(Stall { some: 0.12, full: Some(0.01) });
        let kernel = Kernel {
            cpu: Some(shares),
            cpus: vec![0, 1],
            cores: vec![Core { cpu: 0, shares }, Core { cpu: 1, shares: CpuShares { user: 0.5, ..shares } }],
            runnable: Some(3),
            context_switches_per_s: Some(12_345.6),
            interrupts: Some(Interrupts::default()),
            paging: Some(Paging { page_ins_per_s: Some(4.0), ..Paging::default() }),
            memory: Some(Memory { total_bytes: 4_000_000_000, available_bytes: Some(2_100_000_000) }),
            disk: Some(disk),
            disks: [("vda".to_owned(), disk)].into(),
            pressure: Some(Pressure { cpu: stall, memory: stall, io: stall }),
            kernel_threads: Some(
                [("ksoftirqd", 0.031), ("kswapd", 0.12), ("jbd2", 0.000_4)]
                    .map(|(name, cores)| (name.to_owned(), KernelThreads { threads: 2, cores }))
                    .into(),
            ),
            ..Kernel::default()
        };
        let process = Program {
            name: "nginx".to_owned(),
            pids: vec![7, 8, 9],
            processes: 3,
            cpu_s: 12.3,
            cores: 1.23,
            run_queue_wait_s: Some(0.5),
            quota: Some(CpuQuota {
                group: "/sys/fs/cgroup/system.slice/nginx.service".to_owned(),
                cpus: 1.5,
                throttled_periods: 0.2,
                throttled_s: 0.123,
            }),
            ..Program::default()
        };
        let traffic = NetworkTraffic { rx_bytes_per_s: 1e6, tx_bytes_per_s: 12.3e6, ..NetworkTraffic::default() };
        let tcp = Some(Tcp { retransmitted_per_s: Some(1.5), ..Tcp::default() });
        let interfaces = [("eth0".to_owned(), traffic)].into();
        let network = Some(Network { all: Some(traffic), interfaces, queue_overflows_per_s: Some(0.0), tcp });
        let listener = Some(Listener {
            syn_per_s: Some(5210.0),
            accepted_per_s: Some(4000.0),
            dropped_per_s: 1210.0,
            accept_queue: 4000,
            accept_queue_max: 4097,
            backlog: 4096,
            fullest: AcceptQueue { length: 4097, limit: 4096 },
            sockets: 1,
        });
        let connections: Option<BTreeMap<State, u64>> = Some(State::ALL.into_iter().zip(1..).collect());
        let ports =
            vec![Port { port: 80, listener, connections: connections.clone() }, Port { port: 443, ..Port::default() }];
        let sources = [("cpu", "/proc/stat, all CPUs"), ("connections", "none: run as root")];
        Server {
            sources: sources.map(|(name, source)| (name.to_owned(), source.to_owned())).into(),
            overhead: Overhead { monitor_cpu_s: 0.001, per_sample_us: 210.0, samples: 5 },
            clock: Some(ClockOffset::default()),
            kernel,
            process: vec![process.clone(), Program { name: "php-fpm".to_owned(), quota: None, ..process }],
            network,
            connections: Connections { listener, connections, ports },
            module: Some(module::tests::module()),
            requests: Some(sockets::tests::requests()),
            host_probe: Some(HostProbe { arithmetic_mops: 2_310.0, memory_mreads: 25.3 }),
            intervals: Vec::new(),
        }
    }

    fn keys(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                into.insert(key.clone());
                keys(value, into);
            }),
            Value::Array(items) => items.iter().for_each(|item| keys(item, into)),
            _ => {}
        }
    }

    #[test]
    fn every_figure_is_there_under_its_name() {
        let text = text(&server());
        let words: BTreeSet<&str> = text.split_ascii_whitespace().collect();
        let mut names = BTreeSet::new();
        keys(&serde_json::to_value(server()).unwrap(), &mut names);
        // The report has no rows with these names. Some are keys of maps, whose own keys, such as a disk's name, are
        // titles.
        for name in ["cpus", "cores", "disks", "interfaces", "name", "port", "ports", "intervals"] {
            names.remove(name);
        }
        let missing: Vec<_> = names.iter().filter(|name| !words.contains(name.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?} in\n{text}");
        assert!(words.contains("eth0") && words.contains("vda") && words.contains("443"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn lines_fit_the_terminal_and_no_source_is_cut() {
        let mut server = server();
        let long = "none: they cost the server some of its throughput and come only when asked for, by --requests";
        server.sources.insert("requests".to_owned(), long.to_owned());
        for columns in [60, 80, 200] {
            let text = with_width(columns, || text(&server));
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
            let words: Vec<&str> = text.split_whitespace().collect();
            assert!(words.join(" ").ends_with(&format!("requests {long}")), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        let mut server = server();
        (server.kernel.cpu, server.network) = (None, Some(Network::default()));
        let text = text(&server);
        let cells = |line: &str| -> Vec<String> {
            let line = text
                .lines()
                .find(|found| found.trim_start().starts_with(line))
                .unwrap_or_else(|| panic!("{line}: {text}"));
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
        };
        assert_eq!(cells("all watched"), ["all watched", "–", "–", "–", "–", "–", "–"]);
        assert_eq!(cells("1  "), ["1", "50.0 %", "30.1 %", "56.6 %", "1.0 %", "5.0 %", "0.2 %"]);
        assert_eq!(cells("rx_packets_per_s"), ["rx_packets_per_s", "–"]);
        assert_eq!(cells("syn_per_s"), ["syn_per_s", "5,210", "5,210", "–"]);
        assert_eq!(cells("pids"), ["pids", "7 + 2", "7 + 2"]);
        assert_eq!(cells("forks_per_s"), ["forks_per_s", "–"]);
    }

    #[test]
    fn many_interfaces_take_several_blocks() {
        let mut server = server();
        let network = server.network.as_mut().unwrap();
        network.interfaces = (0..7).map(|i| (format!("veth{i}"), NetworkTraffic::default())).collect();
        let text = text(&server);
        assert_eq!(text.matches("rx_packets_per_s").count(), 2, "{text}");
        assert!(text.contains("veth6"), "{text}");
    }

    #[test]
    fn the_main_figures_take_a_line_each() {
        let lines: Vec<String> =
            summary_lines(&server()).into_iter().map(|(what, words)| format!("{what}: {words}")).collect();
        let expected = [
            "CPU: user 12.3 %, system 30.1 %, idle 56.6 %, steal 1.0 %; busiest: CPU 1 80.1 %",
            "programs: nginx 12.3 s (waited 500 ms for a CPU; stopped for 123 ms by a quota of 1.50 CPUs), php-fpm 12.3 s \
             (waited 500 ms for a CPU)",
            "kernel: threads of the kernel: kswapd 12.0 %, ksoftirqd 3.1 % of a CPU",
            "listener: 5,210 SYN/s, 1,210/s dropped; accept queue at most 4,097 of 4,096",
            "network: 1.00 MB/s received, 12.3 MB/s sent; 1.50 segments/s sent again",
            "disk: vda 50.0 % busy, 12.0 reads/s, 0.00 writes/s",
            "requests: nginx/1.22.1 500/s, processing 95.0 µs (p99 437 µs) of under-5k, CPU 23.5 µs a request, \
             1.85 of 2 workers busy",
            "sockets: port 80: 500/s, wait 10.0 µs (p99 46.0 µs), service 95.0 µs (p99 437 µs), 0.250 under way, \
             10.0 % still open when their slice ended; seen 20.0 % of the time",
            "host: 2,310 million operations/s, 25.3 million memory reads/s when the watch began",
        ];
        assert_eq!(lines, expected);
        assert_eq!(summary_lines(&Server::default()), [("CPU", "not known".to_owned())]);
    }
}
