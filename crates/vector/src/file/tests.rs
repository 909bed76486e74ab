//! The container: what was written is read, and nothing else is taken for it.

use std::io::{Cursor, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::layout::Header;
use super::writer::BUFFER_BYTES;
use super::*;
use crate::Error;
use crate::faults::ReadFault;
use crate::testing::{Folder, Random, flip};

const KIND: [u8; 8] = *b"test\0\0\0\0";

/// The payload of the first block.
const FIRST_BYTES: usize = BLOCK_BYTES - HEADER_BYTES;

/// Sizes around the edges of blocks and of what is written at a time.
const SIZES: [usize; 9] = [
    0,
    1,
    63,
    FIRST_BYTES - 1,
    FIRST_BYTES,
    FIRST_BYTES + 1,
    FIRST_BYTES + 2 * BLOCK_BYTES + 17,
    BUFFER_BYTES - HEADER_BYTES,
    2 * BUFFER_BYTES + 1,
];

fn payload(n_bytes: usize) -> Vec<u8> {
    let mut random = Random::new(n_bytes as u64);
    (0..n_bytes).map(|_| random.next() as u8).collect()
}

fn file_of(payload: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), KIND).unwrap();
    writer.write_all(payload).unwrap();
    writer.finish([3, 5]).unwrap().into_inner()
}

/// A header that is whole in itself, over this payload and table.
fn file_with(header: &Header, rest: &[u8]) -> Vec<u8> {
    [&header.encode()[..], rest].concat()
}

#[track_caller]
fn open(folder: &Folder, bytes: &[u8]) -> Result<Mapped, Error> {
    let path = folder.path("file");
    fs_err::write(&path, bytes).unwrap();
    Mapped::open(path, KIND)
}

/// Opening must fail, with the damage at this offset if it is given.
#[track_caller]
fn check_corrupt(result: Result<Mapped, Error>, at: Option<u64>, what: &str) {
    match result {
        Err(Error::Corrupt { offset, .. }) => assert_eq!(offset, at.unwrap_or(offset), "{what}"),
        other => panic!("{what}: expected a corrupt file, got {other:?}"),
    }
}

#[test]
fn what_is_written_is_read_however_it_is_cut() {
    let folder = Folder::new();
    for n_bytes in SIZES {
        let payload = payload(n_bytes);
        let mut writer = Writer::new(Cursor::new(Vec::new()), KIND).unwrap();
        for piece in payload.chunks(1_000) {
            writer.write_all(piece).unwrap();
        }
        assert_eq!(writer.payload_bytes(), n_bytes as u64);
        let bytes = writer.finish([3, 5]).unwrap().into_inner();
        assert_eq!(bytes, file_of(&payload), "the bytes do not depend on the pieces");
        let mapped = open(&folder, &bytes).unwrap();
        assert_eq!((mapped.counts(), mapped.kind(), mapped.len()), ([3, 5], KIND, n_bytes));
        assert_eq!(mapped.bytes(0..n_bytes).unwrap(), payload);
        assert_eq!(&mapped[..], payload);
        assert_eq!(mapped.as_ptr() as usize % 64, 0, "the payload is aligned");
        mapped.verify().unwrap();
    }
}

/// The bytes that version 2 stands for: a change here is a new version.
#[test]
fn the_format_is_what_it_was() {
    let expected: [&[u8]; 6] = [
        b"\x89CENTO\r\n",
        b"\x02\0\0\0\0\x10\0\0", // version 2, blocks of 4,096 bytes
        b"test\0\0\0\0",
        b"\x03\0\0\0\0\0\0\0",
        b"\x05\0\0\0\0\0\0\0",
        b"\x03\0\0\0\0\0\0\0", // bytes of payload
    ];
    let bytes = file_of(b"abc");
    assert_eq!((bytes.len(), &bytes[..48]), (64 + 3 + 8, &expected.concat()[..]));
    assert_eq!(bytes[48..56], xxh3_64(&bytes[67..]).to_le_bytes());
    assert_eq!(bytes[56..64], xxh3_64(&bytes[..56]).to_le_bytes());
    assert_eq!((&bytes[64..67], &bytes[67..]), (&b"abc"[..], &0x78af_5f94_892f_3950_u64.to_le_bytes()[..]));
}

