//! The layout of a file of the Server Module: the same as in `server-module/layout.h`. A test compiles that header and
//! compares each offset.
//!
//! All offsets and sizes are in bytes. Words are unsigned, in the byte order of the machine. The file is a header
//! followed by slots. The header states the number of slots, and the number of classes in each slot. Sizes in the file
//! are accepted only within the limits of [`Header::parse`].

/// The first word of a file: "brimful1" in memory on a little-endian machine. The server writes this word last, so a
/// file with this word is complete.
pub const MAGIC: u64 = 0x316c_7566_6d69_7262;
/// The version of this layout.
pub const LAYOUT_VERSION: u32 = 4;
/// Maximum number of request classes in a file.
pub const MAX_CLASSES: usize = 16;
/// Number of bytes of a name, including the zero byte at its end.
pub const NAME_BYTES: usize = 48;
/// Number of buckets for the times of each phase.
pub const BUCKETS: usize = 112;
/// The sizes of the header and of slots are multiples of this number of bytes.
pub const SLOT_ALIGN: usize = 128;
/// Maximum number of pending requests in a slot. A pending request has ended, but is not included in the sums yet.
pub const MAX_PENDING: usize = 16;
/// Number of phases of a request: head, parse, process, upstream, send, log.
pub const PHASES: usize = 6;
/// Number of phases for which CPU time is measured: parse, process, log.
pub const CPU_PHASES: usize = 3;

/// Maximum number of slots in a file. A slot contains the counters of one worker process or thread.
pub const MAX_SLOTS: usize = 4096;
/// Maximum size of a file in bytes, up to the end of its last slot.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
/// Maximum number of bytes before the first slot.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// Maximum size of a slot in bytes.
const MAX_SLOT_BYTES: usize = 256 << 10;

/// Offsets of the header's fields in the file.
pub mod header {
    /// Offset of the word [`MAGIC`](super::MAGIC), which has 64 bits.
    pub const MAGIC_OFFSET: usize = 0;
    /// Offset of the version of the layout. This word and all following words before `CREATED_NS_OFFSET` have 32 bits.
    pub const LAYOUT_OFFSET: usize = 8;
    /// Offset of the number of bytes before the first slot.
    pub const HEADER_SIZE_OFFSET: usize = 12;
    /// Offset of the size of a slot in bytes.
    pub const SLOT_SIZE_OFFSET: usize = 16;
    /// Offset of the number of slots.
    pub const SLOTS_OFFSET: usize = 20;
    /// Offset of the number of request classes.
    pub const CLASSES_OFFSET: usize = 24;
    /// Offset of the switch: 1 if requests are recorded, otherwise 0.
    pub const ENABLED_OFFSET: usize = 28;
    /// Offset of the sampling ratio n: CPU time is measured for one in n requests on average.
    pub const CPU_ONE_IN_OFFSET: usize = 32;
    /// Offset of the maximum number of requests or connections that the server handles at a time.
    pub const WORKERS_MOST_OFFSET: usize = 36;
    /// Offset of the process id of the process that created the file or adopted it last.
    pub const MASTER_PID_OFFSET: usize = 40;
    /// Offset of the number of workers that found no free slot.
    pub const LOST_OFFSET: usize = 44;
    /// Offset of the file's creation time, 64 bits, in nanoseconds of CLOCK_REALTIME.
    pub const CREATED_NS_OFFSET: usize = 48;
    /// Offset of the server's name.
    pub const SERVER_OFFSET: usize = 56;
    /// Offset of the names of the request classes, which follow one another.
    pub const CLASS_NAMES_OFFSET: usize = SERVER_OFFSET + super::NAME_BYTES;
    /// Size of the header, before it is rounded up.
    pub const SIZE: usize = CLASS_NAMES_OFFSET + super::MAX_CLASSES * super::NAME_BYTES;
}

