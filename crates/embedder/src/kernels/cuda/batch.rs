//! A batch as the kernels read it: all its numbers in one copy to the device.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor};
use parking_lot::Mutex;

use super::attention::{Bias, TILE_WORDS, tiles};
use super::transfer::upload;
use crate::kernels::cpu::attention::RelativeBias;
use crate::pack::Batch;

/// Numbers of a batch of T tokens in device memory; u32.
#[derive(Debug)]
pub(crate) struct OnDevice {
    /// Ids, places and positions \[T\] each, then tiles.
    words: Tensor,
    n_tokens: usize,
    /// Of the longest text.
    n_tokens_max: usize,
    /// The part of each bias that this batch needs, f32 \[heads, 2 * reach + 1\] for the reach of its longest text.
    biases: Mutex<Vec<(Arc<RelativeBias>, Tensor)>>,
}

impl OnDevice {
    /// `places` has for each token the row of what is added to its word's vector.
    pub(crate) fn new(batch: &Batch, places: &[u32], device: &Device) -> Result<Self> {
        let n_tokens = batch.ids.len();
        assert_eq!(places.len(), n_tokens, "a place for each token");
        let mut words = Vec::with_capacity(4 * n_tokens);
        words.extend_from_slice(&batch.ids);
        words.extend_from_slice(places);
        words.extend(batch.positions());
        words.extend(tiles(&batch.spans));
        let n_tokens_max = batch.spans.iter().map(|span| span.len()).max().unwrap_or(0);
        Ok(Self { words: upload(&words, device)?, n_tokens, n_tokens_max, biases: Mutex::default() })
    }

    /// \[T\].
    pub(crate) fn ids(&self) -> Result<Tensor> {
        self.words.narrow(0, 0, self.n_tokens)
    }

    /// \[T\].
    pub(crate) fn places(&self) -> Result<Tensor> {
        self.words.narrow(0, self.n_tokens, self.n_tokens)
    }

    /// \[T\]: places in the text, from 0.
    pub(crate) fn positions(&self) -> Result<Tensor> {
        self.words.narrow(0, 2 * self.n_tokens, self.n_tokens)
    }

    /// Tiles attention divides its work by.
    pub(crate) fn tiles(&self) -> Result<Tensor> {
        let n_words = self.words.dim(0)? - 3 * self.n_tokens;
        self.words.narrow(0, 3 * self.n_tokens, n_words)?.reshape((n_words / TILE_WORDS, TILE_WORDS))
    }

    /// Values a bias adds within texts as long as those of this batch, and its reach; copied once for all layers that
    /// share it.
    pub(crate) fn bias(&self, bias: &Arc<RelativeBias>) -> Result<(Tensor, usize)> {
        let mut known = self.biases.lock();
        let reach = self.n_tokens_max.saturating_sub(1);
        if let Some((_, values)) = known.iter().find(|(of, _)| Arc::ptr_eq(of, bias)) {
            return Ok((values.clone(), reach));
        }
        let (stride, width) = (2 * bias.reach + 1, 2 * reach + 1);
        let of_head = |head: usize| &bias.values[head * stride + bias.reach - reach..][..width];
        let values: Vec<f32> = (0..bias.n_heads).flat_map(of_head).copied().collect();
        let values = Tensor::from_vec(values, (bias.n_heads, width), self.words.device())?;
        known.push((bias.clone(), values.clone()));
        Ok((values, reach))
    }
}

/// For the kernels: [`Bias`] of a tensor and its reach.
pub(crate) fn as_bias((values, reach): &(Tensor, usize)) -> Bias<'_> {
    Bias { values, reach: *reach }
}
