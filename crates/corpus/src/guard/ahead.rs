//! A file that is being read in a child while those before it are worked on.
//!
//! One thread a child: it starts the child, talks with it, and holds its answers until they are wanted. Of a file that
//! is read whole they are held until the last is there and the file is known not to have changed meanwhile; the
//! documents of one that is streamed wait a few at a time.

use std::ffi::OsString;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::check::{check, check_end};
use super::confine::Confinement;
use super::failure::{Failure, Stopped};
use super::limits::{FileLimits, Limits};
use super::protocol::{Answer, Request};
use super::stamp::{READS_MAX, Stamp, changed};
use super::talk::{Output, run, talk};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::extraction::Extraction;
use crate::folder::FoundFile;
use crate::format::Reading;
use crate::read::{Passwords, ReadCommand, ReadOptions, written};

/// Documents of a streamed file that wait at once.
const WAITING_MAX: usize = 64;

/// A thing that comes of a file.
#[derive(Debug)]
pub(super) enum Item {
    Document(Box<Document>),
    Failed(Error),
    End(Box<Ended>),
}

/// The last that comes of a file.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) notes: Vec<String>,
    pub(super) extraction: Option<Extraction>,
    pub(super) confinement: Option<Confinement>,
}

/// A file in its child. Dropped, it ends the child.
#[derive(Debug)]
pub(super) struct Ahead {
    items: Option<Receiver<Item>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Begins to read.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(super) fn start(
        command: &[OsString],
        limits: &Limits,
        file: &FoundFile,
        options: &ReadOptions,
    ) -> Result<Self> {
        let (sender, items) = sync_channel(WAITING_MAX);
        let stop = Arc::new(AtomicBool::new(false));
        let reader = FileReader {
            command: command.to_vec(),
            limits: *limits,
            file: file.clone(),
            options: options.clone(),
            stop: Arc::clone(&stop),
        };
        // The system ends a child with the thread that started it: so it is this one.
        let thread = std::thread::Builder::new().name("reader".to_owned()).spawn(move || reader.read(&sender));
        let thread = thread.map_err(Error::io(&file.path))?;
        Ok(Self { items: Some(items), stop, thread: Some(thread) })
    }

    /// The next thing; none if the thread ended without a word, which it does not.
    pub(super) fn next(&self) -> Option<Item> {
        self.items.as_ref()?.recv().ok()
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.items = None; // whoever waits to hand something over waits no more
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it has nothing to say that is wanted
        }
    }
}

struct FileReader {
    command: Vec<OsString>,
    limits: Limits,
    file: FoundFile,
    options: ReadOptions,
    stop: Arc<AtomicBool>,
}

impl FileReader {
    fn read(&self, items: &SyncSender<Item>) {
        let is_streamed = self.file.format.reading() == Reading::Streamed;
        for n_times in 1..=READS_MAX {
            let mut held = Vec::new();
            let mut give = |item: Item| match is_streamed {
                true => items.send(item).map_err(|_| Stopped::Unwanted),
                false => {
                    held.push(item);
                    Ok(())
                }
            };
            let (outcome, is_current) = self.read_once(&mut give);
            let error = match outcome {
                Err(Stopped::Unwanted) => return,
                _ if !is_current && !is_streamed && n_times < READS_MAX => continue,
                Ok(ended) if is_current => {
                    held.push(Item::End(Box::new(ended)));
                    let _ = held.into_iter().try_for_each(|item| items.send(item)); // or nobody wants them
                    return;
                }
                Ok(_) => changed(&self.file.path, n_times),
                Err(Stopped::Unread(source)) => Error::Io { path: self.file.path.clone(), source },
                Err(Stopped::Failed(failure)) => Error::Child { path: self.file.path.clone(), failure },
            };
            // What it had said before is dropped: a part of a document is none.
            let last = [Item::Failed(error), Item::End(Box::default())];
            let _ = last.into_iter().try_for_each(|item| items.send(item));
            return;
        }
    }

