// On SIGUSR1 Node opens V8's inspector, and a heap snapshot contains the keys. A listener replaces that default, so
// it is installed before anything is loaded. If Node knows --disable-sigusr1, the node also starts this process with
// it.
process.on("SIGUSR1", () => undefined);
const { serveKeys } = await import("./node/serve-keys.ts");
await serveKeys();
process.exit(0);

export {};
