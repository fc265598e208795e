import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import type { DashboardOptions } from "../../../src/adapters/dashboard/files.ts";
import { type NightOptions, night, STUCK_TX } from "../../support/staged/night.ts";
import { type Scene, type StagedNode, startStagedNode } from "../../support/staged/staged-node.ts";

export const LANE = "#/lanes/8453/0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
/** Pages that every test of all pages opens. */
export const PAGES = ["#/", "#/tx", `#/tx/${STUCK_TX}`, "#/lanes", LANE, "#/feed", "#/cluster", "#/policies"];

export interface Visit {
  readonly page: Page;
  readonly node: StagedNode;
  /** Problems reported by the browser: script errors, refused resources, violations of the content policy. */
  readonly complaints: string[];
  /** Opens a page of the dashboard and waits until it shows something. */
  open(place: string): Promise<void>;
}

interface Staging extends Partial<NightOptions>, DashboardOptions {
  /** Function that overrides responses of the fake node; if it returns undefined, the usual test data is used. */
  readonly scene?: Scene;
  readonly context?: BrowserContextOptions;
}

const nodes: StagedNode[] = [];

export async function visit(
  browser: Browser,
  { scene, context, isDev = false, ...options }: Staging = {},
): Promise<Visit> {
  const usual = night({ now: () => new Date(), ...options });
  const node = await startStagedNode((asked) => scene?.(asked) ?? usual(asked), { isDev });
  nodes.push(node);
  const page = await (await browser.newContext(context)).newPage();
  const complaints: string[] = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  const open = async (place: string) => {
    await page.goto(`${node.url}/${place}`);
    const [path] = place.slice(1).split("?");
    await page.locator(`main[data-path="${path}"][aria-busy=false]`).waitFor();
  };
  return { page, node, complaints, open };
}

export async function leave(browser: Browser): Promise<void> {
  await Promise.all(browser.contexts().map((context) => context.close()));
  await Promise.all(nodes.splice(0).map((node) => node.close()));
}

export const shows = (page: Page, selector: string, text: string) =>
  page.locator(selector, { hasText: text }).first().waitFor({ timeout: 15_000 });
