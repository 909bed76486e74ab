//! From token ids to the first hidden rows: word vector plus the vector of its position.

use candle_core::{DType, Device, Result, Tensor};

use crate::pack::Batch;

/// Word and position tables. What all tokens share (the type vector of single texts) is added to the positions when loading.
#[derive(Debug)]
pub(crate) enum Embedding {
    Cpu { words: Vec<f32>, positions: Vec<f32>, hidden: usize },
    Device { words: Tensor, positions: Tensor },
}

impl Embedding {
    /// From words \[V, H\], positions \[P, H\] and the type vector \[H\].
    pub(crate) fn new(words: &Tensor, positions: &Tensor, kind: &Tensor) -> Result<Self> {
        let positions = positions.broadcast_add(kind)?;
        if !words.device().is_cpu() {
            return Ok(Self::Device { words: words.clone(), positions });
        }
        let values = |table: &Tensor| table.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>();
        Ok(Self::Cpu { words: values(words)?, positions: values(&positions)?, hidden: words.dim(1)? })
    }

    /// A batch of T tokens → \[T, H\]. Ids and positions are within the tables: checked when the model was loaded.
    pub(crate) fn forward(&self, batch: &Batch) -> Result<Tensor> {
        match self {
            Self::Cpu { words, positions, hidden } => {
                let mut rows = Vec::with_capacity(batch.ids.len() * hidden);
                for (&id, position) in batch.ids.iter().zip(batch.positions()) {
                    let word = &words[id as usize * hidden..][..*hidden];
                    let position = &positions[position as usize * hidden..][..*hidden];
                    rows.extend(word.iter().zip(position).map(|(word, position)| word + position));
                }
                Tensor::from_vec(rows, (batch.ids.len(), *hidden), &Device::Cpu)
            }
            Self::Device { words, positions } => {
                let device = words.device();
                let ids = Tensor::new(batch.ids.as_slice(), device)?;
                let indices = Tensor::from_iter(batch.positions(), device)?;
                words.index_select(&ids, 0)? + positions.index_select(&indices, 0)?
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{assert_close, noise};
    use crate::pack::pack;

    #[test]
    fn both_forms_agree() {
        let words = noise(1, 10 * 8).reshape((10, 8)).unwrap();
        let positions = noise(2, 5 * 8).reshape((5, 8)).unwrap();
        let kind = noise(3, 8);
        let ours = Embedding::new(&words, &positions, &kind).unwrap();
        let theirs = Embedding::Device { words, positions: positions.broadcast_add(&kind).unwrap() };
        let batches = pack(vec![vec![1, 2, 3], vec![9], vec![0, 4, 5, 6, 7]], 100);
        assert_close(&ours.forward(&batches[0]).unwrap(), &theirs.forward(&batches[0]).unwrap(), 0.0);
    }
}
