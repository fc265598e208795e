import { describe, expect, it } from "vitest";
import { changelogTrouble, missingAddresses, missingPrograms, stepsOf } from "../../scripts/release-check.mjs";
import { narrowed } from "../../scripts/sbom.mjs";
import { readPackage } from "./package.ts";
import { readText } from "./tree.ts";

const { scripts, version } = readPackage();
const ADDRESSES = {
  repository: { type: "git", url: "git+https://code.example/fencepost.git" },
  bugs: { url: "https://code.example/fencepost/issues" },
  homepage: "https://code.example/fencepost",
};

describe("npm run release:check", () => {
  it("runs the suite, every long suite, and a trial of publishing both packages", () => {
    const names = stepsOf({ scripts }).map(([name]) => name);
    const suites = Object.keys(scripts).filter((name) => name.startsWith("test:") && name !== "test:unit");
    expect(suites.length).toBeGreaterThan(10);
    const others = ["test", "model", "mutants", "stryker", "sim", "chaos", "publish", "publish:client"];
    expect(names).toEqual(expect.arrayContaining([...others, ...suites]));
    expect(new Set(names).size).toBe(names.length);
  });

  it("includes a suite that is added to package.json", () => {
    const added = { ...scripts, "test:added": "vitest run test/added" };
    expect(stepsOf({ scripts: added })).toContainEqual(["test:added", "npm run test:added"]);
  });

  it("is run by the workflow of a tag", () => {
    const workflow = readText(".github/workflows/release.yml");
    expect(workflow).toContain("npm run release:check");
    expect(workflow).toMatch(/^ +tags: \["v\*"\]$/m);
  });

  it("names the addresses that package.json lacks, and accepts real ones", () => {
    expect(missingAddresses(ADDRESSES)).toBeNull();
    for (const name of ["repository", "bugs", "homepage"]) {
      expect(missingAddresses({ ...ADDRESSES, [name]: undefined })).toMatch(new RegExp(`has no ${name}: `));
      expect(missingAddresses({ ...ADDRESSES, [name]: "TODO" })).toContain("docs/releasing.md");
    }
  });

  it("fails if a program is missing without which tests are skipped, and names Debian's package", () => {
    expect(stepsOf({ scripts }).map(([name]) => name)).toContain("programs");
    expect(missingPrograms(() => true)).toBeNull();
    const missing = missingPrograms((path) => !/patroni|etcd/.test(path));
    expect(missing).toBe("not installed: patroni, etcd; on Debian: apt-get install patroni etcd-server");
    const workflow = readText(".github/workflows/release.yml");
    const packages =
      missingPrograms(() => false)
        ?.split("apt-get install ")[1]
        ?.split(" ") ?? [];
    expect(packages).toContain("libfaketime");
    for (const name of packages) expect(workflow, name).toContain(` ${name}`);
  });

  it("wants a section of the version in the changelog, of at most 60 lines", () => {
    expect(changelogTrouble(readText("CHANGELOG.md"), version)).toBeNull();
    expect(changelogTrouble("# Changelog\n\n## [0.0.9]\n\n- text\n", "0.1.0")).toContain("no section [0.1.0]");
    expect(changelogTrouble(`## [0.1.0]\n${"- line\n".repeat(60)}`, "0.1.0")).toContain("61 lines");
  });
});

describe("npm run sbom", () => {
  it("keeps what is installed or bundled, and drops the tools of development", () => {
    const component = (name: string) => ({ name, version: "1.0.0", "bom-ref": `${name}@1.0.0` });
    const root = component("fencepost");
    const document = {
      metadata: { component: root },
      components: ["pg", "fastify", "vitest"].map(component),
      dependencies: [
        { ref: "fencepost@1.0.0", dependsOn: ["pg@1.0.0", "fastify@1.0.0", "vitest@1.0.0"] },
        { ref: "vitest@1.0.0", dependsOn: [] },
      ],
    };
    expect(narrowed(document, new Set(["pg@1.0.0", "fastify@1.0.0"]))).toEqual({
      metadata: { component: root },
      components: [component("pg"), component("fastify")],
      dependencies: [{ ref: "fencepost@1.0.0", dependsOn: ["pg@1.0.0", "fastify@1.0.0"] }],
    });
  });
});
