import { mutantsIn } from "../mutant.ts";

export const MESSAGES = [
  ...mutantsIn(
    "src/domain/messages/parse-message.ts",
    ["test/domain/messages/parse-message.test.ts"],
    [
      ["a message has a longest length", "bytes.length > 2 + 2 * MOST_BYTES", "false"],
      ["a domain has no unknown field", "if (unknown !== undefined) throw", "if (false) throw"],
      ["a domain has a field", "if (present.length === 0) throw", "if (false) throw"],
      ["a declared domain type is that of its fields", "if (!same) throw", "if (false) throw"],
      ["a built-in type is not redefined", "if (BUILT_IN.test(name)) throw", "if (false) throw"],
      ["a message has a limited number of types", "entries.length > MOST_TYPES", "false"],
      ["a message has a limited number of fields", "total > MOST_FIELDS", "false"],
      ["a field occurs once", "if (seen.has(name)) throw", "if (false) throw"],
      ["a struct does not contain itself", "if (open.has(name)) throw", "if (open.has(name)) return; if (false) throw"],
      ["a struct value has no unknown member", "if (extra !== undefined) throw", "if (false) throw"],
      ["a message has a limited number of values", "if (this.left < 0) throw", "if (false) throw"],
      ["an array has its declared length", "length !== null && asked.length !== length", "false"],
      ["a value of fixed bytes has its length", 'length !== "" && bytes.length !== 2 + 2 * Number(length)', "false"],
      ["a number is within its type", "value >= limit || value < (signed ? -limit : 0n)", "value >= limit"],
      [
        "a number is below its type's limit",
        "value >= limit || value < (signed ? -limit : 0n)",
        "value < (signed ? -limit : 0n)",
      ],
      [
        "an unsafe number is not rounded",
        "Number.isSafeInteger(asked) ? BigInt(asked) : null",
        "BigInt(Math.trunc(asked))",
      ],
      ["a text without a Unicode value is refused", "if (NOT_STORABLE.test(asked)) throw", "if (false) throw"],
    ],
  ),
  ...mutantsIn(
    "src/domain/messages/message.ts",
    ["test/domain/messages/parse-message.test.ts", "test/domain/policy/message-rules.test.ts"],
    [
      ["structs are encoded in the order of their names", "...needed.sort()]", "...needed]"],
      [
        "structs of structs are found",
        "found.add(baseOf(type))",
        "primaryType === name && found.add(baseOf(type))",
        ["test/domain/messages/parse-message.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/messages/sign-in.ts",
    ["test/domain/policy/message-rules.test.ts"],
    [
      ["a sign-in is for its own domain", 'if (signIn.domain !== bounds.domain) return "domain";', ""],
      ["a sign-in is for its own address", 'if (signIn.address.toLowerCase() !== signer) return "address";', ""],
      ["a sign-in is for its own address of a page", 'if (signIn.uri !== bounds.uri) return "uri";', ""],
      ["a sign-in is for its own chain", 'if (signIn.chainId !== String(bounds.chainId)) return "chainId";', ""],
      [
        "a sign-in names allowed resources alone",
        'signIn.resources.every((each) => bounds.resources.has(each)) ? null : "resources"',
        "null",
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/operations/messages.ts",
    ["test/application/signing/messages.test.ts"],
    [
      ["a suspended signer signs nothing", "if (lane.suspended) throw stopped", "if (false) throw stopped"],
      [
        "a killed signer signs nothing",
        "if (lane.term.isKilled) throw stopped",
        "if (false) throw stopped",
        ["test/application/signing/messages.test.ts", "test/application/json-rpc/signatures.test.ts"],
      ],
      [
        "a message that waits for approval is not signed",
        'if (record.state === "AWAITING_APPROVAL") {',
        "if (false) {",
      ],
      ["a rejected message is not signed", "refuseEnded(record);", ""],
      [
        "a signature is stored before it is answered",
        "return keptOf(settled, requestId).record;",
        "return { ...record, signature: made };",
        ["test/application/signing/messages.test.ts", "test/application/json-rpc/signatures.test.ts"],
      ],
      ["a decision that was taken is not taken again", "if (!isDone) keptOf(result, requestId);", ""],
    ],
  ),
];
