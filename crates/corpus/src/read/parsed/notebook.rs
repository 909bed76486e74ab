//! Notebooks of Jupyter: the Markdown of its cells, their code, and the text of their outputs.
//!
//! A notebook is read as the Markdown that it would be: code and outputs stand in fences, headings of the cells open
//! sections. Images and interactive outputs are counted, not read; of a long output the start is read.
//! Source: the notebook format 4 (nbformat), and 3, whose cells stand in worksheets.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::decoded::Decoded;
use super::super::markdown;
use super::{Fault, Parsed, Part};
use crate::document::TextKind;
use crate::extraction::Extraction;
use crate::format::Format;
use crate::metadata::{Place, Value, add_value};

const ENGINE: &str = "serde_json 1";

/// Bytes of one output that are read.
const OUTPUT_BYTES_MAX: usize = 4_096;

#[derive(Deserialize)]
struct Notebook {
    #[serde(default)]
    cells: Vec<Cell>,
    #[serde(default)]
    worksheets: Vec<Worksheet>,
    #[serde(default)]
    metadata: About,
}

#[derive(Deserialize)]
struct Worksheet {
    #[serde(default)]
    cells: Vec<Cell>,
}

#[derive(Default, Deserialize)]
struct About {
    #[serde(default)]
    kernelspec: Kernel,
    title: Option<String>,
}

#[derive(Default, Deserialize)]
struct Kernel {
    language: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    #[serde(default, alias = "input")]
    source: Lines,
    #[serde(default)]
    outputs: Vec<Output>,
    /// Level of a heading cell of format 3.
    level: Option<u8>,
}

#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    text: Lines,
    #[serde(default)]
    data: Bundle,
    ename: Option<String>,
    evalue: Option<String>,
    png: Option<IgnoredAny>,
    jpeg: Option<IgnoredAny>,
}

/// One result in several types; the text of the first that is one is read.
#[derive(Default, Deserialize)]
struct Bundle {
    #[serde(default, rename = "text/markdown")]
    markdown: Lines,
    #[serde(default, rename = "text/plain")]
    plain: Lines,
    #[serde(rename = "image/png")]
    png: Option<IgnoredAny>,
    #[serde(rename = "image/jpeg")]
    jpeg: Option<IgnoredAny>,
    #[serde(rename = "image/svg+xml")]
    svg: Option<IgnoredAny>,
}

/// A text, whole or by lines.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    Whole(String),
    Each(Vec<String>),
    Other(IgnoredAny),
}

impl Default for Lines {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

impl Lines {
    fn into_text(self) -> String {
        match self {
            Self::Whole(text) => text,
            Self::Each(lines) => lines.concat(),
            Self::Other(IgnoredAny) => String::new(),
        }
    }
}

/// Reads a notebook into its one document.
pub(super) fn read(part: &Part<'_>) -> Result<Parsed, Fault> {
    let notebook: Notebook = serde_json::from_slice(part.bytes)
        .map_err(|error| Fault::Unparsed { engine: ENGINE, reason: format!("no notebook: {error}") })?;
    let Notebook { cells, worksheets, metadata: about } = notebook;
    let language = about.kernelspec.language.or(about.kernelspec.name).unwrap_or_default();
    let fence_name: String = language.chars().take_while(|letter| letter.is_alphanumeric()).collect();
    let mut extraction = Extraction { engine: ENGINE.into(), ..Extraction::default() };
    let (mut text, mut n_cut) = (String::new(), 0_u64);
    for cell in cells.into_iter().chain(worksheets.into_iter().flat_map(|sheet| sheet.cells)) {
        let source = cell.source.into_text();
        match cell.cell_type.as_str() {
            "code" => fence(&mut text, &fence_name, &source),
            "heading" => {
                text.push_str(&format!("{} {source}\n\n", "#".repeat(cell.level.unwrap_or(1).clamp(1, 6).into())))
            }
            _ if source.trim().is_empty() => {}
            _ => text.push_str(&format!("{}\n\n", source.trim_end())),
        }
        for output in cell.outputs {
            n_cut += u64::from(write_output(&mut text, output, &mut extraction));
        }
    }
    let mut warnings = Vec::new();
    if n_cut > 0 {
        extraction.unread.push(format!("outputs behind their first {OUTPUT_BYTES_MAX} bytes: {n_cut}"));
    }
    if text.is_empty() {
        warnings.push("the notebook has no cells with text".into());
    }
    let mut document = markdown::document(Decoded { text, kind: TextKind::Extracted, warnings }, part.id)?;
    document.origin = part.origin.to_owned();
    document.format = Format::Ipynb;
    document.title = about.title.unwrap_or(document.title);
    // Lines are those of the text that was put together, and of no file.
    document.blocks.iter_mut().for_each(|block| block.anchor.line = None);
    document.sections.iter_mut().for_each(|section| section.anchor.line = None);
    if !language.is_empty() {
        add_value(&mut document.metadata, "language", Value::from(language), Place::Alone);
    }
    Ok(Parsed::one(document, extraction))
}

/// Writes an output, and counts its images; true if it was cut.
fn write_output(text: &mut String, output: Output, extraction: &mut Extraction) -> bool {
    let Output { text: stream, data, ename, evalue, png, jpeg } = output;
    let is_image = [&png, &jpeg, &data.png, &data.jpeg, &data.svg].iter().any(|image| image.is_some());
    extraction.n_images += u32::from(is_image);
    let error = ename.map(|name| format!("{name}: {}", evalue.unwrap_or_default()));
    let candidates = [stream.into_text(), data.markdown.into_text(), data.plain.into_text(), error.unwrap_or_default()];
    let Some(mut output) = candidates.into_iter().find(|text| !text.trim().is_empty()) else { return false };
    let is_cut = output.len() > OUTPUT_BYTES_MAX;
    if is_cut {
        output.truncate(output.floor_char_boundary(OUTPUT_BYTES_MAX));
        output.push_str(" …");
    }
    fence(text, "output", &output);
    is_cut
}

/// Writes code in a fence that nothing in it closes.
fn fence(text: &mut String, name: &str, code: &str) {
    if code.trim().is_empty() {
        return;
    }
    let longest = code.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let mark = "`".repeat(longest.max(2) + 1);
    text.push_str(&format!("{mark}{name}\n{}\n{mark}\n\n", code.trim_end()));
}
