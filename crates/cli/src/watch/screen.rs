//! The live screen of a watch: a sentence about the bottleneck, and the metrics of every group below it, on one page.
//!
//! A frame depends only on a [`ScreenState`]. The terminal is restored however the watch ends, even if it ends by a
//! panic or a signal.

mod layout;
mod panels;
mod state;
mod style;

use super::events::Flow;
use super::options::WatchOptions;
use super::session::Session;
use anyhow::Context;
use ratatui::DefaultTerminal;
use ratatui::backend::Backend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::process::{Signal, getpid, kill_process};
use state::ScreenState;

/// The terminal and its content.
pub struct Screen {
    terminal: DefaultTerminal,
    state: ScreenState,
    /// Messages to print again after the screen is closed.
    notices: Vec<String>,
}

impl Screen {
    /// Switches the terminal to the screen, and draws the first frame.
    pub fn open(options: &WatchOptions) -> anyhow::Result<Screen> {
        // After a panic, a hook of ratatui restores the terminal. In all other cases, `drop` restores it.
        let terminal = ratatui::try_init().context("cannot draw on this terminal: use --quiet, or pipe to `cat`")?;
        let mut screen = Screen { terminal, state: ScreenState::new(options), notices: Vec::new() };
        screen.draw()?;
        Ok(screen)
    }

    /// Shows the latest metrics, unless the screen is paused.
    pub fn show(&mut self, session: &Session) -> anyhow::Result<()> {
        self.state.update(session);
        self.draw()
    }

    /// Shows a message until the next message.
    pub fn show_status(&mut self, status: String) {
        self.state.set_notice(status);
    }

    /// Shows a message for some time. It is printed again after the screen is closed.
    pub fn show_notice(&mut self, notice: String) {
        self.state.set_notice(notice.clone());
        self.notices.push(notice);
    }

    /// Handles a key press or a change of the terminal's size.
    pub fn handle(&mut self, event: &Event) -> anyhow::Result<Flow> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                if self.press(key)? == Flow::Quit {
                    return Ok(Flow::Quit);
                }
            }
            Event::Resize(..) => {}
            _ => return Ok(Flow::Continue),
        }
        self.draw().map(|()| Flow::Continue)
    }

    /// Restores the terminal. Returns the messages to print again.
    pub fn close(mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn press(&mut self, key: &KeyEvent) -> anyhow::Result<Flow> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if control => return Ok(Flow::Quit),
            KeyCode::Char('z') if control => self.suspend()?,
            KeyCode::Char('l') if control => self.clear()?,
            KeyCode::Esc if self.state.help => self.state.help = false,
            KeyCode::Char('q') | KeyCode::Esc => return Ok(Flow::Quit),
            KeyCode::Char(key) => self.state.handle_key(key),
            _ => {}
        }
        Ok(Flow::Continue)
    }

    /// Suspends the process, as Ctrl-Z usually does. The shell uses the terminal until the process continues.
    fn suspend(&mut self) -> anyhow::Result<()> {
        ratatui::restore();
        kill_process(getpid(), Signal::TSTP)?;
        self.terminal = ratatui::try_init()?;
        Ok(())
    }

    /// Clears the terminal, so that the next frame is drawn completely. Unlike `Terminal::clear`, this method sends no
    /// query, which some terminals do not answer.
    fn clear(&mut self) -> anyhow::Result<()> {
        self.terminal.backend_mut().clear()?;
        self.terminal.swap_buffers();
        Ok(())
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let Screen { terminal, state, .. } = self;
        terminal.draw(|frame| layout::draw(frame, state)).context("cannot draw on the terminal")?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
