// Self-attention of packed texts: no padding, no token attends beyond its own text, no score leaves the chip.
//
// Source: Vaswani et al. 2017, eq. 1, with the running softmax of Milakov and Gimelshein 2018 over tiles of keys.
// Shapes: rows q | k | v [T, 3H] give [T, H]; H = heads * D. A block answers the queries of one tile for one head: 64 tokens at
// most, of one text; a table says which. Keys and values pass through shared memory, 64 or 32 tokens at a time.
#include "device.cuh"

template <typename T> struct AttentionArguments {
    T* out;           // [T, H]
    const T* qkv;     // [T, 3H]
    const u32* tiles; // [blocks, 3]: first query, first token of its text, one past the last token of its text
    const float* bias; // [heads, 2 * reach + 1], added to scores by key - query + reach, or null
    u32 reach;
    u32 n_heads;
    u32 head_width; // D
    u32 window;     // keys at most this far from the query are seen
    float scale;    // of products of queries and keys
};

constexpr u32 QUERY_TILE = 64;
constexpr u32 ANY_DISTANCE = 0xffffffffu; // as a window
constexpr float LOG2_E = 1.4426950408889634f;

// What a block works on.
struct Tile {
    u32 first, start, end; // queries from `first` on; the text's tokens
    u32 keys, keys_end;    // tokens that any of the queries sees

    __device__ Tile(const u32* tiles, u32 window) {
        first = tiles[3 * blockIdx.x], start = tiles[3 * blockIdx.x + 1], end = tiles[3 * blockIdx.x + 2];
        keys = first - start > window ? first - window : start;
        const u32 last = (end - first > QUERY_TILE ? first + QUERY_TILE : end) - 1;
        keys_end = end - last - 1 > window ? last + window + 1 : end;
    }
};

// What is added to a score: a bias, or minus infinity where the query does not see the key.
template <typename T> __device__ inline float offset(const AttentionArguments<T>& a, const Tile& tile, u32 query, u32 key) {
    const u32 distance = key > query ? key - query : query - key;
    if (key >= tile.keys_end || distance > a.window) return -INFINITY;
    if (!a.bias || query >= tile.end) return 0;
    return a.bias[size_t(blockIdx.y) * (2 * a.reach + 1) + a.reach + key - query];
}

// The running softmax of one query: every new tile of keys rescales what was summed before.
struct Softmax {
    float max = -INFINITY, sum = 0;

    // Takes in the largest new score; what was summed before is to be multiplied by the result.
    __device__ float raise(float new_max) {
        const float before = max;
        max = fmaxf(max, new_max);
        const float factor = exp2f(before - base());
        sum *= factor;
        return factor;
    }
    // A query that has seen no key yet has no maximum to subtract.
    __device__ float base() const { return max == -INFINITY ? 0.0f : max; }
};

constexpr u32 WIDE_TILE = 64; // keys