/// Offsets of the fields of a slot. Words have 64 bits, except the first two.
pub mod slot {
    /// Offset of the owner's process id in the server's pid namespace, 32 bits; 0 for a free slot.
    pub const OWNER_OFFSET: usize = 0;
    /// Offset of the owner's thread id, 32 bits.
    pub const THREAD_OFFSET: usize = 4;
    /// Offset of the number of owners that the slot has had.
    pub const OWNERS_OFFSET: usize = 8;
    /// Offset of the number of connections accepted.
    pub const CONNECTIONS_OFFSET: usize = 16;
    /// Offset of the number of requests in progress.
    pub const IN_PROGRESS_OFFSET: usize = 24;
    /// Offset of the time since which the worker is busy, in nanoseconds of CLOCK_MONOTONIC; 0 if it is idle.
    pub const BUSY_SINCE_NS_OFFSET: usize = 32;
    /// Offset of the time for which the worker was busy before [`BUSY_SINCE_NS_OFFSET`], in nanoseconds.
    pub const BUSY_NS_OFFSET: usize = 40;
    /// Offset of the number of requests that all owners recorded.
    pub const RECORDED_OFFSET: usize = 48;
    /// Offset of a word with two parts. The bits from [`FOLDED_COUNT_SHIFT`](super::FOLDED_COUNT_SHIFT) on contain the
    /// number of requests that were folded, i.e. added to the sums. Each lower bit belongs to a class, and says which
    /// of the two copies of the class's sums is current.
    pub const FOLDED_OFFSET: usize = 56;
    /// Size of the slot's first cache line, in bytes. The server writes to this line for each request.
    pub const LINE_BYTES: usize = 64;
    /// Offset of the CPU time of all owners' threads, as of the latest reading, in nanoseconds.
    pub const CPU_NS_OFFSET: usize = 64;
    /// Offset of the time at which the CPU time was last read, in nanoseconds.
    pub const CPU_AT_NS_OFFSET: usize = 72;
    /// Offset of the pending requests: requests that are not included in the sums yet. The n-th request of the slot is
    /// at index n % [`MAX_PENDING`](super::MAX_PENDING).
    pub const PENDING_OFFSET: usize = 128;
    /// Offset of the counters of the request classes, which follow one another.
    pub const CLASSES_OFFSET: usize = PENDING_OFFSET + super::MAX_PENDING * super::pending::SIZE;
}

/// In the word at [`slot::FOLDED_OFFSET`], index of the lowest bit of the number of folded requests, i.e. requests that
/// were added to the sums.
pub const FOLDED_COUNT_SHIFT: u32 = 16;

/// Offsets of the fields of a pending request. Words have 64 bits.
pub mod pending {
    /// Offset of a word that describes the request by the bits of [`request_bits`](super::request_bits).
    pub const REQUEST_BITS_OFFSET: usize = 0;
    /// Offset of the number of bytes of the response body.
    pub const BYTES_OFFSET: usize = 8;
    /// Offset of the time that the request spent in each phase, in nanoseconds.
    pub const TIME_NS_OFFSET: usize = 16;
    /// Size of a pending request.
    pub const SIZE: usize = TIME_NS_OFFSET + 8 * super::PHASES;
}

/// The bits of the word at [`pending::REQUEST_BITS_OFFSET`]: the class and the outcome of a request, the phases that it
/// went through, and the number of times that it was resumed.
pub mod request_bits {
    /// Mask of the index of the request's class.
    pub const CLASS_MASK: u64 = 0xff;
    /// Bit that is set if the response had a 5xx status.
    pub const FAILED: u64 = 1 << 8;
    /// Bit that is set if the client abandoned the request.
    pub const ABORTED: u64 = 1 << 9;
    /// Index of the first of several bits, one for each phase: the bit is set if the time of the phase is known.
    pub const HAS_TIME_SHIFT: u32 = 16;
    /// Index of the lowest bit of the number of times that the request was resumed.
    pub const RESUMED_SHIFT: u32 = 32;
}

