//! The layout of a frame of the screen: a title, the bottleneck, the panels in one column or two, and the keys.

use super::panels::{self, MakePanel, Panel, PanelSize};
use super::state::ScreenState;
use super::style::{paragraph, wrap_items};
use brimful_core::Nanos;
use brimful_core::quantity::small_percent;
use brimful_monitor::Severity;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

/// Minimum width of a screen with two columns.
const TWO_COLUMNS_WIDTH: u16 = 150;
/// Minimum height of a panel: a heading and one line. Panels are cut to this height before any is left out.
const MIN_PANEL_HEIGHT: usize = 2;

const HELP: [&str; 16] = [
    "q, Esc, Ctrl-C   quit, and print a summary of the whole time",
    "space            pause the display; sampling continues",
    "k p n c m r      show or hide kernel, process, network, connections, module, …",
    "?                show or hide this help",
    "",
    "CPUs             █ user  ▓ system  ▒ interrupts  ░ stolen by the hypervisor",
    "ready            share of a program's time spent waiting for a free CPU",
    "accept queue     connections that wait to be accepted, and their limit",
    "requests         mean times in the server; client: waiting for clients",
    "sockets          requests at the ports: until they are read, and after",
    "SYN              connection attempts: accepted and dropped",
    "again            retransmitted segments",
    "waits (PSI)      share of time in which something waited for it",
    "–                unknown; the line below the panels says how to get it",
    "",
    "All figures with their sources:  brimful watch --once",
];

/// Draws one frame of the screen.
pub fn draw(frame: &mut Frame<'_>, state: &ScreenState) {
    let area = frame.area();
    let width = usize::from(area.width);
    let findings = findings(state, width, if area.height >= 40 { 4 } else { 2 });
    let footer = footer(state, width);
    let [title_area, findings_area, body, footer_area] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(findings.len() as u16),
        Constraint::Fill(1),
        Constraint::Length(footer.len() as u16),
    ])
    .areas(area);
    frame.render_widget(paragraph(vec![title(state, width)]), title_area);
    frame.render_widget(paragraph(findings), findings_area);
    frame.render_widget(paragraph(footer), footer_area);
    use panels::{cpus, disks, machine, network, ports, programs, requests, sockets};
    if area.width >= TWO_COLUMNS_WIDTH {
        let halves = [Constraint::Fill(1), Constraint::Length(2), Constraint::Fill(1)];
        let [left, _, right] = Layout::horizontal(halves).areas(body);
        column(frame, left, state, &[cpus, programs, disks, machine]);
        column(frame, right, state, &[requests, sockets, ports, network]);
    } else {
        column(frame, body, state, &[cpus, requests, sockets, programs, ports, network, disks, machine]);
    }
    if state.help {
        help(frame, area, state);
    }
}

/// The title: the watched programs and ports on the left, the interval and the monitor's cost on the right.
fn title(state: &ScreenState, width: usize) -> Line<'static> {
    let ScreenState { host, targets, intervals, monitor_cpu_share, .. } = state;
    let right = match state.paused {
        true => "PAUSED (space resumes) ".to_owned(),
        false => {
            format!("{} · {intervals} · costs {} of a CPU ", clock(state.elapsed), small_percent(*monitor_cpu_share))
        }
    };
    let room = width.saturating_sub(right.chars().count());
    let left: String = format!(" brimful watch · {host} · {targets}").chars().take(room).collect();
    Line::styled(format!("{left:<room$}{right}"), state.style.title())
}

fn findings(state: &ScreenState, width: usize, most: usize) -> Vec<Line<'static>> {
    let style = state.style;
    let items: Vec<Span<'static>> = match state.findings.as_slice() {
        [] => vec![Span::styled("the first figures come after one interval", style.dim())],
        findings => findings
            .iter()
            .map(|finding| Span::styled(finding.sentence.clone(), style.severity(finding.severity)))
            .collect(),
    };
    let mut lines: Vec<Line<'static>> = wrap_items(&items, "; ", width.saturating_sub(1), most)
        .into_iter()
        .map(|mut line| {
            line.spans.insert(0, Span::raw(" "));
            line
        })
        .collect();
    // The number of lines is always the same, so that the panels below do not move between frames.
    lines.resize(most.min(2).max(lines.len()), Line::default());
    lines
}

