// The editor of specs and the reader of YAML, as one module: `make vendor`.

export { autocompletion, completionKeymap, startCompletion } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { yaml } from "@codemirror/lang-yaml";
export { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
export { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
export { EditorState } from "@codemirror/state";
export {
  EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers,
} from "@codemirror/view";
export { tags } from "@lezer/highlight";
export { isMap, isPair, isScalar, isSeq, parseDocument } from "yaml";
