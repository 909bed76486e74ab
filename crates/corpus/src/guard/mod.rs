//! The guard: files whose parsers might do harm are read in a child process that can do nothing else.
//!
//! A [`Reader`] gives the documents of many files in the order of the files. Those of formats that need it, or that are
//! large, come from children: the parent hands over a name and bytes, the child gives up all that it might do harm
//! with ([`confine`]) and answers with documents, which the parent checks as it does everything of strangers. A child
//! reads one file. Whatever becomes of it, it costs that file alone.
//!
//! Why one file a child: it costs a few milliseconds, less than any parser of such files, and what a file costs, or
//! does to its reader, cannot depend on those before it.

mod failure;
mod limits;
mod stamp;
mod confine;
mod protocol;
mod check;
#[cfg(unix)]
mod child;
#[cfg_attr(not(unix), path = "absent.rs")]
mod talk;
mod ahead;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;

use self::ahead::{Ahead, Ended, Item};
#[cfg(unix)]
pub use self::child::serve;
#[cfg(unix)]
pub use self::confine::confine;
pub use self::confine::{Bounds, Confinement, Held};
pub use self::failure::Failure;
pub use self::limits::Limits;
use self::stamp::{READS_MAX, Stamp, changed};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::extraction::Extraction;
use crate::folder::FoundFile;
use crate::format::Reading;
use crate::read::{Bytes, Documents, ReadOptions, is_code, read_from, read_plain};

/// Bytes of files that are read ahead at once, unless one alone is longer.
const AHEAD_BYTES_MAX: u64 = 64 << 20;

/// Why source code is not read by its syntax where nobody gave a guard.
const NO_GUARD: &str = "that is done in a process of its own, and none can be started here";

/// The way children are started, and what each may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// A program and its arguments that call [`serve`] before anything else: `cento read`.
    pub command: Vec<OsString>,
    /// The cost of one file.
    pub limits: Limits,
    /// Children that read ahead at once; 0 for half as many as the machine has cores: the other half chunks and embeds.
    pub n_children: usize,
}

impl Guard {
    /// A guard with the default limits.
    pub fn new(command: Vec<OsString>) -> Self {
        Self { command, limits: Limits::default(), n_children: 0 }
    }

    fn n_children(&self) -> usize {
        match self.n_children {
            0 => (std::thread::available_parallelism().map_or(1, NonZero::get) / 2).max(1),
            n_children => n_children,
        }
    }
}

/// Reads files one after another, in children where that is due; those read ahead while others are worked on.
#[derive(Debug)]
pub struct Reader<'f> {
    files: &'f [FoundFile],
    options: ReadOptions,
    guard: Option<Guard>,
    /// The file that is next.
    at: usize,
    /// Files that children are at, by their place, ascending.
    ahead: VecDeque<(usize, Result<Ahead>)>,
    /// The first file that was not looked at for a child.
    next_ahead: usize,
}

impl<'f> Reader<'f> {
    /// Without a guard, files of formats that are always read in a child are refused ([`Error::NoGuard`]), and the
    /// others are read in this process, however large they are.
    pub fn new(files: &'f [FoundFile], options: &ReadOptions, guard: Option<&Guard>) -> Self {
        let (options, guard) = (options.clone(), guard.cloned());
        Self { files, options, guard, at: 0, ahead: VecDeque::new(), next_ahead: 0 }
    }

    /// Starts children for the files that come, up to the number and the bytes that are read ahead.
    fn read_ahead(&mut self) {
        let Some(guard) = &self.guard else { return };
        self.next_ahead = self.next_ahead.max(self.at);
        while self.ahead.len() < guard.n_children()
            && let Some(file) = self.files.get(self.next_ahead)
        {
            if file.format.is_guarded(file.n_bytes) || is_code(file) || self.options.command(&file.path).is_some() {
                let n_bytes = self.ahead.iter().fold(file.n_bytes, |sum, (at, _)| sum + self.files[*at].n_bytes);
                if n_bytes > AHEAD_BYTES_MAX && !self.ahead.is_empty() {
                    return;
                }
                let started = Ahead::start(&guard.command, &guard.limits, file, &self.options);
                self.ahead.push_back((self.next_ahead, started));
            }
            self.next_ahead += 1;
        }
    }

    fn documents(&mut self, at: usize) -> Result<FileDocuments> {
        if self.ahead.front().is_some_and(|(ahead, _)| *ahead == at)
            && let Some((_, started)) = self.ahead.pop_front()
        {
            let file = &self.files[at];
            if !is_code(file) || self.options.command(&file.path).is_some() {
                return Ok(FileDocuments::of_child(started?, file.path.clone(), None));
            }
            return match started {
                Ok(ahead) => {
                    let plain = (file.clone(), self.options.clone());
                    Ok(FileDocuments::of_child(ahead, file.path.clone(), Some(Box::new(plain))))
                }
                Err(error) => read_code_in_process(file, &self.options, &error.to_string()),
            };
        }
        let file = &self.files[at];
        if self.options.command(&file.path).is_some() {
            return Err(Error::NoGuard { path: file.path.clone(), format: file.format });
        }
        if is_code(file) {
            return read_code_in_process(file, &self.options, NO_GUARD);
        }
        if file.format.needs_guard() {
            return Err(Error::NoGuard { path: file.path.clone(), format: file.format });
        }
        read_in_process(file, &self.options)
    }
}

