//! Calibration: an interleaved block design. First short slices by more and more clients find how many leave the server
//! no rest. Then every block visits the same places in an order of its own: the mix at several levels, slices by few and
//! many clients, and each class alone. So the drift of a host falls on all places alike, and how blocks differ says how
//! far the whole can be trusted. Between loads the server rests, such that its mean load stays below what is allowed.

use crate::found::Halt;
use crate::level::{self, About, Trial};
use crate::method::{Method, Step, with_load};
use crate::predictions::times;
use brimful_core::moments::{Moments, mean};
use brimful_core::quantity::{self, signed_percent};
use brimful_core::record::{Reason, ReasonCode};
use brimful_core::survey::Level;
use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, Rate};
use brimful_estimate::{Block, Piece, Place, ServerFacts, ServerFit, Unmatched};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

/// Levels of the mix, in hundredths of the capacity.
const LEVELS: [u32; 4] = [10, 20, 40, 60];
/// Length of a piece at a level, and of a slice by clients, over that of a level of the survey.
const PIECE: f64 = 0.1;
const SLICE: f64 = 0.05;
/// A piece is no shorter, not counting its beginning: after a rest a host takes some tenths of a second to reach the
/// speed that it keeps under load. That is this share of a level of the survey, and no more than a second.
const SHORTEST: Nanos = Nanos::from_millis(200);
const WARM_UP: f64 = 0.075;
const LONGEST_WARM_UP: Nanos = Nanos::from_secs(1);
/// A slice has at least so many calls per client, and a piece at a level so many calls, as far as it may last.
const CALLS: f64 = 12.0;
const LONGEST_SLICE: Nanos = Nanos::from_secs(1);
/// The most clients per server CPU: as many as a server in demand has to do with.
pub(crate) const MOST_CLIENTS: u64 = 32;
/// The ladder of clients is gone up again while the server gets faster by more than this from one time to the next, as
/// it does while a compiler or a cache warms up.
const WARMING: f64 = 0.08;
const LADDERS: usize = 3;
/// Twice as many clients that get no more done than this many times as much have filled something; one look at each is
/// no more exact than this.
const FILLED: f64 = 1.25;
/// A server that keeps its CPUs this busy over all blocks has filled them, whatever that one look said.
const BUSY: f64 = 0.97;
/// From this share of what this client can offer on, what many clients get done may be its limit.
const NEAR_CLIENT_MAX: f64 = 0.95;
/// The server has changed when its speed has a trend over the blocks that comes to this share and is that many times its
/// standard error.
const CHANGED: f64 = 0.15;
const SIGNIFICANT: f64 = 4.0;
/// A server that is this busy without us has other clients.
const OTHERS: f64 = 0.02;
/// How many times as long as a slice an anchor lasts.
const ANCHOR: f64 = 2.5;
/// Blocks at least and at most, and how well the capacity is to be known: half of its 95 % interval.
pub(crate) const BLOCKS: (usize, usize) = (6, 7);
const KNOWN: f64 = 0.02;
/// From this share of failed calls on, calibration is about failing and not about serving.
const FAILED: f64 = 0.01;

/// What is known of the server before the blocks.
pub(crate) struct Capacity {
    /// Calls of the mix per second: what was seen, or where nothing was full, what more clients would get done at the same
    /// cost.
    pub rate: f64,
    /// The most clients of a slice.
    pub clients: u64,
    /// Whether more of them would get no more done.
    pub filled: bool,
    /// Share of the server's CPUs that they keep busy, if that is seen.
    pub busy: Option<f64>,
    /// Share of the server's CPUs that anything keeps busy then.
    pub in_use: Option<f64>,
}

/// A piece that was measured, with all that is shown of it.
struct Measured {
    piece: Piece,
    level: Level,
    /// Of the server.
    processes: u64,
}

