//! Loading and attaching a program, and what the kernel says when it does not want it.
//!
//! libbpf fits the program to the running kernel, reading the kernel's description of its types on the way; all of that
//! is given back at once, and what stays is a descriptor that keeps the program attached and a mapping of its variables.
//! libbpf would print what goes wrong; here it becomes the error.

use super::EbpfError;
use libbpf_rs::{Iter, Link, MapCore, ObjectBuilder, PrintLevel};
use mapping::Mapping;
use std::cell::RefCell;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::AtomicU64;

mod mapping;

/// The programs there are.
#[derive(Clone, Copy)]
pub(super) enum Program {
    Connections,
    Tasks,
}

/// A program at work; it is detached when this is dropped.
pub(super) struct Attached {
    link: Link,
    globals: Option<Mapping>,
}

impl Attached {
    /// Loads and attaches the program. `settings` becomes its constants, which must be as many bytes; `globals` is the
    /// size of its variables in bytes, 0 if it has none.
    pub(super) fn attach(program: Program, settings: &[u8], globals: usize) -> Result<Attached, EbpfError> {
        SAID.with_borrow_mut(String::clear);
        static LISTEN: Once = Once::new();
        LISTEN.call_once(|| {
            libbpf_rs::set_print(Some((PrintLevel::Warn, hear)));
        });
        load(program, settings, globals).map_err(|error| {
            let types = Path::new("/sys/kernel/btf/vmlinux").exists();
            explain(program, &error, &SAID.take(), types)
        })
    }

    /// The program's variables, in words of 64 bits.
    pub(super) fn globals(&self) -> &[AtomicU64] {
        self.globals.as_ref().map_or(&[], Mapping::words)
    }

    /// Begins to run an iterator; what it writes can be read to the end once.
    pub(super) fn pass(&self) -> io::Result<impl io::Read> {
        Iter::new(&self.link).map_err(io::Error::other)
    }
}

fn load(program: Program, settings: &[u8], globals: usize) -> libbpf_rs::Result<Attached> {
    let mut open = ObjectBuilder::default().name(program.name())?.open_memory(program.object())?;
    if let Some(mut constants) = open.maps_mut().find(|map| map.name().as_encoded_bytes().ends_with(b".rodata")) {
        constants.set_initial_value(settings)?;
    }
    let object = open.load()?;
    let variables = object.maps().find(|map| map.name().as_encoded_bytes().ends_with(b".bss"));
    let globals = match variables {
        Some(map) if map.value_size() as usize == globals => Some(Mapping::of(map.as_fd(), globals)?),
        None if globals == 0 => None,
        _ => return Err(io::Error::from(io::ErrorKind::InvalidData).into()),
    };
    let link = object.progs_mut().next().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?.attach()?;
    Ok(Attached { link, globals })
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Connections => "connections",
            Program::Tasks => "tasks",
        }
    }

    fn object(self) -> &'static [u8] {
        match self {
            Program::Connections => include_bytes!(concat!(env!("OUT_DIR"), "/connections.bpf.o")),
            Program::Tasks => include_bytes!(concat!(env!("OUT_DIR"), "/tasks.bpf.o")),
        }
    }
}

// --- What went wrong -------------------------------------------------------------------------------------------------

thread_local! {
    /// What libbpf said while this thread loaded a program. It speaks on the thread that called it.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

fn hear(_level: PrintLevel, message: String) {
    SAID.with_borrow_mut(|said| said.push_str(&message));
}

fn explain(program: Program, error: &libbpf_rs::Error, said: &str, kernel_types: bool) -> EbpfError {
    let program = program.name();
    let lines = || said.lines().map(|line| line.trim().trim_start_matches("libbpf: ")).filter(|line| !line.is_empty());
    let verdict = lines()
        .skip_while(|line| !line.ends_with("-- BEGIN PROG LOAD LOG --"))
        .skip(1)
        .take_while(|line| !line.ends_with("-- END PROG LOAD LOG --"))
        .filter(|line| !line.starts_with("processed "))
        .last();
    let no_hook = lines().find(|line| line.contains("failed to find kernel BTF type ID"));
    match (verdict, no_hook) {
        (Some(verdict), _) => EbpfError::Refused { program, why: verdict.to_owned() },
        (None, _) if error.kind() == libbpf_rs::ErrorKind::PermissionDenied => EbpfError::Permission,
        (None, _) if !kernel_types => EbpfError::NoKernelTypes,
        (None, Some(line)) => EbpfError::TooOld { program, why: line.to_owned() },
        (None, None) => EbpfError::Refused { program, why: lines().next().map_or(error.to_string(), str::to_owned) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

    /// Tries to attach both programs on a thread that has these capabilities only.
    fn with(capabilities: CapabilitySet) -> [Result<(), EbpfError>; 2] {
        let attempt = move || {
            let none = CapabilitySet::empty();
            let sets = CapabilitySets { effective: capabilities, permitted: capabilities, inheritable: none };
            set_capabilities(None, sets).expect("these tests must run as root");
            [crate::ebpf::Gauges::attach(&[80], 1).map(drop), crate::ebpf::TaskIterator::open().map(drop)]
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
        assert!(explain(libc::ENOMEM, "", true).contains("refused eBPF program `tasks`: Cannot allocate memory"));
    }

    #[test]
    fn constants_and_variables_of_another_size_are_refused() {
        for (settings, globals) in [(&[0; 8][..], 2048), (&[0; 40], 8), (&[0; 40], 0)] {
            assert!(Attached::attach(Program::Connections, settings, globals).is_err());
        }
        assert!(Attached::attach(Program::Connections, &[0; 40], 2048).is_ok());
    }
}
