//! Makes every row of layer 0 reachable from the entry, and every row known to a few others.
//!
//! The construction leaves rows that no list names: an edge back to a new row is the first to go when a list is full. A row
//! that cannot be reached is linked from its nearest rows that can, until none is left; then a row named by fewer than
//! [`IN_DEGREE_MIN`] lists is added to the lists of its own neighbours.
//!
//! Cost: one walk for each row that cannot be reached, of which there are a few in ten thousand on clustered rows.

use std::collections::VecDeque;

use super::beam::{Scratch, Space};
use super::build::Vectors;
use super::config::HnswConfig;
use super::graph::Repairs;
use crate::{Neighbor, Result};

/// Rows that an unreachable one is linked from.
const N_LINKS: usize = 3;

/// The beam that looks for them.
const EF_REPAIR: usize = 32;

/// Lists that should name a row.
const IN_DEGREE_MIN: usize = 3;

/// Repairs the lists of layer 0 in place. `distinct` are the rows that stand in the graph, ascending.
pub(crate) fn repair(
    base: &mut [Vec<u32>],
    distinct: &[u32],
    entry: u32,
    vectors: Vectors<'_>,
    config: &HnswConfig,
) -> Result<Repairs> {
    // Room for the edges of the repair; grown if all lists that can be reached are full.
    let mut degree_max = config.m0() + config.m;
    let mut reached = vec![false; base.len()];
    spread(base, &mut reached, entry);
    let mut repairs = Repairs::default();
    let mut scratch = Scratch::default();
    for &row in distinct {
        if reached[row as usize] {
            continue;
        }
        let hosts = loop {
            let hosts = nearest_hosts(base, entry, row, vectors, degree_max, &mut scratch)?;
            if !hosts.is_empty() {
                break hosts;
            }
            degree_max += config.m;
        };
        for host in hosts {
            base[host.row as usize].push(row);
            repairs.n_edges += 1;
        }
        repairs.n_unreachable += 1;
        spread(base, &mut reached, row);
    }
    repairs.n_edges += add_back_edges(base, degree_max);
    Ok(repairs)
}

/// Marks everything that can be reached from a row. Rows that were marked before are not walked through again.
fn spread(base: &[Vec<u32>], reached: &mut [bool], from: u32) {
    reached[from as usize] = true;
    let mut queue = VecDeque::from([from]);
    while let Some(row) = queue.pop_front() {
        for &next in &base[row as usize] {
            if !std::mem::replace(&mut reached[next as usize], true) {
                queue.push_back(next);
            }
        }
    }
}

/// The nearest reachable rows whose lists have room.
fn nearest_hosts(
    base: &[Vec<u32>],
    entry: u32,
    row: u32,
    vectors: Vectors<'_>,
    degree_max: usize,
    scratch: &mut Scratch,
) -> Result<Vec<Neighbor>> {
    let draft = Draft { base, vectors, row, degree_max };
    scratch.walk(&draft, base.len(), &[entry], EF_REPAIR, usize::MAX)?;
    let mut hosts: Vec<Neighbor> = scratch.results().collect();
    hosts.sort_unstable();
    hosts.truncate(N_LINKS);
    Ok(hosts)
}

/// The graph while it is repaired, searched for a row that it cannot reach.
struct Draft<'a> {
    base: &'a [Vec<u32>],
    vectors: Vectors<'a>,
    row: u32,
    degree_max: usize,
}

impl Space for Draft<'_> {
    fn neighbors(&self, row: u32) -> Result<&[u32]> {
        Ok(&self.base[row as usize])
    }

    fn distances(&self, rows: &[u32], out: &mut Vec<f32>) -> Result<()> {
        out.extend(rows.iter().map(|&row| self.vectors.distance(self.row, row)));
        Ok(())
    }

    fn admits(&self, row: u32) -> Result<bool> {
        Ok(self.base[row as usize].len() < self.degree_max)
    }
}

/// Names each row that few lists name in the lists of its own neighbours, nearest first. Returns the number of edges added.
fn add_back_edges(base: &mut [Vec<u32>], degree_max: usize) -> usize {
    let mut in_degree = vec![0_usize; base.len()];
    for &row in base.iter().flatten() {
        in_degree[row as usize] += 1;
    }
    let mut n_added = 0;
    for row in 0..base.len() {
        for neighbor in base[row].clone() {
            if in_degree[row] >= IN_DEGREE_MIN {
                break;
            }
            let list = &mut base[neighbor as usize];
            if list.len() < degree_max && !list.contains(&(row as u32)) {
                list.push(row as u32);
                in_degree[row] += 1;
                n_added += 1;
            }
        }
    }
    n_added
}
