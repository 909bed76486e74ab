//! Threads that share the dense layers of a text that is alone in its call: each computes, and so reads, a part of the
//! weight.
//!
//! A query is a dozen tokens: one thread would spend nearly all its time on reading the weights of the model once, and
//! the others none. An output depends on its own part of a weight only, so sharing changes no bit.
//!
//! Differs: no pool of tasks. A layer is a few ten microseconds; a member that has nothing to do watches for the next
//! layer for about as long before it sleeps. Nobody waits for a thread that the system does not let run: only members
//! that watch are asked, and what a member has not begun when its caller is through is taken back.

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

/// The member looks at its desk.
const WATCHING: u8 = 0;
/// Work lies on the desk that the member has not begun.
const ASKED: u8 = 1;
/// The member computes.
const BUSY: u8 = 2;
/// The member sleeps.
const ASLEEP: u8 = 3;
/// The member was called, and does not watch yet.
const CALLED: u8 = 4;
/// The member is to end.
const LEAVING: u8 = 5;

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

    /// Calls members that sleep, so that they watch when a layer comes.
    pub(crate) fn wake(&self) {
        for member in &self.members {
            member.wake();
        }
    }

    /// Computes the layer, \[T, K\] → \[T, N\], if sharing it is worth the while and a member watches; says whether.
    pub(crate) fn share(
        &mut self,
        layer: &Arc<CpuLinear>,
        rows: &[f32],
        n_rows: usize,
        out: &mut [f32],
        scratch: &mut Scratch,
    ) -> bool {
        let [n_inputs, n_outputs] = layer.shape();
        if n_inputs * n_outputs < PRODUCTS_MIN {
            return false;
        }
        while self.members.len() < self.n_members {
            self.members.push(Member::hire(self.simd));
        }
        self.wake();
        let watching: Vec<_> = self.members.iter().filter(|member| member.desk.is(WATCHING)).collect();
        let n_parts = (watching.len() + 1).min(n_outputs.div_ceil(PART_ALIGNMENT));
        if n_parts < 2 {
            return false;
        }
        let width = n_outputs.div_ceil(n_parts).next_multiple_of(PART_ALIGNMENT);
        let mut parts = (0..n_outputs).step_by(width).map(|start| start..n_outputs.min(start + width));
        let own = parts.next().expect("a layer has outputs");
        let asked: Vec<_> = watching.into_iter().zip(parts).collect();
        for (member, outputs) in &asked {
            member.ask(layer, outputs.clone(), rows, n_rows);
        }
        let mut compute = |outputs: Range<usize>| {
            self.own_part.resize(n_rows * outputs.len(), 0.0);
            layer.run(self.simd, outputs.clone(), rows, n_rows, &mut self.own_part, scratch);
            place(&self.own_part, outputs, out, n_outputs);
        };
        compute(own);
        let mut begun = Vec::with_capacity(asked.len());
        for (member, outputs) in asked {
            if member.take_back() {
                compute(outputs);
            } else {
                begun.push((member, outputs));
            }
        }
        for (member, outputs) in begun {
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
        let desk = Arc::new(Desk { state: AtomicU8::new(CALLED), work: Mutex::default() });
        let own = desk.clone();
        Self { desk, thread: Some(thread::spawn(move || own.serve(simd))) }
    }

    fn wake(&self) {
        if self.desk.turn(ASLEEP, CALLED) {
            self.unpark();
        }
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Leaves work for a member that watched a moment ago; if it has fallen asleep, the work is there to be taken back.
    fn ask(&self, layer: &Arc<CpuLinear>, outputs: Range<usize>, rows: &[f32], n_rows: usize) {
        let mut work = self.desk.work.lock();
        work.layer = Some(layer.clone());
        work.part.resize(n_rows * outputs.len(), 0.0);
        work.outputs = outputs;
        work.rows.clear();
        work.rows.extend_from_slice(rows);
        work.n_rows = n_rows;
        drop(work);
        self.desk.turn(WATCHING, ASKED);
    }

    /// Takes back what the member has not begun; says whether.
    fn take_back(&self) -> bool {
        self.desk.turn(ASKED, WATCHING) || self.desk.is(ASLEEP)
    }

    /// The work that was begun, once it is done.
    fn answer(&self) -> MutexGuard<'_, Work> {
        let mut n_looks = 0;
        while self.desk.is(BUSY) {
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
    fn is(&self, state: u8) -> bool {
        self.state.load(Ordering::Acquire) == state
    }

    /// Goes from one state to another, if it is in the first; says whether.
    fn turn(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The life of a member.
    fn serve(&self, simd: Simd) {
        let mut scratch = Scratch::new(simd);
        let mut n_looks = 0;
        loop {
            match self.state.load(Ordering::Acquire) {
                LEAVING => return,
                CALLED => {
                    self.turn(CALLED, WATCHING);
                    n_looks = 0;
                }
                ASKED if self.turn(ASKED, BUSY) => {
                    let mut work = self.work.lock();
                    let Work { layer, outputs, rows, n_rows, part } = &mut *work;
                    if let Some(layer) = layer.take() {
                        layer.run(simd, outputs.clone(), rows, *n_rows, part, &mut scratch);
                    }
                    drop(work);
                    // Whoever asked may have panicked meanwhile, and then says that there is no more to do.
                    self.turn(BUSY, WATCHING);
                    n_looks = 0;
                }
                ASLEEP => thread::park(), // a call that came in between is not lost: it wakes the next one who parks
                _ if n_looks < N_LOOKS => {
                    n_looks += 1;
                    std::hint::spin_loop();
                }
                _ => {
                    self.turn(WATCHING, ASLEEP);
                }
            }
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.desk.state.store(LEAVING, Ordering::Release);
        self.unpark();
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
                let layer =
                    Linear::new(&weight, Some(&noise(2, n_outputs)), Activation::Gelu, precision, None).unwrap();
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

    /// A layer that is worth sharing, rows for it, and its values by one thread.
    fn worth_sharing(simd: Simd) -> (Linear, Vec<f32>, Vec<u32>) {
        let weight = noise(1, 768 * 256).reshape((768, 256)).unwrap();
        let layer = Linear::new(&weight, None, Activation::None, Precision::F32, None).unwrap();
        let rows = noise(3, 12 * 256).to_vec1::<f32>().unwrap();
        let expected = run(&layer, &rows, 12, &mut Workspace::new(simd));
        (layer, rows, expected)
    }

    #[test]
    fn a_member_that_watches_computes_its_part() {
        let simd = Simd::detect();
        let (layer, rows, expected) = worth_sharing(simd);
        let mut workspace = Workspace { team: Some(Team::new(simd, 2)), ..Workspace::new(simd) };
        let computed = |workspace: &Workspace| {
            let member = workspace.team.as_ref().unwrap().members.first();
            member.is_some_and(|member| {
                let work = member.desk.work.lock();
                !work.part.is_empty() && work.layer.is_none()
            })
        };
        // One that the system does not let run is not waited for, so it may take some layers until it is in time.
        for _ in 0..100_000 {
            assert_eq!(run(&layer, &rows, 12, &mut workspace), expected);
            if computed(&workspace) {
                return;
            }
        }
        panic!("no layer in 100,000 was shared");
    }

    #[test]
    fn work_that_is_not_begun_is_taken_back() {
        let simd = Simd::detect();
        let (layer, rows, expected) = worth_sharing(simd);
        for state in [WATCHING, ASLEEP] {
            let desk = Arc::new(Desk { state: AtomicU8::new(state), work: Mutex::default() });
            let members = vec![Member { desk, thread: None }];
            let team = Team { n_members: 1, members, ..Team::new(simd, 2) };
            let mut workspace = Workspace { team: Some(team), ..Workspace::new(simd) };
            for _ in 0..3 {
                assert_eq!(run(&layer, &rows, 12, &mut workspace), expected, "state {state}");
            }
        }
    }

    #[test]
    fn a_small_layer_is_not_shared() {
        let weight = noise(1, 32 * 32).reshape((32, 32)).unwrap();
        let layer = Linear::new(&weight, None, Activation::None, Precision::F32, None).unwrap();
        let simd = Simd::detect();
        let mut workspace = Workspace { team: Some(Team::new(simd, 2)), ..Workspace::new(simd) };
        run(&layer, &[0.5; 64], 2, &mut workspace);
        assert!(workspace.team.unwrap().members.is_empty());
    }
}