/// Offsets of the fields of a request class's sums. Words have 64 bits.
pub mod sums {
    /// Offset of the number of requests.
    pub const REQUESTS_OFFSET: usize = 0;
    /// Offset of the number of bytes of response bodies.
    pub const BYTES_OFFSET: usize = 8;
    /// Offset of the number of requests with a 5xx response.
    pub const FAILED_OFFSET: usize = 16;
    /// Offset of the number of requests that the client abandoned.
    pub const ABORTED_OFFSET: usize = 24;
    /// Offset of the sums of the times of each phase ([`times`](super::times)).
    pub const TIMES_OFFSET: usize = 32;
    /// Offset of the number of times that requests were resumed.
    pub const RESUMED_OFFSET: usize = TIMES_OFFSET + super::PHASES * super::times::SIZE;
    /// Size of a class's sums; the last word is unused.
    pub const SIZE: usize = RESUMED_OFFSET + 2 * 8;
}

/// Offsets of the fields of a request class in a slot. Words have 64 bits.
pub mod class {
    /// Offset of the two copies of the class's sums.
    pub const SUMS_OFFSET: usize = 0;
    /// Offset of the number of requests whose CPU time was measured.
    pub const CPU_COUNT_OFFSET: usize = SUMS_OFFSET + 2 * super::sums::SIZE;
    /// Offset of the CPU time in each of the [`CPU_PHASES`](super::CPU_PHASES) phases for which it is measured, in
    /// nanoseconds.
    pub const CPU_NS_OFFSET: usize = CPU_COUNT_OFFSET + 8;
    /// Offset of the sum of the squares of each measured request's CPU time, in square microseconds.
    pub const CPU_SUM_US2_OFFSET: usize = CPU_NS_OFFSET + 8 * super::CPU_PHASES;
    /// Offset of the number of measured requests during which the thread also worked on other requests.
    pub const CPU_MIXED_OFFSET: usize = CPU_SUM_US2_OFFSET + 8;
    /// Offset of the number of measured requests for which disk blocks were counted. Modules of earlier versions
    /// counted none.
    pub const BLOCKS_COUNT_OFFSET: usize = CPU_MIXED_OFFSET + 8;
    /// Offset of the number of blocks that threads read from disks during the requests in `BLOCKS_COUNT_OFFSET`.
    pub const BLOCKS_READ_OFFSET: usize = BLOCKS_COUNT_OFFSET + 8;
    /// Offset of the number of blocks that threads wrote into the page cache during the requests in
    /// `BLOCKS_COUNT_OFFSET`.
    pub const BLOCKS_WRITTEN_OFFSET: usize = BLOCKS_READ_OFFSET + 8;
    /// Offset of the histograms of the phases. The seven words before the histograms are unused.
    pub const BUCKETS_OFFSET: usize = BLOCKS_WRITTEN_OFFSET + 8 * 8;
    /// Size of the fields of a request class.
    pub const SIZE: usize = BUCKETS_OFFSET + super::PHASES * BUCKETS_SIZE;
    /// Size of the histogram of one phase.
    pub const BUCKETS_SIZE: usize = 8 * super::BUCKETS;
}

/// Offsets, in words of 64 bits, of the fields that contain the times of one phase.
pub mod times {
    /// Offset of the number of requests that went through the phase.
    pub const COUNT_OFFSET: usize = 0;
    /// Offset of the sum of the times that requests spent in the phase, in nanoseconds.
    pub const SUM_NS_OFFSET: usize = 8;
    /// Offset of the sum of the squares of the times that requests spent in the phase, in square microseconds.
    pub const SUM_US2_OFFSET: usize = 16;
    /// Size of the fields of one phase's times.
    pub const SIZE: usize = 24;
}

/// The contents of a file's header, checked against the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of bytes before the first slot.
    pub header_size: usize,
    /// Size of a slot in bytes.
    pub slot_size: usize,
    /// Number of slots.
    pub slots: usize,
    /// Whether requests are recorded.
    pub enabled: bool,
    /// CPU time is measured for one in `cpu_one_in` requests on average; 0 if CPU time is not measured.
    pub cpu_one_in: u32,
    /// Maximum number of requests or connections that the server handles at a time; 0 for no limit.
    pub workers_most: u32,
    /// The process that created the file or adopted it last, by its id in the server's PID namespace.
    pub master_pid: u32,
    /// Number of workers that found no free slot.
    pub lost: u32,
    /// Creation time of the file, CLOCK_REALTIME in nanoseconds.
    pub created_ns: u64,
    /// Name of the server, as its module wrote it.
    pub server: String,
    /// Names of the request classes that the server's configuration defines, at least one.
    pub classes: Vec<String>,
}

