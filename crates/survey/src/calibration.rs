//! Calibration: measures the server at light and heavy loads, and fits a model.
//!
//! First, short runs with more and more clients find the number of clients that saturates the server. Then several
//! blocks are measured. Each block offers the same loads in a different order: the mix at several shares of the
//! capacity, closed loads with few and with many clients, and each class alone. So a drift of the host affects all
//! loads equally, and the differences between blocks show how precise the results are. After each load there is a
//! pause, so that the mean load remains below the permitted one.

use crate::anchor::AnchorLoad;
use crate::baseline::IdleServer;
use crate::connections::ConnectionUse;
use crate::design::{BlockDesign, LIGHTEST_LEVEL, LoadStep, blocks, next_clients, warm_up};
use crate::impact::ImpactTotals;
use crate::level::{LevelContext, merge_by_load};
use crate::runner::{Halt, Runner, SurveyEvent};
use crate::trial::{FAILED_SHARE, Trial};
use brimful_core::Nanos;
use brimful_core::moments::{Moments, mean};
use brimful_core::quantity::{self, signed_percent};
use brimful_core::record::{Reason, ReasonCode, Record};
use brimful_core::survey::{CalibrationImpact, Level};
use brimful_estimate::{Block, Measurement, ModuleMismatch, OfferedLoad, ServerFacts, ServerFit};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

/// The server is saturated if doubling the number of clients multiplies the throughput by less than this factor. A
/// smaller factor would require more precise measurements than one run for each number of clients.
const SATURATED_GAIN: f64 = 1.25;
/// The server is also saturated if the largest number of clients keeps its CPUs busy for at least this share of the
/// time.
const SATURATED_BUSY: f64 = 0.97;
/// If the throughput exceeds this share of the client's maximum rate, the client itself may have limited it.
const NEAR_CLIENT_LIMIT: f64 = 0.95;
/// Minimum trend of the server's speed during calibration, relative to the mean speed, that causes a warning. The trend
/// must also be at least [`MIN_TREND_IN_ERRORS`] standard errors.
const MIN_TREND: f64 = 0.15;
/// Minimum trend of the server's speed that causes a warning, in standard errors of the trend.
const MIN_TREND_IN_ERRORS: f64 = 4.0;
/// Minimum number of blocks (repetitions of the calibration loads) in which a trend is tested.
const MIN_BLOCKS_FOR_TREND: usize = 5;
/// Utilization of the idle server's CPUs above which it is assumed to have other clients.
const OTHER_CLIENTS_UTILIZATION: f64 = 0.02;
/// Calibration adds blocks (repetitions of its loads) until the half width of the capacity's 95 % confidence interval
/// is below this share of the capacity, or until the maximum number of blocks.
const PRECISION: f64 = 0.02;

/// The results of calibration.
#[derive(Debug)]
pub(crate) struct Calibration {
    /// The fitted model.
    pub fit: ServerFit,
    /// The Records of the lightest open load, one per block.
    pub light_load: Vec<Record>,
    /// The load that measures the host's speed in the rest of the survey: a closed load with the largest number of
    /// clients that calibration used.
    pub anchor: AnchorLoad,
    /// Whether the server was saturated: more clients would not increase the throughput.
    pub is_saturated: bool,
    /// The number of clients at which the load generator itself was the limit; `None` if there was none.
    pub overloading_clients: Option<u64>,
    /// The load and the delays that calibration caused for other clients of the server.
    pub impact: CalibrationImpact,
}

/// The capacity of the server, as the search for the number of clients has measured it.
#[derive(Clone, Copy, Debug)]
struct Capacity {
    /// Capacity in calls of the mix per second. If the server was not saturated, it is extrapolated to fully used CPUs.
    rate: f64,
    /// The largest number of clients that the search used.
    clients: u64,
    /// Whether more clients would not increase the throughput.
    is_saturated: bool,
    /// Utilization of the server's CPUs by the server with this number of clients; `None` if it is unknown or 0.
    busy: Option<f64>,
    /// Utilization of the server's CPUs by all programs with this number of clients.
    cpu_in_use: Option<f64>,
}