// 16-bit numbers on the tensor cores: four warps of 16 queries each. D is a multiple of 16.
template <typename T, u32 D> __device__ void attend_on_tensor_cores(const AttentionArguments<T>& a) {
    constexpr u32 STRIDE = D + PACK; // rows begin 16 bytes apart modulo 128: no two lanes of a load meet in one bank
    SHARED(T, keys);                 // [64, STRIDE]
    T* values = keys + WIDE_TILE * STRIDE;
    const u32 lane = threadIdx.x % WARP, group = lane / 4, pair = lane % 4 * 2;
    const Tile tile(a.tiles, a.window);
    const size_t hidden = size_t(a.n_heads) * D, stride = 3 * hidden;
    const T* of_head = a.qkv + blockIdx.y * D;
    const u32 warp_first = tile.first + threadIdx.x / WARP * 16;
    const u32 query[2] = {warp_first + group, warp_first + group + 8};

    u32 q[D / 16][4];
#pragma unroll
    for (u32 k = 0; k < D / 16; k++) {
#pragma unroll
        for (u32 part = 0; part < 4; part++) {
            const u32 row = query[part % 2], column = k * 16 + part / 2 * 8 + pair;
            q[k][part] = row < tile.end ? load_pair(of_head + row * stride + column) : 0;
        }
    }
    float out[D / 8][4] = {};
    Softmax softmax[2];
    for (u32 tile_keys = tile.keys; tile_keys < tile.keys_end; tile_keys += WIDE_TILE) {
        __syncthreads(); // the last tile has been read by all
        for (u32 at = threadIdx.x; at < WIDE_TILE * (D / PACK); at += blockDim.x) {
            const u32 row = at / (D / PACK), column = at % (D / PACK) * PACK;
            const bool inside = tile_keys + row < tile.keys_end;
            const T* from = of_head + (tile_keys + row) * stride + hidden + column;
            store_pack(keys + row * STRIDE + column, inside ? load_pack(from) : Pack<T>{});
            store_pack(values + row * STRIDE + column, inside ? load_pack(from + hidden) : Pack<T>{});
        }
        __syncthreads();
        if (warp_first >= tile.end) continue; // a whole warp without queries

        float scores[WIDE_TILE / 8][4] = {};
        float largest[2] = {-INFINITY, -INFINITY};
#pragma unroll
        for (u32 n = 0; n < WIDE_TILE / 8; n++) {
#pragma unroll
            for (u32 k = 0; k < D / 16; k++) {
                const T* key = keys + (n * 8 + group) * STRIDE + k * 16 + pair;
                multiply_add<T>(scores[n], q[k], load_pair(key), load_pair(key + 8));
            }
        }
        const bool all_seen = !a.bias && a.window == ANY_DISTANCE && tile_keys + WIDE_TILE <= tile.keys_end;
#pragma unroll
        for (u32 n = 0; n < WIDE_TILE / 8; n++) {
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                scores[n][i] *= a.scale * LOG2_E; // powers of two from here on
                if (!all_seen) scores[n][i] += LOG2_E * offset(a, tile, query[i / 2], tile_keys + n * 8 + pair + i % 2);
                largest[i / 2] = fmaxf(largest[i / 2], scores[n][i]);
            }
        }
        float factor[2];
#pragma unroll
        for (u32 r = 0; r < 2; r++) factor[r] = softmax[r].raise(lane_max(largest[r], 4));
#pragma unroll
        for (u32 d = 0; d < D / 8; d++) {
#pragma unroll
            for (u32 i = 0; i < 4; i++) out[d][i] *= factor[i / 2];
        }
#pragma unroll
        for (u32 n = 0; n < WIDE_TILE / 8; n++) {
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                scores[n][i] = exp2f(scores[n][i] - softmax[i / 2].base());
                softmax[i / 2].sum += scores[n][i]; // of this lane's keys; summed over the lanes in the end
            }
        }
#pragma unroll
        for (u32 k = 0; k < WIDE_TILE / 16; k++) {
            const float(&low)[4] = scores[2 * k], (&high)[4] = scores[2 * k + 1];
            const u32 weights[4] = {pair_of<T>(low[0], low[1]), pair_of<T>(low[2], low[3]), pair_of<T>(high[0], high[1]),
                                    pair_of<T>(high[2], high[3])};
#pragma unroll
            for (u32 d = 0; d < D / 8; d += 2) {
                u32 v[4]; // keys 0..8 and 8..16 of this step, for eight values of a head, then for the next eight
                load_transposed(v, values + (k * 16 + lane % 16) * STRIDE + (d + lane / 16) * 8);
                multiply_add<T>(out[d], weights, v[0], v[1]);
                multiply_add<T>(out[d + 1], weights, v[2], v[3]);
            }
        }
    }
    if (warp_first >= tile.end) return;
#pragma unroll
    for (u32 r = 0; r < 2; r++) {
        const float inverse = 1.0f / lane_sum(softmax[r].sum, 4);
        if (query[r] >= tile.end) continue;
        T* to = a.out + query[r] * hidden + blockIdx.y * D + pair;
#pragma unroll
        for (u32 d = 0; d < D / 8; d++) {
            *reinterpret_cast<u32*>(to + d * 8) = pair_of<T>(out[d][2 * r] * inverse, out[d][2 * r + 1] * inverse);
        }
    }
}

constexpr u32 NARROW_TILE = 32;       // keys: one a lane
constexpr u32 QUERIES_A_WARP = 8;     // at a time
constexpr u32 QUERIES_A_BLOCK = 32;   // four warps; two blocks (z) share a tile of queries

