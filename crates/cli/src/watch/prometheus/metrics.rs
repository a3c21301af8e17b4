//! Formats a sample in Prometheus's text format, version 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats).
//!
//! Counters have the values that the kernel or the server reports, in base units such as seconds. Unknown metrics are
//! left out. Counters of programs count from the start of the watch.

mod requests;
mod sockets;

use brimful_core::Nanos;
use brimful_core::server::DISK_BLOCK_BYTES;
use brimful_core::text::escape_controls;
use brimful_monitor::{
    ConnectionsSample, CpuTicks, DiskSample, InterfaceSample, KernelSample, ListenerSample, Membership, NetworkSample,
    PortSample, ProgramSample, Sample, StallSample, TcpSample, ThreadGroupSample,
};
use brimful_os::clock;
use std::collections::BTreeSet;
use std::fmt::{Display, Write};

/// The text of the metrics page, with all metrics of a sample that are known.
pub fn text(sample: &Sample) -> String {
    let mut page = Page::default();
    monitor(&mut page);
    if let Some(sample) = &sample.groups.kernel {
        kernel(&mut page, sample);
    }
    if let Some(programs) = &sample.groups.process {
        let known = programs.iter().filter(|program| program.membership == Membership::Own);
        process(&mut page, &known.collect::<Vec<_>>());
    }
    if let Some(sample) = &sample.groups.network {
        network(&mut page, sample);
    }
    if let Some(sample) = &sample.groups.connections {
        connections(&mut page, sample);
    }
    if let Some(sample) = &sample.groups.module {
        requests::requests(&mut page, sample);
    }
    if let Some(sample) = &sample.groups.requests {
        sockets::sockets(&mut page, sample);
    }
    page.0
}

/// The text of the metrics page, to which metrics are appended.
#[derive(Default)]
struct Page(String);

/// The names and values of a metric's labels.
type Labels<'a> = &'a [(&'a str, &'a dyn Display)];

/// A metric of the page. Its description is written before its first sample.
struct Metric<'p> {
    page: &'p mut Page,
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    begun: bool,
}

impl Page {
    fn counter(&mut self, name: &'static str, help: &'static str) -> Metric<'_> {
        debug_assert!(name.ends_with("_total"));
        Metric { page: self, name, kind: "counter", help, begun: false }
    }

    fn gauge(&mut self, name: &'static str, help: &'static str) -> Metric<'_> {
        Metric { page: self, name, kind: "gauge", help, begun: false }
    }

    fn histogram(&mut self, name: &'static str, help: &'static str) -> Metric<'_> {
        Metric { page: self, name, kind: "histogram", help, begun: false }
    }
}

impl Metric<'_> {
    /// Adds a sample if its value is known.
    fn add(&mut self, labels: Labels<'_>, value: Option<impl Display>) -> &mut Self {
        if let Some(value) = value {
            self.series("", labels, value);
        }
        self
    }

    /// Adds a histogram: for each bound the number of values that do not exceed it, then the number and the sum of all
    /// values.
    fn add_histogram(&mut self, labels: Labels<'_>, buckets: &[(f64, u64)], count: u64, sum: f64) {
        let with = |bound| labels.iter().copied().chain([("le", bound)]).collect::<Vec<(&str, &dyn Display)>>();
        for (bound, up_to) in buckets {
            self.series("_bucket", &with(bound), up_to);
        }
        self.series("_bucket", &with(&"+Inf"), count);
        self.series("_sum", labels, sum);
        self.series("_count", labels, count);
    }

    fn series(&mut self, suffix: &str, labels: Labels<'_>, value: impl Display) {
        let Metric { page: Page(text), name, kind, help, begun } = self;
        if !std::mem::replace(begun, true) {
            *text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        }
        *text += name;
        *text += suffix;
        for (i, (label, value)) in labels.iter().enumerate() {
            let value =
                escape_controls(&value.to_string()).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{label}=\"{value}\"", if i == 0 { '{' } else { ',' });
        }
        let _ = writeln!(text, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
}

fn monitor(page: &mut Page) {
    let version = env!("CARGO_PKG_VERSION");
    page.gauge("brimful_build_info", "The monitor's version.").add(&[("version", &version)], Some(1));
    let seconds = clock::process_cpu().as_secs_f64();
    page.counter("brimful_monitor_cpu_seconds_total", "CPU time of the monitor itself.").add(&[], Some(seconds));
}

