//! Loads and attaches eBPF programs, and explains the kernel's refusals.
//!
//! libbpf adapts a program to the running kernel, using the kernel's description of its own types. After attaching, an
//! [`AttachedProgram`] keeps only the descriptor that keeps the program attached, and a mapping of the program's
//! variables. Messages that libbpf would print become part of the error.

use super::EbpfError;
use libbpf_rs::{Iter, Link, MapCore, MapFlags, Object, ObjectBuilder, OpenObject, PrintLevel, ProgramInput};
use mapping::Mapping;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::AtomicU64;

mod mapping;

/// The eBPF programs. The source of each program is `bpf/NAME.bpf.c`.
#[derive(Clone, Copy)]
pub(super) enum Program {
    Connections,
    Requests,
    Tasks,
    Walk,
}

/// A program that the kernel runs at an event. Dropping this value detaches the program.
pub(super) struct AttachedProgram {
    link: Link,
    globals: Option<Mapping>,
}

impl AttachedProgram {
    /// Loads and attaches the program. `settings` contains the bytes of the program's constants, and must have exactly
    /// the size of these constants. `globals` is the size of the program's variables in bytes; 0 without variables.
    pub(super) fn attach(program: Program, settings: &[u8], globals: usize) -> Result<AttachedProgram, EbpfError> {
        load_or_explain(program, || {
            let mut open = open(program)?;
            if let Some(mut constants) = open.maps_mut().find(|map| has_suffix(map.name(), ".rodata")) {
                constants.set_initial_value(settings)?;
            }
            let object = open.load()?;
            let link = object.progs_mut().next().ok_or_else(missing)?.attach()?;
            let globals = if globals > 0 { Some(map_array(&object, ".bss", globals)?) } else { None };
            Ok(AttachedProgram { link, globals })
        })
    }

    /// The program's variables, as words of 64 bits.
    pub(super) fn globals(&self) -> &[AtomicU64] {
        self.globals.as_ref().map_or(&[], Mapping::words)
    }

    /// Starts the iterator program. The returned reader yields the program's output once, from beginning to end.
    pub(super) fn iterate(&self) -> io::Result<impl io::Read> {
        Iter::new(&self.link).map_err(io::Error::other)
    }
}

/// A loaded program that the kernel runs only when brimful calls it.
pub(super) struct CallableProgram {
    object: Object,
    entries: Mapping,
}

impl CallableProgram {
    /// Loads the program. Its map `records` gets room for `entries` entries of `entry` bytes each.
    pub(super) fn load(program: Program, entries: u32, entry: usize) -> Result<CallableProgram, EbpfError> {
        load_or_explain(program, || {
            let mut open = open(program)?;
            open.maps_mut()
                .find(|map| has_suffix(map.name(), "records"))
                .ok_or_else(missing)?
                .set_max_entries(entries)?;
            let object = open.load()?;
            let entries = map_array(&object, "records", entries as usize * entry)?;
            Ok(CallableProgram { object, entries })
        })
    }

    /// Runs the program once, and returns its result.
    pub(super) fn call(&self) -> io::Result<u32> {
        let program = self.object.progs_mut().next().ok_or_else(missing)?;
        let output = program.test_run(ProgramInput::default()).map_err(io::Error::other)?;
        Ok(output.return_value)
    }

    /// The contents of `records`, as words of 64 bits.
    pub(super) fn entries(&self) -> &[AtomicU64] {
        self.entries.words()
    }
}

/// Programs that are attached and detached together, repeatedly, and keep their maps in between. Dropping this value
/// detaches the programs.
pub(super) struct SwitchedPrograms {
    program: Program,
    object: Object,
    links: Vec<Link>,
}

impl SwitchedPrograms {
    /// Loads the programs without attaching them. `settings` contains the bytes of the programs' constants, and must
    /// have exactly the size of these constants. The map `tallies` gets room for `entries` entries.
    pub(super) fn load(program: Program, settings: &[u8], entries: u32) -> Result<SwitchedPrograms, EbpfError> {
        load_or_explain(program, || {
            let mut open = open(program)?;
            open.maps_mut()
                .find(|map| has_suffix(map.name(), ".rodata"))
                .ok_or_else(missing)?
                .set_initial_value(settings)?;
            open.maps_mut()
                .find(|map| has_suffix(map.name(), "tallies"))
                .ok_or_else(missing)?
                .set_max_entries(entries)?;
            Ok(SwitchedPrograms { program, object: open.load()?, links: Vec::new() })
        })
    }

