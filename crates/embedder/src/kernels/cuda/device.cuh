// What all kernels share: number types, 16-byte loads, sums over a warp, matrix products of a warp.
//
// Kernels compute in f32 whatever they read and write. The same sources are compiled by NVRTC for the device and, with
// CENTO_EMULATED, as C++20 for the host, where `emulation.h` stands in for the device. NVRTC has no header of C or C++.
#pragma once

#ifdef CENTO_EMULATED
#include "emulation.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef __nv_bfloat16 bf16;
typedef __half f16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define INFINITY __int_as_float(0x7f800000)

// Shared memory is always dynamic: its size is part of the launch.
#define SHARED(type, name)                       \
    extern __shared__ __align__(16) char arena[]; \
    type* name = reinterpret_cast<type*>(arena)

// One kernel for each number type, named `kernel_f32`, `kernel_bf16`, `kernel_f16`; its one argument is a struct by value.
#define EXPORT_AS(kernel, function, Arguments, type, suffix, threads)                                             \
    extern "C" __global__ void __launch_bounds__(threads) kernel##_##suffix(const __grid_constant__ Arguments a) { \
        function(a);                                                                                               \
    }

__device__ inline float to_f32(float x) { return x; }
__device__ inline float to_f32(bf16 x) { return __bfloat162float(x); }
__device__ inline float to_f32(f16 x) { return __half2float(x); }

template <typename T> __device__ inline T from_f32(float x);
template <> __device__ inline float from_f32<float>(float x) { return x; }
template <> __device__ inline bf16 from_f32<bf16>(float x) { return __float2bfloat16_rn(x); }
template <> __device__ inline f16 from_f32<f16>(float x) { return __float2half_rn(x); }

// Product of a 16 x 16 and a 16 x 8 matrix, added to `c`, all spread over a warp. Lane 4g + t holds of the first factor rows g
// and g + 8, columns 2t, 2t + 1 and 8 more (`a[0]`, `a[2]` of row g); of the second rows 2t, 2t + 1 and 8 more of column g; of
// the sum columns 2t, 2t + 1 of rows g (`c[0]`, `c[1]`) and g + 8. Source: PTX ISA, mma.m16n8k16.
template <typename T> __device__ inline void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1);
template <> __device__ inline void multiply_add<bf16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <> __device__ inline void multiply_add<f16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 x 8 matrices of 16-bit values from shared memory, each transposed: lane 8m + r gives the address of row r of matrix m;
// lane 4g + t receives rows 2t and 2t + 1 of column g of each. Source: PTX ISA, ldmatrix.
__device__ inline void load_transposed(u32 (&out)[4], const void* row) {
    u32 address = static_cast<u32>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
}
#endif

#define EXPORT_16BIT(kernel, function, Arguments, threads)                       \
    EXPORT_AS(kernel, function<bf16>, Arguments<bf16>, bf16, bf16, threads)      \
    EXPORT_AS(kernel, function<f16>, Arguments<f16>, f16, f16, threads)
#define EXPORT(kernel, function, Arguments, threads)                             \
    EXPORT_AS(kernel, function<float>, Arguments<float>, float, f32, threads)    \
    EXPORT_16BIT(kernel, function, Arguments, threads)

constexpr u32 ALL_LANES = 0xffffffffu;
constexpr u32 WARP = 32;
// Values a thread reads at a time: 16 bytes of 16-bit values, twice 16 of f32.
constexpr u32 PACK = 8;

// Eight consecutive values, 16-byte aligned in memory.
template <typename T> struct alignas(16) Pack {
    T values[PACK];
};

template <typename T> __device__ inline Pack<T> load_pack(const T* at) { return *reinterpret_cast<const Pack<T>*>(at); }
template <typename T> __device__ inline void store_pack(T* at, const Pack<T>& pack) { *reinterpret_cast<Pack<T>*>(at) = pack; }

// Two consecutive 16-bit values as one word.
template <typename T> __device__ inline u32 load_pair(const T* at) { return *reinterpret_cast<const u32*>(at); }
template <typename T> __device__ inline u32 pair_of(float low, float high) {
    union {
        T values[2];
        u32 word;
    } pair;
    pair.values[0] = from_f32<T>(low);
    pair.values[1] = from_f32<T>(high);
    return pair.word;
}

// Sums and maxima over `width` lanes, a power of two; every lane has the result.
__device__ inline float lane_sum(float x, u32 width = WARP) {
    for (u32 step = width / 2; step > 0; step /= 2) x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}
__device__ inline float lane_max(float x, u32 width = WARP) {
    for (u32 step = width / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, step));
    return x;
}
