//! Self-attention of packed texts: no token attends beyond its own text.
//!
//! Source: Vaswani et al. 2017, eq. 1. Order enters by rotating queries and keys (Su et al. 2021), by a bias that
//! depends on the distance of two tokens (Press et al. 2022, ALiBi; Raffel et al. 2020, buckets), or not at all where
//! positions were added to the word vectors. Local attention: Beltagy et al. 2020. Queries and keys normalised head by
//! head: Henry et al. 2020, Dehghani et al. 2023.

use std::sync::{Arc, OnceLock};

use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::ops::softmax;

use super::norm::LayerNorm;
use super::{Rows, Workspace};
use crate::kernels::cpu::attention::Attention;
pub(crate) use crate::kernels::cpu::attention::RelativeBias;
pub(crate) use crate::kernels::cpu::heads::{Heads, Sight};
use crate::kernels::cpu::rotary::Rotate;
use crate::kernels::cuda::attention;
use crate::kernels::cuda::batch::as_bias;
use crate::kernels::cuda::rotary::rotate;
use crate::kernels::gpu::attention::GpuAttention;
use crate::kernels::gpu::launch::GpuRotary;
use crate::kernels::gpu::{GpuRows, Recorder};
use crate::pack::{Batch, Spans};
use crate::precision::Precision;

/// Softmax attention, given queries, keys and values of all tokens side by side.
#[derive(Debug, Clone)]
pub(crate) struct SelfAttention {
    pub(crate) heads: Heads,
    /// The factor on scores, `1 / √D` in most.
    pub(crate) scale: f32,
    pub(crate) order: Order,
    /// The keys of its text that a token sees.
    pub(crate) sight: Sight,
    /// Of queries and of keys, by head, before they are rotated; \[D\].
    pub(crate) norms: Option<[LayerNorm; 2]>,
    pub(crate) precision: Precision,
}

/// The way a token knows where the others stand. Layers share the tables.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    /// By what was added to its vector.
    InRows,
    Rotary(Arc<Rotary>),
    Relative(Arc<RelativeBias>),
}

/// Cosines and sines of rotary positions: pair i of a head is turned by `position * base^(-2i / width)`.
#[derive(Debug)]
pub(crate) struct Rotary {
    /// \[P, width / 2\].
    cos: Vec<f32>,
    sin: Vec<f32>,
    /// Values of a head that are turned, the first ones; even.
    width: usize,
    /// Both tables where kernels read them.
    on_device: OnceLock<(Tensor, Tensor)>,
    /// Both tables on a GPU by Vulkan or Metal.
    on_gpu: OnceLock<GpuRotary>,
}

impl Rotary {
    /// Tables for `n_positions`. Angles are computed as the reference does, in f32 from a frequency in f32.
    pub(crate) fn new(width: usize, base: f64, n_positions: usize) -> Self {
        Self::slower(width, base, 1.0, n_positions)
    }

    /// The same with every frequency divided by `divisor`.
    pub(crate) fn slower(width: usize, base: f64, divisor: f64, n_positions: usize) -> Self {
        let frequency = |i: usize| 1.0 / (base as f32).powf((2 * i) as f32 / width as f32) / divisor as f32;
        let frequencies: Vec<f32> = (0..width / 2).map(frequency).collect();
        let angles = || (0..n_positions).flat_map(|p| frequencies.iter().map(move |&frequency| p as f32 * frequency));
        let (cos, sin) = (angles().map(f32::cos).collect(), angles().map(f32::sin).collect());
        Self { cos, sin, width, on_device: OnceLock::new(), on_gpu: OnceLock::new() }
    }

    /// Cosines and sines, f32 \[P, width / 2\]; copied there at the first call.
    fn on_device(&self, device: &Device) -> Result<&(Tensor, Tensor)> {
        if self.on_device.get().is_none() {
            let half = self.width / 2;
            let table = |values: &[f32]| Tensor::from_slice(values, (values.len() / half, half), device);
            let _ = self.on_device.set((table(&self.cos)?, table(&self.sin)?)); // another thread's are as good
        }
        Ok(self.on_device.get().expect("set above"))
    }

    /// The tables on a GPU; copied there at the first call.
    fn on_gpu(&self, recorder: &Recorder) -> Result<&GpuRotary> {
        if self.on_gpu.get().is_none() {
            let tables = GpuRotary::new(recorder.gpu(), &self.cos, &self.sin, self.width / 2)?;
            let _ = self.on_gpu.set(tables); // another thread's are as good
        }
        Ok(self.on_gpu.get().expect("set above"))
    }
}