    /// Sets the programs' variables to the bytes `variables`, and attaches either all programs or none. The number of
    /// bytes must be the size of the variables. The first program in the source file detects the begin of requests. It
    /// is attached last, so that the other programs are attached when the first request begins.
    pub(super) fn attach(&mut self, variables: &[u8]) -> Result<(), EbpfError> {
        let SwitchedPrograms { program, object, links } = self;
        links.clear();
        *links = load_or_explain(*program, || {
            let map = object.maps().find(|map| has_suffix(map.name(), ".bss")).ok_or_else(missing)?;
            map.update(&0_u32.to_ne_bytes(), variables, MapFlags::ANY)?;
            let programs: Vec<_> = object.progs_mut().collect();
            programs.iter().rev().map(|program| program.attach()).collect()
        })?;
        Ok(())
    }

    /// Detaches the programs in the order of the source file, so the program that detects the begin of requests is
    /// detached first.
    pub(super) fn detach(&mut self) {
        while self.links.pop().is_some() {}
    }

    /// The bytes of one entry of the map `tallies`, separately for each CPU.
    pub(super) fn entry_of_each_cpu(&self, entry: u32) -> io::Result<Vec<Vec<u8>>> {
        let map = self.object.maps().find(|map| has_suffix(map.name(), "tallies")).ok_or_else(missing)?;
        let found = map.lookup_percpu(&entry.to_ne_bytes(), MapFlags::ANY).map_err(io::Error::other)?;
        found.ok_or_else(missing)
    }
}

fn open(program: Program) -> libbpf_rs::Result<OpenObject> {
    ObjectBuilder::default().name(program.name())?.open_memory(program.object())
}

/// Maps the array whose name ends in `name` into memory. The array must have a size of `bytes` bytes.
fn map_array(object: &Object, name: &str, bytes: usize) -> io::Result<Mapping> {
    let map = object.maps().find(|map| has_suffix(map.name(), name)).ok_or_else(missing)?;
    let size = map.value_size() as usize * map.max_entries() as usize;
    if size == bytes { Mapping::new(map.as_fd(), bytes) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Whether a map's name ends in `ending`. The beginning is ignored, because libbpf puts the program's name there.
fn has_suffix(name: &OsStr, ending: &str) -> bool {
    name.as_encoded_bytes().ends_with(ending.as_bytes())
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Connections => "connections",
            Program::Requests => "requests",
            Program::Tasks => "tasks",
            Program::Walk => "walk",
        }
    }

    /// The first version of Linux with all tracepoints and functions that the program needs.
    fn needs(self) -> &'static str {
        match self {
            Program::Requests => "6.3",
            _ => "5.9",
        }
    }

    fn object(self) -> &'static [u8] {
        match self {
            Program::Connections => include_bytes!(concat!(env!("OUT_DIR"), "/connections.bpf.o")),
            Program::Requests => include_bytes!(concat!(env!("OUT_DIR"), "/requests.bpf.o")),
            Program::Tasks => include_bytes!(concat!(env!("OUT_DIR"), "/tasks.bpf.o")),
            Program::Walk => include_bytes!(concat!(env!("OUT_DIR"), "/walk.bpf.o")),
        }
    }
}

// --- Errors ----------------------------------------------------------------------------------------------------------

thread_local! {
    /// The messages of libbpf since this thread began to load a program. libbpf reports a message on the thread that
    /// called libbpf.
    static LIBBPF_MESSAGES: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Loads a program by calling `load`. If this fails, returns an error that explains the cause to the user.
fn load_or_explain<T>(program: Program, load: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T, EbpfError> {
    static LISTEN: Once = Once::new();
    LISTEN.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, hear)));
    });
    LIBBPF_MESSAGES.with_borrow_mut(String::clear);
    load().map_err(|error| {
        let types = Path::new("/sys/kernel/btf/vmlinux").exists();
        explain(program, &error, &LIBBPF_MESSAGES.take(), types)
    })
}

fn hear(_level: PrintLevel, message: String) {
    LIBBPF_MESSAGES.with_borrow_mut(|said| said.push_str(&message));
}

