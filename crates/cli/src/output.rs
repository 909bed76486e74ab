//! What people read: progress on a terminal, rankings, tables.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::args::Global;
use crate::exit_code;
use anyhow::Context as _;
use cento_engine::fuse::Contribution;
use cento_engine::{
    Citation, Copied, EmbedProgress, Explanation, Hit, NamedBy, OsFs, Progress, RERANK, Replacement, Searcher, Stage,
};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// As the standard macros, which panic where nobody reads any more; and no name or text that is shown commands the
/// terminal. A reader of stdout that has seen enough, as `head` has, ends the process quietly; one of stderr that is
/// gone ends nothing.
macro_rules! print {
    ($($argument:tt)*) => { $crate::output::write(&$crate::output::visible(&format!($($argument)*))) };
}
macro_rules! println {
    ($($argument:tt)*) => { $crate::output::write(&format!("{}\n", $crate::output::visible(&format!($($argument)*)))) };
}
macro_rules! eprintln {
    ($($argument:tt)*) => { $crate::output::remark(&format!("{}\n", $crate::output::visible(&format!($($argument)*)))) };
}

/// A name as answers and traces write it.
pub(crate) fn name(of: &impl serde::Serialize) -> String {
    serde_json::to_value(of).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A text in which what a terminal would obey is written out: control characters, but line ends and tabs.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let ends_line = c == '\n' || text[at..].starts_with("\r\n");
        if c.is_control() && c != '\t' && !ends_line {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Writes to stdout; there is no way on when that fails.
pub(crate) fn write(text: &str) {
    let Err(error) = io::stdout().lock().write_all(text.as_bytes()) else { return };
    if error.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(i32::from(exit_code::OK));
    }
    let error = anyhow::Error::from(error);
    eprintln!("error: stdout: {error}{}", exit_code::way_out(&error));
    std::process::exit(i32::from(exit_code::DATA));
}

/// Writes the text of documents to stdout: byte for byte into a file or a pipe, and so that a terminal obeys nothing in
/// it.
pub(crate) fn text(text: &str) {
    if io::stdout().is_terminal() { write(&visible(text)) } else { write(text) }
}

/// Writes to stderr. What is said there is beside the answer: work goes on when nobody hears it.
pub(crate) fn remark(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes to stderr what may hold links that we made ourselves; names in it went through [`printable`].
pub(crate) fn remark_with_links(text: &str) {
    remark(text);
}

/// The largest answer of an earlier command that is read.
pub(crate) const ANSWER_BYTES_MAX: u64 = 1 << 28;

/// Format number of every JSON answer of the command line.
pub(crate) const JSON_VERSION: u32 = 1;

/// Writes a line of JSON to stdout.
pub(crate) fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    write(&format!("{}\n", serde_json::to_string(value)?));
    Ok(())
}

/// The answers that a bar is shown beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    Text,
    AnyAnswer,
}

/// A bar on stderr while something long runs; nothing at all where stderr is not a terminal.
pub(crate) struct Bar {
    bar: ProgressBar,
    stage: Stage,
}

impl Bar {
    pub(crate) fn new(global: &Global, beside: Beside) -> Self {
        let is_wanted = !global.quiet && (beside == Beside::AnyAnswer || !global.json);
        let shown = is_wanted && io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style("{spinner} {msg} [{elapsed}]"));
        if shown {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { bar, stage: Stage::Embedding }
    }

