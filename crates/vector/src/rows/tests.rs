//! Rows: what may be written, and what is read back.

use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::testing::{Folder, Random, flip};

const SCALARS: [Scalar; 2] = [Scalar::F32, Scalar::F16];

#[track_caller]
fn write_one(row: &[f32], dimensions: usize) -> Result<()> {
    write_rows(Cursor::new(Vec::new()), dimensions, Scalar::F32, [row]).map(drop)
}

/// A file of any payload under the kind of rows.
fn crafted(folder: &Folder, kind: [u8; 8], payload: &[u8], counts: [u64; 2]) -> Mapped {
    let path = folder.path("crafted");
    let mut writer = Writer::new(fs_err::File::create(&path).unwrap(), kind).unwrap();
    writer.write_all(payload).unwrap();
    writer.finish(counts).unwrap();
    Mapped::open(&path, kind).unwrap()
}

#[test]
fn rows_come_back_exactly_in_f32_and_rounded_in_f16() {
    let folder = Folder::new();
    for dimensions in (1..=65).chain([384]) {
        let mut random = Random::new(dimensions as u64);
        let vectors: Vec<Vec<f32>> = (0..5).map(|_| random.unit(dimensions)).collect();
        for scalar in SCALARS {
            let rows = folder.rows("rows", &vectors, dimensions, scalar);
            assert_eq!((rows.len(), rows.dimensions(), rows.scalar()), (5, dimensions, scalar));
            for (row, vector) in vectors.iter().enumerate() {
                let expected: Vec<f32> = match scalar {
                    Scalar::F32 => vector.clone(),
                    Scalar::F16 => vector.iter().map(|&value| f16::from_f32(value).to_f32()).collect(),
                };
                assert_eq!(rows.row(row as u32).unwrap(), expected);
            }
            rows.verify().unwrap();
        }
    }
}

#[test]
fn no_rows_are_rows_too() {
    let folder = Folder::new();
    for scalar in SCALARS {
        let rows = folder.rows("empty", &[], 384, scalar);
        assert!(rows.is_empty());
        rows.verify().unwrap();
        assert!(matches!(rows.row(0), Err(Error::Corrupt { .. })));
    }
}

#[test]
fn what_is_no_unit_vector_is_not_written() {
    assert!(matches!(write_one(&[1.0, 0.0], 3), Err(Error::Dimension { expected: 3, received: 2 })));
    assert!(matches!(write_one(&[0.0, f32::NAN], 2), Err(Error::NotFinite { vector: 0, dimension: 1 })));
    assert!(matches!(write_one(&[f32::INFINITY, 0.0], 2), Err(Error::NotFinite { vector: 0, dimension: 0 })));
    assert!(matches!(write_one(&[0.0, 0.0], 2), Err(Error::NotUnit { vector: 0, .. })));
    assert!(matches!(write_one(&[1.0, 0.1], 2), Err(Error::NotUnit { .. })));
    assert!(matches!(write_one(&[], 0), Err(Error::Setting { name: "dimensions", value: 0, .. })));
    assert!(matches!(write_one(&[], DIMENSIONS_MAX + 1), Err(Error::Setting { .. })));
    write_one(&[1.0009, 0.0], 2).expect("within the tolerance");
}

#[test]
fn a_row_that_is_refused_leaves_the_file_as_it_was() {
    let mut writer = RowWriter::new(Cursor::new(Vec::new()), 2, Scalar::F16).unwrap();
    writer.push(&[1.0, 0.0]).unwrap();
    assert!(matches!(writer.push(&[2.0, 0.0]), Err(Error::NotUnit { vector: 1, .. })));
    writer.push(&[0.0, 1.0]).unwrap();
    let expected = write_rows(Cursor::new(Vec::new()), 2, Scalar::F16, [&[1.0, 0.0][..], &[0.0, 1.0]]).unwrap();
    assert_eq!(writer.finish().unwrap().into_inner(), expected.into_inner());
}

#[test]
fn counts_that_do_not_fit_the_payload_are_found() {
    let folder = Folder::new();
    let kind = Scalar::F32.kind();
    for counts in [[1, 3], [2, 32], [3, 32], [u64::MAX, 32], [1 << 57, 32], [2, 0], [2, u64::MAX], [0, 32]] {
        let file = crafted(&folder, kind, &[0; 300], counts);
        assert!(matches!(Rows::open(file), Err(Error::Corrupt { .. })), "{counts:?}");
    }
    let file = crafted(&folder, *b"hnsw\0\0\0\0", &[], [0, 32]);
    assert!(matches!(Rows::open(file), Err(Error::OtherKind { .. })));
}

