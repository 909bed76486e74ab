//! One child and what is said with it, under a clock that is held here.
//!
//! The bytes of the file go in as the child takes them, its answers come out as they are made; nothing waits for the
//! child longer than the clock of its file allows. Time in which nobody takes the answers is not the child's, nor is
//! time in which it could go on and the machine does other things.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::failure::{Failure, Stopped};
use super::limits::FileLimits;
use super::protocol::{Answer, Hello, PROTOCOL, Request, send};

/// Bytes that are moved at once: what a pipe holds.
const PIPE_BYTES: usize = 64 << 10;

/// Bytes of a child's last words that are kept.
const SAID_BYTES_MAX: usize = 4 << 10;

/// Characters of them that are told.
const SAID_CHARACTERS_MAX: usize = 200;

/// The time after which somebody who wants the reading to stop is looked at again.
const LOOK: Duration = Duration::from_millis(50);

/// Ticks of a second in which Linux tells programs of processor time, on every machine (`USER_HZ`, proc(5)).
const TICKS_PER_SECOND: u64 = 100;

/// Bytes of what Linux tells of a process, at most.
const STAT_BYTES_MAX: u64 = 4 << 10;

/// Variables that a child keeps: without them an executable may not find its libraries.
const KEPT_VARIABLES: [&str; 2] = ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

fn system(error: impl std::fmt::Display) -> Stopped {
    Stopped::Failed(Failure::System { reason: error.to_string() })
}

/// Reads `file` in a child and gives each of its answers to `take`, the last one included.
pub(super) fn talk(
    command: &[OsString],
    request: &Request,
    file: File,
    limits: &FileLimits,
    stop: &AtomicBool,
    take: &mut dyn FnMut(Answer) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    let mut talk = Talk::start(command, request, file, limits)?;
    let talked = talk.go_on(stop, take);
    let ended = talk.end();
    match talked {
        Err(stopped) => Err(stopped),
        Ok(()) if talk.has_ended => Ok(()),
        Ok(()) => Err(talk.died(ended.map_err(system)?).into()),
    }
}

/// The output of a command, and the first line that it says on stderr.
pub(super) struct Output {
    pub(super) written: Vec<u8>,
    pub(super) said: String,
}

/// Has the command of a request read `file`: it counts when it ends with exit status 0.
pub(super) fn run(
    command: &[OsString],
    request: &Request,
    file: File,
    limits: &FileLimits,
    stop: &AtomicBool,
) -> Result<Output, Stopped> {
    let mut talk = Talk::start(command, request, file, limits)?;
    let talked = talk.go_on(stop, &mut |_| Ok(()));
    let ended = talk.end();
    talked?;
    if !talk.greeted {
        return Err(talk.died(ended.map_err(system)?).into());
    }
    match ended.map_err(system)? {
        status if status.success() => {
            Ok(Output { said: first_line(&talk.said), written: std::mem::take(&mut talk.line) })
        }
        status => Err(talk.died(status).into()),
    }
}

struct Talk<'t> {
    child: Child,
    /// It becomes another program, whose output is what is wanted.
    is_command: bool,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    limits: &'t FileLimits,
    file: File,
    /// Bytes on their way to the child: first the request.
    pending: Vec<u8>,
    n_sent: usize,
    file_ended: bool,
    greeted: bool,
    has_ended: bool,
    /// The line that is coming in.
    line: Vec<u8>,
    n_answered: u64,
    said: Vec<u8>,
    started: Instant,
    waited: Duration,
}

