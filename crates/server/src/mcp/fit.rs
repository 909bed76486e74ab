//! Answers within their tokens: what the model asked for and what the operator allows, both hard.

use cento_engine::BudgetTokenizer;

use crate::refusal::Refusal;

/// The tokenizer that answers are counted with.
const TOKENIZER: &str = "o200k";

/// The tokens that an answer may have.
pub(super) struct Cap {
    tokenizer: BudgetTokenizer<'static>,
    pub(super) tokens: usize,
}

impl Cap {
    /// As many tokens as are asked for, or `default`, and never more than `most`.
    pub(super) fn new(asked: Option<usize>, default: usize, most: usize) -> Result<Self, Refusal> {
        let tokenizer = BudgetTokenizer::named(TOKENIZER)?;
        Ok(Self { tokenizer, tokens: asked.unwrap_or(default).min(most) })
    }

    pub(super) fn name(&self) -> &'static str {
        TOKENIZER
    }

    pub(super) fn count(&self, text: &str) -> usize {
        self.tokenizer.count(text)
    }

    pub(super) fn holds(&self, text: &str) -> bool {
        self.count(text) <= self.tokens
    }

    /// The longest beginning of a text, whole tokens of it, of which `answer` makes something that fits; none if not
    /// even the empty one does. An answer grows with its text.
    pub(super) fn longest<'t>(&self, text: &'t str, answer: impl Fn(&str) -> String) -> Option<(&'t str, String)> {
        let whole = answer(text);
        if self.holds(&whole) {
            return Some((text, whole));
        }
        let ends: Vec<usize> =
            std::iter::once(0).chain(self.tokenizer.ends(text)).filter(|end| text.is_char_boundary(*end)).collect();
        let fits = |n: usize| self.holds(&answer(&text[..ends[n]]));
        let (mut fitting, mut beyond) = (0, ends.len());
        while beyond - fitting > 1 {
            let middle = fitting.midpoint(beyond);
            if fits(middle) { fitting = middle } else { beyond = middle }
        }
        let beginning = &text[..ends[fitting]];
        let answer = answer(beginning);
        self.holds(&answer).then_some((beginning, answer))
    }

    /// The refusal of a cap that nothing fits.
    pub(super) fn too_small(&self, parameter: &str) -> Refusal {
        Refusal::value(parameter, format!("{parameter}: nothing fits {} tokens; ask for more", self.tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_that_fits_is_taken() {
        let text = "naïve tides \"rise\" twice\n".repeat(200);
        let answer = |text: &str| serde_json::to_string(&[text]).unwrap();
        let mut before = 0;
        for tokens in [3, 10, 100, 1_000, 1_000_000] {
            let cap = Cap::new(Some(tokens), 1, usize::MAX).unwrap();
            let (taken, made) = cap.longest(&text, answer).unwrap();
            assert!(cap.count(&made) <= tokens && text.starts_with(taken) && made == answer(taken), "{tokens}");
            assert!(taken.len() >= before, "{tokens}");
            before = taken.len();
        }
        assert_eq!(before, text.len());
        assert!(Cap::new(Some(0), 1, 9).unwrap().longest(&text, answer).is_none());
        assert_eq!(Cap::new(None, 7, 5).unwrap().tokens, 5);
    }
}
