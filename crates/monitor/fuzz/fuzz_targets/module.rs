//! Parses arbitrary bytes as two readings of a Server Module's file. Checks that nothing panics, and that all metrics
//! derived from the readings are finite.
//!
//! The input consists of pieces of four bytes: an offset (16 bits), a repetition count and a value. Each piece writes
//! its value repeatedly, starting at its offset. Pieces before the first piece of zeros change the first reading; later
//! pieces change the second reading. Initially, both readings are files with three used slots and no requests. Run from
//! `crates/monitor`: `RUSTC_BOOTSTRAP=1 cargo fuzz run module -- -max_total_time=120`.
#![no_main]

use brimful_core::Nanos;
use brimful_core::server::Module;
use brimful_monitor::module::layout::{LAYOUT_VERSION, MAGIC, SLOT_ALIGN, class, header, slot};
use brimful_monitor::module::{ModuleSample, ServerSample};
use brimful_monitor::{PerGroup, Rates, Sample};
use libfuzzer_sys::fuzz_target;

const CLASSES: usize = 2;
const SLOTS: usize = 3;
const HEADER: usize = 896;

fuzz_target!(|input: &[u8]| {
    let mut file = empty();
    let mut pieces = input.chunks_exact(4);
    write(&mut file, pieces.by_ref().take_while(|piece| **piece != [0; 4]));
    let earlier = ServerSample::from_bytes(&file, Nanos::from_secs(10));
    write(&mut file, pieces);
    let later = ServerSample::from_bytes(&file, Nanos::from_secs(11));
    if let (Ok(earlier), Ok(later)) = (earlier, later) {
        let rates = Rates::between(&sample(earlier), &sample(later));
        check(&rates.module.expect("both samples have the group").metrics);
    }
    let _ = ServerSample::from_bytes(input, Nanos::ZERO);
});

fn empty() -> Vec<u8> {
    let slot_size = (slot::CLASSES_OFFSET + CLASSES * class::SIZE).next_multiple_of(SLOT_ALIGN);
    let mut bytes = vec![0; HEADER + SLOTS * slot_size];
    bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
    for (at, word) in [
        (header::LAYOUT_OFFSET, LAYOUT_VERSION),
        (header::HEADER_SIZE_OFFSET, HEADER as u32),
        (header::SLOT_SIZE_OFFSET, slot_size as u32),
        (header::SLOTS_OFFSET, SLOTS as u32),
        (header::CLASSES_OFFSET, CLASSES as u32),
        (header::CPU_ONE_IN_OFFSET, 1),
    ] {
        bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    for index in 0..SLOTS {
        let owners = HEADER + index * slot_size + slot::OWNERS_OFFSET;
        bytes[owners] = 1;
    }
    bytes
}

fn write<'p>(file: &mut [u8], pieces: impl Iterator<Item = &'p [u8]>) {
    for piece in pieces {
        let (at, length) = (usize::from(u16::from_le_bytes([piece[0], piece[1]])), usize::from(piece[2]));
        let end = (at + length).min(file.len());
        file[at.min(end)..end].fill(piece[3]);
    }
}

fn sample(server: ServerSample) -> Sample {
    let module = Some(ModuleSample { servers: vec![server.clone().into()] });
    Sample { at: server.at, groups: PerGroup { module, ..PerGroup::default() }, ..Sample::default() }
}

fn check(module: &Module) {
    // NaN and infinity become null in JSON, and null cannot be parsed as a number.
    let text = serde_json::to_string(module).expect("figures are JSON");
    assert_eq!(serde_json::from_str::<Module>(&text).expect("figures are numbers"), *module);
}
