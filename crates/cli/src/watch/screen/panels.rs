//! The panels of the screen. Each panel consists of a heading and the lines below it.

mod cpus;
mod requests;
mod sockets;

pub use cpus::cpus;
pub use requests::requests;
pub use sockets::sockets;

use super::state::ScreenState;
use super::style::{Style, cell, or_unknown, wrap_items};
use brimful_core::quantity::{self, compact, count, percent};
use brimful_core::server::{
    Connections, DISK_BLOCK_BYTES, Disk, Kernel, Listener, NetworkTraffic, Port, Program, Stall, State, Tcp,
};
use brimful_core::text::one_line;
use brimful_monitor::GroupName;
use brimful_monitor::thresholds::USED_MEMORY_SHARE;
use ratatui::style::{Color, Style as TextStyle};
use ratatui::text::{Line, Span};

/// A panel of the screen: a heading, and lines of metrics below it.
pub struct Panel {
    heading: Line<'static>,
    rows: Vec<Line<'static>>,
}

/// A function that makes a panel. It returns `None` if the panel would have no content.
pub type MakePanel = fn(&ScreenState, PanelSize) -> Option<Panel>;

/// The space for a panel.
#[derive(Clone, Copy)]
pub struct PanelSize {
    /// Width in columns.
    pub width: usize,
    /// Height in lines, with the heading.
    pub height: usize,
}

/// Titles of columns, their widths, and their priorities. If not all columns fit, the columns with the lowest
/// priorities are dropped.
type Columns<const N: usize> = [(&'static str, usize, u8); N];

/// Minimum width of a panel's first column, which contains names.
const MIN_NAME_WIDTH: usize = 13;

impl Panel {
    /// Makes a panel without lines. Its title is on the left, and the titles of the columns are on the right.
    fn new<const N: usize>(title: &str, columns: &Columns<N>, width: usize, style: Style) -> Panel {
        let room = first_width(columns, width);
        let mut heading = Line::styled(format!("{:<room$.room$}", format!(" {title}")), style.heading());
        heading.extend(fitting_columns(columns, width).map(|(_, title, width)| cell(title, width, style.dim())));
        Panel { heading, rows: Vec::new() }
    }

    fn push(&mut self, first: Vec<Span<'static>>, cells: impl IntoIterator<Item = Span<'static>>) {
        self.rows.push(first.into_iter().chain(cells).collect());
    }

    /// Height in lines, with the heading, if no line is left out.
    pub fn height(&self) -> usize {
        1 + self.rows.len()
    }

    /// The panel's lines, at most `height`. If lines are left out, the last line states how many.
    pub fn lines(mut self, height: usize, style: Style) -> Vec<Line<'static>> {
        let Some(room) = height.checked_sub(1) else { return Vec::new() };
        match self.rows.len() {
            rows if rows <= room => {}
            // In a panel of two lines, the second line shows metrics, and the heading has the number of missing lines.
            rows if room < 2 => {
                self.rows.truncate(room);
                let title = self.heading.spans.first_mut().map(|title| title.content.to_mut());
                title.into_iter().for_each(|title| add_missing_lines(title, rows - room));
            }
            rows => {
                let more = rows - (room - 1);
                self.rows.truncate(room - 1);
                self.rows.push(Line::styled(format!("   … {more} more lines"), style.dim()));
            }
        }
        [self.heading].into_iter().chain(self.rows).collect()
    }
}

/// Adds the number of missing lines to a title, if there is room.
fn add_missing_lines(title: &mut String, missing: usize) {
    let width = title.chars().count();
    let with_count = format!("{} +{missing}", title.trim_end());
    if with_count.chars().count() <= width {
        *title = format!("{with_count:<width$}");
    }
}

/// The columns that fit: their indices, titles and widths.
fn fitting_columns<const N: usize>(
    columns: &Columns<N>,
    width: usize,
) -> impl Iterator<Item = (usize, &'static str, usize)> + use<N> {
    let mut ranked: Vec<(u8, usize)> = columns.iter().enumerate().map(|(i, (_, _, worth))| (*worth, i)).collect();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    let mut room = width.saturating_sub(MIN_NAME_WIDTH + 1);
    let mut indices: Vec<usize> = Vec::new();
    for (_, index) in ranked {
        let Some(rest) = room.checked_sub(columns[index].1) else { break };
        room = rest;
        indices.push(index);
    }
    indices.sort_unstable();
    let columns = *columns;
    indices.into_iter().map(move |index| (index, columns[index].0, columns[index].1))
}

/// Width of the first column: the space that the other columns leave.
fn first_width<const N: usize>(columns: &Columns<N>, width: usize) -> usize {
    width.saturating_sub(fitting_columns(columns, width).map(|(_, _, width)| width).sum::<usize>() + 1)
}

/// A name, cut or padded to the width of the first column.
fn name(text: &str, width: usize) -> Vec<Span<'static>> {
    let cut: String = one_line(text).chars().take(width.saturating_sub(2)).collect();
    vec![Span::raw(format!("{:<width$}", format!("  {cut}")))]
}

