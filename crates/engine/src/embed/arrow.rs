//! A stream of Arrow batches with texts becomes the same stream with their vectors.
//!
//! Format: Apache Arrow's IPC streaming format. Batches are answered in order, each as soon as its vectors are there,
//! in pieces of [`ROWS_MAX`] rows at most: whoever writes one batch and waits for its rows is never kept waiting.
//! What is read is a stranger's: the decoder validates arrays and never allocates more than came; what it does not
//! check it asserts, and its panics are caught here.

use std::io::{Read, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, mpsc};
use std::thread;

use arrow_array::builder::{BooleanBuilder, UInt32Builder};
use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray, make_array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use cento_corpus::{TEXT_KEYS, TITLE_KEYS};
use cento_embedder::{Embedding, NEVER};
use serde::Serialize;

use super::encoder::TextEncoder;
use super::input::{BATCHES_AHEAD, EmbedInput};
use super::manifest::Plan;
use super::options::{EmbedOptions, EmbedProgress, TooLong};
use super::quantize::{GivenRanges, OutputType};

use crate::error::{Error, Result};

#[cfg(test)]
mod tests;

/// Rows embedded and written at a time.
const ROWS_MAX: usize = 1024;
const READ_BYTES: usize = 1 << 20;

/// Columns that are added.
const VECTOR: &str = "vector";
const N_TOKENS: &str = "n_tokens";
const TRUNCATED: &str = "truncated";

/// A stream's report.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ArrowReport {
    /// Card or folder of the encoder.
    pub model: String,
    /// Of the encoder; vectors of different fingerprints are not comparable.
    pub model_fingerprint: String,
    /// Length of a vector.
    pub dimensions: usize,
    /// Rows that were read and written.
    pub n_rows: u64,
    /// Rows without a text, whose vector is null.
    pub n_null: u64,
    /// Tokens the encoder saw.
    pub n_tokens: u64,
    /// Texts whose end was left out.
    pub n_truncated: u64,
    /// Rows whose vector came from the cache.
    pub n_from_cache: u64,
}

/// Embeds the texts of an Arrow IPC stream: `output` gets its columns and `vector`, `n_tokens` and `truncated`.
///
/// Texts are in `text_column`, or else in the first column named `text`, `contents` or `body`, behind that of `title`
/// and a blank where there is one. A row without a text has no vector. The schema's metadata say which encoder it was.
///
/// # Errors
/// If the input is no such stream or ends in a batch, has no column of texts or one that would be added; if a text
/// cannot be embedded, or is too long and that is to be an error; if the other side hears no more.
pub fn embed_arrow(
    input: &EmbedInput,
    output: impl Write,
    text_column: Option<&str>,
    options: &EmbedOptions,
    progress: &mut dyn FnMut(&EmbedProgress),
) -> Result<ArrowReport> {
    if options.output_type.has_ranges() && options.ranges.is_none() {
        let reason = "needs ranges that are given: those of a stream are known only when it has ended".to_owned();
        return Err(Error::Setting { setting: "output-type", value: options.output_type.to_string(), reason });
    }
    let mut encoder = TextEncoder::load(options)?;
    let dimensions = encoder.encoder.dimensions();
    let ranges = options.ranges.as_deref().map(|path| GivenRanges::read(path, dimensions)).transpose()?;
    options.cache.as_ref().map_or(Ok(()), |cache| encoder.open_cache(cache))?;
    let plan = encoder.plan(options, ranges.as_ref());
    let report = ArrowReport {
        model: encoder.name.clone(),
        model_fingerprint: plan.model_fingerprint.clone(),
        dimensions,
        ..ArrowReport::default()
    };
    let mut stream = Stream { input, text_column, too_long: options.too_long, plan, encoder, ranges, report };
    let reader = input.open()?;
    let (send, heard) = mpsc::sync_channel(BATCHES_AHEAD);
    // It may wait for a writer that waits for an answer that never comes: nobody waits for it.
    thread::spawn(move || {
        let ended = read(reader, |message| send.send(Ok(message)).is_ok());
        let _ = send.send(ended.map(|()| Message::End)); // unheard where the other side has failed and says why
    });
    let ended = stream.answer(&heard, output, progress);
    stream.end(ended)
}