#[test]
fn verify_finds_a_row_that_no_writer_makes_though_its_checksum_holds() {
    let folder = Folder::new();
    let unit = |change: fn(&mut Vec<f32>)| {
        let mut values = vec![0.0_f32; 64];
        (values[0], values[32]) = (1.0, 1.0);
        change(&mut values);
        values
    };
    let check = |change| {
        let file = crafted(&folder, Scalar::F32.kind(), bytemuck::cast_slice(&unit(change)), [2, 20]);
        Rows::open(file).unwrap().verify()
    };
    check(|_| {}).unwrap();
    let cases: [fn(&mut Vec<f32>); 4] =
        [|v| v[33] = 0.5, |v| v[33] = f32::NAN, |v| v[32] = f32::INFINITY, |v| v[60] = f32::NAN];
    for change in cases {
        assert!(matches!(check(change), Err(Error::Corrupt { offset: 192, .. })), "in the second row");
    }
}

#[test]
fn a_damaged_block_is_found_when_its_row_is_read() {
    let folder = Folder::new();
    let mut random = Random::new(3);
    let vectors: Vec<Vec<f32>> = (0..1_000).map(|_| random.unit(64)).collect();
    folder.rows("rows", &vectors, 64, Scalar::F32);
    let path = folder.path("rows");
    let mut bytes = fs_err::read(&path).unwrap();
    bytes[64 + 600 * 256] ^= 1;
    fs_err::write(folder.path("damaged"), bytes).unwrap();
    let rows = Rows::open(Mapped::open(folder.path("damaged"), Scalar::F32.kind()).unwrap()).unwrap();
    rows.row(0).unwrap();
    assert!(matches!(rows.row(600), Err(Error::Corrupt { .. })));
    let mut distances = Vec::new();
    let query = rows.query(&vectors[0], 0).unwrap();
    assert!(matches!(rows.distances(&query, &[0, 1, 2, 600, 3], &mut distances), Err(Error::Corrupt { .. })));
}

#[test]
fn ten_thousand_random_changes_lead_to_an_error_or_the_right_distances() {
    const SEED: u64 = 20_261_121;
    println!("seed {SEED}");
    let (folder, mut random) = (Folder::new(), Random::new(SEED));
    let vectors: Vec<Vec<f32>> = (0..200).map(|_| random.unit(64)).collect();
    let whole = folder.rows("rows", &vectors, 64, Scalar::F16);
    let path = folder.path("rows");
    let n_bytes = fs_err::metadata(&path).unwrap().len() as usize;
    let chosen = [3, 199, 70, 71, 0, 140];
    let distances = |rows: &Rows| crate::exact::distances_to(rows, &vectors[5], &chosen);
    let expected = distances(&whole).unwrap();
    drop(whole);
    let mut n_errors = 0;
    for change in 0..10_000 {
        let (at, bits) = (random.below(n_bytes), 1 << random.below(8));
        flip(&path, at, bits);
        match Mapped::open_any(&path, &Scalar::KINDS).and_then(Rows::open) {
            Ok(rows) => {
                assert!(rows.verify().is_err(), "change {change}: byte {at} ^ {bits} is not found");
                match distances(&rows) {
                    Ok(distances) => assert_eq!(distances, expected, "change {change}: byte {at} ^ {bits}"),
                    Err(_) => n_errors += 1,
                }
            }
            Err(_) => n_errors += 1,
        }
        flip(&path, at, bits);
    }
    assert!(n_errors > 1_000, "{n_errors}: the chosen rows touch most blocks");
}

proptest! {
    #[test]
    fn distances_by_row_equal_the_dot_product(seed in any::<u64>(), dimensions in 1_usize..100, n_rows in 1_usize..20) {
        let mut random = Random::new(seed);
        let vectors: Vec<Vec<f32>> = (0..n_rows).map(|_| random.unit(dimensions)).collect();
        let rows = Folder::new().rows("rows", &vectors, dimensions, Scalar::F32);
        let query = random.unit(dimensions);
        let order: Vec<u32> = (0..n_rows as u32).rev().collect();
        let mut distances = Vec::new();
        rows.distances(&rows.query(&query, 0).unwrap(), &order, &mut distances).unwrap();
        for (row, distance) in order.into_iter().zip(distances) {
            let dot: f64 = vectors[row as usize].iter().zip(&query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            prop_assert!((f64::from(distance) - (1.0 - dot)).abs() < 1e-6);
        }
    }
}
