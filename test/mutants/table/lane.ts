import { mutantsIn } from "../mutant.ts";

export const LANE = [
  ...mutantsIn(
    "src/application/lane/term.ts",
    ["test/application/lane/term.test.ts"],
    [
      [
        "a write begins only while this node owns the lane",
        "if (!this.mayAct) return Promise.reject(this.tooLate(write.kind));",
        "",
      ],
      [
        "a lost session lock stops sends",
        "this.ending === null && this.ports.lease.maySend() && !this.isKilled",
        "this.ending === null && !this.isKilled",
      ],
      [
        "a kill stops sends",
        "this.ending === null && this.ports.lease.maySend() && !this.isKilled",
        "this.ending === null && this.ports.lease.maySend()",
      ],
      ["a fenced write ends the term", 'this.end("lost");', ""],
    ],
  ),
  ...mutantsIn(
    "src/application/lane/limits.ts",
    ["test/application/authority/policies.test.ts"],
    [
      [
        "blobs count towards what a policy allows",
        "gasCost: gas * feeCap(fees) + blobCost",
        "gasCost: gas * feeCap(fees)",
      ],
    ],
  ),
];
