//! Streams against the matrix of the same texts, and streams that are none.

use std::path::Path;

use arrow_array::types::Float32Type;
use arrow_array::{Int32Array, StringArray};
use arrow_ipc::reader::StreamReader;

use super::*;
use crate::embed::embed;

fn options() -> EmbedOptions {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny").to_owned();
    EmbedOptions { model: Some(model), ..EmbedOptions::default() }
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn texts(texts: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(texts.to_vec()))
}

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

/// The answer to the stream in these bytes.
fn answer(folder: &Path, bytes: &[u8], column: Option<&str>) -> Result<(ArrowReport, Vec<RecordBatch>)> {
    let path = folder.join("texts.arrow");
    std::fs::write(&path, bytes).unwrap();
    let mut output = Vec::new();
    let report = embed_arrow(&EmbedInput::File(path), &mut output, column, &options(), &mut |_| {})?;
    let batches = StreamReader::try_new(&output[..], None).unwrap().map(|batch| batch.unwrap());
    Ok((report, batches.collect()))
}

#[test]
fn a_stream_goes_on_with_the_vectors_of_the_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let words: Vec<String> = (0..1_500).map(|n| format!("the moon moves tide number {n}")).collect();
    let lines: String = words.iter().map(|text| format!("{}\n", serde_json::json!({ "text": text }))).collect();
    std::fs::write(folder.path().join("texts.jsonl"), lines).unwrap();
    let (input, matrix) = (EmbedInput::File(folder.path().join("texts.jsonl")), folder.path().join("out.npy"));
    embed(&input, &matrix, &options(), &mut |_| {}).unwrap();
    let (expected, shape) = crate::embed::npy::read_f32(&matrix).unwrap();

    let column = texts(&words.iter().map(|text| Some(text.as_str())).collect::<Vec<_>>());
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..1_500));
    let all = batch(vec![("number", numbers), ("words", column)]);
    let bytes = stream(&[all.slice(0, 1_200), all.slice(1_200, 0), all.slice(1_200, 300)]);
    let (report, made) = answer(folder.path(), &bytes, Some("words")).unwrap();
    assert_eq!((report.n_rows, report.n_null, report.dimensions), (1_500, 0, shape[1]));
    let mut row = 0;
    for batch in &made {
        assert!(batch.num_rows() <= ROWS_MAX);
        assert_eq!(batch.columns()[..2], all.slice(row, batch.num_rows()).columns()[..2], "columns go along");
        let vectors = batch.column(2).as_fixed_size_list().values().as_primitive::<Float32Type>();
        assert_eq!(vectors.values()[..], expected[row * shape[1]..][..vectors.len()]);
        row += batch.num_rows();
    }
    assert_eq!(row, 1_500);
    assert!(made[0].schema().metadata()["cento.plan"].contains(&report.model_fingerprint));
}

#[test]
fn titles_stand_before_texts_and_rows_without_either_have_no_vector() {
    let folder = tempfile::tempdir().unwrap();
    let titles = texts(&[Some("Tides"), Some("Tides"), None, Some("")]);
    let bodies = texts(&[Some("the moon"), None, None, Some("Tides the moon")]);
    let (report, made) =
        answer(folder.path(), &stream(&[batch(vec![("title", titles), ("text", bodies)])]), None).unwrap();
    let vectors = made[0].column(2).as_fixed_size_list();
    assert_eq!((report.n_null, vectors.is_null(2), vectors.null_count()), (1, true, 1));
    assert_eq!(&vectors.value(0), &vectors.value(3), "title and text are joined by a blank");
    assert_ne!(&vectors.value(0), &vectors.value(1));
}

#[test]
fn what_is_no_stream_of_texts_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |bytes: &[u8], column: Option<&str>, words: &str| {
        let error = answer(folder.path(), bytes, column).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let number: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let good = stream(&[batch(vec![("text", texts(&[Some("the moon"), None]))])]);
    refused(b"", None, "before its schema");
    refused(&good, Some("words"), "no column \"words\"; it has text");
    refused(&stream(&[batch(vec![("number", Arc::clone(&number))])]), None, "it has number");
    refused(&stream(&[batch(vec![("text", Arc::clone(&number))])]), None, "holds Int32, not strings");
    refused(&stream(&[batch(vec![("text", texts(&[None])), ("vector", number)])]), None, "\"vector\"");
    let ranges = EmbedOptions { output_type: OutputType::Int8, ..options() };
    let error = embed_arrow(&EmbedInput::Stdin, Vec::new(), None, &ranges, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("ranges"), "{error}");

    for end in 0..good.len() - 8 {
        // A stream may end without its mark where a message ends, and nowhere else.
        if let Ok((report, _)) = answer(folder.path(), &good[..end], None) {
            assert_eq!(report.n_rows, 0, "cut at {end}");
        }
    }
    for (at, value) in (0..good.len()).zip([0xff, 0x80, 0x01, 0x7f].into_iter().cycle()) {
        let mut bytes = good.clone();
        bytes[at] ^= value;
        let _ = answer(folder.path(), &bytes, None); // an answer or an error, never a panic
    }
}