#[test]
fn any_change_of_a_header_byte_is_found() {
    let folder = Folder::new();
    let bytes = file_of(&payload(100));
    for at in 0..HEADER_BYTES {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            check_corrupt(open(&folder, &bytes), None, &format!("byte {at} ^ {flip:#x}"));
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_found() {
    let folder = Folder::new();
    for n_bytes in SIZES {
        let bytes = file_of(&payload(n_bytes));
        let payload_end = HEADER_BYTES + n_bytes;
        let edges = [0, HEADER_BYTES, BLOCK_BYTES, payload_end, bytes.len()];
        let near = |edge: usize| edge.saturating_sub(9)..edge + 9;
        for cut in edges.into_iter().flat_map(near).filter(|&cut| cut < bytes.len()) {
            check_corrupt(open(&folder, &bytes[..cut]), Some(cut as u64), &format!("{n_bytes} cut to {cut}"));
        }
    }
    let bytes = file_of(&payload(100));
    for cut in 0..bytes.len() {
        check_corrupt(open(&folder, &bytes[..cut]), Some(cut as u64), &format!("cut to {cut}"));
    }
}

#[test]
fn a_suffix_is_found_even_of_zeros() {
    let folder = Folder::new();
    for suffix in [&[0_u8][..], &[0; 4096], b"x"] {
        let mut bytes = file_of(&payload(100));
        let end = bytes.len() as u64;
        bytes.extend_from_slice(suffix);
        check_corrupt(open(&folder, &bytes), Some(end), "suffix");
    }
}

#[test]
fn a_file_that_was_never_finished_says_so() {
    let folder = Folder::new();
    let path = folder.path("unfinished");
    let mut writer = Writer::new(fs_err::File::create(&path).unwrap(), KIND).unwrap();
    writer.write_all(&payload(2 * BLOCK_BYTES)).unwrap();
    drop(writer);
    let message = Mapped::open(&path, KIND).unwrap_err().to_string();
    assert!(message.contains("never finished") && message.contains("unfinished"), "{message}");
}

#[test]
fn any_change_of_the_table_is_found_when_the_file_is_opened() {
    let folder = Folder::new();
    let bytes = file_of(&payload(2 * BLOCK_BYTES + 1));
    let table = HEADER_BYTES + 2 * BLOCK_BYTES + 1;
    for at in table..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        check_corrupt(open(&folder, &bytes), Some(table as u64), &format!("byte {at}"));
    }
}

#[test]
fn a_changed_block_is_found_by_every_read_that_touches_it_and_by_no_other() {
    let folder = Folder::new();
    let n_bytes = FIRST_BYTES + 2 * BLOCK_BYTES + 17;
    let whole = file_of(&payload(n_bytes));
    for at in [0, FIRST_BYTES - 1, FIRST_BYTES, FIRST_BYTES + 77, FIRST_BYTES + 2 * BLOCK_BYTES, n_bytes - 1] {
        let mut bytes = whole.clone();
        bytes[HEADER_BYTES + at] ^= 0x01;
        let mapped = open(&folder, &bytes).expect("opening reads no payload");
        // Blocks are pages of the file.
        let page = (HEADER_BYTES + at) / BLOCK_BYTES * BLOCK_BYTES;
        let block = page.saturating_sub(HEADER_BYTES)..n_bytes.min(page + BLOCK_BYTES - HEADER_BYTES);
        let touching = [at..at + 1, block.start..block.start + 1, block.end - 1..block.end, 0..n_bytes];
        for range in touching.iter().chain(&touching) {
            match mapped.bytes(range.clone()) {
                Err(Error::Corrupt { offset, .. }) => assert_eq!(offset, (HEADER_BYTES + block.start) as u64),
                other => panic!("{range:?} touches the changed byte {at}: {:?}", other.map(<[u8]>::len)),
            }
        }
        mapped.bytes(0..block.start).expect("blocks before it are whole");
        mapped.bytes(block.end..n_bytes).expect("blocks after it are whole");
        mapped.bytes(at..at).expect("an empty range touches nothing");
        assert!(matches!(mapped.verify(), Err(Error::Corrupt { .. })));
    }
}

#[test]
fn a_range_outside_the_payload_is_an_error() {
    let mapped = open(&Folder::new(), &file_of(&payload(100))).unwrap();
    let reversed = std::ops::Range { start: 20, end: 10 };
    for range in [0..101, 100..101, 101..101, usize::MAX - 1..usize::MAX, reversed] {
        assert!(matches!(mapped.bytes(range.clone()), Err(Error::Corrupt { .. })), "{range:?}");
    }
}

fn header() -> Header {
    Header { version: FORMAT_VERSION, kind: KIND, counts: [0, 0], payload_bytes: 0, table_checksum: xxh3_64(&[]) }
}

#[test]
fn a_newer_version_is_told_from_damage() {
    let bytes = file_with(&Header { version: FORMAT_VERSION + 1, payload_bytes: 999, ..header() }, b"of another shape");
    match open(&Folder::new(), &bytes) {
        Err(error @ Error::Newer { found, supported, .. }) => {
            assert_eq!((found, supported), (FORMAT_VERSION + 1, FORMAT_VERSION));
            assert!(error.to_string().contains("newer Cento"), "{error}");
        }
        other => panic!("expected a newer file, got {other:?}"),
    }
}

#[test]
fn an_older_version_says_what_to_do() {
    let bytes = file_with(&Header { version: FORMAT_VERSION - 1, ..header() }, b"");
    let error = open(&Folder::new(), &bytes).unwrap_err();
    assert!(error.to_string().ends_with("written by an older Cento: index its documents again"), "{error}");
}

#[test]
fn ten_thousand_random_changes_lead_to_an_error_or_what_was_written() {
    const SEED: u64 = 20_261_121;
    println!("seed {SEED}");
    let (folder, mut random) = (Folder::new(), Random::new(SEED));
    let payload = payload(3 * BLOCK_BYTES + 17);
    let (whole, path) = (file_of(&payload), folder.path("file"));
    fs_err::write(&path, &whole).unwrap();
    for change in 0..10_000 {
        let (at, bits) = (random.below(whole.len()), 1 << random.below(8));
        flip(&path, at, bits);
        if let Ok(mapped) = Mapped::open(&path, KIND) {
            assert!(mapped.verify().is_err(), "change {change}: byte {at} ^ {bits} is not found");
            let start = random.below(payload.len());
            let range = start..payload.len().min(start + random.below(2 * BLOCK_BYTES));
            if let Ok(read) = mapped.bytes(range.clone()) {
                assert_eq!(read, &payload[range], "change {change}: byte {at} ^ {bits}");
            }
        }
        flip(&path, at, bits);
    }
}

#[test]
fn another_kind_is_told_from_damage() {
    let bytes = file_with(&Header { kind: *b"other\0\0\0", ..header() }, b"");
    let error = open(&Folder::new(), &bytes).unwrap_err();
    assert!(
        matches!(error, Error::OtherKind { .. }) && error.to_string().ends_with("holds \"other\", expected test"),
        "{error}"
    );
}

#[test]
fn lengths_that_overflow_are_found() {
    let folder = Folder::new();
    for payload_bytes in [u64::MAX, u64::MAX - 63, u64::MAX - 64, u64::MAX / 8 * 7, 1 << 63, 1 << 40] {
        let bytes = file_with(&Header { payload_bytes, ..header() }, &[0; 100]);
        check_corrupt(open(&folder, &bytes), None, &format!("{payload_bytes} bytes of payload"));
    }
}

#[test]
fn a_missing_file_is_named() {
    let message = Mapped::open(Path::new("/no/such/file"), KIND).unwrap_err().to_string();
    assert_eq!(message, "/no/such/file");
}

#[test]
fn clones_share_one_mapping_that_other_owners_can_hold() {
    fn stable<T: stable_deref_trait::CloneStableDeref + Send + Sync + 'static>(owner: &T) -> *const T::Target {
        &**owner
    }
    let mapped = open(&Folder::new(), &file_of(&payload(100))).unwrap();
    let clone = mapped.clone();
    let address = stable(&mapped);
    drop(mapped);
    assert_eq!(stable(&clone), address, "dropping a clone leaves the address");
    assert_eq!(clone.bytes(0..100).unwrap(), payload(100));
}