fn cells<const N: usize>(columns: &Columns<N>, width: usize, texts: [(String, TextStyle); N]) -> Vec<Span<'static>> {
    let cell_of = |(index, _, width): (usize, _, usize)| cell(&texts[index].0, width, texts[index].1);
    fitting_columns(columns, width).map(cell_of).collect()
}

fn plain(text: String) -> (String, TextStyle) {
    (text, TextStyle::new())
}

/// The panel of the watched programs.
pub fn programs(state: &ScreenState, PanelSize { width, .. }: PanelSize) -> Option<Panel> {
    const COLUMNS: Columns<10> = [
        ("procs", 6, 8),
        ("run", 4, 3),
        ("thr", 5, 2),
        ("cores", 6, 9),
        ("user", 6, 5),
        ("system", 7, 4),
        ("ready", 7, 7),
        ("memory", 8, 6),
        ("maj/s", 6, 1),
        ("switch/s", 9, 0),
    ];
    let process = state.rates.process.as_ref().filter(|_| state.shows(GroupName::Process))?;
    let seconds = process.length().as_secs_f64();
    let per_s = |n: u64| compact(n as f64 / seconds);
    let mut panel = Panel::new("programs", &COLUMNS, width, state.style);
    for program in &process.metrics.process {
        let Program { cpu_s, run_queue_wait_s, processes, .. } = program;
        let share = |part: f64| if *cpu_s > 0.0 { program.cores * part / cpu_s } else { 0.0 };
        let waits = run_queue_wait_s.map(|wait| if wait > 0.0 { wait / (wait + cpu_s) } else { 0.0 });
        let gone = if *processes == 0 { state.style.utilization(1.0) } else { TextStyle::new() };
        let texts = [
            (processes.to_string(), gone),
            plain(or_unknown(program.running, |n| n.to_string())),
            plain(or_unknown(program.threads, |n| n.to_string())),
            plain(compact(program.cores)),
            plain(compact(share(program.cpu_s_user))),
            plain(compact(share(program.cpu_s_system))),
            plain(or_unknown(waits, percent)),
            plain(quantity::bytes(program.rss_bytes as f64)),
            plain(or_unknown(program.major_faults, per_s)),
            plain(or_unknown(program.context_switches, per_s)),
        ];
        panel.push(name(&program.name, first_width(&COLUMNS, width)), cells(&COLUMNS, width, texts));
    }
    Some(panel)
}

/// The panel of the watched ports.
pub fn ports(state: &ScreenState, PanelSize { width, .. }: PanelSize) -> Option<Panel> {
    const COLUMNS: Columns<6> = [
        ("queue/limit", 13, 5),
        ("SYN/s", 8, 3),
        ("accept/s", 9, 1),
        ("drop/s", 8, 4),
        ("estab", 8, 2),
        ("t-wait", 8, 0),
    ];
    let Connections { ports, .. } =
        &state.rates.connections.as_ref().filter(|_| state.shows(GroupName::Connections))?.metrics;
    let style = state.style;
    let mut panel = Panel::new("ports   accept queue", &COLUMNS, width, style);
    for Port { port, listener, connections } in ports {
        let count_in = |state| or_unknown(connections.as_ref().and_then(|states| states.get(&state)), |&n| count(n));
        let rate = |figure: fn(&Listener) -> Option<f64>| or_unknown(listener.as_ref().and_then(figure), compact);
        let fill = listener.map_or(0.0, |l| l.fullest.fullness());
        let queue = or_unknown(*listener, |l| format!("{}/{}", count(l.fullest.length), count(l.fullest.limit)));
        let texts = [
            (queue, style.utilization(fill)),
            plain(rate(|l| l.syn_per_s)),
            plain(rate(|l| l.accepted_per_s)),
            (rate(|l| Some(l.dropped_per_s)), style.loss(listener.map_or(0.0, |l| l.dropped_per_s))),
            plain(count_in(State::Established)),
            plain(count_in(State::TimeWait)),
        ];
        let mut start = vec![Span::raw(format!("  {port:<6}"))];
        let room = first_width(&COLUMNS, width).saturating_sub(8);
        match listener {
            Some(_) => start.extend(style.bar(room, &[(fill, '█', Color::Yellow)])),
            None => start.push(Span::styled(format!("{:<room$.room$}", "nothing listens"), style.dim())),
        }
        panel.push(start, cells(&COLUMNS, width, texts));
        let others = connections
            .iter()
            .flatten()
            .filter(|(state, n)| **n > 0 && !matches!(state, State::Established | State::TimeWait));
        let others: Vec<Span<'static>> =
            others.map(|(state, n)| Span::raw(format!("{} {}", state.name(), count(*n)))).collect();
        panel.rows.extend(indented(&others, width, 1));
    }
    (!ports.is_empty()).then_some(panel)
}

