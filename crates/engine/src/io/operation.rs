//! The user data of ring operations: the connection and the kind of operation.

use super::Token;

/// Bits for the slot, more than a ring's table needs. The bits above them are the kind of operation.
const SLOT_BITS: u32 = 28;

/// The kind of an operation, in its user data beside the connection's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An operation of a new connection's chain before `Connect`.
    Setup,
    Connect,
    Receive,
    Send,
    /// Part of closing a connection; its completion is ignored.
    Farewell,
}

/// The user data of an operation.
pub fn user_data(token: Token, kind: Kind) -> u64 {
    u64::from(token) | (kind as u64) << SLOT_BITS
}

/// The connection and the kind of the operation with this user data.
pub fn parse_user_data(bits: u64) -> (Token, Kind) {
    let Token { slot, generation } = Token::from(bits);
    let kind = match slot >> SLOT_BITS {
        0 => Kind::Setup,
        1 => Kind::Connect,
        2 => Kind::Receive,
        3 => Kind::Send,
        _ => Kind::Farewell,
    };
    (Token { slot: slot & ((1 << SLOT_BITS) - 1), generation }, kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_data_round_trips() {
        for kind in [Kind::Setup, Kind::Connect, Kind::Receive, Kind::Send, Kind::Farewell] {
            let token = Token { slot: (1 << 28) - 1, generation: u32::MAX };
            assert_eq!(parse_user_data(user_data(token, kind)), (token, kind));
        }
    }
}
