// put_four(t, n, sums over k of x[t][k] weight[n..n + 4][k]), x [T, K], weight [N, K].
//
// A workgroup makes a tile of TILE rows and TILE columns; K is walked DEPTH at a time through shared memory, and while
// one step is multiplied the next is on its way. A thread makes a square of the tile in parts of 4 by 4, 64 apart, so
// that neighbours read neighbouring words. Each sum is one chain over k from 0 up, whatever tile it is in.
// In front: K, TILE, DEPTH, `n_rows`, `n_columns`, `load_x`, `load_weight` (four values from k on, zero beyond K),
// `put`, and in workgroup memory fours of `xs` and `ws` [DEPTH][LINE].
// In place of the three marks: the sums of a thread, a step of them, and their way out.

const PARTS = DEPTH / 4u;
const LINE = TILE / 4u + 1u; // one more, so that threads that store the parts of a row meet in no bank

fn put_four(t: u32, n: u32, sums: vec4<f32>) {
    if (t >= n_rows()) { return; }
    if (n < n_columns()) { put(t, n, sums.x); }
    if (n + 1u < n_columns()) { put(t, n + 1u, sums.y); }
    if (n + 2u < n_columns()) { put(t, n + 2u, sums.z); }
    if (n + 3u < n_columns()) { put(t, n + 3u, sums.w); }
}

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let loaded = index / PARTS; // the row, and the column, of which this thread loads a part for all
    let part = index % PARTS;
    let row = group.x * TILE + loaded;
    let column = group.y * TILE + loaded;
    let is_row = row < n_rows();
    let is_column = column < n_columns();
    let at = 4u * part * LINE + loaded / 4u;
    let lane = loaded % 4u;
    var x = vec4<f32>();
    var w = vec4<f32>();
    if (is_row && 4u * part < K) { x = load_x(row, 4u * part); }
    if (is_column && 4u * part < K) { w = load_weight(column, 4u * part); }
    SUMS
    for (var first = 0u; first < K; first += DEPTH) {
        set_xs(at, lane, x.x);
        set_xs(at + LINE, lane, x.y);
        set_xs(at + 2u * LINE, lane, x.z);
        set_xs(at + 3u * LINE, lane, x.w);
        set_ws(at, lane, w.x);
        set_ws(at + LINE, lane, w.y);
        set_ws(at + 2u * LINE, lane, w.z);
        set_ws(at + 3u * LINE, lane, w.w);
        workgroupBarrier();
        let next = first + DEPTH + 4u * part;
        x = vec4<f32>();
        w = vec4<f32>();
        if (next < K && is_row) { x = load_x(row, next); }
        if (next < K && is_column) { w = load_weight(column, next); }
        for (var i = 0u; i < DEPTH; i++) {
            STEP
        }
        workgroupBarrier();
    }
    let t = group.x * TILE + 4u * local.y;
    let n = group.y * TILE + 4u * local.x;
    PUT
}
