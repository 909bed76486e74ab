//! The log: a line of JSON on stderr for each request and job, and for the end of the server.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// Writes a line of the log; work goes on when nobody hears it.
pub(crate) fn line(line: &impl Serialize) {
    if let Ok(line) = serde_json::to_string(line) {
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(unix.as_millis()).unwrap_or(u64::MAX)
}
