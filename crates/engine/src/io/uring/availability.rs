//! Whether io_uring is available on this host, and how many descriptors a ring may have.

/// Size of a ring's table of direct descriptors: the descriptor limit, but no more than the kernel allows.
pub fn table_size(descriptor_limit: Option<u64>) -> u32 {
    /// The kernel's `IORING_MAX_FIXED_FILES`, from Linux 5.13 to 6.18.
    const MAX_FIXED_FILES: u64 = 1 << 20;
    descriptor_limit.unwrap_or(MAX_FIXED_FILES).min(MAX_FIXED_FILES) as u32
}

/// Explains why no ring could be created, and what the user can do about it.
pub fn unavailable(error: std::io::Error) -> String {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match (error.raw_os_error(), disabled.trim()) {
        (Some(libc::EPERM), "1" | "2") => {
            "it is switched off here: `sysctl kernel.io_uring_disabled=0` switches it on".to_owned()
        }
        (Some(libc::EPERM | libc::EACCES | libc::ENOSYS), _) => {
            format!(
                "it is forbidden here ({error}), as in many containers by seccomp: allow io_uring_setup, io_uring_enter \
                 and io_uring_register"
            )
        }
        (Some(libc::EMFILE | libc::ENFILE), _) => {
            "this process has no descriptor left for it: raise `ulimit -n`".to_owned()
        }
        (Some(libc::ENOMEM), _) => "this process may not lock enough memory for it: raise `ulimit -l`".to_owned(),
        _ => format!("this kernel is too old for it ({error}): it needs Linux 6.11"),
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
