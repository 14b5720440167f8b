// What the page takes from libraries, as one module: `make vendor`.

import { decompress } from "fzstd";
import { registry } from "zarrita";

// zarrita's own decoder is WebAssembly, which the page's policy does not allow
// @ts-expect-error nothing is encoded here
registry.set("zstd", async () => ({
  fromConfig: () => ({
    kind: "bytes_to_bytes",
    decode: (bytes) => {
      const found = decompress(bytes);
      // zarrita reads texts from where the buffer begins
      return found.byteOffset ? found.slice() : found;
    },
  }),
}));

export { EigenvalueDecomposition, Matrix } from "ml-matrix";
export { FetchStore, get, open, root, slice } from "zarrita";
