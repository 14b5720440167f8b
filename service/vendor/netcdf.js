// The reader of NetCDF 4 (HDF5) files, as one module: `make vendor`.

// @ts-expect-error it has no declarations
export { File } from "jsfive";