fn footer(state: &ScreenState, width: usize) -> Vec<Line<'static>> {
    let style = state.style;
    let keys = " q quit   space pause   k p n c m groups   ? help";
    let mut lines = Vec::new();
    if let Some(notice) = state.notice() {
        lines.push(Line::styled(format!(" {notice}"), style.severity(Severity::Near)));
    }
    if let Some(hint) = &state.hint {
        lines.push(Line::styled(
            format!(" {}", hint.chars().take(width.saturating_sub(2)).collect::<String>()),
            style.dim(),
        ));
    }
    lines.push(Line::styled(keys, style.dim()));
    lines
}

/// Draws panels one below the other.
fn column(frame: &mut Frame<'_>, area: Rect, state: &ScreenState, panels: &[MakePanel]) {
    let room @ PanelSize { height, .. } = PanelSize { width: area.width.into(), height: area.height.into() };
    let panels: Vec<Panel> = panels.iter().filter_map(|make| make(state, room)).collect();
    let heights = fit(&panels.iter().map(Panel::height).collect::<Vec<_>>(), height);
    let spare = height >= heights.iter().sum::<usize>() + panels.len();
    let mut lines = Vec::with_capacity(height);
    for (panel, height) in panels.into_iter().zip(heights) {
        lines.extend(panel.lines(height, state.style));
        if spare {
            lines.push(Line::default());
        }
    }
    frame.render_widget(paragraph(lines), area);
}

/// Cuts lines from the tallest panels until all panels fit. If that is not enough, leaves out the last panels.
fn fit(heights: &[usize], room: usize) -> Vec<usize> {
    let mut heights = heights.to_vec();
    while heights.iter().sum::<usize>() > room {
        let tallest = heights.iter().rposition(|height| Some(height) == heights.iter().max());
        let last = heights.iter().rposition(|&height| height > 0);
        match (tallest.filter(|&i| heights[i] > MIN_PANEL_HEIGHT), last) {
            (Some(index), _) => heights[index] -= 1,
            (None, Some(index)) => heights[index] = 0,
            (None, None) => break,
        }
    }
    heights
}

fn help(frame: &mut Frame<'_>, area: Rect, state: &ScreenState) {
    let width = HELP.iter().map(|line| line.chars().count()).max().unwrap_or(0) as u16 + 4;
    let area = area.centered(Constraint::Length(width), Constraint::Length(HELP.len() as u16 + 2));
    let text = HELP.map(|line| Line::raw(format!(" {line}"))).to_vec();
    frame.render_widget(Clear, area);
    frame.render_widget(
        Paragraph::new(text).block(Block::bordered().title(" help ").border_style(state.style.heading())),
        area,
    );
}

