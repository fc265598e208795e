/** Markup whose text is already escaped. */
export interface Html {
  readonly markup: string;
}

type Content = string | number | Html | readonly Html[] | null;

/** A template whose values are escaped unless they are markup themselves. */
export function html(parts: TemplateStringsArray, ...values: readonly Content[]): Html {
  return { markup: parts.reduce((text, part, index) => text + contentOf(values[index - 1] ?? null) + part) };
}

/** Prose of the contract: `words` between backticks become code. */
export function prose(text: string): Html {
  const parts = text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
  return html`${parts}`;
}

function contentOf(value: Content) {
  if (value === null) return "";
  if (typeof value === "string" || typeof value === "number") return escaped(String(value));
  return "markup" in value ? value.markup : value.map(({ markup }) => markup).join("");
}

function escaped(text: string) {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
