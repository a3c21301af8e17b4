//! Files that contain a secret. As ssh does with private keys, brimful refuses files that other users can read, because
//! other users may have read them already.

use crate::MonitorError;
use rustix::process::geteuid;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Maximum number of bytes that are read from a file.
const MAX_BYTES: u64 = 1 << 20;

/// An open file with a secret, and its contents.
pub struct SecretFile {
    /// The contents of the file.
    pub bytes: Vec<u8>,
    file: File,
}

impl SecretFile {
    /// Opens the file and reads its contents.
    pub fn read(path: &Path) -> io::Result<SecretFile> {
        let file = File::open(path)?;
        let mut bytes = Vec::new();
        (&file).take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(SecretFile { bytes, file })
    }

    /// Fails if all users can read the file. A file that its group can read is accepted only if another user owns it:
    /// that user has decided who may read it. The mode of a pipe is not checked.
    pub fn require_private(&self, path: &Path) -> Result<(), MonitorError> {
        let unusable = |why: String| MonitorError::Unusable(format!("{}: {why}", path.display()));
        let metadata = self.file.metadata().map_err(|error| unusable(error.to_string()))?;
        let forbidden = if metadata.uid() == geteuid().as_raw() { 0o077 } else { 0o007 };
        match metadata.is_file() && metadata.mode() & forbidden != 0 {
            false => Ok(()),
            true => Err(unusable(format!(
                "other users of this host can read the secret in it (mode {:04o}): `chmod 600 {}`, and make a new secret if one of \
                 them may have",
                metadata.mode() & 0o7777,
                path.display()
            ))),
        }
    }
}
