//! Texts of many lengths become batches without padding: tokens one after another, and where each text begins.
//!
//! Texts are taken longest first, so that a batch holds texts of like length and the last batches to run are the small
//! ones.

use std::ops::Range;
use std::sync::OnceLock;

use candle_core::Device;

use crate::kernels::cuda::batch::OnDevice;

/// Where each text of a batch lies among its tokens; no span is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spans {
    /// One more than there are texts, ascending from 0.
    bounds: Vec<usize>,
}

impl Spans {
    pub(crate) fn of_lengths(lengths: &[usize]) -> Self {
        let mut bounds = vec![0];
        for &length in lengths {
            assert!(length > 0, "a text has at least its special tokens");
            bounds.push(bounds[bounds.len() - 1] + length);
        }
        Self { bounds }
    }

    /// B, the number of texts.
    pub(crate) fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<usize>> {
        self.bounds.windows(2).map(|pair| pair[0]..pair[1])
    }
}

/// Texts the encoder computes in one go.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Token ids of all texts, \[T\].
    pub(crate) ids: Vec<u32>,
    /// For each token the kind of its text (`token_type`), \[T\]; empty where all are of kind 0.
    pub(crate) kinds: Vec<u8>,
    pub(crate) spans: Spans,
    /// For each text its position among the inputs.
    pub(crate) inputs: Vec<usize>,
    /// True if it is the only one of its call, so that other threads have no work of their own.
    pub(crate) is_alone: bool,
    /// Data that kernels of a device read, once they were asked for it.
    pub(crate) on_device: OnceLock<OnDevice>,
}

impl Batch {
    /// Texts one after another, each with its position among the inputs.
    pub(crate) fn new(texts: impl IntoIterator<Item = (usize, Vec<u32>)>) -> Self {
        let (inputs, texts): (Vec<usize>, Vec<Vec<u32>>) = texts.into_iter().unzip();
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
        let spans = Spans::of_lengths(&lengths);
        let ids = texts.concat();
        Self { ids, kinds: Vec::new(), spans, inputs, is_alone: false, on_device: OnceLock::new() }
    }

    /// The first and the second half of the texts, of which there are at least two.
    pub(crate) fn halves(&self) -> [Self; 2] {
        let texts = self.inputs.iter().zip(self.spans.iter());
        let mut texts = texts.map(|(&input, span)| (input, self.ids[span.clone()].to_vec(), span));
        let half = |n: usize, texts: &mut dyn Iterator<Item = (usize, Vec<u32>, Range<usize>)>| {
            let (mut kept, mut kinds) = (Vec::new(), Vec::new());
            for (input, ids, span) in texts.take(n) {
                kinds.extend_from_slice(self.kinds.get(span).unwrap_or_default());
                kept.push((input, ids));
            }
            Self { kinds, ..Self::new(kept) }
        };
        let n_first = self.inputs.len() / 2;
        [half(n_first, &mut texts), half(self.inputs.len() - n_first, &mut texts)]
    }

    /// The batch as kernels read it; copied there at the first call. `places` is asked for then: see [`OnDevice::new`].
    pub(crate) fn on_device(
        &self,
        device: &Device,
        places: impl FnOnce() -> Vec<u32>,
    ) -> candle_core::Result<&OnDevice> {
        if self.on_device.get().is_none() {
            let _ = self.on_device.set(OnDevice::new(self, &places(), device)?); // another thread's is as good
        }
        Ok(self.on_device.get().expect("set above"))
    }

    /// For each token its place in its text, from 0.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u32> {
        self.spans.iter().flat_map(|span| 0..span.len() as u32)
    }
}

/// Packs texts, longest first (equal lengths in input order), into batches of at most `budget` tokens; a text longer
/// than that gets a batch of its own.
pub(crate) fn pack(texts: Vec<Vec<u32>>, budget: usize) -> Vec<Batch> {
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|&input| std::cmp::Reverse(texts[input].len())); // stable
    let mut batches = Vec::new();
    let mut rest = order.as_slice();
    while !rest.is_empty() {
        let mut n_tokens = 0;
        let fitting = rest.iter().take_while(|&&input| {
            n_tokens += texts[input].len();
            n_tokens <= budget
        });
        let (inputs, after) = rest.split_at(fitting.count().max(1));
        rest = after;
        let lengths: Vec<usize> = inputs.iter().map(|&input| texts[input].len()).collect();
        let ids = inputs.iter().flat_map(|&input| texts[input].iter().copied()).collect();
        let (spans, inputs) = (Spans::of_lengths(&lengths), inputs.to_vec());
        let is_alone = lengths.len() == texts.len();
        batches.push(Batch { ids, kinds: Vec::new(), spans, inputs, is_alone, on_device: OnceLock::new() });
    }
    batches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn longest_first_within_the_budget() {
        let texts = vec![vec![1; 2], vec![2; 5], vec![3; 3], vec![4; 2], vec![5; 9]];
        let inputs: Vec<_> = pack(texts, 7).into_iter().map(|batch| batch.inputs).collect();
        assert_eq!(inputs, [vec![4], vec![1], vec![2, 0, 3]]);
    }

    #[test]
    fn a_batch_knows_whether_it_is_alone() {
        let alone = |texts| pack(texts, 4).iter().map(|batch| batch.is_alone).collect::<Vec<_>>();
        assert_eq!(alone(vec![vec![1; 9]]), [true]);
        assert_eq!(alone(vec![vec![1; 2], vec![2; 2]]), [true]);
        assert_eq!(alone(vec![vec![1; 3], vec![2; 2]]), [false, false]);
    }

    #[test]
    fn positions_start_anew_with_each_text() {
        let batches = pack(vec![vec![7; 3], vec![7; 2]], 10);
        assert_eq!(batches[0].positions().collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
    }

    #[test]
    fn halves_have_all_texts_in_order() {
        let mut batch = Batch::new([(4, vec![1, 2]), (0, vec![3]), (7, vec![4, 5, 6])]);
        batch.kinds = vec![0, 1, 0, 1, 1, 0];
        let [first, second] = batch.halves();
        assert_eq!((first.ids, first.kinds, first.inputs), (vec![1, 2], vec![0, 1], vec![4]));
        assert_eq!((second.ids, second.kinds, second.inputs), (vec![3, 4, 5, 6], vec![0, 1, 1, 0], vec![0, 7]));
        assert_eq!(second.spans, Spans::of_lengths(&[1, 3]));
    }

    proptest! {
        #[test]
        fn every_text_is_in_one_batch_unchanged(lengths in prop::collection::vec(1usize..20, 0..40), budget in 1usize..64) {
            let texts: Vec<Vec<u32>> =
                lengths.iter().zip(0..).map(|(&length, i)| (0..length as u32).map(|t| i * 100 + t).collect()).collect();
            let mut seen = vec![false; texts.len()];
            for batch in pack(texts.clone(), budget) {
                prop_assert!(batch.ids.len() <= budget || batch.inputs.len() == 1);
                prop_assert_eq!(batch.spans.len(), batch.inputs.len());
                for (span, &input) in batch.spans.iter().zip(&batch.inputs) {
                    prop_assert_eq!(&batch.ids[span], texts[input].as_slice());
                    prop_assert!(!std::mem::replace(&mut seen[input], true));
                }
            }
            prop_assert!(seen.iter().all(|&seen| seen));
        }
    }
}