#[test]
fn a_writer_may_start_in_the_middle_of_a_file() {
    let mut out = Cursor::new(b"before".to_vec());
    out.set_position(6);
    let mut writer = Writer::new(out, KIND).unwrap();
    writer.write_all(&payload(100)).unwrap();
    let bytes = writer.finish([3, 5]).unwrap().into_inner();
    assert_eq!(bytes, [b"before", &file_of(&payload(100))[..]].concat());
}

proptest! {
    #[test]
    fn no_bytes_open_or_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let folder = Folder::new();
        prop_assert!(open(&folder, &bytes).is_err());
    }

    /// Headers whole in themselves: opening may succeed, reading must stay in bounds.
    #[test]
    fn no_header_leads_out_of_bounds(
        version in 0_u32..3,
        payload_bytes in prop_oneof![0_u64..300, any::<u64>()],
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let folder = Folder::new();
        let table_start = rest.len().min(payload_bytes.try_into().unwrap_or(usize::MAX));
        let table_checksum = xxh3_64(&rest[table_start..]);
        let bytes = file_with(&Header { version, payload_bytes, table_checksum, ..header() }, &rest);
        if let Ok(mapped) = open(&folder, &bytes) {
            let _ = mapped.verify();
            prop_assert_eq!(mapped.len() as u64, payload_bytes);
        }
    }
}

