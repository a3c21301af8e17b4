//! The condition by which the kernel selects sockets for a dump: the local port is one of the given ports.
//!
//! The condition is a program of `struct inet_diag_bc_op` (code, jump distance if true, jump distance if false; in
//! bytes). A condition on a port takes two such structs; the second has the port in place of the distance. A run that
//! ends exactly at the end of the program accepts the socket. A run that ends four bytes beyond it rejects the socket.
//! The kernel allows only forward jumps, and only to instructions that are also reached if all conditions are true. So
//! an *or* consists of conditions, each followed by a jump to the end. Source: linux/inet_diag.h, `inet_diag_bc_run`
//! and `inet_diag_bc_audit` in net/ipv4/inet_diag.c.

const JUMP: u8 = 1;
const AT_LEAST: u8 = 2; // INET_DIAG_BC_S_GE
const AT_MOST: u8 = 3; // INET_DIAG_BC_S_LE
const EQUAL: u8 = 11; // INET_DIAG_BC_S_EQ, since Linux 4.16
const CONDITION: usize = 8;
const OP: usize = 4;

/// A filter program that accepts sockets whose local port is one of `ports`.
pub(super) fn equal(ports: &[u16]) -> Vec<u8> {
    any_of(ports, &[EQUAL])
}

/// A filter program that accepts the same sockets as [`equal`], for older kernels. These kernels compare ports only for
/// order, so a socket's port must be both at least and at most the wanted port.
pub(super) fn between(ports: &[u16]) -> Vec<u8> {
    any_of(ports, &[AT_LEAST, AT_MOST])
}

/// A filter program that accepts a socket if all `conditions` are true for one of the ports.
fn any_of(ports: &[u16], conditions: &[u8]) -> Vec<u8> {
    let port_bytes = conditions.len() * CONDITION + OP;
    let mut program = Vec::with_capacity(ports.len() * port_bytes);
    for (index, port) in ports.iter().enumerate() {
        for (place, &code) in conditions.iter().enumerate() {
            // If the condition is false, the run continues with the next port. No jump follows the conditions of the
            // last port, so from there it continues beyond the end, which rejects the socket.
            op(&mut program, code, CONDITION, port_bytes - place * CONDITION);
            op(&mut program, 0, 0, usize::from(*port));
        }
        let after = ports.len() - 1 - index;
        if after > 0 {
            op(&mut program, JUMP, OP, after * port_bytes);
        }
    }
    program
}

fn op(program: &mut Vec<u8>, code: u8, if_true: usize, if_false: usize) {
    program.extend_from_slice(&[code, if_true as u8]);
    program.extend_from_slice(&(if_false as u16).to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs a filter program as the kernel does.
    fn accepts(program: &[u8], port: u16) -> bool {
        let mut at = 0;
        while at < program.len() {
            let number = |at: usize| u16::from_ne_bytes([program[at + 2], program[at + 3]]);
            let (if_true, if_false) = (usize::from(program[at + 1]), usize::from(number(at)));
            let holds = match program[at] {
                JUMP => false,
                AT_LEAST => port >= number(at + OP),
                AT_MOST => port <= number(at + OP),
                EQUAL => port == number(at + OP),
                code => panic!("no such code: {code}"),
            };
            at += if holds { if_true } else { if_false };
        }
        at == program.len()
    }

    proptest! {
        #[test]
        fn a_port_is_accepted_if_it_is_one_of_them(
            ports in proptest::collection::vec(any::<u16>(), 1..40), other: u16,
        ) {
            for program in [equal(&ports), between(&ports)] {
                for &port in ports.iter().chain([&other, &0, &u16::MAX]) {
                    prop_assert_eq!(accepts(&program, port), ports.contains(&port));
                }
            }
        }
    }
}