/// The reason why a file cannot be read as a Server Module's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The file is of another kind, or not complete yet.
    #[error(
        "it is no file of the Server Module, or an unfinished one: name the file of the server's `brimful` directive"
    )]
    Foreign,
    /// The file has another version of the layout.
    #[error(
        "it has layout {0}, and this brimful reads {LAYOUT_VERSION}: rebuild the module with `brimful module install`"
    )]
    Layout(u32),
    /// The header states impossible numbers or sizes, or the file ends before its last slot.
    #[error("its header is damaged ({0}): restart the server, which makes a new one")]
    Damaged(&'static str),
}

impl Header {
    /// Parses the header of a file of `file_length` bytes. `bytes` is the start of the file: at least [`header::SIZE`]
    /// bytes, or the whole file if it is shorter.
    ///
    /// Returns an error if the file is of another kind. Also returns an error if the header and the slots that it
    /// declares do not fit into the file or exceed the limits.
    pub fn parse(bytes: &[u8], file_length: u64) -> Result<Header, LayoutError> {
        let word = |at| read_u32_at(bytes, at).ok_or(LayoutError::Foreign);
        if read_u64_at(bytes, header::MAGIC_OFFSET) != Some(MAGIC) {
            return Err(LayoutError::Foreign);
        }
        let layout = word(header::LAYOUT_OFFSET)?;
        if layout != LAYOUT_VERSION {
            return Err(LayoutError::Layout(layout));
        }
        let size = |at| word(at).map(|size| size as usize);
        let (header_size, slot_size) = (size(header::HEADER_SIZE_OFFSET)?, size(header::SLOT_SIZE_OFFSET)?);
        let (slots, classes) = (size(header::SLOTS_OFFSET)?, size(header::CLASSES_OFFSET)?);
        if !(1..=MAX_CLASSES).contains(&classes) {
            return Err(LayoutError::Damaged("number of classes"));
        }
        if !(header::SIZE..=MAX_HEADER_BYTES).contains(&header_size) || !header_size.is_multiple_of(SLOT_ALIGN) {
            return Err(LayoutError::Damaged("size of the header"));
        }
        let least = slot::CLASSES_OFFSET + classes * class::SIZE;
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
            |class: usize| name(bytes, header::CLASS_NAMES_OFFSET + class * NAME_BYTES).ok_or(LayoutError::Foreign);
        Ok(Header {
            header_size,
            slot_size,
            slots,
            enabled: word(header::ENABLED_OFFSET)? != 0,
            cpu_one_in: word(header::CPU_ONE_IN_OFFSET)?,
            workers_most: word(header::WORKERS_MOST_OFFSET)?,
            master_pid: word(header::MASTER_PID_OFFSET)?,
            lost: word(header::LOST_OFFSET)?,
            created_ns: read_u64_at(bytes, header::CREATED_NS_OFFSET).ok_or(LayoutError::Foreign)?,
            server: name(bytes, header::SERVER_OFFSET).ok_or(LayoutError::Foreign)?,
            classes: (0..classes).map(class_name).collect::<Result<_, _>>()?,
        })
    }

    /// The offset of a slot in the file.
    pub fn slot_offset(&self, slot: usize) -> u64 {
        self.header_size as u64 + slot as u64 * self.slot_size as u64
    }
}