// Any number type and any D up to 32 * PER_LANE, in f32 multiply-adds: a lane scores one key, then sums PER_LANE values.
template <typename T, u32 PER_LANE> __device__ void attend(const AttentionArguments<T>& a) {
    const u32 width = a.head_width, padded = width + 1; // lanes read one column of `keys` at a time
    SHARED(float, queries);                             // [32, D]
    float* keys = queries + QUERIES_A_BLOCK * width;    // [32, D + 1]
    float* values = keys + NARROW_TILE * padded;        // [32, D]
    float* weights = values + NARROW_TILE * width;      // [4 warps, 8 queries, 32 keys]
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    weights += warp * QUERIES_A_WARP * NARROW_TILE;
    const Tile tile(a.tiles, a.window);
    const size_t hidden = size_t(a.n_heads) * width, stride = 3 * hidden;
    const T* of_head = a.qkv + blockIdx.y * width;
    const u32 block_first = tile.first + blockIdx.z * QUERIES_A_BLOCK;
    if (block_first >= tile.end) return; // all threads alike
    for (u32 at = threadIdx.x; at < QUERIES_A_BLOCK * width; at += blockDim.x) {
        const u32 row = block_first + at / width;
        queries[at] = row < tile.end ? to_f32(of_head[row * stride + at % width]) : 0.0f;
    }
    queries += warp * QUERIES_A_WARP * width;
    const u32 warp_first = block_first + warp * QUERIES_A_WARP;

    float out[QUERIES_A_WARP][PER_LANE] = {};
    Softmax softmax[QUERIES_A_WARP];
    for (u32 tile_keys = tile.keys; tile_keys < tile.keys_end; tile_keys += NARROW_TILE) {
        __syncthreads(); // the queries are there, the last tile has been read by all
        for (u32 at = threadIdx.x; at < NARROW_TILE * width; at += blockDim.x) {
            const u32 row = at / width, column = at % width;
            const bool inside = tile_keys + row < tile.keys_end;
            const T* from = of_head + (tile_keys + row) * stride + hidden + column;
            keys[row * padded + column] = inside ? to_f32(from[0]) : 0.0f;
            values[at] = inside ? to_f32(from[hidden]) : 0.0f;
        }
        __syncthreads();
        if (warp_first >= tile.end) continue; // a whole warp without queries

        float scores[QUERIES_A_WARP] = {};
        for (u32 d = 0; d < width; d++) {
            const float key = keys[lane * padded + d];
#pragma unroll
            for (u32 r = 0; r < QUERIES_A_WARP; r++) scores[r] += queries[r * width + d] * key;
        }
#pragma unroll
        for (u32 r = 0; r < QUERIES_A_WARP; r++) {
            const float s = LOG2_E * (scores[r] * a.scale + offset(a, tile, warp_first + r, tile_keys + lane));
            const float factor = softmax[r].raise(lane_max(s));
            const float weight = exp2f(s - softmax[r].base());
            softmax[r].sum += lane_sum(weight);
            weights[r * NARROW_TILE + lane] = weight;
#pragma unroll
            for (u32 i = 0; i < PER_LANE; i++) out[r][i] *= factor;
        }
        __syncwarp();
        for (u32 key = 0; key < NARROW_TILE; key++) {
#pragma unroll
            for (u32 i = 0; i < PER_LANE; i++) {
                const u32 column = i * WARP + lane;
                const float value = column < width ? values[key * width + column] : 0.0f;
#pragma unroll
                for (u32 r = 0; r < QUERIES_A_WARP; r++) out[r][i] += weights[r * NARROW_TILE + key] * value;
            }
        }
        __syncwarp(); // the weights have been read
    }
#pragma unroll
    for (u32 r = 0; r < QUERIES_A_WARP; r++) {
        const u32 row = warp_first + r;
        if (row >= tile.end) continue;
#pragma unroll
        for (u32 i = 0; i < PER_LANE; i++) {
            const u32 column = i * WARP + lane;
            if (column < width) a.out[row * hidden + blockIdx.y * width + column] = from_f32<T>(out[r][i] / softmax[r].sum);
        }
    }
}

template <typename T> __device__ void tensor_32(const AttentionArguments<T>& a) { attend_on_tensor_cores<T, 32>(a); }
template <typename T> __device__ void tensor_64(const AttentionArguments<T>& a) { attend_on_tensor_cores<T, 64>(a); }
template <typename T> __device__ void tensor_128(const AttentionArguments<T>& a) { attend_on_tensor_cores<T, 128>(a); }
template <typename T> __device__ void any_32(const AttentionArguments<T>& a) { attend<T, 1>(a); }
template <typename T> __device__ void any_64(const AttentionArguments<T>& a) { attend<T, 2>(a); }
template <typename T> __device__ void any_256(const AttentionArguments<T>& a) { attend<T, 8>(a); }

EXPORT_16BIT(attend_tensor_32, tensor_32, AttentionArguments, 128)
EXPORT_16BIT(attend_tensor_64, tensor_64, AttentionArguments, 128)
EXPORT_16BIT(attend_tensor_128, tensor_128, AttentionArguments, 128)
EXPORT(attend_to_32, any_32, AttentionArguments, 128)
EXPORT(attend_to_64, any_64, AttentionArguments, 128)
EXPORT(attend_to_256, any_256, AttentionArguments, 128)