impl Method<'_> {
    /// Calibrates and fits. `cost` is CPU seconds of a call at a first look, `idle_busy` the busy CPUs without calls.
    pub(crate) fn calibrate(&mut self, first_rate: f64, idle_busy: f64) -> Result<ServerFit, Halt> {
        let mix = self.setup.workload.clone();
        if idle_busy > OTHERS * f64::from(self.setup.servers()) {
            self.note(format!(
                "the server is busy for {} of the time without us: others use it meanwhile, and what they need is taken for \
                 what they always need",
                quantity::percent(idle_busy / f64::from(self.setup.servers()))
            ));
        }
        let capacity = self.climb(&mix, first_rate)?;
        let design = design(&mix, &capacity);
        let mut rng = Pcg64::seed_from_u64(self.setup.seed);
        let mut blocks: Vec<Block> = Vec::new();
        let (mut rates, mut processes): (Vec<f64>, Vec<u64>) = (Vec::new(), Vec::new());
        for number in 0..BLOCKS.1 {
            if number >= BLOCKS.0 && is_known(&rates) {
                break;
            }
            let mut places = design.clone();
            places.shuffle(&mut rng);
            let lasts = places
                .iter()
                .map(|place| self.lasts_with_rest(&mix, *place, &capacity))
                .fold(Nanos::ZERO, |a, b| a + b);
            self.begin(format!("calibration, block {} of {} to {}", number + 1, BLOCKS.0, BLOCKS.1), lasts);
            let mut block = Block::new();
            for place in places {
                let Some(measured) = self.visit(&mix, place, &capacity)? else { continue };
                if place == Place::Clients(capacity.clients) {
                    rates.push(measured.piece.rate());
                    processes.push(measured.processes);
                }
                block.push(measured.piece);
                self.found.pieces.push(measured.level);
            }
            blocks.push(block);
        }
        self.found.levels = pooled(&std::mem::take(&mut self.found.pieces));
        for level in &self.found.levels {
            (self.news)(Step::Level(Box::new(level.clone())));
        }
        self.found.doubts.extend(changed(&rates, &processes));
        self.found.calibrated_at = mean(&rates);
        self.found.clients = capacity.clients;
        let filled = capacity.filled || self.keeps_cpus_busy(capacity.clients);
        let served = self.found.connections.served_at_once.filter(|_| self.occupies_all(capacity.clients));
        self.found.filled = filled;
        let servers = self.setup.servers();
        // What requests cannot have: the server's own work without them, and that of others.
        let taken = others_under_load(&self.found.levels) + idle_busy / f64::from(servers);
        let facts = ServerFacts {
            classes: mix.classes.iter().map(|class| class.name.clone()).collect(),
            mix: mix.mix(),
            station: if self.setup.is_black_box() { "server" } else { "cpu" }.to_owned(),
            servers,
            idle_busy,
            background: self.found.background.unwrap_or(0.0).min(taken),
            filled,
            served_at_once: served.and_then(|served| u32::try_from(served).ok()),
        };
        let seen_inside = blocks.iter().flatten().any(|piece| piece.inside.iter().any(Option::is_some));
        let fit = ServerFit::new(facts, blocks, self.setup.seed)?;
        if seen_inside && fit.inside().is_none() {
            self.note(
                "what the Server Module measures is not used: of one class it measured too few calls to tell their CPU \
                 time; a longer --level measures more"
                    .to_owned(),
            );
        }
        self.found.inflicted = Some(self.found.toll.sum(self.setup, capacity.clients, capacity.rate, idle_busy));
        Ok(fit)
    }

    /// Finds how many clients leave the server no rest, and what they get done.
    fn climb(&mut self, mix: &Workload, first_rate: f64) -> Result<Capacity, Halt> {
        let most = self.most_clients();
        let mut best = Capacity { rate: first_rate, clients: 1, filled: false, busy: None, in_use: None };
        for ladder in 0..LADDERS {
            let before = best.rate;
            best = self.ladder(mix, most, &best)?;
            if ladder > 0 && best.rate < before * (1.0 + WARMING) {
                break;
            }
        }
        if best.rate <= 0.0 {
            self.check_not_too_much_for_client()?;
            return Err(self.halt(ReasonCode::ServerDied, "the server completed no call"));
        }
        let Capacity { rate, clients, .. } = best;
        self.widen_pool(&best)?;
        self.note(format!("{clients} clients at once get about {} done", quantity::rate(rate)));
        Ok(Capacity { rate: rate / best.busy.filter(|_| !best.filled).unwrap_or(1.0), ..best })
    }

    /// Once up the ladder of clients, as far as they and this client may.
    fn ladder(&mut self, mix: &Workload, most: u64, before: &Capacity) -> Result<Capacity, Halt> {
        let mut found = Capacity { rate: 0.0, clients: 1, filled: false, busy: None, in_use: None };
        let max_delay = self.setup.max_delay.as_secs_f64();
        let mut clients = 1;
        while clients <= most {
            let rung = Capacity { rate: before.rate.max(found.rate), clients, filled: false, busy: None, in_use: None };
            let place = Place::Clients(clients);
            let lasts = self.lasts_with_rest(mix, place, &rung);
            self.begin(format!("looking for the capacity: {clients} at once"), lasts);
            let Some(measured) = self.visit(mix, place, &rung)? else {
                self.found.too_much_for_client = Some(clients);
                break;
            };
            let rate = measured.piece.rate();
            let busy = measured.level.utilization.measured.filter(|busy| *busy > 0.0);
            if self.found.client_limit.is_some_and(|max| rate > NEAR_CLIENT_MAX * max) {
                // Whose limit that is, nobody can tell.
                if found.rate == 0.0 {
                    (found.rate, found.busy) = (rate, busy);
                }
                return Ok(found);
            }
            let filled = rate < found.rate * FILLED || self.occupies_all(clients);
            let in_use = measured.level.cpu.map(|cpu| 1.0 - cpu.idle);
            found = Capacity { rate: rate.max(found.rate), clients, filled, busy, in_use };
            if 2.0 * clients as f64 / rate > max_delay {
                return Ok(found);
            }
            clients = next_rung(clients, most);
        }
        Ok(found)
    }

    /// Offers what belongs to a place for a moment and lets the server rest; none where the generator was the limit.
    fn visit(&mut self, mix: &Workload, place: Place, capacity: &Capacity) -> Result<Option<Measured>, Halt> {
        let (workload, lasts, _) = self.load_at(mix, place, capacity);
        let rest = self.lasts_with_rest(mix, place, capacity) - lasts;
        let trial = self.try_warm(&workload, lasts)?;
        self.found.toll.add(&trial, lasts, rest);
        self.check(&trial)?;
        self.check_failures(&trial)?;
        self.bench.rest(rest);
        // At a low rate it may be that no call was due.
        if !trial.is_the_servers() || trial.record.counts.completed == 0 {
            return Ok(None);
        }
        if let Some(Err(why)) = trial.inside() {
            self.note_unmatched(&why);
        }
        let name = self.name_of(place);
        let about = About::calibration(&name, capacity.rate);
        let servers = self.setup.servers();
        let programs = trial.record.server.iter().flat_map(|server| &server.process);
        let processes = programs.map(|program| program.processes).sum();
        let level = trial.level(&workload, &about, servers);
        let Some(mut piece) = trial.piece(place, servers, self.warm_up()) else { return Ok(None) };
        piece.rest = rest.as_secs_f64();
        if let Place::Level(_) = place {
            piece.arrivals = self.bench.schedule(&workload, lasts, trial.record.seed)?;
        }
        Ok(Some(Measured { piece, level, processes }))
    }

    /// Says once why what the server measured of itself is of no use. Pieces too short to tell are nobody's fault.
    fn note_unmatched(&mut self, why: &Unmatched) {
        let lasting = matches!(why, Unmatched::Name { .. });
        if lasting && !std::mem::replace(&mut self.found.noted_unmatched, true) {
            self.note(format!("what the Server Module measures is not used: {why}"));
        }
    }

    /// How long a visit takes, with what the server rests after it.
    pub(crate) fn lasts_with_rest(&self, mix: &Workload, place: Place, capacity: &Capacity) -> Nanos {
        let (_, lasts, load) = self.load_at(mix, place, capacity);
        lasts + times(load / self.setup.max_load - 1.0, lasts)
    }

    fn warm_up(&self) -> Nanos {
        times(WARM_UP, self.setup.level).min(LONGEST_WARM_UP)
    }

    fn try_warm(&mut self, workload: &Workload, lasts: Nanos) -> Result<Trial, Halt> {
        let trial = self.try_once(workload, lasts)?;
        Ok(Trial::warmed_up(trial.record, &workload.classes, self.warm_up()))
    }

    /// What is offered at a place, for how long, and about which share of the capacity that is.
    fn load_at(&self, mix: &Workload, place: Place, capacity: &Capacity) -> (Workload, Nanos, f64) {
        let slice = |clients: u64| {
            let calls = CALLS * clients as f64 / capacity.rate;
            let least = times(SLICE, self.setup.level).max(SHORTEST);
            self.warm_up() + least.max(Nanos::from_secs_f64(calls).min(LONGEST_SLICE))
        };
        let closed = |workload: &Workload, clients| with_load(workload, Load::Closed { clients, think: Nanos::ZERO });
        match place {
            Place::Level(percent) => {
                let fraction = f64::from(percent) / 100.0;
                let rate = Rate(fraction * self.within_client(capacity.rate));
                let calls = Nanos::from_secs_f64(CALLS / rate.0.max(1e-9)).min(LONGEST_SLICE);
                let lasts = self.warm_up() + times(PIECE, self.setup.level).max(SHORTEST).max(calls);
                (with_load(mix, Load::poisson(rate)), lasts, fraction)
            }
            Place::Clients(clients) => (closed(mix, clients), slice(clients), 1.0),
            Place::Alone(class, clients) => (closed(&alone(mix, class), clients), slice(clients), 1.0),
        }
    }

    /// Whether so many clients, the most that there may be, leave the server's CPUs nothing to do.
    fn keeps_cpus_busy(&self, clients: u64) -> bool {
        let name = self.name_of(Place::Clients(clients));
        let busy =
            |level: &Level| level.workload == name && level.utilization.measured.is_some_and(|busy| busy >= BUSY);
        clients >= self.most_clients() && self.found.levels.iter().any(busy)
    }

    pub(crate) fn name_of(&self, place: Place) -> String {
        match place {
            Place::Level(_) => "mix".to_owned(),
            Place::Clients(clients) => format!("{clients} at once"),
            Place::Alone(class, _) => self.setup.workload.classes[class].name.clone(),
        }
    }

    /// A slice by as many clients as calibration had at most: the host's speed now over its speed then.
    pub(crate) fn anchor(&mut self, lasts_at_most: Nanos) -> Result<Option<f64>, Halt> {
        let Some(then) = self.found.calibrated_at else { return Ok(None) };
        let capacity = Capacity { rate: then, clients: self.found.clients, filled: true, busy: None, in_use: None };
        let (workload, lasts) = self.anchor_at(&capacity);
        let trial = self.try_warm(&workload, lasts.min(lasts_at_most))?;
        self.check(&trial)?;
        let piece = trial
            .piece(Place::Clients(capacity.clients), self.setup.servers(), self.warm_up())
            .filter(|_| trial.is_the_servers());
        Ok(piece.map(|piece| piece.rate() / then))
    }

    /// What an anchor offers, and how long it lasts at most.
    pub(crate) fn anchor_at(&self, capacity: &Capacity) -> (Workload, Nanos) {
        let (workload, slice, _) = self.load_at(&self.setup.workload, Place::Clients(capacity.clients), capacity);
        (workload, times(ANCHOR, slice))
    }

    /// Goes on only where the server serves whoever asks.
    pub(crate) fn check_rate_limit(&self, trial: &Trial) -> Result<(), Halt> {
        let limited = trial.rate_limited();
        limited.map_or(Ok(()), |what| Err(self.halt(ReasonCode::RateLimited, what.trim_end_matches('.'))))
    }

    fn check_failures(&self, trial: &Trial) -> Result<(), Halt> {
        self.check_rate_limit(trial)?;
        let share = trial.failed_share();
        if share < FAILED {
            return Ok(());
        }
        let what = format!(
            "{} of the calls failed or were answered with an error: below what the server can take, it does not do what \
             is to be measured; its own log says why",
            quantity::percent(share)
        );
        Err(self.halt(ReasonCode::ServerErrors, &what))
    }

    /// What the calibration levels are fractions of: the capacity, or less where the client could not offer the
    /// highest.
    pub(crate) fn within_client(&self, capacity: f64) -> f64 {
        let highest = f64::from(LEVELS[LEVELS.len() - 1]) / 100.0;
        self.found.client_limit.map_or(capacity, |max| capacity.min(max / highest))
    }
}

