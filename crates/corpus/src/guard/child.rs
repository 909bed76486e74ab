//! The child: a process that reads one file from its input, and can do nothing else.
//!
//! It gives up what it might do harm with before it takes the first byte of the file. One file, then it ends: nothing
//! that a file does to its reader reaches the next one, and what a file costs does not depend on those before it.

use std::io::{self, BufWriter, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use super::confine::{Bounds, confine, limit};
use super::protocol::{Answer, Hello, PROTOCOL, REQUEST_BYTES_MAX, Request, send};
use crate::error::Error;
use crate::folder::FoundFile;
use crate::read::{ReadOptions, read_from};

/// Reads one file as [`Guard`](super::Guard) asks over stdin, and answers on stdout. The process must have one thread
/// and is good for nothing else afterwards. Asked to run a command, it becomes that, within its limits.
///
/// # Errors
/// The request is none, the process cannot be confined, the command cannot be started, or nobody takes its answers.
pub fn serve() -> io::Result<()> {
    end_with_parent()?;
    let mut output = BufWriter::with_capacity(64 << 10, io::stdout());
    send(&mut output, &Hello { protocol: PROTOCOL })?;
    output.flush()?;
    // Whoever started this process has answered: if it ends from here on, so does this one.
    let request = request()?;
    let bounds = Bounds { memory_bytes: request.memory_bytes, processor_seconds: request.processor_seconds };
    if let [program, arguments @ ..] = request.run.as_slice() {
        limit(&bounds)?;
        let error = Command::new(program).args(arguments).exec(); // which does not come back
        return Err(io::Error::new(error.kind(), format!("cannot be started: {error}")));
    }
    send(&mut output, &Answer::Confined(confine(&bounds)?))?;
    answer(request, &mut output)?;
    output.flush()
}

/// Has the system end this process when the thread that started it ends.
#[cfg(target_os = "linux")]
fn end_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

/// Elsewhere it ends with its input or its processor time.
#[cfg(not(target_os = "linux"))]
fn end_with_parent() -> io::Result<()> {
    Ok(())
}

/// The first line of the input, and nothing behind it.
fn request() -> io::Result<Request> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while rustix::io::read(rustix::stdio::stdin(), &mut byte)? == 1 && byte != *b"\n" {
        line.extend(byte);
        if line.len() as u64 > REQUEST_BYTES_MAX {
            return Err(io::Error::other("the first line of the input is too long for a request"));
        }
    }
    serde_json::from_slice(&line).map_err(|error| {
        io::Error::other(format!(
            "the first line of the input is no request to read a file, which cento sends: {error}"
        ))
    })
}

fn answer(request: Request, output: &mut impl Write) -> io::Result<()> {
    let Request { format, origin, extension, n_bytes, record_ids, lossy, max_file_bytes, passwords, .. } = request;
    let mut path = PathBuf::from(&origin);
    if let Some(extension) = extension.filter(|extension| path.extension() != Some(extension.as_ref())) {
        path.as_mut_os_string().push(format!(".{extension}"));
    }
    let file = FoundFile { path, origin, format, n_bytes, record_ids };
    let options = ReadOptions { lossy, max_file_bytes, passwords, ..ReadOptions::default() };
    let mut end = Answer::End { notes: Vec::new(), extraction: None };
    match read_from(Box::new(io::stdin()) as Box<dyn Read + Send>, &file, &options) {
        Err(error) => send(output, &refused(&error, &file))?,
        Ok(mut documents) => {
            for document in documents.by_ref() {
                match document {
                    Ok(document) => send(output, &Answer::Document(Box::new(document.into())))?,
                    Err(error) => send(output, &refused(&error, &file))?,
                }
            }
            let extraction = documents.extraction().cloned().map(Box::new);
            end = Answer::End { notes: documents.notes(), extraction };
        }
    }
    send(output, &end)
}

/// The error without the file, whose name the parent knows better.
fn refused(error: &Error, file: &FoundFile) -> Answer {
    let mut said = error.to_string();
    if let Error::Io { source, .. } = error {
        said = format!("{said}: {source}");
    }
    let without = said.strip_prefix(&format!("{}: ", file.path.display())).map(str::to_owned);
    Answer::Refused(without.unwrap_or(said))
}
