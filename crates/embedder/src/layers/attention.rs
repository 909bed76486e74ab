//! Self-attention of packed texts: no token attends beyond its own text.

use candle_core::{CpuStorage, CustomOp1, D, Layout, Result, Shape, Tensor};
use candle_nn::ops::softmax;

use super::values;
use crate::kernels::cpu::Simd;
use crate::kernels::cpu::attention::Attention;
use crate::kernels::cpu::dense::Scratch;
use crate::pack::Spans;
use crate::precision::Precision;

/// Softmax attention with `n_heads` heads, given queries, keys and values of all tokens in one tensor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SelfAttention {
    pub(crate) n_heads: usize,
}

impl SelfAttention {
    /// \[T, 3H\] (a row is `q | k | v`) → \[T, H\].
    pub(crate) fn forward(self, qkv: &Tensor, spans: &Spans) -> Result<Tensor> {
        if qkv.device().is_cpu() {
            return qkv.apply_op1_no_bwd(&CpuAttention { n_heads: self.n_heads, spans });
        }
        self.forward_on_device(qkv, spans)
    }

    /// Text by text, each as one small padded batch of its own.
    fn forward_on_device(self, qkv: &Tensor, spans: &Spans) -> Result<Tensor> {
        let hidden = qkv.dim(1)? / 3;
        let dimensions = hidden / self.n_heads;
        let mut contexts = Vec::with_capacity(spans.len());
        for span in spans.iter() {
            let heads = |part: usize| {
                let rows = qkv.narrow(0, span.start, span.len())?.narrow(1, part * hidden, hidden)?;
                rows.reshape((span.len(), self.n_heads, dimensions))?.transpose(0, 1)?.contiguous() // [A, S, D]
            };
            let scores = (heads(0)?.matmul(&heads(1)?.t()?)? / (dimensions as f64).sqrt())?;
            let context = softmax(&scores, D::Minus1)?.matmul(&heads(2)?)?;
            contexts.push(context.transpose(0, 1)?.reshape((span.len(), hidden))?);
        }
        Tensor::cat(&contexts, 0)
    }
}

struct CpuAttention<'a> {
    n_heads: usize,
    spans: &'a Spans,
}

impl CustomOp1 for CpuAttention<'_> {
    fn name(&self) -> &'static str {
        "self-attention"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (n_tokens, width) = layout.shape().dims2()?;
        let (hidden, qkv, simd) = (width / 3, values(storage, layout)?, Simd::detect());
        let mut out = vec![0.0; n_tokens * hidden];
        let mut scratch = Scratch::new(simd);
        for span in self.spans.iter() {
            let out = &mut out[span.start * hidden..span.end * hidden];
            let qkv = &qkv[span.start * width..span.end * width];
            let scale = 1.0 / ((hidden / self.n_heads) as f32).sqrt();
            let scratch = &mut scratch;
            let precision = Precision::F32;
            Attention { n_heads: self.n_heads, hidden, scale, bias: None, window: None, precision, qkv, out, scratch }
                .run(simd);
        }
        Ok((CpuStorage::F32(out), (n_tokens, hidden).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{assert_close, noise};

    #[test]
    fn both_forms_agree() {
        for (n_heads, dimensions, lengths) in [(1, 4, vec![1]), (2, 16, vec![3, 40, 2]), (3, 32, vec![130, 17])] {
            let (spans, hidden) = (Spans::of_lengths(&lengths), n_heads * dimensions);
            let n_tokens: usize = lengths.iter().sum();
            let qkv = noise(5, n_tokens * 3 * hidden).reshape((n_tokens, 3 * hidden)).unwrap();
            let attention = SelfAttention { n_heads };
            let ours = attention.forward(&qkv, &spans).unwrap();
            assert_close(&ours, &attention.forward_on_device(&qkv, &spans).unwrap(), 1e-5);
        }
    }
}