/// The next rung of the ladder of clients: twice as many in the end, so that growth is judged by the last doubling.
pub(crate) fn next_rung(clients: u64, most: u64) -> u64 {
    let next = if 4 * clients < most {
        4 * clients
    } else if 2 * clients < most {
        (most / 2).max(clients + 1)
    } else {
        2 * clients
    };
    // A server may serve any number of connections at a time.
    if clients < most { next.min(most) } else { next }
}

/// The places of a block.
pub(crate) fn design(mix: &Workload, capacity: &Capacity) -> Vec<Place> {
    let most = capacity.clients;
    // Few, some and most; the fewest say what a call takes by itself.
    let mut rungs = vec![1, 4, most];
    rungs.retain(|clients| *clients <= most);
    rungs.dedup();
    let classes = if mix.classes.len() > 1 { mix.classes.len() } else { 0 };
    let levels = LEVELS.map(Place::Level).into_iter();
    levels
        .chain(rungs.into_iter().map(Place::Clients))
        .chain((0..classes).map(|class| Place::Alone(class, most)))
        .collect()
}

/// One class of a workload.
fn alone(mix: &Workload, class: usize) -> Workload {
    let mut alone = mix.clone();
    for (index, other) in alone.classes.iter_mut().enumerate() {
        other.weight = if index == class { 1.0 } else { 0.0 };
    }
    alone
}

