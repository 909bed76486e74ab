//! The slide that a text of a presentation stands on: the parser gives the texts of all slides in one row.
//!
//! A second reading knows the text of each slide. A text is on the first slide, from the last one found on, that has
//! its letters; one that is found nowhere near, a note of the speaker, is on the same slide as the text before it.

use super::package::{Package, TextOf};

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
    let text = |bytes: Option<Vec<u8>>| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    let presentation = text(package.part("ppt/presentation.xml"));
    let relations = text(package.part("ppt/_rels/presentation.xml.rels"));
    let targets: Vec<(&str, &str)> = tags(&relations, "Relationship")
        .filter_map(|tag| Some((attribute(tag, "Id")?, attribute(tag, "Target")?)))
        .collect();
    let listed: Vec<String> = tags(&presentation, "sldId")
        .filter_map(|tag| {
            let id = attribute(tag, "r:id")?;
            let target = targets.iter().find(|target| target.0 == id)?.1;
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

/// The insides of the tags of this name, with or without a namespace.
fn tags<'x>(xml: &'x str, name: &'static str) -> impl Iterator<Item = &'x str> {
    xml.split('<').skip(1).filter_map(move |rest| {
        let inner = rest.split('>').next()?;
        let (tag, attributes) = inner.split_once(char::is_whitespace)?;
        (tag.rsplit(':').next() == Some(name)).then_some(attributes)
    })
}

fn attribute<'x>(attributes: &'x str, name: &str) -> Option<&'x str> {
    let behind = attributes.match_indices(name).find_map(|(at, _)| {
        let rest = attributes[at + name.len()..].trim_start().strip_prefix('=')?.trim_start();
        (at == 0 || attributes[..at].ends_with(char::is_whitespace)).then_some(rest)
    })?;
    let quote = behind.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    behind[1..].split(quote).next()
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
