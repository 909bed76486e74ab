//! Takes the graph out of hnsw_rs and leaves behind what is of no use.
//!
//! Dropped: lists of a row in layers above its own level, edges to rows that are not in the layer, edges to the row itself,
//! and edges named twice. What remains is sorted nearest first, equal distances by row.

use hnsw_rs::prelude::{Distance, Hnsw};

use super::build::{Groups, Vectors};
use super::config::HnswConfig;
use super::graph::{Graph, Layer};
use super::repair::repair;
use crate::{Error, Neighbor, Result};

/// The finished graph: exported, repaired, and its invariants asserted.
pub(crate) fn freeze<D: Distance<u32> + Send + Sync>(
    hnsw: &Hnsw<'_, u32, D>,
    vectors: Vectors<'_>,
    groups: Groups,
    config: &HnswConfig,
) -> Result<Graph> {
    let n_rows = vectors.len();
    let mut graph = Graph::empty(*config, n_rows);
    graph.twins = Layer::new(groups.twins);
    if n_rows == 0 {
        return Ok(graph);
    }
    let points = hnsw.get_point_indexation();
    let top = usize::from(points.get_max_level_observed());
    let mut level_of_row = vec![0_u8; n_rows];
    for level in 0..=top {
        for point in points.get_layer_iterator(level) {
            level_of_row[point.get_origin_id()] = level as u8;
        }
    }
    // Rows were inserted one by one and the entry is replaced by higher ones only: it is the first of the top layer.
    let entry = points.get_layer_iterator(top).next().map(|point| point.get_origin_id());
    graph.entry = entry.expect("the top layer holds the row that made it the top") as u32;

    let mut upper = vec![Vec::new(); top];
    for level in 0..=top {
        for point in points.get_layer_iterator(level) {
            let row = point.get_origin_id();
            let mut lists = point.get_neighborhood_id();
            lists.truncate(level + 1);
            for (layer, list) in lists.into_iter().enumerate() {
                let in_layer = |id: usize| id != row && usize::from(level_of_row[id]) >= layer;
                let list = list.into_iter().filter(|edge| in_layer(edge.d_id));
                let list = nearest_first(list.map(|edge| Neighbor { row: edge.d_id as u32, distance: edge.distance }));
                match layer.checked_sub(1) {
                    None => graph.base[row] = list,
                    Some(layer) => upper[layer].push((row as u32, list)),
                }
            }
        }
    }
    graph.upper = upper.into_iter().map(Layer::new).collect();
    graph.repairs = repair(&mut graph.base, &groups.distinct, graph.entry, vectors, config)?;
    graph.assert_invariants();
    if graph.n_base_edges() > u64::from(u32::MAX) {
        let value = graph.n_base_edges() as usize;
        return Err(Error::Setting {
            name: "edges of the graph",
            value,
            allowed: "at most 4,294,967,295: use a smaller m",
        });
    }
    Ok(graph)
}

fn nearest_first(list: impl Iterator<Item = Neighbor>) -> Vec<u32> {
    let mut list: Vec<Neighbor> = list.collect();
    list.sort_unstable();
    list.dedup_by_key(|neighbor| neighbor.row);
    list.into_iter().map(|neighbor| neighbor.row).collect()
}
