//! From token ids to the first hidden rows: the vector of the word, plus that of its place and kind.

use std::sync::OnceLock;

use candle_core::{DType, Error, Result, Tensor};

use super::norm::LayerNorm;
use super::{Rows, Workspace};
use crate::kernels::cpu::gather::Gather;
use crate::kernels::cuda::rows::{self, Picked, Sum};
use crate::kernels::gpu::ends::GpuTables;
use crate::pack::Batch;
use crate::precision::Precision;

/// Word vectors, and a table of what is added to them.
///
/// A place is a position in a text of one kind (`token_type`): row `kind * n_positions + position` of the second table
/// is the position's vector plus the kind's, added once when the model is loaded.
#[derive(Debug)]
pub(crate) struct Embedding {
    form: Form,
    /// Rows of the second table for one kind; 0 where there is no table.
    n_positions: usize,
    positions: Positions,
}

/// The numbering of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Positions {
    /// All have the same place: order enters through attention alone.
    None,
    /// 0, 1, 2, …
    FromZero,
    /// RoBERTa's: tokens that are not padding count from `padding + 1` on; one that is has the place `padding` itself.
    After { padding: u32 },
}

#[derive(Debug)]
enum Form {
    /// In main memory; `on_gpu` is set by the first batch of a GPU.
    Cpu {
        words: Vec<f32>,
        places: Option<Vec<f32>>,
        hidden: usize,
        on_gpu: OnceLock<Option<GpuTables>>,
    },
    Device {
        words: Tensor,
        places: Option<Tensor>,
    },
}

impl Embedding {
    /// From words \[V, H\], positions \[P, H\] and kinds \[C, H\].
    pub(crate) fn new(
        words: &Tensor,
        positions: Option<(&Tensor, Positions)>,
        kinds: Option<&Tensor>,
        precision: Precision,
    ) -> Result<Self> {
        let places = match (positions, kinds) {
            (Some((positions, _)), Some(kinds)) => {
                let of_kind = |kind| positions.broadcast_add(&kinds.get(kind)?);
                Some(Tensor::cat(&(0..kinds.dim(0)?).map(of_kind).collect::<Result<Vec<_>>>()?, 0)?)
            }
            (Some((positions, _)), None) => Some(positions.clone()),
            (None, kinds) => kinds.cloned(),
        };
        let n_positions = match (positions, kinds) {
            (Some((positions, _)), _) => positions.dim(0)?,
            (None, Some(_)) => 1,
            (None, None) => 0,
        };
        let positions = positions.map_or(Positions::None, |(_, positions)| positions);
        let form = if super::lives_on_cpu(words) {
            let values = |table: &Tensor| table.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>();
            let places = places.as_ref().map(values).transpose()?;
            Form::Cpu { words: values(words)?, places, hidden: words.dim(1)?, on_gpu: OnceLock::new() }
        } else {
            Self::for_device(words, places.as_ref(), precision)?
        };
        Ok(Self { form, n_positions, positions })
    }

    fn for_device(words: &Tensor, places: Option<&Tensor>, precision: Precision) -> Result<Form> {
        let dtype = super::dtype(precision);
        Ok(Form::Device {
            words: words.to_dtype(dtype)?,
            places: places.map(|places| places.to_dtype(dtype)).transpose()?,
        })
    }

    /// A batch of T tokens → \[T, H\], normalised if there is a norm.
    ///
    /// # Errors
    /// If an id or a place is not in the tables, which no kernel minds: a tokenizer's template may say any.
    pub(crate) fn forward(&self, batch: &Batch, norm: Option<&LayerNorm>, workspace: &mut Workspace) -> Result<Rows> {
        let places = self.places(batch);
        self.check(batch, &places)?;
        if let Some(rows) = self.by_kernel(batch, &places, norm)? {
            return Ok(rows);
        }
        let mut rows = match self.by_gpu(batch, &places, workspace)? {
            Some(rows) => rows,
            None => {
                let rows = self.look_up(batch, places, workspace)?;
                workspace.begin(rows)?
            }
        };
        if let Some(norm) = norm {
            norm.forward(&mut rows, workspace)?;
        }
        Ok(rows)
    }

    fn check(&self, batch: &Batch, places: &[u32]) -> Result<()> {
        let (n_words, n_places) = match &self.form {
            Form::Cpu { words, places, hidden, .. } => {
                (words.len() / hidden, places.as_ref().map(|places| places.len() / hidden))
            }
            Form::Device { words, places } => (words.dim(0)?, places.as_ref().map(|places| places.dim(0)).transpose()?),
        };
        let beyond = |what: &str, found: u32, n: usize| {
            let way_out = "the tokenizer and the weights are not of one model: pull it again, or take another";
            Err(Error::Msg(format!("a token has the {what} {found}, and the model has {n} of them; {way_out}")))
        };
        match (batch.ids.iter().max(), places.iter().max(), n_places) {
            (Some(&id), ..) if id as usize >= n_words => beyond("id", id, n_words),
            (_, Some(&place), Some(n)) if place as usize >= n => beyond("place", place, n),
            _ => Ok(()),
        }
    }

    /// All of it in one pass, where there is a kernel.
    fn by_kernel(&self, batch: &Batch, places: &[u32], norm: Option<&LayerNorm>) -> Result<Option<Rows>> {
        let Form::Device { words, places: table } = &self.form else { return Ok(None) };
        if !rows::takes(words) {
            return Ok(None);
        }
        let batch = batch.on_device(words.device(), || places.to_vec())?;
        let (ids, places) = (batch.ids()?, batch.places()?);
        let sum = Sum {
            first: Picked { table: words, at: Some(&ids) },
            second: table.as_ref().map(|table| Picked { table, at: Some(&places) }),
            bias: None,
            norm: norm.and_then(LayerNorm::for_kernels),
        };
        Ok(Some(Rows::Device(sum.run()?)))
    }

