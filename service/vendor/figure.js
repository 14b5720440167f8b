// The writer of PDF figures, as one module: `make vendor`.

export { jsPDF } from "jspdf";
export { svg2pdf } from "svg2pdf.js";
