//! A panic as a value: a defect in one part of the program must not lose what the others have measured.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`, and returns the message of its panic if it panics.
///
/// What `body` was changing then may be half changed. The caller keeps only what is still worth reading, and says that
/// there was a panic.
///
/// # Errors
/// The message of the panic.
pub fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| message(&*payload))
}

/// The message in the payload of a panic, as `JoinHandle::join` returns it.
pub fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it gave no reason".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message_and_a_result_stays_one() {
        assert_eq!(caught(|| 7), Ok(7));
        assert_eq!(caught(|| panic!("fixed")), Err::<(), _>("fixed".to_owned()));
        assert_eq!(caught(|| panic!("slot {}", 3)), Err::<(), _>("slot 3".to_owned()));
        assert_eq!(caught(|| std::panic::panic_any(3)), Err::<(), _>("it gave no reason".to_owned()));
    }
}
