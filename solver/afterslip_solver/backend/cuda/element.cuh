// K_e u of a straight-sided quadratic tetrahedron.
//
// Included by elastic.cu and elastic_half.cu. The gradient of a quadratic field is linear
// in such an element: at vertex a it is 3 u_a (x) G_a + sum_{b != a} (4 u_ab - u_b) (x) G_b.
// Integrals are exact with int f g = V/20 sum_ab (1 + d_ab) f_a g_b (see tets.py, the same
// on the CPU).

// local node on the edge between two vertices
__device__ constexpr int MID[4][4] = {{0, 4, 6, 7}, {4, 1, 5, 8}, {6, 5, 2, 9}, {7, 8, 9, 3}};
// place of a symmetric tensor's components among six
__device__ constexpr int SYM[3][3] = {{0, 3, 5}, {3, 1, 4}, {5, 4, 2}};

// v w + x
__device__ __forceinline__ real multiply_add(real v, real w, real x) { return v * w + x; }
__device__ __forceinline__ real constant(real, float value) { return value; }
#if HALF
__device__ __forceinline__ Pair constant(Pair, float value) { return pair_of(value, value); }
#endif

// o = K_e v with moduli that are multiplied by V/20, all real or all Pair; g holds the
// gradients of barycentric coordinates 1..3 (0: minus their sum).
// Vertex by vertex: more arithmetic than a hierarchical basis, but fewer live registers.
template <class Number>
__device__ __forceinline__ void element(const Number v[10][3], const Number g[4][3],
                                        Number lam, Number mu, Number o[10][3]) {
  const Number three = constant(lam, 3), four = constant(lam, 4), twice = mu + mu;
  Number s[4][6], total[6];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    Number w[4][3], h[3][3];
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
      for (int c = 0; c < 3; c++)
        w[k][c] = k == i ? three * v[i][c] : multiply_add(four, v[MID[i][k]][c], -v[k][c]);
#pragma unroll
    for (int c = 0; c < 3; c++) {
      const Number d1 = w[1][c] - w[0][c], d2 = w[2][c] - w[0][c], d3 = w[3][c] - w[0][c];
#pragma unroll
      for (int x = 0; x < 3; x++)
        h[c][x] = multiply_add(d3, g[3][x], multiply_add(d2, g[2][x], d1 * g[1][x]));
    }
    const Number p = lam * (h[0][0] + h[1][1] + h[2][2]);
#pragma unroll
    for (int q = 0; q < 3; q++) {
      s[i][q] = multiply_add(twice, h[q][q], p);
      s[i][3 + q] = mu * (h[q][(q + 1) % 3] + h[(q + 1) % 3][q]);
    }
#pragma unroll
    for (int q = 0; q < 6; q++) total[q] = i == 0 ? s[i][q] : total[q] + s[i][q];
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    Number h[6];
#pragma unroll
    for (int q = 0; q < 6; q++) h[q] = s[i][q] + total[q];
#pragma unroll
    for (int c = 0; c < 3; c++) {
      Number p[4];
#pragma unroll
      for (int k = 1; k < 4; k++) {
        const Number first = h[SYM[c][0]] * g[k][0];
        p[k] = multiply_add(h[SYM[c][2]], g[k][2], multiply_add(h[SYM[c][1]], g[k][1], first));
      }
      p[0] = -(p[1] + p[2] + p[3]);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        // a node has had its first part if a vertex before has one for it
        Number& at = o[MID[i][k]][c];
        if (k == i) {
          at = i == 0 ? three * p[k] : multiply_add(three, p[k], at);
        } else {
          at = i < k ? four * p[k] : multiply_add(four, p[k], at);
          o[k][c] = i == 0 ? -p[k] : o[k][c] - p[k];
        }
      }
    }
  }
}
