//! Converts panics to errors, so that a bug in one part of the program does not discard the measurements of other
//! parts.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Runs `body` and catches its panic.
///
/// After a panic, data that `body` was changing may be inconsistent. The caller must not use such data, and must report
/// the panic.
///
/// # Errors
/// Returns the message of the panic if `body` panics.
pub fn catch_panic<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| message(&*payload))
}

/// Locks a mutex, and ignores poisoning: the lock succeeds even if another thread panicked while it held the lock. That
/// panic is reported elsewhere, and the other threads should continue.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the message of a panic. `payload` is the error of `JoinHandle::join`.
pub fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it gave no reason".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message_and_a_result_stays_one() {
        assert_eq!(catch_panic(|| 7), Ok(7));
        assert_eq!(catch_panic(|| panic!("fixed")), Err::<(), _>("fixed".to_owned()));
        assert_eq!(catch_panic(|| panic!("slot {}", 3)), Err::<(), _>("slot 3".to_owned()));
        assert_eq!(catch_panic(|| std::panic::panic_any(3)), Err::<(), _>("it gave no reason".to_owned()));
    }
}
