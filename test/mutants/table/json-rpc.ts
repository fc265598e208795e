import { mutantsIn } from "../mutant.ts";

export const JSON_RPC = [
  ...mutantsIn(
    "src/adapters/http/rpc/sends.ts",
    ["test/application/json-rpc/repeats.test.ts"],
    [
      ["equal sends of two API keys are not merged", "JSON.stringify(principal.name)", '""'],
      [
        "equal sends are merged within a minute",
        "return { ...request, requestId: earlier[found.indexOf(true)] ?? nameIn(window, own) };",
        "return { ...request, requestId: nameIn(clock.now().getTime(), own) };",
      ],
    ],
  ),
];
