/** `fencepost whoami`, `fencepost names` and `fencepost abis`: what a node knows about the key, the signers and contracts. */
import type { Command } from "commander";
import type { Abis, Caller, PutAbis, SignerNames } from "../../client/index.ts";
import { misused } from "./failure.ts";
import { askNode, type RemotePorts } from "./remote.ts";
import { factsTable, id, prose, tableOf } from "./table.ts";
import type { View } from "./terminal.ts";

export function addWhoami(program: Command, ports: RemotePorts): void {
  const whoami = program.command("whoami").description("print the API key that is used, its scopes, and the node");
  askNode(whoami, ports, { ask: (client) => client.me(), show: callerFacts });
  askNode(program.command("names").description("list the names of signers"), ports, {
    ask: async (client) => ({ items: await client.namedSigners() }),
    show: tableOf<SignerNames["items"][number]>("no signer has a name (FENCEPOST_SIGNER_NAMES)", {
      name: "name",
      signer: id("signer"),
    }),
  });
}

function callerFacts({ key, scopes, signers, chains, nodeId, version }: Caller, view: View) {
  return factsTable(
    {
      key: key ?? "(none is required)",
      scopes: scopes.join(", "),
      signers: signers?.join(", ") ?? "all",
      chains: chains?.join(", ") ?? "all",
      node: `${nodeId}, version ${version}`,
    },
    view,
  );
}

export function addAbis(program: Command, ports: RemotePorts): void {
  const abis = program.command("abis").description("ABIs by which calls, logs and errors are shown");
  askNode(abis.command("show").description("list the ABIs, and the contracts of each"), ports, {
    ask: (client) => client.abis(),
    show: abisTable,
  });
  const apply = abis
    .command("apply")
    .description("replace all ABIs, on every node")
    .argument(
      "<file>",
      'JSON: {"items": [{"name": "Payouts", "addresses": ["0x…"], "abi": […]}]}; - is standard input',
    );
  askNode(apply, ports, {
    ask: async (client, _: object, file) => client.putAbis(readAbis(file, await ports.io.read(file))),
    show: abisTable,
  });
}

const abisTable = ({ items, configured }: Abis, view: View) =>
  abiRows({ items: [...items.map((each) => ({ ...each, of: "all nodes" })), ...configured.map(ofNode)] }, view);

const ofNode = (abi: Abis["items"][number]) => ({ ...abi, of: "this node's configuration" });

type AbiRow = ReturnType<typeof ofNode>;

const abiRows = tableOf<AbiRow>("there is no ABI: calls are shown by the token standards alone", {
  name: "name",
  of: "of",
  entries: ({ abi }) => abi.length,
  contracts: prose(({ addresses }) => addresses?.join(", ") ?? "every other one"),
});

function readAbis(file: string, text: string): PutAbis {
  try {
    // `abis show --json` prints more than the items: what it prints can be edited and applied.
    const { items, changedAt: _, changedBy: __, configured: ___, ...others } = JSON.parse(text);
    return { items, ...others };
  } catch (error) {
    throw misused(`${file}: is not JSON: ${(error as Error).message}`);
  }
}
