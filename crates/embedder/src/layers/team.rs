//! Threads that share the dense layers of a text that is alone in its call: each computes, and so reads, a part of the
//! weight.
//!
//! A query is a dozen tokens: one thread would spend nearly all its time on reading the weights of the model once, and
//! the others none. An output depends on its own part of a weight only, so sharing changes no bit.
//!
//! Differs: no pool of tasks. A layer is a few ten microseconds; a member that has nothing to do watches for the next
//! layer for about as long before it sleeps.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{self, JoinHandle};

use parking_lot::{Mutex, MutexGuard};

use super::linear::CpuLinear;
use crate::kernels::cpu::Simd;
use crate::kernels::cpu::dense::{PART_ALIGNMENT, Scratch};

/// Layers of fewer multiply-adds a row are done sooner than they are handed out.
const PRODUCTS_MIN: usize = 1 << 16;
/// Looks at the desk before a member sleeps: about a tenth of a millisecond.
const N_LOOKS: usize = 2_000;

const IDLE: u8 = 0;
const ASKED: u8 = 1;
const LEAVING: u8 = 2;

/// The threads beside the one that calls.
#[derive(Debug)]
pub(crate) struct Team {
    simd: Simd,
    n_members: usize,
    /// Hired at the first layer that is worth it.
    members: Vec<Member>,
    own_part: Vec<f32>,
}

#[derive(Debug)]
struct Member {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

/// Where the caller leaves work and finds it done.
#[derive(Debug)]
struct Desk {
    state: AtomicU8,
    work: Mutex<Work>,
}

/// Some outputs of a layer; the buffers stay from one to the next.
#[derive(Debug, Default)]
struct Work {
    layer: Option<Arc<CpuLinear>>,
    outputs: Range<usize>,
    /// \[T, K\].
    rows: Vec<f32>,
    n_rows: usize,
    /// \[T, outputs\].
    part: Vec<f32>,
}

impl Team {
    /// A team in which `n_threads` compute, the caller among them.
    pub(crate) fn new(simd: Simd, n_threads: usize) -> Self {
        Self { simd, n_members: n_threads.saturating_sub(1), members: Vec::new(), own_part: Vec::new() }
    }

    /// Number of threads a layer is worth.
    fn n_parts(&self, layer: &CpuLinear) -> usize {
        let [n_inputs, n_outputs] = layer.shape();
        if n_inputs * n_outputs < PRODUCTS_MIN {
            1
        } else {
            (self.n_members + 1).min(n_outputs.div_ceil(PART_ALIGNMENT))
        }
    }

    /// Computes the layer, \[T, K\] → \[T, N\], if sharing it is worth the while; says whether.
    pub(crate) fn share(
        &mut self,
        layer: &Arc<CpuLinear>,
        rows: &[f32],
        n_rows: usize,
        out: &mut [f32],
        scratch: &mut Scratch,
    ) -> bool {
        let n_parts = self.n_parts(layer);
        if n_parts < 2 {
            return false;
        }
        while self.members.len() < self.n_members {
            self.members.push(Member::hire(self.simd));
        }
        let n_outputs = layer.shape()[1];
        let width = n_outputs.div_ceil(n_parts).next_multiple_of(PART_ALIGNMENT);
        let mut parts = (0..n_outputs).step_by(width).map(|start| start..n_outputs.min(start + width));
        let own = parts.next().expect("a layer has outputs");
        let asked: Vec<_> = self.members.iter().zip(parts).collect();
        for (member, outputs) in &asked {
            member.ask(layer, outputs.clone(), rows, n_rows);
        }
        self.own_part.resize(n_rows * own.len(), 0.0);
        layer.run(self.simd, own.clone(), rows, n_rows, &mut self.own_part, scratch);
        place(&self.own_part, own, out, n_outputs);
        for (member, outputs) in asked {
            place(&member.answer().part, outputs, out, n_outputs);
        }
        true
    }
}

/// Copies a part, \[T, outputs\], to where it belongs in \[T, N\].
fn place(part: &[f32], outputs: Range<usize>, out: &mut [f32], n_outputs: usize) {
    for (row, part) in out.chunks_exact_mut(n_outputs).zip(part.chunks_exact(outputs.len())) {
        row[outputs.clone()].copy_from_slice(part);
    }
}

impl Member {
    fn hire(simd: Simd) -> Self {
        let desk = Arc::new(Desk { state: AtomicU8::new(IDLE), work: Mutex::default() });
        let own = desk.clone();
        Self { desk, thread: Some(thread::spawn(move || own.serve(simd))) }
    }