fn kernel(page: &mut Page, sample: &KernelSample) {
    cpus(page, sample);
    let KernelSample { softirqs, paging, memory, pressure, .. } = sample;
    page.gauge("brimful_threads_runnable", "Threads that run or wait for a CPU.").add(&[], sample.runnable);
    page.gauge("brimful_threads_blocked", "Threads that wait for a disk.").add(&[], sample.blocked);
    page.counter("brimful_context_switches_total", "Context switches.").add(&[], sample.context_switches);
    page.counter("brimful_forks_total", "Processes and threads started.").add(&[], sample.forks);
    page.counter("brimful_interrupts_total", "Interrupts from all devices, timers included.")
        .add(&[], sample.interrupts);
    page.counter("brimful_softirqs_total", "Deferred work of interrupts by device class.")
        .add(&[("kind", &"network")], softirqs.map(|softirqs| softirqs.network))
        .add(&[("kind", &"disk")], softirqs.map(|softirqs| softirqs.disk));
    page.counter("brimful_paged_bytes_total", "Traffic between memory and disks, file contents and swap.")
        .add(&[("direction", &"in")], paging.and_then(|paging| Some(paging.in_kib? * 1024)))
        .add(&[("direction", &"out")], paging.and_then(|paging| Some(paging.out_kib? * 1024)));
    page.counter("brimful_swapped_bytes_total", "Traffic between memory and swap.")
        .add(&[("direction", &"in")], paging.and_then(|paging| Some(paging.swapped_in? * paging.page_bytes)))
        .add(&[("direction", &"out")], paging.and_then(|paging| Some(paging.swapped_out? * paging.page_bytes)));
    page.counter("brimful_major_faults_total", "Page faults that had to wait for a disk.")
        .add(&[], paging.and_then(|paging| paging.major_faults));
    page.gauge("brimful_memory_size_bytes", "Total memory.").add(&[], memory.map(|memory| memory.total_bytes));
    page.gauge("brimful_memory_available_bytes", "Memory that programs can allocate without swapping.")
        .add(&[], memory.and_then(|memory| memory.available_bytes));
    disks(page, sample);
    kernel_threads(page, sample);
    let mut stalls =
        page.counter("brimful_pressure_seconds_total", "Time in which something waited for a resource (PSI).");
    for (resource, stall) in [("cpu", pressure.cpu), ("memory", pressure.memory), ("io", pressure.io)] {
        let Some(StallSample { some, full }) = stall else { continue };
        stalls.add(&[("resource", &resource), ("kind", &"some")], Some(some.as_secs_f64()));
        stalls.add(&[("resource", &resource), ("kind", &"full")], full.map(Nanos::as_secs_f64));
    }
}

fn kernel_threads(page: &mut Page, sample: &KernelSample) {
    let mut seconds =
        page.counter("brimful_kernel_thread_cpu_seconds_total", "CPU time of the kernel's own threads, by group.");
    for (group, ThreadGroupSample { cpu, .. }) in sample.threads.iter().flatten() {
        seconds.add(&[("group", group)], Some(cpu.as_secs_f64()));
    }
}

fn cpus(page: &mut Page, sample: &KernelSample) {
    let per_s = rustix::param::clock_ticks_per_second().max(1) as f64;
    let mut seconds = page.counter("brimful_cpu_seconds_total", "CPU time; the modes do not overlap.");
    for (cpu, CpuTicks { user, system, idle, steal, interrupt, io_wait }) in &sample.cpus {
        for (mode, ticks) in [
            ("user", *user),
            ("system", system.saturating_sub(*interrupt)),
            ("interrupt", *interrupt),
            ("idle", idle.saturating_sub(*io_wait)),
            ("io_wait", *io_wait),
            ("steal", *steal),
        ] {
            seconds.add(&[("cpu", cpu), ("mode", &mode)], Some(ticks as f64 / per_s));
        }
    }
}

fn disks(page: &mut Page, sample: &KernelSample) {
    let mut each = |name, help, figure: fn(&DiskSample) -> f64| {
        let mut metric = page.counter(name, help);
        for (disk, sample) in sample.disks.iter().flatten() {
            metric.add(&[("disk", disk)], Some(figure(sample)));
        }
    };
    each("brimful_disk_reads_total", "Read operations completed.", |d| d.reads as f64);
    each("brimful_disk_read_bytes_total", "Bytes read.", |d| (d.blocks_read * DISK_BLOCK_BYTES) as f64);
    each("brimful_disk_writes_total", "Write operations completed.", |d| d.writes as f64);
    each("brimful_disk_written_bytes_total", "Bytes written.", |d| (d.blocks_written * DISK_BLOCK_BYTES) as f64);
    each("brimful_disk_busy_seconds_total", "Time in which an operation was in progress.", |d| d.busy_ms as f64 / 1e3);
    each("brimful_disk_queue_seconds_total", "Total time of all operations in progress.", |d| d.queued_ms as f64 / 1e3);
}

