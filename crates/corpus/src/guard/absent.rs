//! Systems without a way to confine a process have no readers in children.

use std::ffi::OsString;
use std::fs::File;
use std::sync::atomic::AtomicBool;

use super::failure::{Failure, Stopped};
use super::limits::FileLimits;
use super::protocol::{Answer, Request};

/// The output of a command, and the first line that it says on stderr.
pub(super) struct Output {
    pub(super) written: Vec<u8>,
    pub(super) said: String,
}

pub(super) fn run(_: &[OsString], _: &Request, _: File, _: &FileLimits, _: &AtomicBool) -> Result<Output, Stopped> {
    Err(Failure::Start { reason: "this system has no way to limit a process".to_owned() }.into())
}

pub(super) fn talk(
    _: &[OsString],
    _: &Request,
    _: File,
    _: &FileLimits,
    _: &AtomicBool,
    _: &mut dyn FnMut(Answer) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    Err(Failure::Start { reason: "this system has no way to confine a process".to_owned() }.into())
}
