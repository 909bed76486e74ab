//! Graphs that no builder makes: damaged files, and files whose checksums hold over any content.

use std::io::Write;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;

use super::*;
use crate::file::{BLOCK_BYTES, HEADER_BYTES, Writer};
use crate::testing::flip;

/// The results of searches of the damaged graph must be an error or what the whole graph gives. Returns whether it was
/// an error.
#[track_caller]
fn check(built: &Built, path: &std::path::Path, expected: &[Found], what: &str) -> bool {
    let ask = || -> Result<(), Error> {
        let graph = FrozenGraph::open(Mapped::open(path, KIND)?)?;
        for (row, expected) in expected.iter().enumerate() {
            let query = built.rows.row(row as u32)?;
            assert_eq!(search(&graph, &built.rows, &query, &Wanted::new(10, 40))?, *expected, "{what}");
        }
        Ok(())
    };
    match ask() {
        Ok(()) => false,
        Err(Error::Corrupt { .. } | Error::Newer { .. } | Error::OtherKind { .. }) => true,
        Err(error) => panic!("{what}: {error}"),
    }
}

fn expected_of(built: &Built) -> Vec<Found> {
    (0..3)
        .map(|row| search(&built.graph, &built.rows, &built.rows.row(row).unwrap(), &Wanted::new(10, 40)).unwrap())
        .collect()
}

#[test]
fn ten_thousand_random_changes_lead_to_an_error_or_the_right_answer() {
    const SEED: u64 = 20_261_121;
    println!("seed {SEED}");
    let (built, mut random) = (&clusters(), Random::new(SEED));
    let (expected, path, mut n_errors) = (expected_of(built), built.folder.path("damaged"), 0);
    fs_err::write(&path, &built.bytes).unwrap();
    for change in 0..10_000 {
        let (at, bits) = (random.below(built.bytes.len()), 1 << random.below(8));
        flip(&path, at, bits);
        n_errors += usize::from(check(built, &path, &expected, &format!("change {change}: byte {at} ^ {bits}")));
        if change % 50 == 0 {
            let verified = Mapped::open(&path, KIND).and_then(FrozenGraph::open).and_then(|graph| graph.verify());
            assert!(verified.is_err(), "change {change}: byte {at} ^ {bits} is not found by reading everything");
        }
        flip(&path, at, bits);
    }
    assert!(n_errors > 5_000, "{n_errors}: three walks touch most blocks");
}

#[test]
fn any_change_of_the_header_is_found() {
    let (built, folder) = (&clusters(), &Folder::new());
    for at in 0..HEADER_BYTES {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = built.bytes.clone();
            bytes[at] ^= flip;
            assert!(open(folder, &bytes).is_err(), "byte {at} ^ {flip:#x}");
        }
    }
}

#[test]
fn a_graph_that_is_cut_or_longer_is_not_opened() {
    let (built, folder) = (&clusters(), &Folder::new());
    let n_bytes = built.bytes.len();
    let codes = N_ROWS * 64;
    let base = N_ROWS * 32 * 4;
    let table = (n_bytes - HEADER_BYTES).div_ceil(BLOCK_BYTES + 8) * 8;
    let edges = [
        0,
        HEADER_BYTES,
        HEADER_BYTES + 64,
        n_bytes - table - codes - base,
        n_bytes - table - codes,
        n_bytes - table,
        n_bytes,
    ];
    for cut in edges.into_iter().flat_map(|edge| edge.saturating_sub(9)..edge + 9).filter(|&cut| cut < n_bytes) {
        assert!(matches!(open(folder, &built.bytes[..cut]), Err(Error::Corrupt { .. })), "cut to {cut} of {n_bytes}");
    }
    for n_zeros in [1, 64, BLOCK_BYTES] {
        let longer = [&built.bytes[..], &vec![0; n_zeros]].concat();
        assert!(matches!(open(folder, &longer), Err(Error::Corrupt { .. })), "{n_zeros} zeros behind");
    }
    let zeros = vec![0; n_bytes];
    assert!(matches!(open(folder, &zeros), Err(Error::Corrupt { offset: 0, .. })));
}