/// The panel of the network: interfaces, beginning with the busiest, and TCP.
pub fn network(state: &ScreenState, PanelSize { width, .. }: PanelSize) -> Option<Panel> {
    const COLUMNS: Columns<6> = [
        ("in pkt/s", 10, 1),
        ("out pkt/s", 10, 0),
        ("in MB/s", 9, 5),
        ("out MB/s", 9, 4),
        ("errors/s", 9, 2),
        ("drops/s", 9, 3),
    ];
    let network = &state.rates.network.as_ref().filter(|_| state.shows(GroupName::Network))?.metrics;
    let style = state.style;
    let mut panel = Panel::new("network", &COLUMNS, width, style);
    let (mut used, idle): (Vec<_>, Vec<_>) =
        network.interfaces.iter().partition(|(_, traffic)| **traffic != NetworkTraffic::default());
    used.sort_by(|(_, a), (_, b)| bytes(b).total_cmp(&bytes(a)));
    for (interface, traffic) in used {
        let errors = traffic.rx_errors_per_s + traffic.tx_errors_per_s + traffic.collisions_per_s;
        let drops = traffic.rx_dropped_per_s + traffic.tx_dropped_per_s;
        let texts = [
            plain(compact(traffic.rx_packets_per_s)),
            plain(compact(traffic.tx_packets_per_s)),
            plain(compact(traffic.rx_bytes_per_s / 1e6)),
            plain(compact(traffic.tx_bytes_per_s / 1e6)),
            (compact(errors), style.loss(errors)),
            (compact(drops), style.loss(drops)),
        ];
        panel.push(name(interface, first_width(&COLUMNS, width)), cells(&COLUMNS, width, texts));
    }
    let idle: Vec<&str> = idle.into_iter().map(|(interface, _)| interface.as_str()).collect();
    let [rates, mut rest] = tcp_facts(&network.tcp.unwrap_or_default(), network.queue_overflows_per_s, style);
    if !idle.is_empty() {
        rest.push(Span::styled(format!("idle: {}", idle.join(", ")), style.dim()));
    }
    panel.rows.extend(indented(&rates, width, 1));
    panel.rows.extend(indented(&rest, width, 2));
    Some(panel)
}

fn bytes(traffic: &NetworkTraffic) -> f64 {
    traffic.rx_bytes_per_s + traffic.tx_bytes_per_s
}

fn tcp_facts(tcp: &Tcp, queue_overflows: Option<f64>, style: Style) -> [Vec<Span<'static>>; 2] {
    let rate = |what: &str, per_s: Option<f64>| Span::raw(format!("{what} {}/s", or_unknown(per_s, compact)));
    // Losses are shown only if there are any, or if their number is unknown.
    let loss = |what: &str, per_s: Option<f64>| {
        let shown = per_s.is_none_or(|per_s| per_s > 0.0);
        shown.then(|| rate(what, per_s).style(per_s.map_or(style.dim(), |per_s| style.loss(per_s))))
    };
    let sockets = |what: &str, n: Option<u64>| Span::raw(format!("{what} {}", or_unknown(n, count)));
    let share = tcp.retransmitted_per_s.zip(tcp.segments_out_per_s).filter(|(again, _)| *again > 0.0);
    let again = share.map_or(String::new(), |(again, sent)| format!(" ({})", percent(again / (again + sent))));
    let rates = vec![
        rate("TCP in", tcp.segments_in_per_s),
        rate("out", tcp.segments_out_per_s),
        Span::raw(format!("again {}/s{again}", or_unknown(tcp.retransmitted_per_s, compact))),
        rate("resets", tcp.resets_out_per_s),
    ];
    let mut rest: Vec<Span<'static>> = [
        loss("listen overflows", tcp.listen_overflows_per_s),
        loss("SYN cookies", tcp.syn_cookies_per_s),
        loss("backlog drops", tcp.backlog_drops_per_s),
        loss("queue overflows", queue_overflows),
    ]
    .into_iter()
    .flatten()
    .collect();
    rest.extend([
        sockets("sockets", tcp.in_use),
        sockets("t-wait", tcp.time_wait),
        sockets("orphans", tcp.orphans),
        Span::raw(format!("buffers {}", or_unknown(tcp.memory_bytes, |n| quantity::bytes(n as f64)))),
    ]);
    [rates, rest]
}

