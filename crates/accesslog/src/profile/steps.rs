//! Steps that whole numbers are counted in: each number below 128 is one, above that there are 64 to an octave, so a
//! step is at most 1/64 of its numbers wide. What is known only by its step is off by at most 0.8 %.

/// How many numbers an octave is divided into, as a power of two.
const BITS: u32 = 6;

/// How many steps there are.
pub(super) const STEPS: usize = ((64 - BITS as usize) + 1) << BITS;

/// The step that a number belongs to, from 0.
pub(super) fn step(value: u64) -> usize {
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    ((octave as usize) << BITS) + (value >> octave) as usize
}

/// The smallest and the largest number of a step.
#[cfg(test)]
pub(super) fn bounds(step: usize) -> (u64, u64) {
    let octave = (step >> BITS).saturating_sub(1) as u32;
    let mantissa = (step - ((octave as usize) << BITS)) as u64;
    let least = mantissa << octave;
    (least, least + ((1 << octave) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn steps_follow_one_another_without_gaps() {
        let mut next = 0;
        for index in 0..STEPS {
            let (least, most) = bounds(index);
            assert_eq!(least, next, "step {index}");
            assert_eq!((step(least), step(most)), (index, index));
            next = most.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last step ends with the largest number");
    }

    proptest! {
        #[test]
        fn a_step_is_narrow(value: u64) {
            let (least, most) = bounds(step(value));
            prop_assert!((least..=most).contains(&value));
            prop_assert!(most - least <= least / 64);
        }
    }
}
