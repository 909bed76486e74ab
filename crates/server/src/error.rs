//! What keeps a server from starting or ends it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Every way a server can fail as a whole; a request that fails is answered with a refusal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address that other machines reach, and nobody is asked for a key.
    #[error("{address}: other machines reach this address; give a file of keys, or listen on 127.0.0.1")]
    Unguarded {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("{address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// A file of keys has a line that is none, or no key at all.
    #[error("{path}: line {line}: {reason}")]
    Keys {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 for the file as a whole.
        line: usize,
        /// The fault found.
        reason: &'static str,
    },
    /// A file cannot be read.
    #[error("{path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The runtime, a thread or a signal handler was refused by the system.
    #[error("the system refused what a server needs")]
    System(#[source] io::Error),
    /// The client at the other end of the pipes broke the protocol before it began.
    #[error("the conversation could not begin: {reason}")]
    Protocol {
        /// The fault found.
        reason: String,
    },
}

/// The result of what concerns a server as a whole.
pub type Result<T, E = Error> = std::result::Result<T, E>;
