//! Mappings that outlive their disk: a page that cannot be read when it is touched ends no process.
//!
//! The system answers such a touch by a signal (SIGBUS): the disk refuses a page that memory was short of, or the file
//! was cut. A handler, set once for the process, looks for the address among the mappings that are watched, writes down
//! the first page that could not be read, puts zeros in place of the mapping from that page on, and lets the thread go
//! on. So whatever is computed from then on may be wrong: whoever uses a mapping asks [`Watched::bad`] afterwards, and
//! gives nothing out where there is such a page. A mapping stays bad until its file is mapped anew.
//!
//! Source: the way of systemd's `sigbus.c`. Differs: zeros reach to the end of the mapping, so that a character whose
//! first half was read keeps a harmless second half, and a scan over what is lost faults once.
//!
//! Contract: the handler calls nothing but the loads and stores below and `mmap`. It reads slots without a lock. The
//! slot that it looks for stands still, because the thread that faulted has the mapping; one that changes meanwhile is
//! another's, which its version tells. A signal of another origin goes on to the handler that was there before (Rust's
//! own, which knows an overflown stack), or has the effect it would have without us.
#![expect(unsafe_code, reason = "handles a signal and maps zeros over pages of ours; the contract is above")]

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use memmap2::Mmap;

/// Slots that are made at a time; they are used again and never freed.
const SLOTS: usize = 256;

/// A slot without a bad page.
const NONE: usize = usize::MAX;

/// A mapped file whose pages may turn bad.
pub(super) struct Watched {
    map: Mmap,
    slot: &'static Slot,
}

/// A mapping as the handler finds it.
struct Slot {
    /// Odd while the fields below change.
    version: AtomicUsize,
    start: AtomicUsize,
    /// 0 where the slot is free.
    n_bytes: AtomicUsize,
    /// The first page that could not be read, in bytes from the start.
    bad: AtomicUsize,
}

struct Slots {
    slots: [Slot; SLOTS],
    next: *const Slots,
}

/// All slots, a list that only grows at this end.
static ALL: AtomicPtr<Slots> = AtomicPtr::new(ptr::null_mut());

static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

/// The handler that was there before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

impl Watched {
    /// Maps a file, to be read.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn map(file: &File) -> io::Result<Self> {
        static ONCE: Once = Once::new();
        ONCE.call_once(handle);
        // SAFETY: the file is not changed while it is mapped: the contract of `mapped.rs`. Where it is cut nevertheless
        // or its disk fails, bytes turn into zeros and the mapping is bad.
        let map = unsafe { Mmap::map(file) }?;
        let slot = free_slot();
        slot.set(map.as_ptr().expose_provenance(), map.len());
        Ok(Self { map, slot })
    }

    /// The first page that could not be read since the file was mapped, in bytes from the start.
    #[inline]
    pub(super) fn bad(&self) -> Option<usize> {
        let bad = self.slot.bad.load(SeqCst);
        (bad != NONE).then_some(bad)
    }

    /// Writes down a place that was found bad otherwise; the first one that there is.
    pub(super) fn turn_bad(&self, at: usize) -> usize {
        self.slot.turn_bad(at)
    }

    /// Eight bytes as they are now, whatever was read before.
    ///
    /// # Panics
    /// Where they do not lie in the mapping.
    #[inline]
    pub(super) fn now(&self, at: usize) -> [u8; 8] {
        let bytes: &[u8; 8] = self.map[at..].first_chunk().expect("they lie in the mapping");
        // SAFETY: a reference can be read.
        unsafe { ptr::read_volatile(bytes) }
    }

    pub(super) fn mapping(&self) -> &Mmap {
        &self.map
    }
}

impl Deref for Watched {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for Watched {
    /// Ends the watch before the mapping, whose addresses may be another's at once.
    fn drop(&mut self) {
        self.slot.set(0, 0);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.slot);
    }
}

impl Slot {
    const FREE: Self = Self {
        version: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        n_bytes: AtomicUsize::new(0),
        bad: AtomicUsize::new(NONE),
    };

    fn set(&self, start: usize, n_bytes: usize) {
        self.version.fetch_add(1, SeqCst);
        self.start.store(start, SeqCst);
        self.n_bytes.store(n_bytes, SeqCst);
        self.bad.store(NONE, SeqCst);
        self.version.fetch_add(1, SeqCst);
    }

