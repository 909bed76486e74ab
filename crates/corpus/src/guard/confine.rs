//! Confinement: what a process gives up before it reads what others wrote. It cannot be taken back.
//!
//! Limits of the system (memory, processor time, no file longer than 0 bytes, no descriptor but the three it has, no
//! process beside it), Landlock (no path, no network, no process outside), and a list of the system calls that reading
//! needs; every other call is refused. Each holds alone: a kernel without Landlock leaves the others.

use std::fmt;
#[cfg(unix)]
use std::io;

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// The bounds on what a confined process may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of address space.
    pub memory_bytes: u64,
    /// Seconds of processor time.
    pub processor_seconds: u64,
}

/// The parts of a confinement that depend on the kernel. The limits of the system hold on all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    /// Landlock: no path can be opened, nothing reached over a network.
    pub landlock: Held,
    /// The list of system calls.
    pub system_calls: Held,
}

/// The strength of a part of the confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Held {
    /// All that it can say is held to.
    Full,
    /// The kernel knows a part of it.
    Partly,
    /// The kernel, or this build, has none.
    Absent,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Partly => "partly",
            Self::Absent => "absent",
        })
    }
}

impl Confinement {
    /// True if nothing is missing.
    pub fn is_full(&self) -> bool {
        let Self { landlock, system_calls } = self;
        (landlock, system_calls) == (&Held::Full, &Held::Full)
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limits full, system calls {}, landlock {}", self.system_calls, self.landlock)
    }
}

/// Confines this process for the rest of its life. It must have one thread, which stays the only one.
///
/// # Errors
/// The system refuses a limit, or a part of the confinement that it has.
#[cfg(unix)]
pub fn confine(bounds: &Bounds) -> io::Result<Confinement> {
    let landlock = parts::landlock()?; // takes a descriptor, so it comes before the limit on those
    set(Resource::Fsize, 0)?;
    set(Resource::Nproc, 0)?;
    set(Resource::Nofile, 3)?;
    limit(bounds)?;
    Ok(Confinement { landlock, system_calls: parts::system_calls()? })
}

/// Limits what this process may use up, and each that it starts: all that can be asked of a program that is not ours.
///
/// # Errors
/// The system refuses a limit.
#[cfg(unix)]
pub(super) fn limit(bounds: &Bounds) -> io::Result<()> {
    set(Resource::Core, 0)?;
    set(Resource::As, bounds.memory_bytes)?;
    // The first limit ends it by a signal of its own, by which it is known; the second by the one that ends all.
    let (current, maximum) = (Some(bounds.processor_seconds), Some(bounds.processor_seconds.saturating_add(1)));
    Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
}

#[cfg(unix)]
fn set(resource: Resource, limit: u64) -> io::Result<()> {
    Ok(setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?)
}

#[cfg(target_os = "linux")]
mod parts {
    use std::io;

    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetStatus,
        Scope,
    };

    use super::Held;

    /// No path, no network, no signal or socket outside: a set of rules that allows nothing.
    pub(super) fn landlock() -> io::Result<Held> {
        let known = ABI::V6;
        let ruled = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(known))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(known)))
            .and_then(|rules| rules.scope(Scope::from_all(known)))
            .and_then(Ruleset::create)
            .and_then(landlock::RulesetCreated::restrict_self)
            .map_err(io::Error::other)?;
        Ok(match ruled.ruleset {
            RulesetStatus::FullyEnforced => Held::Full,
            RulesetStatus::PartiallyEnforced => Held::Partly,
            RulesetStatus::NotEnforced => Held::Absent,
        })
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) fn system_calls() -> io::Result<Held> {
        use libc::EPERM;
        use seccompiler::{
            BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        };

        /// Memory, the three descriptors that are open, time, chance, and the way out.
        const ALLOWED: [i64; 30] = [
            libc::SYS_brk,
            libc::SYS_clock_getres,
            libc::SYS_clock_gettime,
            libc::SYS_close,
            libc::SYS_exit,
            libc::SYS_exit_group,
            libc::SYS_fstat,
            libc::SYS_futex,
            libc::SYS_getpid,
            libc::SYS_getrandom,
            libc::SYS_gettid,
            libc::SYS_gettimeofday,
            libc::SYS_lseek,
            libc::SYS_madvise,
            libc::SYS_mmap,
            libc::SYS_mprotect,
            libc::SYS_mremap,
            libc::SYS_munmap,
            libc::SYS_ppoll,
            libc::SYS_read,
            libc::SYS_readv,
            libc::SYS_restart_syscall,
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_sched_getaffinity,
            libc::SYS_sched_yield,
            libc::SYS_sigaltstack,
            libc::SYS_write,
            libc::SYS_writev,
        ];
        let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
            ALLOWED.iter().map(|&call| (call, Vec::new())).collect();
        let only_if = |argument: u8, value: u64| {
            let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, value);
            condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(io::Error::other)
        };
        rules.insert(libc::SYS_prlimit64, vec![only_if(2, 0)?]); // to ask for a limit, not to set one
        rules.insert(libc::SYS_tgkill, vec![only_if(0, u64::from(std::process::id()))?]); // an abort
        let (refuse, allow) = (SeccompAction::Errno(EPERM as u32), SeccompAction::Allow);
        let machine = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
        let filter = SeccompFilter::new(rules, refuse, allow, machine).map_err(io::Error::other)?;
        let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
        seccompiler::apply_filter(&program).map_err(io::Error::other)?;
        Ok(Held::Full)
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(super) fn system_calls() -> io::Result<Held> {
        Ok(Held::Absent)
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod parts {
    use std::io;

    use super::Held;

    pub(super) fn landlock() -> io::Result<Held> {
        Ok(Held::Absent)
    }

    pub(super) fn system_calls() -> io::Result<Held> {
        Ok(Held::Absent)
    }
}
