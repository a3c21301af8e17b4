//! What a connection needs of the worker in whose hands it is, and of the server.

use crate::burn::{Sampler, Spinner};
use crate::pages::Pages;
use crate::service::{Distribution, ServiceClass};
use crate::truth::{Ledger, Truth};
use brimful_core::Nanos;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// How much is read at once, in bytes.
const READ: usize = 64 << 10;

/// What is served, and the account of it.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) classes: Vec<ServiceClass>,
    pub(crate) distribution: Distribution,
    pub(crate) pages: Pages,
    /// The workers' accounts, each locked by its worker once per turn and by whoever asks for the truth.
    pub(crate) ledgers: Vec<Mutex<Ledger>>,
    /// When the workers end at the latest; set when they are to stop.
    pub(crate) stop_by: OnceLock<Instant>,
}

/// A worker's own.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) site: Arc<Site>,
    pub(crate) scratch: Box<[u8]>,
    spinner: Spinner,
    sampler: Sampler,
}

impl Site {
    pub(crate) fn truth(&self) -> Truth {
        let ledgers: Vec<Ledger> = self.ledgers.iter().map(|l| lock(l).clone()).collect();
        Ledger::truth(&ledgers, &self.classes, self.distribution)
    }
}

impl Desk {
    /// Call on the thread, and on the CPU, that the worker is to run on.
    pub(crate) fn new(site: Arc<Site>, sampler: Sampler) -> Desk {
        Desk { site, scratch: vec![0; READ].into_boxed_slice(), spinner: Spinner::measure(), sampler }
    }

    /// Burns the demand of one request of a class.
    pub(crate) fn burn(&mut self, class: usize) {
        let mean = self.site.classes[class].demand;
        if mean > Nanos::ZERO {
            self.spinner.burn(self.sampler.draw(mean));
        }
    }

    pub(crate) fn stopping(&self) -> bool {
        self.site.stop_by.get().is_some()
    }
}

/// A panic in a worker is a bug, but not a reason to fail the others as well.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
