// The products of queries with rows that are larger than a query's floor, in no order: what the tiles of a product are
// put into. Rows that are not allowed have none.
// In front: FOUND_MAX, `is_allowed`.

struct Found { query: u32, row: u32, product: f32 }
struct All { n: atomic<u32>, entries: array<Found> }

@group(0) @binding(2) var<storage, read_write> found: All;
@group(0) @binding(3) var<storage, read> floors: array<f32>;

fn n_rows() -> u32 { return arrayLength(&x) / (K / 4u); }
fn n_columns() -> u32 { return arrayLength(&weight) / (K / 4u); }

fn put(query: u32, row: u32, product: f32) {
    if (product > floors[query] && is_allowed(row)) {
        let place = atomicAdd(&found.n, 1u);
        if (place < FOUND_MAX) { found.entries[place] = Found(query, row, product); }
    }
}
