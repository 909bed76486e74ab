//! Files of vectors: what each format gives, and what is refused in words.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use ::parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType, Int64Type,
};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;
use half::f16;
use serde_json::Value;

use super::matrix::{Input, Matrix};
use super::numpy::NUMPY;
use super::query::{open_vectors, read_vectors};
use super::rows::{Part, Record};
use crate::error::{Error, Result};

fn array(descr: &str, order: &str, shape: &str, n_bytes: usize) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = [NUMPY, b"\x01\x00", &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
    bytes.resize(bytes.len() + n_bytes, 0);
    bytes
}

fn rows(extension: &str, bytes: Vec<u8>) -> Result<Vec<Vec<f32>>> {
    read_vectors(Path::new(&format!("v.{extension}")), bytes, 2)
}

#[test]
fn every_format_gives_its_rows() {
    let two = vec![vec![0.5, -1.0], vec![3.0, 4.0]];
    let mut numpy = array("<f4", "False", "(2, 2)", 0);
    numpy.extend(two.iter().flatten().flat_map(|value: &f32| value.to_le_bytes()));
    assert_eq!(rows("npy", numpy.clone()).unwrap(), two);
    assert_eq!(rows("any", numpy).unwrap(), two, "an array is known by its first bytes");
    let mut halves = array("<f2", "False", "(2, 2)", 0);
    halves.extend(two.iter().flatten().flat_map(|value| f16::from_f32(*value).to_le_bytes()));
    assert_eq!(rows("npy", halves).unwrap(), two);
    let mut doubles = array("<f8", "False", "(2, 2)", 0);
    doubles.extend(two.iter().flatten().flat_map(|value| f64::from(*value).to_le_bytes()));
    assert_eq!(rows("npy", doubles).unwrap(), two);
    let mut bytes = array("|u1", "False", "(1, 2)", 0);
    bytes.extend([7, 255]);
    assert_eq!(rows("npy", bytes).unwrap(), [[7.0, 255.0]]);
    let row = |values: &[f32]| [2_u32.to_le_bytes().to_vec(), values.iter().flat_map(|v| v.to_le_bytes()).collect()];
    let fvecs: Vec<u8> = two.iter().flat_map(|values| row(values).concat()).collect();
    assert_eq!(rows("fvecs", fvecs).unwrap(), two);
    assert_eq!(rows("bvecs", vec![2, 0, 0, 0, 7, 255]).unwrap(), [[7.0, 255.0]]);
    assert_eq!(rows("json", b" [[0.5, -1], [3, 4]]".to_vec()).unwrap(), two);
    assert_eq!(rows("json", b"[0.5, -1]".to_vec()).unwrap(), two[..1]);
    assert_eq!(rows("f32", two.iter().flatten().flat_map(|value| value.to_le_bytes()).collect()).unwrap(), two);
}

#[test]
fn what_is_no_matrix_is_refused_in_words_and_takes_no_memory() {
    let huge = format!("({}, 2)", u64::MAX);
    for (extension, bytes, words) in [
        ("npy", b"minimum,maximum".to_vec(), "not a NumPy array"),
        ("npy", NUMPY.to_vec(), "cut off"),
        ("npy", array("<f4", "False", "(2, 2)", 0)[..40].to_vec(), "cut off"),
        ("npy", array(">f4", "False", "(2, 2)", 16), "'>f4'"),
        ("npy", array("<i8", "False", "(2, 2)", 32), "'<i8'"),
        ("npy", array("<f4", "True", "(2, 2)", 16), "Fortran"),
        ("npy", array("<f4", "False", "(2,)", 8), "two dimensions"),
        ("npy", array("<f4", "False", "(2, -2)", 16), "two dimensions"),
        ("npy", array("<f4", "False", "(2, 2)", 15), "15 bytes of values"),
        ("npy", array("<f4", "False", &huge, 16), "16 bytes of values"),
        ("npy", array("<f4", "False", "(2, 0)", 0), "0 columns"),
        ("npy", array("<f4", "False", "(0, 99999999)", 0), "99999999 columns"),
        ("fvecs", vec![2, 0, 0], "no row"),
        ("fvecs", vec![255, 255, 255, 255, 0], "cut off"),
        ("bvecs", vec![2, 0, 0, 0, 7, 9, 1, 0, 0, 0, 7, 9], "row 1"),
        ("json", b"[[1, \"x\"]]".to_vec(), "no list of numbers"),
        ("f32", vec![0; 9], "no vectors of 2"),
        ("f32", Vec::new(), "no vectors of 2"),
    ] {
        let reason = rows(extension, bytes).unwrap_err().to_string();
        assert!(reason.contains(words), "{reason}");
    }
    let path = Path::new("v.txt");
    let reason = Matrix::of(path, "txt", Input::Bytes(Vec::new()), None, Part::Rows).err().unwrap().to_string();
    assert!(reason.contains(".parquet"), "{reason}");
}

/// Rows as they are written to a Parquet file, so many in a group.
struct Sheet {
    float: &'static str,
    rows: Vec<Vec<Option<f32>>>,
    group_rows: usize,
}

