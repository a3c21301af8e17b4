//! What a ring's operations are known by: the connection they are for, and what they were to do.

use super::Token;

/// More than a ring's table has slots; the bits above a slot's say what the operation was for.
const SLOT_BITS: u32 = 28;

/// What an operation was for; in its user data beside the connection's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A part of a new connection's chain before `Connect`.
    Setup,
    Connect,
    Receive,
    Send,
    /// Nobody waits for it.
    Farewell,
}

/// As the ring is told.
pub fn user_data(token: Token, kind: Kind) -> u64 {
    u64::from(token) | (kind as u64) << SLOT_BITS
}

/// As the ring says it again.
pub fn of_user_data(bits: u64) -> (Token, Kind) {
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
    fn user_data_keeps_token_and_kind() {
        for kind in [Kind::Setup, Kind::Connect, Kind::Receive, Kind::Send, Kind::Farewell] {
            let token = Token { slot: (1 << 28) - 1, generation: u32::MAX };
            assert_eq!(of_user_data(user_data(token, kind)), (token, kind));
        }
    }
}
