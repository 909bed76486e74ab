//! Makes every node of layer 0 reachable from the entry, and every node known to a few others.
//!
//! The construction may leave nodes that no list names: lists that overflow are chosen anew. A node that cannot be
//! reached is linked from its nearest nodes that can, until none is left; then a node named by fewer than
//! [`IN_DEGREE_MIN`] lists is added to the lists of its own neighbours.
//!
//! Cost: one walk for each node that cannot be reached, of which there are few.

use std::collections::VecDeque;

use super::beam::Scratch;
use super::draft::{Draft, Lists};
use super::graph::Repairs;
use crate::Result;

/// Nodes that an unreachable one is linked from.
const N_LINKS: usize = 3;

/// The beam that looks for them.
const EF_REPAIR: usize = 32;

/// Lists that should name a node.
const IN_DEGREE_MIN: usize = 3;

/// Repairs the lists of layer 0 in place.
pub(crate) fn repair(draft: &mut Draft, scratch: &mut Scratch) -> Result<Repairs> {
    let mut repairs = Repairs::default();
    let n_nodes = draft.layers[0].n_nodes();
    let mut reached = vec![false; n_nodes];
    if n_nodes > 0 {
        spread(&draft.layers[0], &mut reached, 0);
    }
    for node in 0..n_nodes as u32 {
        if reached[node as usize] {
            continue;
        }
        let space = draft.layer(0, draft.codes.target(node));
        let lists = &draft.layers[0];
        let has_room = |host| Ok(lists.list(host).len() < lists.n_slots());
        scratch.walk_admitted(&space, n_nodes, &[0], EF_REPAIR, usize::MAX, has_room)?;
        let mut hosts: Vec<u32> = scratch.results().take(N_LINKS).map(|candidate| candidate.node()).collect();
        if hosts.is_empty() {
            // All lists that can be reached are full: the slots of all grow.
            scratch.walk(&space, n_nodes, &[0], EF_REPAIR, usize::MAX)?;
            hosts.extend(scratch.results().take(N_LINKS).map(|candidate| candidate.node()));
        }
        for &host in &hosts {
            draft.layers[0].push(host, node);
        }
        repairs.n_edges += hosts.len();
        repairs.n_unreachable += 1;
        spread(&draft.layers[0], &mut reached, node);
    }
    repairs.n_edges += add_back_edges(&mut draft.layers[0]);
    Ok(repairs)
}

/// Marks everything that can be reached from a node. Nodes that were marked before are not walked through again.
fn spread(lists: &Lists, reached: &mut [bool], from: u32) {
    reached[from as usize] = true;
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for &next in lists.list(node) {
            if !std::mem::replace(&mut reached[next as usize], true) {
                queue.push_back(next);
            }
        }
    }
}

/// Names each node that few lists name in the lists of its own neighbours, as far as these have room. Returns the
/// number of edges added.
fn add_back_edges(lists: &mut Lists) -> usize {
    let mut in_degree = vec![0_usize; lists.n_nodes()];
    for node in 0..lists.n_nodes() as u32 {
        lists.list(node).iter().for_each(|&named| in_degree[named as usize] += 1);
    }
    let mut n_added = 0;
    for node in 0..lists.n_nodes() as u32 {
        if in_degree[node as usize] >= IN_DEGREE_MIN {
            continue;
        }
        for neighbor in lists.list(node).to_vec() {
            let list = lists.list(neighbor);
            if list.len() < lists.n_slots() && !list.contains(&node) {
                lists.push(neighbor, node);
                in_degree[node as usize] += 1;
                n_added += 1;
            }
            if in_degree[node as usize] >= IN_DEGREE_MIN {
                break;
            }
        }
    }
    n_added
}
