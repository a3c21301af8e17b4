//! The live display of a watch: a full screen, one line per interval, or nothing.

use super::events::{Events, Flow};
use super::lines::Lines;
use super::options::{View, WatchOptions};
use super::screen::Screen;
use super::session::Session;
use crate::output::print_note;
use ratatui::crossterm::event;

/// The display of a watch.
pub enum Display {
    Screen(Box<Screen>),
    Lines(Lines),
    Hidden,
}

impl Display {
    /// Opens the display that the options select. A screen sends key presses to `events`.
    pub fn open(options: &WatchOptions, events: &mut Events) -> anyhow::Result<Display> {
        Ok(match options.view {
            View::Screen => {
                let screen = Screen::open(options)?;
                events.add_terminal()?;
                Display::Screen(Box::new(screen))
            }
            View::Lines => Display::Lines(Lines::new(options)),
            View::Hidden => Display::Hidden,
        })
    }

    /// Shows the latest metrics.
    pub fn show(&mut self, session: &Session) -> anyhow::Result<Flow> {
        match self {
            Display::Screen(screen) => screen.show(session).map(|()| Flow::Continue),
            Display::Lines(lines) => lines.show(session),
            Display::Hidden => Ok(Flow::Continue),
        }
    }

    /// Handles a key press or a change of the terminal's size.
    pub fn handle(&mut self, event: &event::Event) -> anyhow::Result<Flow> {
        match self {
            Display::Screen(screen) => screen.handle(event),
            _ => Ok(Flow::Continue),
        }
    }

    /// Reports a problem to the user. Without a screen, the message is printed at once. A screen shows the message, and
    /// it is printed after the screen is closed.
    pub fn show_notice(&mut self, notice: String) {
        match self {
            Display::Screen(screen) => screen.show_notice(notice),
            _ => print_note(&notice),
        }
    }

    /// Shows a message that the next message replaces.
    pub fn show_status(&mut self, status: String) {
        match self {
            Display::Screen(screen) => screen.show_status(status),
            _ => print_note(&status),
        }
    }

    /// Ends the display and restores the terminal. Returns the messages to print afterwards.
    pub fn close(self) -> Vec<String> {
        match self {
            Display::Screen(screen) => screen.close(),
            _ => Vec::new(),
        }
    }
}
