//! Where everything is in a file of the Server Module: what `server-module/layout.h` says, once more. A test compiles
//! that header and compares each offset.
//!
//! All offsets and sizes are bytes; words are unsigned, in the byte order of the machine. The file is a header, then
//! slots, each with as many classes as the header says. What foreign bytes say of sizes is believed within
//! [`Header::parse`]'s limits only.

/// The first word of a file, "brimful1" in memory on a little-endian machine. It is written last.
pub const MAGIC: u64 = 0x316c_7566_6d69_7262;
/// The layout that is described here.
pub const LAYOUT: u32 = 4;
/// Classes that a file has at most.
pub const MAX_CLASSES: usize = 16;
/// Bytes of a name, a zero byte at its end included.
pub const NAME_BYTES: usize = 48;
/// Of each phase's times.
pub const BUCKETS: usize = 112;
/// What sizes of header and slots are multiples of.
pub const SLOT_ALIGN: usize = 128;
/// Requests of a slot that its sums do not have yet, at most.
pub const PENDING: usize = 16;
/// Phases of a request: head, parse, process, upstream, send, log.
pub const PHASES: usize = 6;
/// Phases that CPU time is measured of: parse, process, log.
pub const CPUS: usize = 3;

/// Slots of a file at most. A slot is one worker or thread.
pub const MAX_SLOTS: usize = 4096;
/// Bytes of a file at most, up to the end of its last slot.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
/// Bytes before the first slot, at most.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// Bytes of a slot, at most.
const MAX_SLOT_BYTES: usize = 256 << 10;

/// Offsets in the header.
pub mod header {
    /// 64 bits.
    pub const MAGIC: usize = 0;
    /// 32 bits, as all up to `MADE_NS`.
    pub const LAYOUT: usize = 8;
    /// Bytes before the first slot.
    pub const HEADER_SIZE: usize = 12;
    /// Bytes of a slot.
    pub const SLOT_SIZE: usize = 16;
    /// How many slots.
    pub const SLOTS: usize = 20;
    /// How many classes.
    pub const CLASSES: usize = 24;
    /// 0: nothing is recorded.
    pub const ENABLED: usize = 28;
    /// CPU time of one request in so many.
    pub const CPU_ONE_IN: usize = 32;
    /// Requests or connections at a time at most.
    pub const WORKERS_MOST: usize = 36;
    /// Who made the file.
    pub const MASTER_PID: usize = 40;
    /// Workers that found no slot.
    pub const LOST: usize = 44;
    /// 64 bits, CLOCK_REALTIME.
    pub const MADE_NS: usize = 48;
    /// The server's name.
    pub const SERVER: usize = 56;
    /// The classes' names, one after the other.
    pub const CLASS_NAMES: usize = SERVER + super::NAME_BYTES;
    /// Of all of it, before it is rounded up.
    pub const SIZE: usize = CLASS_NAMES + super::MAX_CLASSES * super::NAME_BYTES;
}

/// Offsets in a slot; 64 bits each but for the first two.
pub mod slot {
    /// 32 bits: a process id in the server's namespace; 0: nobody.
    pub const OWNER: usize = 0;
    /// 32 bits: a thread id.
    pub const THREAD: usize = 4;
    /// How many there have been.
    pub const OWNERS: usize = 8;
    /// Connections accepted.
    pub const CONNECTIONS: usize = 16;
    /// Requests at this moment.
    pub const IN_PROGRESS: usize = 24;
    /// CLOCK_MONOTONIC; 0: idle.
    pub const BUSY_SINCE_NS: usize = 32;
    /// Before that.
    pub const BUSY_NS: usize = 40;
    /// Requests, of all owners.
    pub const RECORDED: usize = 48;
    /// How many of them the sums have, from the bit [`FOLDED_COUNT`](super::FOLDED_COUNT) on; below, a bit for each class,
    /// which of its sums are current.
    pub const FOLDED: usize = 56;
    /// Of what each request writes to.
    pub const LINE: usize = 64;
    /// CPU time of the thread.
    pub const CPU_NS: usize = 64;
    /// When that was read.
    pub const CPU_AT_NS: usize = 72;
    /// Requests that are not in the sums: the n-th of all is in place n % [`PENDING`](super::PENDING).
    pub const PENDING: usize = 128;
    /// The classes, one after the other.
    pub const CLASSES: usize = PENDING + super::PENDING * super::pending::SIZE;
}

