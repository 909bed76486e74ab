//! The kernels against the CPU's, for every setting that a layer has.

use std::sync::Arc;

use candle_core::{Device, Tensor};

use super::attention::AttentionTile;
use super::launch::Literal;
use super::*;
use crate::kernels::cpu::attention::RelativeBias;
use crate::kernels::cpu::dense::Activation;
use crate::kernels::cpu::gate::Activated;
use crate::kernels::cpu::heads::{Heads, Sight};
use crate::kernels::cpu::{Simd, noise};
use crate::layers::attention::{Order, Rotary, SelfAttention};
use crate::layers::gate::Gate;
use crate::layers::linear::Linear;
use crate::layers::norm::LayerNorm;
use crate::layers::{Rows, Workspace};
use crate::pack::{Batch, pack};
use crate::precision::Precision;

/// The first adapter, as it is and as if it were used by Metal; none where there is none.
fn gpus() -> Vec<Gpu> {
    match open(Some(0)) {
        Ok(gpu) => vec![gpu, Pretence { is_metal: true, ..Pretence::NONE }.during(|| open(Some(0)).unwrap())],
        Err(error) => {
            eprintln!("skipped: {error} (Debian: libvulkan1, mesa-vulkan-drivers)");
            Vec::new()
        }
    }
}

fn tensor(seed: u64, shape: &[usize]) -> Tensor {
    Tensor::from_vec(noise(seed, shape.iter().product()), shape, &Device::Cpu).unwrap()
}

/// The rows of a tensor on the CPU and on a GPU, each with its workspace.
struct Both {
    cpu: Workspace,
    gpu: Workspace,
}

impl Both {
    fn new(gpu: &Gpu) -> Self {
        let simd = Simd::detect();
        Self { cpu: Workspace::new(simd), gpu: Workspace::of_gpu(simd, gpu.clone()) }
    }

    fn rows(&mut self, values: &Tensor) -> [Rows; 2] {
        let (n_rows, width) = values.dims2().unwrap();
        let values = values.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let mut host = || {
            let mut rows = self.cpu.take(n_rows, width);
            rows.values_mut().copy_from_slice(&values);
            Rows::Cpu(rows)
        };
        let (ours, theirs) = (host(), host());
        [ours, self.gpu.begin(theirs).unwrap()]
    }