impl Sheet {
    fn of(float: &'static str, rows: &[&[f32]]) -> Self {
        Self { float, rows: rows.iter().map(|row| row.iter().copied().map(Some).collect()).collect(), group_rows: 2 }
    }

    /// The vectors beside an id, a text, a year and a time, of which every other row has no year.
    fn write(&self, path: &Path) {
        let element = match self.float {
            "half" => "optional fixed_len_byte_array(2) element (FLOAT16);".to_owned(),
            float => format!("optional {float} element;"),
        };
        let schema = format!(
            "message m {{ required binary id (UTF8); optional group vector (LIST) {{ repeated group list {{ {element} }} }}
             optional binary text (UTF8); optional int64 year; required int64 seen (TIMESTAMP_MILLIS);
             required group where (MAP) {{ repeated group key_value {{ required binary key (UTF8); optional float value; }} }} }}"
        );
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let file = File::create(path).unwrap();
        let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
        for (number, rows) in self.rows.chunks(self.group_rows).enumerate() {
            let (first, n) = (number * self.group_rows, rows.len());
            let texts = |word: &str| (0..n).map(|at| ByteArray::from(&*format!("{word}{}", first + at))).collect();
            let (ids, words): (Vec<ByteArray>, Vec<ByteArray>) = (texts("id"), texts("text "));
            let mut group = writer.next_row_group().unwrap();
            put::<ByteArrayType>(&mut group, &ids, &[], &[]);
            let definitions: Vec<i16> =
                rows.iter().flatten().map(|value| if value.is_some() { 3 } else { 2 }).collect();
            let repetitions: Vec<i16> =
                rows.iter().flat_map(|row| (0..row.len()).map(|at| i16::from(at > 0))).collect();
            let values: Vec<f32> = rows.iter().flatten().flatten().copied().collect();
            match self.float {
                "double" => {
                    let values: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
                    put::<DoubleType>(&mut group, &values, &definitions, &repetitions);
                }
                "half" => {
                    let half = |value: &f32| ByteArray::from(f16::from_f32(*value).to_le_bytes().to_vec()).into();
                    let values: Vec<FixedLenByteArray> = values.iter().map(half).collect();
                    put::<FixedLenByteArrayType>(&mut group, &values, &definitions, &repetitions);
                }
                _ => put::<FloatType>(&mut group, &values, &definitions, &repetitions),
            }
            put::<ByteArrayType>(&mut group, &words, &vec![1; n], &[]);
            let years: Vec<i64> = (0..n).filter(|at| at % 2 == 0).map(|at| 2000 + (first + at) as i64).collect();
            let has_year: Vec<i16> = (0..n).map(|at| i16::from(at % 2 == 0)).collect();
            put::<Int64Type>(&mut group, &years, &has_year, &[]);
            put::<Int64Type>(&mut group, &vec![i64::MAX; n], &[], &[]);
            put::<ByteArrayType>(&mut group, &ids, &vec![1; n], &vec![0; n]);
            put::<FloatType>(&mut group, &vec![1.0; n], &vec![2; n], &vec![0; n]);
            group.close().unwrap();
        }
        writer.close().unwrap();
    }
}

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    definitions: &[i16],
    repetitions: &[i16],
) {
    let levels = |levels: &[i16]| (!levels.is_empty()).then(|| levels.to_vec());
    let (definitions, repetitions) = (levels(definitions), levels(repetitions));
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, definitions.as_deref(), repetitions.as_deref()).unwrap();
    column.close().unwrap();
}

/// All rows of a file with what stands beside them, or why not.
fn read_file(path: &Path, column: Option<&str>) -> Result<Vec<(Vec<f32>, Record)>> {
    let mut matrix = Matrix::open(path, column)?;
    let (mut rows, mut row) = (Vec::new(), Vec::new());
    while matrix.next(&mut row)? {
        rows.push((row.clone(), matrix.record()?));
    }
    Ok(rows)
}

#[test]
fn a_parquet_file_gives_vectors_and_what_stands_beside_them() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("v.parquet");
    let rows: [&[f32]; 5] = [&[0.5, -1.0], &[3.0, 4.0], &[7.0, 0.25], &[0.0, 1.0], &[2.0, 2.0]];
    for float in ["float", "double", "half"] {
        Sheet::of(float, &rows).write(&path);
        for column in [None, Some("vector")] {
            let read = read_file(&path, column).unwrap();
            assert_eq!(read.iter().map(|(row, _)| row.as_slice()).collect::<Vec<_>>(), rows, "{float}");
            let (_, third) = &read[2];
            assert_eq!((third.id.as_deref(), third.text.as_deref()), (Some("id2"), Some("text 2")));
            assert_eq!(serde_json::to_string(&third.metadata).unwrap(), r#"{"year":2002}"#);
            assert_eq!(read[3].1.metadata["year"], Value::Null);
        }
        let matrix = Matrix::open(&path, None).unwrap();
        assert!(matrix.has_ids() && matrix.has_texts());
        assert!(matrix.notes().iter().any(|note| note.contains("\"seen\", \"where\"")), "{:?}", matrix.notes());
        assert_eq!(matrix.notes().len(), if float == "double" { 2 } else { 1 });
    }
    assert_eq!(open_vectors(&path, 1 << 20).unwrap().unwrap(), rows);
    assert!(open_vectors(&path, 39).unwrap_err().to_string().contains("40 bytes of vectors"));
    assert!(open_vectors(&place.path().join("v.npy"), 39).unwrap().is_none());
}