/// The measurement of one calibration load in one block, in the forms that the fit, the report and the checks need.
struct Measured {
    piece: Measurement,
    level: Level,
    record: Record,
    /// Total number of the server's processes.
    processes: u64,
}

/// The measurements of all blocks (repetitions of the calibration loads).
#[derive(Default)]
struct Blocks {
    blocks: Vec<Block>,
    /// The level of each load in the survey's document, merged from the measurements of all blocks.
    levels: Vec<Level>,
    /// The Records of the lightest open load, one per block.
    light_load: Vec<Record>,
    /// Throughput of each block under the largest number of clients, in calls per second.
    rates: Vec<f64>,
    /// Number of the server's processes in each block, under the largest number of clients.
    processes: Vec<u64>,
}

/// Calibrates the server and fits a model. `first_rate` is the throughput of a single client in calls per second.
/// `client_limit` is the maximum rate of this client, if it is known.
pub(crate) fn calibrate(
    runner: &mut Runner<'_>,
    first_rate: f64,
    client_limit: Option<f64>,
    idle: &IdleServer,
    connections: &mut ConnectionUse,
) -> Result<Calibration, Halt> {
    let setup = runner.setup;
    let idle_load = idle.busy / f64::from(setup.servers());
    if idle_load > OTHER_CLIENTS_UTILIZATION {
        runner.note(format!(
            "the server is busy for {} of the time without our load, so it has other clients: the model takes their load \
             for constant",
            quantity::percent(idle_load)
        ));
    }
    let design = BlockDesign { setup, client_limit };
    let impact = ImpactTotals::default();
    let mut calibrator =
        Calibrator { runner, design, connections, impact, overloading_clients: None, has_noted_unmatched: false };
    let capacity = calibrator.find_capacity(first_rate)?;
    let measured = calibrator.measure_blocks(&capacity)?;
    let Calibrator { runner, connections, impact, overloading_clients, .. } = calibrator;

    runner.log.doubts.extend(change_of_server(&measured.rates, &measured.processes));
    let is_cpu_full = capacity.clients >= connections.max_clients(setup)
        && keeps_cpus_busy(&measured.levels, &design.load_name(OfferedLoad::Clients(capacity.clients)));
    let is_saturated = capacity.is_saturated || is_cpu_full;
    let served_at_once =
        connections.summary.served_at_once.filter(|_| connections.workers_are_occupied_by(capacity.clients));
    let facts = ServerFacts {
        classes: setup.workload.classes.iter().map(|class| class.name.clone()).collect(),
        mix: setup.workload.mix(),
        station: if setup.is_black_box() { "server" } else { "cpu" }.to_owned(),
        servers: setup.servers(),
        idle_busy: idle.busy,
        // `idle.background` was measured without load and may contain a brief disturbance. So it is limited to the CPU
        // usage by other programs during calibration, plus that of the idle server.
        background: idle.background.unwrap_or(0.0).min(other_load(&measured.levels) + idle_load),
        is_saturated,
        served_at_once: served_at_once.and_then(|served| u32::try_from(served).ok()),
    };
    let has_module = measured.blocks.iter().flatten().any(|piece| piece.module.demands.iter().any(Option::is_some));
    let fit = ServerFit::new(facts, measured.blocks, setup.seed)?;
    let light_load = measured.light_load;
    if has_module && fit.module_measurements().is_none() {
        runner.note(
            "what the Server Module measures is not used: of one class it measured too few calls to estimate \
             their CPU time; a longer --level measures more"
                .to_owned(),
        );
    }
    Ok(Calibration {
        fit,
        light_load,
        anchor: AnchorLoad { clients: capacity.clients, rate: mean(&measured.rates) },
        is_saturated,
        overloading_clients,
        impact: impact.impact(setup, capacity.clients, capacity.rate, idle.busy),
    })
}

