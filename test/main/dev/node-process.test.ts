import { expect, it } from "vitest";
import { inherited } from "../../../src/main/dev/node-process.ts";

it.each(["--max-semi-space-size=64", "--max_semi_space_size=32", "--no-parallel-scavenge"])(
  "a node of the demo inherits the Node.js option %s",
  (room) => {
    expect(inherited(["--inspect=127.0.0.1:9229", room, "--inspect-brk", "--cpu-prof"])).toEqual([room]);
  },
);