impl SelfAttention {
    /// \[T, (A + 2G) D\] (a row is `q | k | v`) → \[T, A D\].
    pub(crate) fn forward(&self, mut qkv: Rows, batch: &Batch, workspace: &mut Workspace) -> Result<Rows> {
        if let Rows::Device(qkv) = qkv {
            return Ok(Rows::Device(if self.suits_kernels() && attention::takes(&qkv, self.heads.n) {
                self.forward_by_kernels(qkv, batch)?
            } else {
                self.forward_on_device(&qkv, &batch.spans)?
            }));
        }
        if let Rows::Gpu(qkv) = qkv {
            let out = self.forward_on_gpu(&qkv, batch, workspace.recorder())?;
            workspace.give(Rows::Gpu(qkv));
            return Ok(Rows::Gpu(out));
        }
        let Rows::Cpu(rows) = &mut qkv else { unreachable!("handled above") };
        let (n_tokens, stride) = (rows.n_rows(), rows.width());
        let (heads, width) = (self.heads, self.heads.queries());
        if let Some([queries, keys]) = &self.norms {
            LayerNorm::forward_heads([queries, keys], heads, rows.values_mut(), workspace);
        }
        if let Order::Rotary(rotary) = &self.order {
            let positions: Vec<u32> = batch.positions().collect();
            let (cos, sin, positions) = (&rotary.cos, &rotary.sin, positions.as_slice());
            let (half, qkv) = (rotary.width / 2, rows.values_mut());
            Rotate { heads, cos, sin, half, positions, qkv }.run(workspace.simd);
        }
        let bias = match &self.order {
            Order::Relative(bias) => Some(bias.as_ref()),
            _ => None,
        };
        let mut out = workspace.take(n_tokens, width);
        for span in batch.spans.iter() {
            let attention = Attention {
                heads,
                scale: self.scale,
                bias,
                sight: self.sight,
                precision: self.precision,
                qkv: &rows.values()[span.start * stride..span.end * stride],
                out: &mut out.values_mut()[span.start * width..span.end * width],
                scratch: &mut workspace.scratch,
            };
            attention.run(workspace.simd);
        }
        workspace.give(qkv);
        Ok(Rows::Cpu(out))
    }

    /// All texts at once; `qkv` was just computed, and is normalised and turned in place.
    fn forward_on_gpu(&self, qkv: &GpuRows, batch: &Batch, recorder: &mut Recorder) -> Result<GpuRows> {
        if let Some([queries, keys]) = &self.norms {
            LayerNorm::forward_gpu_heads([queries, keys], self.heads, qkv, recorder)?;
        }
        let bias = match &self.order {
            Order::InRows => None,
            Order::Rotary(rotary) => {
                rotary.on_gpu(recorder)?.turn(self.heads, qkv, batch, recorder)?;
                None
            }
            Order::Relative(bias) => Some(bias),
        };
        GpuAttention { heads: self.heads, scale: self.scale, bias, sight: self.sight }.run(qkv, batch, recorder)
    }

    /// True if the kernels of CUDA have all that this needs: a head of keys for each of queries, not normalised, and
    /// sight as far on one side as on the other. Other attention is the tensor library's.
    fn suits_kernels(&self) -> bool {
        self.heads.n == self.heads.n_shared && self.norms.is_none() && self.sight.back == self.sight.ahead
    }

    /// All texts in one launch, or two where there are rotations; `qkv` was just computed, and is turned in place.
    fn forward_by_kernels(&self, qkv: Tensor, batch: &Batch) -> Result<Tensor> {
        let on_device = batch.on_device(qkv.device(), || vec![0; batch.ids.len()])?;
        if let Order::Rotary(rotary) = &self.order {
            let (cos, sin) = rotary.on_device(qkv.device())?;
            rotate(&qkv, self.heads.n, cos, sin, &on_device.positions()?)?;
        }
        let bias = match &self.order {
            Order::Relative(bias) => Some(on_device.bias(bias)?),
            _ => None,
        };
        let tiles = on_device.tiles()?;
        let attention = attention::Attention {
            n_heads: self.heads.n,
            scale: self.scale,
            bias: bias.as_ref().map(as_bias),
            window: (self.sight.back != usize::MAX).then_some(self.sight.back),
            tiles: &tiles,
        };
        attention.run(&qkv)
    }

    /// Text by text, each as one small batch of its own; the oracle of the kernels.
    fn forward_on_device(&self, qkv: &Tensor, spans: &Spans) -> Result<Tensor> {
        let Heads { n, n_shared, width } = self.heads;
        // in main memory the tensor library multiplies no bf16
        let dtype = if qkv.device().is_cpu() { DType::F32 } else { qkv.dtype() };
        let mut contexts = Vec::with_capacity(spans.len());
        for span in spans.iter() {
            let rows = qkv.narrow(0, span.start, span.len())?.to_dtype(dtype)?;
            let heads = |first: usize, n: usize, norm: Option<&LayerNorm>| {
                let heads = rows.narrow(1, first * width, n * width)?.reshape((span.len(), n, width))?;
                let heads = norm.map_or(Ok(heads.clone()), |norm| norm.of_tensor(&heads))?;
                heads.transpose(0, 1)?.contiguous() // [n, S, D]
            };
            let mut queries = heads(0, n, self.norms.as_ref().map(|norms| &norms[0]))?;
            let mut keys = heads(n, n_shared, self.norms.as_ref().map(|norms| &norms[1]))?;
            let values = heads(n + n_shared, n_shared, None)?;
            if let Order::Rotary(rotary) = &self.order {
                (queries, keys) = (rotary.turn(&queries)?, rotary.turn(&keys)?);
            }
            let (keys, values) = (self.for_each_query(&keys)?, self.for_each_query(&values)?);
            let mut scores = (queries.matmul(&keys.t()?)?.to_dtype(DType::F32)? * f64::from(self.scale))?;
            if let Some(bias) = self.bias_of(span.len(), qkv.device())? {
                scores = scores.broadcast_add(&bias)?;
            }
            let context = softmax(&scores, D::Minus1)?.to_dtype(dtype)?.matmul(&values)?;
            contexts.push(context.transpose(0, 1)?.reshape((span.len(), n * width))?.to_dtype(qkv.dtype())?);
        }
        Tensor::cat(&contexts, 0)
    }

