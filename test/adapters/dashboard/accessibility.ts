import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

/** Script that defines `axe` in a page. */
export const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Audit {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

/**
 * Violations that axe finds on a page in the light colour scheme, and in the dark one, which differs only in its
 * colours, so only contrast is checked. The page must have run `AXE`; it stays in the light scheme.
 */
export async function violationsOn(page: Page): Promise<readonly string[]> {
  const audit = async (how: string) => {
    const { violations } = await page.evaluate<Audit>(`axe.run(document, { resultTypes: ["violations"], ${how} })`);
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
  };
  const light = await audit("");
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await audit("runOnly: ['color-contrast']");
  await page.emulateMedia({ colorScheme: "light" });
  return [...light, ...dark.map((each) => `dark: ${each}`)];
}