/// A part of the stream.
enum Message {
    Schema(SchemaRef),
    Batch(RecordBatch),
    End,
}

/// Reads messages until the stream has ended, or `send` says that nobody wants them; a reason if it is none.
fn read(mut input: impl Read, mut send: impl FnMut(Message) -> bool) -> Result<(), String> {
    let mut decoder = StreamDecoder::new();
    let mut n_schemas = 0;
    loop {
        let mut bytes = vec![0; READ_BYTES];
        let n_read = match input.read(&mut bytes) {
            Ok(0) => break,
            Ok(n_read) => n_read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.to_string()),
        };
        bytes.truncate(n_read);
        let mut bytes = Buffer::from_vec(bytes);
        while !bytes.is_empty() {
            let batch = caught(|| decoder.decode(&mut bytes)).map_err(|error| error.to_string())?;
            if n_schemas == 0
                && let Some(schema) = decoder.schema()
            {
                n_schemas = 1;
                if !send(Message::Schema(schema)) {
                    return Ok(());
                }
            }
            if let Some(batch) = batch
                && !send(Message::Batch(batch))
            {
                return Ok(());
            }
        }
    }
    match (n_schemas, decoder.finish()) {
        (0, _) => Err("it ended before its schema".to_owned()),
        (_, Err(_)) => Err("it ended in the middle of a batch".to_owned()),
        (_, Ok(())) => Ok(()),
    }
}

fn caught<T>(decode: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    panic::catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(ArrowError::IpcError("its decoder refused what it holds".to_owned())))
}

/// A stream in the making.
struct Stream<'a> {
    input: &'a EmbedInput,
    text_column: Option<&'a str>,
    too_long: TooLong,
    plan: Plan,
    encoder: TextEncoder,
    ranges: Option<GivenRanges>,
    report: ArrowReport,
}

