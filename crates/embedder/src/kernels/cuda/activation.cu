// What follows the products of a feed-forward network: bias, activation, gate.
//
// Shapes: rows of a width that is a multiple of 8; a thread takes 8 values at a time, blocks walk over all of them.
#include "device.cuh"

// As `Activation` in activation.rs.
enum : u32 { NONE, GELU, GELU_TANH, RELU, SILU, TANH };

__device__ inline float activated(float x, u32 activation) {
    switch (activation) {
        case GELU: return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
        case GELU_TANH: return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
        case RELU: return x < 0.0f ? 0.0f : x; // a NaN stays one
        case SILU: return x / (1.0f + expf(-x));
        case TANH: return tanhf(x);
        default: return x;
    }
}

template <typename T> struct ActivateArguments {
    T* x;              // [T, N], in place
    const float* bias; // [N] or null
    u64 n_packs;
    u32 width; // N
    u32 activation;
};

// x = activation(x + bias)
template <typename T> __device__ void activate(const ActivateArguments<T>& a) {
    const u32 packs_a_row = a.width / PACK;
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < a.n_packs; at += step) {
        const u32 column = u32(at % packs_a_row) * PACK;
        Pack<T> pack = load_pack(a.x + at * PACK);
#pragma unroll
        for (u32 i = 0; i < PACK; i++) {
            const float sum = to_f32(pack.values[i]) + (a.bias ? a.bias[column + i] : 0.0f);
            pack.values[i] = from_f32<T>(activated(sum, a.activation));
        }
        store_pack(a.x + at * PACK, pack);
    }
}

template <typename T> struct GateArguments {
    T* out;     // [T, F]
    const T* x; // [T, 2F]
    u64 n_packs; // of `out`
    u32 width;   // F
    u32 activated_at; // column where the activated half begins: 0 or F
    u32 activation;
};

// out = activation(one half of x) * the other half
template <typename T> __device__ void gate(const GateArguments<T>& a) {
    const u32 packs_a_row = a.width / PACK;
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < a.n_packs; at += step) {
        const u64 row = at / packs_a_row;
        const T* x = a.x + row * 2 * a.width + (at % packs_a_row) * PACK;
        Pack<T> active = load_pack(x + a.activated_at);
        const Pack<T> other = load_pack(x + (a.width - a.activated_at));
#pragma unroll
        for (u32 i = 0; i < PACK; i++) {
            active.values[i] = from_f32<T>(activated(to_f32(active.values[i]), a.activation) * to_f32(other.values[i]));
        }
        store_pack(a.out + at * PACK, active);
    }
}

EXPORT(activate, activate, ActivateArguments, 256)
EXPORT(gate, gate, GateArguments, 256)
