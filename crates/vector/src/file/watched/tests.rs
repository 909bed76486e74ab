//! Pages that are lost while they are mapped, by cuts and by a disk that fails; signals that are not ours.

use std::fs::OpenOptions;
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use super::*;
use crate::testing::{Folder, Random};

const PAGE: usize = 4096;

/// Says to a process of these tests which signal it is to get.
const CHILD: &str = "CENTO_TEST_SIGNAL";

/// The exit code of a handler that was there before ours.
const HANDLED: c_int = 42;

fn mapped(path: &Path, byte: u8, n_pages: usize) -> Watched {
    fs_err::write(path, vec![byte; n_pages * PAGE]).unwrap();
    Watched::map(&File::open(path).unwrap()).unwrap()
}

fn cut(path: &Path, n_bytes: usize) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(n_bytes as u64).unwrap();
}

/// The byte as it is now.
fn touch(map: &Watched, at: usize) -> u8 {
    map.now(at)[0]
}

#[test]
fn a_page_that_is_lost_reads_as_zeros_and_the_mapping_is_bad_from_then_on() {
    let folder = Folder::new();
    let path = folder.path("file");
    let map = mapped(&path, 0xAB, 8);
    assert!((0..8).all(|page| touch(&map, page * PAGE) == 0xAB));
    cut(&path, 3 * PAGE);
    assert!((0..3).all(|page| touch(&map, page * PAGE) == 0xAB));
    assert_eq!(map.bad(), None, "nothing that was lost was touched");
    assert_eq!(touch(&map, 5 * PAGE + 7), 0);
    assert_eq!(map.bad(), Some(5 * PAGE));
    assert!(map[5 * PAGE..].iter().all(|&byte| byte == 0), "to the end");
    assert_eq!(touch(&map, 3 * PAGE), 0, "a second fault, before the first");
    assert_eq!(map.bad(), Some(5 * PAGE), "the first page stays");
    fs_err::write(&path, vec![0xAB; 8 * PAGE]).unwrap();
    assert_eq!(map.bad(), Some(5 * PAGE), "the file is whole again, the mapping is not");
    let anew = Watched::map(&File::open(&path).unwrap()).unwrap();
    assert!(anew.iter().all(|&byte| byte == 0xAB) && anew.bad().is_none());
}

#[test]
fn threads_that_fault_at_once_turn_their_own_mapping_bad_and_no_other() {
    const ROUNDS: usize = 150;
    let folder = Folder::new();
    let n_bad: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8_u8)
            .map(|thread| {
                let path = folder.path(&format!("file-{thread}"));
                scope.spawn(move || (0..ROUNDS).filter(|&round| faulted(&path, thread + 1, round)).count())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(n_bad > ROUNDS && n_bad < 8 * ROUNDS, "{n_bad} of {}", 8 * ROUNDS);
}

/// Maps a file and has two threads read it while one of them may cut it; true if it was cut.
fn faulted(path: &Path, byte: u8, round: usize) -> bool {
    let mut random = Random::new((round * 256) as u64 + u64::from(byte));
    let map = mapped(path, byte, 4 + random.below(12));
    let n_pages = map.len() / PAGE;
    let n_left = (random.below(2) == 0).then(|| random.below(n_pages));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for page in (0..n_pages).rev() {
                let found = touch(&map, page * PAGE + page);
                assert!(found == byte || (found == 0 && map.bad().is_some()), "page {page}: {found}");
            }
        });
        n_left.iter().for_each(|n_left| cut(path, n_left * PAGE));
        for page in (0..n_pages).rev() {
            let found = touch(&map, page * PAGE);
            let is_lost = n_left.is_some_and(|n_left| page >= n_left);
            // Another fault before it may have put zeros over what is not lost.
            assert!(found == if is_lost { 0 } else { byte } || (found == 0 && map.bad().is_some()), "page {page}");
        }
    });
    match (map.bad(), n_left) {
        (None, None) => false,
        (Some(at), Some(n_left)) => {
            assert!(at >= n_left * PAGE && at < map.len(), "{at}");
            true
        }
        (bad, n_left) => panic!("{n_left:?} of {n_pages} pages left, bad at {bad:?}"),
    }
}

