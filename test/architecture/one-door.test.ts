import { describe, expect, it } from "vitest";
import { besideTheDoor } from "./rules/one-door.ts";
import { parseSource, readCode } from "./tree.ts";

describe("the code of a lane", () => {
  // protects [The fence] src/application/lane/term.ts
  it("writes, signs and sends only through the lane's `Term` object", () => {
    const application = readCode("src/application");
    expect(application.length).toBeGreaterThan(50);
    expect(application.flatMap(besideTheDoor)).toEqual([]);
  });
});

describe("the check of a lane's code", () => {
  const found = (text: string, path = "src/application/stages/3-sign/sign.ts") =>
    besideTheDoor(parseSource(path, text)).map((each) => each.split(": ")[1]);

  it.each([
    ["const n = await read(); if (lane.term.hasEnded) stop();", "asks hasEnded"],
    ["if (!ports.lease.mayAct()) stop();", "asks mayAct"],
    ["while (lane.term.maySend) work();", "asks maySend"],
    ["await ports.writer.write({ kind: 'expire' });", "writer.write beside term.write"],
    ["await writer.write(write);", "writer.write beside term.write"],
    ["await context.chain.submit(raws);", "chain.submit beside term.send"],
    ["await lane.term.during(context.chain.submit(raws));", "chain.submit beside term.send"],
    ["await lane.term.sign(() => chain.sendUnsigned(signer, tx));", "chain.sendUnsigned beside term.send"],
    ["await ports.signer.sign(address, [unsigned]);", "signer.sign beside term.sign"],
  ])("finds code that bypasses the `Term` object: %s", (text, what) => {
    expect(found(text)).toEqual([what]);
  });

  it.each([
    "await lane.term.write({ kind: 'expire' });",
    "await lane.term.send(() => context.chain.submit(raws));",
    "await lane.term.sign(() => ports.signer.sign(address, [unsigned]));",
    "await stream.write(bytes);",
    "await context.chain.transactionCount(signer);",
  ])("accepts code that does not bypass the `Term` object: %s", (text) => {
    expect(found(text)).toEqual([]);
  });

  it("allows the listed files to check the right to act", () => {
    expect(found("if (lane.term.hasEnded) stop();", "src/application/lane/lanes.ts")).toEqual([]);
    expect(found("if (lease.mayAct()) stop();", "src/application/queries/readiness.ts")).toEqual([]);
    expect(found("if (lease.maySend()) stop();", "src/application/queries/readiness.ts")).toEqual(["asks maySend"]);
  });
});