#[test]
fn a_parquet_file_whose_rows_are_no_vectors_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("v.parquet");
    let refused = |column: Option<&str>, words: &str| {
        let reason = read_file(&path, column).unwrap_err().to_string();
        assert!(reason.contains(words), "{reason}");
    };
    Sheet::of("float", &[&[1.0, 2.0], &[1.0, 2.0], &[1.0, 2.0], &[3.0]]).write(&path);
    refused(None, "row 3 has 1 columns, the first has 2");
    refused(Some("where"), "there are \"vector\"");
    let mut sheet = Sheet::of("float", &[&[1.0, 2.0], &[1.0, 2.0], &[1.0, 2.0]]);
    sheet.rows[2][1] = None;
    sheet.write(&path);
    refused(None, "row 2 has no vector, or lacks a number");
    sheet.rows.clear();
    sheet.write(&path);
    assert_eq!(read_file(&path, None).unwrap().len(), 0);
    std::fs::write(&path, b"PAR1").unwrap();
    refused(None, "cannot be read as Parquet");
    std::fs::write(&path, b"{}").unwrap();
    refused(None, "cannot be read as Parquet");
    std::fs::write(place.path().join("v.npy"), array("<f4", "False", "(1, 1)", 4)).unwrap();
    let reason = read_file(&place.path().join("v.npy"), Some("x")).unwrap_err().to_string();
    assert!(reason.contains("no column or dataset \"x\""), "{reason}");
}

#[test]
fn a_page_of_a_few_bytes_that_claims_many_numbers_is_not_unpacked() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("v.parquet");
    let n = 1_usize << 19;
    let rows: [&[f32]; 1] = [&vec![1.0; n]];
    let mut sheet = Sheet::of("float", &rows);
    sheet.group_rows = 1;
    sheet.write(&path);
    let reason = read_file(&path, None).unwrap_err().to_string();
    assert!(reason.contains("numbers, more than are read"), "{reason}");
}

/// Reads a file with a byte of seven altered, and cut off before it: what it gives is an error or rows.
fn survive_damage(name: &str, bytes: &[u8]) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join(name);
    let mut n_refused = 0;
    for at in (0..bytes.len()).step_by(7) {
        for damage in 0..3 {
            let mut bytes = bytes.to_vec();
            match damage {
                0 => bytes[at] ^= 0xff,
                1 => bytes[at] = bytes[at].wrapping_add(1),
                _ => bytes.truncate(at),
            }
            std::fs::write(&path, bytes).unwrap();
            match read_file(&path, None) {
                Ok(rows) => assert!(rows.len() < 1 << 20),
                Err(error) => {
                    assert!(matches!(error, Error::Vectors { .. } | Error::Io { .. }), "{at}: {error}");
                    n_refused += 1;
                }
            }
        }
    }
    assert!(n_refused > bytes.len() / 15, "{n_refused}");
}

#[test]
fn damaged_files_of_libraries_are_errors_and_take_no_memory() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("v.parquet");
    Sheet::of("float", &[&[0.5, -1.0], &[3.0, 4.0], &[1.0, 2.0]]).write(&path);
    survive_damage("v.parquet", &std::fs::read(path).unwrap());
    survive_damage("v.hdf5", &std::fs::read(FIVE).unwrap());
}

/// As ann-benchmarks writes them, by h5py: five points of a plane and two to search for.
const FIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/five-2-euclidean.hdf5");

#[test]
fn a_file_of_ann_benchmarks_gives_its_rows_its_queries_and_its_distance() {
    let path = Path::new(FIVE);
    let matrix = Matrix::open(path, None).unwrap();
    assert_eq!((matrix.n_rows(), matrix.n_columns, matrix.distance()), (5, 2, Some("euclidean")));
    let rows: Vec<Vec<f32>> = read_file(path, None).unwrap().into_iter().map(|(row, _)| row).collect();
    assert_eq!(rows, [[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [4.0, 4.0], [0.5, 0.5]]);
    assert_eq!(open_vectors(path, 1 << 20).unwrap().unwrap(), [[4.0, 3.0], [-9.0, 0.0]]);
    for (column, words) in [("neighbors", "float32, float64 and uint8"), ("trian", "no dataset \"trian\"")] {
        let reason = read_file(path, Some(column)).unwrap_err().to_string();
        assert!(reason.contains(words), "{reason}");
    }
    assert!(read_file(path, Some("trian")).unwrap_err().to_string().contains("train"), "names are told");
    let reason = read_vectors(Path::new("stdin"), std::fs::read(path).unwrap(), 2).unwrap_err().to_string();
    assert!(reason.contains("from a file"), "{reason}");
}
