// Rows picked from tables, added up, and normalised: the first hidden rows of an encoder, and every residual and norm after them.
//
// Shapes: [T, H] out of one or two tables of width H, a multiple of 8. One warp a row, which stays in its registers: mean and
// variance are taken in two passes, so that a large mean does not drown the variance.
#include "device.cuh"

template <typename T> struct RowsArguments {
    T* out;              // [T, H]
    const T* first;      // [., H]
    const u32* first_at; // [T] row of `first`, or null: row t
    const T* second;     // [., H] or null: nothing is added
    const u32* second_at;
    const float* bias;   // [H] or null: added to every row
    const float* scale;  // [H] or null: rows are not normalised
    const float* shift;  // [H] or null: zero
    u32 n_rows;
    u32 width;
    float epsilon;
    u32 around_zero; // 1: the mean is taken to be 0 (RMSNorm)
};

template <typename T, u32 PACKS> __device__ void sum_rows(const RowsArguments<T>& a) {
    const u32 row = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (row >= a.n_rows) return; // all lanes of a warp alike
    const T* first = a.first + size_t(a.first_at ? a.first_at[row] : row) * a.width;
    const T* second = a.second ? a.second + size_t(a.second_at ? a.second_at[row] : row) * a.width : nullptr;
    float values[PACKS][PACK];
    float sum = 0;
#pragma unroll
    for (u32 p = 0; p < PACKS; p++) {
        const u32 column = (p * WARP + lane) * PACK;
        const bool inside = column < a.width;
        const Pack<T> one = inside ? load_pack(first + column) : Pack<T>{};
        const Pack<T> two = inside && second ? load_pack(second + column) : Pack<T>{};
#pragma unroll
        for (u32 i = 0; i < PACK; i++) {
            values[p][i] = to_f32(one.values[i]);
            if (second) values[p][i] += to_f32(two.values[i]);
            if (a.bias && inside) values[p][i] += a.bias[column + i];
            sum += values[p][i];
        }
    }
    float mean = 0, inverse = 1;
    if (a.scale) {
        if (!a.around_zero) mean = lane_sum(sum) / a.width;
        float squares = 0;
#pragma unroll
        for (u32 p = 0; p < PACKS; p++) {
            if ((p * WARP + lane) * PACK >= a.width) continue;
#pragma unroll
            for (u32 i = 0; i < PACK; i++) squares += (values[p][i] - mean) * (values[p][i] - mean);
        }
        inverse = 1.0f / sqrtf(lane_sum(squares) / a.width + a.epsilon);
    }
#pragma unroll
    for (u32 p = 0; p < PACKS; p++) {
        const u32 column = (p * WARP + lane) * PACK;
        if (column >= a.width) continue;
        Pack<T> out;
#pragma unroll
        for (u32 i = 0; i < PACK; i++) {
            float value = values[p][i];
            if (a.scale) value = (value - mean) * inverse * a.scale[column + i] + (a.shift ? a.shift[column + i] : 0.0f);
            out.values[i] = from_f32<T>(value);
        }
        store_pack(a.out + size_t(row) * a.width + column, out);
    }
}

// Widths up to 512, 1024 and 4096.
template <typename T> __device__ void rows_512(const RowsArguments<T>& a) { sum_rows<T, 2>(a); }
template <typename T> __device__ void rows_1024(const RowsArguments<T>& a) { sum_rows<T, 4>(a); }
template <typename T> __device__ void rows_4096(const RowsArguments<T>& a) { sum_rows<T, 16>(a); }

EXPORT(rows_to_512, rows_512, RowsArguments, 256)
EXPORT(rows_to_1024, rows_1024, RowsArguments, 256)
EXPORT(rows_to_4096, rows_4096, RowsArguments, 256)