/// The lowest bit of a slot's `FOLDED` that tells how many requests its sums have.
pub const FOLDED_COUNT: u32 = 16;

/// Offsets in a place of a pending request; 64 bits each.
pub mod pending {
    /// See [`what`](super::what).
    pub const WHAT: usize = 0;
    /// Bytes of its body.
    pub const BYTES: usize = 8;
    /// Each phase's time.
    pub const TIME_NS: usize = 16;
    /// Of all of it.
    pub const SIZE: usize = TIME_NS + 8 * super::PHASES;
}

/// Bits of a pending request's `WHAT`.
pub mod what {
    /// Its class.
    pub const CLASS: u64 = 0xff;
    /// Answered with 5xx.
    pub const FAILED: u64 = 1 << 8;
    /// Given up by the client.
    pub const ABORTED: u64 = 1 << 9;
    /// The lowest of those that tell of each phase whether its time is known.
    pub const HAS: u32 = 16;
    /// The lowest of those that tell how often it was taken up again.
    pub const RESUMED: u32 = 32;
}

/// Offsets in the sums of a class; 64 bits each.
pub mod sums {
    /// Requests.
    pub const REQUESTS: usize = 0;
    /// Bytes of bodies.
    pub const BYTES: usize = 8;
    /// Answered with 5xx.
    pub const FAILED: usize = 16;
    /// Given up by the client.
    pub const ABORTED: usize = 24;
    /// The phases, one after the other.
    pub const TIMES: usize = 32;
    /// How often they were taken up again.
    pub const RESUMED: usize = TIMES + super::PHASES * super::times::SIZE;
    /// Of all of it; the last word has no meaning.
    pub const SIZE: usize = RESUMED + 2 * 8;
}

/// Offsets in a class; 64 bits each.
pub mod class {
    /// Its sums, twice.
    pub const SUMS: usize = 0;
    /// Requests whose CPU time was measured.
    pub const CPU_COUNT: usize = SUMS + 2 * super::sums::SIZE;
    /// Of each of [`CPUS`](super::CPUS).
    pub const CPU_NS: usize = CPU_COUNT + 8;
    /// Of the squares, square microseconds.
    pub const CPU_SUM_US2: usize = CPU_NS + 8 * super::CPUS;
    /// Requests whose thread worked on others in between.
    pub const CPU_MIXED: usize = CPU_SUM_US2 + 8;
    /// How many of each length, of each phase one after the other. The ten words before have no meaning.
    pub const BUCKETS: usize = CPU_MIXED + 11 * 8;
    /// Of all of it.
    pub const SIZE: usize = BUCKETS + super::PHASES * BUCKETS_SIZE;
    /// Of one phase's buckets.
    pub const BUCKETS_SIZE: usize = 8 * super::BUCKETS;
}

/// Offsets in the times of a phase; 64 bits each.
pub mod times {
    /// Requests that had it.
    pub const COUNT: usize = 0;
    /// Of them all.
    pub const SUM_NS: usize = 8;
    /// Of the squares, square microseconds.
    pub const SUM_US2: usize = 16;
    /// Of all of it.
    pub const SIZE: usize = 24;
}

/// What the header of a file says, as far as it may be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes before the first slot.
    pub header_size: usize,
    /// Bytes of a slot.
    pub slot_size: usize,
    /// How many slots.
    pub slots: usize,
    /// Whether requests are recorded.
    pub enabled: bool,
    /// CPU time is measured of one request in so many; 0 of none.
    pub cpu_one_in: u32,
    /// How many requests or connections the server works on at a time at most; 0 if it has no such limit.
    pub workers_most: u32,
    /// The process that created the file or adopted it last, by its id in the server's PID namespace.
    pub master_pid: u32,
    /// Workers that found no slot.
    pub lost: u32,
    /// When the file was made: CLOCK_REALTIME.
    pub made_ns: u64,
    /// What the server calls itself.
    pub server: String,
    /// Names of its classes, one or more.
    pub classes: Vec<String>,
}

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// It is something else, or not whole yet.
    #[error("it is no file of the Server Module, or an unfinished one: name that of the server's `brimful` directive")]
    Foreign,
    /// By another version.
    #[error("it has layout {0}, and this brimful reads {LAYOUT}: build the module anew with `brimful module install`")]
    Layout(u32),
    /// Its parts cannot be of these sizes.
    #[error("its header is damaged ({0}): restart the server, which makes a new one")]
    Damaged(&'static str),
}