/// State of the calibration while its loads are measured.
struct Calibrator<'r, 'a> {
    runner: &'r mut Runner<'a>,
    design: BlockDesign<'a>,
    connections: &'r mut ConnectionUse,
    impact: ImpactTotals,
    overloading_clients: Option<u64>,
    /// Whether the user already received a note that the Server Module's measurements are not used.
    has_noted_unmatched: bool,
}

impl Calibrator<'_, '_> {
    /// Finds the number of clients that saturates the server, and its capacity.
    fn find_capacity(&mut self, first_rate: f64) -> Result<Capacity, Halt> {
        let max_clients = self.connections.max_clients(self.runner.setup);
        let best = self.search(max_clients, first_rate)?;
        if best.rate <= 0.0 {
            check_not_too_many_clients(self.runner, self.overloading_clients)?;
            return Err(self.runner.halt(ReasonCode::ServerDied, "the server completed no call"));
        }
        // If the server is not saturated, fully used CPUs would complete more calls: the throughput divided by the
        // utilization of the CPUs by all programs. The connection pool must be large enough for this rate.
        let cpu_in_use = best.cpu_in_use.filter(|in_use| *in_use > 0.0 && !best.is_saturated).unwrap_or(1.0);
        self.connections.widen_pool(self.runner, best.rate / cpu_in_use)?;
        let rate = quantity::rate(best.rate);
        self.runner.note(format!("{} clients at once complete about {rate}", best.clients));
        let busy = best.busy.filter(|_| !best.is_saturated).unwrap_or(1.0);
        Ok(Capacity { rate: best.rate / busy, ..best })
    }

    /// Offers loads with more and more clients. The search ends at `max_clients`, or when more clients would delay the
    /// calls of other clients too much, or when the load generator is the limit.
    fn search(&mut self, max_clients: u64, first_rate: f64) -> Result<Capacity, Halt> {
        let max_delay_s = self.runner.setup.impact_limits.max_delay.as_secs_f64();
        let mut found = Capacity::unknown();
        let mut clients = 1;
        while clients <= max_clients {
            let offered = OfferedLoad::Clients(clients);
            let assumed_capacity = first_rate.max(found.rate);
            let step = self.design.plan_load_step(offered, assumed_capacity);
            self.runner.begin(format!("looking for the capacity: {clients} at once"), step.total());
            let Some(measured) = self.measure(offered, step, assumed_capacity)? else {
                self.overloading_clients = Some(clients);
                break;
            };
            let rate = measured.piece.rate();
            let busy = measured.level.utilization.measured.filter(|busy| *busy > 0.0);
            if self.design.client_limit.is_some_and(|limit| rate > NEAR_CLIENT_LIMIT * limit) {
                // Near the client's maximum rate, the client itself may limit the throughput. So this throughput is
                // used only if no smaller number of clients was measured.
                if found.rate == 0.0 {
                    found.rate = rate;
                    found.busy = busy;
                }
                return Ok(found);
            }
            found = Capacity {
                rate: rate.max(found.rate),
                clients,
                is_saturated: rate < found.rate * SATURATED_GAIN || self.connections.workers_are_occupied_by(clients),
                busy,
                cpu_in_use: measured.level.cpu.map(|cpu| 1.0 - cpu.idle),
            };
            if 2.0 * clients as f64 / rate > max_delay_s {
                return Ok(found);
            }
            clients = next_clients(clients, max_clients);
        }
        Ok(found)
    }

    /// Measures all blocks (repetitions of the calibration loads). The levels measured so far are logged even if the
    /// survey ends early.
    fn measure_blocks(&mut self, capacity: &Capacity) -> Result<Blocks, Halt> {
        let mut measured = Blocks::default();
        let result = self.add_blocks(capacity, &mut measured);
        measured.levels = merge_by_load(&measured.levels);
        self.runner.log.levels.extend(measured.levels.iter().cloned());
        result?;
        for level in &measured.levels {
            self.runner.announce(SurveyEvent::Level(Box::new(level.clone())));
        }
        Ok(measured)
    }

