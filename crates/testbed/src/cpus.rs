//! Which CPUs do whose work.
//!
//! Without steering, a packet's way up to the socket is work of the CPU that handed it over, which is the router's.
//! Receive packet steering (Documentation/networking/scaling.rst) gives each host's receive work to CPUs of its own, so
//! that a server is charged for its packets and for nobody else's.

use crate::TestbedError;
use crate::pump::Place;
use brimful_core::cpus::CpuList;

/// The CPUs of the parties. Empty where receive work is not steered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// The server's.
    pub server: Vec<usize>,
    /// Those that all clients share.
    pub clients: Vec<usize>,
    /// The router's thread.
    pub router: Option<usize>,
}

/// What was asked for; the rest is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The server's.
    pub server: Option<Vec<usize>>,
    /// The clients'.
    pub clients: Option<Vec<usize>>,
    /// The router's.
    pub router: Option<usize>,
}

impl Cpus {
    /// Of the CPUs that are online, the router has one to itself if there are three or more, else the clients' last. Of
    /// the rest server and clients have half each. With a single CPU nothing is steered.
    ///
    /// # Errors
    /// For a CPU that is not online.
    pub fn choose(online: &[usize], wanted: &Wanted) -> Result<Cpus, TestbedError> {
        let given = |list: &Option<Vec<usize>>| list.clone().unwrap_or_default();
        let (mut server, mut clients) = (given(&wanted.server), given(&wanted.clients));
        for (flag, cpus) in [
            ("--server-cpus", &server),
            ("--client-cpus", &clients),
            ("--router-cpu", &wanted.router.into_iter().collect()),
        ] {
            if let Some(&cpu) = cpus.iter().find(|cpu| !online.contains(cpu)) {
                return Err(TestbedError::Cpu { flag, cpu, online: CpuList(online.to_vec()).to_string() });
            }
        }
        let taken = |cpu: &usize| server.contains(cpu) || clients.contains(cpu) || wanted.router == Some(*cpu);
        let mut free: Vec<usize> = online.iter().copied().filter(|cpu| !taken(cpu)).collect();
        let sides = usize::from(server.is_empty()) + usize::from(clients.is_empty());
        let own = if free.len() > sides { free.pop() } else { None };
        let for_server = match (server.is_empty(), clients.is_empty()) {
            (true, true) if free.len() < 2 => return Ok(Cpus { router: wanted.router, ..Cpus::default() }),
            (true, true) => free.len().div_ceil(2),
            (true, false) => free.len(),
            _ => 0,
        };
        let for_clients = free.split_off(for_server);
        server.extend(free);
        if clients.is_empty() {
            clients = for_clients;
        }
        if clients.is_empty() {
            clients.extend(wanted.router);
        }
        let router = wanted.router.or(own).or(clients.last().copied());
        Ok(Cpus { server, clients, router })
    }

    /// Where the router's thread runs.
    pub fn router_place(&self) -> Place {
        let shared = |cpu: usize| self.server.contains(&cpu) || self.clients.contains(&cpu);
        // Where nothing is steered, everybody runs everywhere.
        let alone = self.router.is_some_and(|cpu| !shared(cpu)) && !self.server.is_empty();
        Place { cpu: self.router, alone }
    }
}

/// CPUs as `rps_cpus` takes them: hexadecimal, in groups of 32.
pub(crate) fn mask(cpus: &[usize]) -> String {
    let groups = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let group = |number: usize| {
        let bits = cpus.iter().filter(|cpu| *cpu / 32 == number).fold(0u32, |bits, cpu| bits | 1 << (cpu % 32));
        format!("{bits:08x}")
    };
    (0..groups).rev().map(group).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(online: usize, server: Option<&[usize]>, clients: Option<&[usize]>, router: Option<usize>) -> Cpus {
        let online: Vec<usize> = (0..online).collect();
        let list = |cpus: Option<&[usize]>| cpus.map(<[usize]>::to_vec);
        Cpus::choose(&online, &Wanted { server: list(server), clients: list(clients), router }).unwrap()
    }

    fn cpus(server: &[usize], clients: &[usize], router: Option<usize>) -> Cpus {
        Cpus { server: server.to_vec(), clients: clients.to_vec(), router }
    }

    #[test]
    fn everybody_has_cpus_of_their_own_as_far_as_they_go() {
        assert_eq!(choose(1, None, None, None), cpus(&[], &[], None));
        assert_eq!(choose(2, None, None, None), cpus(&[0], &[1], Some(1)));
        assert_eq!(choose(3, None, None, None), cpus(&[0], &[1], Some(2)));
        assert_eq!(choose(8, None, None, None), cpus(&[0, 1, 2, 3], &[4, 5, 6], Some(7)));
        assert!(!choose(2, None, None, None).router_place().alone);
        assert!(choose(3, None, None, None).router_place().alone);
    }

    #[test]
    fn what_was_asked_for_is_kept_and_the_rest_chosen_around_it() {
        assert_eq!(choose(4, Some(&[2]), None, None), cpus(&[2], &[0, 1], Some(3)));
        assert_eq!(choose(4, None, Some(&[0]), None), cpus(&[1, 2], &[0], Some(3)));
        assert_eq!(choose(2, Some(&[1]), None, None), cpus(&[1], &[0], Some(0)));
        assert_eq!(choose(2, Some(&[0, 1]), Some(&[0, 1]), Some(0)), cpus(&[0, 1], &[0, 1], Some(0)));
        assert_eq!(choose(2, Some(&[0]), None, Some(1)), cpus(&[0], &[1], Some(1)));
        let error = Cpus::choose(&[0, 1], &Wanted { router: Some(7), ..Wanted::default() }).unwrap_err();
        assert_eq!(error.to_string(), "--router-cpu names CPU 7, which is not online: there are 0-1");
    }

    #[test]
    fn masks_are_those_of_the_kernel() {
        assert_eq!(mask(&[0]), "00000001");
        assert_eq!(mask(&[1, 3]), "0000000a");
        assert_eq!(mask(&[0, 33]), "00000002,00000001");
        assert_eq!(mask(&[]), "00000000");
    }
}
