/** Clocks that a test can set while programs run: libfaketime for a node, or for the PostgreSQL of the cluster. */
import { existsSync } from "node:fs";
import { chmod, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { migrate } from "../../../src/adapters/postgres/schema/migrate.ts";
import { locateNative } from "../../../src/main/dev/embedded/needed-packages.ts";
import type { Variables } from "../node-process.ts";
import { type OwnPostgres, startOwnPostgres } from "../own-postgres.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../temporary-directory.ts";
import { it as onOwnPostgres } from "./own-postgres.ts";

const FOLDERS = ["x86_64", "aarch64"].map((machine) => `/usr/lib/${machine}-linux-gnu/faketime`);
const folder = FOLDERS.find((path) => existsSync(path));
export const NO_LIBFAKETIME = "no libfaketime is installed: machines whose clock jumps stay untested";

/**
 * The wall clock of one machine. Timers and the monotonic clock are not affected, as if an administrator had set the
 * time.
 */
export class FakeClock {
  /** Environment variables that make a process with several threads use this clock. */
  readonly variables: Variables;
  private readonly directory: TemporaryDirectory;
  private readonly file: string;

  private constructor(directory: TemporaryDirectory) {
    this.directory = directory;
    this.file = join(directory.path, "offset");
    this.variables = this.preloading("libfaketimeMT.so.1");
  }

  static async start(): Promise<FakeClock> {
    const clock = new FakeClock(await makeTemporaryDirectory());
    await clock.set(0);
    return clock;
  }

  /** Sets the offset from the true time, effective at the next read of the clock. */
  async set(offByMs: number): Promise<void> {
    await writeFile(`${this.file}.new`, `${offByMs < 0 ? "" : "+"}${offByMs / 1_000}\n`);
    await rename(`${this.file}.new`, this.file);
  }

  /** Creates a directory with PostgreSQL's programs, in which the server uses this clock. */
  async native(): Promise<string> {
    const bin = join(this.directory.path, "native", "bin");
    await mkdir(bin, { recursive: true });
    const exports = Object.entries(this.preloading("libfaketime.so.1")).map(
      ([name, value]) => `export ${name}=${value}`,
    );
    const programs = { postgres: exports, initdb: [] };
    for (const [name, lines] of Object.entries(programs)) {
      const real = join(locateNative(), "bin", name);
      await writeFile(join(bin, name), ["#!/bin/sh", ...lines, `exec ${real} "$@"`, ""].join("\n"));
      await chmod(join(bin, name), 0o755);
    }
    return join(this.directory.path, "native");
  }

  remove(): Promise<void> {
    return this.directory.remove();
  }

  private preloading(library: string): Variables {
    return {
      LD_PRELOAD: join(folder ?? "", library),
      FAKETIME_TIMESTAMP_FILE: this.file,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
  }
}

interface Fixtures {
  readonly databaseClock: FakeClock;
  readonly postgres: OwnPostgres;
  readonly newClock: () => Promise<FakeClock>;
}

export const it = onOwnPostgres.extend<Fixtures>({
  newClock: async ({ skip }, use) => {
    skip(folder === undefined, NO_LIBFAKETIME);
    const clocks: FakeClock[] = [];
    await use(async () => {
      const clock = await FakeClock.start();
      clocks.push(clock);
      return clock;
    });
    await Promise.all(clocks.map((clock) => clock.remove()));
  },
  databaseClock: async ({ newClock }, use) => use(await newClock()),
  postgres: async ({ databaseClock }, use) => {
    const postgres = await startOwnPostgres(await databaseClock.native());
    await migrate({ databaseUrl: postgres.url });
    await use(postgres);
    await postgres.remove();
  },
});
