//! The encoder itself: embedding, then layers of self-attention and a feed-forward network, each with its residual and
//! norm.
//!
//! What distinguishes one architecture from another is data here: where norms stand, how order enters, whether the
//! network is gated, how far a token sees. An architecture's own file reads `config.json` and names tensors; there is
//! one [`Transformer::forward`]. A table of vectors is an encoder without layers.
//!
//! Shapes: T tokens of all texts, packed, H hidden, F inner; every hidden value is \[T, H\].
//! Cost: per token 3H² + H² + 2HF multiply-adds a layer (fewer where heads share keys and values), and 2 S H more in
//! attention over a text of S tokens.

use candle_core::Result;

use crate::encoder::stop::{Stop, check};
use crate::layers::attention::{SelfAttention, Sight};
use crate::layers::embedding::Embedding;
use crate::layers::gate::Gate;
use crate::layers::linear::Linear;
use crate::layers::norm::LayerNorm;
use crate::layers::{Rows, Workspace};
use crate::pack::Batch;

/// An encoder with its weights.
#[derive(Debug)]
pub(crate) struct Transformer {
    pub(crate) embedding: Embedding,
    pub(crate) embedding_norm: Option<LayerNorm>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) final_norm: Option<LayerNorm>,
}

/// Attention, then the network.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) norms: Norms,
    /// H → (A + 2G) D, 3H in most: queries, keys and values side by side.
    pub(crate) qkv: Linear,
    pub(crate) attention: SelfAttention,
    /// A D → H, H → H in most.
    pub(crate) attention_out: Linear,
    /// H → F, or H → 2F where there is a gate.
    pub(crate) inner: Linear,
    pub(crate) gate: Option<Gate>,
    /// F → H.
    pub(crate) outer: Linear,
}

/// Where a layer normalises.
#[derive(Debug)]
pub(crate) enum Norms {
    /// After each residual is added (BERT): `norm(x + f(x))`.
    Post { attention: LayerNorm, outer: LayerNorm },
    /// Before each part (ModernBERT): `x + f(norm(x))`; the first layer's attention may go without. With norms after
    /// each part, too (Gemma): `x + after(f(norm(x)))`.
    Pre { attention: Option<LayerNorm>, inner: LayerNorm, after: Option<After> },
}

/// Norms of what a layer's parts give, before it is added.
#[derive(Debug)]
pub(crate) struct After {
    pub(crate) attention: LayerNorm,
    pub(crate) outer: LayerNorm,
}

impl Transformer {
    /// T tokens → \[T, H\].
    pub(crate) fn forward(
        &self,
        batch: &Batch,
        workspace: &mut Workspace,
        stop: Stop<'_>,
    ) -> crate::error::Result<Rows> {
        let mut hidden = self.embedding.forward(batch, self.embedding_norm.as_ref(), workspace)?;
        for layer in &self.layers {
            check(stop)?;
            hidden = match &layer.norms {
                Norms::Post { attention, outer } => layer.forward_post(hidden, attention, outer, batch, workspace)?,
                Norms::Pre { attention, inner, after } => {
                    layer.forward_pre(hidden, (attention.as_ref(), inner, after.as_ref()), batch, workspace)?
                }
            };
            workspace.submit()?;
        }
        if let Some(norm) = &self.final_norm {
            norm.forward(&mut hidden, workspace)?;
        }
        workspace.submit()?;
        Ok(hidden)
    }

    /// The widest row that a token has on its way.
    pub(crate) fn widest_row(&self) -> usize {
        let of_layer = |layer: &Layer| {
            [&layer.qkv, &layer.attention_out, &layer.inner, &layer.outer].map(Linear::n_outputs).into_iter().max()
        };
        self.layers.iter().filter_map(of_layer).max().unwrap_or(1)
    }

    /// True if a token sees no other: there are no layers.
    pub(crate) fn is_table(&self) -> bool {
        self.layers.is_empty()
    }