/// A graph of 1,000 rows whose lists of two slots are all alike, its words in the order of the file.
struct Words {
    /// m, ef_construction, entry, slots, number of upper layers; rows that have twins, twins.
    parameters: Vec<u32>,
    ends: Vec<u32>,
    scales: Vec<f32>,
    lists: Vec<u32>,
    codes: Vec<u32>,
}

impl Words {
    fn new(n_rows: usize, entry: u32, list: [u32; 2]) -> Self {
        Self {
            parameters: vec![16, 200, entry, 2, 0, 0, 0],
            ends: vec![0],
            scales: vec![0.01; n_rows],
            lists: list.repeat(n_rows),
            codes: vec![0x8081_8283; n_rows * 16],
        }
    }

    fn payload(&self) -> Vec<u32> {
        let scales: Vec<u32> = self.scales.iter().map(|scale| scale.to_bits()).collect();
        let mut words = Vec::new();
        for part in [&self.parameters, &self.ends, &scales, &self.lists, &self.codes] {
            words.resize(words.len().next_multiple_of(16), 0);
            words.extend(part);
        }
        words
    }
}

/// A file whose checksums hold, whatever it contains.
fn crafted(folder: &Folder, words: &[u32], counts: [u64; 2]) -> Result<FrozenGraph, Error> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), KIND).unwrap();
    writer.write_all(bytemuck::cast_slice(words)).unwrap();
    open(folder, &writer.finish(counts).unwrap().into_inner())
}

const COUNTS: [u64; 2] = [1_000, DIMENSIONS as u64];

fn thousand_rows(folder: &Folder) -> Rows {
    folder.rows("rows", &clustered(61, 1_000, DIMENSIONS, 3), DIMENSIONS, Scalar::F32)
}

#[test]
fn a_crafted_graph_leads_to_an_error_never_out_of_bounds() {
    let folder = Folder::new();
    let rows = thousand_rows(&folder);
    let query = rows.row(0).unwrap().into_owned();
    let ask = |words: &Words| -> Result<Found, Error> {
        search(&crafted(&folder, &words.payload(), COUNTS)?, &rows, &query, &Wanted::new(10, 64))
    };
    let ask_list = |entry, list| ask(&Words::new(1_000, entry, list));
    // Lists that reach two rows only: the scan gives the rest.
    let neighbors = exact::search(&rows, &query, 10, None, NEVER).unwrap();
    assert_eq!(ask_list(5, [1, 2]).unwrap(), Found { neighbors, path: Path::Scan });
    assert!(matches!(ask_list(5, [1, 1_000]), Err(Error::Corrupt { .. })), "names a row past the last");
    assert!(matches!(ask_list(5, [1, u32::MAX - 1]), Err(Error::Corrupt { .. })), "names no row at all");
    assert!(ask_list(5, [1, u32::MAX]).is_ok(), "a list that ends early");
    assert!(matches!(ask_list(1_000, [1, 2]), Err(Error::Corrupt { .. })), "enters past the last row");
    assert!(matches!(ask(&Words::new(900, 5, [1, 2])), Err(Error::Corrupt { .. })), "rows are missing");
    let with = |at: usize, value: u32| {
        let mut words = Words::new(1_000, 5, [1, 2]);
        words.parameters[at] = value;
        ask(&words)
    };
    for (at, value, what) in [
        (0, 1, "an m that is no setting"),
        (0, u32::MAX, "an m that is no setting"),
        (1, 2, "an ef_construction that is no setting"),
        (3, 0, "no slots"),
        (3, u32::MAX, "more slots than there can be"),
        (4, 1, "a layer that is not there"),
        (4, u32::MAX, "more layers than there can be"),
        (5, 1, "rows with twins that are not there"),
        (6, u32::MAX, "twins that are not there"),
    ] {
        assert!(matches!(with(at, value), Err(Error::Corrupt { .. })), "{what}");
    }
    for counts in
        [[u64::MAX, 32], [1_000, u64::MAX], [1_040, 32], [1_000, 65], [1_000, 0], [u64::MAX, u64::MAX], [0, 0]]
    {
        let opened = crafted(&folder, &Words::new(1_000, 5, [1, 2]).payload(), counts);
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "{counts:?}");
    }
    assert!(matches!(crafted(&folder, &[], [0, 32]), Err(Error::Corrupt { .. })), "no payload");
}

