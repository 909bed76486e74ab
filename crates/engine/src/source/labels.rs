//! Labels: the top heading above every chunk of a collection.

use std::collections::HashMap;

use cento_collection::keep::generation::Generation;

use crate::error::Result;
use crate::source::chunks::{heading_path, section_heading};
use crate::source::refs::Chunks;
use crate::source::seam::Labelled;

pub(super) fn labels(generation: &Generation) -> Result<Vec<Labelled>> {
    let mut labels: Vec<Labelled> = Vec::new();
    for (number, segment) in generation.segments.iter().enumerate() {
        for document in segment.live_documents() {
            let record = segment.document(document)?;
            let title = segment.documents.text(record.title)?;
            let mut of_section: HashMap<u32, String> = HashMap::new();
            let mut last: Option<(u32, u32)> = None; // section, and its first row
            let run = |section: &u32, rows, of_section: &HashMap<u32, String>| Labelled {
                document: Chunks::new(number, record.rows()),
                chunks: Chunks::new(number, rows),
                heading: of_section.get(section).cloned().unwrap_or_default(),
            };
            for row in record.rows() {
                let section = segment.chunks.record(row as usize)?.section;
                if let Some((before, start)) = last {
                    if before == section {
                        continue;
                    }
                    labels.push(run(&before, start..row, &of_section));
                }
                last = Some((section, row));
                if !of_section.contains_key(&section) {
                    let path = heading_path(segment, &record, section)?;
                    of_section.insert(section, section_heading(&path, title).to_owned());
                }
            }
            if let Some((section, start)) = last {
                labels.push(run(&section, start..record.rows().end, &of_section));
            }
        }
    }
    Ok(labels)
}