impl Header {
    /// Reads the first bytes of a file of this length: at least [`header::SIZE`] of them, or all there are.
    ///
    /// # Errors
    /// It is another kind of file; or its parts, as many and as large as it says, are not in it, or more than any server
    /// needs.
    pub fn parse(bytes: &[u8], file_length: u64) -> Result<Header, LayoutError> {
        let word = |at| word32(bytes, at).ok_or(LayoutError::Foreign);
        if word64(bytes, header::MAGIC) != Some(MAGIC) {
            return Err(LayoutError::Foreign);
        }
        let layout = word(header::LAYOUT)?;
        if layout != LAYOUT {
            return Err(LayoutError::Layout(layout));
        }
        let size = |at| word(at).map(|size| size as usize);
        let (header_size, slot_size) = (size(header::HEADER_SIZE)?, size(header::SLOT_SIZE)?);
        let (slots, classes) = (size(header::SLOTS)?, size(header::CLASSES)?);
        if !(1..=MAX_CLASSES).contains(&classes) {
            return Err(LayoutError::Damaged("number of classes"));
        }
        if !(header::SIZE..=MAX_HEADER_BYTES).contains(&header_size) || !header_size.is_multiple_of(SLOT_ALIGN) {
            return Err(LayoutError::Damaged("size of the header"));
        }
        let least = slot::CLASSES + classes * class::SIZE;
        if !(least..=MAX_SLOT_BYTES).contains(&slot_size) || !slot_size.is_multiple_of(SLOT_ALIGN) {
            return Err(LayoutError::Damaged("size of a slot"));
        }
        if !(1..=MAX_SLOTS).contains(&slots) {
            return Err(LayoutError::Damaged("number of slots"));
        }
        let end = header_size as u64 + slots as u64 * slot_size as u64;
        if end > MAX_FILE_BYTES {
            return Err(LayoutError::Damaged("size of all slots"));
        }
        if end > file_length {
            return Err(LayoutError::Damaged("it ends before its last slot"));
        }
        let class_name =
            |class: usize| name(bytes, header::CLASS_NAMES + class * NAME_BYTES).ok_or(LayoutError::Foreign);
        Ok(Header {
            header_size,
            slot_size,
            slots,
            enabled: word(header::ENABLED)? != 0,
            cpu_one_in: word(header::CPU_ONE_IN)?,
            workers_most: word(header::WORKERS_MOST)?,
            master_pid: word(header::MASTER_PID)?,
            lost: word(header::LOST)?,
            made_ns: word64(bytes, header::MADE_NS).ok_or(LayoutError::Foreign)?,
            server: name(bytes, header::SERVER).ok_or(LayoutError::Foreign)?,
            classes: (0..classes).map(class_name).collect::<Result<_, _>>()?,
        })
    }

    /// Where a slot begins.
    pub fn slot_at(&self, slot: usize) -> u64 {
        self.header_size as u64 + slot as u64 * self.slot_size as u64
    }
}