    fn add_blocks(&mut self, capacity: &Capacity, measured: &mut Blocks) -> Result<(), Halt> {
        let mut rng = Pcg64::seed_from_u64(self.runner.setup.seed);
        let loads = self.design.offered_loads(capacity.clients);
        let duration = loads
            .iter()
            .map(|offered| self.design.plan_load_step(*offered, capacity.rate).total())
            .fold(Nanos::ZERO, |sum, step| sum + step);
        let [min_blocks, max_blocks] = blocks(self.runner.setup);
        for number in 0..max_blocks {
            if number >= min_blocks && is_precise(&measured.rates) {
                break;
            }
            let mut loads = loads.clone();
            loads.shuffle(&mut rng);
            let name = format!("calibration, block {} of {min_blocks} to {max_blocks}", number + 1);
            self.runner.begin(name, duration);
            let mut block = Block::new();
            for offered in loads {
                let step = self.design.plan_load_step(offered, capacity.rate);
                let Some(measured_step) = self.measure(offered, step, capacity.rate)? else { continue };
                if offered == OfferedLoad::Clients(capacity.clients) {
                    measured.rates.push(measured_step.piece.rate());
                    measured.processes.push(measured_step.processes);
                }
                if offered == OfferedLoad::Level(LIGHTEST_LEVEL) {
                    measured.light_load.push(measured_step.record);
                }
                block.push(measured_step.piece);
                measured.levels.push(measured_step.level);
            }
            measured.blocks.push(block);
        }
        Ok(())
    }

    /// Offers one load of calibration, and waits for the pause after it. Returns `None` if the load generator was the
    /// limit, if no call was completed, or if the throughput is unknown.
    fn measure(&mut self, offered: OfferedLoad, step: LoadStep, capacity: f64) -> Result<Option<Measured>, Halt> {
        let setup = self.runner.setup;
        let trial = self.runner.measure(&step.workload, step.duration)?;
        let trial = Trial::with_warm_up(trial.record, &step.workload.classes, warm_up(setup));
        self.impact.add(&trial, &step);
        self.runner.check(&trial)?;
        self.check_failures(&trial)?;
        self.runner.bench.rest(step.pause);
        // At a low rate, a short load may have no calls at all.
        if !trial.not_client_limited() || trial.record.counts.completed == 0 {
            return Ok(None);
        }
        self.note_unmatched(&trial);
        let programs = trial.record.server.iter().flat_map(|server| &server.process);
        let processes = programs.map(|program| program.processes).sum();
        let name = self.design.load_name(offered);
        let level = LevelContext::calibration(&name, capacity).level(&trial, &step.workload, setup.servers());
        let Some(mut piece) = trial.measurement(offered, setup.servers(), warm_up(setup)) else { return Ok(None) };
        piece.timeline.pause_after = step.pause.as_secs_f64();
        if let OfferedLoad::Level(_) = offered {
            piece.timeline.arrivals = self.runner.bench.schedule(&step.workload, step.duration, trial.record.seed)?;
        }
        Ok(Some(Measured { piece, level, processes, record: trial.record }))
    }

    /// Notes why the Server Module's measurements are not used, but only once. A load that was only too short causes no
    /// note.
    fn note_unmatched(&mut self, trial: &Trial) {
        if let Some(Err(reason @ ModuleMismatch::Name { .. })) = trial.module_demands()
            && !self.has_noted_unmatched
        {
            self.has_noted_unmatched = true;
            self.runner.note(format!("what the Server Module measures is not used: {reason}"));
        }
    }

    fn check_failures(&self, trial: &Trial) -> Result<(), Halt> {
        self.runner.check_rate_limit(trial)?;
        let share = trial.failed_share();
        if share < FAILED_SHARE {
            return Ok(());
        }
        let reason = format!(
            "{} of the calls failed or were answered with an error although the load is below the server's capacity, so \
             calibration would measure errors; the server's own log says why",
            quantity::percent(share)
        );
        Err(self.runner.halt(ReasonCode::ServerErrors, &reason))
    }
}

