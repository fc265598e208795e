import { mutantsIn } from "../mutant.ts";

export const STAGES = [
  ...mutantsIn(
    "src/application/stages/1-create/create.ts",
    [
      "test/application/cluster/forwarding.test.ts",
      "test/application/lifecycle/submissions.test.ts",
      "test/application/lifecycle/many-creates.test.ts",
    ],
    [
      [
        "a repeated create is answered with what was made",
        "repeat ? await answerMade(ports, admitted) : admitted",
        "admitted",
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/stages/1-create/prepare.ts",
    ["test/application/fees/ceilings.test.ts"],
    [["a fee above the ceiling is refused", "refuseOverCeiling(context.ceilings, { gas, value }, payload);", ""]],
  ),
];
