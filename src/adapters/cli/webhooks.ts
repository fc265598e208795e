/** `fencepost webhooks`: lists, adds, changes, tests and removes the receivers of outcomes. */
import type { Command } from "commander";
import type {
  AddWebhook,
  FencepostClient,
  NewWebhook,
  RemovedWebhook,
  ReplayWebhook,
  TestedWebhook,
  Webhook,
} from "../../client/index.ts";
import { given } from "./answer.ts";
import { CommandFailed, misused } from "./failure.ts";
import { numbers, words } from "./keys.ts";
import { askNode, count, duration, type RemotePorts } from "./remote.ts";
import { indented } from "./shorten.ts";
import { factsTable, id, prose, spare, tableOf, time } from "./table.ts";
import type { View } from "./terminal.ts";

type Filter = Pick<AddWebhook, "signers" | "chains" | "keys" | "states">;
interface Reasoned {
  readonly reason?: string;
}
interface Terms extends Filter {
  readonly url?: string;
  readonly giveUpAfter?: number;
}

const ARGUMENT = ["<webhook>", "its name or id"] as const;

export function addWebhooks(program: Command, ports: RemotePorts): void {
  const webhooks = program.command("webhooks").description("receivers to which outcomes are posted, signed");
  askNode(webhooks.command("list").description("list them with position, backlog and last answer"), ports, {
    ask: async (client) => ({ items: await client.webhooks() }),
    show: webhooksTable,
  });
  askNode(webhooks.command("show").description("print everything about one"), ports, {
    ask: async (client, _, name) => client.webhook(await idOf(client, name)),
    show: webhookFacts,
  }).argument(...ARGUMENT);
  addMaking(webhooks, ports);
  addActions(webhooks, ports);
  const removing = webhooks.command("remove").description("remove one; its position is forgotten");
  askNode(removing, ports, {
    ask: async (client, _, name) => client.removeWebhook(await idOf(client, name)),
    show: ({ name }: RemovedWebhook) => `removed ${name}\n`,
    question: async (_, __, name) => `Remove the webhook ${name}? Its position in the feed is forgotten, for ever.`,
  }).argument(...ARGUMENT);
}

function addMaking(webhooks: Command, ports: RemotePorts) {
  const adding = webhooks.command("add").description("post outcomes to a receiver; its secret is shown once");
  askNode(adding, ports, {
    ask: (client, { giveUpAfter, after, ...filter }: Terms & { readonly after?: number }, name, url) =>
      client.addWebhook({ name, url, ...filter, ...given({ after, giveUpAfterSeconds: seconds(giveUpAfter) }) }),
    show: secretLines,
  })
    .argument("<name>", "your name of it")
    .argument("<url>", "where outcomes are posted")
    .option("--after <position>", "begin after this position of the feed; 0: everything that is kept", count);
  const changing = webhooks.command("change").description("change its URL, its filter or when it is given up");
  askNode(changing, ports, {
    ask: async (client, { giveUpAfter, to: url, ...rest }: Terms & Reasoned & { readonly to?: string }, name) =>
      client.changeWebhook(await idOf(client, name), {
        ...rest,
        ...given({ url, giveUpAfterSeconds: seconds(giveUpAfter) }),
      }),
    show: stateLine,
  })
    .argument(...ARGUMENT)
    .option("--to <url>", "where outcomes are posted from now on")
    .option("--reason <text>", "why, for the audit");
  for (const each of [adding, changing]) {
    each
      .option("--signers <list>", "only outcomes of these", words)
      .option("--chains <list>", "only outcomes on these, by id", numbers)
      .option("--keys <list>", "only outcomes of what these API keys created", words)
      .option("--states <list>", "only outcomes in these states: CONFIRMED,FAILED_FINAL,STUCK,REORGED", words)
      .option("--give-up-after <time>", "pause it after failing for so long, such as 72h", duration);
  }
}