impl Stream<'_> {
    fn answer(
        &mut self,
        heard: &mpsc::Receiver<Result<Message, String>>,
        output: impl Write,
        progress: &mut dyn FnMut(&EmbedProgress),
    ) -> Result<()> {
        let refuse = |reason: String| Error::ArrowStream { input: self.input.name(), reason };
        let read = match heard.recv() {
            Ok(Ok(Message::Schema(read))) => read,
            Ok(Err(reason)) => return Err(refuse(reason)),
            _ => return Err(refuse("its reader failed".to_owned())),
        };
        let texts = Texts::find(&read, self.text_column).map_err(refuse)?;
        let schema = self.schema(&read).map_err(refuse)?;
        let written = |error: ArrowError| match error {
            ArrowError::IoError(_, source) => Error::Io { path: "stdout".into(), source },
            other => Error::ArrowStream { input: "stdout".into(), reason: other.to_string() },
        };
        let mut writer = StreamWriter::try_new(output, &schema).map_err(written)?;
        writer.flush().map_err(written)?;
        loop {
            let refuse = |reason: String| Error::ArrowStream { input: self.input.name(), reason };
            let batch = match heard.recv() {
                Ok(Ok(Message::Batch(batch))) => batch,
                Ok(Ok(Message::Schema(_))) => continue, // the first, which was taken
                Ok(Ok(Message::End)) => break,
                Ok(Err(reason)) => return Err(refuse(reason)),
                Err(_) => return Err(refuse("its reader failed".to_owned())),
            };
            for start in (0..batch.num_rows()).step_by(ROWS_MAX) {
                let piece = batch.slice(start, ROWS_MAX.min(batch.num_rows() - start));
                let made = self.embed(&piece, &texts, &schema)?;
                writer.write(&made).map_err(written)?;
                progress(&EmbedProgress {
                    n_rows: self.report.n_rows,
                    n_tokens: self.report.n_tokens,
                    ..EmbedProgress::default()
                });
            }
            writer.flush().map_err(written)?;
        }
        writer.finish().map_err(written)
    }

    /// The columns of the answer, and what says where the vectors come from.
    fn schema(&self, read: &Schema) -> Result<SchemaRef, String> {
        if let Some(name) = [VECTOR, N_TOKENS, TRUNCATED].into_iter().find(|name| read.column_with_name(name).is_some())
        {
            return Err(format!("it has a column {name:?}, which would be added; leave it out, or name it otherwise"));
        }
        let mut fields: Vec<Arc<Field>> = read.fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(VECTOR, self.vector_type(), true)));
        fields.push(Arc::new(Field::new(N_TOKENS, DataType::UInt32, false)));
        fields.push(Arc::new(Field::new(TRUNCATED, DataType::Boolean, false)));
        let mut metadata = read.metadata().clone();
        metadata.extend([
            ("cento.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("cento.model".to_owned(), self.report.model.clone()),
            ("cento.plan".to_owned(), serde_json::to_string(&self.plan).expect("plain data becomes JSON")),
        ]);
        Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
    }

    fn vector_type(&self) -> DataType {
        let number = match self.plan.output_type {
            OutputType::F32 => DataType::Float32,
            OutputType::F16 => DataType::Float16,
            OutputType::Int8 | OutputType::Binary => DataType::Int8,
            OutputType::Uint8 | OutputType::Ubinary => DataType::UInt8,
        };
        let n_columns = self.plan.output_type.n_columns(self.plan.dimensions);
        let n_columns = i32::try_from(n_columns).expect("a vector has few dimensions");
        DataType::FixedSizeList(Arc::new(Field::new("item", number, false)), n_columns)
    }

    /// The rows and their vectors.
    fn embed(&mut self, rows: &RecordBatch, texts: &Texts, schema: &SchemaRef) -> Result<RecordBatch> {
        let read = texts.read(rows);
        let places: Vec<usize> = (0..read.len()).filter(|row| read[*row].is_some()).collect();
        let there: Vec<String> = read.into_iter().flatten().collect();
        let n_before = self.report.n_rows;
        let row = |place: usize| n_before + places[place] as u64 + 1;
        let embedded = self.encoder.vectors(&there).map_err(|error| at_row(error, self.input, row))?;
        if self.too_long == TooLong::Error
            && let Some(place) = embedded.iter().position(|embedding| embedding.truncated)
        {
            let reason = format!("the text of row {} is longer than {} tokens", row(place), self.plan.max_tokens);
            return Err(Error::ArrowStream { input: self.input.name(), reason });
        }
        self.report.n_rows += rows.num_rows() as u64;
        self.report.n_null += (rows.num_rows() - there.len()) as u64;
        self.report.n_tokens += embedded.iter().map(|embedding| u64::from(embedding.n_tokens)).sum::<u64>();
        self.report.n_truncated += embedded.iter().filter(|embedding| embedding.truncated).count() as u64;
        let mut columns = rows.columns().to_vec();
        columns.extend(self.columns(rows.num_rows(), &places, &embedded));
        RecordBatch::try_new(Arc::clone(schema), columns)
            .map_err(|error| Error::ArrowStream { input: self.input.name(), reason: error.to_string() })
    }

    /// The columns that are added to `n_rows` rows, of which those at `places` have a text.
    fn columns(&self, n_rows: usize, places: &[usize], embedded: &[Embedding]) -> [ArrayRef; 3] {
        let row_bytes = self.plan.output_type.row_bytes(self.plan.dimensions);
        let (mut bytes, mut is_there) = (Vec::with_capacity(n_rows * row_bytes), vec![false; n_rows]);
        let (mut n_tokens, mut truncated) = (UInt32Builder::new(), BooleanBuilder::new());
        let ranges = self.ranges.as_ref().map(|given| &given.ranges);
        let mut found = places.iter().zip(embedded).peekable();
        for (row, is_there) in is_there.iter_mut().enumerate() {
            match found.next_if(|(place, _)| **place == row) {
                Some((_, embedding)) => {
                    *is_there = true;
                    self.plan.output_type.encode(&embedding.vector, ranges, &mut bytes);
                    n_tokens.append_value(embedding.n_tokens);
                    truncated.append_value(embedding.truncated);
                }
                None => {
                    bytes.resize(bytes.len() + row_bytes, 0);
                    n_tokens.append_value(0);
                    truncated.append_value(false);
                }
            }
        }
        let vector_type = self.vector_type();
        let DataType::FixedSizeList(item, n_columns) = &vector_type else { unreachable!("a vector is a list") };
        let numbers = ArrayData::builder(item.data_type().clone())
            .len(n_rows * *n_columns as usize)
            .add_buffer(Buffer::from_vec(bytes));
        let numbers = numbers.align_buffers(true).build().expect("as many numbers as it says");
        let vectors = ArrayData::builder(vector_type.clone())
            .len(n_rows)
            .nulls(Some(NullBuffer::from(is_there)))
            .add_child_data(numbers)
            .build()
            .expect("as many vectors as there are rows");
        [make_array(vectors), Arc::new(n_tokens.finish()), Arc::new(truncated.finish())]
    }

    /// Ends the run: the encoder is known again, and the cache keeps what it was given.
    fn end(mut self, ended: Result<()>) -> Result<ArrowReport> {
        match ended.and_then(|()| self.encoder.encoder.confirm(NEVER)) {
            Err(error @ Error::EncoderChanged { .. }) => {
                self.encoder.forget_cache()?;
                Err(error)
            }
            Err(error) => Err(error),
            Ok(()) => {
                self.encoder.finish_cache()?;
                Ok(ArrowReport { n_from_cache: self.encoder.n_from_cache, ..self.report })
            }
        }
    }
}