#[test]
fn reading_everything_finds_what_a_walk_passes_over() {
    let folder = Folder::new();
    let verify = |change: fn(&mut Words)| {
        let mut words = Words::new(1_000, 5, [1, 2]);
        change(&mut words);
        crafted(&folder, &words.payload(), COUNTS).and_then(|graph| graph.verify())
    };
    verify(|_| {}).unwrap();
    let changes: [(fn(&mut Words), &str); 5] = [
        (|words| words.lists[1_999] = 1_000, "a list names a row past the last"),
        (|words| words.scales[999] = 0.0, "a scale of 0"),
        (|words| words.scales[3] = f32::NAN, "a scale that is no number"),
        (|words| words.scales[3] = -0.01, "a scale below 0"),
        (|words| words.ends[0] = 1, "lists of twins that are not there"),
    ];
    for (change, what) in changes {
        assert!(matches!(verify(change), Err(Error::Corrupt { .. })), "{what}");
    }
}

/// A graph with upper layers and twins, and its words.
static LAYERED: LazyLock<(Arc<Built>, Vec<u32>)> = LazyLock::new(|| {
    let mut vectors = clustered(61, 900, DIMENSIONS, 3);
    vectors.extend_from_within(..100);
    let built = built_with(&vectors, Scalar::F32, &HnswConfig { m: 2, ef_construction: 8 });
    let words = bytemuck::pod_collect_to_vec(&built.graph.file()[..]);
    (Arc::new(built), words)
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any words under whole checksums: every answer is a result or an error.
    #[test]
    fn no_payload_panics(
        changes in prop::collection::vec((0_usize..20_000, any::<u32>()), 1..8),
        small in prop::collection::vec((0_usize..20, 0_u32..40), 0..8),
    ) {
        let folder = Folder::new();
        let rows = thousand_rows(&folder);
        let mut words = Words::new(1_000, 5, [1, 2]).payload();
        for (at, word) in changes.into_iter().chain(small) {
            let at = at % words.len();
            words[at] = word;
        }
        if let Ok(graph) = crafted(&folder, &words, COUNTS) {
            let _ = graph.verify();
            if let Ok(found) = search(&graph, &rows, &rows.row(3).unwrap(), &Wanted::new(10, 64)) {
                prop_assert_eq!(found.neighbors.len(), 10);
            }
        }
    }

    /// The same of a graph with upper layers and twins.
    #[test]
    fn no_change_of_a_built_graph_panics(changes in prop::collection::vec((0_usize..3_000, any::<u32>(), any::<bool>()), 1..6)) {
        let (folder, (built, mut words)) = (Folder::new(), LAYERED.clone());
        for (at, word, is_small) in changes {
            let at = at % words.len();
            words[at] = if is_small { word % 1_200 } else { word };
        }
        if let Ok(graph) = crafted(&folder, &words, COUNTS) {
            let _ = graph.verify();
            let allowed = (0..800).collect();
            for allowed in [None, Some(&allowed)] {
                if let Ok(found) = search(&graph, &built.rows, &built.rows.row(3).unwrap(), &within(10, 30, allowed)) {
                    prop_assert_eq!(found.neighbors.len(), 10);
                }
            }
        }
    }
}