#[test]
fn a_file_cut_while_it_is_open_is_an_error_and_no_signal() {
    for is_read_before in [false, true] {
        for n_left in [0, 1, HEADER_BYTES, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES, 300 * BLOCK_BYTES] {
            let when = format!("{n_left} bytes left, read before: {is_read_before}");
            let folder = Folder::new();
            let payload = payload(520 * BLOCK_BYTES);
            let mapped = open(&folder, &file_of(&payload)).unwrap();
            if is_read_before {
                mapped.verify().unwrap();
            }
            assert!(!mapped.renew(Instant::now()).unwrap(), "{when}");
            fs_err::OpenOptions::new().write(true).open(folder.path("file")).unwrap().set_len(n_left as u64).unwrap();
            match mapped.renew(Instant::now()) {
                Err(error @ Error::Unreadable { .. }) => assert!(error.to_string().contains("file"), "{when}: {error}"),
                other => panic!("{when}: {other:?}"),
            }
            if !is_read_before {
                match mapped.verify() {
                    Err(Error::Unreadable { offset, source, .. }) => {
                        assert!(offset as usize + BLOCK_BYTES >= n_left && source.to_string().contains("cut short"))
                    }
                    Err(Error::Corrupt { .. }) => {} // the rest of the page that the cut goes through is zeros
                    other => panic!("{when}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_cut_within_the_last_page_is_noticed() {
    let folder = Folder::new();
    let mapped = open(&folder, &file_of(&payload(100))).unwrap();
    mapped.verify().unwrap();
    fs_err::OpenOptions::new().write(true).open(folder.path("file")).unwrap().set_len(90).unwrap();
    assert!(matches!(mapped.renew(Instant::now()), Err(Error::Unreadable { .. })));
}

#[test]
fn what_was_verified_an_hour_ago_is_verified_again() {
    let folder = Folder::new();
    let payload = payload(3 * BLOCK_BYTES);
    let mapped = open(&folder, &file_of(&payload)).unwrap();
    mapped.verify().unwrap();
    flip(&folder.path("file"), HEADER_BYTES + BLOCK_BYTES, 1);
    let now = Instant::now();
    assert!(!mapped.renew(now + Duration::from_secs(3500)).unwrap());
    mapped.verify().expect("it was whole less than an hour ago");
    assert!(mapped.renew(now + Duration::from_secs(3601)).unwrap());
    assert!(matches!(mapped.verify(), Err(Error::Corrupt { .. })), "rot is found");
    flip(&folder.path("file"), HEADER_BYTES + BLOCK_BYTES, 1);
    mapped.verify().unwrap();
    assert!(!mapped.renew(now + Duration::from_secs(7100)).unwrap(), "the next hour has begun");
}

#[test]
fn a_page_that_cannot_be_read_is_named_with_its_offset_and_the_others_are_read() {
    let folder = Folder::new();
    let n_bytes = FIRST_BYTES + 4 * BLOCK_BYTES;
    let bytes = file_of(&payload(n_bytes));
    let n_to_open = {
        let fault = ReadFault::at(&folder.path(""), usize::MAX);
        open(&folder, &bytes).unwrap();
        fault.n_reads()
    };
    for n in 0..n_to_open {
        let _fault = ReadFault::at(&folder.path(""), n);
        assert!(matches!(open(&folder, &bytes), Err(Error::Unreadable { .. })), "read {n}");
    }
    let mapped = open(&folder, &bytes).unwrap();
    let _fault = ReadFault::at(&folder.path(""), 0);
    let third = FIRST_BYTES + 2 * BLOCK_BYTES;
    for _ in 0..2 {
        let read = mapped.bytes(third..third + 1);
        assert!(
            matches!(read, Err(Error::Unreadable { offset, .. }) if offset as usize == 3 * BLOCK_BYTES),
            "{read:?}"
        );
        assert!(matches!(mapped.verify(), Err(Error::Unreadable { offset, .. }) if offset as usize == 3 * BLOCK_BYTES));
    }
    mapped.bytes(0..third).unwrap();
    mapped.bytes(third + BLOCK_BYTES..n_bytes).unwrap();
}

#[test]
fn bytes_that_are_lost_after_they_were_verified_are_an_error_until_the_file_is_opened_anew() {
    let folder = Folder::new();
    let bytes = file_of(&payload(9 * BLOCK_BYTES));
    for n_left in [0, BLOCK_BYTES, 5 * BLOCK_BYTES + 100, bytes.len() - 1] {
        let mapped = open(&folder, &bytes).unwrap();
        let verified = mapped.bytes(0..9 * BLOCK_BYTES).unwrap();
        let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        let before = sum(verified);
        mapped.check_whole().unwrap();
        fs_err::OpenOptions::new().write(true).open(folder.path("file")).unwrap().set_len(n_left as u64).unwrap();
        let _ = sum(std::hint::black_box(verified)); // no signal
        let expected = n_left.next_multiple_of(BLOCK_BYTES).min(bytes.len() - 8);
        let check = |result: Result<(), Error>| match result {
            Err(Error::Unreadable { offset, source, path }) => {
                assert_eq!((offset as usize, path), (expected, folder.path("file")), "{n_left} bytes left");
                assert!(source.to_string().contains("cut short"), "{source}");
            }
            other => panic!("{n_left} bytes left: {other:?}"),
        };
        check(mapped.check_whole());
        fs_err::write(folder.path("file"), &bytes).unwrap();
        let is_still_bad = [mapped.check_whole(), mapped.renew(Instant::now()).map(drop)];
        is_still_bad.into_iter().for_each(|result| assert!(matches!(result, Err(Error::Unreadable { .. }))));
        let anew = Mapped::open(folder.path("file"), KIND).unwrap();
        assert_eq!(sum(anew.bytes(0..9 * BLOCK_BYTES).unwrap()), before);
        anew.check_whole().unwrap();
    }
}
