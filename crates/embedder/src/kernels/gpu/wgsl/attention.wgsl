// out = softmax(scale q kᵀ + bias) v within each text, for each head; qkv [T, (A + 2G) D], out [T, A D].
//
// A workgroup takes QUERIES queries of one text and one head, and walks the text's keys KEYS at a time, counted from its
// first token on: what a query gets depends on its text alone. Source of the online softmax: Milakov and Gimelshein
// 2018. Keys that a query does not see have the weight 0; no score is infinite.
// Numbers of four queries lie side by side, so that a thread scores four queries with each of its keys, and sums four
// values for each of four queries. In front: A, G, D, QUERIES, KEYS, SCALE, BACK, AHEAD, `bias_of`, `load_four`, and in
// workgroup memory fours of `queries` [D][QUERIES], `weights` [KEYS][LINE] (scores, then weights), `factors` [QUERIES].
// In place of the marks: the sums of a thread, and their parts.

const THREADS = 64u;
const ROW = (A + 2u * G) * D;
const FOURS = (D + 3u) / 4u; // of the values of a head
const STRIDE = FOURS | 1u; // of keys and values: an odd one, so that threads that read neighbours meet in no bank
const LINE = QUERIES / 4u + 1u; // of weights, likewise
const LANES = THREADS / (QUERIES / 4u); // threads that share four queries
const UNSEEN = -3.0e38;
const LEAST = -1.0e30;

var<workgroup> shared_rows: array<vec4<f32>, KEYS * STRIDE>; // [KEYS][D]: keys, then values
var<workgroup> largest: array<f32, QUERIES>;
var<workgroup> sums: array<f32, QUERIES>;

fn sees(query: u32, key: u32) -> bool {
    if (key <= query) { return query - key <= BACK; }
    return key - query <= AHEAD;
}

fn score(head: u32, query: u32, key: u32, product: f32) -> f32 {
    if (sees(query, key)) { return fma(product, SCALE, bias_of(head, query, key)); }
    return UNSEEN;
}

// Weights of the keys in place of a query's scores; what was summed before is to be multiplied by the factor.
fn weigh(i: u32, n_keys: u32) {
    let before = largest[i];
    let place = i / 4u;
    let lane = i % 4u;
    var most = before;
    for (var j = 0u; j < n_keys; j++) { most = max(most, weights_member(j * LINE + place, lane)); }
    let factor = exp(max(before - most, -87.0)) * select(0.0, 1.0, before > LEAST);
    var sum = sums[i] * factor;
    for (var j = 0u; j < n_keys; j++) {
        let score = weights_member(j * LINE + place, lane);
        let weight = select(0.0, exp(max(score - most, -87.0)), score > LEAST);
        set_weights(j * LINE + place, lane, weight);
        sum += weight;
    }
    largest[i] = most;
    sums[i] = sum;
    set_factors(place, lane, factor);
}

fn put(t: u32, at: u32, d: u32, values: vec4<f32>) {
    let first = t * A * D + at + d;
    out[first] = values.x;
    if (d + 1u < D) { out[first + 1u] = values.y; }
    if (d + 2u < D) { out[first + 2u] = values.z; }
    if (d + 3u < D) { out[first + 3u] = values.w; }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let start = tiles[3u * group.x];
    let n_tokens = tiles[3u * group.x + 1u] - start;
    let first = tiles[3u * group.x + 2u] - start;
    let head = group.y;
    let key_at = (A + head / (A / G)) * D;
    let n_queries = min(QUERIES, n_tokens - first);
    for (var e = index; e < QUERIES * FOURS; e += THREADS) {
        let i = e / FOURS;
        let d = 4u * (e % FOURS);
        var four = vec4<f32>();
        if (i < n_queries) { four = load_four((start + first + i) * ROW + head * D, d); }
        set_queries(d * (QUERIES / 4u) + i / 4u, i % 4u, four.x);
        set_queries((d + 1u) * (QUERIES / 4u) + i / 4u, i % 4u, four.y);
        set_queries((d + 2u) * (QUERIES / 4u) + i / 4u, i % 4u, four.z);
        set_queries((d + 3u) * (QUERIES / 4u) + i / 4u, i % 4u, four.w);
    }
    if (index < QUERIES) {
        largest[index] = LEAST;
        sums[index] = 0.0;
    }
    let place = index / LANES; // of the four queries whose scores this thread makes
    let lane = index % LANES;
    SUMS
    let first_seen = (first - min(first, BACK)) / KEYS * KEYS;
    let end_seen = min(n_tokens, first + n_queries + min(AHEAD, n_tokens));
    for (var key = first_seen; key < end_seen; key += KEYS) {
        let n_keys = min(KEYS, n_tokens - key);
        workgroupBarrier();
        for (var e = index; e < n_keys * FOURS; e += THREADS) {
            shared_rows[e / FOURS * STRIDE + e % FOURS] = load_four((start + key + e / FOURS) * ROW + key_at, 4u * (e % FOURS));
        }
        workgroupBarrier();
        SCORES
        workgroupBarrier();
        if (index < QUERIES) { weigh(index, n_keys); }
        for (var e = index; e < n_keys * FOURS; e += THREADS) {
            shared_rows[e / FOURS * STRIDE + e % FOURS] = load_four((start + key + e / FOURS) * ROW + key_at + G * D, 4u * (e % FOURS));
        }
        workgroupBarrier();
        RESCALE
        for (var j = 0u; j < n_keys; j++) {
            ADD
        }
    }
    PUT
}
