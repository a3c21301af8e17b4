//! Replaces `object.rs` in a build without the feature `ebpf`: every program fails to load.

use super::EbpfError;
use std::io;
use std::sync::atomic::AtomicU64;

/// The eBPF programs: the same names as in `object.rs`.
#[derive(Clone, Copy)]
pub(super) enum Program {
    Connections,
    Requests,
    Tasks,
    Walk,
}

/// This type has no values, because no program can be attached.
pub(super) enum AttachedProgram {}

impl AttachedProgram {
    /// Returns an error: this build has no eBPF.
    pub(super) fn attach(_program: Program, _settings: &[u8], _globals: usize) -> Result<AttachedProgram, EbpfError> {
        Err(EbpfError::NotBuilt)
    }

    /// Never called, because no value of this type exists.
    pub(super) fn globals(&self) -> &[AtomicU64] {
        match *self {}
    }

    /// Never called, because no value of this type exists.
    pub(super) fn iterate(&self) -> io::Result<io::Empty> {
        match *self {}
    }
}

/// This type has no values, because no program can be loaded.
pub(super) enum CallableProgram {}

impl CallableProgram {
    /// Returns an error: this build has no eBPF.
    pub(super) fn load(_program: Program, _entries: u32, _entry: usize) -> Result<CallableProgram, EbpfError> {
        Err(EbpfError::NotBuilt)
    }

    /// Never called, because no value of this type exists.
    pub(super) fn call(&self) -> io::Result<u32> {
        match *self {}
    }

    /// Never called, because no value of this type exists.
    pub(super) fn entries(&self) -> &[AtomicU64] {
        match *self {}
    }
}

/// This type has no values, because no program can be loaded.
pub(super) enum SwitchedPrograms {}

impl SwitchedPrograms {
    /// Returns an error: this build has no eBPF.
    pub(super) fn load(_program: Program, _settings: &[u8], _entries: u32) -> Result<SwitchedPrograms, EbpfError> {
        Err(EbpfError::NotBuilt)
    }

    /// Never called, because no value of this type exists.
    pub(super) fn attach(&mut self, _variables: &[u8]) -> Result<(), EbpfError> {
        match *self {}
    }

    /// Never called, because no value of this type exists.
    pub(super) fn detach(&mut self) {
        match *self {}
    }

    /// Never called, because no value of this type exists.
    pub(super) fn entry_of_each_cpu(&self, _entry: u32) -> io::Result<Vec<Vec<u8>>> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use crate::ebpf::{Gauges, RequestProbe, TaskIterator};

    #[test]
    fn it_says_how_to_build_it() {
        let says = |error: super::EbpfError| assert!(error.to_string().ends_with("build it with --features ebpf"));
        says(Gauges::attach(&[80], 1).err().unwrap());
        says(RequestProbe::load(&[80], 1).err().unwrap());
        says(TaskIterator::open().err().unwrap());
    }
}