fn explain(program: Program, error: &libbpf_rs::Error, said: &str, kernel_types: bool) -> EbpfError {
    let (program, needs) = (program.name(), program.needs());
    let lines = || said.lines().map(|line| line.trim().trim_start_matches("libbpf: ")).filter(|line| !line.is_empty());
    let verdict = lines()
        .skip_while(|line| !line.ends_with("-- BEGIN PROG LOAD LOG --"))
        .skip(1)
        .take_while(|line| !line.ends_with("-- END PROG LOAD LOG --"))
        .filter(|line| !line.starts_with("processed "))
        .last();
    let no_hook = lines().find(|line| line.contains("kernel BTF type ID") || line.contains("not found in kernel"));
    match (verdict, no_hook) {
        (Some(verdict), _) => EbpfError::Refused { program, why: verdict.to_owned() },
        (None, _) if error.kind() == libbpf_rs::ErrorKind::PermissionDenied => EbpfError::Permission,
        (None, _) if !kernel_types => EbpfError::NoKernelTypes,
        (None, Some(line)) => EbpfError::TooOld { program, needs, why: line.to_owned() },
        (None, None) => EbpfError::Refused { program, why: lines().next().map_or(error.to_string(), str::to_owned) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::Nanos;
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

    /// Attaches all eBPF programs on a thread that has only these capabilities.
    fn with(capabilities: CapabilitySet) -> [Result<(), EbpfError>; 3] {
        let attempt = move || {
            let none = CapabilitySet::empty();
            let sets = CapabilitySets { effective: capabilities, permitted: capabilities, inheritable: none };
            set_capabilities(None, sets).expect("these tests must run as root");
            let requests =
                crate::ebpf::RequestProbe::load(&[80], 1).and_then(|mut probe| probe.begin(Nanos::ZERO, Nanos::MAX));
            [crate::ebpf::Gauges::attach(&[80], 1).map(drop), crate::ebpf::TaskIterator::open().map(drop), requests]
        };
        std::thread::spawn(attempt).join().unwrap()
    }

    #[test]
    fn two_capabilities_suffice() {
        for attempt in with(CapabilitySet::BPF | CapabilitySet::PERFMON) {
            attempt.unwrap();
        }
    }

    #[test]
    fn a_missing_capability_is_named_with_the_command_that_grants_it() {
        for too_few in [CapabilitySet::empty(), CapabilitySet::BPF, CapabilitySet::PERFMON] {
            for attempt in with(too_few) {
                let error = attempt.unwrap_err();
                assert!(matches!(error, EbpfError::Permission), "{too_few:?}: {error}");
                assert!(error.to_string().contains("sudo setcap cap_bpf,cap_perfmon"), "{error}");
            }
        }
    }

    #[test]
    fn a_refusal_gives_its_reason() {
        let error = |errno| libbpf_rs::Error::from_raw_os_error(errno);
        let explain = |errno, said, types| explain(Program::Tasks, &error(errno), said, types).to_string();
        let verifier = "libbpf: prog 'tasks': BPF program load failed: Permission denied\n\
            libbpf: prog 'tasks': -- BEGIN PROG LOAD LOG --\n0: R1=ctx() R10=fp0\n; return task->no;\n\
            access beyond struct task_struct at off 4711 size 8\nprocessed 1 insns (limit 1000000)\n\
            -- END PROG LOAD LOG --\nlibbpf: failed to load object 'tasks'\n";
        assert!(
            explain(libc::EACCES, verifier, true).contains("`tasks`: access beyond struct task_struct at off 4711")
        );
        assert!(explain(libc::EPERM, "libbpf: Couldn't load trivial BPF program.\n", false).contains("setcap"));
        assert!(explain(libc::ESRCH, "", false).contains("CONFIG_DEBUG_INFO_BTF"));
        let unknown = "libbpf: prog 'tasks': failed to find kernel BTF type ID of 'bpf_iter_task': -3\n";
        assert!(explain(libc::ESRCH, unknown, true).contains("5.9 or newer"));
        let newer = super::explain(Program::Requests, &error(libc::ESRCH), unknown, true).to_string();
        assert!(newer.contains("boot Linux 6.3 or newer"), "{newer}");
        assert!(explain(libc::ENOMEM, "", true).contains("refused eBPF program `tasks`: Cannot allocate memory"));
    }

    #[test]
    fn an_unknown_program_or_function_of_the_kernels_means_that_it_is_too_old() {
        let said = "libbpf: extern (func ksym) 'bpf_iter_task_new': not found in kernel or module BTFs\n";
        let error = explain(Program::Walk, &libbpf_rs::Error::from_raw_os_error(libc::ESRCH), said, true);
        assert!(matches!(error, EbpfError::TooOld { program: "walk", .. }), "{error}");
    }

    #[test]
    fn constants_and_variables_of_another_size_are_refused() {
        for (settings, globals) in [(&[0; 8][..], 2048), (&[0; 40], 8)] {
            assert!(AttachedProgram::attach(Program::Connections, settings, globals).is_err());
        }
        assert!(AttachedProgram::attach(Program::Connections, &[0; 40], 2048).is_ok());
        assert!(CallableProgram::load(Program::Walk, 4, 160).is_err());
        assert!(CallableProgram::load(Program::Walk, 4, 168).is_ok());
    }
}
