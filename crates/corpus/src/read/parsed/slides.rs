//! The slide that a text of a presentation stands on: the parser gives the texts of all slides in one row.
//!
//! A second reading knows the text of each slide. A text is on the first slide, from the last one found on, that has
//! its letters; one that is found nowhere near, a note of the speaker, is on the same slide as the text before it.

use std::collections::HashMap;

use super::package::{Package, TextOf, elements};

/// A text of fewer bytes is looked for on the open slide and the next one with text alone: it may stand on many.
const SHORT_BYTES: usize = 8;

/// Slides ahead that a text is looked for on.
const SLIDES_AHEAD: usize = 16;

/// The letters and digits of all slides, in the order of the presentation.
pub(super) struct Slides {
    letters: String,
    /// Where each slide ends in the letters.
    ends: Vec<usize>,
    /// Where the next text is looked for.
    at: usize,
    /// The open slide, from 0.
    slide: usize,
}

impl Slides {
    pub(super) fn of(package: &mut Package<'_>) -> Self {
        let (mut letters, mut ends) = (String::new(), Vec::new());
        for name in order(package) {
            letters.push_str(&letters_of(&package.text(&name, TextOf::Runs)));
            ends.push(letters.len());
        }
        Self { letters, ends, at: 0, slide: 0 }
    }

    /// The number of slides.
    pub(super) fn n_slides(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The slide of the next text, from 1.
    pub(super) fn page_of(&mut self, text: &str) -> u32 {
        let wanted = letters_of(text);
        let behind = self.ends.get(self.slide).copied().unwrap_or_default();
        let next = || self.ends.iter().copied().find(|end| *end > behind);
        let far = || self.ends.get(self.slide + SLIDES_AHEAD).copied();
        let ahead = if wanted.len() < SHORT_BYTES { next() } else { far() };
        if let Some(end) = ahead.or(self.ends.last().copied()) {
            let start = if self.slide == 0 { 0 } else { self.ends[self.slide - 1] };
            let found = [self.at, start].into_iter().filter(|from| *from <= end).find_map(|from| {
                (!wanted.is_empty()).then(|| self.letters[from..end].find(&wanted)).flatten().map(|at| from + at)
            });
            if let Some(at) = found {
                self.at = at + wanted.len();
                self.slide = self.ends.partition_point(|&end| end <= at);
            }
        }
        self.slide as u32 + 1
    }
}

fn letters_of(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).collect()
}

/// The parts of the slides in the order of the presentation; by their numbers where it does not say.
fn order(package: &mut Package<'_>) -> Vec<String> {
    let presentation = package.part("ppt/presentation.xml").unwrap_or_default();
    let relations = package.part("ppt/_rels/presentation.xml.rels").unwrap_or_default();
    let mut targets: HashMap<String, String> = elements(&relations, "Relationship")
        .into_iter()
        .filter_map(|mut relation| Some((relation.remove("Id")?, relation.remove("Target")?)))
        .collect();
    let listed: Vec<String> = elements(&presentation, "sldId")
        .iter()
        .filter_map(|slide| {
            let target = targets.remove(slide.get("r:id")?)?;
            Some(format!("ppt/{}", target.trim_start_matches("/ppt/")))
        })
        .collect();
    if !listed.is_empty() {
        return listed;
    }
    let number = |name: &str| name.strip_prefix("ppt/slides/slide")?.strip_suffix(".xml")?.parse::<u32>().ok();
    let mut numbered: Vec<(u32, String)> =
        package.names().into_iter().filter_map(|name| Some((number(&name)?, name))).collect();
    numbered.sort();
    numbered.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_on_the_next_slide_that_has_them() {
        let slides = ["Agenda: tides, moons", "Tides The tide rises twice", "", "Moons The tide of a moon Agenda"];
        let (mut letters, mut ends) = (String::new(), Vec::new());
        for slide in slides {
            letters.push_str(&letters_of(slide));
            ends.push(letters.len());
        }
        let mut slides = Slides { letters, ends, at: 0, slide: 0 };
        let pages: Vec<u32> =
            ["Agenda:", "tides, moons", "Tides", "a note of the speaker", "The tide rises", "Moons", "Agenda"]
                .into_iter()
                .map(|text| slides.page_of(text))
                .collect();
        assert_eq!(pages, [1, 1, 2, 2, 2, 4, 4]);
    }
}