/// 64 bits at an offset, if they are there.
pub fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// 32 bits at an offset, if they are there.
pub fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// A name up to its zero byte, whatever it is made of.
fn name(bytes: &[u8], at: usize) -> Option<String> {
    let field = bytes.get(at..at.checked_add(NAME_BYTES)?)?;
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
    Some(String::from_utf8_lossy(&field[..end]).into_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;
    use std::process::Command;

    /// A header of this shape, and nothing else.
    pub fn header_bytes(slots: u32, classes: u32) -> Vec<u8> {
        let mut bytes = vec![0; 896];
        let slot_size = (slot::CLASSES + classes as usize * class::SIZE).next_multiple_of(SLOT_ALIGN) as u32;
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        for (at, word) in [
            (header::LAYOUT, LAYOUT),
            (header::HEADER_SIZE, 896),
            (header::SLOT_SIZE, slot_size),
            (header::SLOTS, slots),
            (header::CLASSES, classes),
            (header::ENABLED, 1),
        ] {
            bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes[header::SERVER..header::SERVER + 9].copy_from_slice(b"test/1\xff\x1b\0");
        bytes[header::CLASS_NAMES..header::CLASS_NAMES + NAME_BYTES].fill(b'x');
        bytes
    }

    #[test]
    fn a_header_says_what_is_in_the_file() {
        let bytes = header_bytes(3, 2);
        let slot_size = (slot::CLASSES + 2 * class::SIZE).next_multiple_of(SLOT_ALIGN);
        let length = 896 + 3 * slot_size as u64;
        let header = Header::parse(&bytes, length).unwrap();
        assert_eq!((header.slots, header.slot_size, header.enabled), (3, slot_size, true));
        assert_eq!(header.server, "test/1\u{fffd}\x1b");
        assert_eq!(
            header.classes,
            ["x".repeat(NAME_BYTES), String::new()],
            "a name without an end ends with its field"
        );
        assert_eq!(header.slot_at(2), length - slot_size as u64);
        assert_eq!(Header::parse(&bytes, length - 1), Err(LayoutError::Damaged("it ends before its last slot")));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let with = |at: usize, word: u32| {
            let mut bytes = header_bytes(3, 2);
            bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
            Header::parse(&bytes, u64::MAX).unwrap_err()
        };
        assert_eq!(with(header::MAGIC, 7), LayoutError::Foreign);
        assert_eq!(with(header::LAYOUT, 1), LayoutError::Layout(1));
        for (at, words) in [
            (header::CLASSES, &[0, 17, u32::MAX][..]),
            (header::HEADER_SIZE, &[0, 768, 897, u32::MAX]),
            (header::SLOT_SIZE, &[0, 128, 11_521, u32::MAX]),
            (header::SLOTS, &[0, 4097, u32::MAX]),
        ] {
            assert!(words.iter().all(|&word| matches!(with(at, word), LayoutError::Damaged(_))), "{at}");
        }
        for length in 0..header::CLASS_NAMES + 2 * NAME_BYTES {
            assert!(Header::parse(&header_bytes(3, 2)[..length], u64::MAX).is_err(), "{length}");
        }
    }

    /// What the C compiler makes of `layout.h`: `struct.field offset size`, `struct - size`, `CONSTANT = value`,
    /// `bucket n start`.
    fn layout_in_c() -> Vec<String> {
        let server_module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../server-module");
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("offsets");
        let compiled = Command::new("cc")
            .args(["-std=gnu11", "-o"])
            .arg(&program)
            .arg(server_module.join("tests/offsets.c"))
            .output()
            .expect("a C compiler: apt install gcc");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let printed = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
        printed.lines().map(str::to_owned).collect()
    }

    fn layout_here() -> Vec<String> {
        let fields = |of: &str, size: usize, fields: &[(&str, usize, usize)]| {
            let field = |(name, at, size): &(&str, usize, usize)| format!("brimful_{of}.{name} {at} {size}");
            fields.iter().map(field).chain([format!("brimful_{of} - {size}")]).collect::<Vec<_>>()
        };
        let header = [
            ("magic", header::MAGIC, 8),
            ("layout", header::LAYOUT, 4),
            ("header_size", header::HEADER_SIZE, 4),
            ("slot_size", header::SLOT_SIZE, 4),
            ("slots", header::SLOTS, 4),
            ("classes", header::CLASSES, 4),
            ("enabled", header::ENABLED, 4),
            ("cpu_one_in", header::CPU_ONE_IN, 4),
            ("workers_most", header::WORKERS_MOST, 4),
            ("master_pid", header::MASTER_PID, 4),
            ("lost", header::LOST, 4),
            ("made_ns", header::MADE_NS, 8),
            ("server", header::SERVER, NAME_BYTES),
            ("class_names", header::CLASS_NAMES, MAX_CLASSES * NAME_BYTES),
        ];
        let slot = [
            ("owner", slot::OWNER, 4),
            ("thread", slot::THREAD, 4),
            ("owners", slot::OWNERS, 8),
            ("connections", slot::CONNECTIONS, 8),
            ("in_progress", slot::IN_PROGRESS, 8),
            ("busy_since_ns", slot::BUSY_SINCE_NS, 8),
            ("busy_ns", slot::BUSY_NS, 8),
            ("recorded", slot::RECORDED, 8),
            ("folded", slot::FOLDED, 8),
            ("cpu_ns", slot::CPU_NS, 8),
            ("cpu_at_ns", slot::CPU_AT_NS, 8),
            ("pending", slot::PENDING, PENDING * pending::SIZE),
            ("classes", slot::CLASSES, 0),
        ];
        let place =
            [("what", pending::WHAT, 8), ("bytes", pending::BYTES, 8), ("time_ns", pending::TIME_NS, 8 * PHASES)];
        let sum = [
            ("requests", sums::REQUESTS, 8),
            ("bytes", sums::BYTES, 8),
            ("failed", sums::FAILED, 8),
            ("aborted", sums::ABORTED, 8),
            ("times", sums::TIMES, PHASES * times::SIZE),
            ("resumed", sums::RESUMED, 8),
        ];
        let class = [
            ("sums", class::SUMS, 2 * sums::SIZE),
            ("cpu_count", class::CPU_COUNT, 8),
            ("cpu_ns", class::CPU_NS, 8 * CPUS),
            ("cpu_sum_us2", class::CPU_SUM_US2, 8),
            ("cpu_mixed", class::CPU_MIXED, 8),
            ("buckets", class::BUCKETS, PHASES * class::BUCKETS_SIZE),
        ];
        let times = [("count", times::COUNT, 8), ("sum_ns", times::SUM_NS, 8), ("sum_us2", times::SUM_US2, 8)];
        let constants = [
            ("MAGIC", MAGIC),
            ("LAYOUT", LAYOUT.into()),
            ("MAX_CLASSES", MAX_CLASSES as u64),
            ("NAME_BYTES", NAME_BYTES as u64),
            ("BUCKETS", BUCKETS as u64),
            ("SLOT_ALIGN", SLOT_ALIGN as u64),
            ("PENDING", PENDING as u64),
            ("WHAT_CLASS", what::CLASS),
            ("WHAT_FAILED", what::FAILED),
            ("WHAT_ABORTED", what::ABORTED),
            ("WHAT_HAS", what::HAS.into()),
            ("WHAT_RESUMED", what::RESUMED.into()),
            ("FOLDED_COUNT", FOLDED_COUNT.into()),
            ("MAX_SLOTS", MAX_SLOTS as u64),
            ("MAX_FILE_BYTES", MAX_FILE_BYTES),
            ("HEAD", 0),
            ("PARSE", 1),
            ("PROCESS", 2),
            ("UPSTREAM", 3),
            ("SEND", 4),
            ("LOG", 5),
            ("PHASES", PHASES as u64),
            ("CPU_PARSE", 0),
            ("CPU_PROCESS", 1),
            ("CPU_LOG", 2),
            ("CPUS", CPUS as u64),
        ];
        let mut lines = fields("header", header::SIZE, &header);
        lines.extend(fields("slot", slot::CLASSES, &slot));
        lines.extend(fields("pending", pending::SIZE, &place));
        lines.extend(fields("sums", sums::SIZE, &sum));
        lines.extend(fields("class", class::SIZE, &class));
        lines.extend(fields("times", times::SIZE, &times));
        lines.extend(constants.map(|(name, value)| format!("BRIMFUL_{name} = {value}")));
        lines.extend((1..BUCKETS).map(|bucket| format!("bucket {bucket} {}", crate::module::start_ns(bucket))));
        lines
    }

    #[test]
    fn the_layout_is_that_of_the_recorder() {
        let (mut there, mut here) = (layout_in_c(), layout_here());
        // What no reader needs, and what follows from the rest.
        let told = |line: &String| {
            ![
                "brimful_slot.unused",
                "brimful_sums.unused",
                "brimful_class.unused",
                "header_size =",
                "slot_size_",
                "bucket 0 ",
            ]
            .iter()
            .any(|of| line.starts_with(of))
        };
        there.retain(told);
        there.sort_unstable();
        here.sort_unstable();
        assert_eq!(there, here);
    }

    proptest! {
        #[test]
        fn no_header_panics_and_none_reaches_beyond_its_file(
            places in proptest::collection::vec((0_usize..896, any::<u8>()), 0..40), length in any::<u64>(),
            cut in 0_usize..=896,
        ) {
            let mut bytes = header_bytes(3, 2);
            for (at, byte) in places {
                bytes[at] = byte;
            }
            if let Ok(header) = Header::parse(&bytes[..cut], length) {
                prop_assert!(header.slot_at(header.slots) <= length);
                prop_assert!(header.classes.len() * class::SIZE + slot::CLASSES <= header.slot_size);
            }
        }
    }
}
