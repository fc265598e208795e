// The licences of what is bundled: each asks that its text goes wherever the code goes.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const OPENING = "The files of this folder contain code of the packages below, each under its own licence.";
const LICENCE_FILE = /^(licen[cs]e|copying|notice)/i;
/** Of a page in Markdown: all under the heading "License". */
const LICENCE_SECTION = /^#+ *licen[cs]e\b.*\n([^#]+)/im;

/** Of each package: name, version, author, and every text of its folder that is about its licence. */
export function thirdPartyLicences(folders) {
  const sections = new Set(folders.map(sectionOf));
  return `${[OPENING, ...[...sections].sort()].join("\n\n")}\n`;
}

function sectionOf(folder) {
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const by = typeof author === "object" ? author.name : author;
  const texts = licenceTexts(folder);
  if (texts.length === 0) throw new Error(`${name} has no licence text in ${folder}: do not bundle it`);
  return [`## ${name} ${version}`, `${license}${by === undefined ? "" : `, ${by}`}`, ...texts].join("\n\n");
}

function licenceTexts(folder) {
  const read = (pattern) =>
    readdirSync(folder)
      .filter((file) => pattern.test(file))
      .map((file) => readFileSync(join(folder, file), "utf8"));
  const files = read(LICENCE_FILE);
  const texts = files.length > 0 ? files : read(/^readme/i).map((page) => LICENCE_SECTION.exec(page)?.[1] ?? "");
  return texts.map((text) => text.trim()).filter((text) => text !== "");
}