/// Whether the server was another one at the end of calibration than at its beginning.
fn changed(rates: &[f64], processes: &[u64]) -> Option<Reason> {
    let n = rates.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let mean = mean(rates)?;
    let at = |index: usize| index as f64 - middle;
    let squares: f64 = (0..rates.len()).map(|index| at(index).powi(2)).sum();
    let slope = rates.iter().enumerate().map(|(index, rate)| at(index) * rate / mean).sum::<f64>() / squares;
    let left: f64 = rates.iter().enumerate().map(|(i, rate)| (rate / mean - 1.0 - slope * at(i)).powi(2)).sum();
    let error = (left / (n - 2.0) / squares).sqrt();
    let change = slope * (n - 1.0);
    if rates.len() < BLOCKS.0 || change.abs() < CHANGED || slope.abs() < SIGNIFICANT * error {
        return None;
    }
    let scaled = processes.first().zip(processes.last()).filter(|(first, last)| first != last);
    let why = match scaled {
        Some((first, last)) => format!("it went from {first} to {last} processes meanwhile; keep their number fixed"),
        None if change > 0.0 => {
            "a compiler or a cache was still getting warm, or its host is less busy; load it for a \
             while, then survey it again"
                .to_owned()
        }
        None => "it leaks, or fills up, or its host is busier; find out which, then survey it again".to_owned(),
    };
    let message =
        format!("The server's speed changed by {} in the course of calibration: {why}.", signed_percent(change));
    Some(Reason { code: ReasonCode::ServerChanged, message })
}

