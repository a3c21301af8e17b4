//! The state of the simulated network and its events.
//!
//! An *event* is an arrival from outside, a change of an arrival rate, the end of a service, a delay or a think time,
//! or the beginning or the end of an interruption. No memory is allocated per event: the slots of requests are reused,
//! and queues keep their capacity.
//!
//! A request visits each station where its class has a demand once, in the model's order. The customers of closed
//! classes begin by thinking. If they do not think, they begin at their first station.

use super::arrivals::Source;
use super::calendar::Calendar;
use super::histogram::Histogram;
use super::layout::{Layout, MAX_PRESENT};
use super::queue::{Discipline, Queue};
use super::service::Sampler;
use crate::ModelError;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

/// One simulated request. Times are in seconds since the start of the simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedRequest {
    /// Index of the request's class.
    pub class: usize,
    /// The time at which the request arrived, in seconds.
    pub began: f64,
    /// The time at which the request was completed, in seconds; `None` if the simulation ended first.
    pub ended: Option<f64>,
}

/// The simulated network and its current state.
pub(super) struct World<'a> {
    layout: &'a Layout,
    rng: Pcg64Mcg,
    now: f64,
    events: u64,
    /// The times of the next events: at each station, of the thinking customers, of each source of arrivals, and of the
    /// interruptions of each interrupted station.
    calendar: Calendar,
    /// The queues of the stations. Thinking customers are in the last queue.
    queues: Vec<Queue>,
    sources: Vec<Option<Source>>,
    /// Indices of the stations that have interruptions.
    interrupted: Vec<usize>,
    requests: Vec<Request>,
    free: Vec<u32>,
    /// Number of requests, visits and work of each class at each station, stations × classes.
    pub(super) presence: Vec<Presence>,
    /// The completed requests of each class.
    pub(super) completed: Vec<Completed>,
    /// Histogram of the response times of each class.
    pub(super) histograms: Vec<Histogram>,
    /// The requests completed since this list was last taken; `None` if the caller needs only statistics.
    pub(super) passages: Option<Vec<SimulatedRequest>>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    class: u32,
    /// Remaining service at the current station, in seconds of demand.
    service: f64,
    /// The time at which the request arrived at its current station, in seconds.
    arrived: f64,
    /// The time at which the request arrived in the network, in seconds.
    began: f64,
}

/// Sums over the requests of one class at one station.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Presence {
    /// The sums of the visits since the current slice (a period of the statistics) began.
    pub(super) visits: Visits,
    present: u32,
    served: u32,
    /// The time up to which `visits.area` is summed, in seconds.
    until: f64,
    /// Reading of the station's clock up to which `visits.work` is summed.
    until_clock: f64,
}

/// Sums of the visits of one class to one station during a slice, which is a period of the statistics.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visits {
    /// Number of visits that ended.
    pub(super) ended: f64,
    /// Total duration of the ended visits, in seconds.
    pub(super) seconds: f64,
    /// Number of requests present, integrated over time, in request-seconds.
    pub(super) area: f64,
    /// Service that the requests received, in seconds of demand.
    pub(super) work: f64,
}

/// The completed requests of one class during a slice, which is a period of the statistics.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Completed {
    /// Number of requests.
    pub(super) count: f64,
    /// Sum of their response times, in seconds.
    pub(super) seconds: f64,
}

