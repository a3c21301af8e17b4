//! The live screen: the bottleneck in words, and below it what every group tells, on one page.
//!
//! A frame is a pure function of a [`Picture`]. Whatever ends the watch, a panic or a signal included, the terminal is
//! given back as it was.

mod layout;
mod panels;
mod picture;
mod style;

use super::events::Flow;
use super::options::WatchOptions;
use super::session::Session;
use anyhow::Context;
use picture::Picture;
use ratatui::DefaultTerminal;
use ratatui::backend::Backend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::process::{Signal, getpid, kill_process};

/// The terminal, and what is on it.
pub struct Screen {
    terminal: DefaultTerminal,
    picture: Picture,
    /// To be said once more when the screen is gone.
    notices: Vec<String>,
}

impl Screen {
    pub fn open(options: &WatchOptions) -> anyhow::Result<Screen> {
        // What panics restores the terminal first: so does what drops this.
        let terminal = ratatui::try_init().context("cannot draw on this terminal: use --quiet, or pipe to `cat`")?;
        let mut screen = Screen { terminal, picture: Picture::new(options), notices: Vec::new() };
        screen.draw()?;
        Ok(screen)
    }

    /// Shows the latest figures, unless it stands still.
    pub fn show(&mut self, session: &Session) -> anyhow::Result<()> {
        self.picture.update(session);
        self.draw()
    }

    /// Shows something until there is something else to show.
    pub fn mention(&mut self, news: String) {
        self.picture.tell(news);
    }

    pub fn say(&mut self, notice: String) {
        self.picture.tell(notice.clone());
        self.notices.push(notice);
    }

    pub fn handle(&mut self, event: &Event) -> anyhow::Result<Flow> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                if self.press(key)? == Flow::Leave {
                    return Ok(Flow::Leave);
                }
            }
            Event::Resize(..) => {}
            _ => return Ok(Flow::Stay),
        }
        self.draw().map(|()| Flow::Stay)
    }

    /// Gives the terminal back, and what was said meanwhile.
    pub fn close(mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn press(&mut self, key: &KeyEvent) -> anyhow::Result<Flow> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if control => return Ok(Flow::Leave),
            KeyCode::Char('z') if control => self.stop()?,
            KeyCode::Char('l') if control => self.forget()?,
            KeyCode::Esc if self.picture.help => self.picture.help = false,
            KeyCode::Char('q') | KeyCode::Esc => return Ok(Flow::Leave),
            KeyCode::Char(key) => self.picture.press(key),
            _ => {}
        }
        Ok(Flow::Stay)
    }

    /// What Ctrl-Z does elsewhere: the shell has the terminal until it wants this to go on.
    fn stop(&mut self) -> anyhow::Result<()> {
        ratatui::restore();
        kill_process(getpid(), Signal::TSTP)?;
        self.terminal = ratatui::try_init()?;
        Ok(())
    }

    /// Clears the terminal, so that all of the next frame is drawn. Unlike `Terminal::clear` it asks the terminal nothing:
    /// not all of them answer.
    fn forget(&mut self) -> anyhow::Result<()> {
        self.terminal.backend_mut().clear()?;
        self.terminal.swap_buffers();
        Ok(())
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let Screen { terminal, picture, .. } = self;
        terminal.draw(|frame| layout::draw(frame, picture)).context("cannot draw on the terminal")?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
