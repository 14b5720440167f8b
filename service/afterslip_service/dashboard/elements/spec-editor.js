// @ts-check
/** An editor of specs: colours, completion, and what is wrong at its line. */

import {
  EditorState, EditorView, HighlightStyle, autocompletion, completionKeymap, defaultKeymap,
  drawSelection, highlightActiveLine, history, historyKeymap, indentUnit, indentWithTab,
  keymap, lineNumbers, lintGutter, lintKeymap, setDiagnostics, startCompletion,
  syntaxHighlighting, tags, yaml,
} from "/dashboard/vendor/editor.js";

const COLOURS = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: "var(--accent)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--dim)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool], color: "var(--running)" },
  { tag: tags.string, color: "var(--text)" },
]);

const LOOK = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--card)", fontSize: ".86rem", border: "1px solid var(--line)", borderRadius: "8px", maxHeight: "min(70vh, 46rem)", minHeight: "14rem" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { overflow: "auto", fontFamily: "ui-monospace, SF Mono, Menlo, Consolas, monospace", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--soft)", color: "var(--dim)", border: "0", borderRadius: "8px 0 0 8px" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--soft) 55%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--line)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "color-mix(in srgb, var(--running) 30%, transparent) !important" },
  ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "8px", maxWidth: "min(90vw, 34rem)" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "2px 8px !important" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-text)" },
  ".cm-completionDetail": { color: "var(--dim)", fontStyle: "normal", marginLeft: "1em" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", overflowWrap: "anywhere" },
});

/**
 * Its styles are adopted by a shadow tree: the page's policy allows no style elements.
 * @param {Element} parent
 * @param {(text: string) => void} changed after each change by hand
 * @param {(text: string, position: number, asked: boolean) => {from: number, options: any[]} | null} complete
 */
export function specEditor(parent, changed, complete) {
  const shadow = parent.attachShadow({ mode: "open" });
  const view = new EditorView({
    root: shadow,
    parent: /** @type {any} */ (shadow),
    state: EditorState.create({
      extensions: [
        lineNumbers(), lintGutter(), history(), drawSelection(), highlightActiveLine(), indentUnit.of("  "),
        yaml(), syntaxHighlighting(COLOURS), LOOK, EditorView.lineWrapping,
        EditorView.contentAttributes.of({ tabindex: "0", "aria-label": "Spec of the campaign, YAML. Escape, then Tab leaves the editor" }),
        autocompletion({
          override: [(/** @type {any} */ context) => complete(context.state.doc.toString(), context.pos, context.explicit)],
          icons: false,
        }),
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap, ...lintKeymap,
          { key: "Alt-/", run: startCompletion }, indentWithTab]),
        EditorView.updateListener.of((/** @type {any} */ update) => { if (update.docChanged) changed(view.state.doc.toString()); }),
      ],
    }),
  });
  return {
    view,
    get text() { return view.state.doc.toString(); },
    set text(value) { view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value }, selection: { anchor: 0 } }); },
    /** @param {import("/dashboard/spec/document.js").Mark[]} marks */
    mark(marks) {
      const end = view.state.doc.length;
      const found = marks.map(({ from, to, message }) => ({ from: Math.min(from, end), to: Math.min(to, end), message, severity: /** @type {const} */ ("error") }));
      view.dispatch(setDiagnostics(view.state, found));
    },
    /** @param {number} position */
    go(position) {
      view.dispatch({ selection: { anchor: Math.min(position, view.state.doc.length) }, scrollIntoView: true });
      view.focus();
    },
    destroy() { view.destroy(); },
  };
}
