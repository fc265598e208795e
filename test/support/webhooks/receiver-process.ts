/** Receivers of webhooks in processes of their own, in several languages, which a test kills and starts again. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../../src/main/dev/embedded/loopback-port.ts";
import { blocksOf } from "../../architecture/rules/vocabulary.ts";
import { readText } from "../../architecture/tree.ts";
import { type FencepostProcess, spawnProgram } from "../node-process.ts";

export type Language = "node" | "python";

/** A delivery that a receiver has verified and taken, repeats included. */
export interface Delivered {
  readonly atMs: number;
  readonly id: string;
  readonly kind: string;
  readonly body: string;
}

/** Numbers of first requests that a receiver answers with 503, and of next requests whose connection it cuts. */
interface Troubles {
  readonly refused: number;
  readonly cut: number;
}

const programOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));

export class ReceiverProcess {
  readonly language: Language;
  readonly url: string;
  private readonly port;
  private readonly directory;
  private process: FencepostProcess | null = null;

  constructor(language: Language, port: number, directory: string) {
    this.language = language;
    this.port = port;
    this.url = `http://127.0.0.1:${port}/outcomes`;
    this.directory = directory;
  }

  /** Chooses the address of a receiver. Nothing listens there until `start`. */
  static async at(language: Language, directory: string): Promise<ReceiverProcess> {
    // The receiver in Python verifies with the very lines that the page shows.
    const [printed = ""] = blocksOf(readText("docs/webhooks.md"), "python");
    await writeFile(join(directory, "verify.py"), printed);
    return new ReceiverProcess(language, await freePort(), directory);
  }

  async start(secret: string, { refused, cut }: Troubles = { refused: 0, cut: 0 }): Promise<void> {
    const [program, script] =
      this.language === "node" ? [process.execPath, "receiver.mjs"] : ["python3", "receiver.py"];
    const argv = [programOf(script), `${this.port}`, this.file, secret, `${refused}`, `${cut}`];
    this.process = spawnProgram(program, argv, { variables: { PYTHONPATH: this.directory } });
    await this.process.ready;
  }

  async kill(): Promise<void> {
    this.process?.signal("SIGKILL");
    await this.process?.exited;
  }

  async taken(): Promise<readonly Delivered[]> {
    const lines = (await readFile(this.file, "utf8")).split("\n").slice(0, -1);
    return lines.map((line) => {
      const [at = "", id = "", kind = "", body = ""] = line.split("\t");
      return { atMs: Number(at), id, kind, body };
    });
  }

  private get file() {
    return join(this.directory, `${this.language}.txt`);
  }
}
