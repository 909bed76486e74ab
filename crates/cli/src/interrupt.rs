//! Ctrl-C.

use std::process;

use crate::exit_code::INTERRUPTED;

/// Ctrl-C ends the process at once: what was committed stays, and a rerun goes on from there.
pub(crate) fn end_on_interrupt(what_stays: &'static str) -> anyhow::Result<()> {
    ctrlc::set_handler(move || {
        eprintln!("\ninterrupted; {what_stays}");
        process::exit(i32::from(INTERRUPTED));
    })?;
    Ok(())
}