/// The columns that texts come from.
struct Texts {
    title: Option<usize>,
    text: usize,
}

impl Texts {
    fn find(schema: &Schema, named: Option<&str>) -> Result<Self, String> {
        let column = |name: &str| schema.fields().iter().position(|field| field.name() == name);
        let has = || {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).take(20).collect();
            format!("it has {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") })
        };
        let found = match named {
            Some(name) => {
                Self { title: None, text: column(name).ok_or_else(|| format!("it has no column {name:?}; {}", has()))? }
            }
            None => Self {
                title: TITLE_KEYS.into_iter().find_map(column),
                text: TEXT_KEYS.into_iter().find_map(column).ok_or_else(|| {
                    format!("no column is named {}: name that of the texts; {}", TEXT_KEYS.join(", "), has())
                })?,
            },
        };
        for column in found.title.into_iter().chain([found.text]) {
            let field = schema.field(column);
            if !matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
                return Err(format!("column {:?} holds {}, not strings", field.name(), field.data_type()));
            }
        }
        Ok(found)
    }

    /// The text of each row, as users of sentence-transformers join title and text.
    fn read(&self, rows: &RecordBatch) -> Vec<Option<String>> {
        let title = self.title.map(|title| rows.column(title));
        let text = rows.column(self.text);
        let read = |row: usize| {
            let title = title.and_then(|title| value(title, row)).filter(|title| !title.is_empty());
            match (title, value(text, row)) {
                (None, text) => text.map(str::to_owned),
                (Some(title), None | Some("")) => Some(title.to_owned()),
                (Some(title), Some(text)) => Some(format!("{title} {text}")),
            }
        };
        (0..rows.num_rows()).map(read).collect()
    }
}

fn value(column: &ArrayRef, row: usize) -> Option<&str> {
    if column.is_null(row) {
        return None;
    }
    Some(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row),
        _ => column.as_string_view().value(row), // columns of texts are of these three types
    })
}

/// The error of a text, by the row it stands in.
fn at_row(error: Error, input: &EmbedInput, row: impl Fn(usize) -> u64) -> Error {
    use cento_embedder::Error::{Tokenize, Vector};
    match error {
        Error::Embedder(source @ (Tokenize { index, .. } | Vector { index, .. })) => {
            let reason = format!("row {}: {}", row(index), crate::describe(&source));
            Error::ArrowStream { input: input.name(), reason }
        }
        other => other,
    }
}
