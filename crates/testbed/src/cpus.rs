//! The CPUs of the server, the clients and the router.
//!
//! For each packet that a host receives, the kernel does some work (receive work) before a socket has the data. By
//! default, this runs on the CPU of the thread that writes the packet to the host's device, which is the router's CPU.
//! Receive packet steering (Documentation/networking/scaling.rst in the kernel's sources) moves each host's receive
//! work to CPUs that are chosen for this host, so that the server's CPUs process only the server's packets.

use crate::TestbedError;
use crate::address::{HostNumber, SERVER};
use brimful_core::cpus::CpuList;

/// The CPUs of the server, the clients and the router. The lists are empty if the kernel's work for received packets is
/// not moved to certain CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// CPUs of the server.
    pub server: Vec<usize>,
    /// CPUs that all clients share.
    pub clients: Vec<usize>,
    /// CPU of the router's thread.
    pub router: Option<usize>,
}

/// The CPUs that the user requested. For each `None`, [`Cpus::choose`] chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuRequest {
    /// CPUs of the server.
    pub server: Option<Vec<usize>>,
    /// CPUs of the clients.
    pub clients: Option<Vec<usize>>,
    /// CPU of the router.
    pub router: Option<usize>,
}

/// The CPU of the router's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadPlacement {
    /// The CPU to which the thread is pinned; `None` if it may run on any CPU.
    pub cpu: Option<usize>,
    /// Whether the server and the clients use other CPUs. If so, the thread may poll instead of sleeping.
    pub is_exclusive: bool,
}

impl Cpus {
    /// Chooses the CPUs that the user did not request. With three or more CPUs, the router has one of its own;
    /// otherwise, it shares the last of the clients' CPUs. The server and the clients each get half of the remaining
    /// CPUs. With a single CPU, the lists are empty.
    ///
    /// # Errors
    /// [`TestbedError::Cpu`] if a requested CPU is not online.
    pub fn choose(online: &[usize], request: &CpuRequest) -> Result<Cpus, TestbedError> {
        let mut server = request.server.clone().unwrap_or_default();
        let mut clients = request.clients.clone().unwrap_or_default();
        let router = request.router.into_iter().collect();
        for (flag, cpus) in [("--server-cpus", &server), ("--client-cpus", &clients), ("--router-cpu", &router)] {
            if let Some(&cpu) = cpus.iter().find(|cpu| !online.contains(cpu)) {
                return Err(TestbedError::Cpu { flag, cpu, online: CpuList(online.to_vec()).to_string() });
            }
        }
        let taken = |cpu: &usize| server.contains(cpu) || clients.contains(cpu) || request.router == Some(*cpu);
        let mut free: Vec<usize> = online.iter().copied().filter(|cpu| !taken(cpu)).collect();
        let unassigned = usize::from(server.is_empty()) + usize::from(clients.is_empty());
        let spare = if free.len() > unassigned { free.pop() } else { None };
        let server_share = match (server.is_empty(), clients.is_empty()) {
            (true, true) if free.len() < 2 => return Ok(Cpus { router: request.router, ..Cpus::default() }),
            (true, true) => free.len().div_ceil(2),
            (true, false) => free.len(),
            _ => 0,
        };
        let clients_share = free.split_off(server_share);
        server.extend(free);
        if clients.is_empty() {
            clients = clients_share;
        }
        if clients.is_empty() {
            clients.extend(request.router);
        }
        let router = request.router.or(spare).or(clients.last().copied());
        Ok(Cpus { server, clients, router })
    }

    /// The CPUs on which a host's packets are received.
    pub(crate) fn of_host(&self, host: HostNumber) -> &[usize] {
        if host == SERVER { &self.server } else { &self.clients }
    }

    /// The CPU of the router's thread, and whether it is exclusive.
    pub(crate) fn router_placement(&self) -> ThreadPlacement {
        let is_shared = |cpu: usize| self.server.contains(&cpu) || self.clients.contains(&cpu);
        // If the lists are empty, packets are received on every CPU, so none is exclusive.
        let is_exclusive = self.router.is_some_and(|cpu| !is_shared(cpu)) && !self.server.is_empty();
        ThreadPlacement { cpu: self.router, is_exclusive }
    }
}

/// Formats CPU numbers for the kernel's file `rps_cpus`: a hexadecimal bit mask in groups of 32 CPUs.
pub(crate) fn cpu_mask(cpus: &[usize]) -> String {
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
        Cpus::choose(&online, &CpuRequest { server: list(server), clients: list(clients), router }).unwrap()
    }

    fn cpus(server: &[usize], clients: &[usize], router: Option<usize>) -> Cpus {
        Cpus { server: server.to_vec(), clients: clients.to_vec(), router }
    }

    #[test]
    fn server_clients_and_router_share_cpus_only_if_there_are_too_few() {
        assert_eq!(choose(1, None, None, None), cpus(&[], &[], None));
        assert_eq!(choose(2, None, None, None), cpus(&[0], &[1], Some(1)));
        assert_eq!(choose(3, None, None, None), cpus(&[0], &[1], Some(2)));
        assert_eq!(choose(8, None, None, None), cpus(&[0, 1, 2, 3], &[4, 5, 6], Some(7)));
        assert!(!choose(2, None, None, None).router_placement().is_exclusive);
        assert!(choose(3, None, None, None).router_placement().is_exclusive);
    }

    #[test]
    fn requested_cpus_are_kept() {
        assert_eq!(choose(4, Some(&[2]), None, None), cpus(&[2], &[0, 1], Some(3)));
        assert_eq!(choose(4, None, Some(&[0]), None), cpus(&[1, 2], &[0], Some(3)));
        assert_eq!(choose(2, Some(&[1]), None, None), cpus(&[1], &[0], Some(0)));
        assert_eq!(choose(2, Some(&[0, 1]), Some(&[0, 1]), Some(0)), cpus(&[0, 1], &[0, 1], Some(0)));
        assert_eq!(choose(2, Some(&[0]), None, Some(1)), cpus(&[0], &[1], Some(1)));
        let error = Cpus::choose(&[0, 1], &CpuRequest { router: Some(7), ..CpuRequest::default() }).unwrap_err();
        assert_eq!(error.to_string(), "--router-cpu names CPU 7, which is not online: there are 0-1");
    }

    #[test]
    fn masks_have_the_kernels_format() {
        assert_eq!(cpu_mask(&[0]), "00000001");
        assert_eq!(cpu_mask(&[1, 3]), "0000000a");
        assert_eq!(cpu_mask(&[0, 33]), "00000002,00000001");
        assert_eq!(cpu_mask(&[]), "00000000");
    }
}