impl<'a> World<'a> {
    /// Creates the network in its state at time 0.
    pub(super) fn new(layout: &'a Layout, seed: u64) -> World<'a> {
        let (stations, classes) = (layout.stations.len(), layout.classes.len());
        let mut queues: Vec<Queue> = layout.stations.iter().map(|s| Queue::new(s.discipline.clone())).collect();
        queues.push(Queue::new(Discipline::delay(classes)));
        let interrupted: Vec<usize> = (0..stations).filter(|k| layout.stations[*k].interruptions.is_some()).collect();
        let mut world = World {
            layout,
            rng: Pcg64Mcg::seed_from_u64(seed),
            now: 0.0,
            events: 0,
            calendar: Calendar::new(stations + 1 + classes + interrupted.len()),
            queues,
            sources: layout.classes.iter().map(|class| class.source.clone()).collect(),
            interrupted,
            requests: Vec::new(),
            free: Vec::new(),
            presence: vec![Presence::default(); stations * classes],
            completed: vec![Completed::default(); classes],
            histograms: layout.classes.iter().map(|class| Histogram::around(class.demand)).collect(),
            passages: None,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        for class in 0..self.layout.classes.len() {
            if let Some(source) = &mut self.sources[class] {
                let first = source.start(&mut self.rng);
                self.calendar.set(self.queues.len() + class, first);
            }
            for _ in 0..self.layout.classes[class].population {
                let request = self.admit(class);
                self.think(request, class);
            }
        }
        for index in 0..self.interrupted.len() {
            self.schedule_interruption(index);
        }
    }

    /// Processes all events before the time `until`. Stops earlier if `events` events have been processed since the
    /// start. Returns whether `until` was reached.
    pub(super) fn run(&mut self, until: f64, events: u64) -> Result<bool, ModelError> {
        loop {
            let (instant, place) = self.calendar.soonest();
            if instant >= until {
                self.now = until;
                return Ok(true);
            }
            if self.events >= events {
                return Ok(false);
            }
            self.events += 1;
            self.now = instant;
            match place.checked_sub(self.queues.len()) {
                None => self.depart(place),
                Some(source) => match source.checked_sub(self.sources.len()) {
                    None => self.wake(source)?,
                    Some(index) => self.interrupt_or_resume(index),
                },
            }
        }
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// Extends all sums over time to the current time.
    pub(super) fn integrate(&mut self) {
        let classes = self.layout.classes.len();
        for (row, queue) in self.presence.chunks_mut(classes).zip(&mut self.queues) {
            let clock = queue.clock(self.now);
            row.iter_mut().for_each(|v| v.integrate(self.now, clock));
        }
    }

    /// Processes an event of the arrival process of class `class`.
    fn wake(&mut self, class: usize) -> Result<(), ModelError> {
        let Some(source) = &mut self.sources[class] else { return Ok(()) };
        let (arrives, next) = source.wake(self.now, &mut self.rng);
        self.calendar.set(self.queues.len() + class, next);
        if arrives {
            if self.requests.len() - self.free.len() >= MAX_PRESENT {
                return Err(self.growing_queue_error());
            }
            let request = self.admit(class);
            self.begin(request, class);
        }
        Ok(())
    }

    /// Begins or ends an interruption of the station with this index in `interrupted`.
    fn interrupt_or_resume(&mut self, index: usize) {
        let place = self.interrupted[index];
        let queue = &mut self.queues[place];
        queue.clock(self.now);
        queue.set_interrupted(!queue.is_interrupted());
        self.calendar.set(place, queue.settle());
        self.schedule_interruption(index);
    }

    /// Schedules the end of the current interruption, or the beginning of the next one.
    fn schedule_interruption(&mut self, index: usize) {
        let place = self.interrupted[index];
        let Some(interruptions) = self.layout.stations[place].interruptions else { return };
        let time = if self.queues[place].is_interrupted() {
            interruptions.length_s * interruptions.sampler.sample(&mut self.rng)
        } else {
            interruptions.between_s * Sampler::Exponential.sample(&mut self.rng)
        };
        self.calendar.set(self.queues.len() + self.sources.len() + index, self.now + time);
    }

    fn admit(&mut self, class: usize) -> u32 {
        let request = Request { class: class as u32, service: 0.0, arrived: self.now, began: self.now };
        match self.free.pop() {
            Some(place) => {
                self.requests[place as usize] = request;
                place
            }
            None => {
                self.requests.push(request);
                self.requests.len() as u32 - 1
            }
        }
    }

    /// Starts the think time of a customer of a closed class. A customer without think time immediately sends its next
    /// request.
    fn think(&mut self, request: u32, class: usize) {
        let think = self.layout.classes[class].think;
        if think <= 0.0 {
            return self.begin(request, class);
        }
        let place = self.queues.len() - 1;
        let time = think * Sampler::Exponential.sample(&mut self.rng);
        let queue = &mut self.queues[place];
        queue.clock(self.now);
        queue.enter();
        queue.serve(request, time);
        self.calendar.set(place, queue.settle());
    }

    #[inline]
    fn begin(&mut self, request: u32, class: usize) {
        self.requests[request as usize].began = self.now;
        self.arrive(self.layout.classes[class].first, request, class);
    }

    #[inline]
    fn arrive(&mut self, place: usize, request: u32, class: usize) {
        let station = &self.layout.stations[place];
        let queue = &mut self.queues[place];
        let mut mean = station.demands[class];
        if station.waking > 0.0 {
            mean += station.waking * (1.0 - queue.present() as f64 / station.servers).max(0.0);
        }
        let service = mean * station.sampler.sample(&mut self.rng);
        let known = &mut self.requests[request as usize];
        (known.service, known.arrived) = (service, self.now);
        let clock = queue.clock(self.now);
        queue.enter();
        let row = place * self.layout.classes.len();
        self.presence[row + class].enter(self.now, clock);
        let requests = &mut self.requests;
        let class_and_arrival =
            |request: u32| (requests[request as usize].class as usize, requests[request as usize].arrived);
        let interrupted = if queue.has_slot() { None } else { queue.interrupt(class, class_and_arrival) };
        if let Some((interrupted, remaining)) = interrupted {
            let interrupted = &mut requests[interrupted as usize];
            interrupted.service = remaining;
            self.presence[row + interrupted.class as usize].stop(clock);
        }
        if queue.has_slot() {
            queue.serve(request, service);
            self.presence[row + class].serve(clock);
        } else {
            queue.wait(request, class);
        }
        self.calendar.set(place, queue.settle());
    }

    /// Processes a departure: a request leaves the station `place`, or a customer ends its think time.
    fn depart(&mut self, place: usize) {
        let layout = self.layout;
        let classes = layout.classes.len();
        let queue = &mut self.queues[place];
        queue.clock(self.now);
        let Some(request) = queue.leave() else { return };
        let Request { class, arrived, .. } = self.requests[request as usize];
        let class = class as usize;
        if place == layout.stations.len() {
            self.calendar.set(place, queue.settle());
            return self.begin(request, class);
        }
        let clock = queue.clock(self.now);
        let row = place * classes;
        self.presence[row + class].leave(self.now, clock, self.now - arrived);
        if let Some(next) = queue.next_waiting() {
            let known = self.requests[next as usize];
            queue.serve(next, known.service);
            self.presence[row + known.class as usize].serve(clock);
        }
        self.calendar.set(place, queue.settle());
        match layout.stations[place].next[class] {
            Some(station) => self.arrive(station, request, class),
            None => self.complete(request, class),
        }
    }

    fn complete(&mut self, request: u32, class: usize) {
        let began = self.requests[request as usize].began;
        let response = self.now - began;
        if let Some(passages) = &mut self.passages {
            passages.push(SimulatedRequest { class, began, ended: Some(self.now) });
        }
        self.completed[class].count += 1.0;
        self.completed[class].seconds += response;
        self.histograms[class].record(response);
        if self.sources[class].is_some() {
            self.free.push(request);
        } else {
            self.think(request, class);
        }
    }

    /// The requests that are in the network now. Customers that think are not included.
    pub(super) fn unfinished(&self) -> Vec<SimulatedRequest> {
        let mut present = vec![true; self.requests.len()];
        self.free.iter().for_each(|place| present[*place as usize] = false);
        self.queues[self.layout.stations.len()]
            .served_requests()
            .for_each(|thinking| present[thinking as usize] = false);
        let requests = self.requests.iter().zip(present).filter(|(_, present)| *present);
        requests.map(|(r, _)| SimulatedRequest { class: r.class as usize, began: r.began, ended: None }).collect()
    }

    /// The error for too many requests in the network. It names the station with the most requests.
    fn growing_queue_error(&self) -> ModelError {
        let classes = self.layout.classes.len();
        let present = |row: &[Presence]| row.iter().map(|v| u64::from(v.present)).sum::<u64>();
        let fullest = self.presence.chunks(classes).enumerate().max_by_key(|(_, row)| present(row));
        let (station, present) = fullest.map_or((0, 0), |(station, row)| (station, present(row)));
        ModelError::GrowingQueue { station: self.layout.stations[station].name.clone(), present, time_s: self.now }
    }
}

impl Presence {
    #[inline]
    fn integrate(&mut self, now: f64, clock: f64) {
        self.visits.area += f64::from(self.present) * (now - self.until);
        self.until = now;
        self.integrate_work(clock);
    }

    /// Adds the work that the station did until its clock shows `clock`. The clock is reset only when no request is in
    /// service, so the sum is complete.
    #[inline]
    fn integrate_work(&mut self, clock: f64) {
        self.visits.work += f64::from(self.served) * (clock - self.until_clock);
        self.until_clock = clock;
    }

    #[inline]
    fn enter(&mut self, now: f64, clock: f64) {
        self.integrate(now, clock);
        self.present += 1;
    }

    #[inline]
    fn serve(&mut self, clock: f64) {
        self.integrate_work(clock);
        self.served += 1;
    }

    #[inline]
    fn stop(&mut self, clock: f64) {
        self.integrate_work(clock);
        self.served -= 1;
    }

    #[inline]
    fn leave(&mut self, now: f64, clock: f64, seconds: f64) {
        self.integrate(now, clock);
        self.present -= 1;
        self.served -= 1;
        self.visits.ended += 1.0;
        self.visits.seconds += seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulationOptions;
    use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station};

    #[test]
    fn requests_are_neither_lost_nor_duplicated() {
        let station = |scheduling| Station { scheduling, servers: 2, scv: 2.0, ..Station::default() };
        let class = |priority| ModelClass { priority, ..ModelClass::default() };
        let closed = ModelClass { kind: ClassKind::Closed, population: Some(7), think: 0.5, ..class(1) };
        let model = Model {
            stations: [Scheduling::Ps, Scheduling::Fcfs, Scheduling::Preemptive].map(station).to_vec(),
            classes: vec![
                closed,
                ModelClass { rate: Some(2.0), ..class(2) },
                ModelClass { rate: Some(1.0), ..class(0) },
            ],
            demands: vec![vec![0.1, 0.2, 0.3], vec![0.3, 0.0, 0.5], vec![0.2, 0.5, 0.1]],
            ..Model::default()
        };
        let layout = Layout::new(&model, &SimulationOptions::default()).unwrap();
        let mut world = World::new(&layout, 3);
        for step in 1..2000 {
            world.run(f64::from(step) * 0.1, u64::MAX).unwrap();
            let mut there = [0; 3];
            let used = (0..world.requests.len() as u32).filter(|request| !world.free.contains(request));
            used.for_each(|request| there[world.requests[request as usize].class as usize] += 1);
            let at = |class: usize| world.presence.iter().skip(class).step_by(3).map(|p| p.present).sum::<u32>();
            let thinking = u32::try_from(world.queues[3].present()).unwrap();
            assert_eq!(there, [7, at(1), at(2)]);
            assert_eq!(at(0) + thinking, 7);
            for (queue, row) in world.queues.iter().zip(world.presence.chunks(3)) {
                let (present, served) = row.iter().fold((0, 0), |sum, p| (sum.0 + p.present, sum.1 + p.served));
                assert_eq!((queue.present(), queue.served()), (present as usize, served as usize));
            }
        }
    }
}
