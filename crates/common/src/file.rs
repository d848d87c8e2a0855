//! Files that options name: the directory, secrets.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

/// The bytes of a regular file, at most `limit` of them.
///
/// # Errors
/// When the file cannot be read, is larger, or is no regular file: a pipe may never end, and a device has no end.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Before it is opened, because that waits for a writer of a pipe.
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    // One byte more than is allowed, to recognize a larger file.
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

/// The bytes as text, without a byte order mark. `None` if they are not UTF-8.
pub fn text(bytes: &[u8]) -> Option<&str> {
    let text = str::from_utf8(bytes).ok()?;
    Some(text.strip_prefix('\u{feff}').unwrap_or(text))
}
