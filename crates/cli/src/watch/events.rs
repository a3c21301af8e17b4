//! Events that the loop of a watch waits for besides time: signals, load generators on other hosts, and keys. All
//! events come through one channel, so that the loop sleeps until an event arrives.

use crate::progress;
use brimful_core::Nanos;
use ratatui::crossterm::event;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// An event that the loop of a watch handles.
#[derive(Debug)]
pub enum Event {
    /// The process received SIGINT (Ctrl-C) or SIGTERM.
    Stop,
    /// A key was pressed, or the terminal changed its size.
    Terminal(event::Event),
    /// A load generator on another host connected or disconnected. The message names it.
    Client(String),
}

/// Whether the loop of a watch continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The loop continues.
    Continue,
    /// The loop ends, because the user has quit or stdout is closed.
    Quit,
}

/// The channel through which the loop of a watch receives events.
pub struct Events {
    receiver: Receiver<Event>,
    sender: Sender<Event>,
}

impl Events {
    /// Makes a channel that receives signals.
    pub fn from_signals() -> anyhow::Result<Events> {
        use signal_hook::consts::SIGHUP;
        let (sender, receiver) = channel();
        let stop = sender.clone();
        // If the terminal closes, the watch ends like after Ctrl-C. Without a terminal, as with nohup, SIGHUP is not
        // handled.
        let hang_up: &[i32] = if std::io::IsTerminal::is_terminal(&std::io::stdout()) { &[SIGHUP] } else { &[] };
        let mut before = false;
        progress::handle_stop_signals(hang_up, move || {
            if std::mem::replace(&mut before, true) {
                // A second Ctrl-C may end the process before the loop restores the terminal, so the terminal is
                // restored here.
                ratatui::restore();
            }
            // Sending fails if the loop has ended.
            let _ = stop.send(Event::Stop);
        })?;
        Ok(Events { receiver, sender })
    }

    /// Lets the channel receive key presses and size changes of the terminal, too.
    pub fn add_terminal(&mut self) -> anyhow::Result<()> {
        let sender = self.sender.clone();
        let read = move || {
            while let Ok(event) = event::read() {
                if sender.send(Event::Terminal(event)).is_err() {
                    return;
                }
            }
            // Reading fails if the terminal is closed, and the loop of the watch then ends.
            let _ = sender.send(Event::Stop);
        };
        std::thread::Builder::new().name("keys".to_owned()).spawn(read)?;
        Ok(())
    }

    /// Returns a function that sends a message about a load generator on another host to this event loop. It can be
    /// called from any thread.
    pub fn client_sender(&self) -> impl Fn(String) + Send + Sync + 'static {
        let sender = self.sender.clone();
        // Sending fails if the loop has ended.
        move |news| drop(sender.send(Event::Client(news)))
    }

    /// Waits for the next event; `None` if no event occurs within this time.
    pub fn next(&self, within: Nanos) -> Option<Event> {
        self.receiver.recv_timeout(Duration::from(within).min(Duration::from_secs(3600))).ok()
    }
}