    fn ask(&self, layer: &Arc<CpuLinear>, outputs: Range<usize>, rows: &[f32], n_rows: usize) {
        let mut work = self.desk.work.lock();
        work.layer = Some(layer.clone());
        work.part.resize(n_rows * outputs.len(), 0.0);
        work.outputs = outputs;
        work.rows.clear();
        work.rows.extend_from_slice(rows);
        work.n_rows = n_rows;
        drop(work);
        self.call(ASKED);
    }

    fn call(&self, state: u8) {
        self.desk.state.store(state, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// The work asked for, once it is done.
    fn answer(&self) -> MutexGuard<'_, Work> {
        let mut n_looks = 0;
        while self.desk.state.load(Ordering::Acquire) != IDLE {
            n_looks += 1;
            if n_looks < N_LOOKS {
                std::hint::spin_loop();
            } else {
                assert!(!self.thread.as_ref().is_none_or(JoinHandle::is_finished), "a thread of the team has ended");
                thread::yield_now();
            }
        }
        self.desk.work.lock()
    }
}

impl Desk {
    /// The life of a member.
    fn serve(&self, simd: Simd) {
        let mut scratch = Scratch::new(simd);
        let mut n_looks = 0;
        loop {
            match self.state.load(Ordering::Acquire) {
                ASKED => {
                    let mut work = self.work.lock();
                    let Work { layer, outputs, rows, n_rows, part } = &mut *work;
                    if let Some(layer) = layer.take() {
                        layer.run(simd, outputs.clone(), rows, *n_rows, part, &mut scratch);
                    }
                    drop(work);
                    // Whoever asked may have panicked meanwhile, and then says that there is no more to do.
                    let _ = self.state.compare_exchange(ASKED, IDLE, Ordering::Release, Ordering::Relaxed);
                    n_looks = 0;
                }
                LEAVING => return,
                _ if n_looks < N_LOOKS => {
                    n_looks += 1;
                    std::hint::spin_loop();
                }
                _ => thread::park(), // a call that came in between is not lost: it wakes the next one who parks
            }
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.call(LEAVING);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // its panic has been seen by who waited for it
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::linear::{Activation, Linear};
    use crate::layers::tests::noise;
    use crate::layers::{Rows, Workspace};
    use crate::precision::Precision;

    /// The values of one layer by this many threads, as bits.
    fn run(layer: &Linear, rows: &[f32], n_rows: usize, workspace: &mut Workspace) -> Vec<u32> {
        let mut x = workspace.take(n_rows, rows.len() / n_rows);
        x.values_mut().copy_from_slice(rows);
        let out = layer.forward(&Rows::Cpu(x), workspace).unwrap();
        out.to_host().unwrap().iter().map(|value| value.to_bits()).collect()
    }

    #[test]
    fn a_team_of_any_size_computes_the_bits_of_one_thread() {
        let simd = Simd::detect();
        let mut teams: Vec<_> = [2, 3, 7, 40]
            .map(|n_threads| Workspace { team: Some(Team::new(simd, n_threads)), ..Workspace::new(simd) })
            .into();
        let mut alone = Workspace::new(simd);
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            for (n_inputs, n_outputs) in [(256, 768), (400, 170), (1024, 65)] {
                let weight = noise(1, n_outputs * n_inputs).reshape((n_outputs, n_inputs)).unwrap();
                let layer = Linear::new(&weight, Some(&noise(2, n_outputs)), Activation::Gelu, precision).unwrap();
                for n_rows in [1, 12, 70] {
                    let rows = noise(3, n_rows * n_inputs).to_vec1::<f32>().unwrap();
                    let expected = run(&layer, &rows, n_rows, &mut alone);
                    for workspace in &mut teams {
                        assert_eq!(run(&layer, &rows, n_rows, workspace), expected, "{precision} {n_outputs} {n_rows}");
                    }
                }
            }
        }
        for workspace in &teams {
            let team = workspace.team.as_ref().unwrap();
            assert_eq!(team.members.len(), team.n_members, "the layers above were worth sharing");
        }
    }

    #[test]
    fn a_small_layer_is_not_shared() {
        let weight = noise(1, 32 * 32).reshape((32, 32)).unwrap();
        let layer = Linear::new(&weight, None, Activation::None, Precision::F32).unwrap();
        let simd = Simd::detect();
        let mut workspace = Workspace { team: Some(Team::new(simd, 2)), ..Workspace::new(simd) };
        run(&layer, &[0.5; 64], 2, &mut workspace);
        assert!(workspace.team.unwrap().members.is_empty());
    }
}