    /// Reads once; says beside the result whether the file stayed as it was.
    fn read_once(&self, give: &mut dyn FnMut(Item) -> Result<(), Stopped>) -> (Result<Ended, Stopped>, bool) {
        let path = &self.file.path;
        let (file, stamp) = match Stamp::open(path) {
            Ok(opened) => opened,
            Err(source) => return (Err(Stopped::Unread(source)), true),
        };
        let found = FoundFile { n_bytes: stamp.n_bytes, ..self.file.clone() };
        if let Some(command) = self.options.command(path) {
            return (self.run(command, &found, file, give), stamp.is_current(path));
        }
        let limits = self.limits.of_file(found.format, found.n_bytes);
        let mut ended = Ended::default();
        let mut take = |answer| self.take(answer, &found, &mut ended, give);
        let talked = talk(&self.command, &self.request(&found, &limits), file, &limits, &self.stop, &mut take);
        (talked.map(|()| ended), stamp.is_current(path))
    }

    /// Has a command read the file.
    fn run(
        &self,
        command: &ReadCommand,
        file: &FoundFile,
        input: File,
        give: &mut dyn FnMut(Item) -> Result<(), Stopped>,
    ) -> Result<Ended, Stopped> {
        let limits = self.limits.of_command(command, file.n_bytes, self.options.max_file_bytes);
        let request =
            Request { run: command.run.clone(), passwords: Passwords::default(), ..self.request(file, &limits) };
        let ran = run(&self.command, &request, input, &limits, &self.stop).map_err(|stopped| match stopped {
            Stopped::Failed(failure) => Stopped::Failed(failure.of_command(command.program())),
            other => other,
        });
        let Output { written, said } = ran?;
        match written::document(written, command, &file.origin, &file.path, &self.options) {
            Err(error) => {
                give(Item::Failed(error))?;
                Ok(Ended::default())
            }
            Ok((mut document, extraction)) => {
                if !said.is_empty() {
                    document.warnings.push(format!("{} says: {said}", command.program()));
                }
                give(Item::Document(Box::new(document)))?;
                Ok(Ended { extraction: Some(extraction), ..Ended::default() })
            }
        }
    }

    fn request(&self, file: &FoundFile, limits: &FileLimits) -> Request {
        Request {
            format: file.format,
            origin: file.origin.clone(),
            extension: file.path.extension().and_then(|extension| extension.to_str()).map(str::to_owned),
            n_bytes: file.n_bytes,
            record_ids: file.record_ids,
            lossy: self.options.lossy,
            max_file_bytes: self.options.max_file_bytes,
            passwords: self.options.passwords.clone(),
            memory_bytes: limits.memory_bytes,
            processor_seconds: limits.processor_seconds,
            run: Vec::new(),
        }
    }

    /// Checks an answer and passes it on.
    fn take(
        &self,
        answer: Answer,
        file: &FoundFile,
        ended: &mut Ended,
        give: &mut dyn FnMut(Item) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        let lied = |reason: String| Stopped::Failed(Failure::Answer { reason });
        match answer {
            Answer::Confined(confinement) => match ended.confinement.replace(confinement) {
                None => Ok(()),
                Some(_) => Err(lied("that it is confined, twice".to_owned())),
            },
            _ if ended.confinement.is_none() => Err(lied("something before it was confined".to_owned())),
            Answer::Document(sent) => {
                let document = sent.into_document().map_err(lied)?;
                check(&document, file).map_err(lied)?;
                give(Item::Document(Box::new(document)))
            }
            Answer::Refused(reason) => give(Item::Failed(Error::Refused { path: file.path.clone(), reason })),
            Answer::End { notes, extraction } => {
                check_end(&notes, extraction.as_deref()).map_err(lied)?;
                (ended.notes, ended.extraction) = (notes, extraction.map(|extraction| *extraction));
                Ok(())
            }
        }
    }
}