    #[track_caller]
    fn check(&mut self, what: &str, ours: &Rows, theirs: &Rows) {
        self.gpu.submit().unwrap();
        let (ours, theirs) = (ours.to_host().unwrap(), theirs.to_host().unwrap());
        assert_eq!(ours.len(), theirs.len(), "{what}");
        let difference = ours.iter().zip(theirs.iter()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(difference <= 1e-5, "{what} differs by {difference}");
    }
}

#[test]
fn products_gates_and_norms_agree_with_the_cpu() {
    gpus().iter().for_each(products_gates_and_norms);
}

fn products_gates_and_norms(gpu: &Gpu) {
    let mut both = Both::new(gpu);
    let activations = {
        use Activation::{Gelu, GeluTanh, None, Relu, Silu, Tanh};
        [None, Gelu, GeluTanh, Relu, Silu, Tanh]
    };
    for (n_rows, n_inputs, n_outputs) in [(1, 3, 6), (70, 20, 96), (5, 37, 130)] {
        let (weight, bias) = (tensor(1, &[n_outputs, n_inputs]), tensor(2, &[n_outputs]));
        for (bias, activation) in
            activations.map(|activation| (Some(&bias), activation)).into_iter().chain([(None, Activation::None)])
        {
            let linear = |gpu| Linear::new(&weight, bias, activation, Precision::F32, gpu).unwrap();
            let [x, on_gpu] = both.rows(&tensor(3, &[n_rows, n_inputs]));
            let ours = linear(None).forward(&x, &mut both.cpu).unwrap();
            let theirs = linear(Some(gpu)).forward(&on_gpu, &mut both.gpu).unwrap();
            both.check(&format!("{n_rows} x {n_inputs} x {n_outputs} {activation:?}"), &ours, &theirs);
            for activated in [Activated::First, Activated::Second] {
                let gate = Gate { activation, activated };
                let gated =
                    [gate.forward(&ours, &mut both.cpu).unwrap(), gate.forward(&theirs, &mut both.gpu).unwrap()];
                both.check(&format!("gate {activation:?}"), &gated[0], &gated[1]);
            }
        }
        let shift = tensor(5, &[n_inputs]);
        let scale = tensor(4, &[n_inputs]);
        for (shift, is_rms) in [(Some(&shift), false), (None, false), (None, true)] {
            let norm = |gpu| match is_rms {
                true => LayerNorm::rms(&scale, 1e-6, gpu).unwrap(),
                false => LayerNorm::new(&scale, shift, 1e-12, Precision::F32, gpu).unwrap(),
            };
            let [mut ours, mut theirs] = both.rows(&tensor(6, &[n_rows, n_inputs]));
            let residual = both.cpu.copy(&ours).unwrap();
            norm(None).forward_sum(&mut ours, &residual, &mut both.cpu).unwrap();
            let residual = both.gpu.copy(&theirs).unwrap();
            norm(Some(gpu)).forward_sum(&mut theirs, &residual, &mut both.gpu).unwrap();
            norm(None).forward(&mut ours, &mut both.cpu).unwrap();
            norm(Some(gpu)).forward(&mut theirs, &mut both.gpu).unwrap();
            both.check("norms", &ours, &theirs);
        }
    }
}

#[test]
fn attention_agrees_with_the_cpu() {
    gpus().iter().for_each(attention);
}

fn attention(gpu: &Gpu) {
    let mut both = Both::new(gpu);
    let cases = [(1, 1, 4, vec![1]), (2, 2, 36, vec![40, 3, 2]), (4, 2, 64, vec![70, 17]), (2, 1, 128, vec![33, 5])];
    for (n, n_shared, width, lengths) in cases {
        let heads = Heads { n, n_shared, width };
        let batch: Batch = pack(lengths.iter().map(|&n| vec![0; n]).collect(), 1000).remove(0);
        let n_tokens: usize = lengths.iter().sum();
        let reach = n_tokens - 1;
        let values = noise(6, n * (2 * reach + 1));
        let orders = [
            Order::InRows,
            Order::Rotary(Arc::new(Rotary::new(width, 10_000.0, n_tokens))),
            Order::Rotary(Arc::new(Rotary::new(width / 2, 100.0, n_tokens))),
            Order::Relative(Arc::new(RelativeBias { n_heads: n, reach, values })),
        ];
        for (order, has_norms) in orders.into_iter().zip([true, false, true, false]) {
            for sight in [None, Some(5), Some(40)].into_iter().flat_map(|far| [Sight::around(far), Sight::behind(far)])
            {
                let attention = |gpu| {
                    let norm = |seed| LayerNorm::rms(&tensor(seed, &[width]), 1e-6, gpu).unwrap();
                    let norms = has_norms.then(|| [norm(8), norm(9)]);
                    let (scale, order) = (1.0 / (width as f32).sqrt(), order.clone());
                    SelfAttention { heads, scale, order, sight, norms, precision: Precision::F32 }
                };
                let [ours, theirs] = both.rows(&tensor(5, &[n_tokens, heads.row()]));
                let ours = attention(None).forward(ours, &batch, &mut both.cpu).unwrap();
                let theirs = attention(Some(gpu)).forward(theirs, &batch, &mut both.gpu).unwrap();
                both.check(&format!("{heads:?} {lengths:?} {sight:?}"), &ours, &theirs);
            }
        }
    }
}

#[test]
fn a_tile_fits_a_workgroup_up_to_heads_of_half_a_thousand() {
    for width in 1..=500 {
        let tile = AttentionTile::of(width);
        assert!(tile.n_bytes(width) <= adapter::WORKGROUP_BYTES as usize, "{width}: {tile:?}");
    }
    let sizes = [32, 64, 128, 256].map(AttentionTile::of).map(|tile| (tile.n_queries, tile.n_keys));
    assert_eq!(sizes, [(32, 32), (32, 16), (16, 8), (8, 4)]);
}

#[test]
fn a_number_is_written_as_it_is_read() {
    for number in [1e-12, 0.125, 1.0 / 3.0, -7.0, 1e-38] {
        let written = Literal(number).to_string();
        assert_eq!(written.trim_end_matches('f').parse::<f32>().unwrap().to_bits(), number.to_bits(), "{written}");
    }
}