    /// A line that stays, on a terminal or not.
    pub(crate) fn note(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Shows how far an ingest is: by bytes read, with documents and tokens a second.
    pub(crate) fn ingest(&mut self, progress: &Progress) {
        match progress.stage {
            Stage::Embedding => {
                if self.bar.length().is_none() {
                    self.bar.set_length(progress.n_bytes_total);
                    self.bar.set_style(style("{wide_bar} {percent}% {msg} [{elapsed}, {eta} left]"));
                }
                self.bar.set_position(progress.n_bytes);
                let seconds = self.bar.elapsed().as_secs_f64().max(1e-3);
                let (documents, tokens) = (progress.n_documents as f64 / seconds, progress.n_tokens as f64 / seconds);
                let contexts = match progress.n_contexts {
                    0 => String::new(),
                    n_contexts => format!(", {} contexts", HumanCount(n_contexts)),
                };
                self.bar.set_message(format!(
                    "{} documents, {documents:.0}/s, {} tokens, {tokens:.0}/s{contexts}",
                    progress.n_documents,
                    HumanCount(progress.n_tokens)
                ));
            }
            Stage::Writing => {
                if self.stage != Stage::Writing {
                    self.stage = Stage::Writing;
                    self.bar.set_style(style("{spinner} {msg} [{elapsed}]"));
                }
                let rows = if progress.n_graph_rows > 0 {
                    format!(", {} rows linked", progress.n_graph_rows)
                } else {
                    String::new()
                };
                self.bar.set_message(format!("writing the segment{rows}"));
            }
            Stage::Compacting => {
                if self.stage != Stage::Compacting {
                    self.stage = Stage::Compacting;
                    self.bar.set_length(progress.n_rows_total);
                    self.bar.set_style(style("{wide_bar} {percent}% {msg} [{elapsed}]"));
                }
                self.bar.set_position(progress.n_rows);
                let linked = match progress.n_graph_rows {
                    0 => String::new(),
                    n_rows => format!(", {} linked", HumanCount(n_rows)),
                };
                self.bar.set_message(format!("merging segments: {} rows copied{linked}", HumanCount(progress.n_rows)));
            }
        }
    }

    /// Shows how far an adoption is, by rows.
    pub(crate) fn adoption(&mut self, copied: &Copied) {
        if self.bar.length() != Some(copied.n_rows_total) {
            self.bar.set_length(copied.n_rows_total);
            self.bar.set_style(style("{wide_bar} {percent}% {msg} [{elapsed}]"));
            self.bar.set_message("copying segments");
        }
        self.bar.set_position(copied.n_rows);
    }

    /// Shows how far an embedding run is: by bytes read where their number is known, with texts and tokens a second.
    pub(crate) fn embed(&self, progress: &EmbedProgress) {
        if self.bar.length().is_none()
            && let Some(n_bytes) = progress.n_bytes_total
        {
            self.bar.set_length(n_bytes);
            self.bar.set_position(progress.n_bytes);
            self.bar.reset_eta(); // what an earlier run did is no measure of this one
            self.bar.set_style(style("{wide_bar} {percent}% {msg} [{elapsed}, {eta} left]"));
        }
        self.bar.set_position(progress.n_bytes);
        let seconds = self.bar.elapsed().as_secs_f64().max(1e-3);
        let n_new = progress.n_rows - progress.n_resumed;
        self.bar.set_message(format!(
            "{} texts, {:.0}/s, {:.0} tokens/s",
            HumanCount(progress.n_rows),
            n_new as f64 / seconds,
            progress.n_tokens as f64 / seconds
        ));
    }

    /// Shows how many of a known number are done.
    pub(crate) fn count(&self, n_done: usize, n_total: usize, what: &str) {
        if self.bar.length() != Some(n_total as u64) {
            self.bar.set_length(n_total as u64);
            self.bar.set_style(style("{wide_bar} {pos}/{len} {msg}, {per_sec} [{elapsed}, {eta} left]"));
            self.bar.set_message(what.to_owned());
        }
        self.bar.set_position(n_done as u64);
    }

    /// Shows a line of its own.
    pub(crate) fn message(&self, message: String) {
        self.bar.set_message(visible(&message).into_owned());
    }

    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("templates here are constants")
}

/// A hit as a reader takes it in: score, citation, likelihood, headings, the beginning of the text.
pub(crate) fn hit(hit: &Hit, width: usize) -> String {
    let mut text = format!("{:>3}  {:.4}  {}", hit.rank, hit.score, hit.id);
    if !hit.anchor.is_empty() {
        let _ = write!(text, "  {}", hit.anchor);
    }
    if let Some(likelihood) = hit.likelihood {
        let _ = write!(text, "  likelihood {likelihood:.2}");
    }
    if !hit.path.is_empty() {
        let _ = write!(text, "\n             {}", hit.path.join(" > "));
    }
    let flat = hit.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = writeln!(text, "\n             {}", cut(&flat, width.saturating_sub(13).max(40)));
    text
}

/// Columns of the bars of the best hit.
const BAR_COLUMNS: f64 = 30.0;

/// A line of bars with what each retriever gave to a hit's score; nothing where stdout is no terminal.
pub(crate) fn parts(hit: &Hit, best: f64) -> String {
    if io::stdout().is_terminal() {
        format!("             {}\n", bars(&hit.contributions, best))
    } else {
        String::new()
    }
}

/// A bar and a number for each retriever; bars as long as the share of the best score.
fn bars(parts: &[Contribution], best: f64) -> String {
    let bar = |part: &Contribution| {
        let share = if best > 0.0 { (part.contribution / best).clamp(0.0, 1.0) } else { 0.0 };
        let bar = "█".repeat((share * BAR_COLUMNS).round() as usize);
        format!("{} {bar}{}{:.4}", part.arm, if bar.is_empty() { "" } else { " " }, part.contribution)
    };
    parts.iter().map(bar).collect::<Vec<_>>().join("  ")
}

/// Where each `[n]` of a context comes from, a line a citation, in words that `cento get` takes; links on terminals
/// that know them.
pub(crate) fn sources(searcher: &Searcher, citations: &[Citation]) -> anyhow::Result<String> {
    let has_links = supports_hyperlinks::on(supports_hyperlinks::Stream::Stderr);
    let mut text = String::new();
    for citation in citations {
        let place = searcher.place(citation)?;
        let words = printable(&place.words);
        let address = place.file.filter(|_| has_links).and_then(|file| url::Url::from_file_path(file).ok());
        let words = match address {
            Some(address) => format!("\u{1b}]8;;{address}\u{1b}\\{words}\u{1b}]8;;\u{1b}\\"),
            None => words,
        };
        let _ = write!(text, "[{}] {words}", citation.n);
        let id = Some(&citation.document).filter(|id| !place.words.starts_with(id.as_str())).cloned();
        let within = cento_engine::Anchor { line: None, ..citation.anchor.clone() }.to_string();
        let headings = citation.path.join(" > ");
        for part in [id.unwrap_or_default(), within, headings].iter().filter(|part| !part.is_empty()) {
            let _ = write!(text, "  {}", printable(part));
        }
        text.push('\n');
    }
    Ok(text)
}

/// A name in one line, without what a terminal would obey.
pub(crate) fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// The parts of a hit's score, so that it can be added up by hand.
pub(crate) fn explanation(hit: &Hit) -> String {
    let terms = hit.lexical.as_ref().map_or_else(String::new, |explanation| terms(explanation, 17));
    let named_by = hit.named_by.as_ref().map_or_else(String::new, |NamedBy { document, title, span, link }| {
        let ([start, end], verb) = (span, link.map_or_else(|| "named".to_owned(), |kind| format!("{kind} link")));
        format!("{:17}{verb} \"{}\" by {document} bytes {start}-{end}\n", "", printable(title))
    });
    contributions(&hit.contributions, 13) + &named_by + &terms
}

/// Each arm's part of a fused score, a line an arm.
pub(crate) fn contributions(parts: &[Contribution], indent: usize) -> String {
    let mut text = String::new();
    for part in parts {
        let _ = write!(text, "{:indent$}{:+.6}  {}: ", "", part.contribution, part.arm);
        let _ = match (part.rank, part.raw, part.normalized) {
            (Some(rank), Some(raw), Some(probability)) if part.arm == RERANK => {
                writeln!(text, "rank {rank} before, logit {raw:.6}, probability {probability:.6}")
            }
            (Some(rank), Some(raw), Some(normalized)) => {
                writeln!(text, "rank {rank}, score {raw:.6}, normalised {normalized:.6}, weight {:.6}", part.weight)
            }
            (Some(rank), Some(raw), None) => writeln!(text, "rank {rank}, score {raw:.6}, weight {:.6}", part.weight),
            _ => writeln!(text, "not among its candidates"),
        };
    }
    text
}

/// Each term's part of a BM25 score, a line a term.
pub(crate) fn terms(explanation: &Explanation, indent: usize) -> String {
    let mut text = String::new();
    for term in &explanation.terms {
        let _ = writeln!(
            text,
            "{:indent$}{:.6}  {}: idf {:.4} (in {} of {}), tf {}, length {} of {:.1} on average",
            "", term.contribution, term.term, term.idf, term.df, term.n, term.tf, term.length, term.average_length
        );
    }
    text
}

/// The first characters of a text, with an ellipsis if there were more.
pub(crate) fn cut(text: &str, n_chars: usize) -> String {
    match text.char_indices().nth(n_chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Columns of text, without lines around them.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    // Names of measures, such as nDCG@10, are written as they are.
    let head = |name: &&str| if name.contains(char::is_uppercase) { (*name).to_owned() } else { name.to_uppercase() };
    table.set_header(header.iter().map(head));
    for row in rows {
        table.add_row(row);
    }
    table.trim_fmt()
}

/// A mean of a measure: four digits after the point, fewer for what is large.
pub(crate) fn figure(value: f64) -> String {
    if value.abs() < 10.0 { format!("{value:.4}") } else { format!("{value:.1}") }
}

/// A probability of chance.
pub(crate) fn p_value(p: f64) -> String {
    if p < 0.0001 { "< .0001".to_owned() } else { format!("{p:.4}") }
}

/// Where an output goes: to stdout, or into a file that takes its place when it is whole.
pub(crate) enum Output {
    Stdout(io::BufWriter<io::StdoutLock<'static>>),
    /// A pipe, a device: there is no place to take.
    Stream(io::BufWriter<std::fs::File>),
    File(io::BufWriter<Replacement<'static>>),
}

/// A file to write to; `-` is stdout. What is there stays until [`Output::finish`].
pub(crate) fn file(path: &Path) -> anyhow::Result<Output> {
    if path == Path::new("-") {
        return Ok(Output::Stdout(io::BufWriter::new(io::stdout().lock())));
    }
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned()); // of a link, what it leads to
    let found = std::fs::metadata(&place).ok();
    if found.as_ref().is_some_and(|found| !found.is_file()) {
        let stream = std::fs::File::options().write(true).open(&place).with_context(|| path.display().to_string())?;
        return Ok(Output::Stream(io::BufWriter::with_capacity(FILE_BUFFER_BYTES, stream)));
    }
    let mut name = place.file_name().with_context(|| format!("{}: names no file", path.display()))?.to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let replacement = Replacement::create(&OsFs, &place, place.with_file_name(name))?;
    if let Some(found) = found {
        let temporary = replacement.temporary();
        std::fs::set_permissions(temporary, found.permissions()).with_context(|| temporary.display().to_string())?;
    }
    Ok(Output::File(io::BufWriter::with_capacity(FILE_BUFFER_BYTES, replacement)))
}

/// Writes a file whole, which takes its place when it is; as [`file`] takes the path.
pub(crate) fn whole_file(path: &Path, bytes: &[u8], readers: Readers) -> anyhow::Result<()> {
    let mut out = file(path)?;
    if let (Output::File(replacement), Readers::Owner, false) = (&out, readers, path.exists()) {
        let temporary: PathBuf = replacement.get_ref().temporary().to_owned();
        make_private(&temporary).with_context(|| temporary.display().to_string())?;
    }
    out.write_all(bytes).with_context(|| path.display().to_string())?;
    out.finish()
}

/// Who may read a file that is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Its owner alone: it holds texts of the collection.
    Owner,
    /// Whom the system lets by default.
    Usual,
}

#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_private(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Bytes that are written to a file at a time.
const FILE_BUFFER_BYTES: usize = 1 << 20;

impl Output {
    /// Ends the output: a file is synced and takes its place.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stdout(mut out) => Ok(out.flush()?),
            Self::Stream(mut out) => Ok(out.flush()?),
            Self::File(out) => {
                let temporary = out.get_ref().temporary().display().to_string();
                let replacement = out.into_inner().map_err(io::IntoInnerError::into_error).context(temporary)?;
                Ok(replacement.publish()?)
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Stream(out) => out.write(bytes),
            Self::File(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Stream(out) => out.flush(),
            Self::File(out) => out.flush(),
        }
    }
}

/// Bytes as people write them.
pub(crate) fn bytes(n_bytes: u64) -> String {
    HumanBytes(n_bytes).to_string()
}

/// A count with thousands set apart.
pub(crate) fn count(n: u64) -> String {
    HumanCount(n).to_string()
}

/// A count and its noun: `1 chunk`, `2,000 chunks`.
pub(crate) fn counted(n: u64, one: &str) -> String {
    format!("{} {}", count(n), cento_engine::plural(n, one))
}

/// Columns of the terminal, or 100.
pub(crate) fn width() -> usize {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_share_one_scale() {
        let part = |arm: &str, contribution: f64| Contribution {
            arm: arm.to_owned().into(),
            rank: Some(1),
            raw: Some(contribution),
            normalized: None,
            weight: 1.0,
            contribution,
        };
        let parts = [part("dense", 0.5), part("lexical", 0.05), part("other", -0.1)];
        let dense = format!("dense {} 0.5000", "█".repeat(15));
        assert_eq!(bars(&parts, 1.0), format!("{dense}  lexical ██ 0.0500  other -0.1000"));
        assert_eq!(bars(&parts[..1], 0.0), "dense 0.5000");
    }

    #[test]
    fn a_terminal_is_told_nothing_by_a_name() {
        assert_eq!(printable("a\u{1b}]8;;x\n é"), "a\\u{1b}]8;;x\\u{a} é");
        assert_eq!(visible("a\u{1b}[2J\r\t\u{9b}1m\r\n é"), "a\\u{1b}[2J\\u{d}\t\\u{9b}1m\r\n é");
        assert!(matches!(visible("tabs\tand\nlines é"), Cow::Borrowed(_)));
    }
}
