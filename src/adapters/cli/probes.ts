/** Commands that read a node's routes outside the API: liveness, readiness, metrics and the OpenAPI document. */
import type { Command } from "commander";
import type { Health, Readiness } from "../../contract/calls/cluster.ts";
import { during, print } from "./answer.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import { addressed, count, explainRefusal, json, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { agoOf } from "./shorten.ts";
import { table } from "./table.ts";
import type { View } from "./terminal.ts";

export function addProbes(program: Command, ports: RemotePorts): void {
  const { io } = ports;
  probe(program.command("health").description("is the process of a node alive"), ports, {
    path: () => "/healthz",
    show: ({ text }, options) =>
      print(read<Health>(text), io, { ...options, show: ({ status, version }) => `${status}: version ${version}\n` }),
  });
  const ready = program.command("ready").description("should a node get traffic; exit code 1 if not");
  probe(ready, ports, {
    path: ({ chainId }) => (chainId === undefined ? "/readyz" : `/readyz?chain=${chainId}`),
    show: ({ status, text }, options) => {
      print(read<Readiness>(text), io, { ...options, show: readinessTable });
      if (status !== 200) throw new CommandFailed(["the node is not ready"]);
    },
  }).option("--chain-id <number>", "ready for this chain", count);
  probe(program.command("metrics").description("print a node's Prometheus metrics"), ports, {
    path: () => "/metrics",
    show: ({ text }, options) => print({ text }, io, { ...options, show: () => text }),
  });
  probe(program.command("openapi").description("print the OpenAPI document of the API"), ports, {
    path: ({ html }) => (html ? "/docs" : "/openapi.json"),
    show: ({ text }) => io.stdout(text.endsWith("\n") ? text : `${text}\n`),
  }).option("--html", "the reference to browse, instead");
}

type ProbeOptions = RemoteOptions & { readonly chainId?: number; readonly html?: true };
type Page = Awaited<ReturnType<RemotePorts["actions"]["look"]>>;

interface Probe {
  readonly path: (options: ProbeOptions) => string;
  readonly show: (page: Page, options: ProbeOptions) => void;
}

/**
 * Adds a command that reads a probe such as `/readyz`. "Not ready" is printed as a result; any other refusal is an
 * error.
 */
function probe(command: Command, { actions, io }: RemotePorts, { path, show }: Probe) {
  command.action(async () => {
    const options = command.optsWithGlobals<ProbeOptions>();
    const looking = () => actions.look(options, path(options));
    const page = await during(io, "waiting for the node", looking).catch((error) =>
      explainRefusal(error, actions, options),
    );
    show(page, options);
  });
  return addressed(command);
}

function read<T>(text: string) {
  try {
    return json(text) as T;
  } catch (cause) {
    throw new CommandFailed(["the answer is not from a Fencepost node: is --url right?"], EXIT_CODES.failed, { cause });
  }
}

function readinessTable({ ready, database, draining, chains }: Readiness, view: View) {
  const facts = [
    ["ready", ready ? "yes" : "no"],
    ["database", database ? "reachable" : "not reachable"],
    ...(draining ? [["draining", "it is shutting down"]] : []),
    ...chains.map(({ chainId, reachable, head, headSince, signersAway }) => {
      const seen = reachable ? `at block ${head ?? "-"}${agoOf(headSince, view)}` : "not reachable";
      return [`chain ${chainId}`, `${seen}${signersAway > 0 ? `, ${signersAway} signers away` : ""}`];
    }),
  ];
  return table(facts, view.paint, (cell) => (/^no/.test(cell) ? "red" : null));
}
