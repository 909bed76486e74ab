//! Commands of the user's that read files of an extension in the place of a reader here: letters in pictures, speech,
//! formats that nobody here knows.
//!
//! A command gets the bytes of a file on its input and writes its text on its output, as Markdown or as it is; a form
//! feed begins a page. It is a program and its arguments, and never a line for a shell.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::format::Format;

/// Bytes of a program and its arguments together.
const RUN_BYTES_MAX: usize = 8 << 10;

/// Longest extension, in bytes.
const EXTENSION_BYTES_MAX: usize = 32;

/// Longest processor time that a command may be given for every file: a day.
const SECONDS_MAX: u64 = 86_400;

/// A command, and what it may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadCommand {
    /// The program, by a name that `PATH` leads to or by an absolute path, and its arguments.
    pub run: Vec<String>,
    /// The way its output is read.
    pub gives: Gives,
    /// Bytes of address space for every file, where it is not to be that of the readers here.
    pub memory_bytes: Option<u64>,
    /// Seconds of processor time for every file, where it is not to be that of the readers here.
    pub processor_seconds: Option<u64>,
}

/// The way the output of a command is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gives {
    /// As Markdown.
    #[default]
    Markdown,
    /// As plain text.
    Text,
}

impl Gives {
    pub(super) fn format(self) -> Format {
        match self {
            Self::Markdown => Format::Markdown,
            Self::Text => Format::Text,
        }
    }
}

impl ReadCommand {
    /// The program, as it was named.
    pub fn program(&self) -> &str {
        self.run.first().map_or("", String::as_str)
    }

    pub(crate) fn processor(&self) -> Option<Duration> {
        self.processor_seconds.map(Duration::from_secs)
    }

    /// The name of the reader in a report.
    pub(super) fn engine(&self) -> String {
        format!("command {}", self.program())
    }

    fn check(&self) -> Result<(), String> {
        let program = self.program();
        if program.is_empty() {
            return Err("no program: expected a list, the program first".to_owned());
        }
        let n_bytes: usize = self.run.iter().map(|part| part.len() + 1).sum();
        if n_bytes > RUN_BYTES_MAX {
            return Err(format!("{n_bytes} bytes of program and arguments, the limit is {RUN_BYTES_MAX}"));
        }
        if self.run.iter().any(|part| part.contains('\0')) {
            return Err("an argument with a zero byte".to_owned());
        }
        if program.contains('/') && !Path::new(program).is_absolute() {
            return Err(format!(
                "{program:?} is relative to whatever folder: write an absolute path, or a name of PATH"
            ));
        }
        match self.processor_seconds {
            Some(seconds) if !(1..=SECONDS_MAX).contains(&seconds) => {
                Err(format!("{seconds} seconds: expected 1 to {SECONDS_MAX}"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The commands by the extensions of files, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands(Arc<BTreeMap<String, ReadCommand>>);

impl Commands {
    /// Commands by extensions, written without a dot.
    ///
    /// # Errors
    /// An extension that none can be, or a command that cannot be started anywhere, in words.
    pub fn new(commands: impl IntoIterator<Item = (String, ReadCommand)>) -> Result<Self, String> {
        let mut known = BTreeMap::new();
        for (extension, command) in commands {
            let is_one = !extension.is_empty()
                && extension.len() <= EXTENSION_BYTES_MAX
                && !extension.contains(|letter: char| letter == '.' || letter == '/' || letter.is_whitespace());
            if !is_one {
                return Err(format!("{extension:?} is no extension: write it without a dot, as \"tiff\""));
            }
            command.check().map_err(|reason| format!("{extension}: {reason}"))?;
            known.insert(extension.to_lowercase(), command);
        }
        Ok(Self(Arc::new(known)))
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn of_path(&self, path: &Path) -> Option<&ReadCommand> {
        if self.is_empty() {
            return None;
        }
        self.0.get(&path.extension()?.to_str()?.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_program_that_can_be_found_and_an_extension_has_no_dot() {
        let of = |extension: &str, run: &[&str]| {
            let run = run.iter().map(|part| (*part).to_owned()).collect();
            Commands::new([(
                extension.to_owned(),
                ReadCommand { run, gives: Gives::Text, memory_bytes: None, processor_seconds: None },
            )])
        };
        assert!(of("TIFF", &["ocr", "-"]).unwrap().of_path(Path::new("a.Tiff")).is_some());
        assert!(of("tiff", &["/usr/bin/ocr"]).unwrap().of_path(Path::new("tiff")).is_none());
        for (extension, run, words) in [
            (".tiff", &["ocr"][..], "without a dot"),
            ("", &["ocr"], "no extension"),
            ("tiff", &[], "no program"),
            ("tiff", &[""], "no program"),
            ("tiff", &["./ocr"], "absolute path"),
            ("tiff", &["ocr", "a\0b"], "zero byte"),
        ] {
            assert!(of(extension, run).unwrap_err().contains(words), "{extension} {run:?}");
        }
    }
}