impl<'f> Iterator for Reader<'f> {
    /// A file and its documents, or why there are none.
    type Item = (&'f FoundFile, Result<FileDocuments>);

    fn next(&mut self) -> Option<Self::Item> {
        let (at, file) = (self.at, self.files.get(self.at)?);
        self.read_ahead(); // this one, if its child was not started yet
        let documents = self.documents(at);
        self.at += 1;
        self.read_ahead();
        Some((file, documents))
    }
}

/// Reads a file in this process, again if it changed meanwhile.
fn read_in_process(file: &FoundFile, options: &ReadOptions) -> Result<FileDocuments> {
    read_unless_changed(file, &|input| read_from(input, file, options))
}

/// Reads source code in this process, where no parser of others runs: as plain text.
fn read_code_in_process(file: &FoundFile, options: &ReadOptions, reason: &str) -> Result<FileDocuments> {
    read_unless_changed(file, &|input| read_plain(input, file, options, reason))
}

fn read_unless_changed(file: &FoundFile, read: &dyn Fn(Bytes) -> Result<Documents>) -> Result<FileDocuments> {
    let mut n_times = 1;
    loop {
        let (input, stamp) = Stamp::open(&file.path).map_err(Error::io(&file.path))?;
        let read = read(Box::new(input));
        match file.format.reading() {
            // It is looked at again when its last record was read.
            Reading::Streamed => return Ok(FileDocuments::of_process(read?, Some((stamp, file.path.clone())))),
            Reading::Whole | Reading::Parsed if stamp.is_current(&file.path) => {
                return Ok(FileDocuments::of_process(read?, None));
            }
            Reading::Whole | Reading::Parsed if n_times == READS_MAX => return Err(changed(&file.path, n_times)),
            Reading::Whole | Reading::Parsed => n_times += 1,
        }
    }
}

/// The documents of one file, in file order, wherever they are read.
#[derive(Debug)]
pub struct FileDocuments {
    source: Source,
    /// The last that came of a child.
    ended: Ended,
}

#[derive(Debug)]
enum Source {
    Process {
        documents: Box<Documents>,
        streamed: Option<(Stamp, PathBuf)>,
    },
    /// Source code is read as plain text where its child does not get to an end.
    Child {
        ahead: Ahead,
        path: PathBuf,
        plain: Option<Box<(FoundFile, ReadOptions)>>,
    },
    Ended,
}

impl FileDocuments {
    fn of_process(documents: Documents, streamed: Option<(Stamp, PathBuf)>) -> Self {
        Self { source: Source::Process { documents: Box::new(documents), streamed }, ended: Ended::default() }
    }

    fn of_child(ahead: Ahead, path: PathBuf, plain: Option<Box<(FoundFile, ReadOptions)>>) -> Self {
        Self { source: Source::Child { ahead, path, plain }, ended: Ended::default() }
    }

    /// The reader's decisions for this file, in words. Complete once the iterator has ended.
    pub fn notes(&self) -> Vec<String> {
        match &self.source {
            Source::Process { documents, .. } => documents.notes(),
            Source::Child { .. } | Source::Ended => self.ended.notes.clone(),
        }
    }

    /// Figures of the reading of this file, where its text is extracted by a parser. Complete once the iterator has
    /// ended.
    pub fn extraction(&self) -> Option<&Extraction> {
        match &self.source {
            Source::Process { documents, .. } => documents.extraction(),
            Source::Child { .. } | Source::Ended => self.ended.extraction.as_ref(),
        }
    }

    /// The confinement of the child that read it; none where it was read in this process, or not read.
    pub fn confinement(&self) -> Option<Confinement> {
        self.ended.confinement
    }
}

impl Iterator for FileDocuments {
    type Item = Result<Document>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::Ended => None,
            Source::Process { documents, streamed } => documents.next().or_else(|| {
                let (stamp, path) = streamed.take()?;
                (!stamp.is_current(&path)).then(|| Err(changed(&path, 1)))
            }),
            Source::Child { ahead, path, plain } => {
                let error = match ahead.next() {
                    Some(Item::Document(document)) => return Some(Ok(*document)),
                    Some(Item::End(ended)) => {
                        (self.ended, self.source) = (*ended, Source::Ended);
                        return None;
                    }
                    Some(Item::Failed(error)) => error,
                    None => {
                        let failure = Failure::System { reason: "the thread beside it is gone".to_owned() };
                        let path = std::mem::take(path);
                        self.source = Source::Ended;
                        return Some(Err(Error::Child { path, failure }));
                    }
                };
                let Some(plain) = plain.take() else { return Some(Err(error)) };
                let (file, options) = *plain;
                match read_code_in_process(&file, &options, &reason_of(&error)) {
                    Ok(documents) => *self = documents,
                    Err(error) => {
                        self.source = Source::Ended;
                        return Some(Err(error));
                    }
                }
                self.next()
            }
        }
    }
}

/// An error without the name of its file.
fn reason_of(error: &Error) -> String {
    match error {
        Error::Child { failure, .. } => failure.to_string(),
        Error::Refused { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
