//! The colours of the screen (bold and dim text if colours are off), and the layout of values in columns.

use crate::watch::lines::UNKNOWN_MARK;
use brimful_core::text::one_line;
use brimful_monitor::Severity;
use brimful_monitor::thresholds::{BUSY_SHARE, Thresholds};
use ratatui::style::{Color, Modifier, Style as TextStyle};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use std::borrow::Cow;

/// The style of the screen, with or without colours.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    colours: bool,
}

impl Style {
    /// The style for this environment: without colours if `NO_COLOR` is set (no-color.org).
    pub fn from_environment() -> Style {
        Style { colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }

    /// The style without colours.
    #[cfg(test)]
    pub fn plain() -> Style {
        Style { colours: false }
    }

    /// The text style of the screen's title.
    pub fn title(self) -> TextStyle {
        TextStyle::new().add_modifier(Modifier::REVERSED)
    }

    /// The text style of a panel's heading.
    pub fn heading(self) -> TextStyle {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// The text style of less important text.
    pub fn dim(self) -> TextStyle {
        TextStyle::new().add_modifier(Modifier::DIM)
    }

    /// The text style of a finding with this severity.
    pub fn severity(self, severity: Severity) -> TextStyle {
        match severity {
            Severity::Fine => self.coloured(Color::Green),
            Severity::Near => self.coloured(Color::Yellow).add_modifier(Modifier::BOLD),
            Severity::Limit => self.coloured(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    /// The text style of a utilization: plain if the utilization is far below 1.
    pub fn utilization(self, share: f64) -> TextStyle {
        self.by_threshold(BUSY_SHARE, share)
    }

    /// The text style of a value that is compared with thresholds. It is the style of a finding of the same severity.
    pub fn by_threshold(self, thresholds: Thresholds, value: f64) -> TextStyle {
        thresholds.severity_of(value).map_or(TextStyle::new(), |severity| self.severity(severity))
    }

    /// The text style of a rate of losses: plain for zero, and for any other rate the style of a value above its limit.
    pub fn loss(self, per_s: f64) -> TextStyle {
        if per_s > 0.0 { self.severity(Severity::Limit) } else { TextStyle::new() }
    }

    /// A bar that consists of several parts. Each part has its fraction of the bar's width, its character and its
    /// colour.
    pub fn bar(self, width: usize, parts: &[(f64, char, Color)]) -> Vec<Span<'static>> {
        let mut spans = Vec::new();
        let mut end = 0;
        let mut share = 0.0;
        for &(part, sign, colour) in parts {
            share += part;
            let next = ((share * width as f64).round() as usize).clamp(end, width);
            spans.push(Span::styled(sign.to_string().repeat(next - end), self.coloured(colour)));
            end = next;
        }
        spans.push(Span::styled("·".repeat(width - end), self.dim()));
        spans
    }

    fn coloured(self, colour: Color) -> TextStyle {
        if self.colours { TextStyle::new().fg(colour) } else { TextStyle::new() }
    }
}

/// Distributes items over at most `most` lines. If not all items fit, the last line has the number of missing items.
pub fn wrap_items(items: &[Span<'static>], separator: &'static str, width: usize, most: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let room = lines.last().is_some_and(|line| line.width() + separator.chars().count() + item.width() <= width);
        let more = lines.len() < most;
        match lines.last_mut() {
            Some(line) if room => line.extend([Span::raw(separator), item.clone()]),
            _ if more => lines.push(Line::from(item.clone())),
            Some(line) => {
                let rest = format!(" +{}", items.len() - i);
                if line.width() + rest.len() <= width {
                    line.push_span(Span::raw(rest));
                }
                break;
            }
            None => break,
        }
    }
    lines
}

/// Makes a paragraph and escapes its control characters. The text may contain names that other users chose, such as
/// those of their processes.
pub fn paragraph(mut lines: Vec<Line<'static>>) -> Paragraph<'static> {
    for span in lines.iter_mut().flat_map(|line| &mut line.spans) {
        if let Cow::Owned(shown) = one_line(&span.content) {
            span.content = Cow::Owned(shown);
        }
    }
    Paragraph::new(lines)
}

/// A right-aligned cell of a column.
pub fn cell(text: &str, width: usize, style: TextStyle) -> Span<'static> {
    Span::styled(format!(" {text:>0$}", width - 1), style)
}

/// The text of a value, or a placeholder if the value is unknown.
pub fn or_unknown<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or(UNKNOWN_MARK.to_owned(), show)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_exceeds_its_width() {
        let bar = |parts: &[f64]| {
            let parts: Vec<_> =
                parts.iter().zip(['#', '=', '-']).map(|(&part, sign)| (part, sign, Color::Red)).collect();
            Style::plain().bar(10, &parts).iter().map(|span| span.content.to_string()).collect::<String>()
        };
        assert_eq!(bar(&[0.3, 0.2]), "###==·····");
        assert_eq!(bar(&[0.04, 0.04, 0.04]), "=·········", "parts smaller than a character add up");
        assert_eq!(bar(&[0.7, 0.7, 0.7]), "#######===");
        assert_eq!(bar(&[]), "··········");
    }

    #[test]
    fn items_that_do_not_fit_are_counted() {
        let items: Vec<Span<'static>> = ["one", "two", "three", "four"].map(Span::raw).to_vec();
        let lines = |width, most| -> Vec<String> {
            wrap_items(&items, "; ", width, most).iter().map(ToString::to_string).collect()
        };
        assert_eq!(lines(80, 2), ["one; two; three; four"]);
        assert_eq!(lines(8, 3), ["one; two", "three", "four"]);
        assert_eq!(lines(10, 1), ["one; two +2".get(..8).unwrap()]);
        assert_eq!(lines(11, 1), ["one; two +2"]);
    }
}
