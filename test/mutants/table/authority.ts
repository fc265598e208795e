import { mutantsIn } from "../mutant.ts";

export const AUTHORITY = [
  ...mutantsIn(
    "src/application/authority.ts",
    ["test/application/authority/key-limits.test.ts"],
    [
      [
        "a key with limits may not act on everything",
        'mayAll: principal.scopes.has("operate") && !limited',
        'mayAll: principal.scopes.has("operate")',
      ],
      [
        "a batch of creates is counted against the key's rate",
        "const taken = rates.take(principal, requests.length);",
        "const taken = requests.length;",
      ],
      [
        "a create is made on behalf of its key",
        "return (request) => make(request, principal.name, principal);",
        "return (request) => make(request, null, principal);",
      ],
      [
        "a create is held to the limits of its key",
        "return (request) => make(request, principal.name, principal);",
        "return (request) => make(request, principal.name);",
      ],
      [
        "a batch of creates is held to the limits of its key",
        "await make(requests.slice(0, taken), principal.name, principal)",
        "await make(requests.slice(0, taken), principal.name)",
        ["test/application/authority/key-limits.test.ts", "test/application/authority/approval.test.ts"],
      ],
      [
        "a key asks for policies of other keys only if it may operate",
        "key !== undefined && key !== principal.name && !mayAskForOthers",
        "false",
        [
          "test/application/authority/policy-reads.test.ts",
          "test/application/authority/key-limits.test.ts",
          "test/application/authority/approval.test.ts",
        ],
      ],
      [
        "a limited key asks for no other key's use",
        "refuseOthersUse(principal, key);\n    countOne",
        "countOne",
        ["test/application/authority/policy-reads.test.ts"],
      ],
      [
        "what is found by its id is hidden outside the key's limits",
        "return shown(principal, await call(by, include), what);",
        "return call(by, include);",
      ],
      [
        "no chain is asked about a hidden transaction",
        'if (limited && include?.includes("logs") === true) shown',
        "if (false) shown",
        ["test/application/queries/chain-looks.test.ts"],
      ],
      [
        "a hidden transaction is not explained",
        `shown(principal, await api.transaction(txId), \`transaction \${txId}\`);
    return byNonceOnly`,
        "return byNonceOnly",
      ],
      ["what blocks a transaction of a limited key is named by its nonce alone", "{ blockerByNonce: true }", "{}"],
      [
        "the feed of a limited key has its own outcomes alone",
        "limited ? { ...page, items: seen(principal, page.items), filtered: true } : page",
        "page",
      ],
      [
        "a limited key sees lanes within its limits alone",
        "return seen(principal, await call(signer, options));",
        "return call(signer, options);",
        ["test/application/authority/key-limits.test.ts", "test/application/authority/approval.test.ts"],
      ],
      [
        "a limited key sees leases within its limits alone",
        "return async () => seen(principal, await call());",
        "return async () => call();",
        ["test/application/authority/key-limits.test.ts", "test/application/authority/approval.test.ts"],
      ],
      [
        "a limited key sees its own policies alone",
        "if (!limited || inForce.policies === null) return inForce;",
        "return inForce;",
        ["test/application/authority/policy-reads.test.ts"],
      ],
      [
        "a limited key sees its own use alone",
        "if (!limited) return { at, signers, keys };",
        "return { at, signers, keys };",
        ["test/application/authority/policy-reads.test.ts"],
      ],
      [
        "calls that narrow themselves get the key's limits",
        "return (query: Query) => call(query, principal);",
        "return (query: Query) => call(query);",
      ],
      [
        "a query that names a signer outside the limits is refused",
        "refuseNamed(principal, query ?? {});",
        "",
        ["test/application/authority/key-limits.test.ts", "test/application/authority/approval.test.ts"],
      ],
      [
        "an approval needs the scope approve",
        "if (FOUR_EYES.has(action)) mayApprove(principal, await transaction());",
        "if (FOUR_EYES.has(action)) await transaction();",
        ["test/application/authority/approval.test.ts"],
      ],
      [
        "an action on a transaction of another key needs the scope operate",
        "mayActOn(principal, OWNERS_ACTIONS.has(action)",
        "if (false) mayActOn(principal, OWNERS_ACTIONS.has(action)",
      ],
      [
        "nobody approves a signature that the same key asked for",
        `mayApprove(principal, shown(principal, asked, \`signature \${received.signatureId}\`), "asked for it");`,
        `shown(principal, asked, \`signature \${received.signatureId}\`);`,
        ["test/application/signing/messages.test.ts"],
      ],
      [
        "a key of one chain does not stop all chains",
        'if (principal.chains !== null) throw forbidden("chains"',
        'if (false) throw forbidden("chains"',
      ],
      [
        "a limited key does not stop all signers",
        'else if (limited) throw forbidden("signers"',
        'else if (false) throw forbidden("signers"',
      ],
      [
        "a key does not stop a signer outside its limits",
        "if (received.signer !== null) refuseNamed(principal, { signer: received.signer });",
        "if (received.signer !== null) {}",
      ],
    ],
  ),
];
