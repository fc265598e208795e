// By default, Node opens V8's inspector on SIGUSR1, and a heap snapshot contains the keys. A listener replaces that
// default, so it is installed before anything else is loaded. If Node supports --disable-sigusr1, this process is also
// started with that flag.
process.on("SIGUSR1", () => undefined);
const { serveKeys } = await import("./node/serve-keys.ts");
await serveKeys();
process.exit(0);

export {};
