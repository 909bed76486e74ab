//! Chunks of whole documents on the tiny model, against plain embedding and against vectors pooled by hand; seams on a
//! real model where `CENTO_MODEL_DIR` names a folder with one.

use std::path::{Path, PathBuf};

use super::*;
use crate::{DeviceChoice, LoadOptions};

const TEXT: &str = "The city of words.  A river, unknowable;\n\n日本 2024 e\u{301} 😀 the walk. The price of bread!\n";

fn tiny() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny"))
}

fn load(folder: &Path, threads: usize, max_batch_tokens: usize) -> Embedder {
    let options = LoadOptions { device: DeviceChoice::Cpu, threads, max_batch_tokens, ..LoadOptions::default() };
    Embedder::load(folder, &options).unwrap()
}

fn document(prefix: &str, text: &str, spans: &[Range<usize>]) -> LateDocument {
    LateDocument { prefix: prefix.to_owned(), text: text.to_owned(), spans: spans.to_vec() }
}

/// Text of many words in chunks of `n_words` each.
fn long_document(n_words: usize, n_words_chunk: usize) -> LateDocument {
    let words = ["the", "city", "of", "river", "words,", "unknowable", "日本", "2024", "e\u{301}", "😀"];
    let mut late = LateDocument::default();
    for chunk in 0..n_words.div_ceil(n_words_chunk) {
        let start = late.text.len();
        for word in chunk * n_words_chunk..n_words.min((chunk + 1) * n_words_chunk) {
            late.text.push_str(words[(word * 7 + word * word / 3) % words.len()]);
            late.text.push(' ');
        }
        late.spans.push(start..late.text.len());
    }
    late
}

fn embed(embedder: &Embedder, late: LateDocument) -> Vec<Embedding> {
    embedder.embed_late(&[late], embedder.late_windows(None, None).unwrap()).unwrap().remove(0)
}

/// The hidden rows of one sequence, alone in its batch.
fn rows(embedder: &Embedder, ids: Vec<u32>) -> Vec<Vec<f32>> {
    let n_tokens = ids.len();
    let batch = pack(vec![ids], usize::MAX).remove(0);
    let hidden = embedder.with_hidden(&batch, NEVER, |hidden, _| hidden.to_vec()).unwrap();
    hidden.chunks_exact(hidden.len() / n_tokens).map(<[f32]>::to_vec).collect()
}

