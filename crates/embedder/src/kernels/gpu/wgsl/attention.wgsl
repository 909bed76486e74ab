// out = softmax(scale q kᵀ + bias) v within each text, for each head; qkv [T, (A + 2G) D], out [T, A D].
//
// A workgroup takes a tile of queries of one text and one head, and walks the text's keys in tiles that are counted
// from its first token on: what a query gets depends on its text alone. Source of the online softmax: Milakov and
// Gimelshein 2018. Keys that a query does not see have the weight 0; no score is infinite.
// In front: A, G, D, TILE, PER_THREAD, SCALE, BACK, AHEAD, `bias_of`.

const THREADS = 64u;
const ROW = (A + 2u * G) * D;
const UNSEEN = -3.0e38;
const LEAST = -1.0e30;

@group(0) @binding(0) var<storage, read> qkv: array<f32>;
@group(0) @binding(1) var<storage, read> tiles: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

var<workgroup> queries: array<f32, TILE * D>;
var<workgroup> shared_rows: array<f32, TILE * D>; // keys, then values
var<workgroup> scores: array<f32, TILE * TILE>;
var<workgroup> largest: array<f32, TILE>;
var<workgroup> sums: array<f32, TILE>;
var<workgroup> factors: array<f32, TILE>;

fn sees(query: u32, key: u32) -> bool {
    if (key <= query) { return query - key <= BACK; }
    return key - query <= AHEAD;
}

// Weights of a tile of keys in place of their scores; what was summed before is to be multiplied by the factor.
fn weigh(i: u32) {
    let before = largest[i];
    var most = before;
    for (var j = 0u; j < TILE; j++) { most = max(most, scores[i * TILE + j]); }
    let factor = exp(max(before - most, -87.0)) * select(0.0, 1.0, before > LEAST);
    var sum = sums[i] * factor;
    for (var j = 0u; j < TILE; j++) {
        let score = scores[i * TILE + j];
        let weight = select(0.0, exp(max(score - most, -87.0)), score > LEAST);
        scores[i * TILE + j] = weight;
        sum += weight;
    }
    largest[i] = most;
    sums[i] = sum;
    factors[i] = factor;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let start = tiles[3u * group.x];
    let n_tokens = tiles[3u * group.x + 1u] - start;
    let first = tiles[3u * group.x + 2u] - start;
    let head = group.y;
    let key_at = (A + head / (A / G)) * D;
    let n_queries = min(TILE, n_tokens - first);
    for (var e = index; e < n_queries * D; e += THREADS) {
        queries[e] = qkv[(start + first + e / D) * ROW + head * D + e % D];
    }
    if (index < TILE) {
        largest[index] = LEAST;
        sums[index] = 0.0;
    }
    var context = array<f32, PER_THREAD>();
    let first_seen = (first - min(first, BACK)) / TILE * TILE;
    let end_seen = min(n_tokens, first + n_queries + min(AHEAD, n_tokens));
    for (var key = first_seen; key < end_seen; key += TILE) {
        let n_keys = min(TILE, n_tokens - key);
        workgroupBarrier();
        for (var e = index; e < n_keys * D; e += THREADS) {
            shared_rows[e] = qkv[(start + key + e / D) * ROW + key_at + e % D];
        }
        workgroupBarrier();
        for (var s = index; s < TILE * TILE; s += THREADS) {
            let i = s / TILE;
            let j = s % TILE;
            var score = UNSEEN;
            if (i < n_queries && j < n_keys && sees(first + i, key + j)) {
                var product = 0.0;
                for (var d = 0u; d < D; d++) { product = fma(queries[i * D + d], shared_rows[j * D + d], product); }
                score = fma(product, SCALE, bias_of(head, first + i, key + j));
            }
            scores[s] = score;
        }
        workgroupBarrier();
        if (index < TILE) { weigh(index); }
        for (var e = index; e < n_keys * D; e += THREADS) {
            shared_rows[e] = qkv[(start + key + e / D) * ROW + key_at + G * D + e % D];
        }
        workgroupBarrier();
        for (var c = 0u; c < PER_THREAD; c++) {
            let e = index + c * THREADS;
            if (e < n_queries * D) {
                let i = e / D;
                var value = context[c] * factors[i];
                for (var j = 0u; j < n_keys; j++) {
                    value = fma(scores[i * TILE + j], shared_rows[j * D + e % D], value);
                }
                context[c] = value;
            }
        }
    }
    for (var c = 0u; c < PER_THREAD; c++) {
        let e = index + c * THREADS;
        if (e < n_queries * D) {
            out[(start + first + e / D) * A * D + head * D + e % D] = context[c] / sums[e / D];
        }
    }
}
