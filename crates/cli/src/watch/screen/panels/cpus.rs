//! The panel of CPUs. Each CPU has a bar on a line of its own, a small bar or a single character, depending on the
//! number of CPUs.

use super::{Columns, Panel, PanelSize, cells, first_width, plain};
use crate::watch::screen::state::ScreenState;
use crate::watch::screen::style::{Style, or_unknown};
use brimful_core::quantity::{percent, whole_percent};
use brimful_core::server::{Core, CpuShares};
use brimful_monitor::thresholds::STEAL;
use ratatui::style::Color;
use ratatui::text::{Line, Span};

const COLUMNS: Columns<5> = [("busy", 7, 4), ("user", 7, 3), ("system", 8, 2), ("intr", 7, 0), ("steal", 7, 1)];
/// Reciprocal of the fraction of the screen's height that this panel may occupy.
const HEIGHT_PART: usize = 6;
/// Width of a small bar in columns, including the CPU number and the utilization.
const SMALL_BAR_WIDTH: usize = 17;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Makes the panel of CPUs.
pub fn cpus(state: &ScreenState, PanelSize { width, height }: PanelSize) -> Option<Panel> {
    let kernel = state.kernel()?;
    let cores = &kernel.cores;
    let style = state.style;
    let mut panel = Panel::new("CPUs  █ user ▓ system ▒ interrupts ░ steal", &COLUMNS, width, style);
    let room = height / HEIGHT_PART;
    let has_line_for_each = (1..=room).contains(&cores.len());
    if has_line_for_each {
        panel.rows.extend(cores.iter().map(|core| row(&core.cpu.to_string(), &core.shares, width, style)));
        return Some(panel);
    }
    panel.rows.extend(kernel.cpu.map(|shares| row("all", &shares, width, style)));
    let per_line = (width.saturating_sub(2) / SMALL_BAR_WIDTH).max(1);
    let small_bars = cores.len().div_ceil(per_line) < room;
    let per_line = match (small_bars, width) {
        (true, _) => per_line,
        (false, 140..) => 128,
        (false, _) => 64.min(width.saturating_sub(8)).max(1),
    };
    panel.rows.extend(cores.chunks(per_line).map(|cores| match small_bars {
        true => {
            [Span::raw("  ")].into_iter().chain(cores.iter().flat_map(|core| small(core, style))).collect::<Line<'_>>()
        }
        false => {
            let number = cores.first().map_or(0, |core| core.cpu);
            let number = Span::styled(format!("  {number:>4} "), style.dim());
            [number].into_iter().chain(cores.iter().map(|core| sign(&core.shares, style))).collect()
        }
    }));
    Some(panel)
}

fn row(name: &str, shares: &CpuShares, width: usize, style: Style) -> Line<'static> {
    let mut start = vec![Span::raw(format!("  {name:<4}"))];
    start.extend(bar(first_width(&COLUMNS, width).saturating_sub(6), shares, style));
    let texts = [
        (percent(busy(shares)), style.utilization(busy(shares))),
        plain(percent(shares.user)),
        plain(percent(shares.system)),
        plain(or_unknown(shares.interrupt, percent)),
        (percent(shares.steal), style.by_threshold(STEAL, shares.steal)),
    ];
    start.into_iter().chain(cells(&COLUMNS, width, texts)).collect()
}

fn small(core: &Core, style: Style) -> Vec<Span<'static>> {
    let mut spans = vec![Span::styled(format!("{:>3} ", core.cpu), style.dim())];
    spans.extend(bar(SMALL_BAR_WIDTH - 11, &core.shares, style));
    spans.push(Span::styled(
        format!(" {:>5} ", whole_percent(busy(&core.shares))),
        style.utilization(busy(&core.shares)),
    ));
    spans
}

fn sign(shares: &CpuShares, style: Style) -> Span<'static> {
    let level = (busy(shares) * LEVELS.len() as f64) as usize;
    Span::styled(LEVELS[level.min(LEVELS.len() - 1)].to_string(), style.utilization(busy(shares)))
}

fn bar(width: usize, shares: &CpuShares, style: Style) -> Vec<Span<'static>> {
    let interrupt = shares.interrupt.unwrap_or_default();
    let parts = [
        (shares.user, '█', Color::Green),
        (shares.system - interrupt, '▓', Color::Yellow),
        (interrupt, '▒', Color::Magenta),
        (shares.steal, '░', Color::Red),
    ];
    style.bar(width, &parts)
}

fn busy(shares: &CpuShares) -> f64 {
    shares.user + shares.system
}