fn mean(rows: &[Vec<f32>]) -> Vec<f32> {
    let sum = |at: usize| rows.iter().map(|row| f64::from(row[at])).sum::<f64>();
    let sums: Vec<f64> = (0..rows[0].len()).map(sum).collect();
    let norm = sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt();
    sums.iter().map(|sum| (sum / norm) as f32).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn one_span_of_everything_is_the_plain_vector() {
    let embedder = load(&tiny(), 1, 0);
    let plain = embedder.embed(&[TEXT.to_owned()], Kind::Document).unwrap();
    assert_eq!(embed(&embedder, document("", TEXT, &[0..TEXT.len()])), plain); // the same bits
}

#[test]
fn each_span_is_the_mean_of_its_own_tokens() {
    let embedder = load(&tiny(), 1, 0);
    let (a, b) = (TEXT.find("A river").unwrap(), TEXT.find("The price").unwrap());
    let spans = [0..a, a..b, b..TEXT.len()];
    let prefix = "# Document: the walk\n";
    let found = embed(&embedder, document(prefix, TEXT, &spans));

    // by hand: tokenize the chunks apart, which for this tokenizer gives the same ids
    let tokens = |text: &str| embedder.tokenizer().tokenize_placed(text).unwrap().ids;
    let parts: Vec<_> = [prefix].into_iter().chain(spans.iter().map(|span| &TEXT[span.clone()])).map(tokens).collect();
    let rows = rows(&embedder, embedder.tokenizer().surround(&[&parts.concat()]));
    let mut at = 1 + parts[0].len();
    for (n, (embedding, part)) in found.iter().zip(&parts[1..]).enumerate() {
        let mut own = rows[at..at + part.len()].to_vec();
        own.splice(..0, (n == 0).then(|| rows[0].clone()));
        own.extend((n == 2).then(|| rows[rows.len() - 1].clone()));
        assert_eq!(embedding.vector, mean(&own), "span {n}");
        assert_eq!((embedding.n_tokens as usize, embedding.truncated), (own.len(), false));
        at += part.len();
    }
    assert_eq!(at + 1, rows.len());
}

#[test]
fn the_prefix_conditions_and_is_not_pooled() {
    let embedder = load(&tiny(), 1, 0);
    let bare = embed(&embedder, document("", TEXT, &[0..TEXT.len()]));
    let titled = embed(&embedder, document("A title. ", TEXT, &[0..TEXT.len()]));
    assert_eq!(bare[0].n_tokens, titled[0].n_tokens);
    assert_ne!(bare[0].vector, titled[0].vector);
}

#[test]
fn what_lies_between_spans_is_context_only() {
    let embedder = load(&tiny(), 1, 0);
    let (a, b) = (TEXT.find("A river").unwrap(), TEXT.find("The price").unwrap());
    let whole = embed(&embedder, document("", TEXT, &[0..a, a..b, b..TEXT.len()]));
    let outer = embed(&embedder, document("", TEXT, &[0..a, b..TEXT.len()]));
    assert_eq!(outer, [whole[0].clone(), whole[2].clone()]);
}

#[test]
fn a_document_beyond_the_window_has_a_vector_for_every_span() {
    let embedder = load(&tiny(), 2, 0);
    for n_words in [100, 126, 127, 128, 300, 2000] {
        let late = long_document(n_words, 13);
        let n_tokens = embedder.tokenizer().count(&late.text);
        let embeddings = embed(&embedder, late.clone());
        assert_eq!(embeddings.len(), late.spans.len());
        // every token counts once, and the two special ones
        assert_eq!(embeddings.iter().map(|embedding| embedding.n_tokens as usize).sum::<usize>(), n_tokens + 2);
        for embedding in &embeddings {
            let norm: f64 = embedding.vector.iter().map(|&value| f64::from(value).powi(2)).sum();
            assert!((norm - 1.0).abs() < 1e-6 && !embedding.truncated);
        }
    }
}

#[test]
fn windowed_vectors_are_pooled_from_the_windows_that_keep_them() {
    let embedder = load(&tiny(), 1, 0);
    let late = long_document(90, 20);
    let settings = embedder.late_windows(Some(40), Some(12)).unwrap();
    let found = embedder.embed_late(std::slice::from_ref(&late), settings).unwrap().remove(0);
    let placed = embedder.tokenizer().tokenize_placed(&late.text).unwrap();
    let all = windows(placed.ids.len(), 38, 12);
    assert!(all.len() > 2);
    let mut of_span = vec![Vec::new(); late.spans.len()];
    for (n, Window { read, kept }) in all.iter().enumerate() {
        let rows = rows(&embedder, embedder.tokenizer().surround(&[&placed.ids[read.clone()]]));
        if n == 0 {
            of_span[0].push(rows[0].clone());
        }
        for token in kept.clone() {
            let place = placed.places[token].unwrap();
            let span = late.spans.iter().position(|span| span.contains(&place)).unwrap();
            of_span[span].push(rows[1 + token - read.start].clone());
        }
        if n + 1 == all.len() {
            of_span[late.spans.len() - 1].push(rows[rows.len() - 1].clone());
        }
    }
    for (embedding, own) in found.iter().zip(of_span) {
        assert!(cosine(&embedding.vector, &mean(&own)) > 1.0 - 1e-12);
        assert_eq!(embedding.n_tokens as usize, own.len());
    }
}

#[test]
fn vectors_depend_on_their_document_alone() {
    let documents: Vec<LateDocument> =
        [(3, 5), (90, 20), (700, 11), (1, 1), (250, 250), (40, 3)].map(|(n, chunk)| long_document(n, chunk)).to_vec();
    let alone = load(&tiny(), 1, 1);
    let windows = alone.late_windows(Some(100), Some(30)).unwrap();
    let expected: Vec<_> = documents
        .iter()
        .map(|document| alone.embed_late(std::slice::from_ref(document), windows).unwrap().remove(0))
        .collect();
    for (n_threads, max_batch_tokens) in [(1, 0), (2, 0), (3, 300)] {
        assert_eq!(load(&tiny(), n_threads, max_batch_tokens).embed_late(&documents, windows).unwrap(), expected);
    }
}

#[test]
fn a_span_in_which_no_token_begins_is_read_by_itself() {
    let embedder = load(&tiny(), 1, 0);
    let text = format!("the city {} of words", "a".repeat(300)); // beyond the longest word: one unknown token
    let (word, cut) = (text.find('a').unwrap(), 200);
    let spans = [0..word, word..cut, cut..word + 300, word + 300..text.len()];
    let embeddings = embed(&embedder, document("title: ", &text, &spans));
    assert_eq!(embeddings.len(), 4);
    let alone = embed(&embedder, document("title: ", &text[spans[2].clone()], &[0..spans[2].len()]));
    assert_eq!(embeddings[2], alone[0]);
    // blanks: nothing but the special tokens
    let blank = embed(&embedder, document("", "the city \u{a0}\n of", &[0..9, 9..12, 12..15]));
    assert_eq!(blank.iter().map(|embedding| embedding.n_tokens).collect::<Vec<_>>(), [3, 2, 2]);
    let empty = embed(&embedder, document("", "", &[0..0, 0..0]));
    assert_eq!(empty[0], empty[1]);
}

#[test]
fn no_documents_and_no_spans() {
    let embedder = load(&tiny(), 2, 0);
    let windows = embedder.late_windows(None, None).unwrap();
    assert!(embedder.embed_late(&[], windows).unwrap().is_empty());
    let none = embedder.embed_late(&[document("", "the city", &[]), long_document(5, 2)], windows).unwrap();
    assert_eq!(none.iter().map(Vec::len).collect::<Vec<_>>(), [0, 3]);
}

#[test]
fn windows_and_prefixes_that_cannot_be_are_refused() {
    let embedder = load(&tiny(), 1, 0);
    let words = |error: Error| error.to_string();
    assert_eq!(
        words(embedder.late_windows(Some(129), None).unwrap_err()),
        "window of 129 tokens: the encoder allows 4 to 128"
    );
    assert!(embedder.late_windows(Some(3), None).is_err());
    assert_eq!(
        words(embedder.late_windows(Some(10), Some(8)).unwrap_err()),
        "overlap of 8 tokens: the encoder allows 0 to 7"
    );
    let windows = embedder.late_windows(Some(10), Some(7)).unwrap();
    assert_eq!((windows.n_positions(), windows.overlap()), (10, 7));
    let fitting = document("the the the the ", "the city", &[0..8]);
    let longer = document("the the the the the", "the city", &[0..8]);
    assert!(embedder.embed_late(std::slice::from_ref(&fitting), windows).is_ok());
    let error = embedder.embed_late(&[fitting, longer], windows).unwrap_err();
    assert_eq!(words(error), "document 1: a prefix of 5 tokens leaves too little of a window; at most 4 fit");
}

#[test]
fn placed_tokens_are_the_tokens() {
    let embedder = load(&tiny(), 1, 0);
    let text = TEXT.repeat(2000); // several pieces
    let placed = embedder.tokenizer().tokenize_placed(&text).unwrap();
    assert_eq!(placed.ids.len(), embedder.tokenizer().count(&text));
    assert_eq!(placed.places.len(), placed.ids.len());
    let places: Vec<usize> = placed.places.iter().map(|place| place.unwrap()).collect();
    assert!(places.is_sorted());
    let ends = embedder.tokenizer().ends(&text);
    for (&place, end) in places.iter().zip(ends) {
        assert!(place < end && text[place..end].chars().all(|character| !character.is_whitespace()));
    }
}

/// The rows of all tokens out of windows, each alone in its batch.
fn window_rows(embedder: &Embedder, ids: &[u32], windows: &[Window]) -> Vec<Vec<Vec<f32>>> {
    let of_window = |window: &Window| {
        let mut rows = rows(embedder, embedder.tokenizer().surround(&[&ids[window.read.clone()]]));
        rows.remove(0);
        rows
    };
    windows.iter().map(of_window).collect()
}

/// The reference's crop of the same windows: each but the first leaves out the first tokens that it shares with the one
/// before.
fn left_only(windows: &[Window]) -> Vec<Window> {
    let mut next = 0;
    let crop = |Window { read, .. }: &Window| {
        let kept = next..read.end;
        next = read.end;
        Window { read: read.clone(), kept }
    };
    windows.iter().map(crop).collect()
}

/// How far windowed rows are from those of the whole sequence (1 - cosine), by distance from the nearest seam.
struct SeamCurve {
    sums: Vec<(f64, u32)>,
}

impl SeamCurve {
    /// Distances in tokens from which a bucket begins.
    const BUCKETS: [usize; 6] = [0, 2, 6, 14, 30, 62];

    fn new() -> Self {
        Self { sums: vec![(0.0, 0); Self::BUCKETS.len()] }
    }

    fn add(&mut self, whole: &[Vec<f32>], windows: &[Window], rows: &[Vec<Vec<f32>>]) {
        let seams: Vec<usize> = windows.iter().skip(1).map(|window| window.kept.start).collect();
        for (Window { read, kept }, rows) in windows.iter().zip(rows) {
            for token in kept.clone() {
                let distance = |&seam: &usize| if token < seam { seam - 1 - token } else { token - seam };
                let near = seams.iter().map(distance).min().unwrap();
                let bucket = Self::BUCKETS.partition_point(|&from| from <= near) - 1;
                self.sums[bucket].0 += 1.0 - cosine(&whole[token], &rows[token - read.start]);
                self.sums[bucket].1 += 1;
            }
        }
    }

    fn means(&self) -> Vec<f64> {
        self.sums.iter().map(|&(sum, n)| sum / f64::from(n)).collect()
    }
}

/// Windows of half the trained length in passages of the trained length: MiniLM, 128 of 256 tokens.
#[test]
fn cropping_both_sides_is_closer_to_the_whole_than_cropping_the_left() {
    let Some((embedder, ids)) = real_model_and_text() else { return };
    let (n_whole, n_window) = (embedder.max_tokens() - 2, embedder.max_tokens() / 2 - 2);
    let overlap = n_window / 2;
    let (mut centred, mut left) = (SeamCurve::new(), SeamCurve::new());
    for passage in ids.windows(n_whole).step_by(n_whole / 4) {
        let whole = &rows(&embedder, embedder.tokenizer().surround(&[passage]))[1..];
        let windows = windows(passage.len(), n_window, overlap);
        let rows = window_rows(&embedder, passage, &windows);
        centred.add(whole, &windows, &rows);
        left.add(whole, &left_only(&windows), &rows);
    }
    println!("tokens from the seam, 1 - cosine to the whole: centred, left only");
    for ((from, centred), left) in SeamCurve::BUCKETS.iter().zip(centred.means()).zip(left.means()) {
        println!("{from:>3} and more: {centred:.4} {left:.4}");
        // as far as the crop reaches: beyond it both keep the same tokens of the same windows
        assert!(centred < left || *from >= overlap / 4, "{from} from the seam");
    }
}

/// What the default overlap is chosen by: windows of a quarter of the trained length, several seams in a passage of the
/// trained length.
#[test]
fn more_overlap_is_closer_to_the_whole_at_a_seam() {
    let Some((embedder, ids)) = real_model_and_text() else { return };
    let (n_whole, n_window) = (embedder.max_tokens() - 2, embedder.max_tokens() / 4 - 2);
    let mut at_seam = Vec::new();
    for overlap in [0, n_window / 8, n_window / 4, n_window / 2] {
        let mut curve = SeamCurve::new();
        let mut n_read = 0;
        for passage in ids.windows(n_whole).step_by(n_whole / 2) {
            let whole = &rows(&embedder, embedder.tokenizer().surround(&[passage]))[1..];
            let windows = windows(passage.len(), n_window, overlap);
            curve.add(whole, &windows, &window_rows(&embedder, passage, &windows));
            n_read = windows.len() * n_window;
        }
        println!("overlap {overlap}, {n_read} of {n_whole} tokens read, by distance: {:.4?}", curve.means());
        at_seam.push(curve.means()[0]);
    }
    assert!(at_seam[3] < at_seam[0], "{at_seam:?}");
}

/// A model with positions for two of its windows, and tokens of prose; says so where there is none.
fn real_model_and_text() -> Option<(Embedder, Vec<u32>)> {
    let Some(folder) = std::env::var_os("CENTO_MODEL_DIR") else {
        eprintln!("skipped: CENTO_MODEL_DIR does not name a model folder");
        return None;
    };
    let embedder = load(Path::new(&folder), 1, 0);
    if embedder.n_positions() < 2 * embedder.max_tokens() {
        eprintln!("skipped: the model of CENTO_MODEL_DIR has no positions for two of its windows");
        return None;
    }
    let text = include_str!("../../../../LICENSE-APACHE"); // prose that nobody edits
    let ids = embedder.tokenizer().tokenize_placed(text).unwrap().ids;
    Some((embedder, ids))
}
