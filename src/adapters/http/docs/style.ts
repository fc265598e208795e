/** The only style sheet of the API reference, served from /docs/style.css. */
export const DOCS_STYLE = `
:root {
  color-scheme: light dark;
  --ground: #f3f5f2; --raised: #ffffff; --ink: #17211c; --soft: #56635c; --line: #d9dfda;
  --accent: #1f7a4d; --post: #b56a00; --good: #1f7a4d; --bad: #b3322b; --warn: #955600;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0f1512; --raised: #161e1a; --ink: #e2ebe5; --soft: #94a39b; --line: #29342e;
    --accent: #56c48a; --post: #eaa63c; --good: #56c48a; --bad: #ff8d84; --warn: #eaa63c;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body {
  margin: 0; display: grid; grid-template-columns: 17rem minmax(0, 1fr);
  background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
}
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--raised); padding: .5rem 1rem; z-index: 1; }
nav {
  position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.5rem 1rem 2rem 1.5rem;
  border-right: 1px solid var(--line); font-size: .875rem;
}
nav .brand { margin: 0 0 1rem; font-size: 1.1rem; font-weight: 650; }
nav .brand a { color: var(--ink); }
nav .brand span { color: var(--soft); font-weight: 400; font-size: .8rem; }
nav h2 { margin: 1.25rem 0 .25rem; font-size: .8rem; color: var(--soft); font-weight: 600; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: flex; gap: .5rem; align-items: baseline; padding: .2rem 0; color: var(--ink); }
main { padding: 2.5rem clamp(1rem, 4vw, 4rem) 6rem; max-width: 64rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.015em; }
main > section > h2 { font-size: 1.4rem; margin: 3.5rem 0 .25rem; }
main > section > p { margin-top: 0; color: var(--soft); }
h3 { font-size: 1.1rem; margin: 0; }
h4 { font-size: .875rem; margin: 1.25rem 0 .4rem; color: var(--soft); }
article { background: var(--raised); border: 1px solid var(--line); border-radius: 10px; padding: 1.25rem 1.5rem; margin: 1rem 0; }
article p { margin: .5rem 0; }
code, pre { font-family: var(--mono); font-size: .85em; }
pre { margin: .5rem 0; padding: .9rem 1rem; overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; background: var(--ground); line-height: 1.5; }
pre code { font-size: .8rem; }
.route { display: flex; gap: .6rem; align-items: center; flex-wrap: wrap; }
.method { flex: none; font: 600 .68rem/1.5 var(--mono); width: 2.8rem; text-align: center; border-radius: 4px; border: 1px solid currentColor; }
.method.get { color: var(--good); }
.method.post { color: var(--post); }
.open, .optional, .limits { color: var(--soft); font-size: .8rem; }
.limits { white-space: nowrap; }
.open { border: 1px solid var(--line); border-radius: 99px; padding: 0 .6rem; }
.fields { width: 100%; border-collapse: collapse; font-size: .875rem; }
.fields th { text-align: left; color: var(--soft); font-weight: 500; font-size: .8rem; }
.fields th, .fields td { padding: .4rem .8rem .4rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.fields tbody tr:last-child td { border-bottom: 0; }
.fields td { overflow-wrap: anywhere; }
.fields td:first-child { width: 28%; } .fields td:nth-child(2) { width: 26%; }
.answer { border-top: 1px solid var(--line); padding: .35rem 0; }
.answer p { margin: 0; }
.status { display: inline-block; min-width: 2.75rem; font: 600 .85rem var(--mono); }
.status.s2 { color: var(--good); } .status.s4 { color: var(--warn); } .status.s5 { color: var(--bad); }
summary { cursor: pointer; color: var(--soft); font-size: .875rem; }
tr:target, article:target { background: color-mix(in srgb, var(--accent) 12%, transparent); }
@media (max-width: 56rem) {
  body { display: block; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); padding: 1rem; }
  main { padding-top: 1.5rem; }
  article { padding: 1rem; }
  .fields, .fields tbody, .fields tr, .fields td { display: block; width: auto; }
  .fields td:first-child, .fields td:nth-child(2) { width: auto; border-bottom: 0; padding-bottom: 0; }
  .fields thead { display: none; }
}
`;