impl<'t> Talk<'t> {
    fn start(command: &[OsString], request: &Request, file: File, limits: &'t FileLimits) -> Result<Self, Stopped> {
        let start = |reason: String| Stopped::Failed(Failure::Start { reason });
        let [program, arguments @ ..] = command else { return Err(start("no command".to_owned())) };
        let is_command = !request.run.is_empty();
        let mut child = Command::new(program);
        child.args(arguments).env_clear().current_dir("/");
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if is_command {
            child.process_group(0); // what it starts ends with it
            child.envs(std::env::vars_os().filter(|(name, _)| !is_secret(&name.to_string_lossy())));
        } else {
            child.envs(KEPT_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        }
        let mut child = child.spawn().map_err(|error| start(format!("{}: {error}", program.display())))?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut pending = Vec::new();
        send(&mut pending, request).map_err(system)?;
        let talk = Self {
            child,
            is_command,
            input,
            output,
            errors,
            limits,
            file,
            pending,
            n_sent: 0,
            file_ended: false,
            greeted: false,
            has_ended: false,
            line: Vec::new(),
            n_answered: 0,
            said: Vec::new(),
            started: Instant::now(),
            waited: Duration::ZERO,
        };
        talk.input.as_ref().map_or(Ok(()), |pipe| ioctl_fionbio(pipe, true)).map_err(system)?;
        talk.output.as_ref().map_or(Ok(()), |pipe| ioctl_fionbio(pipe, true)).map_err(system)?;
        talk.errors.as_ref().map_or(Ok(()), |pipe| ioctl_fionbio(pipe, true)).map_err(system)?;
        Ok(talk)
    }

    /// Moves bytes until the child has said its last, or both its outputs are closed.
    fn go_on(&mut self, stop: &AtomicBool, take: &mut dyn FnMut(Answer) -> Result<(), Stopped>) -> Result<(), Stopped> {
        while !self.has_ended && (self.output.is_some() || self.errors.is_some()) {
            let is_over = self.is_over();
            if stop.load(Ordering::Relaxed) {
                return Err(Stopped::Unwanted);
            }
            if self.started.elapsed().saturating_sub(self.waited) > self.limits.clock {
                return Err(Failure::Time { seconds: self.limits.clock.as_secs() }.into());
            }
            let looked = Instant::now();
            let (feeds, hears, listens) = self.ready()?;
            if !(feeds || hears || listens) && self.is_kept_from_running() {
                self.waited += looked.elapsed();
            }
            if feeds {
                self.feed()?;
            }
            if listens {
                self.listen();
            }
            if hears {
                self.hear(take)?;
            }
            if is_over && !(hears || listens) {
                return Ok(()); // a program that it started and left behind holds its outputs open
            }
        }
        Ok(())
    }

    /// True of a command that has ended. It is not waited for: until then its group has its number, and none other.
    fn is_over(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.is_command && matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(Some(_)))
    }