impl Capacity {
    /// The initial value, before any measurement.
    fn unknown() -> Capacity {
        Capacity { rate: 0.0, clients: 1, is_saturated: false, busy: None, cpu_in_use: None }
    }
}

/// Stops the survey if the load generator was the limit in the search for the capacity. `too_many` is the number of
/// clients at which it was the limit.
pub(crate) fn check_not_too_many_clients(runner: &Runner<'_>, too_many: Option<u64>) -> Result<(), Halt> {
    let Some(clients) = too_many else { return Ok(()) };
    let clients = if clients == 1 { "one client".to_owned() } else { format!("{clients} clients") };
    let reason = format!(
        "the capacity could not be measured, because the generator itself was the limit with {clients}; give it more \
         --threads and --cpus than the server's, or a machine of its own (--shards makes the load from several)"
    );
    Err(runner.halt(ReasonCode::BeyondClientMax, &reason))
}

/// A reason to distrust the survey if the server's speed had a trend during calibration. `rates` and `processes` have
/// one value per block (repetition of the calibration loads).
fn change_of_server(rates: &[f64], processes: &[u64]) -> Option<Reason> {
    let n = rates.len() as f64;
    let mean = mean(rates)?;
    // Linear regression of the relative throughput on the number of the block, counted from the middle block.
    let distance = |block: usize| block as f64 - (n - 1.0) / 2.0;
    let squares: f64 = (0..rates.len()).map(|block| distance(block).powi(2)).sum();
    let slope = rates.iter().enumerate().map(|(block, rate)| distance(block) * rate / mean).sum::<f64>() / squares;
    let residual = |(block, rate): (usize, &f64)| (rate / mean - 1.0 - slope * distance(block)).powi(2);
    let residuals: f64 = rates.iter().enumerate().map(residual).sum();
    let standard_error = (residuals / (n - 2.0) / squares).sqrt();
    let change = slope * (n - 1.0);
    if rates.len() < MIN_BLOCKS_FOR_TREND
        || change.abs() < MIN_TREND
        || slope.abs() < MIN_TREND_IN_ERRORS * standard_error
    {
        return None;
    }
    let scaled = processes.first().zip(processes.last()).filter(|(first, last)| first != last);
    let cause = match scaled {
        Some((first, last)) => format!("it went from {first} to {last} processes meanwhile; keep their number fixed"),
        None if change > 0.0 => {
            "a compiler or a cache was still warming up, or its host became less busy; load it for a while, then survey it \
             again"
                .to_owned()
        }
        None => "it leaks or fills up, or its host became busier; find out which, then survey it again".to_owned(),
    };
    let message = format!("The server's speed changed by {} during calibration: {cause}.", signed_percent(change));
    Some(Reason { code: ReasonCode::ServerChanged, message })
}

/// Whether the confidence interval of the mean of these values is narrow enough to stop adding blocks.
fn is_precise(values: &[f64]) -> bool {
    let moments = Moments::from_values(values).filter(|_| values.len() > 2);
    moments
        .is_some_and(|moments| moments.standard_error().is_some_and(|error| 2.0 * error < PRECISION * moments.mean()))
}

fn keeps_cpus_busy(levels: &[Level], name: &str) -> bool {
    let is_busy = |level: &Level| level.utilization.measured.is_some_and(|busy| busy >= SATURATED_BUSY);
    levels.iter().any(|level| level.workload == name && is_busy(level))
}

/// Share of the server's CPUs that other programs used during calibration: the median over the levels, so that a
/// program that ran during a single level has no effect.
fn other_load(levels: &[Level]) -> f64 {
    let other_load = |level: &Level| Some((1.0 - level.cpu?.idle - level.utilization.measured?).max(0.0));
    let mut loads: Vec<f64> = levels.iter().filter_map(other_load).collect();
    loads.sort_by(f64::total_cmp);
    loads.get(loads.len() / 2).copied().unwrap_or(0.0)
}