function addActions(webhooks: Command, ports: RemotePorts) {
  const pausing = webhooks.command("pause").description("stop deliveries; the position is kept");
  askNode(pausing, ports, {
    ask: async (client, reason: Reasoned, name) => client.pauseWebhook(await idOf(client, name), reason),
    show: stateLine,
  });
  const resuming = webhooks.command("resume").description("go on with deliveries, or try a failing receiver now");
  askNode(resuming, ports, {
    ask: async (client, reason: Reasoned, name) => client.resumeWebhook(await idOf(client, name), reason),
    show: stateLine,
  });
  const replaying = webhooks.command("replay").description("deliver everything after a position again");
  askNode(replaying, ports, {
    ask: async (client, request: ReplayWebhook, name) => client.replayWebhook(await idOf(client, name), request),
    show: stateLine,
  }).requiredOption("--after <position>", "in the feed; 0: everything that is kept", count);
  const rotating = webhooks.command("rotate").description("begin the next generation of its secret, shown once");
  askNode(rotating, ports, {
    ask: async (client, { overlap, ...reason }: Reasoned & { readonly overlap?: number }, name) =>
      client.rotateWebhook(await idOf(client, name), { ...reason, ...given({ overlapSeconds: seconds(overlap) }) }),
    show: secretLines,
  }).option("--overlap <time>", "sign with both secrets for so long, such as 24h", duration);
  for (const each of [pausing, resuming, replaying, rotating])
    each.argument(...ARGUMENT).option("--reason <text>", "why, for the audit");
  const testing = webhooks.command("test").description("post a signed test event now");
  askNode(testing, ports, {
    ask: async (client, _, name) => client.testWebhook(await idOf(client, name)),
    show: testedLine,
    judge: ({ delivered, reason }) => {
      if (!delivered) throw new CommandFailed([`the receiver did not take it: ${reason}`]);
    },
  }).argument(...ARGUMENT);
}

function seconds(ms: number | undefined) {
  return ms === undefined ? undefined : Math.round(ms / 1_000);
}

async function idOf(client: FencepostClient, name: string) {
  const all = await client.webhooks();
  const found = all.find((each) => each.name === name || each.subscriberId === name.toLowerCase());
  if (found === undefined) throw misused(`there is no webhook ${name}`);
  return found.subscriberId;
}

function secretLines({ name, subscriberId, generation, secret }: NewWebhook, view: View) {
  const about = `${name} (${subscriberId}), secret ${generation}, shown this once:`;
  return `${indented("", about, view)}\n${secret}\n`;
}

function stateLine({ name, state, position, behind }: Webhook) {
  return `${name} is ${state} at position ${position}, ${behind} behind the feed\n`;
}

function testedLine({ reason, seconds }: TestedWebhook) {
  return `the receiver answered ${reason} after ${seconds.toFixed(3)} s\n`;
}

function answerOf({ lastAnswer }: Webhook) {
  if (lastAnswer === null) return null;
  return lastAnswer.status === null ? lastAnswer.reason : `HTTP ${lastAnswer.status}`;
}

function webhookFacts(webhook: Webhook, view: View) {
  const { signers, chains, keys, states, paused, generation, rotatedUntil, createdBy, createdAt } = webhook;
  const facts = {
    ...{ webhook: webhook.name, id: webhook.subscriberId, url: webhook.url, state: webhook.state },
    ...{ paused: paused && `${paused.by} at ${paused.at}: ${paused.why}`, node: webhook.nodeId },
    ...{ signers, chains: chains?.map(String) ?? null, keys, states },
    position: `${webhook.position} of epoch ${webhook.epoch}, ${webhook.behind} behind the feed`,
    "last answer": answerOf(webhook),
    ...{ "failing since": webhook.failingSince, "next try": webhook.nextTryAt, delivered: webhook.deliveredAt },
    secret: `generation ${generation}${rotatedUntil === null ? "" : `, the one before until ${rotatedUntil}`}`,
    created: `${createdAt}${createdBy === null ? "" : ` by ${createdBy}`}`,
  };
  return factsTable(facts, view);
}

const webhooksTable = tableOf<Webhook>("there are no webhooks", {
  name: "name",
  state: "state",
  position: "position",
  behind: "behind",
  since: time("behindSince", 3),
  "last answer": prose(answerOf, 1),
  node: spare(({ nodeId }) => nodeId, 4),
  url: prose("url", 2),
  id: id("subscriberId"),
});
