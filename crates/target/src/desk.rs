//! What a connection needs of the worker in whose hands it is, and of the server.

use crate::burn::{Sampler, Spinner};
use crate::disk::{Buffer, Disk};
use crate::limiter::Limiter;
use crate::pages::Pages;
use crate::pool::Pool;
use crate::service::{Distribution, ServiceClass, Step};
use crate::truth::{Ledger, Truth};
use crate::work::Walker;
use brimful_core::Nanos;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How much is read at once, in bytes.
const READ: usize = 64 << 10;
/// How long a request sleeps before it looks whether the server has stopped.
const NAP: Duration = Duration::from_millis(200);

/// What is served, and the account of it.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) classes: Vec<ServiceClass>,
    pub(crate) distribution: Distribution,
    pub(crate) pages: Pages,
    /// Only where one was asked for.
    pub(crate) pool: Option<Pool>,
    /// Only where one was asked for.
    pub(crate) limiter: Option<Limiter>,
    /// What lock steps hold.
    pub(crate) lock: Mutex<()>,
    /// Only where a class reads.
    pub(crate) disk: Option<Disk>,
    /// Only where a class has work to do: the amount, and the buffer.
    pub(crate) walker: Option<Walker>,
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
    walker: Option<Walker>,
    sampler: Sampler,
    buffer: Buffer,
}

impl Site {
    pub(crate) fn truth(&self) -> Truth {
        let ledgers: Vec<Ledger> = self.ledgers.iter().map(|l| lock(l).clone()).collect();
        let pool = self.pool.as_ref().map(Pool::truth);
        Truth { pool, ..Ledger::truth(&ledgers, &self.classes, self.distribution) }
    }

    /// Whether the time is over in which a server that stops still answers.
    pub(crate) fn is_over(&self) -> bool {
        self.stop_by.get().is_some_and(|&by| Instant::now() > by)
    }
}

impl Desk {
    /// Call on the thread, and on the CPU, that the worker is to run on.
    pub(crate) fn new(site: Arc<Site>, mut sampler: Sampler) -> Desk {
        let walker = site.walker.as_ref().map(|walker| walker.starting_at(sampler.place()));
        let scratch = vec![0; READ].into_boxed_slice();
        Desk { site, scratch, spinner: Spinner::measure(), walker, sampler, buffer: Buffer::default() }
    }

    /// Whether a request that is there now is to be served.
    pub(crate) fn admits(&self) -> bool {
        self.site.limiter.as_ref().is_none_or(|limiter| limiter.admits(Instant::now()))
    }

    /// Does what a request of this class does before it is answered. False if it is not to be answered: the disk
    /// failed, or the server has stopped.
    pub(crate) fn serve(&mut self, class: usize) -> bool {
        let site = Arc::clone(&self.site);
        let _place = site.pool.as_ref().map(Pool::take);
        site.classes[class].steps.iter().all(|step| !site.is_over() && self.step(*step, &site))
    }

    fn step(&mut self, step: Step, site: &Site) -> bool {
        match step {
            Step::Cpu(mean) => self.burn(mean),
            Step::Work(mean) => {
                let amount = self.sampler.draw(mean);
                if let Some(walker) = &mut self.walker {
                    walker.work(amount);
                }
            }
            Step::Lock(mean) => {
                let _held = lock(&site.lock);
                self.burn(mean);
            }
            Step::Sleep(mean) => return self.sleep(mean, site),
            Step::Read(size) => {
                let place = self.sampler.place();
                return site.disk.as_ref().is_some_and(|disk| disk.read(size, place, &mut self.buffer).is_ok());
            }
        }
        true
    }

    /// False if the server stopped meanwhile.
    fn sleep(&mut self, mean: Nanos, site: &Site) -> bool {
        let asked = Duration::from(self.sampler.draw(mean));
        let begun = Instant::now();
        let mut left = asked;
        while !left.is_zero() && !site.is_over() {
            thread::sleep(left.min(NAP));
            left = asked.saturating_sub(begun.elapsed());
        }
        left.is_zero()
    }

    fn burn(&mut self, mean: Nanos) {
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