fn process(page: &mut Page, programs: &[&ProgramSample]) {
    let names = distinct(programs.iter().map(|program| &*program.name));
    let named = || names.iter().zip(programs.iter().copied());
    let mut seconds = page.counter("brimful_process_cpu_seconds_total", "CPU time of a program's processes.");
    for (name, ProgramSample { cpu, .. }) in named() {
        seconds.add(&[("program", name), ("mode", &"user")], Some(cpu.user.as_secs_f64()));
        seconds.add(&[("program", name), ("mode", &"system")], Some((cpu.total - cpu.user).as_secs_f64()));
    }
    let each = |mut metric: Metric<'_>, figure: fn(&ProgramSample) -> Option<f64>| {
        for (name, program) in named() {
            metric.add(&[("program", name)], figure(program));
        }
    };
    each(page.gauge("brimful_process_processes", "Processes of a program."), |p| Some(p.pids.len() as f64));
    each(page.gauge("brimful_process_threads", "Threads of a program."), |p| Some(p.threads as f64));
    each(page.gauge("brimful_process_threads_runnable", "Threads of a program that run or wait for a CPU."), |p| {
        Some(p.running as f64)
    });
    each(page.counter("brimful_process_started_total", "Processes that started."), |p| Some(p.started as f64));
    each(page.counter("brimful_process_ended_total", "Processes that ended."), |p| Some(p.ended as f64));
    each(page.counter("brimful_process_run_queue_wait_seconds_total", "Time that threads waited for a CPU."), |p| {
        p.run_queue_wait.map(Nanos::as_secs_f64)
    });
    each(page.gauge("brimful_process_resident_memory_bytes", "Memory; shared pages count for each process."), |p| {
        Some(p.rss_bytes as f64)
    });
    each(page.counter("brimful_process_major_faults_total", "Page faults that had to wait for a disk."), |p| {
        Some(p.major_faults as f64)
    });
    each(page.counter("brimful_process_context_switches_total", "Context switches, voluntary and involuntary."), |p| {
        p.context_switches.map(|n| n as f64)
    });
}

/// Makes names distinct by adding numbers to repeated names.
fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |name: &str| {
        let numbered = (2_u64..).map(|n| format!("{name} ({n})"));
        let free = [name.to_owned()].into_iter().chain(numbered).find(|name| taken.insert(name.clone()));
        free.unwrap_or_default()
    };
    names.map(name).collect()
}

fn network(page: &mut Page, sample: &NetworkSample) {
    let mut each = |name, help, figure: fn(&InterfaceSample) -> u64| {
        let mut metric = page.counter(name, help);
        for interface in sample.interfaces.iter().flatten() {
            metric.add(&[("interface", &interface.name)], Some(figure(interface)));
        }
    };
    each("brimful_network_received_packets_total", "Packets received.", |i| i.rx_packets);
    each("brimful_network_sent_packets_total", "Packets sent.", |i| i.tx_packets);
    each("brimful_network_received_bytes_total", "Bytes received.", |i| i.rx_bytes);
    each("brimful_network_sent_bytes_total", "Bytes sent.", |i| i.tx_bytes);
    each("brimful_network_receive_errors_total", "Damaged packets received.", |i| i.rx_errors);
    each("brimful_network_send_errors_total", "Packets that could not be sent.", |i| i.tx_errors);
    each("brimful_network_receive_drops_total", "Received packets that were dropped.", |i| i.rx_dropped);
    each("brimful_network_send_drops_total", "Packets that were dropped before they were sent.", |i| i.tx_dropped);
    each("brimful_network_collisions_total", "Collisions on a shared wire.", |i| i.collisions);
    page.counter("brimful_network_queue_overflows_total", "Packets dropped because a CPU's receive queue was full.")
        .add(&[], sample.queue_overflows);
    tcp(page, &sample.tcp);
}

