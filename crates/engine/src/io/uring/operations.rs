//! The operations of a ring: their user data, which identifies the connection and the kind of operation, and the chain
//! of linked operations that opens a TCP connection (socket, options, bind, connect).

use crate::Address;
use crate::io::{Route, Settings, SocketOptions, Token};
use io_uring::opcode;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{DestinationSlot, Fixed};
use rustix::net::SocketAddrAny;

/// Number of low bits of user data for the slot: enough for every slot of a ring's table. The next four bits contain
/// the kind of operation, and the upper 32 bits contain the generation of the slot's connection.
const SLOT_BITS: u32 = 28;

/// The kind of an io_uring operation. It is encoded in the operation's user data together with the connection's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// An operation that prepares a new socket before `Connect`, such as setting an option.
    Setup,
    Connect,
    Receive,
    Send,
    /// An operation that closes a connection, or cancels another operation of it. Its completion is ignored.
    Close,
}

/// Encodes the connection's token and the kind of an operation as the operation's user data.
pub fn user_data(token: Token, kind: OperationKind) -> u64 {
    u64::from(token) | (kind as u64) << SLOT_BITS
}

/// Splits user data into the connection's token and the kind of the operation.
pub fn parse_user_data(bits: u64) -> (Token, OperationKind) {
    let Token { slot, generation } = Token::from(bits);
    let kind = match slot >> SLOT_BITS {
        0 => OperationKind::Setup,
        1 => OperationKind::Connect,
        2 => OperationKind::Receive,
        3 => OperationKind::Send,
        _ => OperationKind::Close,
    };
    (Token { slot: slot & ((1 << SLOT_BITS) - 1), generation }, kind)
}

/// Maximum number of operations in the chain that opens a connection.
pub const MAX_OPERATIONS: usize = 9;

/// The arguments of the operations that open a connection. Operations contain pointers into this struct, so it must not
/// be moved, nor dropped before the ring.
pub struct OperationChain {
    /// Each address is boxed, so that it does not move in memory when the list grows.
    #[expect(clippy::vec_box)]
    addresses: Vec<Box<SocketAddrAny>>,
    sources: Vec<SocketAddrAny>,
    options: SocketOptions,
    on: libc::c_int,
    send_buffer: libc::c_int,
    receive_buffer: libc::c_int,
    no_linger: libc::linger,
}

impl OperationChain {
    /// Prepares the arguments of connections with these settings.
    pub fn new(settings: &Settings) -> OperationChain {
        OperationChain {
            addresses: settings.addresses.iter().map(|address| Box::new(address.raw())).collect(),
            sources: settings.sources.iter().copied().map(SocketAddrAny::from).collect(),
            options: settings.options,
            on: 1,
            send_buffer: settings.options.send_buffer.map_or(0, |bytes| bytes as libc::c_int),
            receive_buffer: settings.options.receive_buffer.map_or(0, |bytes| bytes as libc::c_int),
            no_linger: libc::linger { l_onoff: 1, l_linger: 0 },
        }
    }

    /// Adds an address of the server. Its index is the next one.
    pub fn add_address(&mut self, address: &Address) {
        self.addresses.push(Box::new(address.raw()));
    }

    /// The linked operations that open a connection, in order, and their number. The rest of the array is unused.
    pub fn operations(&self, token: Token, route: Route) -> ([Entry; MAX_OPERATIONS], usize) {
        let OperationChain { addresses, sources, options, on, send_buffer, receive_buffer, no_linger } = self;
        let SocketOptions { reset_on_close, no_delay, .. } = *options;
        let fd = Fixed(token.slot);
        let address = &addresses[route.address];
        let family = i32::from(address.address_family().as_raw());
        let setup = user_data(token, OperationKind::Setup);
        let nothing = opcode::Nop::new().build();
        let mut chain: [Entry; MAX_OPERATIONS] = std::array::from_fn(|_| nothing.clone());
        let mut length = 0;
        let mut link = |entry: Entry, flags: Flags, user_data| {
            chain[length] = entry.flags(flags).user_data(user_data);
            length += 1;
        };
        let part = Flags::IO_LINK | Flags::SKIP_SUCCESS;
        let slot = DestinationSlot::try_from_slot_target(token.slot).ok();
        link(opcode::Socket::new(family, libc::SOCK_STREAM, 0).file_index(slot).build(), part, setup);
        let mut option = |wanted: bool, level: i32, name: i32, value: *const libc::c_void, size: usize| {
            if wanted {
                let entry = opcode::SetSockOpt::new(fd, level as u32, name as u32, value, size as u32).build();
                link(entry, part, setup);
            }
        };
        let int = |value: &libc::c_int| std::ptr::from_ref(value).cast::<libc::c_void>();
        let linger = std::ptr::from_ref(no_linger).cast();
        option(reset_on_close, libc::SOL_SOCKET, libc::SO_LINGER, linger, size_of::<libc::linger>());
        option(no_delay, libc::IPPROTO_TCP, libc::TCP_NODELAY, int(on), 4);
        option(*send_buffer > 0, libc::SOL_SOCKET, libc::SO_SNDBUF, int(send_buffer), 4);
        option(*receive_buffer > 0, libc::SOL_SOCKET, libc::SO_RCVBUF, int(receive_buffer), 4);
        if let Some(source) = sources.get(route.source) {
            option(true, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, int(on), 4);
            let bind = opcode::Bind::new(fd, source.as_ptr().cast(), source.addr_len()).build();
            link(bind, part, setup);
        }
        let connect = opcode::Connect::new(fd, address.as_ptr().cast(), address.addr_len()).build();
        link(connect, Flags::empty(), user_data(token, OperationKind::Connect));
        (chain, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_data_round_trips() {
        for kind in [
            OperationKind::Setup,
            OperationKind::Connect,
            OperationKind::Receive,
            OperationKind::Send,
            OperationKind::Close,
        ] {
            let token = Token { slot: (1 << 28) - 1, generation: u32::MAX };
            assert_eq!(parse_user_data(user_data(token, kind)), (token, kind));
        }
    }
}