    /// True if some tokens do not see what follows them.
    pub(crate) fn is_causal(&self) -> bool {
        self.layers.iter().any(|layer| layer.attention.sight.is_causal())
    }

    /// Operations for a text of that many tokens, a multiply-add counted as two.
    pub(crate) fn flops(&self, n_tokens: usize) -> u64 {
        let of_layer = |layer: &Layer| {
            let dense = [&layer.qkv, &layer.attention_out, &layer.inner, &layer.outer].map(Linear::n_products);
            let sight @ Sight { back, ahead } = layer.attention.sight;
            let n_seen = if sight.is_causal() { n_tokens.div_ceil(2) } else { n_tokens }; // half of it on average
            let n_keys = n_seen.min(back.saturating_add(ahead).saturating_add(1));
            let attention = 2 * n_keys * layer.attention_out.n_inputs();
            2 * (n_tokens * (dense.iter().sum::<usize>() + attention)) as u64
        };
        self.layers.iter().map(of_layer).sum()
    }
}

impl Layer {
    fn forward_post(
        &self,
        x: Rows,
        attention_norm: &LayerNorm,
        outer_norm: &LayerNorm,
        batch: &Batch,
        workspace: &mut Workspace,
    ) -> Result<Rows> {
        let mut hidden = self.attend(&x, batch, workspace)?;
        attention_norm.forward_sum(&mut hidden, &x, workspace)?;
        workspace.give(x);
        let mut out = self.feed_forward(&hidden, workspace)?;
        outer_norm.forward_sum(&mut out, &hidden, workspace)?;
        workspace.give(hidden);
        Ok(out)
    }

    fn forward_pre(
        &self,
        mut x: Rows,
        (attention_norm, inner_norm, after): (Option<&LayerNorm>, &LayerNorm, Option<&After>),
        batch: &Batch,
        workspace: &mut Workspace,
    ) -> Result<Rows> {
        let mut attended = match attention_norm {
            None => self.attend(&x, batch, workspace)?,
            Some(norm) => {
                let normed = normed(&x, norm, workspace)?;
                let attended = self.attend(&normed, batch, workspace)?;
                workspace.give(normed);
                attended
            }
        };
        if let Some(after) = after {
            after.attention.forward(&mut attended, workspace)?;
        }
        x.add(&attended, workspace)?;
        workspace.give(attended);
        let normed = normed(&x, inner_norm, workspace)?;
        let mut out = self.feed_forward(&normed, workspace)?;
        workspace.give(normed);
        if let Some(after) = after {
            after.outer.forward(&mut out, workspace)?;
        }
        x.add(&out, workspace)?;
        workspace.give(out);
        Ok(x)
    }

    fn attend(&self, x: &Rows, batch: &Batch, workspace: &mut Workspace) -> Result<Rows> {
        let qkv = self.qkv.forward(x, workspace)?; // [T, 3H]
        let context = self.attention.forward(qkv, batch, workspace)?;
        let out = self.attention_out.forward(&context, workspace)?;
        workspace.give(context);
        Ok(out)
    }

    fn feed_forward(&self, x: &Rows, workspace: &mut Workspace) -> Result<Rows> {
        let mut inner = self.inner.forward(x, workspace)?; // [T, F] or [T, 2F]
        if let Some(gate) = self.gate {
            let gated = gate.forward(&inner, workspace)?;
            workspace.give(std::mem::replace(&mut inner, gated));
        }
        let out = self.outer.forward(&inner, workspace)?;
        workspace.give(inner);
        Ok(out)
    }
}

/// A normalised copy: the residual needs the rows as they are.
fn normed(x: &Rows, norm: &LayerNorm, workspace: &mut Workspace) -> Result<Rows> {
    let mut copy = workspace.copy(x)?;
    norm.forward(&mut copy, workspace)?;
    Ok(copy)
}
