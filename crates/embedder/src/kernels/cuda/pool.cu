// One row for each span of rows: the vector of a text, or of a chunk within one, before it is scaled to unit length.
//
// Shapes: [T, H] and S spans give [S, H] in f32; H is a multiple of 8. A block takes 256 columns of one span; its eight warps
// take every eighth row and add up in the end, in an order that depends on the span alone.
#include "device.cuh"

// As `Pool` in pool.rs.
enum : u32 { MEAN, MEAN_SQRT_LENGTH, WEIGHTED_MEAN, MAX, FIRST, LAST };

template <typename T> struct PoolArguments {
    float* out;       // [S, H]
    const T* rows;    // [T, H]
    const u32* spans; // [S, 3]: first row, one past the last, place of the first row in its text
    u32 width;        // H
    u32 mode;
};

constexpr u32 POOL_WARPS = 8;

// A NaN replaces any maximum, and is replaced by none.
__device__ inline float larger(float a, float b) { return b > a || b != b ? b : a; }

template <typename T> __device__ void pool(const PoolArguments<T>& a) {
    SHARED(float, partial); // [8, 256]
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 column = (blockIdx.y * WARP + lane) * PACK;
    const bool inside = column < a.width;
    u32 begin = a.spans[3 * blockIdx.x], end = a.spans[3 * blockIdx.x + 1];
    const u32 length = end - begin, place = a.spans[3 * blockIdx.x + 2];
    if (a.mode == FIRST) end = begin + 1;
    if (a.mode == LAST) begin = end - 1;
    const u32 base = begin;
    float sums[PACK];
#pragma unroll
    for (u32 i = 0; i < PACK; i++) sums[i] = a.mode == MAX ? -INFINITY : 0.0f;
    for (u32 row = begin + warp; inside && row < end; row += POOL_WARPS) {
        const Pack<T> pack = load_pack(a.rows + size_t(row) * a.width + column);
        const float weight = a.mode == WEIGHTED_MEAN ? float(place + row - base + 1) : 1.0f;
#pragma unroll
        for (u32 i = 0; i < PACK; i++) {
            const float value = to_f32(pack.values[i]);
            sums[i] = a.mode == MAX ? larger(sums[i], value) : sums[i] + weight * value;
        }
    }
#pragma unroll
    for (u32 i = 0; i < PACK; i++) partial[(warp * WARP + lane) * PACK + i] = sums[i];
    __syncthreads();
    if (warp != 0 || !inside) return;
    float divisor = 1;
    if (a.mode == MEAN) divisor = float(length);
    if (a.mode == MEAN_SQRT_LENGTH) divisor = sqrtf(float(length));
    if (a.mode == WEIGHTED_MEAN) divisor = float(length) * (float(place) + 0.5f * float(length + 1)); // of place + 1, ...
#pragma unroll
    for (u32 i = 0; i < PACK; i++) {
        float sum = sums[i];
        for (u32 other = 1; other < POOL_WARPS; other++) {
            const float value = partial[(other * WARP + lane) * PACK + i];
            sum = a.mode == MAX ? larger(sum, value) : sum + value;
        }
        a.out[size_t(blockIdx.x) * a.width + column + i] = sum / divisor;
    }
}

EXPORT(pool, pool, PoolArguments, 256)
