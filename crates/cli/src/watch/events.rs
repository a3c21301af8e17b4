//! What the loop waits for besides time: signals, load generators on other hosts, and on a screen the terminal's events. They come through one channel, so
//! that the loop sleeps until there is something to do.

use crate::progress;
use brimful_core::Nanos;
use ratatui::crossterm::event;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Something happened.
#[derive(Debug)]
pub enum Event {
    /// Ctrl-C, or a request to terminate.
    Stop,
    /// A key was pressed, or the terminal changed its size.
    Terminal(event::Event),
    /// A load generator on another host came or went.
    Client(String),
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// More of it.
    Stay,
    /// The end: the user wants it, or nobody reads any more.
    Leave,
}

/// Where they come from.
pub struct Events {
    receiver: Receiver<Event>,
    sender: Sender<Event>,
}

impl Events {
    /// Signals.
    pub fn of_signals() -> anyhow::Result<Events> {
        use signal_hook::consts::SIGHUP;
        let (sender, receiver) = channel();
        let stop = sender.clone();
        // A terminal that is closed ends the watch as Ctrl-C does. Without one, as under nohup, nobody hangs up.
        let hang_up: &[i32] = if std::io::IsTerminal::is_terminal(&std::io::stdout()) { &[SIGHUP] } else { &[] };
        let mut before = false;
        progress::on_stop(hang_up, move || {
            if std::mem::replace(&mut before, true) {
                // The process may end here, whatever the loop is at.
                ratatui::restore();
            }
            // Fails when the loop has ended.
            let _ = stop.send(Event::Stop);
        })?;
        Ok(Events { receiver, sender })
    }

    /// The terminal's as well, from now on.
    pub fn of_terminal(&mut self) -> anyhow::Result<()> {
        let sender = self.sender.clone();
        let read = move || {
            while let Ok(event) = event::read() {
                if sender.send(Event::Terminal(event)).is_err() {
                    return;
                }
            }
            // The terminal is gone.
            let _ = sender.send(Event::Stop);
        };
        std::thread::Builder::new().name("keys".to_owned()).spawn(read)?;
        Ok(())
    }

    /// Takes what is said of load generators on other hosts.
    pub fn of_clients(&self) -> impl Fn(String) + Send + Sync + 'static {
        let sender = self.sender.clone();
        // Fails when the loop has ended.
        move |news| drop(sender.send(Event::Client(news)))
    }

    /// The next event, if one comes within this time.
    pub fn next(&self, within: Nanos) -> Option<Event> {
        self.receiver.recv_timeout(Duration::from(within).min(Duration::from_secs(3600))).ok()
    }
}