fn tcp(page: &mut Page, tcp: &TcpSample) {
    for (name, help, count) in [
        ("brimful_tcp_received_segments_total", "Segments received.", tcp.segments_in),
        ("brimful_tcp_sent_segments_total", "Segments sent, without retransmissions.", tcp.segments_out),
        ("brimful_tcp_retransmitted_segments_total", "Segments retransmitted.", tcp.retransmitted),
        ("brimful_tcp_sent_resets_total", "Resets sent.", tcp.resets_out),
        ("brimful_tcp_active_opens_total", "Connections that this side opened.", tcp.active_opens),
        ("brimful_tcp_passive_opens_total", "Connections that the other side opened.", tcp.passive_opens),
        ("brimful_tcp_listen_overflows_total", "Packets that found an accept queue full.", tcp.listen_overflows),
        ("brimful_tcp_listen_drops_total", "Packets dropped at listeners for any reason.", tcp.listen_drops),
        ("brimful_tcp_syn_cookies_total", "SYN cookies sent.", tcp.syn_cookies),
        ("brimful_tcp_backlog_drops_total", "Segments dropped because a socket's backlog was full.", tcp.backlog_drops),
    ] {
        page.counter(name, help).add(&[], count);
    }
    for (name, help, now) in [
        ("brimful_tcp_time_wait_sockets", "Sockets in TIME_WAIT.", tcp.time_wait),
        ("brimful_tcp_sockets", "Sockets in use.", tcp.in_use),
        ("brimful_tcp_orphaned_sockets", "Sockets that no process has open.", tcp.orphans),
        ("brimful_tcp_memory_bytes", "Memory of all sockets' buffers.", tcp.memory_bytes),
    ] {
        page.gauge(name, help).add(&[], now);
    }
}

