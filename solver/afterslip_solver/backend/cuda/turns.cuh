// The forces of a block of elements, whose warps add in turn.
//
// Included by elastic.cu and elastic_half.cu.

#if HALF
// What the tasks of a block are done with; see `apply_half`.
struct Block {
  const uint2* local;
  int shift;
  const unsigned* shapes;
  // vectors in shared memory
  const char* differences;
  char* sum;
};
#else
// What the tasks of a block are done with; see `apply`.
struct Block {
  const uint2* local;
  int shift;
  const real* gradients;
  const real* moduli;
  const input* u;
  // in shared memory
  const unsigned* number;
  real* sum;
};
#endif

__device__ __forceinline__ void fetch_slots(const Block& block, int task, int one,
                                            uint2 slot[3]) {
  const uint2* mine = block.local + ((long long)(task + block.shift) * PER_WARP + one) * 3;
#pragma unroll
  for (int k = 0; k < 3; k++) slot[k] = __ldg(mine + k);
}

#if HALF
#include "tasks_half.cuh"
#else
#include "tasks_real.cuh"
#endif

// turns of the warps of a block, and the threads of a barrier between two of them
#define WARPS_TOGETHER (TOGETHER / ABREAST)
#define TURNS (WARPS / WARPS_TOGETHER)
#define PASSING (2 * 32 * WARPS_TOGETHER)
// a thread block has 16 barriers, one of them for all
static_assert(1 < TURNS && TURNS < 16 && WARPS % WARPS_TOGETHER == 0, "a barrier for each turn");

// wait until the warps of the turn before have added
__device__ __forceinline__ void wait_for_turn(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(PASSING) : "memory");
}
// let the warps of the next turn add
__device__ __forceinline__ void give_turn(int barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(PASSING) : "memory");
}

// Add the forces of tasks first..last to the block's sums.
__device__ __forceinline__ void add_forces(const Block& block, int first, int last) {
  const int warp = threadIdx.x / 32;
  // 0 is the barrier of all
  const int turn = warp / WARPS_TOGETHER, own = 1 + turn, next = 1 + (turn + 1) % TURNS;
  Part part;
  const int start = first + ABREAST * warp;
  if (start < last) fetch(block, start, part);
#pragma unroll 1
  for (int task = start; task < last; task += ABREAST * WARPS) {
    const uint2* slot = part.slot;
    const unsigned at[10] = {slot[0].x & 0xffff, slot[0].x >> 16, slot[0].y & 0xffff,
                             slot[0].y >> 16, slot[1].x & 0xffff, slot[1].x >> 16,
                             slot[1].y & 0xffff, slot[1].y >> 16, slot[2].x & 0xffff,
                             slot[2].x >> 16};
    const bool present = at[0] != 0xffff;
    if (present) find_forces(block, at, part);
    // while warps wait for their turn
    if (task + ABREAST * WARPS < last) fetch(block, task + ABREAST * WARPS, part);
    if (task - first >= TOGETHER) wait_for_turn(own);
    if (present) add(block, at, part);
    // after the last task nobody waits
    if (turn + 1 < TURNS || task + ABREAST * WARPS < last) give_turn(next);
  }
}
