import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const CANDIDATES = [
  process.env.FENCEPOST_TEST_BROWSER,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** Path of an installed Chromium; undefined if there is none. */
export const browserPath = CANDIDATES.find((path) => path !== undefined && existsSync(path));

export function launchBrowser(): Promise<Browser> {
  if (browserPath === undefined) throw new Error("no browser is installed");
  return chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu"] });
}
