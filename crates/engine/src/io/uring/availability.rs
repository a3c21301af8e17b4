//! Whether this host has an io_uring to use, and how large a one.

/// Slots in the table of direct descriptors: as many as this process may have descriptors, but no more than the kernel gives.
pub fn table_size(descriptor_limit: Option<u64>) -> u32 {
    /// `IORING_MAX_FIXED_FILES`, Linux 5.13 to 6.18.
    const MOST: u64 = 1 << 20;
    descriptor_limit.unwrap_or(MOST).min(MOST) as u32
}

/// Why there is no ring, and what to do about it.
pub fn unavailable(error: std::io::Error) -> String {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match (error.raw_os_error(), disabled.trim()) {
        (Some(libc::EPERM), "1" | "2") => {
            "it is switched off here: `sysctl kernel.io_uring_disabled=0` switches it on".to_owned()
        }
        (Some(libc::EPERM | libc::EACCES | libc::ENOSYS), _) => {
            format!(
                "it is forbidden here ({error}), as many containers do by seccomp: allow io_uring_setup, io_uring_enter and io_uring_register"
            )
        }
        (Some(libc::EMFILE | libc::ENFILE), _) => "there is no descriptor left for it: raise `ulimit -n`".to_owned(),
        (Some(libc::ENOMEM), _) => "there is no memory for it: raise `ulimit -l`".to_owned(),
        _ => format!("this kernel's is too old ({error}); it takes Linux 6.11"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_never_larger_than_the_kernel_allows() {
        assert_eq!(table_size(Some(1024)), 1024);
        for more in [Some(1 << 20), Some((1 << 20) + 1), Some(1 << 30), None] {
            assert_eq!(table_size(more), 1 << 20, "{more:?}");
        }
    }
}