/// The 64-bit word at an offset; `None` if the bytes end before the end of the word.
pub fn read_u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// The 32-bit word at an offset; `None` if the bytes end before the end of the word.
pub fn read_u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// The name in the field at an offset. It ends before the field's first zero byte. Invalid UTF-8 is replaced.
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

    /// A file that consists only of a header. Its header declares these numbers of slots and classes.
    pub fn header_bytes(slots: u32, classes: u32) -> Vec<u8> {
        let mut bytes = vec![0; 896];
        let slot_size = (slot::CLASSES_OFFSET + classes as usize * class::SIZE).next_multiple_of(SLOT_ALIGN) as u32;
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        for (at, word) in [
            (header::LAYOUT_OFFSET, LAYOUT_VERSION),
            (header::HEADER_SIZE_OFFSET, 896),
            (header::SLOT_SIZE_OFFSET, slot_size),
            (header::SLOTS_OFFSET, slots),
            (header::CLASSES_OFFSET, classes),
            (header::ENABLED_OFFSET, 1),
        ] {
            bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes[header::SERVER_OFFSET..header::SERVER_OFFSET + 9].copy_from_slice(b"test/1\xff\x1b\0");
        bytes[header::CLASS_NAMES_OFFSET..header::CLASS_NAMES_OFFSET + NAME_BYTES].fill(b'x');
        bytes
    }

    #[test]
    fn a_header_says_what_is_in_the_file() {
        let bytes = header_bytes(3, 2);
        let slot_size = (slot::CLASSES_OFFSET + 2 * class::SIZE).next_multiple_of(SLOT_ALIGN);
        let length = 896 + 3 * slot_size as u64;
        let header = Header::parse(&bytes, length).unwrap();
        assert_eq!((header.slots, header.slot_size, header.enabled), (3, slot_size, true));
        assert_eq!(header.server, "test/1\u{fffd}\x1b");
        assert_eq!(
            header.classes,
            ["x".repeat(NAME_BYTES), String::new()],
            "a name without a zero byte ends with its field"
        );
        assert_eq!(header.slot_offset(2), length - slot_size as u64);
        assert_eq!(Header::parse(&bytes, length - 1), Err(LayoutError::Damaged("it ends before its last slot")));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let with = |at: usize, word: u32| {
            let mut bytes = header_bytes(3, 2);
            bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
            Header::parse(&bytes, u64::MAX).unwrap_err()
        };
        assert_eq!(with(header::MAGIC_OFFSET, 7), LayoutError::Foreign);
        assert_eq!(with(header::LAYOUT_OFFSET, 1), LayoutError::Layout(1));
        for (at, words) in [
            (header::CLASSES_OFFSET, &[0, 17, u32::MAX][..]),
            (header::HEADER_SIZE_OFFSET, &[0, 768, 897, u32::MAX]),
            (header::SLOT_SIZE_OFFSET, &[0, 128, 11_521, u32::MAX]),
            (header::SLOTS_OFFSET, &[0, 4097, u32::MAX]),
        ] {
            assert!(words.iter().all(|&word| matches!(with(at, word), LayoutError::Damaged(_))), "{at}");
        }
        for length in 0..header::CLASS_NAMES_OFFSET + 2 * NAME_BYTES {
            assert!(Header::parse(&header_bytes(3, 2)[..length], u64::MAX).is_err(), "{length}");
        }
    }

    /// The layout of `layout.h`, as printed by a C program: lines `struct.field offset size`, `struct - size`,
    /// `CONSTANT = value`, `bucket n start`.
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
            ("magic", header::MAGIC_OFFSET, 8),
            ("layout", header::LAYOUT_OFFSET, 4),
            ("header_size", header::HEADER_SIZE_OFFSET, 4),
            ("slot_size", header::SLOT_SIZE_OFFSET, 4),
            ("slots", header::SLOTS_OFFSET, 4),
            ("classes", header::CLASSES_OFFSET, 4),
            ("enabled", header::ENABLED_OFFSET, 4),
            ("cpu_one_in", header::CPU_ONE_IN_OFFSET, 4),
            ("workers_most", header::WORKERS_MOST_OFFSET, 4),
            ("master_pid", header::MASTER_PID_OFFSET, 4),
            ("lost", header::LOST_OFFSET, 4),
            ("created_ns", header::CREATED_NS_OFFSET, 8),
            ("server", header::SERVER_OFFSET, NAME_BYTES),
            ("class_names", header::CLASS_NAMES_OFFSET, MAX_CLASSES * NAME_BYTES),
        ];
        let slot = [
            ("owner", slot::OWNER_OFFSET, 4),
            ("thread", slot::THREAD_OFFSET, 4),
            ("owners", slot::OWNERS_OFFSET, 8),
            ("connections", slot::CONNECTIONS_OFFSET, 8),
            ("in_progress", slot::IN_PROGRESS_OFFSET, 8),
            ("busy_since_ns", slot::BUSY_SINCE_NS_OFFSET, 8),
            ("busy_ns", slot::BUSY_NS_OFFSET, 8),
            ("recorded", slot::RECORDED_OFFSET, 8),
            ("folded", slot::FOLDED_OFFSET, 8),
            ("cpu_ns", slot::CPU_NS_OFFSET, 8),
            ("cpu_at_ns", slot::CPU_AT_NS_OFFSET, 8),
            ("pending", slot::PENDING_OFFSET, MAX_PENDING * pending::SIZE),
            ("classes", slot::CLASSES_OFFSET, 0),
        ];
        let place = [
            ("what", pending::REQUEST_BITS_OFFSET, 8),
            ("bytes", pending::BYTES_OFFSET, 8),
            ("time_ns", pending::TIME_NS_OFFSET, 8 * PHASES),
        ];
        let sum = [
            ("requests", sums::REQUESTS_OFFSET, 8),
            ("bytes", sums::BYTES_OFFSET, 8),
            ("failed", sums::FAILED_OFFSET, 8),
            ("aborted", sums::ABORTED_OFFSET, 8),
            ("times", sums::TIMES_OFFSET, PHASES * times::SIZE),
            ("resumed", sums::RESUMED_OFFSET, 8),
        ];
        let class = [
            ("sums", class::SUMS_OFFSET, 2 * sums::SIZE),
            ("cpu_count", class::CPU_COUNT_OFFSET, 8),
            ("cpu_ns", class::CPU_NS_OFFSET, 8 * CPU_PHASES),
            ("cpu_sum_us2", class::CPU_SUM_US2_OFFSET, 8),
            ("cpu_mixed", class::CPU_MIXED_OFFSET, 8),
            ("blocks_count", class::BLOCKS_COUNT_OFFSET, 8),
            ("blocks_read", class::BLOCKS_READ_OFFSET, 8),
            ("blocks_written", class::BLOCKS_WRITTEN_OFFSET, 8),
            ("buckets", class::BUCKETS_OFFSET, PHASES * class::BUCKETS_SIZE),
        ];
        let times = [
            ("count", times::COUNT_OFFSET, 8),
            ("sum_ns", times::SUM_NS_OFFSET, 8),
            ("sum_us2", times::SUM_US2_OFFSET, 8),
        ];
        let constants = [
            ("MAGIC", MAGIC),
            ("LAYOUT", LAYOUT_VERSION.into()),
            ("MAX_CLASSES", MAX_CLASSES as u64),
            ("NAME_BYTES", NAME_BYTES as u64),
            ("BUCKETS", BUCKETS as u64),
            ("SLOT_ALIGN", SLOT_ALIGN as u64),
            ("PENDING", MAX_PENDING as u64),
            ("WHAT_CLASS", request_bits::CLASS_MASK),
            ("WHAT_FAILED", request_bits::FAILED),
            ("WHAT_ABORTED", request_bits::ABORTED),
            ("WHAT_HAS", request_bits::HAS_TIME_SHIFT.into()),
            ("WHAT_RESUMED", request_bits::RESUMED_SHIFT.into()),
            ("FOLDED_COUNT", FOLDED_COUNT_SHIFT.into()),
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
            ("CPUS", CPU_PHASES as u64),
        ];
        let mut lines = fields("header", header::SIZE, &header);
        lines.extend(fields("slot", slot::CLASSES_OFFSET, &slot));
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
        // A reader of the file does not need these lines, or they follow from other lines.
        let is_listed = |line: &String| {
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
        there.retain(is_listed);
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
                prop_assert!(header.slot_offset(header.slots) <= length);
                prop_assert!(header.classes.len() * class::SIZE + slot::CLASSES_OFFSET <= header.slot_size);
            }
        }
    }
}
