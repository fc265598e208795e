import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { dashboardFiles } from "../../../src/adapters/dashboard/files.ts";

const files = dashboardFiles();
const textOf = (path: string) => String(files.get(path)?.body ?? "");

describe("the dashboard's files", () => {
  it("all exist and are all served", () => {
    const directory = new URL("../../../src/adapters/dashboard/public/", import.meta.url);
    const served = [...files.keys()].map((path) => (path === "/" ? "index.html" : path.replace("/dashboard/", "")));
    const there = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((name) => name.includes("."));
    expect(served.sort()).toEqual(there.sort());
    for (const { body } of files.values()) expect(body.length).toBeGreaterThan(0);
  });

  it("refer only to each other", () => {
    const local = [...textOf("/").matchAll(/(?:href|src)="(dashboard\/[^"]+)"/g)].map((match) => `/${match[1]}`);
    expect(local.length).toBeGreaterThan(2);
    for (const path of local) expect(files.has(path), path).toBe(true);
    for (const [path, { body }] of files) {
      if (!path.endsWith(".js")) continue;
      const imports = [...String(body).matchAll(/^(?:import|\}) .*from "(\.[^"]+)"/gm)].map(
        ([, from = ""]) => new URL(from, `http://node${path}`).pathname,
      );
      for (const imported of imports) expect(files.has(imported), `${path} → ${imported}`).toBe(true);
    }
  });

  it("load nothing from other hosts", () => {
    for (const [path, { body }] of files) {
      const text = String(body).replaceAll("http://www.w3.org/2000/svg", "");
      expect(text, path).not.toMatch(/https?:\/\//);
      expect(text, path).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(/);
    }
    expect(textOf("/")).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=/i);
  });

  it("are scripts without their comments, and otherwise unchanged", () => {
    for (const [path, { body }] of files) {
      if (!path.endsWith(".js")) continue;
      const source = readFileSync(
        new URL(`../../../src/adapters${path.replace("board/", "board/public/")}`, import.meta.url),
        "utf8",
      );
      const code = source.split("\n").filter((line) => !/^\s*(\/\*\*|\*|\/\/)/.test(line) || /\*\/ *\S/.test(line));
      expect(String(body).split("\n"), path).toEqual(code);
    }
  });

  it("are at most 86 kB together, compressed", () => {
    const sizes = [...files.values()].map(({ gzip }) => gzip.length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(86_000);
    for (const { body, gzip } of files.values()) expect(gunzipSync(gzip)).toEqual(body);
  });

  // protects [The dashboard] src/main/dev/dev.ts, src/adapters/dashboard/files.ts
  it("mark the page as a dev chain only if the server runs in dev mode", () => {
    expect(textOf("/")).not.toContain("data-dev");
    expect(String(dashboardFiles({ isDev: true }).get("/")?.body)).toContain("<html data-dev lang=");
  });

  it("have the content types that the nosniff header requires", () => {
    for (const [path, { contentType }] of files) {
      const expected = path.endsWith(".js") ? "text/javascript" : path.endsWith(".css") ? "text/css" : "text/html";
      expect(contentType).toBe(`${expected}; charset=utf-8`);
    }
  });
});