fn connections(page: &mut Page, ConnectionsSample { ports, .. }: &ConnectionsSample) {
    let each = |mut metric: Metric<'_>, figure: fn(&ListenerSample) -> u64| {
        for PortSample { port, listener, .. } in ports {
            metric.add(&[("port", port)], listener.as_ref().map(figure));
        }
    };
    each(page.gauge("brimful_listener_accept_queue", "Connections that wait to be accepted."), |l| l.accept_queue);
    each(page.gauge("brimful_listener_backlog", "Maximum number of connections that wait to be accepted."), |l| {
        l.backlog
    });
    each(page.gauge("brimful_listener_sockets", "Listening sockets."), |l| l.sockets);
    let mut dropped = page.counter("brimful_listener_drops_total", "SYNs dropped by a port's listening sockets.");
    for PortSample { port, drops, .. } in ports {
        dropped.add(&[("port", port)], *drops);
    }
    let mut accepted = page.counter("brimful_listener_accepted_total", "Connections established on a port.");
    for PortSample { port, accepted: count, .. } in ports {
        accepted.add(&[("port", port)], *count);
    }
    let mut states = page.gauge("brimful_connections", "Connections of a port by TCP state.");
    for PortSample { port, connections, .. } in ports {
        for (state, count) in connections.iter().flatten() {
            states.add(&[("port", port), ("state", &state.name())], Some(count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_monitor::PerGroup;
    use brimful_monitor::module::{ClassSample, ModuleSample, ServerSample, TimesSample};

    fn page() -> String {
        let program = |name: &str| ProgramSample { name: name.into(), pids: [7].into(), ..ProgramSample::default() };
        let ticks = CpuTicks { user: 150, system: 300, idle: 1000, steal: 5, interrupt: 50, io_wait: 100 };
        let listener = ListenerSample { accept_queue: 3, backlog: 511, sockets: 1, ..ListenerSample::default() };
        let states = [(brimful_core::server::State::Established, 12)].into();
        let groups = PerGroup {
            kernel: Some(KernelSample {
                cpus: [(0, ticks), (1, ticks)].into(),
                context_switches: Some(123_456_789_012),
                disks: Some([("vd\"a".to_owned(), DiskSample { blocks_read: 4, ..DiskSample::default() })].into()),
                ..KernelSample::default()
            }),
            process: Some(vec![program("a\\b\n"), program("\x1b[2J"), program("nginx"), program("nginx")]),
            network: Some(NetworkSample {
                tcp: TcpSample { time_wait: Some(4), ..TcpSample::default() },
                ..NetworkSample::default()
            }),
            connections: Some(ConnectionsSample {
                ports: vec![
                    PortSample {
                        port: 80,
                        listener: Some(listener),
                        drops: Some(17),
                        connections: Some(states),
                        ..PortSample::default()
                    },
                    PortSample { port: 443, ..PortSample::default() },
                ],
                ..ConnectionsSample::default()
            }),
            module: Some(module()),
            requests: None,
        };
        text(&Sample { groups, ..Sample::default() })
    }

    /// A sample of two servers with the same name and the same class names.
    fn module() -> ModuleSample {
        let mut class = ClassSample {
            name: "a\"\n".to_owned(),
            requests: 7,
            cpu_ns: [0, 1_500_000_000, 0],
            ..ClassSample::default()
        };
        // Pairs of a bucket's index and its count: one time of 300 ns, two of 1 ms, and one of an hour.
        let buckets = vec![(0, 1), (47, 2), (111, 1)];
        class.times[2] = TimesSample { count: 4, sum_ns: 3_000_000_000, buckets, ..TimesSample::default() };
        let server = ServerSample {
            name: "nginx/1".to_owned(),
            enabled: true,
            workers: 2,
            classes: vec![class.clone(), class],
            ..ServerSample::default()
        };
        ModuleSample { servers: vec![server.clone().into(), server.into()] }
    }

    #[test]
    fn counters_are_counters_in_base_units() {
        let page = page();
        for line in [
            "brimful_cpu_seconds_total{cpu=\"1\",mode=\"user\"} 1.5",
            "brimful_cpu_seconds_total{cpu=\"0\",mode=\"system\"} 2.5",
            "brimful_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 9",
            "brimful_context_switches_total 123456789012",
            "brimful_disk_read_bytes_total{disk=\"vd\\\"a\"} 2048",
            "brimful_process_processes{program=\"a\\\\b\\n\"} 1",
            "brimful_process_processes{program=\"\\\\u001b[2J\"} 1",
            "brimful_process_processes{program=\"nginx (2)\"} 1",
            "brimful_tcp_time_wait_sockets 4",
            "brimful_listener_drops_total{port=\"80\"} 17",
            "brimful_connections{port=\"80\",state=\"established\"} 12",
            "brimful_workers{server=\"nginx/1 (2)\"} 2",
            "brimful_requests_total{server=\"nginx/1\",class=\"a\\\"\\n\"} 7",
            "brimful_request_cpu_seconds_total{server=\"nginx/1\",class=\"a\\\"\\n (2)\",phase=\"process\"} 1.5",
            "brimful_request_phase_seconds_bucket{server=\"nginx/1\",class=\"a\\\"\\n\",phase=\"process\",le=\"0.000001024\"} 1",
            "brimful_request_phase_seconds_bucket{server=\"nginx/1\",class=\"a\\\"\\n\",phase=\"process\",le=\"0.001048576\"} 3",
            "brimful_request_phase_seconds_bucket{server=\"nginx/1\",class=\"a\\\"\\n\",phase=\"process\",le=\"+Inf\"} 4",
            "brimful_request_phase_seconds_sum{server=\"nginx/1\",class=\"a\\\"\\n\",phase=\"process\"} 3",
            "brimful_request_phase_seconds_count{server=\"nginx/1\",class=\"a\\\"\\n\",phase=\"process\"} 4",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
        }
    }

    #[test]
    fn unknown_metrics_are_left_out() {
        let page = page();
        for name in [
            "brimful_forks_total",
            "brimful_memory_size_bytes",
            "brimful_tcp_sockets",
            "port=\"443\"",
            "brimful_listener_accepted",
        ] {
            assert!(!page.contains(name), "{name} in\n{page}");
        }
        let names: BTreeSet<String> = text(&Sample::default())
            .lines()
            .filter_map(|line| line.split([' ', '{']).next().map(str::to_owned))
            .collect();
        assert_eq!(
            names.into_iter().collect::<Vec<_>>(),
            ["#", "brimful_build_info", "brimful_monitor_cpu_seconds_total"]
        );
    }

    #[test]
    fn the_lines_of_a_metric_follow_its_help_and_no_series_is_repeated() {
        let page = page();
        let mut seen = BTreeSet::new();
        let mut series = BTreeSet::new();
        let mut current = "";
        for line in page.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                current = help.split(' ').next().unwrap();
                assert!(seen.insert(current) && help.ends_with('.'), "{line}");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let expected = match current {
                    "brimful_request_phase_seconds" => "histogram",
                    current if current.ends_with("_total") => "counter",
                    _ => "gauge",
                };
                assert_eq!(kind, format!("{current} {expected}"));
            } else {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let suffix = name.split('{').next().unwrap().strip_prefix(current).unwrap();
                assert!(matches!(suffix, "" | "_bucket" | "_sum" | "_count"), "{line}");
                assert!(series.insert(name) && value.parse::<f64>().is_ok(), "{line}");
            }
        }
    }
}