    fn turn_bad(&self, at: usize) -> usize {
        self.bad.compare_exchange(NONE, at, SeqCst, SeqCst).map_or_else(|first| first, |_| at)
    }

    /// Start and length, if the address lies between and they did not change while they were read.
    fn around(&self, address: usize) -> Option<(usize, usize)> {
        let version = self.version.load(SeqCst);
        let (start, n_bytes) = (self.start.load(SeqCst), self.n_bytes.load(SeqCst));
        // The last page reaches beyond the file, and is as bad there.
        let n_mapped = n_bytes.checked_next_multiple_of(PAGE_BYTES.load(SeqCst))?;
        let is_still = version.is_multiple_of(2) && self.version.load(SeqCst) == version;
        (is_still && address >= start && address - start < n_mapped).then_some((start, n_mapped))
    }
}

fn free_slot() -> &'static Slot {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    if free.is_empty() {
        let made = Slots { slots: [const { Slot::FREE }; SLOTS], next: ALL.load(SeqCst) };
        let made: &'static Slots = Box::leak(Box::new(made));
        ALL.store(ptr::from_ref(made).cast_mut(), SeqCst);
        free.extend(&made.slots);
    }
    free.pop().expect("slots were just made")
}

/// Sets the handler. Where the system refuses, a bad page ends the process as it would without.
fn handle() {
    // SAFETY: both structures are whole, zeros are a value of theirs, and the handler is what the flags say.
    unsafe {
        PAGE_BYTES.store(libc::sysconf(libc::_SC_PAGESIZE) as usize, SeqCst);
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, ptr::null(), &mut before) != 0 || BEFORE.set(before).is_err() {
            return;
        }
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = on_bad_page as *const () as libc::sighandler_t;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigemptyset(&mut ours.sa_mask);
        libc::sigaction(libc::SIGBUS, &ours, ptr::null_mut());
    }
}

extern "C" fn on_bad_page(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system hands over what the flags say. Others than it have a code of 0 or less, and no address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    // macOS calls all of them misaligned.
    let is_misaligned = cfg!(target_os = "linux") && code == libc::BUS_ADRALN;
    let is_of_memory = code > 0 && !is_misaligned;
    if !(is_of_memory && replace_by_zeros(address)) {
        hand_on(signal, info, context, code > 0);
    }
}

/// Writes down that a mapping is bad and puts zeros there; false if it is none of ours.
fn replace_by_zeros(address: usize) -> bool {
    let mut slots = ALL.load(SeqCst).cast_const();
    // SAFETY: slots are never freed.
    while let Some(some) = unsafe { slots.as_ref() } {
        for slot in &some.slots {
            let Some((start, n_mapped)) = slot.around(address) else { continue };
            let page = address - address % PAGE_BYTES.load(SeqCst);
            // First this, so that whoever sees zeros finds it.
            slot.turn_bad(page - start);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED | libc::MAP_NORESERVE;
            // SAFETY: from the page to the end the addresses are of this mapping, which the thread that faulted has.
            let zeros = unsafe {
                let page = ptr::with_exposed_provenance_mut(page);
                libc::mmap(page, start + n_mapped - page.addr(), libc::PROT_READ, flags, -1, 0)
            };
            return zeros != libc::MAP_FAILED;
        }
        slots = some.next;
    }
    false
}

/// Has the signal do what it would have done without us.
fn hand_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void, is_of_the_system: bool) {
    let handler = BEFORE.get().map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    let takes_info = BEFORE.get().is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: what is no constant is a function of the shape that its flags say.
    unsafe {
        match handler {
            libc::SIG_IGN if !is_of_the_system => {}
            libc::SIG_DFL | libc::SIG_IGN => {
                let mut default: libc::sigaction = std::mem::zeroed();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &default, ptr::null_mut());
                // A fault comes again as soon as the thread goes on; what somebody sent does not.
                if !is_of_the_system {
                    libc::raise(signal);
                }
            }
            handler if takes_info => {
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute::<*const (), _>(ptr::with_exposed_provenance(handler));
                handler(signal, info, context);
            }
            handler => {
                let handler: extern "C" fn(c_int) =
                    std::mem::transmute::<*const (), _>(ptr::with_exposed_provenance(handler));
                handler(signal);
            }
        }
    }
}

#[cfg(test)]
mod tests;
