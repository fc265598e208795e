// `npm run docs:cli` writes the reference of docs/cli.md from the help of the command line. A test compares the two.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { withWritten } from "./written-block.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const PAGE = join(root, "docs/cli.md");
const SCRIPT = "docs:cli";

// A `<` outside of code would begin an HTML element on the site.
const sentence = (text) => text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
const pathOf = (command) => (command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`);
const leaves = (command) => (command.commands.length === 0 ? [command] : command.commands.flatMap(leaves));

function commandRow(command) {
  const args = command.registeredArguments.map((each) => {
    const name = `${each.name()}${each.variadic ? "..." : ""}`;
    return each.required ? `<${name}>` : `[${name}]`;
  });
  const path = pathOf(command);
  return `| \`${[path, ...args].join(" ")}\` | ${sentence(command.description())} |\n`;
}

/** One table for each group of the help, one row for each command. */
function commandTables(program) {
  const groups = new Map();
  for (const command of program.commands) {
    const group = command.helpGroup().replace(/:$/, "");
    groups.set(group, [...(groups.get(group) ?? []), ...leaves(command)]);
  }
  const tables = [...groups].map(
    ([group, commands]) =>
      `### ${group}\n\n| command | what it does |\n| --- | --- |\n${commands.map(commandRow).join("")}`,
  );
  return tables.join("\n");
}

/** One row for each option and meaning, with the commands that have it. */
function optionTable(program) {
  const rows = new Map();
  const add = (flags, meaning, command) => {
    const key = `${flags}\n${meaning}`;
    rows.set(key, [...(rows.get(key) ?? []), command]);
  };
  for (const command of leaves(program)) {
    for (const { flags, description, argChoices, defaultValue, defaultValueDescription } of command.options) {
      const usual = defaultValue === undefined ? "" : `; \`${defaultValueDescription ?? defaultValue}\` by default`;
      const choices = argChoices === undefined ? "" : `: ${argChoices.map((each) => `\`${each}\``).join(", ")}`;
      add(flags, `${sentence(description)}${choices}${usual}`, `\`${pathOf(command).replace("fencepost ", "")}\``);
    }
  }
  for (const { flags, description } of program.options) add(flags, sentence(description), "all");
  add("--help", "print the options and examples of a command", "all");
  const sorted = [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const lines = sorted.map(([key, commands]) => {
    const [flags, meaning] = key.split("\n");
    const where = commands.length > MANY ? "all that call a node" : commands.join(", ");
    return `| \`${flags}\` | ${where} | ${meaning} |\n`;
  });
  return `### Options\n\n| option | commands | meaning |\n| --- | --- | --- |\n${lines.join("")}`;
}

/** More commands than this have the options that choose a node; their names would fill a page. */
const MANY = 30;

/** The part of the page that is written from the program. */
export function referenceOf(program) {
  return `\n${commandTables(program)}\n${optionTable(program)}\n`;
}

/** The page with its reference replaced. */
export const withReference = (page, reference) => withWritten(page, reference, SCRIPT);

if (argv[1] === fileURLToPath(import.meta.url)) {
  const { createJiti } = await import("jiti");
  const { createProgram } = await createJiti(import.meta.url).import("../src/adapters/cli/run-cli.ts");
  writeFileSync(PAGE, withReference(readFileSync(PAGE, "utf8"), referenceOf(createProgram({}, { version: "" }))));
}
