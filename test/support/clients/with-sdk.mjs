/** Runs the SDK in any runtime with `fetch`: `<runtime> with-sdk.mjs SDK URL FROM TO`. SDK is the module to import. */
const [sdk, url, signer, to] = process.argv.slice(2);
const { createClient, FencepostError } = await import(sdk);

const fencepost = createClient({ url });
const sent = await fencepost.send({ signer, requestId: "from-a-runtime", payload: { to, value: 1n } });
const again = await fencepost.send({ signer, requestId: "from-a-runtime", payload: { to, value: 1n } });
const states = [];
for await (const { state } of sent) states.push(state);
const refused = await fencepost.send({ signer, payload: { to: "nobody" } }).catch((error) => error);
const [first] = (await fencepost.completionsPage({ wait: 5 })).items;
process.stdout.write(
  JSON.stringify({
    same: sent.id === again.id,
    last: states.at(-1),
    refused: refused instanceof FencepostError && refused.code,
    delivered: first?.txId === sent.id,
  }),
);
