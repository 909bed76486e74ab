// All kernels as a library of the host, with one entry.
#include "emulation.h"

#include "../activation.cu"
#include "../attention.cu"
#include "../largest.cu"
#include "../pool.cu"
#include "../rotary.cu"
#include "../rows.cu"

// Runs a kernel to its end. The result is null, or what is wrong with the launch.
extern "C" const char* emulate(const char* kernel, const u32* grid, u32 threads, u32 shared_bytes, const void* arguments,
                               int backwards) {
    const auto found = emulated::kernels().find(kernel);
    if (found == emulated::kernels().end()) return "no kernel of that name";
    if (threads == 0 || threads % WARP != 0 || threads > found->second.threads) return "more threads than the kernel is for";
    if (shared_bytes > 227u << 10) return "more shared memory than a block can have";
    emulated::Device& device = emulated::device;
    device.kernel = &found->second, device.arguments = arguments;
    if (device.fibers.size() < threads) device.fibers = std::vector<emulated::Fiber>(threads);
    device.warps.resize(threads / WARP);
    device.shared.resize(shared_bytes + emulated::Device::GUARD_BYTES);
    gridDim = {grid[0], grid[1], grid[2]}, blockDim = {threads, 1, 1};
    for (u32 z = 0; z < grid[2]; z++) {
        for (u32 y = 0; y < grid[1]; y++) {
            for (u32 x = 0; x < grid[0]; x++) {
                blockIdx = {x, y, z};
                if (const char* wrong = emulated::run_block(threads, backwards != 0)) return wrong;
            }
        }
    }
    return nullptr;
}