#[test]
fn a_signal_that_is_not_ours_has_the_effect_it_would_have_without_us() {
    match std::env::var(CHILD).as_deref() {
        Ok("handled") => {
            handle_before();
            die();
        }
        Ok(_) => die(),
        Err(_) => {
            assert_eq!(child("plain").signal(), Some(libc::SIGBUS));
            assert_eq!(child("handled").code(), Some(HANDLED));
        }
    }
}

/// Runs the test above in a process of its own.
fn child(which: &str) -> ExitStatus {
    let (_, place) = module_path!().split_once("::").unwrap();
    let name = format!("{place}::a_signal_that_is_not_ours_has_the_effect_it_would_have_without_us");
    Command::new(std::env::current_exe().unwrap()).args([&name, "--exact"]).env(CHILD, which).output().unwrap().status
}

/// Touches a page that is lost of a mapping that is watched, and lives; then of one that is not.
fn die() {
    let folder = Folder::new();
    let path = folder.path("file");
    let map = mapped(&path, 1, 2);
    cut(&path, 0);
    assert_eq!(touch(&map, PAGE), 0);
    fs_err::write(&path, [1; 2 * PAGE]).unwrap();
    // SAFETY: nobody else knows the file; that it is cut is what is tested.
    let other = unsafe { Mmap::map(&File::open(&path).unwrap()) }.unwrap();
    cut(&path, 0);
    black_box(black_box(&other)[PAGE]);
}

/// Sets a handler that ends the process.
fn handle_before() {
    extern "C" fn exit(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        // SAFETY: may be called in a handler.
        unsafe { libc::_exit(HANDLED) }
    }
    // SAFETY: as in `handle`.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        before.sa_sigaction = exit as *const () as libc::sighandler_t;
        before.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGBUS, &before, ptr::null_mut()), 0);
    }
}

/// A file system in a file, whose disk fails where the file is cut. To mount one takes rights that few have: without
/// `CENTO_TEST_LOOP=1` the test says that it did nothing.
#[cfg(target_os = "linux")]
#[test]
fn a_page_that_was_read_left_memory_and_cannot_be_read_again_is_no_signal() {
    if std::env::var_os("CENTO_TEST_LOOP").is_none() {
        println!("left out: CENTO_TEST_LOOP is not set");
        return;
    }
    let run = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
    let folder = Folder::new();
    let (image, place) = (folder.path("image"), folder.path("disk"));
    fs_err::create_dir(&place).unwrap();
    fs_err::write(&image, vec![0; 64 << 20]).unwrap();
    run(Command::new("mkfs.ext4").args(["-q", "-F", "-b", "4096"]).arg(&image));
    run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&place));
    let tried = std::panic::catch_unwind(|| {
        let path = place.join("file");
        let map = mapped(&path, 0xAB, 2048);
        run(Command::new("sync").arg("-f").arg(&path));
        assert!(map.iter().all(|&byte| byte == 0xAB));
        // SAFETY: pages that leave memory come back as they were.
        let is_out = unsafe { libc::madvise(map.as_ptr().cast_mut().cast(), map.len(), libc::MADV_PAGEOUT) };
        assert_eq!(is_out, 0);
        cut(&image, 1 << 20);
        let n_zeros = (0..2048).filter(|page| touch(&map, page * PAGE) == 0).count();
        (n_zeros, map.bad(), path.metadata().unwrap().len())
    });
    run(Command::new("umount").arg("-l").arg(&place));
    let (n_zeros, bad, n_bytes) = tried.unwrap();
    println!("{n_zeros} of 2048 pages lost, the first at {bad:?}");
    assert!(n_zeros > 0 && bad.is_some() && n_bytes == 2048 * PAGE as u64);
}
