//! The settings of a server: where it listens, who may ask, and what one client may cost.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The port unless one is given.
pub const DEFAULT_PORT: u16 = 8181;

/// The time that a request may take, queue included, unless said otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

/// Connections that are open at once, unless said otherwise; the system lets others wait.
pub const DEFAULT_CONNECTIONS: usize = 512;

/// Requests that wait for an engine thread in each lane, unless said otherwise.
pub const DEFAULT_QUEUE: usize = 64;

/// The largest body of a request, unless said otherwise: a thousand texts of 32 KiB, as clients send at once.
pub const DEFAULT_BODY_BYTES: usize = 32 << 20;

/// The most tokens of one answer to a language model that calls a tool, unless said otherwise: clients refuse answers
/// of more than 25,000.
pub const DEFAULT_TOOL_TOKENS: usize = 10_000;

/// Where a server listens, who may ask, and what one client may cost.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
    /// A file of keys, without which nothing but a loopback address is listened on.
    pub keys: Option<PathBuf>,
    /// Names of this machine that clients may use beside `localhost` and addresses.
    pub hosts: Vec<String>,
    /// Origins of web pages that may ask, as `https://app.example.com`.
    pub origins: Vec<String>,
    /// Threads that answer, two at least; 0 = four for each core.
    pub workers: usize,
    /// Requests that wait in each lane.
    pub queue: usize,
    /// Connections that are open at once.
    pub connections: usize,
    /// The time that a request may take, queue included.
    pub deadline: Duration,
    /// The largest body.
    pub body_bytes: usize,
    /// The most tokens of one answer to a language model that calls a tool.
    pub tool_tokens: usize,
    /// The way texts beyond the encoder's window are taken where a request does not say it.
    pub long_texts: LongTexts,
    /// The part of a failure that the log gives.
    pub log: Log,
    /// The way answers speak of folders of this machine.
    pub folders: Folders,
    /// The end of the server.
    pub life: Life,
}

/// The end of a server, if it is not told to stop before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Life {
    /// It goes on until a signal ends it.
    #[default]
    Signals,
    /// The end of stdin: whoever started the server holds the other end, and the system closes it however they end.
    Stdin,
}

/// The way answers speak of folders of this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Folders {
    /// By their own names: clients do not learn where they lie.
    #[default]
    Named,
    /// As the collection has them.
    Shown,
}

/// The way a text is taken that is longer than the encoder's window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LongTexts {
    /// It is an error.
    #[default]
    Refused,
    /// Its beginning is embedded.
    Truncated,
}

/// The part of a failure of the server itself that the log gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Log {
    /// Its code: no path and nothing that was asked.
    #[default]
    Codes,
    /// Its words too, which may name files and ids.
    Words,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
            keys: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            workers: 0,
            queue: DEFAULT_QUEUE,
            connections: DEFAULT_CONNECTIONS,
            deadline: DEFAULT_DEADLINE,
            body_bytes: DEFAULT_BODY_BYTES,
            tool_tokens: DEFAULT_TOOL_TOKENS,
            long_texts: LongTexts::default(),
            log: Log::default(),
            folders: Folders::default(),
            life: Life::default(),
        }
    }
}