/// Formats an elapsed time, like `12s`, `2m10s` or `1h02m`.
fn clock(time: Nanos) -> String {
    match time.0 / 1_000_000_000 {
        s if s < 60 => format!("{s}s"),
        s if s < 3600 => format!("{}m{:02}s", s / 60, s % 60),
        s => format!("{}h{:02}m", s / 3600, s / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::fixture;
    use brimful_core::server::Core;
    use brimful_monitor::Rates;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(state: &ScreenState, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let cells = terminal.backend().buffer().content();
        cells.chunks(usize::from(width)).map(|row| row.iter().map(|cell| cell.symbol()).collect()).collect()
    }

    fn state(rates: Rates) -> ScreenState {
        ScreenState::for_test(rates)
    }

    /// Checks that the screen contains the texts `parts` in this order.
    fn shows(screen: &[String], parts: &[&str]) {
        let text = screen.join("\n");
        let mut from = 0;
        for part in parts {
            let found =
                text[from..].find(part).unwrap_or_else(|| panic!("{part:?} is missing, or not in this order:\n{text}"));
            from += found + part.len();
        }
    }

    #[test]
    fn a_small_terminal_shows_everything() {
        let screen = drawn(&state(fixture::busy_rates()), 80, 24);
        shows(
            &screen,
            &[
                "brimful watch · web1 · port 80",
                "2m10s · every 1s · costs 0.12 % of a CPU",
                "CPU 0 is 97 % busy, 88 % of it in the kernel",
                "accept queue 4,096/4,096, 1,210 SYN/s dropped +1",
                "CPUs  █ user",
                "busy   user  system   intr  steal",
                "  0   ████▓▓▓",
                "97.0 % 12.0 %  85.0 %  5.0 %  0.0 %",
                "programs",
                "nginx",
                "42.9 %",
                "php-fpm8.2",
                " –",
                "ports   accept queue",
                "80    ████████",
                "4,096/4,096   5,210    4,000   1,210   1,234  10,000",
                "syn_received 12",
                "eth0",
                "again 12.0/s (0.1 %)",
                "listen overflows 1,210/s",
                "idle: lo",
                "vda",
                "2.10 of 4.12 GB left",
                "waits: CPU 45.0 %",
                "switches 12,345/s",
                "q quit   space pause   k p n c m groups   ? help",
            ],
        );
    }

    #[test]
    fn foreign_control_characters_are_escaped() {
        let mut rates = fixture::busy_rates();
        if let Some(process) = &mut rates.process {
            process.metrics.process[0].name = "\x1b[2J\u{202e}x".to_owned();
        }
        if let Some(network) = &mut rates.network {
            let eth0 = network.metrics.interfaces.remove("eth0").unwrap();
            network.metrics.interfaces.insert("\u{9b}e".to_owned(), eth0);
        }
        let mut state = state(rates);
        state.set_notice("a process \x1b[2J\u{202e} is running now".to_owned());
        let screen = drawn(&state, 80, 24);
        shows(&screen, &[r"  \u001b[2J\u20 ", r"  \u009be", r"a process \u001b[2J\u202e is"]);
        let text = screen.concat();
        assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{screen:#?}");
    }

    #[test]
    fn a_wide_terminal_has_two_columns() {
        let screen = drawn(&state(fixture::busy_rates()), 200, 50);
        let line = screen.iter().find(|line| line.contains("CPUs")).unwrap();
        assert!(line.contains("ports   accept queue"), "{line}");
        shows(&screen, &["CPUs", "programs", "disks", "memory, waits"]);
        shows(&screen, &["ports", "network", "TCP in"]);
    }

    #[test]
    fn requests_have_a_line_for_each_class_that_had_any() {
        let shown = [
            "requests",
            "req/s",
            "process",
            "p99",
            "nginx/1.22.1   1.85 of 2 workers busy   31 in progress",
            "under-5k",
            "3,900",
            "95.0 µs",
            "475 µs",
            "123 µs",
            "12.0",
            "images",
            "100",
            "sockets",
            "service",
            "port 80   4,066/s   0.53 in progress   1.6 % open   20.0 % sampled",
            "5k-50k",
            "20.0 µs",
            "110 µs",
        ];
        let screen = drawn(&state(fixture::busy_rates_with_module()), 80, 40);
        shows(&screen, &shown);
        assert!(!screen.concat().contains("other"), "{screen:#?}");
        let mut hidden = state(fixture::busy_rates_with_module());
        hidden.handle_key('m');
        assert!(!drawn(&hidden, 80, 40).concat().contains("under-5k"));
        hidden.handle_key('r');
        assert!(!drawn(&hidden, 80, 40).concat().contains("5k-50k"));
    }

    #[test]
    fn tiny_terminals_count_the_lines_that_are_left_out() {
        let mut rates = fixture::busy_rates();
        let process = rates.process.as_mut().unwrap();
        process.metrics.process = vec![process.metrics.process[0].clone(); 30];
        let state = state(rates);
        for (width, height) in [(1, 1), (10, 3), (40, 10), (80, 24), (149, 24), (150, 8), (300, 100)] {
            drawn(&state, width, height);
        }
        shows(&drawn(&state, 80, 24), &["programs", "nginx", "… ", " more lines", "network", "memory"]);
    }

    #[test]
    fn small_terminals_drop_columns_and_lines_but_keep_names_and_figures() {
        let narrow = drawn(&state(fixture::busy_rates()), 60, 24);
        shows(&narrow, &["busy", "97.0 %", "programs", "procs", "cores", "  nginx ", "0.97", "  php-fpm8.2 "]);
        shows(&narrow, &["queue/limit", "drop/s", "  80 ", "4,096/4,096", "1,210", "in MB/s", "  eth0 ", "1.90"]);
        assert!(!narrow.concat().contains("switch/s"), "{narrow:#?}");
        let low = drawn(&state(fixture::busy_rates()), 80, 15);
        shows(
            &low,
            &["CPUs", "83.5 %", "programs +1", "nginx", "0.97", "ports", "4,096/4,096", "network", "eth0", "1.90"],
        );
        assert!(!low.concat().contains("more lines"), "{low:#?}");
        for (row, screen) in [(&narrow, 60), (&low, 80)] {
            assert!(row.iter().all(|line| line.chars().count() == screen), "{row:#?}");
        }
    }

    #[test]
    fn many_cpus_become_small_bars_and_then_signs() {
        let with = |cpus: usize, height: u16| {
            let mut rates = fixture::busy_rates();
            let kernel = &mut rates.kernel.as_mut().unwrap().metrics;
            let shares = kernel.cores[0].shares;
            kernel.cores = (0..cpus).map(|cpu| Core { cpu, shares }).collect();
            drawn(&state(rates), 80, height)
        };
        shows(&with(3, 24), &["  2   ████"]);
        shows(&with(8, 24), &["  all ", "  0 █▓▓▓▓▓  97 %   1 █▓", "  7 █▓▓▓▓▓  97 %"]);
        shows(&with(256, 32), &["  all ", "   0 ████████████████", "  192 ██████"]);
    }

    #[test]
    fn shares_are_spelled_with_a_space_before_the_percent_sign() {
        let mut many = fixture::busy_rates();
        if let Some(kernel) = &mut many.kernel {
            kernel.metrics.cores = vec![kernel.metrics.cores[0]; 8];
        }
        for (rates, width) in
            [(fixture::busy_rates(), 60), (fixture::busy_rates(), 80), (fixture::busy_rates(), 200), (many, 80)]
        {
            let screen = drawn(&state(rates), width, 50);
            let shares = screen.iter().flat_map(|line| line.match_indices('%').map(|(at, _)| &line[..at]));
            let shares: Vec<&str> = shares.collect();
            let spelled =
                |before: &&str| before.strip_suffix(' ').is_some_and(|s| s.ends_with(|c: char| c.is_ascii_digit()));
            assert!(shares.len() > 10 && shares.iter().all(spelled), "{screen:#?}");
        }
    }

    #[test]
    fn groups_can_be_hidden_and_the_keys_explained() {
        let mut state = state(fixture::busy_rates());
        "kpn?".chars().for_each(|key| state.handle_key(key));
        let screen = drawn(&state, 100, 30);
        shows(&screen, &["ports   accept queue", " help ", "show or hide kernel, process"]);
        let text = screen.concat();
        assert!(
            !text.contains("CPUs  █ user ▓ system ▒") && !text.contains("php-fpm") && !text.contains("eth0"),
            "{text}"
        );
        "k? ".chars().for_each(|key| state.handle_key(key));
        shows(&drawn(&state, 100, 30), &["PAUSED", "CPUs", "ports"]);
    }

    #[test]
    fn notices_are_shown_before_the_first_figures() {
        let mut state = state(Rates::default());
        state.set_notice("cannot write a/b".to_owned());
        state.hint = Some("no cpu: mount /proc".to_owned());
        let screen = drawn(&state, 80, 24);
        shows(
            &screen,
            &["the first figures come after one interval", "cannot write a/b", "no cpu: mount /proc", "q quit"],
        );
    }

    #[test]
    fn the_tallest_panels_are_cut_first() {
        assert_eq!(fit(&[3, 10, 4], 17), [3, 10, 4]);
        assert_eq!(fit(&[3, 10, 4], 10), [3, 4, 3]);
        assert_eq!(fit(&[3, 10, 4], 5), [2, 2, 0]);
        assert_eq!(fit(&[3, 10], 0), [0, 0]);
        assert_eq!([59, 130, 3725].map(|s| clock(Nanos::from_secs(s))), ["59s", "2m10s", "1h02m"]);
    }
}
