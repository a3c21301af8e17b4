//! The user data of ring operations: identifies the connection and the kind of operation.

use super::Token;

/// Number of bits for the slot, more than a ring's table needs. The bits above them hold the kind of operation.
const SLOT_BITS: u32 = 28;

/// The kind of an operation. It is stored in the operation's user data together with the connection's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// An operation that precedes `Connect` in the chain that opens a connection.
    Setup,
    Connect,
    Receive,
    Send,
    /// An operation that closes a connection; its completion is ignored.
    Farewell,
}

/// The user data of an operation.
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
        _ => OperationKind::Farewell,
    };
    (Token { slot: slot & ((1 << SLOT_BITS) - 1), generation }, kind)
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
            OperationKind::Farewell,
        ] {
            let token = Token { slot: (1 << 28) - 1, generation: u32::MAX };
            assert_eq!(parse_user_data(user_data(token, kind)), (token, kind));
        }
    }
}