/// The panel of the disks.
pub fn disks(state: &ScreenState, PanelSize { width, .. }: PanelSize) -> Option<Panel> {
    const COLUMNS: Columns<6> =
        [("reads/s", 9, 3), ("MB/s", 8, 2), ("writes/s", 9, 4), ("MB/s", 8, 1), ("in flight", 10, 0), ("busy", 8, 5)];
    let mb = |blocks_per_s: f64| compact(blocks_per_s * DISK_BLOCK_BYTES as f64 / 1e6);
    let kernel = state.kernel()?;
    let mut panel = Panel::new("disks", &COLUMNS, width, state.style);
    for (disk, figures) in &kernel.disks {
        let Disk { reads_per_s, writes_per_s, queue_length, utilization, .. } = *figures;
        let texts = [
            plain(compact(reads_per_s)),
            plain(mb(figures.blocks_read_per_s)),
            plain(compact(writes_per_s)),
            plain(mb(figures.blocks_written_per_s)),
            plain(compact(queue_length)),
            (percent(utilization), state.style.utilization(utilization)),
        ];
        panel.push(name(disk, first_width(&COLUMNS, width)), cells(&COLUMNS, width, texts));
    }
    (!kernel.disks.is_empty()).then_some(panel)
}

/// The panel of the machine: memory, waits and interrupts.
pub fn machine(state: &ScreenState, PanelSize { width, .. }: PanelSize) -> Option<Panel> {
    let kernel = state.kernel()?;
    let mut panel = Panel::new("memory, waits (PSI), interrupts", &[], width, state.style);
    for facts in machine_facts(kernel, state.style) {
        panel.rows.extend(indented(&facts, width, 1));
    }
    Some(panel)
}

fn machine_facts(kernel: &Kernel, style: Style) -> [Vec<Span<'static>>; 3] {
    let fact = |text: String| Span::raw(text);
    let rate = |what: &str, per_s: Option<f64>| fact(format!("{what} {}/s", or_unknown(per_s, compact)));
    let waits =
        |what: &str, stall: Option<Stall>| fact(format!("{what} {}", or_unknown(stall, |stall| percent(stall.some))));
    let paging = kernel.paging.unwrap_or_default();
    let pressure = kernel.pressure.unwrap_or_default();
    let interrupts = kernel.interrupts.unwrap_or_default();
    let gigabytes = |bytes: u64| compact(bytes as f64 / 1e9);
    let available = kernel.memory.and_then(|m| m.available_bytes);
    let total = kernel.memory.map(|m| m.total_bytes);
    let used = available.zip(total).map_or(0.0, |(available, total)| 1.0 - available as f64 / total.max(1) as f64);
    let free = format!("{} of {} GB left", or_unknown(available, gigabytes), or_unknown(total, gigabytes));
    let swap = paging.swap_ins_per_s.zip(paging.swap_outs_per_s).map(|(a, b)| a + b);
    [
        vec![
            Span::styled(free, style.by_threshold(USED_MEMORY_SHARE, used)),
            rate("page-ins", paging.page_ins_per_s),
            rate("outs", paging.page_outs_per_s),
            rate("swap", swap),
            rate("faults", paging.major_faults_per_s),
        ],
        vec![
            waits("waits: CPU", pressure.cpu),
            waits("memory", pressure.memory),
            waits("disk", pressure.io),
            fact(format!("threads: {} ready", or_unknown(kernel.runnable, |n| n.to_string()))),
            fact(format!("{} blocked", or_unknown(kernel.blocked, |n| n.to_string()))),
        ],
        vec![
            fact(format!(
                "interrupts {}/s (net {}, disk {})",
                or_unknown(interrupts.all_per_s, compact),
                or_unknown(interrupts.network_per_s, compact),
                or_unknown(interrupts.disk_per_s, compact)
            )),
            rate("switches", kernel.context_switches_per_s),
            rate("forks", kernel.forks_per_s),
        ],
    ]
}

/// Distributes items without columns over at most `most` indented lines.
fn indented(facts: &[Span<'static>], width: usize, most: usize) -> Vec<Line<'static>> {
    let mut lines = wrap_items(facts, "   ", width.saturating_sub(3), most);
    for line in &mut lines {
        line.spans.insert(0, Span::raw("  "));
    }
    lines
}
