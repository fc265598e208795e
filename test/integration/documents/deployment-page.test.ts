/**
 * Runs the commands of docs/deployment.md for a machine with systemd, as root in a separate directory tree: `npm run
 * test:docs`.
 */
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { readPackage } from "../../architecture/package.ts";
import { ROOT, readText } from "../../architecture/tree.ts";
import { pack } from "../../support/packed.ts";
import { runPrinted, shellBlocks } from "../../support/printed-shell.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

it("the commands of docs/deployment.md install the program and the files that its systemd unit uses", {
  timeout: 300_000,
}, async () => {
  const { path, remove } = await makeTemporaryDirectory();
  onTestFinished(remove);
  for (const folder of ["opt", "etc/systemd/system"]) mkdirSync(join(path, folder), { recursive: true });
  const install = shellBlocks("docs/deployment.md").find((block) => block.startsWith("npm install")) ?? "";
  await runPrinted(install, {
    instead: {
      [`./fencepost-${readPackage().version}.tgz`]: pack(path),
      "/opt/": join(path, "opt/"),
      "/etc/": join(path, "etc/"),
      " deploy/": ` ${join(ROOT, "deploy/")}`,
    },
  });
  const unit = readText("deploy/systemd/fencepost.service");
  const [, program = ""] = /^ExecStart=.*?(\/opt\/\S+\.js)/m.exec(unit) ?? [];
  expect(await runPrinted(`node ${join(path, program)} --version`, {})).toBe(`${readPackage().version}\n`);
  expect(statSync(join(path, "etc/fencepost/secrets")).mode & 0o777).toBe(0o700);
  expect(statSync(join(path, "etc/systemd/system/fencepost.service")).isFile()).toBe(true);
});
