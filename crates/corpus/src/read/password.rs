//! Passwords that a user gives for files, and what is said of a file that stays shut.
//!
//! They go to the readers in memory, and to a child over its input: never into an argument, a message or a log.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Passwords that are tried, at most: each may cost a file a second.
const PASSWORDS_MAX: usize = 32;

/// Longest password, in bytes: Office takes 255 characters, PDF 127 bytes.
const PASSWORD_BYTES_MAX: usize = 255;

/// Longest file of passwords, in bytes: all of them in lines that end as those of Windows do, behind a mark.
pub const PASSWORD_FILE_BYTES_MAX: u64 = (PASSWORDS_MAX * (PASSWORD_BYTES_MAX + 2) + BYTE_ORDER_MARK.len()) as u64;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The passwords that are tried on encrypted files, in turn.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Passwords(Arc<Vec<String>>);

/// Their number alone: nobody may read them in a message.
impl fmt::Debug for Passwords {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Passwords({})", self.0.len())
    }
}

impl Passwords {
    /// Reads the bytes of a file of passwords: UTF-8, one a line. The line's end, `\n` or `\r\n`, is no part of it, all
    /// else is, spaces too; empty lines are passed over.
    ///
    /// # Errors
    /// What is wrong, by its line, without a word of its content.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            format!("line {line} is not UTF-8")
        })?;
        let mut passwords = Vec::new();
        for (index, line) in text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).lines().enumerate() {
            let line_number = index + 1;
            if line.len() > PASSWORD_BYTES_MAX {
                return Err(format!("line {line_number} has {} bytes, the limit is {PASSWORD_BYTES_MAX}", line.len()));
            }
            if line.chars().any(char::is_control) {
                return Err(format!("line {line_number} has a control character"));
            }
            if !line.is_empty() && !passwords.iter().any(|password| password == line) {
                passwords.push(line.to_owned());
            }
        }
        match passwords.len() {
            0 => Err("no password in it: write one a line".to_owned()),
            n if n > PASSWORDS_MAX => Err(format!("{n} passwords, the limit is {PASSWORDS_MAX}")),
            _ => Ok(Self(Arc::new(passwords))),
        }
    }

    /// The passwords, in the order in which they are tried.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The reason to give for a file that stays shut.
    pub(crate) fn locked(&self) -> Locked {
        match self.0.len() {
            0 => Locked::NoPassword,
            n_tried => Locked::Wrong { n_tried },
        }
    }
}

/// The reason for which an encrypted file was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// No password was given.
    NoPassword,
    /// It has another password than those that were given.
    Wrong {
        /// The passwords that were tried.
        n_tried: usize,
    },
    /// It is encrypted in a way that no reader here opens.
    Unknown,
    /// The rights management of its seller encrypted it, and no password of its owner's opens it.
    Rights,
}

impl fmt::Display for Locked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPassword => formatter.write_str("give its password in a file of passwords, on a line of its own"),
            Self::Wrong { n_tried: 1 } => {
                formatter.write_str("the 1 password given does not open it; add its own to the file of passwords")
            }
            Self::Wrong { n_tried } => {
                write!(
                    formatter,
                    "none of the {n_tried} passwords given opens it; add its own to the file of passwords"
                )
            }
            Self::Unknown => formatter
                .write_str("in a way that is not opened here; save a copy without a password, and have that read"),
            Self::Rights => formatter.write_str(
                "by the rights management of its seller, which no password opens; have a copy without it read",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_passwords_is_lines() {
        let of = |text: &str| Passwords::parse(text.as_bytes()).map(|passwords| passwords.0.to_vec());
        assert_eq!(of("a\n b c \r\n\nü\na").unwrap(), ["a", " b c ", "ü"]);
        assert_eq!(of("\u{feff}a").unwrap(), ["a"]);
        let most = |n: usize| (0..n).map(|n| format!("{n:0255}\r\n")).collect::<String>();
        assert_eq!(of(&format!("\u{feff}{}", most(32))).unwrap().len(), 32);
        assert_eq!(most(32).len() as u64 + 3, PASSWORD_FILE_BYTES_MAX);
        for (text, words) in [
            ("", "no password"),
            ("\n\n", "no password"),
            ("a\nsecret\tone", "line 2 has a control character"),
            (&"x".repeat(256), "line 1 has 256 bytes"),
            (&most(33), "33 passwords"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(words) && !error.contains("secret"), "{error}");
        }
        assert_eq!(Passwords::parse(b"a\n\xff").unwrap_err(), "line 2 is not UTF-8");
    }

    #[test]
    fn passwords_are_not_shown() {
        let passwords = Passwords::parse(b"hunter2\nother").unwrap();
        assert_eq!(format!("{passwords:?}"), "Passwords(2)");
    }
}