/// Whether the mean of these is known well enough.
fn is_known(values: &[f64]) -> bool {
    let Some(moments) = Moments::from_values(values).filter(|_| values.len() > 2) else { return false };
    moments.standard_error().is_some_and(|error| 2.0 * error < KNOWN * moments.mean())
}

/// The pieces of all blocks at one place as one level.
pub(crate) fn pooled(levels: &[Level]) -> Vec<Level> {
    let same = |a: &Level, b: &Level| {
        a.workload == b.workload && (a.clients.is_some() || (a.fraction - b.fraction).abs() < 1e-6)
    };
    let mut groups: Vec<Vec<&Level>> = Vec::new();
    for level in levels {
        match groups.iter_mut().find(|group| same(group[0], level)) {
            Some(group) => group.push(level),
            None => groups.push(vec![level]),
        }
    }
    groups.iter().map(|group| level::pooled(group)).collect()
}

/// Share of the server's CPUs that was busy with something else than the server while calibration ran: the median of
/// the runs, for what happens to run in one of them is not there all the time.
fn others_under_load(levels: &[Level]) -> f64 {
    let other = |level: &Level| Some((1.0 - level.cpu?.idle - level.utilization.measured?).max(0.0));
    let mut others: Vec<f64> = levels.iter().filter_map(other).collect();
    others.sort_by(f64::total_cmp);
    others.get(others.len() / 2).copied().unwrap_or(0.0)
}
