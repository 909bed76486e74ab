// Rotary positions: pairs of a query's or key's values turned by an angle that grows with its place in the text.
//
// Source: Su et al. 2021; the halves of a head are paired, value i with value i + R / 2.
#include "device.cuh"

template <typename T> struct RotaryArguments {
    T* qkv;               // [T, 3H], queries and keys in place
    const float* cos;     // [P, R / 2]
    const float* sin;
    const u32* positions; // [T]
    u64 n_pairs;          // T * 2 * heads * R / 2
    u32 n_heads;
    u32 head_width; // D
    u32 half;       // R / 2, at most D / 2
};

template <typename T> __device__ void rotate(const RotaryArguments<T>& a) {
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < a.n_pairs; at += step) {
        const u32 i = u32(at % a.half);
        const u32 head = u32(at / a.half % (2 * a.n_heads)); // those of the keys follow those of the queries
        const u64 row = at / a.half / (2 * a.n_heads);
        T* x = a.qkv + row * 3 * a.n_heads * a.head_width + head * a.head_width + i;
        const u64 angle = u64(a.positions[row]) * a.half + i;
        const float cos = a.cos[angle], sin = a.sin[angle];
        const float first = to_f32(x[0]), second = to_f32(x[a.half]);
        x[0] = from_f32<T>(first * cos - second * sin);
        x[a.half] = from_f32<T>(second * cos + first * sin);
    }
}

EXPORT(rotate, rotate, RotaryArguments, 256)