    /// Waits a moment; then says of input, output and errors whether something can be done with them.
    fn ready(&self) -> Result<(bool, bool, bool), Stopped> {
        let input = self.input.as_ref().filter(|_| self.greeted);
        let mut waiting = Vec::with_capacity(3);
        waiting.extend(input.map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        waiting.extend(self.output.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        waiting.extend(self.errors.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let look = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
        match poll(&mut waiting, Some(&look)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(system(error)),
        }
        let mut changed = waiting.iter().map(|pipe| !pipe.revents().is_empty());
        let mut next = |is_open: bool| is_open && changed.next().unwrap_or(false);
        Ok((next(input.is_some()), next(self.output.is_some()), next(self.errors.is_some())))
    }

    /// Says whether the child could run and has processor time left. Never where the system does not tell.
    fn is_kept_from_running(&self) -> bool {
        let mut stat = String::new();
        let file = File::open(format!("/proc/{}/stat", self.child.id()));
        if file.and_then(|file| file.take(STAT_BYTES_MAX).read_to_string(&mut stat)).is_err() {
            return false;
        }
        // Behind the name, in which anything may stand: the state, and at 12 and 13 the ticks of user and system.
        let Some((_, fields)) = stat.rsplit_once(") ") else { return false };
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<u64>().ok());
        let (Some(user), Some(system)) = (ticks(11), ticks(12)) else { return false };
        fields[0] == "R" && (user + system) / TICKS_PER_SECOND < self.limits.processor_seconds
    }

    /// Gives the child as much as its pipe takes. A child that wants no more has read enough.
    fn feed(&mut self) -> Result<(), Stopped> {
        if self.n_sent == self.pending.len() && !self.file_ended {
            self.pending.resize(PIPE_BYTES, 0);
            let n_read = self.file.read(&mut self.pending).map_err(Stopped::Unread)?;
            self.pending.truncate(n_read);
            self.n_sent = 0;
            self.file_ended = n_read == 0;
        }
        let Some(input) = self.input.as_mut().filter(|_| !self.file_ended) else {
            self.input = None;
            return Ok(());
        };
        match input.write(&self.pending[self.n_sent..]) {
            Ok(n_sent) => self.n_sent += n_sent,
            Err(error) if is_later(&error) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.input = None,
            Err(error) => return Err(system(error)),
        }
        Ok(())
    }

    /// Keeps the beginning of what the child says on stderr.
    fn listen(&mut self) {
        let mut bytes = [0; 4096];
        match self.errors.as_mut().map_or(Ok(0), |errors| errors.read(&mut bytes)) {
            Ok(n_read) if n_read > 0 => {
                let n_kept = n_read.min(SAID_BYTES_MAX - self.said.len());
                self.said.extend_from_slice(&bytes[..n_kept]);
            }
            Err(error) if is_later(&error) => {}
            Ok(_) | Err(_) => self.errors = None,
        }
    }

    /// Takes what the child has answered, line by line.
    fn hear(&mut self, take: &mut dyn FnMut(Answer) -> Result<(), Stopped>) -> Result<(), Stopped> {
        let mut bytes = [0; PIPE_BYTES];
        let n_read = match self.output.as_mut().map_or(Ok(0), |output| output.read(&mut bytes)) {
            Ok(0) => {
                self.output = None;
                return Ok(());
            }
            Ok(n_read) => n_read,
            Err(error) if is_later(&error) => return Ok(()),
            Err(error) => return Err(system(error)),
        };
        self.n_answered += n_read as u64;
        if self.n_answered > self.limits.answers_bytes {
            return Err(Failure::Flood { n_bytes: self.limits.answers_bytes }.into());
        }
        let mut rest = &bytes[..n_read];
        while !(self.is_command && self.greeted)
            && let Some(end) = rest.iter().position(|&byte| byte == b'\n')
        {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.answer(&line, take)?;
        }
        self.line.extend_from_slice(rest);
        if self.line.len() as u64 > self.limits.answer_bytes {
            return Err(Failure::Flood { n_bytes: self.limits.answer_bytes }.into());
        }
        Ok(())
    }

    fn answer(&mut self, line: &[u8], take: &mut dyn FnMut(Answer) -> Result<(), Stopped>) -> Result<(), Stopped> {
        if !self.greeted {
            let hello = serde_json::from_slice::<Hello>(line).ok().filter(|hello| hello.protocol == PROTOCOL);
            self.greeted = hello.is_some();
            let reason = "the command that was named starts no reader of this version".to_owned();
            return if self.greeted { Ok(()) } else { Err(Failure::Start { reason }.into()) };
        }
        if self.has_ended {
            return Err(Failure::Answer { reason: "more behind the end".to_owned() }.into());
        }
        let answer: Answer = serde_json::from_slice(line).map_err(|error| Failure::Answer {
            reason: format!("a line that is none of it ({:?})", error.classify()),
        })?;
        self.has_ended = matches!(answer, Answer::End { .. });
        let began = Instant::now();
        let taken = take(answer);
        self.waited += began.elapsed();
        taken
    }

    /// Ends the child, if it has not ended itself, and waits for it; of a command, all that it started and that stayed.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if self.is_command {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL); // none is left, or it is over
        }
        self.child.kill()?; // what has ended already ended as it did
        self.child.wait()
    }

    /// The reason for which a child ended that had not said its last.
    fn died(&self, status: ExitStatus) -> Failure {
        #[cfg(unix)]
        {
            use std::os::unix::process::ExitStatusExt as _;
            if status.signal() == Some(Signal::XCPU.as_raw()) {
                return Failure::Processor { seconds: self.limits.processor_seconds };
            }
        }
        let said = String::from_utf8_lossy(&self.said);
        if said.contains("memory allocation of ") {
            return Failure::Memory { mebibytes: self.limits.memory_bytes >> 20 };
        }
        let words = if self.is_command { first_line(&self.said) } else { told(&said) };
        let said = if words.is_empty() { String::new() } else { format!(": {words}") };
        Failure::Died { reason: format!("{status}{said}") }
    }
}

impl Drop for Talk<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill(); // an error says that it is gone
        let _ = self.child.wait();
    }
}

/// The beginning of what was said, in one line.
fn told(said: &str) -> String {
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|letter| !letter.is_control()).take(SAID_CHARACTERS_MAX).collect()
}

/// The first line with words.
fn first_line(said: &[u8]) -> String {
    String::from_utf8_lossy(said).lines().map(told).find(|line| !line.is_empty()).unwrap_or_default()
}

/// True for variables that hold keys: they are not for programs of others.
fn is_secret(name: &str) -> bool {
    name.starts_with("CENTO_") || name.starts_with("HF_TOKEN")
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