    /// Heads of keys or values, \[G, S, D\], each as often as queries share it: \[A, S, D\].
    fn for_each_query(&self, shared: &Tensor) -> Result<Tensor> {
        let Heads { n, n_shared, width } = self.heads;
        if n == n_shared {
            return Ok(shared.clone());
        }
        let n_tokens = shared.dim(1)?;
        let repeated = shared.unsqueeze(1)?.broadcast_as((n_shared, self.heads.n_each(), n_tokens, width))?;
        repeated.contiguous()?.reshape((n, n_tokens, width))
    }

    /// The bias on the scores of a text of S tokens: \[A or 1, S, S\], or nothing.
    fn bias_of(&self, n_tokens: usize, device: &Device) -> Result<Option<Tensor>> {
        let (bias, n_heads) = match &self.order {
            Order::Relative(bias) => (Some(bias), self.heads.n),
            _ => (None, 1),
        };
        if bias.is_none() && self.sight == Sight::around(None) {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(n_heads * n_tokens * n_tokens);
        for head in 0..n_heads {
            for query in 0..n_tokens {
                let seen = self.sight.keys(query, n_tokens);
                let of_key = |key: usize| match bias {
                    _ if !seen.contains(&key) => f32::NEG_INFINITY,
                    None => 0.0,
                    Some(bias) => bias.values[head * (2 * bias.reach + 1) + bias.reach + key - query],
                };
                values.extend((0..n_tokens).map(of_key));
            }
        }
        Tensor::from_vec(values, (n_heads, n_tokens, n_tokens), device).map(Some)
    }
}

impl Rotary {
    /// \[A, S, D\] → the same, turned by the positions 0, 1, …, S - 1.
    fn turn(&self, x: &Tensor) -> Result<Tensor> {
        let (_, n_tokens, dimensions) = x.dims3()?;
        let half = self.width / 2;
        let table = |values: &[f32]| {
            Tensor::from_slice(&values[..n_tokens * half], (1, n_tokens, half), x.device())?.to_dtype(x.dtype())
        };
        let (cos, sin) = (table(&self.cos)?, table(&self.sin)?);
        let (first, second) = (x.narrow(2, 0, half)?, x.narrow(2, half, half)?);
        let turned = [
            (first.broadcast_mul(&cos)? - second.broadcast_mul(&sin)?)?,
            (second.broadcast_mul(&cos)? + first.broadcast_mul(&sin)?)?,
            x.narrow(2, self.width, dimensions - self.width)?,
        ];
        Tensor::cat(&turned[..if dimensions > self.width { 3 } else { 2 }], 2)?.contiguous()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{assert_close, both, noise, workspace};
    use crate::pack::pack;

    #[test]
    fn both_forms_agree() {
        let mut workspace = workspace();
        let cases =
            [(1, 1, 4, vec![1]), (2, 2, 16, vec![40, 3, 2]), (3, 3, 32, vec![130, 17]), (6, 2, 12, vec![70, 5])];
        for (n, n_shared, width, lengths) in cases {
            let heads = Heads { n, n_shared, width };
            let batch = pack(lengths.iter().map(|&n| vec![0; n]).collect(), 1000).remove(0);
            let n_tokens: usize = lengths.iter().sum();
            let reach = n_tokens - 1;
            let values = noise(6, n * (2 * reach + 1)).to_vec1().unwrap();
            let orders = [
                Order::InRows,
                Order::Rotary(Arc::new(Rotary::new(width, 10_000.0, n_tokens))),
                Order::Rotary(Arc::new(Rotary::new(width / 2, 100.0, n_tokens))),
                Order::Relative(Arc::new(RelativeBias { n_heads: n, reach, values })),
            ];
            for order in orders {
                for sight in [None, Some(5)].into_iter().flat_map(|far| [Sight::around(far), Sight::behind(far)]) {
                    let qkv = noise(5, n_tokens * heads.row()).reshape((n_tokens, heads.row())).unwrap();
                    let (ours, theirs) = both(&qkv, &mut workspace);
                    let scale = 1.0 / (width as f32).sqrt();
                    let (norms, precision) = (None, Precision::F32);
                    let attention = SelfAttention { heads, scale, order: order.clone(), sight, norms, precision };
                    let ours = attention.forward(ours, &batch, &mut workspace).unwrap();
                    let theirs = attention.forward(theirs, &batch, &mut workspace).unwrap();
                    assert_close(&ours, &theirs, 1e-5);
                }
            }
        }
    }
}
