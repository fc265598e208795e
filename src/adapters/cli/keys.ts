/** `fencepost keys`: the encrypted key files of the configured directory. */
import { type Command, Option } from "commander";
import { answerWith, type CommandOptions, type Output, table } from "./present.ts";

export interface ImportOptions extends CommandOptions {
  /** The file that holds the key; `-` is standard input. */
  readonly from: string;
}

export interface KeyRow {
  readonly address: string | null;
  readonly file: string;
}

export interface KeyActions {
  newKey(options: CommandOptions): Promise<KeyRow>;
  importKey(options: ImportOptions): Promise<KeyRow>;
  listKeys(options: CommandOptions): Promise<readonly KeyRow[]>;
}

export function addKeys(program: Command, actions: KeyActions, io: Output): void {
  const keys = program
    .command("keys")
    .description("make, take in and list the encrypted keys of FENCEPOST_KEYSTORE_DIR");
  const stored = ({ address, file }: KeyRow): string => `${address} is in ${file}\n`;
  answerWith(keys.command("new").description("make a key, and print its address"), io, {
    ask: (options) => actions.newKey(options),
    show: stored,
  });
  const importing = keys
    .command("import")
    .description("take in a private key, as hex from standard input, and print its address")
    .addOption(new Option("--from <file>", "the file that holds it, instead of standard input").default("-"));
  answerWith(importing, io, { ask: (options: ImportOptions) => actions.importKey(options), show: stored });
  answerWith(keys.command("list").description("list the addresses of the keys"), io, {
    ask: (options) => actions.listKeys(options),
    show: keysTable,
  });
}

function keysTable(rows: readonly KeyRow[]): string {
  if (rows.length === 0) return "there is no key\n";
  return table(rows.map(({ address, file }) => [address ?? "(the file does not say)", file]));
}
