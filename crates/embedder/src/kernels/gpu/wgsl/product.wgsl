// put(t, n, sum over k of x[t][k] weight[n][k]), x [T, K], weight [N, K].
//
// A workgroup makes a tile of 64 rows and 64 columns, a thread 4 by 4 of them; K is walked 16 at a time through shared
// memory. Each sum is one chain over k from 0 up, whatever tile it is in.
// In front: K, `n_rows`, `n_columns`, `load_x`, `load_weight` (four values from k on, zero beyond K), `put`.

const TILE = 64u;
const DEPTH = 16u;

var<workgroup> xs: array<vec4<f32>, 256>; // [DEPTH][TILE / 4]
var<workgroup> ws: array<vec4<f32>, 256>;

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let t_end = n_rows();
    let n_end = n_columns();
    let loaded = index % TILE; // the row, and the column, that this thread loads for all
    let part = index / TILE;
    let row = group.x * TILE + loaded;
    let column = group.y * TILE + loaded;
    var sums = array<vec4<f32>, 4>();
    for (var first = 0u; first < K; first += DEPTH) {
        let k = first + 4u * part;
        var x = vec4<f32>();
        var w = vec4<f32>();
        if (row < t_end && k < K) { x = load_x(row, k); }
        if (column < n_end && k < K) { w = load_weight(column, k); }
        for (var i = 0u; i < 4u; i++) {
            let at = (4u * part + i) * 16u + loaded / 4u;
            xs[at][loaded % 4u] = x[i];
            ws[at][loaded % 4u] = w[i];
        }
        workgroupBarrier();
        for (var i = 0u; i < DEPTH; i++) {
            let a = xs[i * 16u + local.y];
            let b = ws[i * 16u + local.x];
            sums[0] = fma(vec4(a.x), b, sums[0]);
            sums[1] = fma(vec4(a.y), b, sums[1]);
            sums[2] = fma(vec4(a.z), b, sums[2]);
            sums[3] = fma(vec4(a.w), b, sums[3]);
        }
        workgroupBarrier();
    }
    let first_row = group.x * TILE + 4u * local.y;
    let first_column = group.y * TILE + 4u * local.x;
    for (var i = 0u; i < 4u; i++) {
        for (var j = 0u; j < 4u; j++) {
            let t = first_row + i;
            let n = first_column + j;
            if (t < t_end && n < n_end) { put(t, n, sums[i][j]); }
        }
    }
}