    /// Gathered on the GPU that rows are to go to, where there is one and the tables fit it.
    fn by_gpu(&self, batch: &Batch, places: &[u32], workspace: &mut Workspace) -> Result<Option<Rows>> {
        let (Form::Cpu { words, places: table, hidden, on_gpu }, Some(gpu)) = (&self.form, workspace.gpu()) else {
            return Ok(None);
        };
        if on_gpu.get().is_none() {
            let tables = GpuTables::new(&gpu, words, table.as_deref(), *hidden)?;
            let _ = on_gpu.set(tables); // of two threads at once the first one's are kept
        }
        let Some(Some(tables)) = on_gpu.get() else { return Ok(None) };
        Ok(Some(Rows::Gpu(tables.gather(&batch.ids, places, workspace.recorder())?)))
    }

    fn look_up(&self, batch: &Batch, places: Vec<u32>, workspace: &mut Workspace) -> Result<Rows> {
        match &self.form {
            Form::Cpu { words, places: table, hidden, .. } => {
                let mut out = workspace.take(batch.ids.len(), *hidden);
                let places = table.as_deref().map(|table| (table, places.as_slice()));
                let (ids, out_values) = (batch.ids.as_slice(), out.values_mut());
                Gather { words, ids, positions: places, constant: None, out: out_values }.run(workspace.simd);
                Ok(Rows::Cpu(out))
            }
            Form::Device { words, places: table } => {
                let device = words.device();
                let rows = words.index_select(&Tensor::new(batch.ids.as_slice(), device)?, 0)?;
                match table {
                    None => Ok(Rows::Device(rows)),
                    Some(table) => {
                        let places = table.index_select(&Tensor::new(places.as_slice(), device)?, 0)?;
                        Ok(Rows::Device((rows + places)?))
                    }
                }
            }
        }
    }

    /// For each token its row in the second table.
    fn places(&self, batch: &Batch) -> Vec<u32> {
        let mut places: Vec<u32> = match self.positions {
            Positions::None => vec![0; batch.ids.len()],
            Positions::FromZero => batch.positions().collect(),
            Positions::After { padding } => {
                let mut places = Vec::with_capacity(batch.ids.len());
                for span in batch.spans.iter() {
                    let mut next = padding;
                    places.extend(batch.ids[span].iter().map(|&id| {
                        next += u32::from(id != padding);
                        if id == padding { padding } else { next }
                    }));
                }
                places
            }
        };
        let n_positions = self.n_positions as u32;
        for (place, &kind) in places.iter_mut().zip(&batch.kinds) {
            *place += u32::from(kind) * n_positions;
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{assert_close, noise, workspace};
    use crate::pack::pack;

    fn batch() -> Batch {
        pack(vec![vec![1, 2, 3], vec![9], vec![0, 4, 5, 6, 7]], 100).remove(0)
    }

    #[test]
    fn both_forms_agree() {
        let words = noise(1, 10 * 8).reshape((10, 8)).unwrap();
        let table = noise(2, 6 * 8).reshape((6, 8)).unwrap();
        let kinds = noise(3, 2 * 8).reshape((2, 8)).unwrap();
        let mut paired = batch();
        paired.kinds = vec![0, 0, 1, 1, 1, 0, 1, 1, 0];
        for positions in [None, Some((&table, Positions::FromZero))] {
            for (kinds, batch) in [(None, &batch()), (Some(&kinds), &batch()), (Some(&kinds), &paired)] {
                let ours = Embedding::new(&words, positions, kinds, Precision::F32).unwrap();
                let Form::Cpu { places, .. } = &ours.form else { panic!("on the CPU") };
                let places = places
                    .as_ref()
                    .map(|places| Tensor::from_slice(places, (places.len() / 8, 8), words.device()).unwrap());
                let form = Embedding::for_device(&words, places.as_ref(), Precision::F32).unwrap();
                let theirs = Embedding { form, ..ours };
                let mut workspace = workspace();
                let expected = theirs.forward(batch, None, &mut workspace).unwrap();
                let ours = Embedding::new(&words, positions, kinds, Precision::F32).unwrap();
                assert_close(&ours.forward(batch, None, &mut workspace).unwrap(), &expected, 0.0);
            }
        }
    }

    #[test]
    fn what_is_in_no_table_is_an_error() {
        let words = noise(1, 9 * 8).reshape((9, 8)).unwrap();
        let positions = noise(2, 4 * 8).reshape((4, 8)).unwrap();
        let refused = |words: &Tensor, positions: Option<&Tensor>| {
            let positions = positions.map(|positions| (positions, Positions::FromZero));
            let embedding = Embedding::new(words, positions, None, Precision::F32).unwrap();
            embedding.forward(&batch(), None, &mut workspace()).unwrap_err().to_string()
        };
        assert!(refused(&words, None).contains("the id 9, and the model has 9"), "ids of the batch are 0 to 9");
        let words = noise(1, 10 * 8).reshape((10, 8)).unwrap();
        assert!(refused(&words, Some(&positions)).contains("the place 4, and the model has 4"), "five tokens");
    }

    #[test]
    fn positions_after_padding_pass_over_it() {
        let words = noise(1, 10).reshape((10, 1)).unwrap();
        let positions = Positions::After { padding: 4 };
        let embedding = Embedding::new(&words, Some((&words, positions)), None, Precision::F32).unwrap();
        // texts are packed longest first: 0 4 5 6 7, 1 2 3, 9
        assert_eq!(embedding.places(&batch()), [5, 4, 6, 7, 8, 5, 6, 7, 5]);
    }
}
